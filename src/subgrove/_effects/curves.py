"""Curves that are means of predictions: partial dependence, ICE curves, and conditional means (M-plots)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.quantiles import interval_ends
from subgrove._data.replace_columns import Rows
from subgrove._effects.grid import GridAxis, GridSpec, axis_of, edges_of, has_levels
from subgrove._effects.predict import GridBlock, PredictionRequest
from subgrove._effects.subgroup_rows import SubgroupRows
from subgrove._effects.support import BOX, box_statistics


@dataclass(frozen=True, eq=False)
class IceCurves:
    """A curve for each row: `values` are (points, outputs, rows), `rows` their numbers in X.

    `centred` says whether they are differences from the first point.
    """

    values: Floats
    rows: Rows
    weights: Floats | None
    centred: bool = False


@dataclass(frozen=True, eq=False)
class Curve:
    """The effect of a feature in one subgroup; two features have a surface.

    Attributes
    ----------
    subgroup : int
        Number of the subgroup.
    axes : tuple of Axis
        Points of the feature; of the first and of the second, if there are two.
    n : float array
        For each point the weight of the rows that its estimate is a mean over.
    estimate, std_error : float array (points, outputs)
        With two features, points of the second run fastest.
    spread : float array (points, 7, outputs), or None
        Tukey's box statistics of the predictions at each level.
    ice : Ice or None
        A curve for each row.
    opacity : float array or None
        For each point how dense the feature lies there in the subgroup, relative to where it is densest.
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
class Plan:
    """What a curve asks the model for, and how it is made of what was kept."""

    works: Sequence[PredictionRequest]
    finish: Callable[[list[Floats]], Curve]


def partial_dependence(part: SubgroupRows, wanted: Sequence[GridSpec], grid_resolution: int) -> Plan:
    """Equation (2) of the paper, in one subgroup: the mean prediction of its rows, all given the same value."""
    axes = axes_of(part, wanted, grid_resolution)
    keep = _Spread(part.weights) if len(axes) == 1 and has_levels(axes[0].info) else _Moments(part.weights)

    def finish(kept: list[Floats]) -> Curve:
        return _curve(part.subgroup, axes, np.full(len(kept[0]), part.n), kept[0])

    return Plan([PredictionRequest(part.frames, blocks_of(part, axes), keep)], finish)


def ice_curves(part: SubgroupRows, wanted: Sequence[GridSpec], grid_resolution: int) -> Plan:
    """The same without taking means: a curve for each row, and their mean."""
    axes = axes_of(part, wanted, grid_resolution)

    def finish(kept: list[Floats]) -> Curve:
        return averaged(part.subgroup, axes, IceCurves(kept[0], part.rows, part.weights))

    return Plan([PredictionRequest(part.frames, blocks_of(part, axes), np.array)], finish)


def averaged(subgroup: int, axes: tuple[GridAxis, ...], ice: IceCurves) -> Curve:
    """The mean of ICE curves."""
    values = (_Spread if has_levels(axes[0].info) else _Moments)(ice.weights)(ice.values)
    n = np.full(len(values), float(len(ice.rows) if ice.weights is None else ice.weights.sum()))
    return _curve(subgroup, axes, n, values, ice)


def centred(curve: Curve) -> Curve:
    """ICE curves, and their mean, as differences from their first point."""
    assert curve.ice is not None
    ice = replace(curve.ice, values=curve.ice.values - curve.ice.values[:1], centred=True)
    return replace(averaged(curve.subgroup, curve.axes, ice), opacity=curve.opacity)


