"""What `fit` was given, checked and typed: the rows a tree grows on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._table import ColumnInfo, Floats, Kind, Table, read_series, read_table, read_weights
from subgrove.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Training:
    """Rows to grow on: those with a value of x and a weight above 0.

    Attributes
    ----------
    table : Table
        Candidate columns.
    target : ColumnInfo
        What x is.
    values : array
        x: numbers, or codes if it is nominal; no missing values.
    weights : float array or None
        None where every row counts once.
    """

    table: Table
    target: ColumnInfo
    values: npt.NDArray[Any]
    weights: Floats | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows


def read_training(
    X: Any,
    x: Any,
    weights: Any = None,
    *,
    kinds: Mapping[str, Kind] | None = None,
    x_kind: Kind | None = None,
) -> Training:
    """Check and type what `fit` was given."""
    table = read_table(X, kinds=kinds)
    series = read_series(x, n_rows=table.n_rows, kind=x_kind)
    counted = read_weights(weights, table.n_rows)
    used = ~series.missing
    if counted is not None:
        used &= counted > 0
    values = series.values
    if not used.all():
        rows = np.flatnonzero(used)
        table = Table(table.columns, table.numbers[rows], table.codes[rows])
        values = values[rows]
        counted = None if counted is None else counted[rows]
    if table.n_rows < 2:
        raise InputError(
            f"{table.n_rows} row has a value of x and a weight above 0; a tree needs at least 2 rows. Pass more rows."
        )
    if (values == values[0]).all():
        shown = series.info.levels[int(values[0])] if series.info.is_nominal else values[0]
        raise InputError(
            f"x ({series.info.name!r}) is constant: every row has {shown}. There is no distribution to find "
            f"subgroups for; leave this feature out."
        )
    if counted is not None and (counted == 1).all():
        counted = None
    return Training(table, series.info, values, counted)
