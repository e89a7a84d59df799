"""Training rows of a tree. Candidate columns are prepared once for all trees: ranges, codes, sorted orders.

Requirements this design meets:

- the trees of p features on the same p columns share one table, from which each tree leaves out its own column without
  a copy;
- a column is sorted at most once, when the first tree needs it; the rows of a large node inherit that order;
- sharing does not change a digit: ties keep the order of their rows, so each column, and its rows in a node, have a
  unique sorted order;
- memory is bounded: orders take half the memory of the numbers, and are not stored if they need more than
  `MAX_ORDER_BYTES`;
- columns are laid out such that one matrix product tests them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import TOGETHER
from subgrove._data.table import ColumnInfo, Table, TypedColumn, stack_columns

MAX_ORDER_BYTES = 1 << 28  # memory for stored sorted orders
MIN_FRACTION = 8  # a node with at least 1 / 8 of all rows derives its order from that of the column


@dataclass(frozen=True, eq=False)
class SortedTable:
    """A table with cached ranges, codes and sorted orders of its columns.

    Attributes
    ----------
    table : Table
        Columns that trees may split on.
    orders : dict or None
        Position of a numeric column -> rows in its ascending order, as far as computed; None if orders are not stored.
    """

    table: Table
    orders: dict[int, npt.NDArray[np.int32]] | None

    @classmethod
    def of(cls, table: Table, *, shared: bool) -> SortedTable:
        """Return the table without computing anything yet; orders are stored if several trees share it."""
        n_columns = table.numbers.shape[1]
        is_stored = shared and table.n_rows < 2**31 and 4 * n_columns * table.n_rows <= MAX_ORDER_BYTES
        return cls(table, {} if is_stored else None)

    def filled(self) -> SortedTable:
        """Compute all stored orders, so that other processes need not; return self."""
        if self.orders is not None:
            for at in range(self.table.numbers.shape[1]):
                self.order(at)
        return self

    def order(self, at: int) -> npt.NDArray[Any]:
        """Return the rows in ascending order of a numeric column, missing values last."""
        if self.orders is None:
            return ascending(self.table.numbers[:, at])
        if at not in self.orders:
            self.orders[at] = ascending(self.table.numbers[:, at]).astype(np.int32)
        return self.orders[at]

    def order_within(self, at: int, rows: Rows) -> npt.NDArray[Any] | None:
        """Return positions in `rows`, ascending by a column; None if sorting these rows is faster."""
        n_rows = self.table.n_rows
        if self.orders is None or len(rows) * MIN_FRACTION < n_rows:
            return None
        order = self.order(at)
        if len(rows) == n_rows:
            return order
        place = np.full(n_rows, -1, dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        places: npt.NDArray[np.int32] = place[order]
        return places[places >= 0]

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """Minimum and maximum of each numeric column; NaN if it has missing values."""
        numbers = self.table.numbers
        return numbers.min(axis=0), numbers.max(axis=0)

    @cached_property
    def codes(self) -> dict[int, Rows]:
        """Codes of each nominal column by its position, with missing values as one more level."""
        return {
            at: np.where(self.table.codes[:, at] < 0, len(column.levels), self.table.codes[:, at]).astype(np.intp)
            for column, at in zip(self.table.columns, self.table.positions(), strict=True)
            if column.is_nominal
        }


def ascending(values: Floats) -> Rows:
    """Return positions of the values in ascending order along the last axis; ties keep their order.

    Infinite values, which pad short nodes, may be in any order.
    """
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    ties = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] < np.inf)
    return np.argsort(values, axis=-1, kind="stable") if ties.any() else order


@dataclass(frozen=True, eq=False)
class Training:
    """Rows to grow a tree on: those with a value of the target and a positive weight.

    Attributes
    ----------
    table : Table
        Candidate columns.
    members : tuple of TypedColumn
        The target, or each of several features that share a tree; without missing values.
    weights : float array or None
        Sample weights; None if all are 1.
    columns : SortedTable or None
        Sorted orders and ranges of the table, possibly with more columns; None if they are not shared.
    """

    table: Table
    members: tuple[TypedColumn, ...]
    weights: Floats | None
    columns: SortedTable | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def target(self) -> ColumnInfo:
        """Name, kind and levels of the target; several features have a joint name, no levels and no order."""
        if len(self.members) == 1:
            return self.members[0].info
        return ColumnInfo(TOGETHER.join(member.info.name for member in self.members), "nominal")

    @property
    def values(self) -> npt.NDArray[Any]:
        """Numbers of the target, or codes if it is nominal."""
        return self.members[0].values

    @property
    def order(self) -> npt.NDArray[Any]:
        """Rows in ascending order of the target; the shared order if the target is a column of the shared table."""
        shared = self.columns
        if shared is None or shared.orders is None or self.target.name not in shared.table.names:
            return ascending(self.values)
        return shared.order(shared.table.positions()[shared.table.names.index(self.target.name)])

    def rows(self, rows: Rows) -> Training:
        """Return some of the rows, without shared orders."""
        members = tuple(TypedColumn(member.info, member.values[rows]) for member in self.members)
        return Training(self.table.rows(rows), members, None if self.weights is None else self.weights[rows])

    @property
    def stop(self) -> str | None:
        """Reason why no tree can grow: "few rows", "constant" or "no columns"; None if one can."""
        if self.n_rows < 2:
            return "few rows"
        if not any(varies(member.values) for member in self.members):
            return "constant"
        return None if self.table.columns else "no columns"


def training_rows(
    table: Table, members: tuple[TypedColumn, ...], weights: Floats | None, columns: SortedTable | None = None
) -> Training:
    """Select the rows with a value of every member and a positive weight; `columns` is used if these are all rows."""
    used = ~np.logical_or.reduce([member.missing for member in members])
    if weights is not None:
        used &= weights > 0
    training = Training(table, members, weights, columns)
    if not used.all():
        training = training.rows(np.flatnonzero(used))
    if training.weights is not None and (training.weights == 1).all():
        training = replace(training, weights=None)
    return training


def select_columns(table: Table, names: Sequence[str]) -> Table:
    """Return some columns in the order of the table: a copy, or the table itself if it has no others.

    Columns are contiguous in memory whatever the layout of the table, so that sums over them are equal to the last
    digit.
    """
    if len(names) == len(table.columns) and all(values.flags.f_contiguous for values in (table.numbers, table.codes)):
        return table
    selected = [(column.info, column.values) for column in table if column.info.name in names]
    return stack_columns(selected, table.n_rows)


def varies(values: npt.NDArray[Any]) -> bool:
    """Return whether there are two distinct values."""
    return bool((values != values[:1]).any())


def has_three_values(values: npt.NDArray[Any]) -> bool:
    """Return whether there are more than two distinct values."""
    return varies(values[values != values[:1]])


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of several nodes of similar size, padded to the largest.

    Attributes
    ----------
    rows : int array (nodes, m)
        Row numbers; a shorter node is padded with its own first row, at weight 0.
    weights, roots : float array (nodes, m) or None
        Weights and their square roots; None if all weights are 1 and there is no padding.
    n : float array (nodes,)
        Sum of weights.
    sizes : int array (nodes,)
        Number of rows before padding.
    whole : bool
        Whether this is one node with all rows in order, so that no rows need to be gathered.
    """

    rows: Rows
    weights: Floats | None
    roots: Floats | None
    n: Floats
    sizes: Rows
    whole: bool = False

    @classmethod
    def of(cls, nodes: list[Rows], weights: Floats | None, n_rows: int, width: int | None = None) -> Block:
        """Pad the rows of nodes to a block, as wide as the largest or of a given width."""
        sizes = np.array([len(rows) for rows in nodes], dtype=np.intp)
        m = int(sizes.max()) if width is None else width
        rows = np.empty((len(nodes), m), dtype=np.intp)
        for padded, own in zip(rows, nodes, strict=True):
            padded[: len(own)] = own
            padded[len(own) :] = own[0]
        # By its rows, not by the width, which may be padded to the number of all rows.
        whole = len(nodes) == 1 and len(nodes[0]) == m == n_rows
        full = width is None and bool((sizes == m).all())
        inside = None if full else (np.arange(m) < sizes[:, None]).astype(np.float64)
        if weights is None:
            # Only padding: 0 and 1 are their own square roots.
            return cls(rows, inside, inside, sizes.astype(np.float64), sizes, whole)
        padded_weights = weights[rows] if inside is None else weights[rows] * inside
        return cls(rows, padded_weights, np.sqrt(padded_weights), padded_weights.sum(axis=1), sizes, whole)

    def gather(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return the values of a column in the rows: (nodes, m)."""
        return values[None, :] if self.whole else values[self.rows]


@dataclass(frozen=True, eq=False)
class NominalColumn:
    """Codes of a nominal column; missing values are the last level."""

    index: int
    codes: npt.NDArray[np.intp]
    n_levels: int


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate columns of a table, by the type of their test.

    Attributes
    ----------
    shared : SortedTable
        Table with these columns and possibly others.
    complete : int array
        Positions of the numeric and ordered columns without missing values.
    places : int array
        Positions of these columns in the numbers of the table.
    partial : dict from position to values
        Numeric and ordered columns with missing values.
    nominal : list of NominalColumn
    n_columns : int
    scale, shift : float array or None
        Factors of complete columns (powers of two) and values subtracted before sums are formed; both None if no column
        has squares outside the range of floats, or values far from 0.
    """

    shared: SortedTable
    complete: Rows
    places: npt.NDArray[np.int64]
    partial: dict[int, Floats]
    nominal: list[NominalColumn]
    n_columns: int
    scale: Floats | None
    shift: Floats | None

    @classmethod
    def of(cls, table: Table, columns: SortedTable | None = None) -> Candidates:
        """Classify the columns of a table; `columns` is a sorted table with these columns and possibly others."""
        shared = SortedTable.of(table, shared=False) if columns is None else columns
        complete, nominal, places = [], [], []
        partial: dict[int, Floats] = {}
        for index, (column, at) in enumerate(zip(table.columns, table.positions(), strict=True)):
            if column.is_nominal:
                nominal.append(NominalColumn(index, shared.codes[at], len(column.levels) + column.has_missing))
            elif column.has_missing:
                partial[index] = np.ascontiguousarray(table.numbers[:, at])
            else:
                complete.append(index)
                places.append(at)
        in_numbers = np.array(places, dtype=np.int64)
        scale, shift = _scale_and_shift(shared, in_numbers)
        in_table = np.array(complete, dtype=np.intp)
        return cls(shared, in_table, in_numbers, partial, nominal, len(table.columns), scale, shift)

    def scaled_values(self, column: int, rows: Rows) -> Floats:
        """Return some values of a complete column, on the scale of its sums."""
        values: Floats = self.shared.table.numbers[rows, self.places[column]]
        return values if self.scale is None else values * float(self.scale[column])

    def numeric_values(self, index: int) -> Floats:
        """Return all values of a numeric or ordered column."""
        values = self.partial.get(index)
        return self.shared.table.numbers[:, self._place(index)] if values is None else values

    def order_of_nodes(self, columns: list[int], block: Block, nodes: list[int], values: Floats) -> Rows:
        """Return positions in ascending order of a column for each node; its `values` end in infinite padding."""
        sizes, order = block.sizes[nodes], np.empty(values.shape, dtype=np.int64)
        known = [
            self.shared.order_within(self._place(column), block.rows[node, :size])
            for column, node, size in zip(columns, nodes, sizes, strict=True)
        ]
        unknown = [k for k, places in enumerate(known) if places is None]
        for k, places in enumerate(known):
            if places is not None:
                order[k, : sizes[k]] = places
                order[k, sizes[k] :] = np.arange(sizes[k], values.shape[1])
        if unknown:
            order[unknown] = ascending(values[unknown])
        return order

    def _place(self, index: int) -> int:
        return int(self.places[np.searchsorted(self.complete, index)])


def power_of_two(values: Floats) -> float:
    """Return a power of two that brings the largest value near 1 without rounding."""
    peak = max(float(np.fmax.reduce(values, initial=0.0)), -float(np.fmin.reduce(values, initial=0.0)))
    return float(np.ldexp(1.0, -min(max(int(np.frexp(peak)[1]), -1000), 1000))) if peak > 0 else 1.0


def _scale_and_shift(shared: SortedTable, places: npt.NDArray[np.int64]) -> tuple[Floats | None, Floats | None]:
    """Return factors for columns whose squares would overflow or underflow, and midpoints of columns far from 0."""
    if not places.size:
        return None, None  # before ranges are computed
    low, high = (ends[places] for ends in shared.ranges)
    peak, scale = np.maximum(high, -low), np.ones(len(places))
    for at in np.flatnonzero((peak > 1e100) | ((peak < 1e-100) & (peak > 0))):
        scale[at] = power_of_two(shared.table.numbers[:, places[at]])
    low, high = low * scale, high * scale
    middle = (low + high) / 2
    shift = np.where(np.abs(middle) > 30 * (high - low), middle, 0.0)
    return (scale, shift) if (scale != 1).any() or shift.any() else (None, None)
