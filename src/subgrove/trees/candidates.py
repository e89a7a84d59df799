"""The columns a node may split on, laid out so that one matrix product tests them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Rows
from subgrove._data.table import Floats, Table
from subgrove.trees.sorted_table import SortedTable, ascending

CHUNK = 8192  # rows gathered at a time in a large node


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of several nodes of similar size, padded to the largest.

    Attributes
    ----------
    rows : int array (nodes, m)
        Row numbers; a shorter node is filled up with its own first row, at weight 0.
    weights, roots : float array (nodes, m) or None
        Weights and their square roots; None where every row counts once and nothing is padded.
    n : float array (nodes,)
        Sum of weights.
    sizes : int array (nodes,)
        Number of rows before padding.
    whole : bool
        Whether this is one node with all rows in order, so that nothing needs to be gathered.
    """

    rows: Rows
    weights: Floats | None
    roots: Floats | None
    n: Floats
    sizes: Rows
    whole: bool = False

    @classmethod
    def of(cls, nodes: list[Rows], weights: Floats | None, n_rows: int, width: int | None = None) -> Block:
        """Pad the rows of some nodes to a block, as wide as the largest or of a given width."""
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
        counted = weights[rows] if inside is None else weights[rows] * inside
        return cls(rows, counted, np.sqrt(counted), counted.sum(axis=1), sizes, whole)

    def gather(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Values of a column for the rows: (nodes, m)."""
        return values[None, :] if self.whole else values[self.rows]


@dataclass(frozen=True, eq=False)
class NominalColumn:
    """Codes of a nominal column; missing values are the last level."""

    index: int
    codes: npt.NDArray[np.intp]
    n_levels: int


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate columns of a table by how they are tested.

    Attributes
    ----------
    prepared : Prepared
        The columns, perhaps beside others, and what is known of them.
    complete : int array
        Place among all columns of each numeric or ordered column without missing values.
    places : int array
        Where these lie in the numbers of the table.
    partial : list of (place, values)
        Numeric and ordered columns with missing values.
    nominal : list of NominalColumn
    n_columns : int
    scale, shift : float array or None
        What complete columns are multiplied by (powers of two) and what is then taken off before sums are formed;
        None where no column is so large or small that squares leave the range of floats, or lies far from 0.
    """

    prepared: SortedTable
    complete: Rows
    places: npt.NDArray[np.int64]
    partial: list[tuple[int, Floats]]
    nominal: list[NominalColumn]
    n_columns: int
    scale: Floats | None
    shift: Floats | None

    @classmethod
    def of(cls, table: Table, prepared: SortedTable | None = None) -> Candidates:
        """Sort out the columns of a table; `prepared` is what is known of it, or of one with more columns."""
        prepared = SortedTable.of(table, shared=False) if prepared is None else prepared
        complete, partial, nominal, places = [], [], [], []
        for index, (column, at) in enumerate(zip(table.columns, table.positions(), strict=True)):
            if column.is_nominal:
                nominal.append(NominalColumn(index, prepared.codes[at], len(column.levels) + column.has_missing))
            elif column.has_missing:
                partial.append((index, np.ascontiguousarray(table.numbers[:, at])))
            else:
                complete.append(index)
                places.append(at)
        lying = np.array(places, dtype=np.int64)
        scale, shift = _scale_and_shift(prepared, lying)
        where = np.array(complete, dtype=np.intp)
        return cls(prepared, where, lying, partial, nominal, len(table.columns), scale, shift)

    @cached_property
    def numbers(self) -> Floats:
        """The complete columns alone; a copy where others lie between them."""
        numbers = self.prepared.table.numbers
        return numbers if len(self.places) == numbers.shape[1] else numbers.T[self.places].T

    def number_chunks(self, block: Block) -> Iterator[tuple[slice, Floats]]:
        """Numbers of a block's rows, (nodes, rows, complete columns), piece by piece."""
        (nodes, m), all_numbers = block.rows.shape, self.numbers
        step = m if m <= 2 * CHUNK else CHUNK
        by_column = all_numbers.flags.f_contiguous and not all_numbers.flags.c_contiguous
        for start in range(0, m, step):
            part = slice(start, min(start + step, m))
            if block.whole:
                numbers = all_numbers[None, part].copy(order="K")
            elif by_column:
                flat = all_numbers.T.take(block.rows[:, part].ravel(), axis=1)
                numbers = flat.reshape(flat.shape[0], nodes, -1).transpose(1, 2, 0)
            else:
                flat = all_numbers.take(block.rows[:, part].ravel(), axis=0)
                numbers = flat.reshape(nodes, -1, flat.shape[1])
            if self.scale is not None:
                numbers *= self.scale
            if self.shift is not None:
                numbers -= self.shift
            yield part, numbers

    def scaled_values(self, column: int, rows: Rows) -> Floats:
        """Some values of a complete column, on the scale of its sums."""
        values: Floats = self.prepared.table.numbers[rows, self.places[column]]
        return values if self.scale is None else values * float(self.scale[column])

    def numeric_values(self, index: int) -> Floats:
        """All values of a numeric or ordered column."""
        for place, values in self.partial:
            if place == index:
                return values
        return self.prepared.table.numbers[:, self._place(index)]

    def order_of_nodes(self, chosen: list[int], block: Block, nodes: list[int], values: Floats) -> Rows:
        """Places in ascending order of the chosen columns of some nodes, whose `values` end in infinite padding."""
        sizes, order = block.sizes[nodes], np.empty(values.shape, dtype=np.int64)
        known = [
            self.prepared.order_within(self._place(column), block.rows[node, :size])
            for column, node, size in zip(chosen, nodes, sizes, strict=True)
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
    """A factor that brings the largest of some values near 1 without changing any digit."""
    peak = max(float(np.fmax.reduce(values, initial=0.0)), -float(np.fmin.reduce(values, initial=0.0)))
    return float(np.ldexp(1.0, -min(max(int(np.frexp(peak)[1]), -1000), 1000))) if peak > 0 else 1.0


def _scale_and_shift(prepared: SortedTable, places: npt.NDArray[np.int64]) -> tuple[Floats | None, Floats | None]:
    """Factors for columns whose squares would leave the range of floats, and middles of columns far from 0."""
    if not places.size:
        return None, None
    low, high = (ends[places] for ends in prepared.ranges)
    peak = np.maximum(high, -low)
    scale = None
    extreme = (peak > 1e100) | ((peak < 1e-100) & (peak > 0))
    if extreme.any():
        numbers = prepared.table.numbers
        scale = np.array(
            [power_of_two(numbers[:, at]) if far else 1.0 for at, far in zip(places, extreme, strict=True)]
        )
        low, high = low * scale, high * scale
    middle = (low + high) / 2
    far = np.abs(middle) > 30 * (high - low)
    return scale, np.where(far, middle, 0.0) if far.any() else None
