"""Curves from sums: points that are laid out on a sample, moments of each piece's rows, and the curve of all rows.

Every kind of curve is a mean over rows at points or in cells, so moments (weight, mean, sum of squares) by point or
cell are all that is needed of a piece. They merge into those of all rows. `LAID_OUT`, `SUMMED` and `CURVES` have a
function for each kind: from the sample to a layout, from rows and a layout to moments, and from moments to the curve.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.moments import Moments
from subgrove._core.quantiles import interval_ends
from subgrove._effects.ale import curve_of_steps, flat, level_axis
from subgrove._effects.curves import Curve, axes_of, blocks_of, cells_of
from subgrove._effects.grid import GridAxis, GridSpec, edges_of, has_levels
from subgrove._effects.predict import PredictionRequest
from subgrove._effects.subgroup_rows import SubgroupRows

Cells = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the curve of a subgroup has points.

    Attributes
    ----------
    subgroup : int
        Number of the subgroup.
    axes : tuple of Axis
        Points of the feature, or of two; of "ale" with numbers the borders of intervals.
    edges : float array or None
        Borders of the intervals that rows are counted to, of an M-plot whose points are means within them.
    own : bool
        Whether the user gave the points: "ale" then leaves out rows beyond them.
    """

    subgroup: int
    axes: tuple[GridAxis, ...]
    edges: Floats | None = None
    own: bool = False


@dataclass(frozen=True, eq=False)
class Summing:
    """What the rows of a piece ask the model for, and the moments of what was kept."""

    works: Sequence[PredictionRequest]
    finish: Callable[[list[Floats]], Moments]


# On the sample: where curves have points. None if no row is within the user's grid.


def _lay_out_pdp(part: SubgroupRows, wanted: Sequence[GridSpec], grid_resolution: int) -> Layout | None:
    return Layout(part.subgroup, axes_of(part, wanted, grid_resolution))


def _lay_out_ale(part: SubgroupRows, wanted: Sequence[GridSpec], grid_resolution: int) -> Layout | None:
    part, way, (info,) = part.where(~np.isnan(part.x[0])), wanted[0], part.source.infos
    if has_levels(info):
        axis = level_axis(part, way)[1]
        return Layout(part.subgroup, (axis,)) if len(axis) else None
    return Layout(
        part.subgroup, (edges_of(info, part.x[0], part.weights, way, grid_resolution),), own=not isinstance(way, str)
    )


def _lay_out_mplot(part: SubgroupRows, wanted: Sequence[GridSpec], grid_resolution: int) -> Layout | None:
    part, way, (info,) = part.where(~np.isnan(part.x[0])), wanted[0], part.source.infos
    if has_levels(info) and not isinstance(way, str):
        part = part.where(np.isin(part.x[0], way))
    if not len(part.rows):
        return None
    axis, _ = cells_of(part, way, grid_resolution)
    between = isinstance(way, str) and not has_levels(info)
    edges = edges_of(info, part.x[0], part.weights, way, grid_resolution).points if between else None
    return Layout(part.subgroup, (axis,), edges)


# On a piece: moments of its rows, lines by cells. None if none of them counts.


def _sum_pdp(part: SubgroupRows, layout: Layout) -> Summing | None:
    """A line for each point and output, one cell."""

    def keep(values: Floats) -> Floats:
        moments = Moments.of(values.reshape(-1, values.shape[2]), weights=part.weights).array
        return moments.reshape(5, len(values), values.shape[1]).transpose(1, 0, 2)

    def finish(kept: list[Floats]) -> Moments:
        return Moments.from_array(kept[0].transpose(1, 0, 2).reshape(5, -1, 1))

    return Summing([PredictionRequest(part.frames, blocks_of(part, layout.axes), keep)], finish)


def _sum_ale(part: SubgroupRows, layout: Layout) -> Summing | None:
    part = part.where(~np.isnan(part.x[0]))
    return (_sum_levels if has_levels(part.source.infos[0]) else _sum_steps)(part, layout)


def _sum_steps(part: SubgroupRows, layout: Layout) -> Summing | None:
    """A line for each output: steps over intervals, which are the cells."""
    edges = layout.axes[0].points
    if layout.own:
        part = part.where((part.x[0] >= edges[0]) & (part.x[0] <= edges[-1]))
    if not len(part.rows):
        return None
    interval, upper = interval_ends(edges, part.x[0])
    ends = [(edges[interval], "left borders of intervals"), (edges[upper], "right borders of intervals")]
    blocks = [part.block_of(points, text) for points, text in ends]

    def finish(kept: list[Floats]) -> Moments:
        left, right = kept[0]
        return Moments.of(right - left, interval, max(len(edges) - 1, 1), part.weights)

    return Summing([PredictionRequest(part.frames, blocks, np.array)], finish)


def _sum_levels(part: SubgroupRows, layout: Layout) -> Summing | None:
    """Lines up, down and both for each output: to the next level, from the one before, and their sum; levels are cells.

    That of the sum says how up and down vary together.
    """
    axis = layout.axes[0]
    part = part.where(np.isin(part.x[0], axis.points))
    if not len(part.rows):
        return None
    rank = _places(axis)[part.x[0].astype(np.intp)]
    works = [PredictionRequest(part.frames, [part.unchanged()], np.array)]
    moved = [(rank < len(axis) - 1, 1, "next level"), (rank > 0, -1, "level before")]
    for mine, by, text in moved:
        if mine.any():
            some = part.where(mine)
            works.append(PredictionRequest(some.frames, [some.block_of(axis.points[rank[mine] + by], text)], np.array))

    def finish(kept: list[Floats]) -> Moments:
        answers = iter(kept)
        own = next(answers)[0]
        steps = np.zeros((2, *own.shape))
        for line, (mine, by, _) in zip(steps, moved, strict=True):
            if mine.any():
                line[:, mine] = by * (next(answers)[0] - own[:, mine])
        lines = np.concatenate([steps[0], steps[1], steps[0] + steps[1]])
        return Moments.of(lines, rank, len(axis), part.weights)

    return Summing(works, finish)


