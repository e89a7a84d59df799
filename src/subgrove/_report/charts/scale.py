"""Linear scales of pictures, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from subgrove._core.text import tick_label
from subgrove._report.numbers import typeset

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST, _LEAST = 1e300, 1e-290  # so that no step over- or underflows


@dataclass(frozen=True)
class LinearScale:
    """A linear map from numbers between `low` and `high` to positions between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of a number."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return at most so many round numbers within the scale, with their labels."""
        step = _step((self.high - self.low) / max(most, 1))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(at * step, typeset(tick_label(at * step, step))) for at in range(first, last + 1)]


def scale_of(values: Iterable[float | None], start: float, end: float, *, spare: float = 0.04) -> LinearScale:
    """Return a scale that includes all finite numbers, with some space at both ends."""
    known = [min(max(value, -_MOST), _MOST) for value in values if value is not None and math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high - low <= max(1e-9 * max(abs(low), abs(high)), _LEAST):
        room = 0.5 * abs(low) if abs(low) > _LEAST else 0.5
        low, high = low - room, high + room
    more = spare * (high - low)
    return LinearScale(low - more, high + more, start, end)


def _step(least: float) -> float:
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * step for step in _STEPS if size * step >= least * (1 - 1e-9))
