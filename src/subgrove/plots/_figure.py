"""Texts that fit, figures and axes: room for labels, frames, ticks, notes and legends."""

from __future__ import annotations

import math
import re
import textwrap
import warnings
from collections.abc import Container, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from subgrove._core.text import tick_label
from subgrove.exceptions import ParameterError
from subgrove.plots._palette import GREY, font_size, small_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

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


POINTS = 72.0
"""Points in an inch."""
_ALONG_X, _ALONG_Y = 3.6, 2.2  # distance of two ticks in sizes of the font
_MOST_NOTE = 6  # lines of a note
_HANDLE, _MOST_COLUMNS = 4.2, 4  # room of a handle of a legend with what is around it, in sizes of the font
_SIZE, _SMALLEST = 0.94, 5.0  # size of the font of a legend as a multiple of that of names; the smallest, in points
_LINE = 1.4  # distance of two lines of a legend
_SPACING = {"borderaxespad": 0.4, "borderpad": 0.0, "labelspacing": 0.35, "handlelength": 1.8, "columnspacing": 1.4}
_SHARE = 0.45  # of the height of the axes that a legend takes


def require_matplotlib() -> None:
    """Raise, with the line that installs it, if matplotlib is missing."""
    if not find_spec("matplotlib"):
        raise ModuleNotFoundError("Plots need matplotlib. Run: pip install 'subgrove[plot]'", name="matplotlib")


def check_type(name: str, value: Any, kind: type, words: str) -> None:
    """Raise if matplotlib is missing, or a value is not of a class, which is described in words."""
    require_matplotlib()
    if not isinstance(value, kind):
        raise ParameterError(f"{name} must be {words}; got {type(value).__name__}.")


def check_axes(ax: Any) -> None:
    """Raise if `ax` is not matplotlib axes."""
    from matplotlib.axes import Axes

    if ax is None:
        return
    check_type("ax", ax, Axes, "matplotlib Axes or None for a new figure")
    if ax.figure is None:
        raise ParameterError("ax has been removed from its figure. Pass axes of a figure, or leave ax out.")


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of that size in inches, with constrained layout."""
    from matplotlib import pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


def size_of(ax: Axes) -> tuple[float, float]:
    """Return width and height of axes in points, after the layout of the figure."""
    figure = ax.figure.figure
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
    box = ax.get_window_extent()
    return float(box.width) * POINTS / figure.dpi, float(box.height) * POINTS / figure.dpi


def use_layout(ax: Axes) -> None:
    """Give the figure of the user's axes a constrained layout, unless it has a layout engine: labels are long here."""
    figure = ax.figure.figure
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")


def dress(ax: Axes, *, grid: Literal["x", "y"] | None = None) -> None:
    """Style axes: no lines at the top and the right, small labels, a light grid behind everything."""
    use_layout(ax)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set(color=GREY, linewidth=0.8)
    ax.tick_params(labelsize=0.94 * font_size(), color=GREY, length=3)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, color=GREY, alpha=0.18, linewidth=0.6)


def number_ticks(axis: Axis, room: float) -> None:
    """Label an axis with numbers, as many as have room, without a common offset or factor."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def label(value: float, _: int | None = None) -> str:
        ticks = axis.get_majorticklocs()
        return tick_label(value, float(ticks[1] - ticks[0]) if len(ticks) > 1 else 1.0)

    gap = _ALONG_X if axis is axis.axes.xaxis else _ALONG_Y
    most = int(np.clip(room / (gap * font_size()), 2, 8))
    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(label))


def label_axis(axis: Axis, text: str, room: float) -> None:
    """Set the label of an axis, in lines no longer than `room`."""
    axis.set_label_text(wrap(text, room, font_size()), size=font_size(), linespacing=1.1)
    axis.label.set_parse_math(False)


def note(ax: Axes, text: str, share: float = 1.0) -> None:
    """Write small grey text below the label of x, no wider than a share of the axes."""
    size = small_size()
    lines = wrap(text, share * size_of(ax)[0], size, _MOST_NOTE)
    look: dict[str, Any] = {"ha": "center", "va": "top", "size": size, "color": GREY, "parse_math": False}
    ax.annotate(lines, (0.5, 0.0), (0.0, -2.0), ax.xaxis.label, "offset points", annotation_clip=False, **look)


def legend_above(
    ax: Axes, handles: Sequence[Any], labels: Sequence[str], *, share: float = 1.0, pale: Sequence[int] = ()
) -> None:
    """Draw a legend above axes, no wider than a share of them; labels at positions in `pale` are grey.

    The font is smaller if the legend would take most of the height.
    """
    width, height = size_of(ax)
    width *= share
    size = _SIZE * font_size()
    size = max(_SMALLEST, min(size, _SHARE * height / (_LINE * _legend_lines(labels, width, size))))
    columns, wrapped = _legend_layout(labels, width, size)
    legend = _draw_legend(ax, handles, wrapped, size, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns)
    for place in pale:
        legend.get_texts()[place].set_color(GREY)


def legend_beside(ax: Axes, handles: Sequence[Any], labels: Sequence[str], share: float) -> None:
    """Draw a legend at the right of axes, no wider than a share of them."""
    width, height = size_of(ax)
    size = max(_SMALLEST, min(_SIZE * font_size(), height / (_LINE * len(labels))))
    wrapped = [wrap(label, share * width - _HANDLE * size, size, 1) for label in labels]
    _draw_legend(ax, handles, wrapped, size, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_legend(ax: Axes, handles: Sequence[Any], labels: Sequence[str], size: float, **place: Any) -> Legend:
    # Labels are written afterwards: matplotlib would leave out those that begin with an underscore.
    look: dict[str, Any] = {"fontsize": size, "frameon": False, **_SPACING, **place}
    legend = ax.legend(handles=list(handles), labels=["x"] * len(labels), **look)
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set(parse_math=False, linespacing=1.1, text=label)
    return legend


def legend_height(labels: Sequence[str], width: float) -> float:
    """Return the height in inches of a legend of that width in inches."""
    size = _SIZE * font_size()
    return _LINE * size * _legend_lines(labels, width * POINTS, size) / POINTS if labels else 0.0


def _legend_lines(labels: Sequence[str], width: float, size: float) -> int:
    columns, wrapped = _legend_layout(labels, width, size)
    return max(map(n_lines_of, wrapped)) * -(-len(labels) // columns)


def _legend_layout(labels: Sequence[str], width: float, size: float) -> tuple[int, list[str]]:
    """Return as many columns as the longest label allows, and the labels in lines."""
    longest = max(text_width(label, size) for label in labels)
    columns = int(np.clip(width / (longest + _HANDLE * size), 1, min(len(labels), _MOST_COLUMNS)))
    return columns, [wrap(label, width / columns - _HANDLE * size, size) for label in labels]
