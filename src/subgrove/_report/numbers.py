"""Estimates, rules and numbers on the page: the digits of `_core.text`, typeset with minus signs and powers.

A sentence shows a number as finely as its standard error allows. In a column the eye compares, so none of its numbers
has more decimals than the largest one deserves; the exact value is in the title of the cell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from statistics import NormalDist

from subgrove._core import text
from subgrove._core.text import common_decimals, fixed
from subgrove._report.summary import Estimate

MINUS, UNKNOWN, SPACE = "\u2212", "\u2013", "\u00a0"
NEARLY_ZERO = "\u2248\u00a00"
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_MOST_RULE = 140  # characters of a rule that a sentence quotes
_DIGITS = 5  # of the largest number of a column
_SMALL, _LARGE = 1e-4, 1e9  # where the largest is beyond these, each number of a column has its own decimals


def with_interval(one: Estimate, level: float) -> str:
    """Return an estimate and its interval with the level, or the estimate alone if it has no interval."""
    return _with_bounds(one, f"{text.percent(level)} interval ")


def with_range(one: Estimate) -> str:
    """Return an estimate and its interval, such as "303 (262 to 350)"."""
    return _with_bounds(one, "")


def _with_bounds(one: Estimate, words: str) -> str:
    if one.conf_low is None or one.conf_high is None:
        return text.number(one.estimate)
    estimate, low, high = common_decimals(
        [one.estimate, one.conf_low, one.conf_high], (one.conf_high - one.conf_low) / 2
    )
    return f"{estimate} ({words}{low} to {high})"


def short(rule: str) -> str:
    """Return a rule that fits into a sentence."""
    return rule if len(rule) <= _MOST_RULE else f"{rule[: _MOST_RULE - 4].rstrip()} ..."


def tidy(sentence: str) -> str:
    """Return a sentence on one line: names of columns may contain anything."""
    return re.sub(r"[\s\x00-\x1f\x7f]+", " ", sentence).strip()


# On the page


def prose(sentence: str) -> str:
    """Return a sentence with minus signs and raised powers, and without line breaks before % and around \u00b1."""
    typed = re.sub(r"(?<=\d)e([+-]\d\d+)(?!\w)", _power, re.sub(r"(?<![\w.])-(?=\d)", MINUS, sentence))
    typed = re.sub(r"(?<=\d) %", f"{SPACE}%", typed)
    return re.sub(r"(?<=\d) \u00b1 (?=\d)", f"{SPACE}\u00b1{SPACE}", typed)


def typeset(plain: str) -> str:
    """Return the text of a number, or of two with \u00b1, with raised powers of ten."""
    return prose(re.sub(r"(?<=\d)e([+-]\d+)", _power, plain))  # also e+7, which no sentence has


def _power(found: re.Match[str]) -> str:
    return f"{SPACE}\u00d7{SPACE}10{str(int(found[1])).translate(_RAISED)}"


def number(value: float | None) -> str:
    """Return a number with three significant digits; a dash for an unknown one."""
    return typeset(text.number(value)) if value is not None and math.isfinite(value) else UNKNOWN


def with_noise(value: float | None, noise: float | None) -> str:
    """Return a number with its noise, such as "303 \u00b1 41", both to two digits of the noise."""
    if value is None or not noise or not math.isfinite(noise):
        return number(value)
    typed, margin = (typeset(one) for one in common_decimals([value, noise], noise))
    space = " " if "\u00d7" in typed else SPACE  # long numbers may be broken there
    return f"{typed}{space}\u00b1{SPACE}{margin}"


def half_interval(std_error: float | None, level: float) -> float | None:
    """Return half the width of a normal interval of that level."""
    return None if std_error is None else NormalDist().inv_cdf((1 + level) / 2) * std_error


def half_width(estimate: Estimate) -> float | None:
    """Return half the width of the interval; None if there is none."""
    if estimate.conf_low is None or estimate.conf_high is None:
        return None
    return (estimate.conf_high - estimate.conf_low) / 2


def estimate_text(estimate: Estimate | None) -> str:
    """Return an estimate with its interval, such as "303 (262 to 350)"; a dash for an unknown one."""
    return UNKNOWN if estimate is None else typeset(with_range(estimate))


def estimate_parts(estimate: Estimate | None) -> tuple[str, str]:
    """Return an estimate and its interval separately; the latter is "" if there is none."""
    value, _, interval = estimate_text(estimate).partition(" (")
    return value, interval.removesuffix(")")


def percent(share: float | None) -> str:
    """Return a share in percent; a dash for an unknown one."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    return prose(text.percent(share).replace("less than", "<").replace("more than", ">"))


def explained(share: float | None) -> str:
    """Return an explained share on held-out rows in percent, where a value below 0 means 0."""
    return percent(None if share is None else max(share, 0.0))


def p_text(p_value: float | None) -> str:
    """Return a p-value, such as "p = 0.03" or "p < 0.001"; "" if unknown."""
    if p_value is None or not math.isfinite(p_value):
        return ""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"


def cell(value: float | int | str | bool | None) -> str:
    """Return a setting as text."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return typeset(f"{value:.6g}") if isinstance(value, float) else value


# In the columns of a table


def decimals_of(values: Iterable[float | None]) -> int | None:
    """Return the most decimals in a column; None where each number has its own."""
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    if not _SMALL <= largest < _LARGE:
        return None
    return max(0, _DIGITS - 1 - math.floor(math.log10(largest)))


def decimals_of_estimates(estimates: Iterable[Estimate | None]) -> int | None:
    """Return the most decimals in a column of estimates."""
    return decimals_of(one.estimate for one in estimates if one is not None)


def estimate_cell(estimate: Estimate | None, most: int | None) -> tuple[str, str]:
    """Return an estimate and its interval ("" if there is none); "\u2248 0" where all of it rounds to 0."""
    if estimate is None or most is None:
        return estimate_parts(estimate)
    noise = half_width(estimate)
    bounds = [one for one in (estimate.conf_low, estimate.conf_high) if one is not None]
    texts = [fixed(one, _places(noise, most)) for one in (estimate.estimate, *bounds)]
    if _all_zero(texts):
        return ("0" if estimate.estimate == 0 and not noise else NEARLY_ZERO), ""
    value, *ends = map(typeset, texts)
    return value, " to ".join(ends) if len(ends) == 2 else ""


def number_cell(value: float, noise: float | None, most: int | None) -> str:
    """Return a number with its noise after \u00b1; "\u2248 0" where both round to 0."""
    if most is None or value == 0 == (noise or 0.0):
        return with_noise(value, noise)
    texts = [fixed(one, _places(noise, most)) for one in ([value, noise] if noise else [value])]
    return NEARLY_ZERO if _all_zero(texts) else f"{SPACE}\u00b1{SPACE}".join(map(typeset, texts))


def rough(value: float, noise: float, most: int | None) -> str:
    """Return a number to the decimal that a noise of this size allows."""
    return number(value) if most is None else typeset(fixed(value, _places(noise, most)))


def _places(noise: float | None, most: int) -> int:
    """Return the decimals for two digits of the noise, but not more than the column has."""
    return min(most, max(0, 1 - math.floor(math.log10(noise)))) if noise else most


def _all_zero(texts: list[str]) -> bool:
    return not any(float(one.replace(",", "")) for one in texts)
