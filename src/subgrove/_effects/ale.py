"""Accumulated local effects (Apley and Zhu 2020): differences between neighbouring values, added up and centred."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.quantiles import interval_ends
from subgrove._effects.curves import Curve, Plan
from subgrove._effects.grid import GridAxis, GridSpec, axis_of, edges_of, has_levels
from subgrove._effects.level_order import by_similarity
from subgrove._effects.predict import PredictionRequest
from subgrove._effects.subgroup_rows import SubgroupRows

Ranks = npt.NDArray[np.intp]


def accumulated(part: SubgroupRows, wanted: Sequence[GridSpec], grid_resolution: int) -> Plan | None:
    """The accumulated effect in one subgroup; rows without a value of the feature are left out.

    None if the user's grid leaves no rows.
    """
    part = part.where(~np.isnan(part.x[0]))
    levels = has_levels(part.source.infos[0])
    return _between_levels(part, wanted[0]) if levels else _between_numbers(part, wanted[0], grid_resolution)


def _between_numbers(part: SubgroupRows, wanted: GridSpec, grid_resolution: int) -> Plan | None:
    """Each row at both borders of its interval: two rows asked for each row."""
    (info,), (x,) = part.source.infos, part.x
    axis = edges_of(info, x, part.weights, wanted, grid_resolution)
    edges = axis.points
    if not isinstance(wanted, str):
        part = part.where((x >= edges[0]) & (x <= edges[-1]))
        (x,) = part.x
    if not len(x):
        return None
    interval, upper = interval_ends(edges, x)
    ends = [(edges[interval], "left borders of intervals"), (edges[upper], "right borders of intervals")]
    blocks = [part.block_of(points, text) for points, text in ends]

    def finish(kept: list[Floats]) -> Curve:
        left, right = kept[0]  # (outputs, rows) each
        return _accumulate_numbers(part, axis, interval, right - left)

    return Plan([PredictionRequest(part.frames, blocks, np.array)], finish)


def _accumulate_numbers(part: SubgroupRows, axis: GridAxis, interval: Ranks, steps: Floats) -> Curve:
    """The curve and its error: that of the steps, and that of how many rows an interval has.

    Row i, of interval k, moves point p by reach[p, k] * (step_i - mean_k) / mass_k - middle_k / n. The second part is
    the centre's: `middle` is the curve halfway through the interval, whose mean over rows is 0. Within an interval the
    first part has mean 0 and the second is the same for all rows, so their squares are added.
    """
    n_steps = len(axis) - 1
    if n_steps < 1:
        return flat(part.subgroup, axis, part.n, len(steps))
    return curve_of_steps(part.subgroup, axis, part.n, *_within(interval, steps, part.weights, n_steps))


def curve_of_steps(subgroup: int, axis: GridAxis, n: float, mass: Floats, mean: Floats, squares: Floats) -> Curve:
    """The curve from steps: of each interval the weight of its rows, and of each output mean and sum of squares."""
    n_steps = len(axis) - 1
    # What is right of a step, and half of the rows at it, moves the centre with it.
    share = (mass.sum() - np.cumsum(mass) + mass / 2) / mass.sum()
    reach = np.tri(n_steps + 1, n_steps, -1) - share
    curve = reach @ mean.T
    middle = curve[:-1] / 2 + curve[1:] / 2
    centre = mass @ middle**2 / n / (n - 1) if n > 1 else np.nan
    error = np.sqrt(reach**2 @ _noise(mass, squares).T + centre)
    return Curve(subgroup, (axis,), np.full(len(axis), n), curve, error)


def _noise(mass: Floats, squares: Floats) -> Floats:
    """Squared error of the mean step of each interval; one without rows adds nothing.

    A lone row has no spread of its own and is given that of the other intervals; NaN if all are alone.
    """
    several = mass >= 2
    if not several.any():
        return np.full(squares.shape, np.nan)
    degrees = np.where(several, mass - 1, 1.0)
    common = squares[:, several].sum(axis=1, keepdims=True) / degrees[several].sum()
    spread = np.where(several, squares / degrees, common)
    return np.where(mass > 0, spread / np.where(mass > 0, mass, 1.0), 0.0)


def _between_levels(part: SubgroupRows, wanted: GridSpec) -> Plan | None:
    """Each row at its own level, at the next and at the one before: at most three rows asked for each row."""
    (info,) = part.source.infos
    part, axis = level_axis(part, wanted)
    if not len(axis):
        return None
    place = np.zeros(len(info.levels), dtype=np.intp)
    place[axis.points.astype(np.intp)] = np.arange(len(axis))
    rank = place[part.x[0].astype(np.intp)]
    moved = [(rank < len(axis) - 1, 1, "next level"), (rank > 0, -1, "level before")]
    works = [PredictionRequest(part.frames, [part.unchanged()], np.array)]
    for mine, by, text in moved:
        if mine.any():
            some = part.where(mine)
            works.append(PredictionRequest(some.frames, [some.block_of(axis.points[rank[mine] + by], text)], np.array))

    def finish(kept: list[Floats]) -> Curve:
        own = kept[0][0]
        if len(axis) < 2:
            return flat(part.subgroup, axis, part.n, len(own))
        up, down = kept[1][0] - own[:, moved[0][0]], own[:, moved[1][0]] - kept[2][0]
        return _accumulate_levels(part, axis, rank, up, down)

    return Plan(works, finish)


def level_axis(part: SubgroupRows, wanted: GridSpec) -> tuple[SubgroupRows, GridAxis]:
    """The levels of a curve in their order, and the rows that have them."""
    (info,) = part.source.infos
    axis = axis_of(info, part.x[0], part.weights, wanted, 0)
    part = part.where(np.isin(part.x[0], axis.points))
    axis = GridAxis(info, axis.points[np.isin(axis.points, part.x[0])])
    if len(axis) and info.kind == "nominal" and isinstance(wanted, str):
        axis = GridAxis(info, by_similarity(part, axis.points))
    return part, axis


def flat(subgroup: int, axis: GridAxis, n: float, n_outputs: int) -> Curve:
    """The curve of a feature that has one value."""
    zero = np.zeros((len(axis), n_outputs))
    return Curve(subgroup, (axis,), np.full(len(axis), n), zero, zero)


def _accumulate_levels(part: SubgroupRows, axis: GridAxis, rank: Ranks, up: Floats, down: Floats) -> Curve:
    """A step between two levels is the mean over the rows of both; errors are those of `_accumulate_numbers`.

    A row between the first and the last level counts in two steps and in the centre: all three are added before
    squaring.
    """
    n_steps, n_up, n = len(axis) - 1, up.shape[1], part.n
    rows = np.concatenate([np.flatnonzero(rank < n_steps), np.flatnonzero(rank > 0)])
    step = np.concatenate([rank[rank < n_steps], rank[rank > 0] - 1])
    steps = np.concatenate([up, down], axis=1)
    weights = np.ones(len(rank)) if part.weights is None else part.weights
    mass, mean, _ = _within(step, steps, weights[rows], n_steps)
    at_level = np.bincount(rank, weights=weights, minlength=len(axis))
    share = 1 - np.cumsum(at_level)[:-1] / at_level.sum()
    reach = np.tri(n_steps + 1, n_steps, -1) - share
    curve = reach @ mean.T
    # Squares about a mean lose a row; weights, which count rows, may add up to less than two of them.
    pulls = (steps - mean[:, step]) / np.sqrt(mass * np.maximum(mass - 1, mass / 2))[step]
    before, after = np.zeros((2, len(steps), len(rank)))
    after[:, rows[:n_up]], before[:, rows[n_up:]] = pulls[:, :n_up], pulls[:, n_up:]
    centre = curve.T[:, rank] / np.sqrt(n * (n - 1)) if n > 1 else np.nan
    error = np.empty((len(axis), len(steps)))
    for point, coefficients in enumerate(reach):
        padded = np.concatenate([[0.0], coefficients, [0.0]])
        error[point] = np.sqrt((padded[rank] * before + padded[rank + 1] * after - centre) ** 2 @ weights)
    return Curve(part.subgroup, (axis,), np.full(len(axis), n), curve, error)


def _within(cell: Ranks, values: Floats, weights: Floats | None, n_cells: int) -> tuple[Floats, Floats, Floats]:
    """Weight of each cell, and of each output its mean and sum of squares there; zeros where it has no rows."""
    counted = np.ones(len(cell)) if weights is None else weights
    mass = np.bincount(cell, weights=counted, minlength=n_cells).astype(np.float64)
    mean = _sums(cell, values * counted, n_cells) / np.where(mass > 0, mass, 1.0)
    return mass, mean, _sums(cell, (values - mean[:, cell]) ** 2 * counted, n_cells)


def _sums(cell: Ranks, values: Floats, n_cells: int) -> Floats:
    return np.stack([np.bincount(cell, weights=row, minlength=n_cells) for row in values])
