"""Accumulated local effects (Apley and Zhu 2020): differences between neighbouring values, accumulated and centred.

Of two numeric features: their interaction, without the effects of each. The second difference of the prediction over a
cell of the grid is averaged over the rows in the cell, and accumulated. The effects of the single features that remain
are removed, and the surface is centred. A cell without rows has the difference of the nearest cell with rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.moments import Moments, interval_ends
from subgrove._core.weights import square_weights
from subgrove._data.table import Table, read_table
from subgrove._effects.curves import Curve, CurveKind, CurveLayout, CurveSummary
from subgrove._effects.grid import GridAxis, GridSpec, axis_of, edges_of, has_levels, positions_of
from subgrove._effects.subgroup_rows import PredictionRequest, SubgroupRows
from subgrove.exceptions import ParameterError

_MAX_BINS = 1000  # distribution functions of columns with more distinct values are compared at this many quantiles


class AccumulatedEffects(CurveKind):
    """The accumulated local effect in one subgroup; rows without a value of the feature are excluded."""

    def layout(self, rows: SubgroupRows, grids: Sequence[GridSpec], grid_resolution: int) -> CurveLayout | None:
        """Choose levels and their order, or borders of intervals with about the same number of rows."""
        rows, grid, (info,) = rows.with_values(), grids[0], rows.data.infos
        if has_levels(info):
            axis = _level_axis(rows, grid)
            return CurveLayout(rows.subgroup, (axis,)) if len(axis) else None
        edges = edges_of(info, rows.x[0], rows.weights, grid, grid_resolution)
        return CurveLayout(rows.subgroup, (edges,), user_grid=not isinstance(grid, str))

    def used_rows(self, rows: SubgroupRows, layout: CurveLayout) -> SubgroupRows:
        """Return the rows with a value on the axis, or within the user's grid."""
        rows, axis = rows.with_values(), layout.axes[0]
        return rows.where(np.isin(rows.x[0], axis.points)) if has_levels(axis.info) else _within_grid(rows, layout)

    def requests(self, rows: SubgroupRows, layout: CurveLayout) -> Sequence[PredictionRequest]:
        """Request each row at the borders of its interval, or at its own level and the adjacent ones."""
        (axis,) = layout.axes
        if has_levels(axis.info):
            return _level_requests(rows, axis)
        ends = zip(("left", "right"), interval_ends(axis.points, rows.x[0]), strict=True)
        blocks = [rows.block_of([axis.points[at]], f"{side} borders of intervals") for side, at in ends]
        return [PredictionRequest(rows, blocks, np.array)]

    def summary(self, rows: SubgroupRows, layout: CurveLayout, predictions: Sequence[Floats]) -> CurveSummary:
        """Return moments of the steps, (outputs, intervals), or of the steps between levels."""
        (axis,) = layout.axes
        if has_levels(axis.info):
            rank, steps = _level_steps(rows, axis, predictions)
            # The moments of the sum are needed for the covariance of steps up and down.
            return summary_of_cells(rows, np.concatenate([*steps, steps[0] + steps[1]]), rank, len(axis))
        left, right = predictions[0]
        interval, _ = interval_ends(axis.points, rows.x[0])
        return summary_of_cells(rows, right - left, interval, max(len(axis) - 1, 1))

    def curve(self, layout: CurveLayout, summary: CurveSummary) -> Curve:
        """Accumulate the mean steps, and centre the curve."""
        (axis,), n = layout.axes, summary.n
        if has_levels(axis.info):
            estimate, error = _accumulate_levels(axis, summary)
        elif len(axis) < 2:
            estimate = error = np.zeros((len(axis), len(summary.mean)))
        else:
            estimate, error = _accumulate_intervals(n, summary.counts[0], summary.mean, summary.m2)
        return Curve(layout.subgroup, layout.axes, np.full(len(axis), n), estimate, error)


def _level_requests(rows: SubgroupRows, axis: GridAxis) -> list[PredictionRequest]:
    """Request each row at its own level, the next and the previous one: at most three predictions for each row."""
    requests = [PredictionRequest(rows, [rows.unchanged()], np.array)]
    rank, moves = _moves(rows, axis)
    for mask, offset, text in moves:
        if mask.any():
            some, points = rows.where(mask), axis.points[rank[mask] + offset]
            requests.append(PredictionRequest(some, [some.block_of([points], text)], np.array))
    return requests


def _level_steps(rows: SubgroupRows, axis: GridAxis, predictions: Sequence[Floats]) -> tuple[Rows, Floats]:
    """Return the position of each row's level, and its steps to the next and from the previous level.

    The steps are (2, outputs, rows), 0 beyond the last and the first level.
    """
    remaining = iter(predictions)
    own = next(remaining)[0]
    rank, moves = _moves(rows, axis)
    steps = np.zeros((2, *own.shape))
    for line, (mask, offset, _) in zip(steps, moves, strict=True):
        if mask.any():
            line[:, mask] = offset * (next(remaining)[0] - own[:, mask])
    return rank, steps


