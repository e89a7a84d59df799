"""The points at which a curve has values: numbers, dates or levels of a feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._core.quantiles import quantile_values
from subgrove._core.text import quote
from subgrove._data.columns import number_text, typed, values_like
from subgrove._data.from_containers import RawColumn, raw_column
from subgrove._effects.timezones import are_days, nearest_days
from subgrove.exceptions import InputError, ParameterError

Way = Literal["default", "quantiles"]
GridSpec = Floats | Way  # the user's own points, or how to choose them


@dataclass(frozen=True, eq=False)
class GridAxis:
    """Points of one feature.

    Attributes
    ----------
    info : ColumnInfo
        The feature.
    points : float array
        Numbers; microseconds of dates and durations; positions among `info.levels` if it has levels.
    """

    info: ColumnInfo
    points: Floats

    def __len__(self) -> int:
        return len(self.points)

    def text(self, at: int) -> str:
        """A point in words."""
        return f"{self.info.name} = {point_text(self.info, float(self.points[at]))}"


def has_levels(info: ColumnInfo) -> bool:
    """Whether a feature has levels instead of numbers."""
    return info.kind != "numeric"


def point_text(info: ColumnInfo, point: float) -> str:
    """A value of a feature in words."""
    return info.levels[int(point)] if has_levels(info) else number_text(point, info)


def read_values(column: RawColumn, name: str, kind: Any) -> tuple[ColumnInfo, Floats]:
    """A feature that is seen for the first time, its values as those of `GridAxis.points`; NaN where missing."""
    info, values = typed(column, name, kind, "X")
    return replace(info, zone=column.zone if info.is_date else None), as_points(info, values)


def as_points(info: ColumnInfo, values: npt.NDArray[Any]) -> Floats:
    """Numbers, or codes of levels, as those of `GridAxis.points`; NaN where missing or not among the levels."""
    if info.kind == "numeric":
        return np.asarray(values, dtype=np.float64)
    codes = values - 1.0 if info.kind == "ordered" else np.asarray(values, dtype=np.float64)
    known: Floats = np.where((codes >= 0) & np.isfinite(codes), codes, np.nan)
    return known


def read_grid(grid: Any, info: ColumnInfo, x: Floats) -> GridSpec:
    """What the user asks for, checked: points of the feature, or a way to choose them. `x` is the feature in X."""
    if grid is None:
        return "default"
    if isinstance(grid, str):
        if grid != "quantiles":
            raise ParameterError(f"grid must be 'quantiles', a list of values of {info.name!r} or None; got {grid!r}.")
        return "quantiles"
    column, _ = raw_column(grid, "grid")
    if not len(column):
        raise ParameterError(f"grid is empty. Give at least one value of {info.name!r}, or leave grid out.")
    values, strange = values_like(column, info, "grid")
    points = as_points(info, values)
    if np.isnan(points).any() and not strange:
        raise InputError(f"grid has missing values. Give values of {info.name!r} only.")
    if not has_levels(info):
        return np.unique(points)
    points = np.array(list(dict.fromkeys(points.tolist())))
    _reject_absent(
        [*strange, *(info.levels[int(point)] for point in points if point == point and point not in x)], info
    )
    return points


def _reject_absent(levels: Sequence[str], info: ColumnInfo) -> None:
    if levels:
        raise InputError(
            f"grid has {quote(levels)}, which no row of X has in {info.name!r}. "
            f"A level is given to the model as a row of X has it, so some row must have it."
        )


def axis_of(info: ColumnInfo, x: Floats, weights: Floats | None, wanted: GridSpec, grid_resolution: int) -> GridAxis:
    """Points for curves: every level, or equal steps from the least to the greatest value (or quantiles).

    Of whole numbers every value, if there are no more than `grid_resolution`, else the whole numbers next to equal
    steps.
    """
    if not isinstance(wanted, str):
        return GridAxis(info, wanted)
    present = ~np.isnan(x)
    values = x[present]
    if has_levels(info) or not len(values):
        return GridAxis(info, np.unique(values))
    if wanted == "quantiles":
        counted = None if weights is None else weights[present]
        return GridAxis(info, np.unique(quantile_values(values, counted, np.linspace(0, 1, grid_resolution))))
    if info.is_integer and len(distinct := np.unique(values)) <= grid_resolution:
        return GridAxis(info, distinct)
    # Halved and doubled: the range may be wider than a float holds.
    steps = 2 * np.linspace(values.min() / 2, values.max() / 2, grid_resolution)
    return GridAxis(info, rounded_points(info, values, steps))


def edges_of(info: ColumnInfo, x: Floats, weights: Floats | None, wanted: GridSpec, grid_resolution: int) -> GridAxis:
    """Borders of intervals with about the same number of rows; x without missing values."""
    if not isinstance(wanted, str):
        return GridAxis(info, wanted)
    return GridAxis(info, np.unique(quantile_values(x, weights, np.linspace(0, 1, grid_resolution + 1))))


def rounded_points(info: ColumnInfo, values: Floats, points: Floats) -> Floats:
    """Points that the column can hold: whole numbers, and whole days where all dates are, else whole microseconds."""
    if info.is_date and are_days(values, info.zone):
        points = nearest_days(points, info.zone)
    elif info.is_date or info.is_duration or info.is_integer:
        points = np.round(points)
    return np.unique(points)
