"""Text that fits: wrapped to a width in points, and shortened in the middle where necessary."""

from __future__ import annotations

import math
import re
import textwrap
import warnings
from collections.abc import Container, Sequence

DOTS = "\N{HORIZONTAL ELLIPSIS}"
LINE = 1.25
"""Distance of two lines, as a multiple of the size of the font."""
_SLACK = 1.04  # a renderer places letters on whole pixels, which may be a little wider
_LEAST = 4  # letters in a line
_MOST_IN_LINE = 12  # items of a list in a line

# A number with decimals beside a sign of comparison.
_NUMBER = r"-?\d+\.\d+(?:e[+-]?\d+)?"
_THRESHOLD = rf"(?<=[<>] ){_NUMBER}(?![\w.])|(?<=[<>]= ){_NUMBER}(?![\w.])|(?<![\w.-]){_NUMBER}(?= <)"


class _Wrapper(textwrap.TextWrapper):
    """Lines end at spaces, underscores and slashes; not within a comparison."""

    wordsep_re = re.compile(r"((?<![<>=]) (?![<>])|(?<=[_/])(?=\S))")


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width in points of the widest line of a text."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # drawing will warn of a letter that the font lacks; once is enough
        widths = [text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in text.split("\n")]
    return _SLACK * float(max(widths))


def widest(texts: Sequence[str], size: float) -> float:
    """Return the width in points of the widest text."""
    return max((text_width(text, size) for text in texts), default=0.0)


def n_lines_of(text: str) -> int:
    """Return the number of lines of a text."""
    return text.count("\n") + 1


def wrap(text: str, room: float, size: float, n_lines: int = 3) -> str:
    """Return text in at most `n_lines` lines about `room` points wide, shortened in the middle if it is too long."""
    text = one_line(text)
    letters = max(_LEAST, int(room * len(text) / text_width(text, size)))
    wrapper = _Wrapper(letters, break_long_words=False)
    lines, kept = wrapper.wrap(text), min(len(text), letters * n_lines)
    while (len(lines) > n_lines or max(map(len, lines)) > letters) and kept > 1:
        kept -= 1
        # Names often differ at the end.
        end = kept // 3
        lines = wrapper.wrap(f"{text[: kept - end].rstrip()}{DOTS}{text[len(text) - end :].lstrip()}")
    return "\n".join(lines)


def wrap_list(items: Sequence[str], short: str, room: float, size: float, n_lines: int, *, ending: str = "") -> str:
    """Return the items that fit into `n_lines` lines and the number of further items; `short` if not even one fits."""
    items = [one_line(item) for item in items]
    for shown in range(min(len(items), _MOST_IN_LINE * n_lines), 0, -1):
        more = len(items) - shown
        listed = ", ".join(items[:shown]) + f" and {more} more" * (more > 0)
        lines = wrap(f"{listed} {ending}", room, size, n_lines)
        if DOTS not in lines:
            return lines
    return wrap(short, room, size, 1)


def unique_label(name: str, taken: Container[str]) -> str:
    """The name, with a number if it is taken."""
    label, number = name, 1
    while label in taken:
        number += 1
        label = f"{name} ({number})"
    return label


def one_line(text: str) -> str:
    """The text on one line, with single spaces."""
    return " ".join(text.split()) or "''"


def round_to(value: float, digits: int) -> float:
    """The number with that many significant digits, but never less than its whole part."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def short_rule(rule: str, digits: int = 4) -> str:
    """A rule with rounded thresholds, as pictures show it."""
    return re.sub(_THRESHOLD, lambda number: f"{round_to(float(number[0]), digits):.15g}", rule)
