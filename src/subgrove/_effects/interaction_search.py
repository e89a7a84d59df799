"""The split that reduces the heterogeneity of curves most, and a permutation test of it.

The criterion is that of REPID (Herbinger et al. 2022): the curves on each side of a cut should be as homogeneous as
possible. The best of many columns and cuts always explains something, even if no column is related to the curves. So
the curves are permuted over the rows and the search repeated many times; the p-value is the share of permutations whose
best split explains as much. For independent rows the test is exact, whatever the columns and the curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove.trees.splits import Side, Split, assign_unseen_values, goes_left

MAX_PERMUTATIONS = 999
_BATCH_SIZE = 1 << 19  # numbers of permuted curves that are processed at once
_TOLERANCE = 1e-6  # share of heterogeneity that the reduction of dimension may lose

SplitColumn = tuple[ColumnInfo, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class BestSplit:
    """The best split of some rows: the heterogeneity that it explains, and a mask of the left rows."""

    split: Split
    gain: float
    left: npt.NDArray[np.bool_]


def best_split(
    shapes: Floats, weights: Floats, columns: Sequence[SplitColumn], min_samples_leaf: float
) -> BestSplit | None:
    """Return the split that explains most of the heterogeneity of curves; None if no split is allowed.

    Parameters
    ----------
    shapes : float array (rows, numbers)
        Deviations of centred curves from their mean.
    weights : float array
        Sample weights.
    columns : sequence of (ColumnInfo, values)
        Columns to split on: numbers, or codes of levels.
    min_samples_leaf : float
        Smallest weight on each side.
    """
    best, most = None, 0.0
    for column in columns:
        scan = _scan_of(*column)
        if scan is None:
            continue
        gain, which = scan.best(shapes[None], weights[None], min_samples_leaf)
        if gain[0] > most:
            best, most = (column, scan.split(column, shapes, weights, int(which[0]))), float(gain[0])
    if best is None:
        return None
    (info, values), split = best
    left = goes_left(split, info, values)
    larger = weights[left].sum() >= weights[~left].sum()
    return BestSplit(assign_unseen_values(split, info, values, "left" if larger else "right"), most, left)


def permutation_p_value(
    split: BestSplit,
    shapes: Floats,
    weights: Floats,
    columns: Sequence[SplitColumn],
    min_samples_leaf: float,
    alpha: float,
    rng: np.random.Generator,
) -> float:
    """Return the permutation p-value of a split; stops early once it exceeds `alpha`.

    There are about 4 / `alpha` permutations, so the split must rank among the best four to be significant.
    """
    scans = [scan for column in columns if (scan := _scan_of(*column)) is not None]
    numbers = _principal_components(shapes, weights)
    n_permutations = min(max(int(np.ceil(4 / alpha)) - 1, 19), MAX_PERMUTATIONS)
    batch = int(np.clip(_BATCH_SIZE // numbers.size, 1, 64))
    hits, done = 0, 0
    while done < n_permutations and (hits + 1) / (n_permutations + 1) <= alpha:
        orders = np.stack([rng.permutation(len(numbers)) for _ in range(min(batch, n_permutations - done))])
        permuted, permuted_weights = numbers[orders], weights[orders]
        as_much = np.zeros(len(orders), dtype=np.bool_)
        for scan in scans:
            as_much |= scan.best(permuted, permuted_weights, min_samples_leaf)[0] >= split.gain * (1 - _TOLERANCE)
        hits, done = hits + int(as_much.sum()), done + len(orders)
    return (hits + 1) / (done + 1)


def _principal_components(shapes: Floats, weights: Floats) -> Floats:
    """Project curves onto the principal components with nearly all of their sum of squares."""
    spread, axes = np.linalg.eigh((shapes * weights[:, None]).T @ shapes)
    dropped = np.cumsum(np.maximum(spread, 0)) <= _TOLERANCE * np.maximum(spread, 0).sum()
    return np.ascontiguousarray(shapes @ axes[:, ~dropped])


def _scan_of(info: ColumnInfo, values: npt.NDArray[Any]) -> _NumericCutSearch | _LevelCutSearch | None:
    """Prepare the search of a column; None if it cannot be split, or has levels unseen in training."""
    if info.is_nominal:
        codes, place = np.unique(values, return_inverse=True)
        return None if len(codes) < 2 or codes[0] < MISSING else _LevelCutSearch(np.eye(len(codes))[place], codes)
    if np.isinf(values).any():
        return None
    order = np.argsort(values, kind="stable")  # missing values last
    ordered = values[order]
    n = int((~np.isnan(ordered)).sum())
    ends = np.flatnonzero(ordered[: n - 1] < ordered[1:n]) if n > 1 else np.empty(0, dtype=np.intp)
    if not len(ends) and n in (0, len(values)):
        return None
    return _NumericCutSearch(order, ends, n)


@dataclass(frozen=True, eq=False)
class _NumericCutSearch:
    """Cuts of a numeric column: rows in sorted order, positions of the cuts, and the number of known values."""

    order: Rows
    ends: Rows
    n: int

    def best(self, shapes: Floats, weights: Floats, min_samples_leaf: float) -> tuple[Floats, Rows]:
        """Return for each permutation (permutations, rows, numbers) the largest gain of a cut, and its index.

        Cuts with missing values on the right come first, then those with missing values on the left, then the cut
        between known and missing values.
        """
        w = weights[:, self.order]
        sums, mass = np.cumsum(shapes[:, self.order] * w[:, :, None], axis=1), np.cumsum(w, axis=1)
        low, low_mass = sums[:, self.ends], mass[:, self.ends]
        if self.n < len(self.order):
            last = self.n - 1
            missing, missing_mass = sums[:, -1:] - sums[:, last, None], mass[:, -1:] - mass[:, last, None]
            low = np.concatenate([low, low + missing, sums[:, last, None]], axis=1)
            low_mass = np.concatenate([low_mass, low_mass + missing_mass, mass[:, last, None]], axis=1)
        return _largest_gain(low, low_mass, sums[:, -1], mass[:, -1], min_samples_leaf)

    def split(self, column: SplitColumn, shapes: Floats, weights: Floats, which: int) -> Split:
        """Return the split with this index."""
        info, values = column
        if which == 2 * len(self.ends):
            return Split(info.name, info.kind, None, missing="right")
        place = self.ends[which % len(self.ends)]
        side: Side = "left" if which >= len(self.ends) else "right"
        return Split(info.name, info.kind, float(values[self.order[place]]), missing=side)


@dataclass(frozen=True, eq=False)
class _LevelCutSearch:
    """Cuts of a categorical column: one-hot levels (rows, levels), and their codes."""

    has: Floats
    codes: npt.NDArray[Any]

    def best(self, shapes: Floats, weights: Floats, min_samples_leaf: float) -> tuple[Floats, Rows]:
        """Return for each permutation the largest gain of a cut between ordered levels, and its position.

        Levels are ordered along the first principal component of their mean curves.
        """
        low, low_mass, total, mass, _ = self._ordered(shapes, weights)
        return _largest_gain(low, low_mass, total, mass, min_samples_leaf)

    def _ordered(self, shapes: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, Floats, Rows]:
        """Return sums and weights on the left of each cut, those of all rows, and the order of the levels."""
        mass = weights @ self.has
        sums = self.has.T @ (shapes * weights[:, :, None])
        total, all_mass = sums.sum(axis=1), mass.sum(axis=1)
        means = sums / mass[:, :, None]
        around = (means - (total / all_mass[:, None])[:, None]) * np.sqrt(mass)[:, :, None]
        direction = np.linalg.eigh(around.transpose(0, 2, 1) @ around)[1][:, :, -1]
        order = np.argsort((means @ direction[:, :, None])[:, :, 0], axis=1, kind="stable")
        low = np.cumsum(np.take_along_axis(sums, order[:, :, None], axis=1), axis=1)[:, :-1]
        low_mass = np.cumsum(np.take_along_axis(mass, order, axis=1), axis=1)[:, :-1]
        return low, low_mass, total, all_mass, order

    def split(self, column: SplitColumn, shapes: Floats, weights: Floats, which: int) -> Split:
        """Return the split with this index."""
        info, order = column[0], self._ordered(shapes[None], weights[None])[-1][0]
        below, above = (set(self.codes[part].tolist()) for part in (order[: which + 1], order[which + 1 :]))
        if min(above) < min(below):  # put the first level on the left
            below = above
        left = tuple(level for code, level in enumerate(info.levels) if code in below)
        right = tuple(level for code, level in enumerate(info.levels) if code not in below)
        return Split(info.name, info.kind, levels=(left, right), missing="left" if MISSING in below else "right")


def _largest_gain(
    low: Floats, low_mass: Floats, total: Floats, mass: Floats, min_samples_leaf: float
) -> tuple[Floats, Rows]:
    """Return the largest gain for each permutation, among cuts with enough rows on both sides."""
    high_mass = mass[:, None] - low_mass
    allowed = (low_mass >= min_samples_leaf) & (high_mass >= min_samples_leaf)
    below, above = np.where(allowed, low_mass, 1.0), np.where(allowed, high_mass, 1.0)
    gains = (low**2).sum(axis=2) / below + ((total[:, None] - low) ** 2).sum(axis=2) / above
    gains = np.where(allowed, gains - ((total**2).sum(axis=1) / mass)[:, None], -np.inf)
    at = gains.argmax(axis=1)
    return gains[np.arange(len(at)), at], at
