"""The other columns of a table as the matrix that scikit-learn's forests take."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, ColumnInfo, Floats
from subgrove._data.table import Table
from subgrove._regress import forest_numbers


def encoded_predictors(table: Table, but: str | tuple[str, ...], given: Collection[str] | None = None) -> Floats:
    """All columns but one, or but several, or those of them that are in `given`, as numbers.

    Numbers stay as they are, nominal columns become an indicator for each level and for missing.
    Missing numbers are NaN. A level that training did not have has no indicator. Without another column there is a
    constant one.
    """
    parts: list[Floats] = []
    left_out = (but,) if isinstance(but, str) else but
    for column, at in zip(table.columns, table.positions(), strict=True):
        if column.name not in left_out and (given is None or column.name in given):
            parts.append(_indicators(column, table.codes[:, at]) if column.is_nominal else _numbers(column, table, at))
    return np.column_stack(parts) if parts else np.zeros((table.n_rows, 1))


def _numbers(column: ColumnInfo, table: Table, at: int) -> Floats:
    values = forest_numbers(column, table.numbers[:, at])
    # An ordered level that training did not have is infinite in the table; a tree can but take it for missing.
    return np.where(np.isinf(values), np.nan, values)[:, None]


def _indicators(column: ColumnInfo, codes: npt.NDArray[np.int32]) -> Floats:
    # By name, for containers differ in the order of levels, and a forest in what it makes of the order of columns.
    by_name = sorted(range(len(column.levels)), key=lambda code: column.levels[code])
    known = [*by_name, *([MISSING] if column.has_missing else [])]
    indicators: Floats = (codes[:, None] == np.array(known, dtype=np.int32)).astype(np.float64)
    return indicators
