"""One legend above the axes, as wide as they are, with labels that are broken into lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from subgrove.plots._palette import GREY, font_size
from subgrove.plots._text import DOTS, Ruler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HANDLE, _PAD, _BETWEEN = 1.8, 0.6, 1.4  # length of a handle, its distance to the text, and between columns, in sizes
_LEAST = 4.0  # the least width of a label, likewise
_MOST_LINES = 3
_SIZE = 0.94  # of the font, as a multiple of that of names
_LINE = 1.4  # distance of two lines
_SHARE = 0.45  # of the height of the axes that a legend takes, if it can be made that small


def legend_above(
    ax: Axes, handles: Sequence[Any], labels: Sequence[str], room: tuple[float, float], *, pale: Sequence[int] = ()
) -> None:
    """Draw a legend above axes that are `room` points wide and high; labels at places in `pale` are grey."""
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
    """How many lines a legend has that may be as high as it needs to be."""
    columns, lines = _layout(labels, width, _SIZE * font_size(), _MOST_LINES)
    return _n_lines(lines, columns)


def _fitting(labels: Sequence[str], width: float, height: float) -> tuple[float, int, list[tuple[str, ...]]]:
    """Size of the font, columns and lines of a legend that leaves most of the height to the axes, if possible."""
    for scale, most in ((1.0, _MOST_LINES), (0.9, _MOST_LINES), (0.8, _MOST_LINES), (0.9, 1), (0.75, 1)):
        size = scale * _SIZE * font_size()
        columns, lines = _layout(labels, width, size, most)
        if _n_lines(lines, columns) * _LINE * size <= _SHARE * height:
            break
    return size, columns, lines


def _layout(labels: Sequence[str], room: float, size: float, most: int) -> tuple[int, list[tuple[str, ...]]]:
    """Columns and lines of the labels: none shortened if possible, then as few lines and broken labels as can be."""
    ruler = Ruler(size)
    tried = []
    for columns in range(1, min(len(labels), 4) + 1):
        width = room / columns - (_HANDLE + _PAD + _BETWEEN) * size
        if width < _LEAST * size and columns > 1:
            break
        lines = [ruler.wrap_rule(label, width, most) for label in labels]
        shortened = sum(any(DOTS in line for line in some) for some in lines)
        broken = sum(len(some) > 1 for some in lines)
        tried.append(((shortened, _n_lines(lines, columns) + broken / 2, broken), columns, lines))
    _, columns, lines = min(tried, key=lambda each: each[0])
    return columns, lines


def _n_lines(lines: Sequence[tuple[str, ...]], columns: int) -> int:
    """Lines of the highest column; matplotlib fills one column after the other."""
    per_column = -(-len(lines) // columns)
    return max(sum(map(len, lines[start : start + per_column])) for start in range(0, len(lines), per_column))
