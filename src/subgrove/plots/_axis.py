"""The axis of x that all leaves of a picture share: limits, ticks, and labels that do not collide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._data.table import ColumnInfo
from subgrove.plots._text import DOTS, Ruler, plain

_GAP = 4.0  # points between two labels
_LONGEST = 14.0  # an upright label is at most this many times as long as its font is high
_DAY = 86_400e6  # microseconds


@dataclass(frozen=True)
class Axis:
    """The axis of x.

    Attributes
    ----------
    low, high : float
        Limits; levels stand at 0, 1, 2, and so on, dates are days. From 0 to 1 where x has no ticks, or one value.
    at : tuple of float
        Where the ticks are.
    labels : tuple of str
        What they say.
    upright : bool
        Whether the labels are turned by 90 degrees.
    height : float
        Height of the labels in points.
    """

    low: float
    high: float
    at: tuple[float, ...]
    labels: tuple[str, ...]
    upright: bool
    height: float


NO_AXIS = Axis(0.0, 1.0, (), (), upright=False, height=0.0)
"""Where no distribution is drawn."""


def axis_of(
    target: ColumnInfo, edges: Sequence[float], shares: npt.NDArray[np.float64], room: float, ruler: Ruler
) -> Axis:
    """The axis of x, `room` points wide; `shares` tells which levels are worth a label if not all have room."""
    if target.kind != "numeric":
        return _level_axis(target.levels, shares, room, ruler)
    if edges[0] == edges[-1]:
        return Axis(0.0, 1.0, (0.5,), (_value_label(edges[0], target),), False, ruler.line)
    if not _has_ticks(target, edges):
        return Axis(0.0, 1.0, (), (), False, ruler.line)
    unit = _DAY if target.is_date else 1.0
    low, high = edges[0] / unit, edges[-1] / unit
    for most in (5, 4, 3, 2, 1):
        ticks = _date_ticks(low, high, most) if target.is_date else _number_ticks(low, high, most)
        at, labels = _inside(*ticks, low, high, room, ruler)
        if _apart([(tick - low) / (high - low) * room for tick in at], labels, ruler):
            return Axis(low, high, at, labels, False, ruler.line)
    return Axis(low, high, (), (), False, ruler.line)


def _has_ticks(target: ColumnInfo, edges: Sequence[float]) -> bool:
    """Whether numbers on the axis can be told apart, and dates are in years 1 to 9999."""
    size = max(abs(edges[0]), abs(edges[-1]))
    if target.is_date:
        return edges[0] > -719_000 * _DAY and edges[-1] < 2_932_000 * _DAY and edges[-1] - edges[0] > 1e6
    return max(1e-12 * size, 1e-300) < edges[-1] - edges[0] < 1e300


def _number_ticks(low: float, high: float, most: int) -> tuple[tuple[float, ...], tuple[str, ...]]:
    from matplotlib.ticker import MaxNLocator

    candidates = MaxNLocator(nbins=most, steps=[1, 2, 5, 10]).tick_values(low, high)
    at = tuple(float(tick) for tick in candidates if low <= tick <= high)
    step = float(candidates[1] - candidates[0]) if len(candidates) > 1 else 1.0
    return at, tuple(number_label(tick, step) for tick in at)


def number_label(value: float, step: float) -> str:
    """The number with as many digits as tell it from its neighbours."""
    if abs(value) < step / 2:
        return "0"
    size = math.floor(math.log10(step) + 1e-9)
    if abs(value) >= 1e6 or step < 1e-4:
        digits = max(1, math.floor(math.log10(abs(value)) + 1e-9) - size + 1)
        return f"{value:.{digits}g}"
    return f"{value:.{max(0, -size)}f}"


def _date_ticks(low: float, high: float, most: int) -> tuple[tuple[float, ...], tuple[str, ...]]:
    import matplotlib.dates

    dates: Any = matplotlib.dates  # it has no types
    locator = dates.AutoDateLocator(minticks=1, maxticks=most + 1)
    candidates = locator.tick_values(dates.num2date(low), dates.num2date(high))
    at = tuple(float(tick) for tick in candidates if low <= tick <= high)
    label = dates.AutoDateFormatter(locator)
    return at, tuple(label(tick) for tick in at)


def _value_label(value: float, target: ColumnInfo) -> str:
    if target.is_date:
        return str(np.datetime64(int(value), "us").astype("datetime64[D]"))
    return f"{value:.6g}"


def _inside(
    at: Sequence[float], labels: Sequence[str], low: float, high: float, room: float, ruler: Ruler
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """The ticks whose labels do not stick out far."""
    kept = []
    for tick, label in zip(at, labels, strict=True):
        place, half = (tick - low) / (high - low) * room, ruler.width(label) / 2
        if place - half >= -_GAP and place + half <= room + _GAP:
            kept.append((tick, label))
    return tuple(tick for tick, _ in kept), tuple(label for _, label in kept)


def _apart(places: Sequence[float], labels: Sequence[str], ruler: Ruler) -> bool:
    """Whether labels centred at these places, in points, do not touch."""
    halves = [ruler.width(label) / 2 for label in labels]
    return all(places[i + 1] - places[i] >= halves[i] + halves[i + 1] + _GAP for i in range(len(places) - 1))


def level_room(levels: Sequence[str], ruler: Ruler) -> float:
    """Width in points at which all levels can be written side by side."""
    return (len(levels) + 0.2) * (ruler.widest([plain(level) for level in levels]) + _GAP)


def _level_axis(levels: Sequence[str], shares: npt.NDArray[np.float64], room: float, ruler: Ruler) -> Axis:
    low, high, pitch = -0.6, len(levels) - 0.4, room / (len(levels) + 0.2)
    wrapped = [ruler.wrap_name(level, pitch - _GAP, 2) for level in levels]
    lines = [line for each in wrapped for line in each]
    upright = ruler.widest(lines) > pitch - _GAP or any(DOTS in line for line in lines)
    if not upright:
        at, labels = list(range(len(levels))), tuple("\n".join(each) for each in wrapped)
        height = ruler.line * max(len(each) for each in wrapped)
    else:
        at = _labelled(shares, pitch, ruler.line)
        labels = tuple(ruler.shorten(plain(levels[place]), _LONGEST * ruler.size) for place in at)
        height = ruler.widest(labels) + 2
    return Axis(low, high, tuple(float(place) for place in at), labels, upright, height)


def _labelled(shares: npt.NDArray[np.float64], pitch: float, least: float) -> list[int]:
    """Levels to label: the most frequent first, none nearer than `least` points to another."""
    distance = max(1, math.ceil(least / pitch))
    if distance == 1:
        return list(range(len(shares)))
    chosen: list[int] = []
    for place in np.argsort(-shares, kind="stable").tolist():
        if all(abs(place - other) >= distance for other in chosen):
            chosen.append(place)
    return sorted(chosen)