def summary_of_cells(rows: SubgroupRows, values: Floats, cell: Rows, n_cells: int) -> CurveSummary:
    """Return moments of values (lines, rows) in each cell; those of chunks are corrected for rounding, to be merged."""
    if rows.is_chunk:
        moments = Moments.of(values, cell, n_cells, rows.weights)
        return CurveSummary(rows.n, moments.n, moments.mean, moments.m2)

    def sums(lines: Floats) -> Floats:
        return np.stack([np.bincount(cell, weights=line, minlength=n_cells) for line in lines])

    w = np.ones(len(cell)) if rows.weights is None else rows.weights
    mass = sums(w[None])
    mean = sums(values * w) / np.where(mass > 0, mass, 1.0)
    squares = sums((values - mean[:, cell]) ** 2 * square_weights(w))
    return CurveSummary(rows.n, np.broadcast_to(mass, mean.shape), mean, squares)


def _moves(rows: SubgroupRows, axis: GridAxis) -> tuple[Rows, tuple[tuple[npt.NDArray[np.bool_], int, str], ...]]:
    """Return the position of each row's level, and the rows that move to the next and to the previous level."""
    rank = positions_of(axis)[rows.x[0].astype(np.intp)]
    return rank, ((rank < len(axis) - 1, 1, "next level"), (rank > 0, -1, "previous level"))


