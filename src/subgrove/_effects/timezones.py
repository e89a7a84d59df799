"""Moments in the user's time zone: inside they are microseconds of UTC, and days begin where the user is."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from subgrove._core.kinds import Floats

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY, _SECOND = 86_400_000_000.0, 1_000_000.0  # microseconds


def aware_moments(points: Floats, zone: str) -> list[datetime | None]:
    """Moments as the clocks of a zone show them; None where missing."""
    clock = _clock(zone)
    return [None if point != point else _moment(point, clock) for point in points.tolist()]


def are_days(values: Floats, zone: str | None) -> bool:
    """Whether all moments are midnights."""
    if zone is None or (values % _SECOND).any():
        return not (values % _DAY).any()
    clock = _clock(zone)
    return all(_moment(value, clock).time() == time() for value in np.unique(values).tolist())


def nearest_days(points: Floats, zone: str | None) -> Floats:
    """The midnights that are nearest."""
    if zone is None:
        return np.asarray(np.round(points / _DAY) * _DAY)
    clock = _clock(zone)
    days = [(_moment(point, clock).replace(tzinfo=None) + timedelta(hours=12)).date() for point in points.tolist()]
    midnights = [datetime.combine(day, time(), clock) for day in days]
    return np.array([float((midnight - _EPOCH) // timedelta(microseconds=1)) for midnight in midnights])


def _moment(point: float, clock: tzinfo) -> datetime:
    return (_EPOCH + timedelta(microseconds=round(point))).astimezone(clock)


def _clock(zone: str) -> tzinfo:
    """The zone by its name, or by its distance from UTC, as in "+05:30"."""
    if zone[:1] in ("+", "-"):
        return datetime.strptime(zone, "%z").tzinfo or UTC
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):  # known to the container alone: the moments are right in any zone
        return UTC
