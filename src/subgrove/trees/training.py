"""What `fit` was given, checked and typed: the rows a tree grows on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.text import TOGETHER
from subgrove._core.validate import reject_another_index
from subgrove._data.table import ColumnInfo, Floats, Kind, Table, TypedColumn, read_series, read_table, read_weights
from subgrove.exceptions import InputError
from subgrove.trees.sorted_table import SortedTable, ascending


@dataclass(frozen=True, eq=False)
class Training:
    """Rows to grow on: those with a value of x and a weight above 0.

    Attributes
    ----------
    table : Table
        Candidate columns.
    members : tuple of Series
        x, or each of several features that share a tree; no missing values.
    weights : float array or None
        None where every row counts once.
    prepared : Prepared or None
        What is known of the rows of the table, and perhaps of more columns; None where nothing is.
    """

    table: Table
    members: tuple[TypedColumn, ...]
    weights: Floats | None
    prepared: SortedTable | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def target(self) -> ColumnInfo:
        """What x is; several features have a name together, and no levels and no order."""
        if len(self.members) == 1:
            return self.members[0].info
        return ColumnInfo(TOGETHER.join(member.info.name for member in self.members), "nominal")

    @property
    def values(self) -> npt.NDArray[Any]:
        """Numbers of x, or codes if it is nominal."""
        return self.members[0].values

    @property
    def order(self) -> npt.NDArray[Any]:
        """Rows in ascending order of x; taken from what is known of the table, if x is a column of it."""
        shared = self.prepared
        if shared is None or shared.orders is None or self.target.name not in shared.table.names:
            return ascending(self.values)
        return shared.order(shared.table.positions()[shared.table.names.index(self.target.name)])

    @property
    def stop(self) -> str | None:
        """Why no tree can grow, if so: "few rows", "constant" or "no columns"."""
        if self.n_rows < 2:
            return "few rows"
        if not any(varies(member.values) for member in self.members):
            return "constant"
        return None if self.table.columns else "no columns"


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
    reject_another_index(X, x=x, sample_weight=weights)
    return validate_training(table, (series,), read_weights(weights, table.n_rows))


def validate_training(table: Table, members: tuple[TypedColumn, ...], weights: Floats | None) -> Training:
    """Rows to grow on, refused where no tree can grow."""
    for member in members:
        _reject_x_in_table(table, member)
    training = training_rows(table, members, weights)
    name = "x" if len(members) == 1 else "every x"
    if training.stop == "few rows":
        raise InputError(
            f"{training.n_rows} row has a value of {name} and a weight above 0; a tree needs at least 2 rows. "
            f"Pass more rows."
        )
    if training.stop == "constant":
        member = training.members[0]
        value = member.values[0]
        shown = f"every row has {member.info.levels[int(value)] if member.info.is_nominal else value}"
        raise InputError(
            f"{name} ({training.target.name!r}) is constant{f': {shown}' if len(members) == 1 else ''}. "
            f"There is no distribution to find subgroups for; leave this feature out."
        )
    return training


def training_rows(
    table: Table, members: tuple[TypedColumn, ...], weights: Floats | None, prepared: SortedTable | None = None
) -> Training:
    """The rows with a value of every member and a weight above 0; what is known of all rows helps if these are all."""
    used = ~np.logical_or.reduce([member.missing for member in members])
    if weights is not None:
        used &= weights > 0
    if not used.all():
        rows = np.flatnonzero(used)
        table, prepared = table.rows(rows), None
        members = tuple(TypedColumn(member.info, member.values[rows]) for member in members)
        weights = None if weights is None else weights[rows]
    if weights is not None and (weights == 1).all():
        weights = None
    return Training(table, members, weights, prepared)


def select_columns(table: Table, names: Sequence[str]) -> Table:
    """Some columns, in the order of the table: a copy, or the table itself if it has these alone.

    Each column lies in one piece whatever the order of the table is, so that sums over it are the same to the last
    digit.
    """
    if len(names) == len(table.columns) and all(_by_column(values) for values in (table.numbers, table.codes)):
        return table
    kept = [(column, at) for column, at in zip(table.columns, table.positions(), strict=True) if column.name in names]
    numbers = _copied(table.numbers, [at for column, at in kept if not column.is_nominal])
    codes = _copied(table.codes, [at for column, at in kept if column.is_nominal])
    return Table(tuple(column for column, _ in kept), numbers, codes)


def varies(values: npt.NDArray[Any]) -> bool:
    """Whether there are two distinct values."""
    return bool((values != values[:1]).any())


def has_three_values(values: npt.NDArray[Any]) -> bool:
    """Whether there are more than two distinct values."""
    return varies(values[values != values[:1]])


def _by_column(values: npt.NDArray[Any]) -> bool:
    return values.flags.f_contiguous


def _copied(values: npt.NDArray[Any], places: list[int]) -> npt.NDArray[Any]:
    copy = np.empty((len(places), len(values)), dtype=values.dtype)
    for column, at in zip(copy, places, strict=True):
        column[:] = values[:, at]
    return copy.T


def _reject_x_in_table(table: Table, x: TypedColumn) -> None:
    if x.info.name not in table.names:
        return
    column = table.series(x.info.name)
    nominal = column.info.is_nominal
    if column.info.kind == x.info.kind and np.array_equal(column.values, x.values, equal_nan=not nominal):
        raise InputError(
            f"X has a column {x.info.name!r}, which is x itself. A feature cannot explain itself: leave it out of X."
        )
