"""Count, mean and centred sums of powers up to the fourth, by subgroup: all that is kept of rows that are not kept.

Moments of parts of the rows merge into those of all of them (Chan, Golub and LeVeque 1983; Pebay 2008). Nothing is
subtracted that is large beside what is left, so they hold for numbers far from 0, too. Merged in the same order they
are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, Floats, Rows


@dataclass(frozen=True, eq=False)
class Moments:
    """Arrays of a common shape, mostly (losses, subgroups).

    Attributes
    ----------
    n : float array
        Number of rows, or their weight.
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
        """Moments of each line of `values` (lines, rows) in each subgroup: (lines, subgroups).

        Without `code` all rows are of one subgroup; `weights` count rows.
        """
        single = code is None or n_groups == 1
        lines = [
            _single(line, weights) if single or code is None else _by_group(line, code, n_groups, weights)
            for line in values
        ]
        return cls(*(np.array([line[at] for line in lines]) for at in range(5)))

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Moments:
        """Moments of no rows."""
        return cls(*(np.zeros(shape) for _ in range(5)))

    @classmethod
    def from_array(cls, array: npt.NDArray[np.float64]) -> Moments:
        """What `array` gave."""
        return cls(*(np.array(part) for part in array))

    @property
    def array(self) -> Floats:
        """All five in one array, their number first."""
        return np.array([self.n, self.mean, self.m2, self.m3, self.m4])

    def merged(self, other: Moments) -> Moments:
        """Moments of the rows of both."""
        na, nb = self.n, other.n
        n = na + nb
        total = np.where(n > 0, n, 1.0)
        a, b = na / total, nb / total  # shares
        # Of a side without rows the mean is no number to compare with.
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

    def together(self) -> Moments:
        """Moments of all subgroups together: the last axis has one entry left."""
        parts = (self.part(slice(k, k + 1)) for k in range(self.n.shape[-1]))
        return merged(parts)

    def part(self, at: slice) -> Moments:
        """Some of the subgroups."""
        return Moments(*(part[..., at] for part in self.array))

    def row(self, at: int) -> Moments:
        """One of the losses, whose subgroups are the only axis left."""
        return Moments(*(part[at] for part in self.array))

    def line(self, at: int) -> Moments:
        """One of the losses, still as one line."""
        return Moments(*(part[at : at + 1] for part in self.array))


def merged(parts: Iterable[Moments]) -> Moments:
    """Moments of the rows of all parts, merged from the first to the last."""
    return reduce(Moments.merged, parts)


def _single(values: Floats, weights: Floats | None) -> tuple[Floats, ...]:
    n = float(len(values)) if weights is None else float(weights.sum())
    if n == 0:
        return tuple(np.zeros((5, 1)))
    mean = float(values.mean() if weights is None else values @ weights / n)
    centred = values - mean
    # What rounding left of the mean of numbers far from 0.
    rest = float(centred.mean() if weights is None else centred @ weights / n)
    centred -= rest
    square = centred * centred
    counted = square if weights is None else square * weights
    sums = (float(counted.sum()), float(counted @ centred), float(counted @ square))
    return tuple(np.array([value]) for value in (n, mean + rest, *sums))


def _by_group(values: Floats, code: Codes | Rows, n_groups: int, weights: Floats | None) -> tuple[Floats, ...]:
    def sums(line: Floats) -> Floats:
        counted = line if weights is None else line * weights
        return np.bincount(code, weights=counted, minlength=n_groups).astype(np.float64, copy=False)

    n = np.bincount(code, weights=weights, minlength=n_groups).astype(np.float64)
    at_least = np.where(n > 0, n, 1.0)
    mean = sums(values) / at_least
    centred = values - mean[code]
    rest = sums(centred) / at_least
    centred -= rest[code]
    square = centred * centred
    return n, mean + rest, sums(square), sums(square * centred), sums(square * square)
