"""Values of a feature as places on an axis: numbers, dates in days, durations in a suitable unit, levels in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove.plots._axis import Axis, axis_of
from subgrove.plots._palette import font_size
from subgrove.plots._text import Ruler, plain

if TYPE_CHECKING:
    from matplotlib.axis import Axis as DrawnAxis

_UNITS = {"days": 86_400e6, "hours": 3_600e6, "minutes": 60e6, "seconds": 1e6, "microseconds": 1.0}
_MARGIN = 0.03  # of the range, at both ends


@dataclass(frozen=True, eq=False)
class Scale:
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
        return f"{plain(self.info.name)} ({unit})" if unit else plain(self.info.name)

    @property
    def has_levels(self) -> bool:
        """Whether the feature has levels."""
        return self.info.kind != "numeric"

    def place(self, values: Floats) -> Floats:
        """Where values stand on the axis."""
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

    def _ticks(self, shares: Floats, room: float) -> Axis:
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


def scale_of(info: ColumnInfo, values: Sequence[Floats], *, keep_order: bool = False) -> Scale:
    """The axis that holds some values; levels in their own order, or in that of the values."""
    found = np.concatenate([np.asarray(some, dtype=np.float64) for some in values]) if values else np.empty(0)
    found = found[np.isfinite(found)]
    if info.kind != "numeric":
        codes = found.astype(np.intp).tolist()
        return Scale(info, tuple(dict.fromkeys(codes if keep_order else sorted(codes))), 0.0, 0.0)
    low, high = (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)
    unit = ""
    if info.is_duration:
        size = max(abs(low), abs(high))
        unit = next((name for name, length in _UNITS.items() if size >= 2 * length), "microseconds")
    return Scale(info, (), low, high, unit)
