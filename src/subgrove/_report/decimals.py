"""Numbers below each other in a table: none has more decimals than the largest one deserves.

A sentence tells a number as finely as its noise allows. In a column the eye compares, and what is a ten-thousandth of
the largest number need not be told from nothing; the exact value stands in the title of the cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from subgrove._report import numbers
from subgrove._report.summary import Estimate
from subgrove._report.typography import SPACE, estimate_parts, half_width, number, typeset, with_noise

_DIGITS = 5  # of the largest number
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


def estimate_cell(estimate: Estimate | None, most: int | None) -> tuple[str, str]:
    """An estimate and its interval ("" if there is none); "\u2248 0" where all of it rounds to nothing."""
    if estimate is None or most is None:
        return estimate_parts(estimate)
    noise = half_width(estimate)
    bounds = [one for one in (estimate.conf_low, estimate.conf_high) if one is not None]
    told = _to_places([estimate.estimate, *bounds], _places(noise, most))
    if not any(float(one.replace(",", "")) for one in told):
        return ("0" if estimate.estimate == 0 and not noise else NEARLY_NOTHING), ""
    value, *ends = map(typeset, told)
    return value, " to ".join(ends) if len(ends) == 2 else ""


def number_cell(value: float, noise: float | None, most: int | None) -> str:
    """A number with its noise after \u00b1; "\u2248 0" where both round to nothing."""
    if most is None or value == 0 == (noise or 0.0):
        return with_noise(value, noise)
    told = _to_places([value, noise] if noise else [value], _places(noise, most))
    if not any(float(one.replace(",", "")) for one in told):
        return NEARLY_NOTHING
    return f"{SPACE}\u00b1{SPACE}".join(map(typeset, told))


def rough(value: float, noise: float, most: int | None) -> str:
    """A number to the place that the noise of others allows, without that noise."""
    return number(value) if most is None else typeset(numbers.fixed(value, _places(noise, most)))


def _places(noise: float | None, most: int) -> int:
    """Decimals for two digits of the noise, but not more than the column has."""
    return min(most, max(0, 1 - math.floor(math.log10(noise)))) if noise else most


def _to_places(values: list[float], places: int) -> list[str]:
    return [numbers.fixed(one, places) for one in values]
