"""Squared maximum mean discrepancy (MMD) of two samples, with a Gaussian kernel and the median heuristic.

Requirements this design meets:

- memory does not grow with the number of pairs: distances are computed row by row, and again if needed again;
- the median of all pairwise distances is exact;
- if only one column changes between two calls, the squared distances in all other columns are cached (`base`);
- distances are sums of squared differences, not differences of large products: equal rows have distance 0 exactly;
- the loops are in C (`mmd_pairs.c`), with a NumPy fallback.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._native import loader
from subgrove._scoring.two_sample import Points
from subgrove.exceptions import InputError

_SMALLEST = 1e-150  # the squares of smaller distances underflow, those of distances above its inverse overflow
_CACHE_BYTES = 512 * 2**20  # squared distances that are cached between calls
_PILOT_ROWS = 200  # rows of each block whose distances locate the median
_MARGIN = 0.04  # initial half-width of the bracket around the pilot median, as a share of the pilot distances
_BUFFER_SHARE = 0.2  # share of all distances that the buffer holds
_MIN_BUFFER = 1 << 16


def squared_mmd(a: Floats, b: Floats, gamma: float | None = None) -> float:
    """Return the squared MMD between two samples of numbers: 0 for equal samples, larger for different distributions.

    It is the biased (V-statistic) estimate: the mean of the kernel over all pairs of rows of `a`, plus that of `b`,
    minus twice that of all pairs of a row of `a` and a row of `b`. Two samples of n rows of the same distribution have
    about 2 (1 - k) / n, where k is the mean of the kernel, so compare values for samples of the same sizes only.

    Parameters
    ----------
    a, b : float array (rows, columns)
        The two samples, with the same columns.
    gamma : float, optional
        Parameter of the kernel exp(-gamma * squared distance); by default from the median heuristic.
    """
    return SamplePairs.of(a, b, cache=False).squared_mmd(a[:, :0], [b[:, :0]], gamma)


def subsample_two(n: int, m: int, max_rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Select rows of two samples of n and m rows: all, or `max_rows` in total, drawn in proportion to their sizes."""
    if n + m <= max_rows:
        return slice(None), slice(None)
    of_a = min(max(1, round(max_rows * n / (n + m))), max_rows - 1)
    return np.sort(rng.choice(n, of_a, replace=False)), np.sort(rng.choice(m, max_rows - of_a, replace=False))


@dataclass(frozen=True, eq=False)
class SamplePairs:
    """Pairs of rows of two samples that differ between calls in one column (or a few).

    The squared distances in the fixed columns are computed once and cached, if they fit into the cache.

    Attributes
    ----------
    a, b : Points
        The fixed columns; none if their squared distances are cached.
    within_a, within_b, across : float array or None
        Cached squared distances: pairs of rows of `a`, pairs of rows of `b`, and pairs of a row of each.
    """

    a: Points
    b: Points
    within_a: Floats | None = None
    within_b: Floats | None = None
    across: Floats | None = None

    @classmethod
    def of(cls, a: Floats | Points, b: Floats | Points, *, cache: bool = True) -> SamplePairs:
        """Pair the rows of two samples by their fixed columns."""
        first, second = Points.of(a), Points.of(b)
        rows = len(first) + len(second)
        if not cache or rows * (rows - 1) // 2 * 8 > _CACHE_BYTES:
            return cls(first, second)
        blocks = [PairBlock.of(sample, sample, triangle=True) for sample in (first, second)]
        blocks.append(PairBlock.of(first, second))
        return cls(first.none, second.none, *(block.distances() for block in blocks))

    def squared_mmd(self, a: Floats | Points, copies: Sequence[Floats | Points], gamma: float | None = None) -> float:
        """Return the squared MMD for given values of the varying columns.

        Parameters
        ----------
        a : float array (rows of a, varying columns) or Points
            Values in `a`.
        copies : sequence of float array (rows of b, varying columns) or Points
            Values in `b`. With several copies, each row of `b` is used once with each of them.
        gamma : float or None
            Kernel parameter; None for the median heuristic.
        """
        first, seconds = self.a.beside(Points.of(a)), [self.b.beside(Points.of(copy)) for copy in copies]
        n, m = len(first), sum(map(len, seconds))
        within_a = [PairBlock.of(first, first, triangle=True, base=self.within_a)]
        within_b = list(self._blocks_of_b(seconds))
        across = [PairBlock.of(first, second, base=self.across) for second in seconds]
        if gamma is None:
            gamma = heuristic_gamma([*within_a, *within_b, *across])
        of_a, of_b, of_both = (
            sum(block.kernel_sum(gamma) for block in blocks) for blocks in (within_a, within_b, across)
        )
        # The kernel of a row with itself is 1; every other pair of a sample counts twice.
        squared = (n + 2 * of_a) / n**2 + (m + 2 * of_b) / m**2 - 2 * of_both / (n * m)
        return max(0.0, squared)

    def _blocks_of_b(self, copies: Sequence[Points]) -> Iterator[PairBlock]:
        for at, one in enumerate(copies):
            yield PairBlock.of(one, one, triangle=True, base=self.within_b)
            for other in copies[at + 1 :]:
                yield PairBlock.of(one, other, triangle=True, base=self.within_b)
                yield PairBlock.of(other, one, triangle=True, base=self.within_b)
                # Row i of one copy with row i of the other.
                squared = ((one.numbers - other.numbers) ** 2).sum(axis=1) + (one.labels != other.labels).sum(axis=1)
                yield PairBlock.listed(squared)


