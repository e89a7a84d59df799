"""Scales: where a number lies in a picture, and which round numbers stand on the axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from subgrove._report.typography import typeset

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_LARGE, _SMALL = 1e7, 1e-4  # beyond, powers of ten are written
_MOST, _LEAST = 1e300, 1e-290  # so that no step over- or underflows


@dataclass(frozen=True)
class Scale:
    """From numbers between `low` and `high` to places between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a number."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """At most so many round numbers within the scale, with their text."""
        step = _step((self.high - self.low) / max(most, 1))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(at * step, _tick_text(at * step, step)) for at in range(first, last + 1)]


def scale_of(values: Iterable[float | None], start: float, end: float, *, spare: float = 0.04) -> Scale:
    """A scale that holds all the numbers, with some room at both ends."""
    known = [min(max(value, -_MOST), _MOST) for value in values if value is not None and math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high - low <= max(1e-9 * max(abs(low), abs(high)), _LEAST):
        room = 0.5 * abs(low) if abs(low) > _LEAST else 0.5
        low, high = low - room, high + room
    more = spare * (high - low)
    return Scale(low - more, high + more, start, end)


def _step(least: float) -> float:
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * step for step in _STEPS if size * step >= least * (1 - 1e-9))


def _tick_text(value: float, step: float) -> str:
    """A number with as many digits as tell it from its neighbours."""
    if abs(value) < step / 2:
        return "0"
    places = -math.floor(math.log10(step) + 1e-9)
    times = step / 10.0**-places  # the other way round, 10.0 to the power of 309 would be too large
    if abs(times - round(times)) > 1e-6:
        places += 1  # steps of 0.25
    if abs(value) >= _LARGE or step < _SMALL:
        return typeset(f"{value:.{max(0, places + math.floor(math.log10(abs(value)) + 1e-9))}e}")
    return typeset(f"{value:,.{max(0, places)}f}")
