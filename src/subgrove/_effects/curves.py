"""Curves that are means of predictions: partial dependence, ICE curves, and conditional means (M-plots).

Each kind of curve takes the same steps: a layout of grid points, predictions of rows, moments of the predictions at
each point, and the curve. A table in memory is one chunk of rows; for large data, the layout comes from a sample and
the moments of all chunks are merged. Box statistics and ICE curves need rows in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.moments import Moments, interval_ends
from subgrove._core.weights import square_weights
from subgrove._effects.grid import GridAxis, GridSpec, axis_of, edges_of, has_levels, positions_of
from subgrove._effects.subgroup_rows import BOX, PredictionRequest, SubgroupRows, box_statistics


@dataclass(frozen=True, eq=False)
class IceCurves:
    """One curve for each row: `values` are (points, outputs, rows), `rows` their indices in X.

    `centred` states whether they are differences from the first point.
    """

    values: Floats
    rows: Rows
    weights: Floats | None
    centred: bool = False


@dataclass(frozen=True, eq=False)
class Curve:
    """The effect of a feature in one subgroup; of two features, a surface.

    Attributes
    ----------
    subgroup : int
        Index of the subgroup.
    axes : tuple of GridAxis
        Points of the feature, or of each of two features.
    n : float array
        For each point the number of rows (sum of weights) behind its estimate.
    estimate, std_error : float array (points, outputs)
        For two features, points of the second one vary fastest.
    spread : float array (points, 7, outputs), or None
        Tukey's box statistics of the predictions at each level.
    ice : IceCurves or None
        A curve for each row.
    opacity : float array or None
        For each point the density of the feature in the subgroup, relative to its maximum.
    """

    subgroup: int
    axes: tuple[GridAxis, ...]
    n: Floats
    estimate: Floats
    std_error: Floats
    spread: Floats | None = None
    ice: IceCurves | None = None
    opacity: Floats | None = None


@dataclass(frozen=True, eq=False)
class CurveLayout:
    """Grid points of the curve of a subgroup.

    Attributes
    ----------
    subgroup : int
        Index of the subgroup.
    axes : tuple of GridAxis
        Points of the one or two features; for "ale" of a numeric feature, the borders of intervals.
    edges : float array or None
        Borders of the intervals of an M-plot whose points are means within intervals.
    user_grid : bool
        Whether the points are the user's; "ale" then excludes rows outside of them.
    """

    subgroup: int
    axes: tuple[GridAxis, ...]
    edges: Floats | None = None
    user_grid: bool = False


@dataclass(frozen=True, eq=False)
class CurveSummary:
    """Predictions of one curve, summarized over the rows of one or more chunks.

    Attributes
    ----------
    n : float
        Number of rows (sum of weights).
    counts, mean, m2 : float array
        Number of rows, mean and sum of squared deviations: of the predictions, (points, outputs); of the steps of
        "ale", (outputs, intervals).
    spread, ice
        As in `Curve`, for rows in memory.
    """

    n: float
    counts: Floats
    mean: Floats
    m2: Floats
    spread: Floats | None = None
    ice: IceCurves | None = None


class CurveKind(ABC):
    """A kind of curve."""

    @abstractmethod
    def layout(self, rows: SubgroupRows, grids: Sequence[GridSpec], grid_resolution: int) -> CurveLayout | None:
        """Choose the grid points; None if no row lies on the user's grid."""

    def used_rows(self, rows: SubgroupRows, layout: CurveLayout) -> SubgroupRows:
        """Return the rows that contribute to the curve; all by default."""
        return rows

    @abstractmethod
    def requests(self, rows: SubgroupRows, layout: CurveLayout) -> Sequence[PredictionRequest]:
        """Request predictions for the used rows of a chunk, or for those of all rows in memory."""

    @abstractmethod
    def summary(self, rows: SubgroupRows, layout: CurveLayout, predictions: Sequence[Floats]) -> CurveSummary:
        """Summarize the predictions of the used rows, one array for each request."""

    def curve(self, layout: CurveLayout, summary: CurveSummary) -> Curve:
        """Compute the curve from the summary of all rows: means and standard errors, NaN for too few rows."""
        counts = summary.counts
        mean = np.where(counts > 0, summary.mean, np.nan)
        several = np.where(counts > 1, counts, 2.0)
        error = np.where(counts > 1, np.sqrt(summary.m2 / (several - 1) / several), np.nan)
        return Curve(layout.subgroup, layout.axes, counts[:, 0], mean, error, summary.spread, summary.ice)


