"""Heterogeneity of ICE curves: the sum of squares around a common curve, apart from their heights.

The curve of a row is f_i(x) = a_i + m(x) + residual, with a height of its own and the common curve of its group.
Without interactions, the residuals are 0. If all rows of a group have the same grid points, the least-squares fit is
the mean of the centred curves. Groups have grid points of their own, over the range of the feature in the group; the
heterogeneity between groups is then the least-squares residual of their mean curves at shared points. So each set of
rows has one number H, and a split explains H(all) - H(left) - H(right), which is never negative. Each curve contributes
its mean over its points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.to_containers import Backend, make_table
from subgrove._effects.curves import Curve
from subgrove._effects.tables import counts_as_integers

DEPENDENCE, INTERACTION, NONE = "dependence", "interaction", "none"
_ROUNDING = 1e-13  # share of the sum of squares of predictions that is rounding, also for 32-bit numbers


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


@dataclass(frozen=True)
class ExplainedSplit:
    """One split, its reason, and the share of heterogeneity that it explains.

    Attributes
    ----------
    node : str
        Rule of the rows that are split.
    column : str
        Column of the split.
    reason : {"dependence", "interaction"}
        Whether the feature depends on the column, or the shape of the curves does.
    n : float
        Number of rows that are split.
    share : float
        Share of the heterogeneity of ICE curves that the split explains.
    p_value : float or None
        Permutation p-value, for interaction splits.
    """

    node: str
    column: str
    reason: str
    n: float
    share: float
    p_value: float | None = None


@dataclass(frozen=True)
class Heterogeneity:
    """Heterogeneity of ICE curves, and the shares that splits explain.

    Attributes
    ----------
    feature : str
        The feature.
    splits : tuple of ExplainedSplit
        Splits due to dependence first, then those due to interaction, each from the root downwards.
    additive : bool
        Whether all curves have the same shape, so that there is no heterogeneity.
    n : float
        Number of rows with curves.
    """

    feature: str
    splits: tuple[ExplainedSplit, ...]
    additive: bool
    n: float

    def explained(self, reason: str) -> float:
        """Return the share of heterogeneity that splits with this reason explain."""
        return sum(split.share for split in self.splits if split.reason == reason)

    @property
    def left(self) -> float:
        """Share that no split explains."""
        return 0.0 if self.additive else max(1.0 - self.explained(DEPENDENCE) - self.explained(INTERACTION), 0.0)

    @property
    def sentence(self) -> str:
        """Summary in one sentence."""
        if self.additive:
            return f"{self.feature}: all curves have the same shape, so there is no interaction to split on."
        parts = []
        if any(split.reason == DEPENDENCE for split in self.splits):
            parts.append(f"by dependence splits {self.explained(DEPENDENCE):.0%}")
        interactions = [split for split in self.splits if split.reason == INTERACTION]
        if interactions:
            n, columns = len(interactions), ", ".join(dict.fromkeys(split.column for split in interactions))
            parts.append(f"by {n} interaction split{'s' * (n > 1)} on {columns} {self.explained(INTERACTION):.0%}")
        else:
            parts.append("no significant interaction split")
        return f"{self.feature}: heterogeneity of curves explained {', '.join(parts)}; unexplained {self.left:.0%}."

    def table(self, backend: Backend) -> Any:
        """Return a row for each split and one for the unexplained share: feature, node, column, reason, n, ..."""
        rows = [*self.splits, ExplainedSplit("", "", NONE, self.n, self.left)]
        columns: dict[str, Any] = {"feature": [self.feature] * len(rows)}
        columns |= {each.name: [getattr(row, each.name) for row in rows] for each in fields(ExplainedSplit)}
        columns["n"] = counts_as_integers(np.array(columns["n"]))
        columns["p_value"] = [np.nan if row.p_value is None else row.p_value for row in rows]
        return make_table(backend, columns)
