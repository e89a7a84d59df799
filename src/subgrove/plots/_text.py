"""Text that fits: measured in points, wrapped, and shortened where necessary."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Container, Sequence
from functools import lru_cache

LINE = 1.25
"""Distance of two lines, as a multiple of the size of the font."""
DOTS = "\N{HORIZONTAL ELLIPSIS}"
_NARROWEST = 0.25  # no usual letter is narrower than this share of the size of the font
_LONGEST = 100  # letters of a name that is shortened
_MOST_IN_LINE = 12  # items that a line can hold
_SLACK = 1.04  # a renderer places letters on whole pixels, which may be a little wider


# A number with decimals beside a sign of comparison.
_NUMBER = r"-?\d+\.\d+(?:e[+-]?\d+)?"
_THRESHOLD = rf"(?<=[<>] ){_NUMBER}(?![\w.])|(?<=[<>]= ){_NUMBER}(?![\w.])|(?<![\w.-]){_NUMBER}(?= <)"


class Ruler:
    """Measures text in the font of the picture, without drawing it.

    Parameters
    ----------
    size : float
        Size of the font in points.
    bold : bool
        Whether the text is bold.
    """

    def __init__(self, size: float, *, bold: bool = False) -> None:
        from matplotlib.font_manager import FontProperties, findfont

        self.size = size
        self._bold = bold
        self._file = findfont(FontProperties(weight="bold" if bold else "normal"))

    @property
    def line(self) -> float:
        """Height of a line in points."""
        return LINE * self.size

    def width(self, text: str) -> float:
        """Width of one line of text in points."""
        return _SLACK * self.size * sum(_letter_width(letter, self._file, self._bold) for letter in text)

    def widest(self, lines: Sequence[str]) -> float:
        """Width of the widest line in points."""
        return max((self.width(line) for line in lines), default=0.0)

    def shorten(self, text: str, room: float) -> str:
        """The text if it fits, else its beginning and its end with dots between."""
        if len(text) <= room / (_NARROWEST * self.size) and self.width(text) <= room:
            return text
        kept = min(len(text) - 1, int(room / (_NARROWEST * self.size)))
        while kept > 1 and self.width(_without_middle(text, kept)) > room:
            kept -= 1
        return _without_middle(text, max(kept, 1))

    def wrap(self, words: Sequence[str], room: float) -> tuple[str, ...]:
        """Return words in as few lines as possible; a word wider than a line is shortened."""
        lines: list[str] = []
        for word in words:
            fitting = self.shorten(word.rstrip(), room) + word[len(word.rstrip()) :]
            if lines and self.width((lines[-1] + fitting).rstrip()) <= room:
                lines[-1] += fitting
            else:
                lines.append(fitting)
        return tuple(line.rstrip() for line in lines)

    def wrap_name(self, name: str, room: float, n_lines: int) -> tuple[str, ...]:
        """A name in at most `n_lines` lines, shortened in one place if they do not hold it."""
        shown = one_line(name)
        lines, kept = self.wrap(_words(shown), room), len(shown)
        while (len(lines) > n_lines or "".join(lines).count(DOTS) > shown.count(DOTS) + 1) and kept > 2:
            kept = min(kept - 1, _LONGEST)
            lines = self.wrap(_words(_without_middle(shown, kept)), room)
        return lines

    def wrap_rule(self, rule: str, room: float, n_lines: int) -> tuple[str, ...]:
        """A rule in at most `n_lines` lines, broken between conditions as far as these fit."""
        conditions = re.findall(r".*?(?: and |$)", one_line(rule))
        words = [
            word
            for condition in conditions
            for word in ([condition] if self.width(condition.rstrip()) <= room else _words(condition))
            if word
        ]
        lines = self.wrap(words, room)
        fits = len(lines) <= n_lines and not any(DOTS in line for line in lines)
        return lines if fits else self.wrap_name(rule, room, n_lines)

    def wrap_list(self, items: Sequence[str], ending: str, room: float, n_lines: int) -> tuple[str, ...]:
        """Return the items that fit into `n_lines` lines, the number of further items, and the ending."""
        for shown in range(min(len(items), _MOST_IN_LINE * n_lines), 0, -1):
            lines = self.wrap(self._listed(items[:shown], len(items) - shown, ending, room), room)
            if len(lines) <= n_lines:
                return lines
        for n_first in range(n_lines - 1, 0, -1):
            first = " ".join(self.wrap_name(items[0], room, n_first))
            lines = self.wrap(self._listed([first], len(items) - 1, ending, room), room)
            if len(lines) <= n_lines:
                return lines
        # No room for a name and a number: how many there are says more than the beginning of the first.
        return (self.shorten(f"{len(items)} levels" if len(items) > 1 else one_line(items[0]), room),)

    def _listed(self, items: Sequence[str], more: int, ending: str, room: float) -> list[str]:
        """Return the words of a list: "a, b and 3 more or missing"."""
        words = [word for item in items[:-1] for word in _words(f"{one_line(item)}, ")]
        words += _words(f"{one_line(items[-1])} ")
        for tail in (f"and {more} more " if more else "", ending):
            words += [tail] if self.width(tail.rstrip()) <= room else _words(tail)
        return words


@lru_cache(maxsize=10_000)
def _letter_width(letter: str, file: str, bold: bool) -> float:
    """Return the width of a letter as a multiple of the font size; `file` distinguishes fonts in the cache."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=100, weight="bold" if bold else "normal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # drawing will warn of a letter that the font lacks; once is enough
        # Between two others, for a space on its own has no width.
        with_it, without = (
            text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] for text in (f"x{letter}x", "xx")
        )
    return float(with_it - without) / 100


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


def _without_middle(text: str, kept: int) -> str:
    """Both ends of a text, since names often differ at the end."""
    if kept >= len(text):
        return text
    end = kept // 3
    return f"{text[: kept - end].rstrip()}{DOTS}{text[len(text) - end :].lstrip() if end else ''}"


def _words(text: str) -> list[str]:
    """Split text where a line may end; not between a comparison sign and its right-hand side."""
    return re.findall(r"(?:[<>]=? )?[^ _/]*[ _/]|(?:[<>]=? )?[^ _/]+", text)


def round_to(value: float, digits: int) -> float:
    """The number with that many significant digits, but never less than its whole part."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def short_rule(rule: str, digits: int = 4) -> str:
    """A rule with rounded thresholds, as pictures show it."""

    def rounded(found: re.Match[str]) -> str:
        return f"{round_to(float(found[0]), digits):.15g}"

    return re.sub(_THRESHOLD, rounded, rule)