class PartialDependence(CurveKind):
    """Equation (2) of the paper in one subgroup: the mean prediction of its rows at each grid point."""

    def layout(self, rows: SubgroupRows, grids: Sequence[GridSpec], grid_resolution: int) -> CurveLayout | None:
        """Choose the grid points of each feature."""
        each = zip(rows.data.infos, rows.x, grids, strict=True)
        axes = tuple(axis_of(info, x, rows.weights, grid, grid_resolution) for info, x, grid in each)
        return CurveLayout(rows.subgroup, axes)

    def requests(self, rows: SubgroupRows, layout: CurveLayout) -> Sequence[PredictionRequest]:
        """Request all rows at each point, or at each pair of points; the predictions are summarized at once."""
        box = not rows.is_chunk and len(layout.axes) == 1 and has_levels(layout.axes[0].info)
        summarize = partial(summarize_points, weights=rows.weights, is_chunk=rows.is_chunk, box=box)
        return [PredictionRequest(rows, rows.blocks(layout.axes), summarize)]

    def summary(self, rows: SubgroupRows, layout: CurveLayout, predictions: Sequence[Floats]) -> CurveSummary:
        """Return the moments at each point."""
        return _summary_of_points(rows.n, predictions[0])


class IndividualCurves(PartialDependence):
    """ICE curves: the predictions of each row at each grid point, and their means."""

    def requests(self, rows: SubgroupRows, layout: CurveLayout) -> Sequence[PredictionRequest]:
        """Request the same predictions, without summarizing them."""
        return [PredictionRequest(rows, rows.blocks(layout.axes), np.array)]

    def summary(self, rows: SubgroupRows, layout: CurveLayout, predictions: Sequence[Floats]) -> CurveSummary:
        """Return the moments at each point, and the curves."""
        return _summary_of_ice(layout, IceCurves(predictions[0], rows.rows, rows.weights))


class ConditionalMean(CurveKind):
    """M-plot: the mean prediction of the rows with about the same value of the feature, without replacing any."""

    def layout(self, rows: SubgroupRows, grids: Sequence[GridSpec], grid_resolution: int) -> CurveLayout | None:
        """Choose levels, the user's points, or the means within intervals between quantiles."""
        rows, grid, (info,) = rows.with_values(), grids[0], rows.data.infos
        if has_levels(info) and not isinstance(grid, str):
            rows = rows.where(np.isin(rows.x[0], grid))
        if not len(rows.rows):
            return None
        (x,), weights = rows.x, rows.weights
        if has_levels(info) or not isinstance(grid, str):
            return CurveLayout(rows.subgroup, (axis_of(info, x, weights, grid, grid_resolution),))
        edges = edges_of(info, x, weights, grid, grid_resolution).points
        cell, _ = interval_ends(edges, x)
        sums = np.bincount(cell, weights=x if weights is None else x * weights)
        return CurveLayout(rows.subgroup, (GridAxis(info, sums / np.bincount(cell, weights=weights)),), edges)

    def used_rows(self, rows: SubgroupRows, layout: CurveLayout) -> SubgroupRows:
        """Return the rows with a value on the grid."""
        rows, (axis,) = rows.with_values(), layout.axes
        return rows.where(np.isin(rows.x[0], axis.points)) if has_levels(axis.info) else rows

    def requests(self, rows: SubgroupRows, layout: CurveLayout) -> Sequence[PredictionRequest]:
        """Request the observed rows."""
        return [PredictionRequest(rows, [rows.unchanged()], np.array)]

    def summary(self, rows: SubgroupRows, layout: CurveLayout, predictions: Sequence[Floats]) -> CurveSummary:
        """Return the moments of the rows that are assigned to each point."""
        values, (axis,), w = predictions[0], layout.axes, rows.weights
        cell = _cells(rows, layout)
        if rows.is_chunk:
            moments = Moments.of(np.ascontiguousarray(values[0]), cell, len(axis), w)
            return CurveSummary(rows.n, moments.n.T, moments.mean.T, moments.m2.T)
        points = []
        for point in range(len(axis)):
            mine = cell == point
            own = np.ascontiguousarray(values[:, :, mine])
            points.append(summarize_points(own, None if w is None else w[mine], box=has_levels(axis.info)))
        return _summary_of_points(rows.n, np.concatenate(points))


