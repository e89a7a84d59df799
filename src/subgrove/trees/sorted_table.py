"""What all trees on the columns of one table need of it, computed once: ranges, codes, sorted orders.

Requirements this design meets:

- the trees of p features on the same p columns share one table, in which each leaves its own column out: nothing is
  copied for a feature;
- a column is sorted at most once, when the first tree asks for it; the rows of a large node keep that order;
- what is shared changes no digit: equal values stand in the order of their rows, so there is one sorted order of a
  column, and of its rows in a node, whoever computes it;
- memory is bounded: orders take half of the numbers' room, and are not kept where that would be more than `MOST_KEPT`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Rows
from subgrove._data.table import Codes, Floats, Table

MOST_KEPT = 1 << 28  # bytes of sorted orders that are kept
LEAST_SHARE = 8  # a node with this fraction of all rows takes its order from that of the column


@dataclass(frozen=True, eq=False)
class SortedTable:
    """A table and what was computed of it so far.

    Attributes
    ----------
    table : Table
        Columns that trees may split on.
    orders : int array (number of columns of numbers, n_rows) or None
        Rows in ascending order of each column; None where they are not kept.
    known : bool array
        Which lines of `orders` are filled.
    """

    table: Table
    orders: npt.NDArray[np.int32] | None
    known: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, table: Table, *, shared: bool) -> SortedTable:
        """Nothing is computed yet. Orders are kept where several trees may ask for them."""
        n_columns = table.numbers.shape[1]
        keeps = shared and table.n_rows < 2**31 and 4 * n_columns * table.n_rows <= MOST_KEPT
        orders = np.empty((n_columns, table.n_rows), dtype=np.int32) if keeps else None
        return cls(table, orders, np.zeros(n_columns, dtype=np.bool_))

    def filled(self, tree: str) -> SortedTable:
        """Itself, with what such trees sort computed: other processes then have no need to."""
        if tree == "cart":
            _ = self.sorted_numbers
        elif self.orders is not None:
            for at in range(len(self.orders)):
                self.order(at)
        return self

    def order(self, at: int) -> npt.NDArray[Any]:
        """Rows in ascending order of a column of numbers, missing values last."""
        if self.orders is None:
            return ascending(self.table.numbers[:, at])
        if not self.known[at]:
            self.orders[at] = ascending(self.table.numbers[:, at])
            self.known[at] = True
        known: npt.NDArray[np.int32] = self.orders[at]
        return known

    def order_within(self, at: int, rows: Rows) -> npt.NDArray[Any] | None:
        """Places among `rows`, ascending by a column; None where sorting these rows is quicker."""
        n_rows = self.table.n_rows
        if self.orders is None or len(rows) * LEAST_SHARE < n_rows:
            return None
        order = self.order(at)
        if len(rows) == n_rows:
            return order
        place = np.full(n_rows, -1, dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        places: npt.NDArray[np.int32] = place[order]
        return places[places >= 0]

    @cached_property
    def sorted_numbers(self) -> tuple[Rows, Floats]:
        """Rows in ascending order of each column of numbers, and the numbers in that order: (columns, n_rows) each."""
        columns = np.ascontiguousarray(self.table.numbers.T)
        order = np.empty(columns.shape, dtype=np.intp)
        for line, numbers in zip(order, columns, strict=True):
            line[:] = ascending(numbers)
        return order, np.take_along_axis(columns, order, axis=1)

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """Least and largest number of each column of numbers; NaN where values are missing."""
        numbers = self.table.numbers
        return numbers.min(axis=0), numbers.max(axis=0)

    @cached_property
    def codes(self) -> dict[int, Rows]:
        """Codes of each nominal column by where it lies, with missing values as one more level."""
        return {
            at: _missing_last(self.table.codes[:, at], len(column.levels))
            for column, at in zip(self.table.columns, self.table.positions(), strict=True)
            if column.is_nominal
        }


def ascending(values: Floats) -> Rows:
    """Places of the values in ascending order along the last axis; equal ones in the order of their places.

    Among infinite ones, which pad short nodes, any order will do.
    """
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    ties = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] < np.inf)
    return np.argsort(values, axis=-1, kind="stable") if ties.any() else order


def _missing_last(codes: Codes, n_levels: int) -> Rows:
    return np.where(codes < 0, n_levels, codes).astype(np.intp)
