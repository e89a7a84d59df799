"""Heterogeneity of ICE curves, the split that reduces it most, and a permutation test of the split.

The curve of a row is f_i(x) = a_i + m(x) + residual, with a height of its own and the common curve of its group.
Without interactions, the residuals are 0. If all rows of a group have the same grid points, the least-squares fit is
the mean of the centred curves. Groups have grid points of their own, over the range of the feature in the group; the
heterogeneity between groups is then the least-squares residual of their mean curves at shared points. So each set of
rows has one number H, and a split explains H(all) - H(left) - H(right), which is never negative. Each curve contributes
its mean over its points.

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
from subgrove._effects.curves import Curve
from subgrove.trees.nodes import Side, Split, assign_unseen_values, goes_left

MAX_PERMUTATIONS = 999
_BATCH_SIZE = 1 << 19  # numbers of permuted curves that are processed at once
_TOLERANCE = 1e-6  # share of heterogeneity that the reduction of dimension may lose
_ROUNDING = 1e-13  # share of the sum of squares of predictions that is rounding, also for 32-bit numbers

SplitColumn = tuple[ColumnInfo, npt.NDArray[Any]]
Cuts = tuple[Floats, Floats, Floats, Floats]  # sums and weights on the left of each cut, those of all rows


@dataclass(frozen=True, eq=False)
class CurveShapes:
    """Centred ICE curves of one subgroup.

    Attributes
    ----------
    rows : float array (rows, points times outputs)
        Centred curves, scaled so that their sum of squares is the mean over points.
    weights : float array
        Sample weights.
    """

    rows: Floats
    weights: Floats

    @classmethod
    def of(cls, curve: Curve, units: Floats) -> CurveShapes:
        """Centre the ICE curves of a subgroup, each output in its unit."""
        assert curve.ice is not None
        values = curve.ice.values
        shapes = (values - values.mean(axis=0)) / units[:, None] / np.sqrt(len(values))
        flat = shapes.reshape(-1, shapes.shape[2]).T
        weights = np.ones(len(flat)) if curve.ice.weights is None else curve.ice.weights
        return cls(np.ascontiguousarray(flat), weights)

    def residuals(self) -> Floats:
        """Return deviations from the mean shape."""
        return np.asarray(self.rows - np.average(self.rows, axis=0, weights=self.weights))

    def heterogeneity(self) -> float:
        """Return H of these rows."""
        return float(self.weights @ (self.residuals() ** 2).sum(axis=1))

    def some(self, rows: Rows) -> CurveShapes:
        """Select rows."""
        return CurveShapes(self.rows[rows], self.weights[rows])


def output_units(curves: Sequence[Curve]) -> Floats:
    """Return the square root of the total heterogeneity of each output, so that outputs have equal weight.

    Infinite for an output without heterogeneity, apart from rounding.
    """
    n_outputs = curves[0].estimate.shape[1] if curves else 0
    total, size = np.zeros(n_outputs), np.zeros(n_outputs)
    for at in range(n_outputs):
        single = np.where(np.arange(n_outputs) == at, 1.0, np.inf)
        total[at] = heterogeneity_between(curves, single, union_of_points(curves))
        for curve in curves:
            assert curve.ice is not None
            shapes = CurveShapes.of(curve, single)
            total[at] += shapes.heterogeneity()
            size[at] += float((curve.ice.values[:, at] ** 2).mean(axis=0) @ shapes.weights)
    return np.where(total > _ROUNDING * size, np.sqrt(np.maximum(total, np.finfo(float).tiny)), np.inf)


def union_of_points(curves: Sequence[Curve]) -> Floats:
    """Return the grid points of all curves."""
    return np.unique(np.concatenate([curve.axes[0].points for curve in curves]))


def heterogeneity_between(curves: Sequence[Curve], units: Floats, grid: Floats) -> float:
    """Return the heterogeneity of the mean curves of subgroups at shared points.

    With the same `grid` for all sets of subgroups, the shares of splits are additive.
    """
    if len(curves) < 2:
        return 0.0
    n = np.array([curve.n[0] for curve in curves])
    means, inside = zip(*(_on_grid(curve, grid) for curve in curves), strict=True)
    known = np.array(inside)
    weights = known * (n / known.sum(axis=1))[:, None]
    total = 0.0
    for at, unit in enumerate(units):
        if np.isfinite(unit):
            total += _residual_squares(np.array([mean[:, at] for mean in means]) / unit, weights)
    return total


def _on_grid(curve: Curve, grid: Floats) -> tuple[Floats, Floats]:
    """Return the mean curve on a grid, and an indicator (1 or 0) of the points that it has."""
    place = np.searchsorted(grid, curve.axes[0].points)
    means, known = np.zeros((len(grid), curve.estimate.shape[1])), np.zeros(len(grid))
    means[place], known[place] = curve.estimate, 1.0
    return means, known


def _residual_squares(values: Floats, weights: Floats) -> float:
    """Return the weighted residual sum of squares of values (groups, points) after fitting heights and a curve."""
    mass = weights.sum(axis=0)
    used = mass > 0
    values, weights, mass = values[:, used], weights[:, used], mass[used]
    # Given the heights, the common curve is a mean, which leaves a linear system for the heights.
    around = values - (weights * values).sum(axis=0) / mass
    system = np.diag(weights.sum(axis=1)) - (weights / mass) @ weights.T
    heights = np.linalg.pinv(system, hermitian=True) @ (weights * around).sum(axis=1)
    residuals = values - heights[:, None]
    residuals -= (weights * residuals).sum(axis=0) / mass
    return float((weights * residuals**2).sum())


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
        gain, which = _largest_gain(*scan.cuts(shapes[None], weights[None]), min_samples_leaf)
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
        gains = [_largest_gain(*scan.cuts(permuted, permuted_weights), min_samples_leaf)[0] for scan in scans]
        as_much = np.max(gains, axis=0, initial=-np.inf) >= split.gain * (1 - _TOLERANCE)
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

    def cuts(self, shapes: Floats, weights: Floats) -> Cuts:
        """Return the cuts of each permutation (permutations, rows, numbers).

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
        return low, low_mass, sums[:, -1], mass[:, -1]

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

    def cuts(self, shapes: Floats, weights: Floats) -> Cuts:
        """Return the cuts of each permutation between ordered levels."""
        return self._ordered(shapes, weights)[0]

    def _ordered(self, shapes: Floats, weights: Floats) -> tuple[Cuts, Rows]:
        """Return the cuts of each permutation, and the order of the levels.

        Levels are ordered along the first principal component of their mean curves.
        """
        mass = weights @ self.has
        sums = self.has.T @ (shapes * weights[:, :, None])
        total, all_mass = sums.sum(axis=1), mass.sum(axis=1)
        means = sums / mass[:, :, None]
        around = (means - (total / all_mass[:, None])[:, None]) * np.sqrt(mass)[:, :, None]
        direction = np.linalg.eigh(around.transpose(0, 2, 1) @ around)[1][:, :, -1]
        order = np.argsort((means @ direction[:, :, None])[:, :, 0], axis=1, kind="stable")
        low = np.cumsum(np.take_along_axis(sums, order[:, :, None], axis=1), axis=1)[:, :-1]
        low_mass = np.cumsum(np.take_along_axis(mass, order, axis=1), axis=1)[:, :-1]
        return (low, low_mass, total, all_mass), order

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
