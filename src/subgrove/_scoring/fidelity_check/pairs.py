"""Blocks of pairs of rows: their squared distances, counted, collected and summed up without holding all of them.

Requirements this design meets:

- memory does not grow with the number of pairs: distances are made one row at a time, twice if they are needed twice;
- where only one column changes between two questions, the squared distances in all other columns can be kept (`base`);
- distances are sums of squared differences, not differences of large products: equal rows have distance 0 exactly;
- the loops are compiled where there is a compiler (`mmd_pairs.c`), and are the same in NumPy elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._native import loader


@dataclass(frozen=True, eq=False)
class Points:
    """Rows as points that have distances.

    Attributes
    ----------
    numbers : float array (rows, columns)
        Squared distances are the squares of differences.
    labels : float array (rows, columns)
        Numbers that stand for names: different ones have the squared distance 1, as if each name had an indicator
        column, scaled by 1 / sqrt(2).
    """

    numbers: Floats
    labels: Floats

    @classmethod
    def of(cls, rows: Floats | Points) -> Points:
        """Rows of numbers as points; points as they are."""
        return rows if isinstance(rows, Points) else cls(rows, rows[:, :0])

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def none(self) -> Points:
        """The same rows, without a column."""
        return Points(self.numbers[:, :0], self.labels[:, :0])

    @property
    def matrix(self) -> Floats:
        """All columns, those of labels last."""
        return np.hstack([self.numbers, self.labels])

    def beside(self, other: Points) -> Points:
        """The same rows with more columns."""
        return Points(np.hstack([self.numbers, other.numbers]), np.hstack([self.labels, other.labels]))

    def rows(self, rows: Any) -> Points:
        """Some of the rows."""
        return Points(self.numbers[rows], self.labels[rows])


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Pairs of rows of two samples, or of two rows of one sample.

    Attributes
    ----------
    left : float array (rows, columns)
        Contiguous. There may be no column, if there is a base.
    right : float array (columns, others)
        Contiguous; columns are its first axis, so that a row is compared with many others in one sweep.
    labels : int
        How many of the columns, the last ones, are labels.
    triangle : bool
        Whether row i is paired with the others after i only; there are as many others as rows then.
    base : float array or None
        Squared distance of each pair in columns that `left` and `right` do not have, row after row.
    """

    left: Floats
    right: Floats
    labels: int = 0
    triangle: bool = False
    base: Floats | None = None

    @classmethod
    def of(cls, left: Points, right: Points, *, triangle: bool = False, base: Floats | None = None) -> PairBlock:
        """Pairs of rows of two tables; with `triangle`, of row i of one with the rows after i of the other."""
        columns = np.ascontiguousarray(right.matrix.T)
        return cls(np.ascontiguousarray(left.matrix), columns, left.labels.shape[1], triangle, base)

    @classmethod
    def listed(cls, squared: Floats) -> PairBlock:
        """Pairs whose squared distances are known."""
        return cls(np.empty((1, 0)), np.empty((0, len(squared))), base=squared)

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        n, m = len(self.left), self.right.shape[1]
        return n * (n - 1) // 2 if self.triangle else n * m

    def distances(self) -> Floats:
        """Squared distances of all pairs, row after row."""
        if self.base is None and loader.mmd_pairs is not None:
            out = np.empty(self.n_pairs)
            loader.mmd_pairs.squared_distances(self.left, self.right, *self._sizes, out, self.labels)
            return out
        return np.concatenate([*self._rows(), np.empty(0)])

    def kernel_sum(self, gamma: float) -> float:
        """Sum of exp(-gamma * squared distance) over the pairs."""
        if loader.mmd_pairs is not None:
            total: float = loader.mmd_pairs.kernel_sum(
                self.base, self.left, self.right, *self._sizes, gamma, self.labels
            )
            return total
        return float(sum(np.exp(-gamma * row).sum() for row in self._rows()))

    def between(self, low: float, high: float, room: int) -> tuple[int, int, Floats]:
        """How many squared distances are below `low`, how many from there to `high`, and up to `room` of the latter."""
        if loader.mmd_pairs is not None:
            out = np.empty(room)
            asked = (*self._sizes, low, high, room, out, self.labels)
            below, found = loader.mmd_pairs.between(self.base, self.left, self.right, *asked)
            return below, found, out[:found]
        below, found, kept, left = 0, 0, [np.empty(0)], room
        for row in self._rows():
            inside = row[(row >= low) & (row <= high)]
            below += int((row < low).sum())
            found += len(inside)
            kept.append(inside[:left])
            left -= len(kept[-1])
        return below, found, np.concatenate(kept)

    def thinned(self, most: int) -> Floats:
        """Squared distances of some pairs: of at most `most` rows, evenly spread, with as many others."""
        n, m = len(self.left), self.right.shape[1]
        rows, others = _spread(n, most), _spread(m, most)
        i, j = np.repeat(rows, len(others)), np.tile(others, len(rows))
        if self.triangle:
            i, j = i[j > i], j[j > i]
        squared: Floats = self._gaps(self.left[i].T, self.right[:, j]).sum(axis=0)
        if self.base is not None:
            # Rows of a triangle get shorter by one from each to the next.
            place = i * (2 * n - i - 1) // 2 + j - i - 1 if self.triangle else i * m + j
            squared += self.base[place]
        return squared

    @property
    def _sizes(self) -> tuple[int, int, int, bool]:
        return len(self.left), self.right.shape[1], self.left.shape[1], self.triangle

    def _rows(self) -> Iterator[Floats]:
        """Squared distances of each row to its others."""
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
        """Squared distances in each column; columns are the first axis."""
        numbers = len(theirs) - self.labels
        differ = (own[numbers:] != theirs[numbers:]).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # as in C; `heuristic_gamma` tells of what is too large
            squared = (own[:numbers] - theirs[:numbers]) ** 2
        return np.concatenate([squared, differ])


def _spread(n: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp)) if n else np.empty(0, dtype=np.intp)
