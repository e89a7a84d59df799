"""Accumulated local effects of two numeric features: their interaction, without the effects of each (Apley, Zhu 2020).

The second difference of the prediction over a cell of the grid is averaged over the rows in the cell, and accumulated.
The effects of the single features that remain are removed, and the surface is centred. A cell without rows has the
difference of the nearest cell with rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import distance_transform_edt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.moments import interval_ends
from subgrove._effects.ale import summary_of_cells
from subgrove._effects.curves import Curve, CurveKind, CurveLayout, CurveSummary
from subgrove._effects.grid import GridSpec, edges_of, has_levels
from subgrove._effects.predict import PredictionRequest
from subgrove._effects.subgroup_rows import SubgroupRows
from subgrove.exceptions import ParameterError


class AccumulatedInteraction(CurveKind):
    """The accumulated local effect of two features in one subgroup; rows without a value of either are excluded."""

    def layout(self, rows: SubgroupRows, grids: Sequence[GridSpec], grid_resolution: int) -> CurveLayout | None:
        """Choose borders of intervals with about the same number of rows, for each feature."""
        if levels := [info.name for info in rows.data.infos if has_levels(info)]:
            raise ParameterError(f"kind='ale' of two features needs numeric ones; {levels[0]!r} has levels. Use 'pdp'.")
        rows = _with_values(rows)
        each = zip(rows.data.infos, rows.x, grids, strict=True)
        axes = tuple(edges_of(info, x, rows.weights, grid, grid_resolution) for info, x, grid in each)
        return CurveLayout(rows.subgroup, axes, user_grid=any(not isinstance(grid, str) for grid in grids))

    def used_rows(self, rows: SubgroupRows, layout: CurveLayout) -> SubgroupRows:
        """Return the rows with values of both features, within the user's grid."""
        rows = _with_values(rows)
        inside = np.ones(len(rows.rows), dtype=np.bool_)
        for axis, x in zip(layout.axes, rows.x, strict=True):
            inside &= (x >= axis.points[0]) & (x <= axis.points[-1]) | (not layout.user_grid)
        return rows.where(inside)

    def requests(self, rows: SubgroupRows, layout: CurveLayout) -> Sequence[PredictionRequest]:
        """Request each row at the four corners of its cell."""
        ends = [interval_ends(axis.points, x) for axis, x in zip(layout.axes, rows.x, strict=True)]
        blocks = [
            rows.block_of([layout.axes[0].points[one], layout.axes[1].points[two]], "corners of cells")
            for one in ends[0]
            for two in ends[1]
        ]
        return [rows.request(blocks, np.array)]

    def summary(self, rows: SubgroupRows, layout: CurveLayout, predictions: Sequence[Floats]) -> CurveSummary:
        """Return moments of the second differences in each cell, (outputs, cells)."""
        low, high_second, high_first, high = predictions[0]
        cells = [interval_ends(axis.points, x)[0] for axis, x in zip(layout.axes, rows.x, strict=True)]
        shape = _shape(layout)
        cell: Rows = cells[0] * shape[1] + cells[1]
        return summary_of_cells(rows, (high - high_first) - (high_second - low), cell, shape[0] * shape[1])

    def curve(self, layout: CurveLayout, summary: CurveSummary) -> Curve:
        """Accumulate the differences, remove the effects of the single features, and centre; no standard errors."""
        shape = _shape(layout)
        weights = summary.counts[0].reshape(shape)
        surfaces = [_accumulated(mean.reshape(shape), weights) for mean in summary.mean]
        points = tuple(len(axis) for axis in layout.axes)
        estimate = np.stack([surface[: points[0], : points[1]].ravel() for surface in surfaces], axis=1)
        n = np.full(len(estimate), summary.n)
        return Curve(layout.subgroup, layout.axes, n, estimate, np.full(estimate.shape, np.nan))


def _with_values(rows: SubgroupRows) -> SubgroupRows:
    return rows.where(np.asarray(~np.isnan(rows.x).any(axis=0)))


def _shape(layout: CurveLayout) -> tuple[int, int]:
    """Return the numbers of intervals of the features; at least one."""
    one, two = (max(len(axis) - 1, 1) for axis in layout.axes)
    return one, two


def _accumulated(mean: Floats, weights: Floats) -> Floats:
    """Return the surface at the corners of cells, from mean differences and weights (intervals, intervals)."""
    empty = weights == 0
    if empty.any():
        mean = mean[tuple(distance_transform_edt(empty, return_distances=False, return_indices=True))]
    surface = np.zeros((mean.shape[0] + 1, mean.shape[1] + 1))
    surface[1:, 1:] = mean.cumsum(axis=0).cumsum(axis=1)
    one, two = _single(surface, weights), _single(surface.T, weights.T)
    surface = surface - one[:, None] - two
    corners = surface[1:, 1:] + surface[1:, :-1] + surface[:-1, 1:] + surface[:-1, :-1]
    return np.asarray(surface - (weights * corners / 4).sum() / weights.sum())


def _single(surface: Floats, weights: Floats) -> Floats:
    """Return the accumulated effect of the first feature on a surface."""
    steps = np.diff(surface, axis=0)
    mass = weights.sum(axis=1)
    mean = (weights * (steps[:, 1:] + steps[:, :-1]) / 2).sum(axis=1) / np.where(mass > 0, mass, 1.0)
    return np.concatenate(([0.0], np.cumsum(mean)))
