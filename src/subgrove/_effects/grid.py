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

Way = Literal["default", "quantiles", "uniform"]
GridSpec = Floats | Way  # the user's points, or how to choose points
_ENDS = 3  # points besides the steps that fit into a range: one more step and the two ends
_FINE = 400  # points by which the number of points in the range of a subgroup is estimated
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
        if grid not in ("quantiles", "uniform"):
            raise ParameterError(
                f"grid must be 'quantiles', 'uniform', a list of values of {info.name!r} or None; got {grid!r}."
            )
        return "quantiles" if grid == "quantiles" else "uniform"
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
    """Choose grid points: all levels or few integers, or points from the smallest to the largest value.

    For integers, all values if there are at most `grid_resolution`, otherwise the integers nearest to the points.
    """
    if not isinstance(grid, str):
        return GridAxis(info, grid)
    present = ~np.isnan(x)
    values, w = x[present], None if weights is None else weights[present]
    if has_levels(info) or not len(values):
        return GridAxis(info, np.unique(values))
    if grid != "quantiles" and info.is_integer and len(distinct := np.unique(values)) <= grid_resolution:
        return GridAxis(info, distinct)
    points = _spread(values, w, grid, grid_resolution)
    return GridAxis(info, np.unique(points) if grid == "quantiles" else rounded_points(info, values, points))


def _spread(values: Floats, weights: Floats | None, way: Way, n_points: int) -> Floats:
    """Return points from the smallest to the largest value: quantiles, equal steps ("uniform"), or a mixture.

    The default points are quantiles of a mixture in equal parts of the rows and of a uniform distribution over their
    range. Equal steps would put nearly all points of a skewed feature where it has hardly any rows, and quantiles would
    put none into its tail. Halved and doubled, since the range may overflow.
    """
    if way == "quantiles":
        return quantile_values(values, weights, np.linspace(0, 1, n_points))
    low, high = values.min() / 2, values.max() / 2
    if way == "uniform" or not low < high:
        return np.asarray(2 * np.linspace(low, high, n_points), dtype=np.float64)
    distinct, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights=weights)
    rank = np.cumsum(mass) - mass / 2  # of the middle of the rows with this value
    rank = (rank - rank[0]) / (rank[-1] - rank[0])
    mixed = (rank + (distinct / 2 - low) / (high - low)) / 2
    return np.asarray(2 * np.interp(np.linspace(0, 1, n_points), mixed, distinct / 2), dtype=np.float64)


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
    n_points = room = grid_resolution
    if grid != "quantiles" and grid_resolution > _ENDS:
        n_points = _n_common_points(values, _spread(everything, None, grid, _FINE), grid_resolution)
        room = n_points + _ENDS
    points = rounded_points(info, everything, _spread(everything, None, grid, n_points))
    few = [info.is_integer and len(np.unique(each)) <= grid_resolution for each in values]
    return [
        np.unique(each) if own else _within_range(points, each, room) for each, own in zip(values, few, strict=True)
    ]


def _n_common_points(values: Sequence[Floats], fine: Floats, grid_resolution: int) -> int:
    """Return the number of points with at most the predictions of `grid_resolution` points per subgroup."""
    inside = [float(np.mean((fine >= each.min()) & (fine <= each.max()))) for each in values]
    share = float(np.average(inside, weights=[len(each) for each in values]))
    return int(np.floor((grid_resolution - _ENDS) / max(share, 1 / _FINE))) + 1


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
