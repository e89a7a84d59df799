"""The table on a device as samplers read it: the same rows on the host, in float64, with contiguous columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._models.device.matrix import reject_other_tensors
from subgrove._models.device.torch import is_tensor, tensor_of, torch_of
from subgrove.exceptions import InputError


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
    torch = torch_of()
    turned: npt.NDArray[np.float64] = tensor.t().contiguous().cpu().to(torch.float64).numpy()
    return turned.T


def on_host(values: Any) -> Any:
    """A tensor as an array; anything else as it is."""
    return values.detach().cpu().numpy() if is_tensor(values) else values
