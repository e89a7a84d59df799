"""Axes of a feature: numbers, dates, durations or levels, with ticks and labels that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import tick_label
from subgrove._data.columns import ColumnInfo
from subgrove.plots._figure import DOTS, LINE, one_line, text_width, widest, wrap
from subgrove.plots._palette import font_size

if TYPE_CHECKING:
    from matplotlib.axis import Axis as DrawnAxis

_GAP = 4.0  # points between two labels
_LONGEST = 16.0  # an upright label is at most this many times as long as its font is high
_UNITS = {"days": 86_400e6, "hours": 3_600e6, "minutes": 60e6, "seconds": 1e6, "microseconds": 1.0}
_MARGIN = 0.03  # of the range, at both ends


@dataclass(frozen=True)
class AxisTicks:
    """The axis of x: its limits, and the positions and labels of its ticks.

    Levels stand at 0, 1, 2, and so on; dates are days. The limits are 0 and 1 where x has one value or no ticks. Labels
    that are `upright` are turned by 90 degrees.
    """

    low: float = 0.0
    high: float = 1.0
    at: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    upright: bool = False


def axis_of(target: ColumnInfo, edges: Sequence[float], room: float, size: float) -> AxisTicks:
    """The axis of x, `room` points wide, with labels of that size."""
    if target.kind != "numeric":
        return _level_axis(target.levels, room, size)
    if edges[0] == edges[-1]:
        date = np.datetime64(int(edges[0]), "us").astype("datetime64[D]") if target.is_date else None
        return AxisTicks(at=(0.5,), labels=(f"{edges[0]:.6g}" if date is None else str(date),))
    if not _has_ticks(target, edges):
        return AxisTicks()
    unit = _UNITS["days"] if target.is_date else 1.0
    low, high = edges[0] / unit, edges[-1] / unit
    for most in (5, 4, 3, 2):
        at, labels = _date_ticks(low, high, most) if target.is_date else _number_ticks(low, high, most)
        places = (np.array(at) - low) / (high - low) * room
        halves = np.array([text_width(label, size) / 2 for label in labels])
        if (np.diff(places) >= halves[1:] + halves[:-1] + _GAP).all():
            return AxisTicks(low, high, at, labels)
    return AxisTicks(low, high)


def _has_ticks(target: ColumnInfo, edges: Sequence[float]) -> bool:
    """Whether numbers on the axis are distinguishable, and dates are in years 1 to 9999."""
    size = max(abs(edges[0]), abs(edges[-1]))
    if target.is_date:
        day = _UNITS["days"]
        return edges[0] > -719_000 * day and edges[-1] < 2_932_000 * day and edges[-1] - edges[0] > 1e6
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


def level_room(levels: Sequence[str], size: float) -> float:
    """Width in points at which all levels can be written side by side."""
    return (len(levels) + 0.2) * (widest([one_line(level) for level in levels], size) + _GAP)


def _level_axis(levels: Sequence[str], room: float, size: float) -> AxisTicks:
    """Levels side by side in two lines at most, or upright; of many levels some are labelled."""
    pitch = room / (len(levels) + 0.2)
    labels = [wrap(level, pitch - _GAP, size, 2) for level in levels]
    upright = widest(labels, size) > pitch - _GAP or any(DOTS in label for label in labels)
    at = range(len(levels))
    if upright:
        at = range(0, len(levels), math.ceil(LINE * size / pitch))
        labels = [wrap(levels[place], _LONGEST * size, size, 1) for place in at]
    return AxisTicks(-0.6, len(levels) - 0.4, tuple(map(float, at)), tuple(labels), upright)


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
    divisor : float
        Length of a day for dates, or of the unit of durations, in microseconds.
    """

    info: ColumnInfo
    order: tuple[int, ...]
    low: float
    high: float
    unit: str = ""
    divisor: float = 1.0

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
        return np.asarray(values / self.divisor)

    def set_up(self, axis: DrawnAxis, room: float, margin: float = _MARGIN) -> None:
        """Give an axis its limits, and as many ticks as have room without touching."""
        size = 0.94 * font_size()
        if self.has_levels:
            shown = replace(self.info, levels=tuple(self.info.levels[at] for at in self.order))
            ticks, beyond = axis_of(shown, (), room, size), 0.5 + (0.1 if margin else 0.0)
            low, high, at = -beyond, len(self.order) - 1 + beyond, ticks.at
        else:
            unit = self.divisor if self.unit else 1.0
            ticks = axis_of(self.info, (self.low / unit, self.high / unit), room, size)
            low, high = self.low / self.divisor, self.high / self.divisor
            beyond = margin * (high - low) if high > low else max(abs(low), 1.0) / 2
            low, high = low - beyond, high + beyond
            at = ticks.at if self.high > self.low else (low / 2 + high / 2,)
        horizontal = axis is axis.axes.xaxis
        (axis.axes.set_xlim if horizontal else axis.axes.set_ylim)(low, high)
        axis.set_ticks(list(at), list(ticks.labels), parse_math=False)
        if horizontal:
            axis.set_tick_params(rotation=90 if ticks.upright else 0)


def feature_axis(info: ColumnInfo, values: Sequence[Floats], *, keep_order: bool = False) -> FeatureAxis:
    """The axis that holds some values; levels in their own order, or in that of the values."""
    found = np.concatenate([np.asarray(some, dtype=np.float64) for some in values]) if values else np.empty(0)
    found = found[np.isfinite(found)]
    if info.kind != "numeric":
        codes = found.astype(np.intp).tolist()
        return FeatureAxis(info, tuple(dict.fromkeys(codes if keep_order else sorted(codes))), 0.0, 0.0)
    low, high = (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)
    if info.is_date:
        return FeatureAxis(info, (), low, high, divisor=_UNITS["days"])
    if not info.is_duration:
        return FeatureAxis(info, (), low, high)
    size = max(abs(low), abs(high))
    unit = next((name for name, length in _UNITS.items() if size >= 2 * length), "microseconds")
    return FeatureAxis(info, (), low, high, unit, _UNITS[unit])
