"""How far single curves disagree: the sum of squares of ICE curves around a common curve, heights aside.

A row's curve is f_i(x) = a_i + m(x) + what is left: a height of its own, the common curve of its group, and what it
disagrees by. Where no features interact, nothing is left. With the same points for all rows of a group, least squares
gives the curves less their own means, around the mean of these (centred ICE curves). Groups of rows have points of
their own, over the range of the feature in them; then least squares over the curves' means (a_k, m) says how far groups
disagree at points that they have in common. So every set of rows has one number, R, and a split explains
R(all) - R(left) - R(right), which is never negative. Each curve counts by its mean over its points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._effects.curves import Curve

_NOTHING = 1e-13  # share of the sum of squares of predictions that is rounding, also of numbers in 32 bits


@dataclass(frozen=True, eq=False)
class CurveShapes:
    """The curves of the rows of one subgroup, less their heights.

    Attributes
    ----------
    rows : float array (rows, points times outputs)
        Centred curves, scaled so that their sum of squares is the mean over points.
    weights : float array
        How often each row counts.
    """

    rows: Floats
    weights: Floats

    @classmethod
    def of(cls, curve: Curve, units: Floats) -> CurveShapes:
        """The shapes of a subgroup's ICE curves, each output in its unit."""
        assert curve.ice is not None
        values = curve.ice.values
        shapes = (values - values.mean(axis=0)) / units[:, None] / np.sqrt(len(values))
        flat = shapes.reshape(-1, shapes.shape[2]).T
        weights = np.ones(len(flat)) if curve.ice.weights is None else curve.ice.weights
        return cls(np.ascontiguousarray(flat), weights)

    def around(self) -> Floats:
        """The shapes around their mean."""
        return np.asarray(self.rows - np.average(self.rows, axis=0, weights=self.weights))

    def disagreement(self) -> float:
        """R of these rows."""
        return float(self.weights @ (self.around() ** 2).sum(axis=1))

    def some(self, rows: Rows) -> CurveShapes:
        """Some of the rows."""
        return CurveShapes(self.rows[rows], self.weights[rows])


def units_of(curves: Sequence[Curve]) -> Floats:
    """For each output the root of how far all its curves disagree, so that outputs count alike.

    Infinite for an output whose curves do not disagree, beyond rounding.
    """
    n_outputs = curves[0].estimate.shape[1] if curves else 0
    total, size = np.zeros(n_outputs), np.zeros(n_outputs)
    for at in range(n_outputs):
        alone = np.where(np.arange(n_outputs) == at, 1.0, np.inf)
        total[at] = between(curves, alone, points_of(curves))
        for curve in curves:
            assert curve.ice is not None
            shapes = CurveShapes.of(curve, alone)
            total[at] += shapes.disagreement()
            size[at] += float((curve.ice.values[:, at] ** 2).mean(axis=0) @ shapes.weights)
    return np.where(total > _NOTHING * size, np.sqrt(np.maximum(total, np.finfo(float).tiny)), np.inf)


def points_of(curves: Sequence[Curve]) -> Floats:
    """All points that curves have."""
    return np.unique(np.concatenate([curve.axes[0].points for curve in curves]))


def between(curves: Sequence[Curve], units: Floats, grid: Floats) -> float:
    """How far the mean curves of subgroups disagree at points that they have in common, heights aside.

    The same `grid` for all sets of subgroups makes what splits explain add up.
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
            total += _left_over(np.array([mean[:, at] for mean in means]) / unit, weights)
    return total


def _on_grid(curve: Curve, grid: Floats) -> tuple[Floats, Floats]:
    """Mean curve at the points of a grid, and which of these it has: 1 or 0."""
    place = np.searchsorted(grid, curve.axes[0].points)
    means, known = np.zeros((len(grid), curve.estimate.shape[1])), np.zeros(len(grid))
    means[place], known[place] = curve.estimate, 1.0
    return means, known


def _left_over(values: Floats, weights: Floats) -> float:
    """Least weighted sum of squares of values (groups, points) around a height for each group and a common curve."""
    mass = weights.sum(axis=0)
    used = mass > 0
    values, weights, mass = values[:, used], weights[:, used], mass[used]
    # For given heights the common curve is a mean; what is left is a system for the heights alone.
    around = values - (weights * values).sum(axis=0) / mass
    system = np.diag(weights.sum(axis=1)) - (weights / mass) @ weights.T
    heights = np.linalg.pinv(system, hermitian=True) @ (weights * around).sum(axis=1)
    rest = values - heights[:, None]
    rest -= (weights * rest).sum(axis=0) / mass
    return float((weights * rest**2).sum())
