"""Text of results: the one format of names, lists and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

TOGETHER = " + "
"""Separator of the names of features that are resampled together."""
_SMALL, _LARGE = 1e-6, 1e12  # beyond these, numbers are written with a power of ten
_FINE_STEP, _LARGE_TICK = 1e-4, 1e9  # beyond these, labels of ticks are, for which there is less room
_MORE_DIGITS = 6  # that may be added so that a bound above 0 is not shown as 0


def quote(names: Iterable[str]) -> str:
    """Return names in quotes, for a message."""
    return ", ".join(repr(name) for name in names)


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return names as in a sentence, "a, b and 3 more"; at most `most` of them."""
    shown = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def first_of(names: Sequence[str], most: int = 4) -> str:
    """Return the first names and the number of others, "a, b and 3 more"; without "and" if there are no others."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def lines_of(head: str, lines: Sequence[tuple[str, str]], most: int = 20) -> str:
    """Return the text of a result: a head, and a line for each of its first features, with aligned names."""
    width = max((len(name) for name, _ in lines[:most]), default=0)
    return listing(head, [f"{name:<{width}}  {text}" for name, text in lines], most)


def listing(head: str, lines: Sequence[str], most: int = 20) -> str:
    """Return the text of a result: a head, and its first lines below it."""
    more = [f"  and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join([head, *(f"  {line}" for line in lines[:most]), *more])


def count_of(n: float, one: str, several: str = "") -> str:
    """Return a count with its noun, such as "1,204 rows"."""
    return f"{n:,.0f} {one if n == 1 else several or one + 's'}"


def letter(place: int) -> str:
    """Return the short name of a subgroup, counted from 0: A to Z, then AA and so on."""
    name = ""
    place += 1
    while place:
        place, digit = divmod(place - 1, 26)
        name = chr(ord("A") + digit) + name
    return name


def percent(share: float) -> str:
    """Return a share in percent; what is above 0 is never written as 0, what is below 1 never as 100."""
    if not math.isfinite(share):
        return "unknown"
    if 0 < share < 0.005:
        return "less than 1 %"
    if 0.995 < share < 1:
        return "more than 99 %"
    return f"{round(100 * share)} %"


def p_value_text(p_value: float | None) -> str:
    """Return a p-value, such as "p = 0.021" or "p < 0.001"; "" if unknown."""
    if p_value is None or not math.isfinite(p_value):
        return ""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.3f}" if p_value < 0.1 else f"p = {p_value:.2f}"


def number(value: float) -> str:
    """Return a number with three significant digits, or all digits before the decimal point."""
    if value == 0:
        return "0"
    size = abs(value)
    if size < _SMALL or size >= _LARGE:
        return f"{value:.2e}"
    return fixed(value, max(0, 2 - math.floor(math.log10(size)))) if size < 100 else fixed(value, 0)


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals; what rounds to 0 has no sign."""
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def common_decimals(values: Sequence[float], precision: float) -> list[str]:
    """Return numbers with the same decimals: those that `precision` needs for two significant digits.

    A number other than 0 is not shown as 0, so that an interval above 0 is seen to be above 0.
    """
    if any(map(math.isnan, values)):
        return [number(value) if value == value else "" for value in values]
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
    texts = [fixed(value, decimals) for value in values]
    if decimals and all(text.endswith(f".{'0' * decimals}") for text in texts):
        return [text.partition(".")[0] for text in texts]
    return texts


def with_errors(estimates: Sequence[float], errors: Sequence[float]) -> list[str]:
    """Return aligned estimates with standard errors, each pair with the same decimals; a NaN error is left out."""
    texts = [common_decimals(pair, pair[1]) for pair in zip(estimates, errors, strict=True)]
    width = max(len(estimate) for estimate, _ in texts)
    return [f"{estimate:>{width}}{f'  +- {error}' if error else ''}" for estimate, error in texts]


def tick_label(value: float, step: float) -> str:
    """Return the label of a tick, with as many digits as distinguish it from ticks one `step` away."""
    if abs(value) < step / 2:
        return "0"
    places = -math.floor(math.log10(step) + 1e-9)
    times = step / 10.0**-places  # the other way round, 10.0 to the power of 309 would be too large
    if abs(times - round(times)) > 1e-6:
        places += 1  # steps of 0.25
    if abs(value) >= _LARGE_TICK or step < _FINE_STEP:
        return f"{value:.{max(0, places + math.floor(math.log10(abs(value)) + 1e-9))}e}"
    return f"{value:,.{max(0, places)}f}"
