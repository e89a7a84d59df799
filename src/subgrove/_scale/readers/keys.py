"""Keys of rows: a whole number for each, from which all that is random about the row is drawn.

By default it is the row's number among all rows; with `row_key` a hash of the value in that column, so that the order
of rows does not matter either. Keys are mixed (the finaliser of splitmix64, a bijection on 64 bits), so that neighbours
have nothing in common, and rows with different numbers never share a key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.random import Keys, hash64, mix64
from subgrove._scale.readers.data import Chunk
from subgrove.exceptions import ColumnError

_STEP = 0x9E3779B97F4A7C15  # of splitmix64, from one number to the next


def row_keys(chunk: Chunk, table: Any, row_key: str | None = None) -> Keys:
    """A key for each row of a chunk.

    Parameters
    ----------
    chunk : Chunk
        The chunk; without `row_key` it is all that is needed.
    table : table
        The rows of the chunk, with the column `row_key`.
    row_key : str, optional
        A column whose values differ from row to row: numbers, strings, dates.
    """
    if row_key is None:
        return numbered_keys(chunk.first_row, chunk.n_rows)
    return hash_column(table[row_key], row_key)


def numbered_keys(first_row: int, n_rows: int) -> Keys:
    """Keys of rows by their numbers."""
    return mix64(np.arange(first_row, first_row + n_rows, dtype=np.uint64), _STEP)


def salt_keys(keys: Keys, seed: int, purpose: str) -> Keys:
    """Whole numbers as good as random, from keys, a seed and what they are for."""
    return mix64(keys ^ np.uint64(hash64(f"{seed}/{purpose}")), _STEP)


def hash_column(column: Any, name: str) -> Keys:
    """Keys from values: equal values, equal keys, whatever the container and the width of numbers."""
    values = _plain(column)
    _reject_missing(values, name)
    if values.dtype.kind in "Mm":
        values = values.astype("M8[us]" if values.dtype.kind == "M" else "m8[us]").view(np.int64)
    if values.dtype.kind in "biu":
        return mix64(values.astype(np.uint64), _STEP)  # negative numbers wrap around, each to its own
    if values.dtype.kind == "f":
        return mix64((values.astype(np.float64) + 0.0).view(np.uint64), _STEP)  # -0.0 and 0.0 are equal
    from pandas.util import hash_array

    return mix64(hash_array(values.astype(object), categorize=False), _STEP)


def _plain(column: Any) -> npt.NDArray[Any]:
    """Values as numpy has them; strings as objects."""
    import pandas as pd

    series = column if isinstance(column, pd.Series) else pd.Series(_as_pandas(column))
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    if not isinstance(series.dtype, np.dtype) and not series.hasnans and series.dtype.kind in "biuf":
        return np.asarray(series.to_numpy(getattr(series.dtype, "numpy_dtype", None)))
    return np.asarray(series.to_numpy())


def _as_pandas(column: Any) -> Any:
    return column.to_pandas() if hasattr(column, "to_pandas") else np.asarray(column)


def _reject_missing(values: npt.NDArray[Any], name: str) -> None:
    import pandas as pd

    if pd.isna(values).any():
        raise ColumnError(
            f"row_key names {name!r}, which has missing values. A key tells rows apart: name a column that has a value "
            f"in each row, or leave row_key out (rows are told apart by their number then)."
        )
