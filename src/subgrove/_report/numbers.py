"""Numbers and names as they stand in a sentence: few digits, the same decimals side by side, never a minus zero."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from subgrove._report.summary import Estimate

_MOST_RULE = 140  # letters of a rule that a sentence quotes
_SMALL, _LARGE = 1e-4, 1e9  # beyond, numbers are told with a power of ten
_MORE_DIGITS = 6  # that may be added so that a bound above 0 is not shown as 0


def number(value: float) -> str:
    """Three digits, or all before the point."""
    if value == 0:
        return "0"
    size = abs(value)
    if size < _SMALL or size >= _LARGE:
        return f"{value:.2e}"
    return fixed(value, max(0, 2 - math.floor(math.log10(size)))) if size < 100 else fixed(value, 0)


def fixed(value: float, decimals: int) -> str:
    """With so many decimals; what rounds to 0 has no sign."""
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def alike(values: Sequence[float], precision: float) -> list[str]:
    """Numbers with the same decimals: those that `precision` needs for two digits.

    A number that is not 0 is not shown as 0, so that an interval above 0 is seen to be.
    """
    largest = max((abs(value) for value in values), default=0.0)
    size = precision if precision > 0 else largest / 10
    if largest == 0:
        return ["0"] * len(values)
    if largest >= _LARGE or size < _SMALL:
        return [f"{value + 0.0:.2e}" if value else "0" for value in values]
    decimals = max(0, 1 - math.floor(math.log10(size)))
    for more in range(_MORE_DIGITS):
        if all(value == 0 or float(f"{value:.{decimals + more}f}") != 0 for value in values):
            decimals += more
            break
    told = [fixed(value, decimals) for value in values]
    if decimals and all(one.endswith(f".{'0' * decimals}") for one in told):
        return [one.partition(".")[0] for one in told]
    return told


def with_interval(one: Estimate, level: float) -> str:
    """An estimate and its interval, which need not have the estimate in its middle; the estimate alone without one."""
    if one.conf_low is None or one.conf_high is None:
        return number(one.estimate)
    told = alike([one.estimate, one.conf_low, one.conf_high], (one.conf_high - one.conf_low) / 2)
    return f"{told[0]} ({percent(level)} interval {told[1]} to {told[2]})"


def with_range(one: Estimate) -> str:
    """The same in short, where the level is told elsewhere."""
    if one.conf_low is None or one.conf_high is None:
        return number(one.estimate)
    told = alike([one.estimate, one.conf_low, one.conf_high], (one.conf_high - one.conf_low) / 2)
    return f"{told[0]} ({told[1]} to {told[2]})"


def percent(share: float) -> str:
    """A share in percent."""
    if 0 < share < 0.005:
        return "less than 1 %"
    if 0.995 < share < 1:
        return "more than 99 %"
    return f"{round(100 * share)} %"


def counted(n: float, one: str, several: str = "") -> str:
    """So many of something."""
    return f"{n:,.0f} {one if n == 1 else several or one + 's'}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names as in a sentence."""
    shown = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def short(rule: str) -> str:
    """A rule that a sentence can bear."""
    return rule if len(rule) <= _MOST_RULE else f"{rule[: _MOST_RULE - 4].rstrip()} ..."


def tidy(sentence: str) -> str:
    """A sentence on one line: names of columns may hold anything."""
    return re.sub(r"[\s\x00-\x1f\x7f]+", " ", sentence).strip()
