"""Moments and quantiles.

Moments are count, mean and centred sums of powers up to the fourth, by subgroup, of rows not in memory at once.

Moments of chunks of rows merge into those of all rows (Chan, Golub and LeVeque 1983; Pebay 2008). Numbers are centred
before they are raised to a power, so there is no cancellation for numbers far from 0. Merging in the same order gives
the same moments to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, Floats, Rows


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments as arrays of a common shape, mostly (losses, subgroups).

    Attributes
    ----------
    n : float array
        Number of rows, or sum of their weights.
    mean : float array
        0 where there are no rows.
    m2, m3, m4 : float arrays
        Sums of (value - mean) to the second, third and fourth power.
    """

    n: Floats
    mean: Floats
    m2: Floats
    m3: Floats
    m4: Floats

    @classmethod
    def of(
        cls, values: Floats, code: Codes | Rows | None = None, n_groups: int = 1, weights: Floats | None = None
    ) -> Moments:
        """Return the moments of each line of `values` (lines, rows) in each subgroup: (lines, subgroups).

        Without `code` all rows are in one subgroup.
        """
        single = code is None or n_groups == 1
        lines = [
            _single(line, weights) if single or code is None else _by_group(line, code, n_groups, weights)
            for line in values
        ]
        return cls(*(np.array([line[at] for line in lines]) for at in range(5)))

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Moments:
        """Return the moments of zero rows."""
        return cls(*(np.zeros(shape) for _ in range(5)))

    @classmethod
    def from_array(cls, array: npt.NDArray[np.float64]) -> Moments:
        """Return the moments of an array that `array` returned."""
        return cls(*(np.array(part) for part in array))

    @property
    def array(self) -> Floats:
        """All five as one array, in the order of the attributes."""
        return np.array([self.n, self.mean, self.m2, self.m3, self.m4])

    def merged(self, other: Moments) -> Moments:
        """Return the moments of the rows of both."""
        na, nb = self.n, other.n
        n = na + nb
        total = np.where(n > 0, n, 1.0)
        a, b = na / total, nb / total  # shares
        # The mean of a side without rows is not compared.
        delta = np.where((na > 0) & (nb > 0), other.mean - self.mean, 0.0)
        mean = np.where(na > 0, self.mean + delta * b, other.mean)
        both = na * b  # na nb / n
        m2 = self.m2 + other.m2 + delta**2 * both
        m3 = self.m3 + other.m3 + delta**3 * both * (a - b) + 3 * delta * (a * other.m2 - b * self.m2)
        m4 = (
            self.m4
            + other.m4
            + delta**4 * both * (a * a - a * b + b * b)
            + 6 * delta**2 * (a * a * other.m2 + b * b * self.m2)
            + 4 * delta * (a * other.m3 - b * self.m3)
        )
        return Moments(n, mean, m2, m3, m4)

    def scaled(self, factor: float) -> Moments:
        """Return the moments with all weights multiplied by a factor."""
        return Moments(self.n * factor, self.mean, self.m2 * factor, self.m3 * factor, self.m4 * factor)

    def together(self) -> Moments:
        """Return the moments over all subgroups; the last axis has one entry."""
        parts = (self[..., k : k + 1] for k in range(self.n.shape[-1]))
        return merged(parts)

    def __getitem__(self, at: Any) -> Moments:
        """Return the moments of some losses and subgroups; `at` is an index of the arrays."""
        return Moments(*(part[at] for part in self.array))


def merged(parts: Iterable[Moments]) -> Moments:
    """Return the moments of the rows of all parts, merged from the first to the last."""
    return reduce(Moments.merged, parts)


def _single(values: Floats, weights: Floats | None) -> tuple[Floats, ...]:
    n = float(len(values)) if weights is None else float(weights.sum())
    if n == 0:
        return tuple(np.zeros((5, 1)))
    mean = float(values.mean() if weights is None else values @ weights / n)
    centred = values - mean
    # The rounding error of the mean of numbers far from 0.
    correction = float(centred.mean() if weights is None else centred @ weights / n)
    centred -= correction
    square = centred * centred
    weighted = square if weights is None else square * weights
    sums = (float(weighted.sum()), float(weighted @ centred), float(weighted @ square))
    return tuple(np.array([value]) for value in (n, mean + correction, *sums))


def _by_group(values: Floats, code: Codes | Rows, n_groups: int, weights: Floats | None) -> tuple[Floats, ...]:
    def sums(line: Floats) -> Floats:
        weighted = line if weights is None else line * weights
        return np.bincount(code, weights=weighted, minlength=n_groups).astype(np.float64, copy=False)

    n = np.bincount(code, weights=weights, minlength=n_groups).astype(np.float64)
    at_least = np.where(n > 0, n, 1.0)
    mean = sums(values) / at_least
    centred = values - mean[code]
    correction = sums(centred) / at_least
    centred -= correction[code]
    square = centred * centred
    return n, mean + correction, sums(square), sums(square * centred), sums(square * square)


_CLOSE = 1e-12  # cumulative weights that differ by less, relative to their sum, are equal


def quantile_rows(x: Floats, weights: Floats | None, shares: Floats) -> Rows:
    """Return the rows of the quantiles: the smallest values that at least these shares of the rows do not exceed."""
    order = np.argsort(x, kind="stable")
    total = np.arange(1.0, len(x) + 1) if weights is None else np.cumsum(weights[order])
    at = np.searchsorted(total, shares * total[-1] * (1 - _CLOSE), side="left")
    return np.asarray(order[np.minimum(at, len(x) - 1)])


def quantile_values(x: Floats, weights: Floats | None, shares: Floats) -> Floats:
    """Return the quantiles."""
    if weights is not None:
        return np.asarray(x[quantile_rows(x, weights, shares)])
    at = np.ceil(shares * len(x) * (1 - _CLOSE)).astype(np.intp) - 1
    return np.asarray(np.sort(x)[np.clip(at, 0, len(x) - 1)])  # faster than sorting row numbers


def interval_ends(edges: Floats, x: Floats) -> tuple[Rows, Rows]:
    """Return for each value the indices of the edges left and right of it; the left one is the index of its interval.

    Intervals are open on the left, except the first one. Values beyond the edges belong to the nearest interval. A
    single edge is both ends.
    """
    left = np.clip(np.searchsorted(edges, x, side="left") - 1, 0, max(len(edges) - 2, 0))
    return left, np.minimum(left + 1, len(edges) - 1)
