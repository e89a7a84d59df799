"""A table as one matrix on a device, the columns that replace its own, and the same rows on the host.

PyTorch is optional: it is imported here, when a tensor is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.text import quote
from subgrove._core.weights import FrequencyWeights
from subgrove._data.columns import untyped_numbers
from subgrove._data.from_containers import BOOLEANS, names_and_rows, untyped_columns
from subgrove._data.replace_columns import CyclicShift, Donors
from subgrove.exceptions import ColumnError, InputError, ParameterError

Tensor = Any  # torch.Tensor; PyTorch may not be installed


def torch_of() -> Any:
    """The module torch; an error with the install line if it is missing."""
    try:
        import torch
    except ImportError as error:
        raise ParameterError(
            "Models on a device are computed by PyTorch, which is not installed. "
            "Install it with: pip install 'subgrove[torch]'"
        ) from error
    return torch


def tensor_of(array: npt.NDArray[Any]) -> Tensor:
    """An array as a tensor on the host, without a copy if rows lie one after the other and may be written to."""
    plain = np.ascontiguousarray(array)
    return torch_of().from_numpy(plain if plain.flags.writeable else plain.copy())


def is_tensor(value: Any) -> bool:
    """Whether something is a tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_module(value: Any) -> bool:
    """Whether something is a `torch.nn.Module`; torch is not imported to find out."""
    nn = getattr(sys.modules.get("torch"), "nn", None)
    return nn is not None and isinstance(value, nn.Module)


def matrix_of(X: Any, columns: Sequence[str] | None, device: Any, dtype: Any) -> Tensor:
    """The numbers of a table on a device, a row for each row; a tensor that is like that already is not copied."""
    if is_tensor(X):
        reject_other_tensors(X, columns)
        return X.detach().to(device=device, dtype=dtype)
    return tensor_of(numbers_of(X, columns)).to(device=device, dtype=dtype)


def reject_other_tensors(X: Tensor, columns: Sequence[str] | None, argument: str = "X") -> None:
    """Tensors must be tables of numbers, with as many columns as are named."""
    if X.ndim != 2 or X.is_complex() or X.is_sparse:
        raise InputError(f"{argument} must be a dense tensor of real numbers (rows, columns); got {tuple(X.shape)}.")
    if columns is not None and X.shape[1] != len(columns):
        raise InputError(
            f"{argument} has {X.shape[1]} columns, but columns names {len(columns)}. Name each column of the tensor."
        )