def _sum_mplot(part: SubgroupRows, layout: Layout) -> Summing | None:
    """A line for each output; the points are the cells."""
    part, (axis,) = part.where(~np.isnan(part.x[0])), layout.axes
    if has_levels(axis.info):
        part = part.where(np.isin(part.x[0], axis.points))
    if not len(part.rows):
        return None
    cell = _cell(part.x[0], axis, layout.edges)

    def finish(kept: list[Floats]) -> Moments:
        return Moments.of(np.ascontiguousarray(kept[0][0]), cell, len(axis), part.weights)

    return Summing([PredictionRequest(part.frames, [part.unchanged()], np.array)], finish)


def _cell(x: Floats, axis: GridAxis, edges: Floats | None) -> Cells:
    """The point that each row counts for."""
    if has_levels(axis.info):
        return _places(axis)[x.astype(np.intp)]
    if edges is not None:
        return interval_ends(edges, x)[0]
    return np.searchsorted(axis.points[:-1] / 2 + axis.points[1:] / 2, x, side="left")


def _places(axis: GridAxis) -> Cells:
    place = np.zeros(len(axis.info.levels), dtype=np.intp)
    place[axis.points.astype(np.intp)] = np.arange(len(axis))
    return place


# Of all rows: the curve. `n` is the weight of the subgroup's rows.


def _curve_of_pdp(moments: Moments, layout: Layout, n: float, spread: Floats | None) -> Curve:
    grid_resolution = int(np.prod([len(axis) for axis in layout.axes]))
    mean, error = (values.reshape(grid_resolution, -1) for values in _mean_and_error(moments))
    return Curve(layout.subgroup, layout.axes, np.full(grid_resolution, n), mean, error, spread)


def _curve_of_ale(moments: Moments, layout: Layout, n: float, spread: Floats | None) -> Curve:
    axis = layout.axes[0]
    n = float(moments.n[0].sum())  # of rows that have a value
    if has_levels(axis.info):
        return _curve_of_levels(moments, layout.subgroup, axis, n)
    if len(axis) < 2:
        return flat(layout.subgroup, axis, n, len(moments.n))
    return curve_of_steps(layout.subgroup, axis, n, moments.n[0], moments.mean, moments.m2)


def _curve_of_levels(moments: Moments, subgroup: int, axis: GridAxis, n: float) -> Curve:
    """As `_accumulate_levels` of rows in memory has it, with the squares of a level's rows added up from moments."""
    n_outputs, n_steps = len(moments.n) // 3, len(axis) - 1
    if n_steps < 1:
        return flat(subgroup, axis, n, n_outputs)
    up, down = moments.mean[:n_outputs], moments.mean[n_outputs : 2 * n_outputs]
    up2, down2, both2 = moments.m2.reshape(3, n_outputs, -1)
    at = moments.n[0]
    mass = at[:-1] + at[1:]
    # A level without rows, of weight 0, is in the sample alone; its steps are the neighbours'.
    mean = (at[:-1] * up[:, :-1] + at[1:] * down[:, 1:]) / mass
    reach = np.tri(n_steps + 1, n_steps, -1) - (1 - np.cumsum(at)[:-1] / at.sum())
    curve = reach @ mean.T
    scale = np.sqrt(mass * np.maximum(mass - 1, mass / 2))
    centre = curve.T / np.sqrt(n * (n - 1)) if n > 1 else np.full(curve.T.shape, np.nan)
    error = np.empty((len(axis), n_outputs))
    none = np.zeros(1)
    for point, coefficients in enumerate(reach):
        after, before = np.append(coefficients / scale, none), np.append(none, coefficients / scale)
        squares = after**2 * up2 + before**2 * down2 + after * before * (both2 - up2 - down2)
        gap_up = up - np.append(mean, np.zeros((n_outputs, 1)), axis=1)
        gap_down = down - np.append(np.zeros((n_outputs, 1)), mean, axis=1)
        error[point] = np.sqrt((squares + at * (after * gap_up + before * gap_down - centre) ** 2).sum(axis=1))
    return Curve(subgroup, (axis,), np.full(len(axis), n), curve, error)


def _curve_of_mplot(moments: Moments, layout: Layout, n: float, spread: Floats | None) -> Curve:
    mean, error = _mean_and_error(moments)
    return Curve(layout.subgroup, layout.axes, moments.n[0], mean.T, error.T, spread)


def _mean_and_error(moments: Moments) -> tuple[Floats, Floats]:
    """Means and their standard errors; NaN of too few rows."""
    n = moments.n
    mean = np.where(n > 0, moments.mean, np.nan)
    several = np.where(n > 1, n, 2.0)
    return mean, np.where(n > 1, np.sqrt(moments.m2 / (several - 1) / several), np.nan)


LAID_OUT: Mapping[str, Callable[[SubgroupRows, Sequence[GridSpec], int], Layout | None]] = {
    "pdp": _lay_out_pdp,
    "ale": _lay_out_ale,
    "mplot": _lay_out_mplot,
}
SUMMED: Mapping[str, Callable[[SubgroupRows, Layout], Summing | None]] = {
    "pdp": _sum_pdp,
    "ale": _sum_ale,
    "mplot": _sum_mplot,
}
CURVES: Mapping[str, Callable[[Moments, Layout, float, Floats | None], Curve]] = {
    "pdp": _curve_of_pdp,
    "ale": _curve_of_ale,
    "mplot": _curve_of_mplot,
}
