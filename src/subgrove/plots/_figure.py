"""Figures and axes: room for labels, frames, ticks, notes and legends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from subgrove._core.text import tick_label
from subgrove.exceptions import ParameterError
from subgrove.plots._palette import GREY, font_size, small_size
from subgrove.plots._text import DOTS, Ruler

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

POINTS = 72.0
"""Points in an inch."""
_ALONG_X, _ALONG_Y = 3.6, 2.2  # distance of two ticks in sizes of the font


def check_axes(ax: Any) -> None:
    """Raise if `ax` is not matplotlib axes."""
    from matplotlib.axes import Axes

    if ax is None:
        return
    if not isinstance(ax, Axes):
        raise ParameterError(f"ax must be matplotlib Axes or None for a new figure; got {type(ax).__name__}.")
    if ax.figure is None:
        raise ParameterError("ax has been removed from its figure. Pass axes of a figure, or leave ax out.")


def check_interval(interval: Any) -> None:
    """Raise if `interval` is neither a bool nor None."""
    if interval is not None and not isinstance(interval, bool):
        raise ParameterError(f"interval must be True, False or None; got {interval!r}.")


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of that size in inches, with constrained layout."""
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=(width, height))
    figure.set_layout_engine("constrained")
    return figure


def size_of(ax: Axes) -> tuple[float, float]:
    """Return width and height of axes in points, after the layout of the figure."""
    figure = ax.figure.figure
    engine = figure.get_layout_engine()
    if engine is not None and ax.get_axes_locator() is None:
        with suppress(ValueError):  # as in the drawing of a figure: a window may be too small for any layout
            engine.execute(figure)  # a third quicker than `draw_without_rendering`, which does this and draws
        ax.apply_aspect()
    elif engine is not None:
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
    lines = Ruler(font_size()).wrap([f"{word} " for word in text.split()], room)
    axis.set_label_text("\n".join(lines), size=font_size(), linespacing=1.1)
    axis.label.set_parse_math(False)


def note(ax: Axes, text: str, share: float = 1.0) -> None:
    """Write small grey text below the label of x, no wider than a share of the axes."""
    lines = Ruler(small_size()).wrap([f"{word} " for word in text.split()], share * size_of(ax)[0])
    written = ax.annotate(
        "\n".join(lines),
        (0.5, 0.0),
        (0.0, -2.0),
        xycoords=ax.xaxis.label,
        textcoords="offset points",
        ha="center",
        va="top",
        size=small_size(),
        color=GREY,
        annotation_clip=False,
    )
    written.set_parse_math(False)


_HANDLE, _PAD, _BETWEEN = 1.8, 0.6, 1.4  # length of a handle, its distance to the text, and between columns, in sizes
_NARROWEST = 4.0  # the least width of a label, likewise
_MOST_LINES = 3
_SIZE = 0.94  # of the font, as a multiple of that of names
_LINE = 1.4  # distance of two lines
_SHARE = 0.45  # of the height of the axes that a legend takes, if it can be made that small


def legend_above(
    ax: Axes, handles: Sequence[Any], labels: Sequence[str], room: tuple[float, float], *, pale: Sequence[int] = ()
) -> None:
    """Draw a legend above axes that are `room` points wide and high; labels at positions in `pale` are grey."""
    size, columns, lines = _fitting(labels, *room)
    # Labels are written afterwards: matplotlib would leave out those that begin with an underscore.
    legend = ax.legend(
        handles=list(handles),
        labels=["x"] * len(labels),
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        bbox_transform=ax.transAxes,
        ncols=columns,
        fontsize=size,
        frameon=False,
        borderaxespad=0.4,
        borderpad=0.0,
        handlelength=_HANDLE,
        handletextpad=_PAD,
        columnspacing=_BETWEEN,
        labelspacing=0.35,
    )
    for place, (text, some) in enumerate(zip(legend.get_texts(), lines, strict=True)):
        text.set(parse_math=False, linespacing=1.1)
        text.set_text("\n".join(some))
        if place in pale:
            text.set_color(GREY)


def lines_of_legend(labels: Sequence[str], width: float) -> int:
    """Return the number of lines of a legend of any height."""
    columns, lines = _layout(labels, width, _SIZE * font_size(), _MOST_LINES)
    return _n_lines(lines, columns)


def _fitting(labels: Sequence[str], width: float, height: float) -> tuple[float, int, list[tuple[str, ...]]]:
    """Return font size, columns and lines of a legend that leaves most of the height to the axes, if possible."""
    for scale, most in ((1.0, _MOST_LINES), (0.9, _MOST_LINES), (0.8, _MOST_LINES), (0.9, 1), (0.75, 1)):
        size = scale * _SIZE * font_size()
        columns, lines = _layout(labels, width, size, most)
        if _n_lines(lines, columns) * _LINE * size <= _SHARE * height:
            break
    return size, columns, lines


def _layout(labels: Sequence[str], room: float, size: float, most: int) -> tuple[int, list[tuple[str, ...]]]:
    """Return columns and lines of the labels: none shortened if possible, then with the fewest lines."""
    ruler = Ruler(size)
    tried = []
    for columns in range(1, min(len(labels), 4) + 1):
        width = room / columns - (_HANDLE + _PAD + _BETWEEN) * size
        if width < _NARROWEST * size and columns > 1:
            break
        lines = [ruler.wrap_rule(label, width, most) for label in labels]
        shortened = sum(any(DOTS in line for line in some) for some in lines)
        broken = sum(len(some) > 1 for some in lines)
        tried.append(((shortened, _n_lines(lines, columns) + broken / 2, broken), columns, lines))
    _, columns, lines = min(tried, key=lambda each: each[0])
    return columns, lines


def _n_lines(lines: Sequence[tuple[str, ...]], columns: int) -> int:
    """Return the number of lines of the highest column; matplotlib fills column by column."""
    per_column = -(-len(lines) // columns)
    return max(sum(map(len, lines[start : start + per_column])) for start in range(0, len(lines), per_column))
