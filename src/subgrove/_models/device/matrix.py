"""A table as one matrix on a device, and what its columns are replaced by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.text import quote
from subgrove._data.from_containers import names_and_rows, untyped_columns
from subgrove._data.replace_columns import CyclicShift, Donors
from subgrove._models.device.torch import Tensor, is_tensor, tensor_of, torch_of
from subgrove.exceptions import ColumnError, InputError


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
        if column.kind == "numeric":
            array[:, place] = column.values
        elif column.levels == ("False", "True"):
            array[:, place] = np.where(column.values < 0, np.nan, column.values)
        else:
            raise ColumnError(
                f"Column {name!r} is {column.kind}, and a model on tensors takes numbers. Put its codes (or columns of "
                f"0 and 1) into the table, leave it out by columns=, or pass a function of a table instead."
            )
    return array


class Sender:
    """Sends arrays of the host to a device without waiting for what it works on."""

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
        """Row numbers, in half the bytes if they allow it."""
        small = len(rows) == 0 or rows.max() < 2**31
        return self(rows.astype(np.int32) if small else rows)


class DeviceCyclicShift:
    """The circles of a cyclic_shift on a device: what `CyclicShift` does, for tensors (..., n)."""

    def __init__(self, cyclic_shift: CyclicShift, send: Sender) -> None:
        self.torch = send.torch
        self.host_order = cyclic_shift.order
        self.order = send.rows(cyclic_shift.order)
        n = len(cyclic_shift.order)
        self.place = self.torch.empty(n, dtype=self.order.dtype, device=send.device)
        self.place[self.order.long()] = self.torch.arange(n, dtype=self.order.dtype, device=send.device)

    def taken(self, cyclic_shift: CyclicShift, values: Tensor) -> Tensor:
        """What each place takes, in the order of the circles."""
        return self._joined(values, cyclic_shift.segments, lambda start, end, step: start + step)

    def returned(self, cyclic_shift: CyclicShift, values: Tensor) -> Tensor:
        """`values` of those who took, at the place of the one they took from."""
        return self._joined(values, cyclic_shift.segments, lambda start, end, step: end - step)

    def _joined(self, values: Tensor, turns: Any, cut: Any) -> Tensor:
        pieces = []
        for start, end, step in turns:
            at = cut(start, end, step)
            pieces += [values[..., at:end], values[..., start:at]]
        return self.torch.cat(pieces, dim=-1)


class DeviceMatrix:
    """A table on a device in which columns are written and put back.

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
        self._own: dict[str, Tensor] = {}
        self._pool: dict[str, Tensor] = {}
        self._circled: dict[str, Tensor] = {}
        self.turning: DeviceCyclicShift | None = None

    def start(self) -> None:
        """Forget what was kept for the last feature."""
        self._own, self._pool, self._circled, self.turning = {}, {}, {}, None

    def own(self, name: str) -> Tensor:
        """A column as it is, taken out of its rows."""
        if name not in self._own:
            self._own[name] = self.values[:, self.place[name]].clone()
        return self._own[name]

    def new(self, name: str, column: Any) -> Tensor:
        """What replaces a column: values that donors give, or new ones."""
        if not isinstance(column, Donors):
            return self.send(np.asarray(column, dtype=np.float64), self.values.dtype)
        if column.cyclic_shift is not None:
            return self._turned(name, column.cyclic_shift)
        rows = self.send.rows(column.rows)
        return (self._pooled(name) if column.train else self.own(name)).index_select(0, rows)

    def _turned(self, name: str, cyclic_shift: CyclicShift) -> Tensor:
        turning = self.on_device(cyclic_shift)
        if name not in self._circled:
            self._circled[name] = self.own(name).index_select(0, turning.order)
        return turning.taken(cyclic_shift, self._circled[name]).index_select(0, turning.place)

    def on_device(self, cyclic_shift: CyclicShift) -> DeviceCyclicShift:
        """The circles of a cyclic_shift; those of the last one, if they are the same."""
        if self.turning is None or self.turning.host_order is not cyclic_shift.order:
            self.turning, self._circled = DeviceCyclicShift(cyclic_shift, self.send), {}
        return self.turning

    def _pooled(self, name: str) -> Tensor:
        if name not in self._pool:
            self._pool[name] = self.send(np.asarray(self.train_column(name), dtype=np.float64), self.values.dtype)
        return self._pool[name]
