"""Elements of pages and charts: style sheets, typeset numbers, SVG elements, text that fits, scales with round ticks.

Every value of an SVG element is escaped here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate, takewhile

from markupsafe import Markup, escape

from subgrove._core.text import number as plain_number
from subgrove._core.text import tick_label
from subgrove.plots._palette import N_COLORS

UNKNOWN, SPACE = "\u2013", "\u00a0"
Value = str | float | int | None

_NARROW, _WIDE = frozenset("iljtfrI.,:;|!'()[]{} "), frozenset("mwMW%@")
DOTS = "\u2026"
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_N_LINE_STYLES = 3


@cache
def template_text(name: str) -> str:
    """Return a style sheet or script of the package."""
    return files("subgrove").joinpath("_report", "templates", name).read_text(encoding="utf-8")


def subgroup_class(place: int) -> str:
    """Return the style classes of a subgroup, counted from 0: colour and line style."""
    return f"s{place % N_COLORS + 1} d{place // N_COLORS % _N_LINE_STYLES + 1}"


def prose(sentence: str) -> str:
    """Return a sentence with minus signs and raised powers, and without line breaks before % and around \u00b1."""
    typed = re.sub(r"(?<=\d)e([+-]\d\d+)(?!\w)", _power, re.sub(r"(?<![\w.])-(?=\d)", "\u2212", sentence))
    typed = re.sub(r"(?<=\d) %", f"{SPACE}%", typed)
    return re.sub(r"(?<=\d) \u00b1 (?=\d)", f"{SPACE}\u00b1{SPACE}", typed)


def typeset(plain: str) -> str:
    """Return the text of a number, or of two with \u00b1, with raised powers of ten."""
    return prose(re.sub(r"(?<=\d)e([+-]\d+)", _power, plain))  # also e+7, which no sentence has


def _power(match: re.Match[str]) -> str:
    return f"{SPACE}\u00d7{SPACE}10{str(int(match[1])).translate(_RAISED)}"


def number(value: float | None) -> str:
    """Return a number with three significant digits; a dash for an unknown one."""
    return typeset(plain_number(value)) if value is not None and math.isfinite(value) else UNKNOWN


def tag(name: str, *inside: str, **attributes: Value) -> Markup:
    """Return an element; text inside is escaped, markup is not. `class_` is class, `data_x` data-x; None is omitted."""
    known = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    values = "".join(f' {key}="{escape(_short(value))}"' for key, value in known)
    content = "".join(escape(part) for part in inside)
    return Markup(f"<{name}{values}>{content}</{name}>" if content else f"<{name}{values}/>")


def _short(value: Value) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def group(*inside: str, **attributes: Value) -> Markup:
    """Return a group of elements; nothing, if there are none."""
    return tag("g", *inside, **attributes) if any(inside) else Markup("")


def line(x1: Value, y1: Value, x2: Value, y2: Value, **attributes: Value) -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def rectangle(x: Value, y: Value, width: Value, height: Value, **attributes: Value) -> Markup:
    """A rectangle."""
    return tag("rect", x=x, y=y, width=width, height=height, **attributes)


def circle(cx: Value, cy: Value, r: Value, **attributes: Value) -> Markup:
    """A circle."""
    return tag("circle", cx=cx, cy=cy, r=r, **attributes)


def text(x: Value, y: Value, words: str, **attributes: Value) -> Markup:
    """Text at its baseline."""
    return tag("text", words, x=x, y=y, **attributes)


def path(points: list[tuple[float, float]], *, closed: bool = False, **attributes: Value) -> Markup:
    """A line through points."""
    steps = "L".join(_pair(x, y) for x, y in points)
    return tag("path", d=f"M{steps}{'Z' if closed else ''}", **attributes)


def strokes(lines: Iterable[tuple[float, float, float, float]], **attributes: Value) -> Markup:
    """Return lines of the same style as one element: from x, y to x, y."""
    return tag("path", d="".join(f"M{_pair(x1, y1)}L{_pair(x2, y2)}" for x1, y1, x2, y2 in lines), **attributes)


def boxes(places: Iterable[tuple[float, float, float, float]], **attributes: Value) -> Markup:
    """Return rectangles of the same style as one element: x, y, width, height."""
    steps = (f"M{_pair(x, y)}h{_short(w)}v{_short(h)}h{_short(-w)}z" for x, y, w, h in places)
    return tag("path", d="".join(steps), **attributes)


def stairs(base: float, steps: Sequence[tuple[float, float]], end: float, **attributes: Value) -> Markup:
    """A filled shape over a base: from each x on it has a height y, up to the end."""
    shape = "".join(f"H{_short(x)}V{_short(y)}" for x, y in steps)
    return tag("path", d=f"M{_pair(steps[0][0], base)}{shape}H{_short(end)}V{_short(base)}z", **attributes)


def _pair(x: float, y: float) -> str:
    return f"{_short(float(x))} {_short(float(y))}"


def picture(width: float, height: float, label: str, *inside: str, **attributes: Value) -> Markup:
    """Return a picture of that many units, which shrinks with the page; `label` describes it."""
    box = f"0 0 {_short(float(width))} {_short(float(height))}"
    return tag("svg", *inside, viewBox=box, width=width, height=height, role="img", aria_label=label, **attributes)


def width_of(words: str, size: float) -> float:
    """Return the width of text in a sans serif font of that size; generous, since the font is unknown."""
    return size * sum(_width(letter) for letter in words)


def _width(letter: str) -> float:
    if letter in _NARROW:
        return 0.33
    if letter in _WIDE:
        return 0.9
    if ord(letter) > 0x2E7F:
        return 1.05  # a full square in most fonts
    return 0.68 if letter.isupper() else 0.57


def shorten(words: str, room: float, size: float) -> str:
    """Return the text, or as many characters as there is room for, and dots."""
    words = " ".join(words.split())
    if width_of(words, size) <= room:
        return words
    left = room - width_of(DOTS, size)
    ends = accumulate(size * _width(letter) for letter in words)
    return words[: sum(1 for _ in takewhile(lambda end: end <= left, ends))].rstrip() + DOTS


def wrap(words: str, room: float, size: float, most: int) -> list[str]:
    """Return the text in at most so many lines; the last is shortened."""
    lines: list[str] = []
    left = words.split()
    while left and len(lines) < most - 1:
        taken = [left.pop(0)]
        while left and width_of(" ".join([*taken, left[0]]), size) <= room:
            taken.append(left.pop(0))
        lines.append(shorten(" ".join(taken), room, size))
    return [*lines, shorten(" ".join(left), room, size)] if left else lines or [""]


_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST, _LEAST = 1e300, 1e-290  # so that no step over- or underflows


@dataclass(frozen=True)
class LinearScale:
    """A linear map from numbers between `low` and `high` to positions between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of a number."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return at most so many round numbers within the scale, with their labels."""
        step = _step((self.high - self.low) / max(most, 1))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        labels = [(at * step, typeset(tick_label(at * step, step))) for at in range(first, last + 1)]
        large = max(abs(self.low), abs(self.high)) >= 1e4
        return labels if large else [(at, one.replace(",", "")) for at, one in labels]


def scale_of(values: Iterable[float | None], start: float, end: float, *, spare: float = 0.04) -> LinearScale:
    """Return a scale that includes all finite numbers, with some space at both ends."""
    known = [min(max(value, -_MOST), _MOST) for value in values if value is not None and math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high - low <= max(1e-9 * max(abs(low), abs(high)), _LEAST):
        room = 0.5 * abs(low) if abs(low) > _LEAST else 0.5
        low, high = low - room, high + room
    more = spare * (high - low)
    return LinearScale(low - more, high + more, start, end)


def _step(least: float) -> float:
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * step for step in _STEPS if size * step >= least * (1 - 1e-9))