def summarize_points(values: Floats, weights: Floats | None, is_chunk: bool = False, box: bool = False) -> Floats:
    """Summarize predictions over rows: (blocks, outputs, rows) to (blocks, 3, outputs).

    The three are number of rows, mean and sum of squared deviations; with `box`, Tukey's statistics follow.
    Moments that are merged over chunks are corrected for rounding first; those of a single table are not.
    """
    moments = _mergeable_moments(values, weights) if is_chunk else _two_pass_moments(values, weights)
    if not box:
        return moments
    boxes = np.full((len(values), len(BOX), values.shape[1]), np.nan)
    if values.shape[2]:
        for block, output in np.ndindex(values.shape[:2]):
            boxes[block, :, output] = box_statistics(values[block, output], weights)
    return np.concatenate([moments, boxes], axis=1)


def _two_pass_moments(values: Floats, weights: Floats | None) -> Floats:
    n = float(values.shape[2]) if weights is None else float(weights.sum())
    if not n:
        return np.zeros((len(values), 3, values.shape[1]))
    mean = (values if weights is None else values * weights).sum(axis=2) / n
    squares = values - mean[:, :, None]
    with np.errstate(over="ignore"):
        squares *= squares
    if weights is not None:
        squares *= square_weights(weights)
    return np.stack([np.full(mean.shape, n), mean, squares.sum(axis=2)], axis=1)


def _mergeable_moments(values: Floats, weights: Floats | None) -> Floats:
    moments = Moments.of(values.reshape(-1, values.shape[2]), weights=weights)
    shape = values.shape[:2]
    return np.stack([part.reshape(shape) for part in (moments.n, moments.mean, moments.m2)], axis=1)


def _cells(rows: SubgroupRows, layout: CurveLayout) -> Rows:
    """Return the point of an M-plot that each row is assigned to."""
    (axis,), x = layout.axes, rows.x[0]
    if has_levels(axis.info):
        return positions_of(axis)[x.astype(np.intp)]
    if layout.edges is not None:
        return interval_ends(layout.edges, x)[0]
    return np.searchsorted(axis.points[:-1] / 2 + axis.points[1:] / 2, x, side="left")


def mean_of_ice(subgroup: int, axes: tuple[GridAxis, ...], ice: IceCurves) -> Curve:
    """Return the mean of ICE curves, with these curves."""
    layout = CurveLayout(subgroup, axes)
    return PartialDependence().curve(layout, _summary_of_ice(layout, ice))


def centre_ice(curve: Curve) -> Curve:
    """Return ICE curves and their mean as differences from their first point."""
    assert curve.ice is not None
    ice = replace(curve.ice, values=curve.ice.values - curve.ice.values[:1], centred=True)
    return replace(mean_of_ice(curve.subgroup, curve.axes, ice), opacity=curve.opacity)


def _summary_of_ice(layout: CurveLayout, ice: IceCurves) -> CurveSummary:
    n = float(len(ice.rows) if ice.weights is None else ice.weights.sum())
    points = summarize_points(ice.values, ice.weights, box=has_levels(layout.axes[0].info))
    return replace(_summary_of_points(n, points), ice=ice)


def _summary_of_points(n: float, points: Floats) -> CurveSummary:
    """Unpack the result of `summarize_points`."""
    spread = points[:, 3:] if points.shape[1] > 3 else None
    return CurveSummary(n, points[:, 0], points[:, 1], points[:, 2], spread)
