"""What `fit` was given, checked and typed: the rows a tree grows on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._table import ColumnInfo, Floats, Kind, Series, Table, read_series, read_table, read_weights
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
    for name, other in (("x", x), ("weights", weights)):
        _refuse_another_index(X, other, name)
    _refuse_x_in_table(table, series)
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


def _refuse_another_index(X: Any, other: Any, name: str) -> None:
    """Rows belong together by their places; a pandas index that puts them in another order must not be passed over."""
    one: Any = getattr(X, "index", None)
    two: Any = getattr(other, "index", None)
    if not hasattr(one, "equals") or not hasattr(two, "equals") or one.equals(two):
        return
    if one.is_unique and two.is_unique and len(one.intersection(two)) == len(one):
        raise InputError(
            f"{name} has the index labels of X in another order, so their rows do not seem to belong together. Align "
            f"them, as in {name}.loc[X.index], or pass {name}.to_numpy() if they belong together by their places."
        )


def _refuse_x_in_table(table: Table, x: Series) -> None:
    if x.info.name not in table.names:
        return
    place = table.names.index(x.info.name)
    column, at = table.columns[place], table.positions()[place]
    values = table.codes[:, at] if column.is_nominal else table.numbers[:, at]
    if column.kind == x.info.kind and np.array_equal(values, x.values, equal_nan=not column.is_nominal):
        raise InputError(
            f"X has a column {x.info.name!r}, which is x itself. A feature cannot explain itself: leave it out of X."
        )
