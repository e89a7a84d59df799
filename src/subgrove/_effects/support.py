"""Distribution of a feature in a subgroup: box statistics and density of numbers, counts of levels."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._effects.grid import GridAxis, has_levels
from subgrove.trees import Tree
from subgrove.trees.nodes import Node
from subgrove.trees.training import Support
from subgrove.trees.transformation import FittedTransformation

BOX = ("low", "whisker_low", "q1", "median", "q3", "whisker_high", "high")
_CLOSE = 1e-12
_DENSITY_POINTS = 512  # points among which the maximum of a density is searched


@dataclass(frozen=True, eq=False)
class FeatureSupport:
    """Distribution of one feature in one subgroup.

    Attributes
    ----------
    info : ColumnInfo
        The feature.
    missing : float
        Weight of the rows with a missing value.
    box : float array
        Box statistics in the order of `BOX`; NaN without values. Empty for a categorical feature.
    outliers, outlier_weights : float array
        Distinct values beyond the whiskers, and the weight of their rows.
    counts : float array
        Weight of each level. Empty for a numeric feature.
    """

    info: ColumnInfo
    missing: float
    box: Floats
    outliers: Floats
    outlier_weights: Floats
    counts: Floats

    def holds(self, points: Floats, whiskers: bool) -> npt.NDArray[np.bool_]:
        """Return a mask of the points within the box or the whiskers; of levels, those that some row has."""
        if has_levels(self.info):
            return np.asarray(self.counts[points.astype(np.intp)] > 0)
        low, high = (self.box[1], self.box[5]) if whiskers else (self.box[2], self.box[4])
        return np.asarray((points >= low) & (points <= high))


@dataclass(frozen=True, eq=False)
class EffectGroup:
    """A subgroup: its rule, the weight of its rows, and the distribution of each feature in it.

    `reason` is that of its last split, empty without `interactions`.
    """

    rule: str
    n: float
    supports: tuple[FeatureSupport, ...]
    reason: str = ""


def support_of(info: ColumnInfo, x: Floats, weights: Floats | None) -> FeatureSupport:
    """Return the distribution of a feature in some rows."""
    missing, counts = count_values(info, x, weights)
    none = np.empty(0)
    if has_levels(info):
        return FeatureSupport(info, missing, none, none, none, counts)
    present = ~np.isnan(x)
    w = np.ones(len(x)) if weights is None else weights
    values, w = (x, w) if present.all() else (x[present], w[present])
    if not len(values):
        return FeatureSupport(info, missing, np.full(len(BOX), np.nan), none, none, none)
    box = box_statistics(values, None if weights is None else w)
    beyond = (values < box[1]) | (values > box[5])
    if not beyond.any():
        return FeatureSupport(info, missing, box, none, none, none)
    outliers, place = np.unique(values[beyond], return_inverse=True)
    outlier_weights = np.bincount(place, weights=w[beyond]).astype(np.float64)
    return FeatureSupport(info, missing, box, outliers, outlier_weights, none)


def count_values(info: ColumnInfo, x: Floats, weights: Floats | None) -> tuple[float, Floats]:
    """Return the weight of the rows with a missing value, and that of the rows with each level."""
    absent = np.isnan(x)
    w = np.ones(len(x)) if weights is None else weights
    if not has_levels(info):
        return float(w[absent].sum()), np.empty(0)
    codes = x[~absent].astype(np.intp)
    counts = np.bincount(codes, weights=w[~absent], minlength=len(info.levels))
    return float(w[absent].sum()), counts.astype(np.float64)


def box_statistics(x: Floats, weights: Floats | None) -> Floats:
    """Return Tukey's box statistics, in the order of `BOX`.

    The quartiles are hinges: medians of the halves, both including the middle row. Whiskers extend to the last value
    within 1.5 times the distance of the hinges from the box.
    """
    values, total = _cumulated(x, weights)
    n = float(len(x)) if total is None else float(total[-1])
    whole = weights is None or not (weights % 1).any()
    half = float(np.ceil(n / 2)) if whole else n / 2
    q1, median, q3 = (_middle(values, total, n, mass) for mass in (half / 2, n / 2, n - half / 2))
    reach = 1.5 * (q3 - q1)  # infinite on overflow, without outliers then
    first = values[np.searchsorted(values, q1 - reach, side="left")]
    last = values[np.searchsorted(values, q3 + reach, side="right") - 1]
    return np.array([values[0], first, q1, median, q3, last, values[-1]])


def _cumulated(x: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Return sorted values and the cumulative weights; None without weights."""
    if weights is None:
        return np.sort(x), None
    order = np.argsort(x, kind="stable")
    return x[order], np.cumsum(weights[order])


def _middle(values: Floats, total: Floats | None, n: float, mass: float) -> float:
    """Return the quantile at a cumulative weight; the mean of two values if it lies between them."""
    low, high = mass - _CLOSE * n, mass + _CLOSE * n
    last = len(values) - 1
    if total is None:  # cumulative weights are 1, 2, ...
        first, second = min(max(ceil(low) - 1, 0), last), min(floor(high), last)
    else:
        first = min(int(np.searchsorted(total, low, side="left")), last)
        second = min(int(np.searchsorted(total, high, side="right")), last)
    return float(values[first] / 2 + values[second] / 2) if first != second else float(values[first])


def opacity_of(tree: Tree, leaf: Node, axis: GridAxis) -> Floats:
    """Return the density of the feature at each point, relative to its maximum in the leaf; of levels, the frequency.

    It is that of the leaf's transformation model, or a kernel density estimate of its training rows for leaves at the
    depth limit, which have no model.
    """
    if not leaf.counts.any():
        return np.zeros(len(axis))
    if has_levels(axis.info):
        at_level = dict(zip(tree.target.levels, leaf.counts / leaf.counts.max(), strict=True))
        return np.array([at_level.get(axis.info.levels[int(point)], 0.0) for point in axis.points])
    edges = np.array(tree.edges)
    fine = np.union1d(np.linspace(edges[0], edges[-1], _DENSITY_POINTS), axis.points)
    if leaf.theta is not None and edges[-1] > edges[0]:
        density = FittedTransformation(leaf.theta, Support(edges[0], edges[-1]), 0.0).pdf(fine)
    else:
        density = _smooth(edges, leaf.counts, fine)
    density = np.nan_to_num(density)
    highest = density.max()
    at = density[np.searchsorted(fine, axis.points)]
    # The density is unknown outside of the range of the training rows.
    known = (axis.points >= edges[0]) & (axis.points <= edges[-1])
    return np.where(known, at / highest, 0.0) if highest > 0 else np.zeros(len(axis))


def _smooth(edges: Floats, counts: Floats, x: Floats) -> Floats:
    """Smooth a histogram with a normal kernel, of Silverman's bandwidth but at least one cell."""
    middles, cell = edges[:-1] / 2 + edges[1:] / 2, edges[1] - edges[0]
    if cell <= 0:
        return np.ones(len(x))
    n = counts.sum()
    mean = counts @ middles / n
    width = max(0.9 * np.sqrt(counts @ (middles - mean) ** 2 / n) * n**-0.2, cell)
    density: Floats = np.exp(-(((x[:, None] - middles) / width) ** 2) / 2) @ counts
    return density
