"""Axes of a feature: numbers, dates, durations or levels, with ticks and labels that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.text import tick_label
from subgrove._data.columns import ColumnInfo
from subgrove.plots._palette import font_size
from subgrove.plots._text import DOTS, Ruler, one_line

if TYPE_CHECKING:
    from matplotlib.axis import Axis as DrawnAxis

_GAP = 4.0  # points between two labels
_LONGEST = 14.0  # an upright label is at most this many times as long as its font is high
_DAY = 86_400e6  # microseconds


@dataclass(frozen=True)
class AxisTicks:
    """The axis of x.

    Attributes
    ----------
    low, high : float
        Limits; levels stand at 0, 1, 2, and so on, dates are days. From 0 to 1 where x has no ticks, or one value.
    at : tuple of float
        Positions of the ticks.
    labels : tuple of str
        Labels of the ticks.
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


NO_AXIS = AxisTicks(0.0, 1.0, (), (), upright=False, height=0.0)
"""Used if no distribution is drawn."""


def axis_of(
    target: ColumnInfo, edges: Sequence[float], shares: npt.NDArray[np.float64], room: float, ruler: Ruler
) -> AxisTicks:
    """The axis of x, `room` points wide; `shares` selects the levels to label if not all fit."""
    if target.kind != "numeric":
        return _level_axis(target.levels, shares, room, ruler)
    if edges[0] == edges[-1]:
        return AxisTicks(0.0, 1.0, (0.5,), (_value_label(edges[0], target),), False, ruler.line)
    if not _has_ticks(target, edges):
        return AxisTicks(0.0, 1.0, (), (), False, ruler.line)
    unit = _DAY if target.is_date else 1.0
    low, high = edges[0] / unit, edges[-1] / unit
    for most in (5, 4, 3, 2, 1):
        ticks = _date_ticks(low, high, most) if target.is_date else _number_ticks(low, high, most)
        at, labels = _inside(*ticks, low, high, room, ruler)
        if _apart([(tick - low) / (high - low) * room for tick in at], labels, ruler):
            return AxisTicks(low, high, at, labels, False, ruler.line)
    return AxisTicks(low, high, (), (), False, ruler.line)


def _has_ticks(target: ColumnInfo, edges: Sequence[float]) -> bool:
    """Whether numbers on the axis are distinguishable, and dates are in years 1 to 9999."""
    size = max(abs(edges[0]), abs(edges[-1]))
    if target.is_date:
        return edges[0] > -719_000 * _DAY and edges[-1] < 2_932_000 * _DAY and edges[-1] - edges[0] > 1e6
    return max(1e-12 * size, 1e-300) < edges[-1] - edges[0] < 1e300


def _number_ticks(low: float, high: float, most: int) -> tuple[tuple[float, ...], tuple[str, ...]]:
    from matplotlib.ticker import MaxNLocator

    candidates = MaxNLocator(nbins=most, steps=[1, 2, 5, 10]).tick_values(low, high)
    at = tuple(float(tick) for tick in candidates if low <= tick <= high)
    step = float(candidates[1] - candidates[0]) if len(candidates) > 1 else 1.0
    return at, tuple(tick_label(tick, step) for tick in at)


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
    inside = []
    for tick, label in zip(at, labels, strict=True):
        place, half = (tick - low) / (high - low) * room, ruler.width(label) / 2
        if place - half >= -_GAP and place + half <= room + _GAP:
            inside.append((tick, label))
    return tuple(tick for tick, _ in inside), tuple(label for _, label in inside)


def _apart(places: Sequence[float], labels: Sequence[str], ruler: Ruler) -> bool:
    """Whether labels centred at these places, in points, do not touch."""
    halves = [ruler.width(label) / 2 for label in labels]
    return all(places[i + 1] - places[i] >= halves[i] + halves[i + 1] + _GAP for i in range(len(places) - 1))


def level_room(levels: Sequence[str], ruler: Ruler) -> float:
    """Width in points at which all levels can be written side by side."""
    return (len(levels) + 0.2) * (ruler.widest([one_line(level) for level in levels]) + _GAP)


def _level_axis(levels: Sequence[str], shares: npt.NDArray[np.float64], room: float, ruler: Ruler) -> AxisTicks:
    low, high, pitch = -0.6, len(levels) - 0.4, room / (len(levels) + 0.2)
    wrapped = [ruler.wrap_name(level, pitch - _GAP, 2) for level in levels]
    lines = [line for each in wrapped for line in each]
    upright = ruler.widest(lines) > pitch - _GAP or any(DOTS in line for line in lines)
    if not upright:
        at, labels = list(range(len(levels))), tuple("\n".join(each) for each in wrapped)
        height = ruler.line * max(len(each) for each in wrapped)
    else:
        at = _labelled(shares, pitch, ruler.line)
        labels = tuple(ruler.shorten(one_line(levels[place]), _LONGEST * ruler.size) for place in at)
        height = ruler.widest(labels) + 2
    return AxisTicks(low, high, tuple(float(place) for place in at), labels, upright, height)


