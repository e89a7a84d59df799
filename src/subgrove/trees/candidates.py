"""The columns a node may split on, laid out so that one matrix product tests them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._table import Codes, Floats, Table

Rows = npt.NDArray[np.intp]

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
    numbers : float array (rows, columns)
        Numeric and ordered columns without missing values, in the user's memory if possible.
    complete : int array
        Place among all columns of each column of `numbers`.
    partial : list of (place, values)
        Numeric and ordered columns with missing values.
    nominal : list of NominalColumn
    n_columns : int
    scale, shift : float array or None
        What `numbers` are multiplied by (powers of two) and what is then taken off before sums are formed; None
        where no column is so large or small that squares leave the range of floats, or lies far from 0.
    """

    numbers: Floats
    complete: Rows
    partial: list[tuple[int, Floats]]
    nominal: list[NominalColumn]
    n_columns: int
    scale: Floats | None
    shift: Floats | None

    @classmethod
    def of(cls, table: Table) -> Candidates:
        """Lay out the columns of a table."""
        complete, partial, nominal, places = [], [], [], []
        for index, (column, at) in enumerate(zip(table.columns, table.positions(), strict=True)):
            if column.is_nominal:
                codes = _missing_last(table.codes[:, at], len(column.levels))
                nominal.append(NominalColumn(index, codes, len(column.levels) + column.has_missing))
            elif column.has_missing:
                partial.append((index, np.ascontiguousarray(table.numbers[:, at])))
            else:
                complete.append(index)
                places.append(at)
        numbers = table.numbers
        if len(places) < numbers.shape[1]:
            numbers = numbers[:, places]
        scale, shift = _scale_and_shift(numbers)
        where = np.array(complete, dtype=np.intp)
        return cls(numbers, where, partial, nominal, len(table.columns), scale, shift)

    def number_chunks(self, block: Block) -> Iterator[tuple[slice, Floats]]:
        """Numbers of a block's rows, (nodes, rows, columns), piece by piece."""
        nodes, m = block.rows.shape
        step = m if m <= 2 * CHUNK else CHUNK
        by_column = self.numbers.flags.f_contiguous and not self.numbers.flags.c_contiguous
        for start in range(0, m, step):
            part = slice(start, min(start + step, m))
            if block.whole:
                numbers = self.numbers[None, part].copy(order="K")
            elif by_column:
                flat = self.numbers.T.take(block.rows[:, part].ravel(), axis=1)
                numbers = flat.reshape(flat.shape[0], nodes, -1).transpose(1, 2, 0)
            else:
                flat = self.numbers.take(block.rows[:, part].ravel(), axis=0)
                numbers = flat.reshape(nodes, -1, flat.shape[1])
            if self.scale is not None:
                numbers *= self.scale
            if self.shift is not None:
                numbers -= self.shift
            yield part, numbers

    def scaled_values(self, column: int, rows: Rows) -> Floats:
        """Some values of a column of `numbers`, on the scale of its sums."""
        values: Floats = self.numbers[rows, column]
        return values if self.scale is None else values * float(self.scale[column])

    def numeric_values(self, index: int) -> Floats:
        """All values of a numeric or ordered column."""
        for place, values in self.partial:
            if place == index:
                return values
        return self.numbers[:, int(np.searchsorted(self.complete, index))]


def power_of_two(values: Floats) -> float:
    """A factor that brings the largest of some values near 1 without changing any digit."""
    peak = max(float(np.fmax.reduce(values, initial=0.0)), -float(np.fmin.reduce(values, initial=0.0)))
    return float(np.ldexp(1.0, -min(max(int(np.frexp(peak)[1]), -1000), 1000))) if peak > 0 else 1.0


def _scale_and_shift(numbers: Floats) -> tuple[Floats | None, Floats | None]:
    """Factors for columns whose squares would leave the range of floats, and middles of columns far from 0."""
    if not numbers.size:
        return None, None
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    peak = np.maximum(high, -low)
    scale = None
    extreme = (peak > 1e100) | ((peak < 1e-100) & (peak > 0))
    if extreme.any():
        scale = np.array([power_of_two(numbers[:, at]) if extreme[at] else 1.0 for at in range(numbers.shape[1])])
        low, high = low * scale, high * scale
    middle = (low + high) / 2
    far = np.abs(middle) > 30 * (high - low)
    return scale, np.where(far, middle, 0.0) if far.any() else None


def _missing_last(codes: Codes, n_levels: int) -> npt.NDArray[np.intp]:
    """Codes with missing values as one more level."""
    return np.where(codes < 0, n_levels, codes).astype(np.intp)