def numbers_of(X: Any, columns: Sequence[str] | None) -> npt.NDArray[Any]:
    """The numbers of a table on the host, columns in the order of the model."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.dtype.kind not in "iufb":
            raise InputError(f"X must be a 2-d array of numbers; got shape {X.shape} of {X.dtype}.")
        if columns is not None and X.shape[1] != len(columns):
            raise InputError(f"X has {X.shape[1]} columns, but columns names {len(columns)}. Name each of them.")
        return X
    names = names_and_rows(X)[0] if columns is None else tuple(columns)
    given = untyped_columns(X, "X", only=names)
    absent = [name for name in names if name not in given]
    if absent:
        raise InputError(
            f"X lacks the column {absent[0]!r} that the model takes. It has {quote(names_and_rows(X)[0])}."
        )
    array = np.empty((names_and_rows(X)[1], len(names)))
    for place, name in enumerate(names):
        column = given[name]
        if column.kind != "numeric" and column.levels != BOOLEANS:
            raise ColumnError(
                f"Column {name!r} is {column.kind}, and a model on tensors takes numbers. Put its codes (or columns of "
                f"0 and 1) into the table, leave it out by columns=, or pass a function of a table instead."
            )
        array[:, place] = untyped_numbers(column, name, "X")
    return array


class Sender:
    """Sends arrays of the host to a device without waiting for its work."""

    def __init__(self, device: Any) -> None:
        self.torch = torch_of()
        self.device = device
        self.pins = device.type == "cuda"

    def __call__(self, array: npt.NDArray[Any], dtype: Any = None) -> Tensor:
        tensor = tensor_of(array)
        if dtype is not None:
            tensor = tensor.to(dtype)
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.pins else tensor.to(self.device)

    def rows(self, rows: npt.NDArray[Any]) -> Tensor:
        """Return row numbers on the device, as int32 if possible."""
        small = len(rows) == 0 or rows.max() < 2**31
        return self(rows.astype(np.int32) if small else rows)


class DeviceCyclicShift:
    """A cyclic shift of donors on a device: the methods of `CyclicShift` for tensors (..., n)."""

    def __init__(self, cyclic_shift: CyclicShift, send: Sender) -> None:
        self.torch = send.torch
        self.host_order = cyclic_shift.order
        self.order = send.rows(cyclic_shift.order)
        n = len(cyclic_shift.order)
        self.place = self.torch.empty(n, dtype=self.order.dtype, device=send.device)
        self.place[self.order.long()] = self.torch.arange(n, dtype=self.order.dtype, device=send.device)

    def taken(self, cyclic_shift: CyclicShift, values: Tensor) -> Tensor:
        """Return the values that rows receive, in the order of the shift."""
        return self.torch.cat([values[..., part] for part in cyclic_shift.slices()], dim=-1)

    def returned(self, cyclic_shift: CyclicShift, values: Tensor) -> Tensor:
        """Return values of receivers at the positions of their donors."""
        return self.torch.cat([values[..., part] for part in cyclic_shift.slices(back=True)], dim=-1)


class DeviceMatrix:
    """A table on a device in which columns are written and restored.

    Parameters
    ----------
    values : tensor (n, p)
        The table; it is written to.
    names : sequence of str
        Of its columns.
    send : Sender
        How arrays come to the device.
    train_column : callable
        From a name to that column of the training rows.
    """

    def __init__(self, values: Tensor, names: Sequence[str], send: Sender, train_column: Any) -> None:
        self.values = values
        self.place = {name: place for place, name in enumerate(names)}
        self.send = send
        self.train_column = train_column
        self.start()

    def start(self) -> None:
        """Clear the cache of the last feature."""
        self._own: dict[str, Tensor] = {}
        self._pool: dict[str, Tensor] = {}
        self._ordered: dict[str, Tensor] = {}
        self.shift_on_device: DeviceCyclicShift | None = None

    def own(self, name: str) -> Tensor:
        """Return a copy of a baseline column."""
        if name not in self._own:
            self._own[name] = self.values[:, self.place[name]].clone()
        return self._own[name]

    def new(self, name: str, column: Any) -> Tensor:
        """Return what replaces a column: values of donors, or new values."""
        if not isinstance(column, Donors):
            return self.send(np.asarray(column, dtype=np.float64), self.values.dtype)
        if column.cyclic_shift is not None:
            return self._shifted(name, column.cyclic_shift)
        if column.train and name not in self._pool:
            self._pool[name] = self.send(np.asarray(self.train_column(name), dtype=np.float64), self.values.dtype)
        values = self._pool[name] if column.train else self.own(name)
        return values.index_select(0, self.send.rows(column.rows))

    def _shifted(self, name: str, cyclic_shift: CyclicShift) -> Tensor:
        shift_on_device = self.on_device(cyclic_shift)
        if name not in self._ordered:
            self._ordered[name] = self.own(name).index_select(0, shift_on_device.order)
        return shift_on_device.taken(cyclic_shift, self._ordered[name]).index_select(0, shift_on_device.place)

    def on_device(self, cyclic_shift: CyclicShift) -> DeviceCyclicShift:
        """Return a cyclic shift on the device; shifts of the same order share it."""
        if self.shift_on_device is None or self.shift_on_device.host_order is not cyclic_shift.order:
            self.shift_on_device, self._ordered = DeviceCyclicShift(cyclic_shift, self.send), {}
        return self.shift_on_device


def host_table(X: Any, columns: Sequence[str] | None, argument: str = "X") -> Any:
    """A table that samplers read: tensors and arrays become frames if their columns are named, arrays if not.

    Numbers of 32 bits become float64 here, once, since every reader would make them so.
    """
    if is_tensor(X):
        reject_other_tensors(X, columns, argument)
        array = _by_columns(X.detach())
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f" and X.dtype != np.float64:
        array = _by_columns(tensor_of(X))
    elif isinstance(X, np.ndarray) and columns is not None:
        array = X
    else:
        return X
    if columns is None:
        return array
    if array.ndim != 2 or array.shape[1] != len(columns):
        raise InputError(
            f"{argument} has shape {array.shape}, but columns names {len(columns)} columns. Name each of them."
        )
    import pandas as pd

    return pd.DataFrame(array, columns=list(columns), copy=False)


def _by_columns(tensor: Any) -> npt.NDArray[np.float64]:
    """A tensor as float64 on the host, with contiguous columns; it is transposed on its device, which is fastest."""
    turned: npt.NDArray[np.float64] = tensor.t().contiguous().cpu().double().numpy()
    return turned.T


def on_host(values: Any) -> Any:
    """A tensor as an array; anything else as it is."""
    if isinstance(values, FrequencyWeights):
        return FrequencyWeights(on_host(values.counts))
    return values.detach().cpu().numpy() if is_tensor(values) else values
