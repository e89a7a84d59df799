"""Numbers as they stand on the page: those of the sentences (`numbers`), typeset with true minus signs and powers.

Digits are chosen in `numbers` alone, so that a table never says anything else than a sentence.
"""

from __future__ import annotations

import math
import re
from statistics import NormalDist

from subgrove._report import numbers
from subgrove._report.summary import Estimate

MINUS, UNKNOWN, SPACE = "\u2212", "\u2013", "\u00a0"
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def prose(sentence: str) -> str:
    """A sentence with true minus signs and raised powers, and without breaks before % and around \u00b1."""
    told = re.sub(r"(?<=\d)e([+-]\d\d+)(?!\w)", _power, re.sub(r"(?<![\w.])-(?=\d)", MINUS, sentence))
    told = re.sub(r"(?<=\d) %", f"{SPACE}%", told)
    return re.sub(r"(?<=\d) \u00b1 (?=\d)", f"{SPACE}\u00b1{SPACE}", told)


def typeset(text: str) -> str:
    """The text of a number, or of two with \u00b1, with powers of ten raised."""
    return prose(re.sub(r"(?<=\d)e([+-]\d+)", _power, text))  # also e+7, which no sentence has


def _power(found: re.Match[str]) -> str:
    return f"{SPACE}\u00d7{SPACE}10{str(int(found[1])).translate(_RAISED)}"


def number(value: float | None) -> str:
    """Three digits, or all before the point; a dash for what is not known."""
    return typeset(numbers.number(value)) if value is not None and math.isfinite(value) else UNKNOWN


def alike(values: list[float], precision: float) -> list[str]:
    """Numbers with the same decimals."""
    return [typeset(one) for one in numbers.alike(values, precision)]


def with_noise(value: float | None, noise: float | None) -> str:
    """Like "303 \u00b1 41": two digits of the noise, and the number to the same place."""
    if value is None or not noise or not math.isfinite(noise):
        return number(value)
    told, margin = alike([value, noise], noise)
    before = " " if "\u00d7" in told else SPACE  # long numbers may be broken there
    return f"{told}{before}\u00b1{SPACE}{margin}"


def margin(std_error: float | None, level: float) -> float | None:
    """Half the width of an interval of that level around a normal estimate."""
    return None if std_error is None else NormalDist().inv_cdf((1 + level) / 2) * std_error


def half_width(estimate: Estimate) -> float | None:
    """Half the width of the interval; None if it has none."""
    if estimate.conf_low is None or estimate.conf_high is None:
        return None
    return (estimate.conf_high - estimate.conf_low) / 2


def estimate_text(estimate: Estimate | None) -> str:
    """An estimate with its interval, like "303 (262 to 350)"."""
    return UNKNOWN if estimate is None else typeset(numbers.with_range(estimate))


def estimate_parts(estimate: Estimate | None) -> tuple[str, str]:
    """An estimate and its interval apart; the latter is "" if there is none."""
    value, _, interval = estimate_text(estimate).partition(" (")
    return value, interval.removesuffix(")")


def percent(share: float | None) -> str:
    """A share in percent; what is more than nothing is not written as 0."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    return prose(numbers.percent(share).replace("less than", "<").replace("more than", ">"))


def foretold(share: float | None) -> str:
    """A share that is judged on other rows, where a little less than nothing means nothing."""
    return percent(None if share is None else max(share, 0.0))


def p_text(p_value: float | None) -> str:
    """Like "p = 0.03" or "p < 0.001"; "" if unknown."""
    if p_value is None or not math.isfinite(p_value):
        return ""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"


def cell(value: float | int | str | bool | None) -> str:
    """A setting as text."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return typeset(f"{value:.6g}") if isinstance(value, float) else value
