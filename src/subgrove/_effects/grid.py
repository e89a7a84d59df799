"""Grid points of curves: numbers, dates (in the time zone of the user) or levels of a feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.moments import quantile_values
from subgrove._core.text import quote
from subgrove._data.columns import ColumnInfo, number_text, typed, values_like
from subgrove._data.from_containers import UntypedColumn, untyped_column
from subgrove.exceptions import InputError, ParameterError

Way = Literal["default", "quantiles"]
GridSpec = Floats | Way  # the user's points, or how to choose points
_ENDS = 3  # points besides the steps that fit into a range: one more step and the two ends
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY, _SECOND = 86_400_000_000.0, 1_000_000.0  # microseconds


@dataclass(frozen=True, eq=False)
class GridAxis:
    """Points of one feature.

    Attributes
    ----------
    info : ColumnInfo
        The feature.
    points : float array
        Numbers; microseconds of dates and durations; positions in `info.levels` of a categorical feature.
    """

    info: ColumnInfo
    points: Floats

    def __len__(self) -> int:
        return len(self.points)

    def text(self, at: int) -> str:
        """Describe a point."""
        return f"{self.info.name} = {point_text(self.info, float(self.points[at]))}"


def has_levels(info: ColumnInfo) -> bool:
    """Whether a feature is categorical."""
    return info.kind != "numeric"


def point_text(info: ColumnInfo, point: float) -> str:
    """Format a value of a feature."""
    return info.levels[int(point)] if has_levels(info) else number_text(point, info)


def read_values(column: UntypedColumn, name: str, kind: Any) -> tuple[ColumnInfo, Floats]:
    """Return the type of a feature and its values, encoded like `GridAxis.points`; NaN where missing."""
    info, values = typed(column, name, kind, "X")
    return replace(info, zone=column.zone if info.is_date else None), as_points(info, values)


def as_points(info: ColumnInfo, values: npt.NDArray[Any]) -> Floats:
    """Encode numbers or codes of levels like `GridAxis.points`; NaN where missing or not among the levels."""
    if info.kind == "numeric":
        return np.asarray(values, dtype=np.float64)
    codes = values - 1.0 if info.kind == "ordered" else np.asarray(values, dtype=np.float64)
    return np.where((codes >= 0) & np.isfinite(codes), codes, np.nan)


def read_grid(grid: Any, info: ColumnInfo, x: Floats) -> GridSpec:
    """Validate the `grid` argument; `x` are the values of the feature in X."""
    if grid is None:
        return "default"
    if isinstance(grid, str):
        if grid != "quantiles":
            raise ParameterError(f"grid must be 'quantiles', a list of values of {info.name!r} or None; got {grid!r}.")
        return "quantiles"
    column, _ = untyped_column(grid, "grid")
    if not len(column):
        raise ParameterError(f"grid is empty. Pass at least one value of {info.name!r}, or None.")
    values, strange = values_like(column, info, "grid")
    points = as_points(info, values)
    if np.isnan(points).any() and not strange:
        raise InputError(f"grid has missing values. Pass values of {info.name!r} only.")
    if not has_levels(info):
        return np.unique(points)
    points = np.array(list(dict.fromkeys(points.tolist())))
    absent = [*strange, *(info.levels[int(point)] for point in points if point == point and point not in x)]
    if absent:
        raise InputError(
            f"grid has {quote(absent)}, which does not occur in {info.name!r} of X. "
            f"Values of levels are copied from rows of X, so at least one row must have it."
        )
    return points


def axis_of(info: ColumnInfo, x: Floats, weights: Floats | None, grid: GridSpec, grid_resolution: int) -> GridAxis:
    """Choose grid points: all levels, or equal steps from the smallest to the largest value (or quantiles).

    For integers, all values if there are at most `grid_resolution`, otherwise the integers nearest to equal steps.
    """
    if not isinstance(grid, str):
        return GridAxis(info, grid)
    present = ~np.isnan(x)
    values = x[present]
    if has_levels(info) or not len(values):
        return GridAxis(info, np.unique(values))
    if grid == "quantiles":
        w = None if weights is None else weights[present]
        return GridAxis(info, np.unique(quantile_values(values, w, np.linspace(0, 1, grid_resolution))))
    if info.is_integer and len(distinct := np.unique(values)) <= grid_resolution:
        return GridAxis(info, distinct)
    # Halved and doubled, since the range may overflow.
    steps = 2 * np.linspace(values.min() / 2, values.max() / 2, grid_resolution)
    return GridAxis(info, rounded_points(info, values, steps))


def edges_of(info: ColumnInfo, x: Floats, weights: Floats | None, grid: GridSpec, grid_resolution: int) -> GridAxis:
    """Choose borders of intervals with about the same number of rows; x has no missing values."""
    if not isinstance(grid, str):
        return GridAxis(info, grid)
    return GridAxis(info, np.unique(quantile_values(x, weights, np.linspace(0, 1, grid_resolution + 1))))


def rounded_points(info: ColumnInfo, values: Floats, points: Floats) -> Floats:
    """Round points to values of the column: integers, whole days if all dates are, or microseconds."""
    if info.is_date and are_days(values, info.zone):
        points = nearest_days(points, info.zone)
    elif info.is_date or info.is_duration or info.is_integer:
        points = np.round(points)
    return np.unique(points)


def positions_of(axis: GridAxis) -> Rows:
    """Return the position on the axis of each level of a categorical feature; 0 for levels that are not on it."""
    positions = np.zeros(len(axis.info.levels), dtype=np.intp)
    positions[axis.points.astype(np.intp)] = np.arange(len(axis))
    return positions


def shared_points(info: ColumnInfo, x: Sequence[Floats], grid: GridSpec, grid_resolution: int) -> list[GridSpec]:
    """Choose the points of each subgroup from one common grid, so that curves can be compared without interpolation.

    Equal steps over the range of each subgroup would give each subgroup other points, and interpolated curves would
    differ where the true ones do not. Here, subgroups use the common points within their own range, and its ends. The
    number of predictions is at most that of `grid_resolution` points in each subgroup.
    """
    if len(x) == 1 or has_levels(info) or not isinstance(grid, str):
        return [grid] * len(x)
    values = [each[~np.isnan(each)] for each in x]
    everything = np.concatenate(values)
    if grid == "quantiles":
        points = quantile_values(everything, None, np.linspace(0, 1, grid_resolution))
        room = grid_resolution
    else:
        points = _common_steps(values, [len(each) for each in x], grid_resolution)
        room = len(points) + _ENDS if grid_resolution > _ENDS else grid_resolution
    points = rounded_points(info, everything, points)
    few = [info.is_integer and len(np.unique(each)) <= grid_resolution for each in values]
    return [
        np.unique(each) if own else _within_range(points, each, room) for each, own in zip(values, few, strict=True)
    ]


def _common_steps(values: Sequence[Floats], sizes: Sequence[int], grid_resolution: int) -> Floats:
    """Return equal steps over all ranges, with at most the predictions of `grid_resolution` points per subgroup."""
    low, high = min(float(x.min()) for x in values), max(float(x.max()) for x in values)
    widths = np.array([x.max() / 2 - x.min() / 2 for x in values])  # halved, since a range may overflow
    widest, n = float(widths.max()), np.array(sizes, dtype=np.float64)
    if grid_resolution <= _ENDS or not widest > 0:
        return np.asarray(2 * np.linspace(low / 2, high / 2, grid_resolution), dtype=np.float64)
    share = float(n @ (widths / widest) / n.sum())  # mean width of the range, relative to the widest
    steps = (high / 2 - low / 2) / widest * (grid_resolution - _ENDS) / share
    step = 2 * widest * share / (grid_resolution - _ENDS)
    return np.asarray(low + step * np.arange(int(np.floor(steps)) + 1), dtype=np.float64)


def _within_range(points: Floats, x: Floats, room: int) -> Floats:
    """Return the points within the range of x, and its ends if they fit."""
    low, high = float(x.min()), float(x.max())
    inside = points[(points >= low) & (points <= high)]
    with_ends = np.unique([*inside, low, high])
    return with_ends if len(with_ends) <= room or len(inside) < 2 else inside


def aware_moments(points: Floats, zone: str) -> list[datetime | None]:
    """Return times in a time zone; None where missing."""
    clock = _clock(zone)
    return [None if point != point else _moment(point, clock) for point in points.tolist()]


def are_days(values: Floats, zone: str | None) -> bool:
    """Return whether all times are midnights."""
    if zone is None or (values % _SECOND).any():
        return not (values % _DAY).any()
    clock = _clock(zone)
    return all(_moment(value, clock).time() == time() for value in np.unique(values).tolist())


def nearest_days(points: Floats, zone: str | None) -> Floats:
    """Round times to the nearest midnight."""
    if zone is None:
        return np.asarray(np.round(points / _DAY) * _DAY)
    clock = _clock(zone)
    days = [(_moment(point, clock).replace(tzinfo=None) + timedelta(hours=12)).date() for point in points.tolist()]
    midnights = [datetime.combine(day, time(), clock) for day in days]
    return np.array([float((midnight - _EPOCH) // timedelta(microseconds=1)) for midnight in midnights])


def _moment(point: float, clock: tzinfo) -> datetime:
    return (_EPOCH + timedelta(microseconds=round(point))).astimezone(clock)


def _clock(zone: str) -> tzinfo:
    """Return a time zone by its name, or by its offset from UTC such as "+05:30"."""
    if zone[:1] in ("+", "-"):
        return datetime.strptime(zone, "%z").tzinfo or UTC
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):  # unknown to Python; the times are correct in any zone
        return UTC