def heuristic_gamma(blocks: Sequence[PairBlock]) -> float:
    """Return 1 / (2 * median ** 2) of the distances; of the positive ones if the median is 0, and 1 without any."""
    median = median_distance(blocks)
    if median == 0:
        median = median_distance(blocks, positive=True)
        if np.isnan(median):
            return 1.0
    if not _SMALLEST < median < 1 / _SMALLEST:
        raise InputError(
            f"The median distance between rows is {median:.3g}, whose square is out of the range of a float. "
            f"Rescale columns with very large or very small values."
        )
    return 1.0 / (2.0 * median**2)


def median_distance(blocks: Sequence[PairBlock], *, positive: bool = False) -> float:
    """Return the median of the distances of all pairs; the mean of the middle two if their number is even.

    A pilot sample of the distances brackets the median. One pass counts the distances below the bracket and collects
    those inside; if the median is not among them, the bracket is widened and the pass repeated.

    Parameters
    ----------
    blocks : sequence of PairBlock
        The pairs.
    positive : bool, default False
        Whether to use positive distances only.

    Returns
    -------
    float
        NaN if there is no pair, or if NaN distances make the median undefined.
    """
    least = float(np.nextafter(0, 1)) if positive else 0.0
    total = sum(block.n_pairs for block in blocks)
    zeros = _collect_between(blocks, least, np.inf, 0)[0] if positive else 0
    if total == zeros:
        return float("nan")
    ranks = zeros + (total - zeros - 1) // 2, zeros + (total - zeros) // 2
    pilot = np.sort(np.concatenate([block.thinned(_PILOT_ROWS) for block in blocks]))
    pilot = pilot[pilot >= least]
    margin, room, narrowing = _MARGIN, max(_MIN_BUFFER, int(_BUFFER_SHARE * total)), True
    while True:
        low, high = _bracket(pilot, margin, least)
        n_below, n_inside, inside = _collect_between(blocks, low, high, 0 if low == high else room)
        if not (n_below <= ranks[0] and ranks[1] < n_below + n_inside):
            if margin >= 0.5:  # every distance was counted, so some are NaN
                return float("nan")
            margin, narrowing = max(2 * margin, 0.001), False
        elif low == high:
            return float(np.sqrt(low))
        elif n_inside <= room:
            places = [ranks[0] - n_below, ranks[1] - n_below]
            return float(np.sqrt(np.partition(inside, places)[places]).mean())
        elif narrowing:  # the buffer is too small, mostly because of ties
            margin = margin / 4 if margin > 0.001 else 0.0
        else:
            room = n_inside


def _bracket(pilot: Floats, margin: float, least: float) -> tuple[float, float]:
    """Return the pilot quantiles at a share `margin` below and above the median."""
    if margin >= 0.5 or not len(pilot):
        return least, float("inf")
    last = len(pilot) - 1
    low = int((0.5 - margin) * last)
    return float(pilot[low]), float(pilot[last - low] if margin > 0 else pilot[low])


def _collect_between(blocks: Sequence[PairBlock], low: float, high: float, room: int) -> tuple[int, int, Floats]:
    """Apply `PairBlock.between` to all blocks, with one buffer of size `room`."""
    n_below = n_inside = 0
    collected: list[Floats] = []
    for block in blocks:
        below, inside, values = block.between(low, high, min(room, block.n_pairs))
        n_below, n_inside, room = n_below + below, n_inside + inside, room - len(values)
        collected.append(values)
    return n_below, n_inside, np.concatenate(collected)


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