def _labelled(shares: npt.NDArray[np.float64], pitch: float, least: float) -> list[int]:
    """Levels to label: the most frequent first, none nearer than `least` points to another."""
    distance = max(1, math.ceil(least / pitch))
    if distance == 1:
        return list(range(len(shares)))
    labelled: list[int] = []
    for place in np.argsort(-shares, kind="stable").tolist():
        if all(abs(place - other) >= distance for other in labelled):
            labelled.append(place)
    return sorted(labelled)


_UNITS = {"days": 86_400e6, "hours": 3_600e6, "minutes": 60e6, "seconds": 1e6, "microseconds": 1.0}
_MARGIN = 0.03  # of the range, at both ends


@dataclass(frozen=True, eq=False)
class FeatureAxis:
    """An axis for one feature.

    Attributes
    ----------
    info : ColumnInfo
        The feature.
    order : tuple of int
        Its levels in the order in which they stand; empty if it is numeric.
    low, high : float
        The range of its values, as they are given.
    unit : str
        Unit of durations.
    """

    info: ColumnInfo
    order: tuple[int, ...]
    low: float
    high: float
    unit: str = ""

    @property
    def label(self) -> str:
        """Name of the feature, with its unit if it has one; moments of a time zone stand where UTC has them."""
        unit = self.unit or ("UTC" if self.info.zone else "")
        return f"{one_line(self.info.name)} ({unit})" if unit else one_line(self.info.name)

    @property
    def has_levels(self) -> bool:
        """Whether the feature has levels."""
        return self.info.kind != "numeric"

    def place(self, values: Floats) -> Floats:
        """Return the positions of values on the axis."""
        if self.has_levels:
            rank = np.full(len(self.info.levels), np.nan)
            rank[list(self.order)] = np.arange(len(self.order))
            return np.asarray(rank[np.asarray(values, dtype=np.intp)])
        return np.asarray(values / self._divisor)

    @property
    def _divisor(self) -> float:
        if self.info.is_date:
            return _UNITS["days"]
        return _UNITS[self.unit] if self.unit else 1.0

    def set_up(self, axis: DrawnAxis, shares: Floats, room: float, margin: float = _MARGIN) -> None:
        """Give an axis its limits, and as many ticks as have room without touching."""
        ticks = self._ticks(shares, room)
        low, high = self._limits(margin)
        at = (low / 2 + high / 2,) if self.high == self.low and not self.has_levels else ticks.at
        horizontal = axis is axis.axes.xaxis
        (axis.axes.set_xlim if horizontal else axis.axes.set_ylim)(low, high)
        axis.set_ticks(list(at), list(ticks.labels), parse_math=False)
        if horizontal:
            axis.set_tick_params(rotation=90 if ticks.upright else 0)

    def _ticks(self, shares: Floats, room: float) -> AxisTicks:
        ruler = Ruler(0.94 * font_size())
        if self.has_levels:
            levels = tuple(self.info.levels[at] for at in self.order)
            return axis_of(replace(self.info, levels=levels), (), shares[list(self.order)], room, ruler)
        if self.unit:
            plain_info = ColumnInfo(self.info.name, "numeric")
            return axis_of(plain_info, (self.low / self._divisor, self.high / self._divisor), shares, room, ruler)
        return axis_of(self.info, (self.low, self.high), shares, room, ruler)

    def _limits(self, margin: float) -> tuple[float, float]:
        if self.has_levels:
            beyond = 0.5 + (0.1 if margin else 0.0)
            return -beyond, len(self.order) - 1 + beyond
        low, high = self.low / self._divisor, self.high / self._divisor
        beyond = margin * (high - low) if high > low else max(abs(low), 1.0) / 2
        return low - beyond, high + beyond


def feature_axis(info: ColumnInfo, values: Sequence[Floats], *, keep_order: bool = False) -> FeatureAxis:
    """The axis that holds some values; levels in their own order, or in that of the values."""
    found = np.concatenate([np.asarray(some, dtype=np.float64) for some in values]) if values else np.empty(0)
    found = found[np.isfinite(found)]
    if info.kind != "numeric":
        codes = found.astype(np.intp).tolist()
        return FeatureAxis(info, tuple(dict.fromkeys(codes if keep_order else sorted(codes))), 0.0, 0.0)
    low, high = (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)
    unit = ""
    if info.is_duration:
        size = max(abs(low), abs(high))
        unit = next((name for name, length in _UNITS.items() if size >= 2 * length), "microseconds")
    return FeatureAxis(info, (), low, high, unit)
