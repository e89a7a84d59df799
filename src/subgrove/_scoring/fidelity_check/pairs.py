"""Points, and blocks of pairs of points whose distances are counted, collected and summed without storing all.

Requirements this design meets:

- memory does not grow with the number of pairs: distances are computed row by row, and again if needed again;
- if only one column changes between two calls, the squared distances in all other columns can be cached (`base`);
- distances are sums of squared differences, not differences of large products: equal rows have distance 0 exactly;
- the loops are in C (`mmd_pairs.c`), with a NumPy fallback.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._data.table import Table
from subgrove._native import loader


@dataclass(frozen=True, eq=False)
class Points:
    """Rows as points with distances.

    Attributes
    ----------
    numbers : float array (rows, columns)
        Squared distances are the squares of differences.
    labels : float array (rows, columns)
        Codes of labels: different ones have squared distance 1, like one-hot columns scaled by 1 / sqrt(2).
    """

    numbers: Floats
    labels: Floats

    @classmethod
    def of(cls, rows: Floats | Points) -> Points:
        """Return rows of numbers as points; points unchanged."""
        return rows if isinstance(rows, Points) else cls(rows, rows[:, :0])

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def none(self) -> Points:
        """The same rows without columns."""
        return Points(self.numbers[:, :0], self.labels[:, :0])

    @property
    def matrix(self) -> Floats:
        """All columns, labels last."""
        return np.hstack([self.numbers, self.labels])

    def beside(self, other: Points) -> Points:
        """Return the same rows with further columns."""
        return Points(np.hstack([self.numbers, other.numbers]), np.hstack([self.labels, other.labels]))

    def rows(self, rows: Any) -> Points:
        """Select rows."""
        return Points(self.numbers[rows], self.labels[rows])


@dataclass(frozen=True, eq=False)
class PointEncoding:
    """Encodes rows as points, with columns standardized by the training rows.

    Numbers, ranks of ordered levels and dates have mean 0 and standard deviation 1 in the training rows; constant
    columns are only centred. Two different labels have distance 1, like two numbers that differ by one standard
    deviation. A missing label is a label of its own; a missing number is set to the mean and flagged in a further
    column by 1. Ordered levels unseen in training count as missing; unseen labels count as one label.

    Attributes
    ----------
    columns : tuple of ColumnInfo
        Columns of the training rows.
    centre, spread : float array
        Mean and standard deviation of numeric columns, in the order of `Table.numbers`.
    """

    columns: tuple[ColumnInfo, ...]
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, train: Table) -> PointEncoding:
        """Compute means and standard deviations of the training rows."""
        numbers = _known(train.numbers)
        count = np.maximum((~np.isnan(numbers)).sum(axis=0), 1)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is reported with the distances
            centre = np.nansum(numbers, axis=0) / count
            spread = np.sqrt(np.nansum((numbers - centre) ** 2, axis=0) / np.maximum(count - 1, 1))
        return cls(train.columns, centre, np.where((spread > 0) & np.isfinite(spread), spread, 1.0))

    def points(self, table: Table, names: Collection[str], with_missing: Collection[str]) -> Points:
        """Encode some columns of rows; numeric columns in `with_missing` get an indicator of missing values."""
        places = zip(self.columns, table.positions(), strict=True)
        selected = [(column, at) for column, at in places if column.name in names]
        numeric = [at for column, at in selected if not column.is_nominal]
        nominal = [at for column, at in selected if column.is_nominal]
        flagged = [column.name in with_missing for column, _ in selected if not column.is_nominal]
        numbers = _known(table.numbers[:, numeric])
        missing = np.isnan(numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(missing, 0.0, (numbers - self.centre[numeric]) / self.spread[numeric])
        labels = table.codes[:, nominal].astype(np.float64)
        return Points(np.hstack([scaled, missing[:, np.array(flagged, dtype=np.bool_)].astype(np.float64)]), labels)


def columns_with_missing(tables: Sequence[Table]) -> frozenset[str]:
    """Return the numeric columns with missing values in any of the tables."""
    incomplete: set[str] = set()
    for table in tables:
        names = [column.name for column in table.columns if not column.is_nominal]
        missing = np.isnan(_known(table.numbers))
        incomplete |= {name for at, name in enumerate(names) if missing[:, at].any()}
    return frozenset(incomplete)


def _known(numbers: Floats) -> Floats:
    return np.where(np.isinf(numbers), np.nan, numbers)


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Pairs of rows of two samples, or within one sample.

    Attributes
    ----------
    left : float array (rows, columns)
        Contiguous. It may have no columns if there is a base.
    right : float array (columns, others)
        Contiguous; columns are the first axis, so that a row is compared with many others in one loop.
    labels : int
        Number of columns of labels, which are the last ones.
    triangle : bool
        Whether row i is paired with rows after i only; both samples then have the same size.
    base : float array or None
        Squared distance of each pair in columns that are not in `left` and `right`, row by row.
    """

    left: Floats
    right: Floats
    labels: int = 0
    triangle: bool = False
    base: Floats | None = None

    @classmethod
    def of(cls, left: Points, right: Points, *, triangle: bool = False, base: Floats | None = None) -> PairBlock:
        """Pair the rows of two samples; with `triangle`, row i of one with the rows after i of the other."""
        columns = np.ascontiguousarray(right.matrix.T)
        return cls(np.ascontiguousarray(left.matrix), columns, left.labels.shape[1], triangle, base)

    @classmethod
    def listed(cls, squared: Floats) -> PairBlock:
        """Return pairs with known squared distances."""
        return cls(np.empty((1, 0)), np.empty((0, len(squared))), base=squared)

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        n, m = len(self.left), self.right.shape[1]
        return n * (n - 1) // 2 if self.triangle else n * m

    def distances(self) -> Floats:
        """Return squared distances of all pairs, row by row."""
        if self.base is None and loader.mmd_pairs is not None:
            out = np.empty(self.n_pairs)
            loader.mmd_pairs.squared_distances(self.left, self.right, *self._sizes, out, self.labels)
            return out
        return np.concatenate([*self._rows(), np.empty(0)])

    def kernel_sum(self, gamma: float) -> float:
        """Return the sum of exp(-gamma * squared distance) over the pairs."""
        if loader.mmd_pairs is not None:
            total: float = loader.mmd_pairs.kernel_sum(
                self.base, self.left, self.right, *self._sizes, gamma, self.labels
            )
            return total
        return float(sum(np.exp(-gamma * row).sum() for row in self._rows()))

    def between(self, low: float, high: float, room: int) -> tuple[int, int, Floats]:
        """Count squared distances below `low`, and from there to `high`; return up to `room` of the latter."""
        if loader.mmd_pairs is not None:
            out = np.empty(room)
            options = (*self._sizes, low, high, room, out, self.labels)
            n_below, n_inside = loader.mmd_pairs.between(self.base, self.left, self.right, *options)
            return n_below, n_inside, out[:n_inside]
        n_below, n_inside, collected, left = 0, 0, [np.empty(0)], room
        for row in self._rows():
            inside = row[(row >= low) & (row <= high)]
            n_below += int((row < low).sum())
            n_inside += len(inside)
            collected.append(inside[:left])
            left -= len(collected[-1])
        return n_below, n_inside, np.concatenate(collected)

    def thinned(self, most: int) -> Floats:
        """Return squared distances of at most `most` equally spaced rows to as many others."""
        n, m = len(self.left), self.right.shape[1]
        rows, others = _spread(n, most), _spread(m, most)
        i, j = np.repeat(rows, len(others)), np.tile(others, len(rows))
        if self.triangle:
            i, j = i[j > i], j[j > i]
        squared: Floats = self._gaps(self.left[i].T, self.right[:, j]).sum(axis=0)
        if self.base is not None:
            # Each row of a triangle is shorter by one than the previous row.
            place = i * (2 * n - i - 1) // 2 + j - i - 1 if self.triangle else i * m + j
            squared += self.base[place]
        return squared

    @property
    def _sizes(self) -> tuple[int, int, int, bool]:
        return len(self.left), self.right.shape[1], self.left.shape[1], self.triangle

    def _rows(self) -> Iterator[Floats]:
        """Yield squared distances of each row to its others."""
        start, n_others = 0, self.right.shape[1]
        for i, own in enumerate(self.left):
            first = i + 1 if self.triangle else 0
            size = n_others - first
            squared = np.zeros(size) if self.base is None else self.base[start : start + size].copy()
            for gaps in self._gaps(own[:, None], self.right[:, first:]):
                squared += gaps
            start += size
            yield squared

    def _gaps(self, own: Floats, theirs: Floats) -> Floats:
        """Return squared distances in each column; columns are the first axis."""
        numbers = len(theirs) - self.labels
        differ = (own[numbers:] != theirs[numbers:]).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # as in C; `heuristic_gamma` raises on overflow
            squared = (own[:numbers] - theirs[:numbers]) ** 2
        return np.concatenate([squared, differ])


def _spread(n: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp)) if n else np.empty(0, dtype=np.intp)
