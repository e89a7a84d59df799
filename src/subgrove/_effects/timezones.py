"""Conversion of times, stored as microseconds in UTC, to the time zone of the user."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from subgrove._core.kinds import Floats

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY, _SECOND = 86_400_000_000.0, 1_000_000.0  # microseconds


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
