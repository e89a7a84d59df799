"""Numbers below each other in a table: none has more decimals than the largest one deserves.

A sentence tells a number as finely as its noise allows. In a column the eye compares, and what is a thousandth of the
largest number need not be told from nothing; the exact value stands in the title of the cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from subgrove._report import numbers
from subgrove._report.summary import Estimate
from subgrove._report.typeset import SPACE, UNKNOWN, half_width, number, typeset, with_noise

_DIGITS = 4  # of the largest number
_SMALL, _LARGE = 1e-4, 1e9  # where the largest is beyond these, each number is told on its own
NEARLY_NOTHING = "\u2248\u00a00"


def decimals_of(values: Iterable[float | None]) -> int | None:
    """The most decimals in a column; None where each number is told on its own."""
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    if not _SMALL <= largest < _LARGE:
        return None
    return max(0, _DIGITS - 1 - math.floor(math.log10(largest)))


def decimals_of_estimates(estimates: Iterable[Estimate | None]) -> int | None:
    """The most decimals in a column of estimates."""
    return decimals_of(one.estimate for one in estimates if one is not None)


def estimate_cell(estimate: Estimate | None, most: int | None) -> str:
    """An estimate with half the width of its interval."""
    return UNKNOWN if estimate is None else number_cell(estimate.estimate, half_width(estimate), most)


def number_cell(value: float | None, noise: float | None, most: int | None) -> str:
    """A number with its noise; "\u2248 0" for what rounds to nothing."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if most is None or value == 0 == (noise or 0.0):
        return with_noise(value, noise)
    places = most if not noise else min(most, max(0, 1 - math.floor(math.log10(noise))))
    told = [numbers.fixed(one, places) for one in ([value, noise] if noise else [value])]
    if all(float(one.replace(",", "")) == 0 for one in told):
        return NEARLY_NOTHING
    return typeset(told[0]) if len(told) == 1 else f"{typeset(told[0])}{SPACE}\u00b1{SPACE}{typeset(told[1])}"


def rough(value: float, noise: float, most: int | None) -> str:
    """A number to the place that the noise of others allows, without that noise."""
    if most is None:
        return number(value)
    places = most if noise <= 0 else min(most, max(0, 1 - math.floor(math.log10(noise))))
    return typeset(numbers.fixed(value, places))