def _accumulate_intervals(n: float, mass: Floats, mean: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Return the curve and its standard error from the steps over intervals.

    Row i of interval k moves point p by reach[p, k] * (step_i - mean_k) / mass_k - middle_k / n. The second term is due
    to centring: `middle` is the curve at the middle of the interval, whose mean over rows is 0. Within an interval the
    first term has mean 0 and the second is constant, so their squares are added.
    """
    n_steps = len(mass)
    # A step moves the centre by the share of rows to its right, and of half of its own rows.
    share = (mass.sum() - np.cumsum(mass) + mass / 2) / mass.sum()
    reach = np.tri(n_steps + 1, n_steps, -1) - share
    curve = reach @ mean.T
    middle = curve[:-1] / 2 + curve[1:] / 2
    centre = mass @ middle**2 / n / (n - 1) if n > 1 else np.nan
    return curve, np.sqrt(reach**2 @ _step_variances(mass, squares).T + centre)


def _step_variances(mass: Floats, squares: Floats) -> Floats:
    """Return the variance of the mean step of each interval; 0 for empty intervals.

    Intervals with a single row get the pooled variance of the others; NaN if all have a single row.
    """
    several = mass >= 2
    if not several.any():
        return np.full(squares.shape, np.nan)
    degrees = np.where(several, mass - 1, 1.0)
    pooled = squares[:, several].sum(axis=1, keepdims=True) / degrees[several].sum()
    variance = np.where(several, squares / degrees, pooled)
    return np.where(mass > 0, variance / np.where(mass > 0, mass, 1.0), 0.0)


def _accumulate_levels(axis: GridAxis, summary: CurveSummary) -> tuple[Floats, Floats]:
    """Return the curve and its standard error from the moments of steps between levels.

    A step between two levels is the mean over the rows of both. A row between the first and the last level contributes
    to two steps and to the centre; its three contributions are added before squaring.
    """
    n_outputs, n_steps, n = len(summary.mean) // 3, len(axis) - 1, summary.n
    if n_steps < 1:
        return np.zeros((len(axis), n_outputs)), np.zeros((len(axis), n_outputs))
    at, (up, down) = summary.counts[0], summary.mean[: 2 * n_outputs].reshape(2, n_outputs, -1)
    mass = at[:-1] + at[1:]
    mean = (at[:-1] * up[:, :-1] + at[1:] * down[:, 1:]) / mass
    reach = np.tri(n_steps + 1, n_steps, -1) - (1 - np.cumsum(at)[:-1] / at.sum())
    curve = reach @ mean.T
    # One degree of freedom is lost by the mean; fractional weights may sum to less than two rows.
    scale = np.sqrt(mass * np.maximum(mass - 1, mass / 2))
    centre = curve.T / np.sqrt(n * (n - 1)) if n > 1 else np.full(curve.T.shape, np.nan)
    up2, down2, both2 = summary.m2.reshape(3, n_outputs, -1)
    none, nothing = np.zeros(1), np.zeros((n_outputs, 1))
    gap_up, gap_down = up - np.append(mean, nothing, axis=1), down - np.append(nothing, mean, axis=1)
    error = np.empty((len(reach), n_outputs))
    for point, coefficients in enumerate(reach):
        by_up, by_down = np.append(coefficients / scale, none), np.append(none, coefficients / scale)
        squares = by_up**2 * up2 + by_down**2 * down2 + by_up * by_down * (both2 - up2 - down2)
        error[point] = np.sqrt((squares + at * (by_up * gap_up + by_down * gap_down - centre) ** 2).sum(axis=1))
    return curve, error


def _level_axis(rows: SubgroupRows, grid: GridSpec) -> GridAxis:
    """Return the levels that rows of the subgroup have, in the order of the curve."""
    (info,) = rows.data.infos
    points = axis_of(info, rows.x[0], rows.weights, grid, 0).points
    rows = rows.where(np.isin(rows.x[0], points))
    axis = GridAxis(info, points[np.isin(points, rows.x[0])])
    if len(axis) and info.kind == "nominal" and isinstance(grid, str):
        return GridAxis(info, _order_by_similarity(rows, axis.points))
    return axis


def _order_by_similarity(rows: SubgroupRows, levels: Floats) -> Floats:
    """Order the levels by multidimensional scaling of their distances to one dimension.

    The distance of two levels is the sum over the other columns of the distance between their distributions:
    Kolmogorov-Smirnov for numeric columns, total variation for categorical ones (Apley and Zhu 2020). Of the two
    directions, the one with the first level in the first half is used.
    """
    if len(levels) < 3:
        return levels
    table = read_table(rows.data.X, lenient=True)
    code = np.searchsorted(levels, rows.x[0])
    weights = np.ones(len(rows.rows)) if rows.weights is None else rows.weights
    names = [column.name for column in table.columns if column.name != rows.data.infos[0].name]
    distances = np.zeros(())
    for name in names:
        distances = distances + _level_distances(table, name, rows.rows, code, weights, len(levels))
    if not distances.any():
        return levels
    centre = np.eye(len(distances)) - 1 / len(distances)
    _, vectors = np.linalg.eigh(-centre @ distances**2 @ centre / 2)
    coordinates = vectors[:, -1] if vectors[0, -1] <= 0 else -vectors[:, -1]
    return levels[np.argsort(coordinates, kind="stable")]


def _level_distances(table: Table, name: str, rows: Rows, code: Rows, weights: Floats, n_levels: int) -> Floats:
    """Return the distance between the distributions of one column, for each pair of levels."""
    column = table.series(name)
    values = column.values[rows]
    if column.info.is_nominal:
        shares = _shares(values, code, weights, n_levels)
        return np.stack([np.abs(shares - one).sum(axis=1) / 2 for one in shares])
    present = ~np.isnan(values)
    cumulative = np.cumsum(_shares(values[present], code[present], weights[present], n_levels), axis=1)
    return np.stack([np.abs(cumulative - one).max(axis=1, initial=0.0) for one in cumulative])


def _shares(values: npt.NDArray[np.generic], code: Rows, weights: Floats, n_levels: int) -> Floats:
    """Return for each level the shares of the distinct values, or of bins if there are many."""
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) > _MAX_BINS:
        place = place * _MAX_BINS // len(distinct)
    n = int(place.max(initial=-1)) + 1
    counts = np.bincount(code * n + place, weights=weights, minlength=n_levels * n).reshape(n_levels, n)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), np.finfo(float).tiny))


class AccumulatedInteraction(CurveKind):
    """The accumulated local effect of two features in one subgroup; rows without a value of either are excluded."""

    def layout(self, rows: SubgroupRows, grids: Sequence[GridSpec], grid_resolution: int) -> CurveLayout | None:
        """Choose borders of intervals with about the same number of rows, for each feature."""
        if levels := [info.name for info in rows.data.infos if has_levels(info)]:
            raise ParameterError(f"kind='ale' of two features needs numeric ones; {levels[0]!r} has levels. Use 'pdp'.")
        rows = rows.with_values()
        each = zip(rows.data.infos, rows.x, grids, strict=True)
        axes = tuple(edges_of(info, x, rows.weights, grid, grid_resolution) for info, x, grid in each)
        return CurveLayout(rows.subgroup, axes, user_grid=any(not isinstance(grid, str) for grid in grids))

    def used_rows(self, rows: SubgroupRows, layout: CurveLayout) -> SubgroupRows:
        """Return the rows with values of both features, within the user's grid."""
        return _within_grid(rows.with_values(), layout)

    def requests(self, rows: SubgroupRows, layout: CurveLayout) -> Sequence[PredictionRequest]:
        """Request each row at the four corners of its cell."""
        ends = [interval_ends(axis.points, x) for axis, x in zip(layout.axes, rows.x, strict=True)]
        blocks = [
            rows.block_of([layout.axes[0].points[one], layout.axes[1].points[two]], "corners of cells")
            for one in ends[0]
            for two in ends[1]
        ]
        return [PredictionRequest(rows, blocks, np.array)]

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


def _within_grid(rows: SubgroupRows, layout: CurveLayout) -> SubgroupRows:
    """Return the rows between the ends of the user's points; all if there are none."""
    each = zip(layout.axes, rows.x, strict=True)
    inside = [(x >= axis.points[0]) & (x <= axis.points[-1]) for axis, x in each if layout.user_grid]
    return rows.where(np.all(inside, axis=0)) if inside else rows


def _shape(layout: CurveLayout) -> tuple[int, int]:
    """Return the numbers of intervals of the features; at least one."""
    one, two = (max(len(axis) - 1, 1) for axis in layout.axes)
    return one, two


def _accumulated(mean: Floats, weights: Floats) -> Floats:
    """Return the surface at the corners of cells, from mean differences and weights (intervals, intervals)."""
    empty = weights == 0
    if empty.any():
        from scipy.ndimage import distance_transform_edt

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
