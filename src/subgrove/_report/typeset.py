"""Numbers as a reader wants them: few digits, a true minus sign, ± with as many digits as the noise deserves."""

from __future__ import annotations

import math
import re

from subgrove._report.summary import Estimate

MINUS, UNKNOWN, SPACE = "\u2212", "\u2013", "\u00a0"
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_LARGE, _SMALL = 1e7, 1e-4  # beyond these, powers of ten are written


def number(value: float | None, digits: int = 3) -> str:
    """A number with at least that many significant digits; whole parts are never rounded."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    if not _SMALL <= abs(value) < _LARGE:
        return _with_power(value, digits)
    return fixed(value, decimals(value, digits))


def fixed(value: float, places: int) -> str:
    """A number with so many digits after the point; never minus zero."""
    text = f"{value:,.{places}f}"
    if not any(sign in text for sign in "123456789"):
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def decimals(value: float, digits: int) -> int:
    """Digits after the point that make so many significant ones."""
    if value == 0 or not math.isfinite(value):
        return 0
    rounded = float(f"{value:.{digits - 1}e}")  # 9.996 has one digit less after the point than 9.994
    return max(0, digits - 1 - math.floor(math.log10(abs(rounded)) + 1e-12))


def _with_power(value: float, digits: int) -> str:
    head, _, power = f"{value:.{digits - 1}e}".partition("e")
    return f"{head.replace('-', MINUS)} \u00d7 10{str(int(power)).translate(_RAISED)}"


def half_width(estimate: Estimate) -> float | None:
    """Half the width of the interval; None if it has none."""
    if estimate.conf_low is None or estimate.conf_high is None:
        return None
    return (estimate.conf_high - estimate.conf_low) / 2


def with_noise(value: float, noise: float | None) -> str:
    """Like "303 ± 41": two digits of the noise, and the number to the same place."""
    if noise is None or not math.isfinite(noise) or noise <= 0:
        return number(value)
    largest = max(abs(value), noise)
    if not _SMALL <= largest < _LARGE or noise < 1e-6 * largest:
        return f"{number(value)}{SPACE}\u00b1{SPACE}{number(noise, 2)}"
    places = decimals(noise, 2)
    return f"{fixed(value, places)}{SPACE}\u00b1{SPACE}{fixed(noise, places)}"


def estimate_text(estimate: Estimate | None) -> str:
    """An estimate with half the width of its interval."""
    return UNKNOWN if estimate is None else with_noise(estimate.estimate, half_width(estimate))


def interval_text(estimate: Estimate) -> str:
    """Like "262 to 344"; "" if there is no interval."""
    noise = half_width(estimate)
    if noise is None or estimate.conf_low is None or estimate.conf_high is None:
        return ""
    if noise <= 0 or not _SMALL <= max(abs(estimate.conf_low), abs(estimate.conf_high)) < _LARGE:
        return f"{number(estimate.conf_low)} to {number(estimate.conf_high)}"
    places = decimals(noise, 2)
    return f"{fixed(estimate.conf_low, places)} to {fixed(estimate.conf_high, places)}"


def percent(share: float | None) -> str:
    """A share in percent; what is more than nothing is not written as 0."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    if 0 < share < 0.005:
        return f"< 1{SPACE}%"
    if 0.995 <= share < 1:
        return f"> 99{SPACE}%"
    return f"{fixed(100 * share, 0)}{SPACE}%"


def foretold(share: float | None) -> str:
    """A share that is judged on other rows, where a little less than nothing means nothing."""
    return percent(None if share is None else max(share, 0.0))


def prose(sentence: str) -> str:
    """A sentence with true minus signs, and without breaks before % and around \u00b1."""
    told = re.sub(r"(?<![\w.])-(?=\d)", MINUS, sentence)
    told = re.sub(r"(?<=\d) %", f"{SPACE}%", told)
    return re.sub(r"(?<=\d) \u00b1 (?=\d)", f"{SPACE}\u00b1{SPACE}", told)


def p_text(p_value: float | None) -> str:
    """Like "p = 0.03" or "p < 0.001"; "" if unknown."""
    if p_value is None or not math.isfinite(p_value):
        return ""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"


def count(value: int, what: str, many: str | None = None) -> str:
    """Like "1 row" and "1,234 rows"."""
    return f"{value:,} {what if value == 1 else many or what + 's'}"


def cell(value: float | int | str | bool | None) -> str:
    """A setting as text."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return number(value) if isinstance(value, float) else value