def conditional_mean(part: SubgroupRows, wanted: Sequence[GridSpec], grid_resolution: int) -> Plan | None:
    """M-plot: the mean prediction of the rows that have about this value; nothing is replaced.

    Rows of levels that the user did not list are left out; None if no row is left.
    """
    part = part.where(~np.isnan(part.x[0]))
    if has_levels(part.source.infos[0]) and not isinstance(wanted[0], str):
        part = part.where(np.isin(part.x[0], wanted[0]))
        if not len(part.rows):
            return None
    axis, cell = cells_of(part, wanted[0], grid_resolution)

    def finish(kept: list[Floats]) -> Curve:
        n = np.bincount(cell, weights=part.weights, minlength=len(axis)).astype(np.float64)
        summary = _Spread if has_levels(axis.info) else _Moments
        values = []
        for point in range(len(axis)):
            mine = cell == point
            counted = None if part.weights is None else part.weights[mine]
            values.append(summary(counted)(np.ascontiguousarray(kept[0][:, :, mine])))
        return _curve(part.subgroup, (axis,), n, np.concatenate(values))

    return Plan([PredictionRequest(part.frames, [part.unchanged()], np.array)], finish)


def _curve(
    subgroup: int, axes: tuple[GridAxis, ...], n: Floats, summary: Floats, ice: IceCurves | None = None
) -> Curve:
    """A curve of what `_Moments` or `_Spread` gave for each of its points."""
    spread = summary[:, 2:] if summary.shape[1] > 2 else None
    return Curve(subgroup, axes, n, summary[:, 0], summary[:, 1], spread, ice)


def cells_of(part: SubgroupRows, wanted: GridSpec, grid_resolution: int) -> tuple[GridAxis, npt.NDArray[np.intp]]:
    """Points of an M-plot, and the point that each row counts for."""
    (info,), (x,), weights = part.source.infos, part.x, part.weights
    if has_levels(info):
        axis = axis_of(info, x, weights, wanted, grid_resolution)
        place = np.zeros(len(info.levels), dtype=np.intp)
        place[axis.points.astype(np.intp)] = np.arange(len(axis))
        return axis, place[x.astype(np.intp)]
    if not isinstance(wanted, str):
        between = wanted[:-1] / 2 + wanted[1:] / 2
        return GridAxis(info, wanted), np.searchsorted(between, x, side="left")
    cell, _ = interval_ends(edges_of(info, x, weights, wanted, grid_resolution).points, x)
    mass = np.bincount(cell, weights=weights)
    sums = np.bincount(cell, weights=x if weights is None else x * weights)
    return GridAxis(info, sums / mass), cell


def axes_of(part: SubgroupRows, wanted: Sequence[GridSpec], grid_resolution: int) -> tuple[GridAxis, ...]:
    """Points of each feature."""
    each = zip(part.source.infos, part.x, wanted, strict=True)
    return tuple(axis_of(info, x, part.weights, way, grid_resolution) for info, x, way in each)


def blocks_of(part: SubgroupRows, axes: Sequence[GridAxis]) -> list[GridBlock]:
    """All rows at each point, or at each pair of points."""
    return [part.block(axes, place) for place in product(*(range(len(axis)) for axis in axes))]


@dataclass(frozen=True, eq=False)
class _Moments:
    """Mean over rows and its standard error: (blocks, outputs, rows) to (blocks, 2, outputs). NaN of too few rows."""

    weights: Floats | None

    def __call__(self, values: Floats) -> Floats:
        w = self.weights
        n = float(values.shape[2]) if w is None else float(w.sum())
        if not n:
            return np.full((len(values), 2, values.shape[1]), np.nan)
        mean = (values if w is None else values * w).sum(axis=2) / n
        squares = values - mean[:, :, None]
        with np.errstate(over="ignore"):
            squares *= squares
        if w is not None:
            squares *= w
        error = np.sqrt(squares.sum(axis=2) / (n - 1) / n) if n > 1 else np.full(mean.shape, np.nan)
        return np.stack([mean, error], axis=1)


@dataclass(frozen=True, eq=False)
class _Spread:
    """Mean, standard error and box statistics: (blocks, outputs, rows) to (blocks, 9, outputs)."""

    weights: Floats | None

    def __call__(self, values: Floats) -> Floats:
        boxes = np.full((len(values), len(BOX), values.shape[1]), np.nan)
        if values.shape[2]:
            for block, output in np.ndindex(values.shape[:2]):
                boxes[block, :, output] = box_statistics(values[block, output], self.weights)
        return np.concatenate([_Moments(self.weights)(values), boxes], axis=1)
