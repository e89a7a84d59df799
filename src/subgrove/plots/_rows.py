"""Points with intervals in labelled rows, one row for each feature or subgroup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._importance.tables import MARK
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import POINTS, dress, label_axis, legend_above, new_figure, number_ticks, size_of
from subgrove.plots._palette import GREY, MARKERS, color_of, font_size
from subgrove.plots._text import DOTS, Ruler, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_LINE = 1.2  # distance of two lines, as a multiple of the size of the font
_SMALL = 0.84  # size of the lines below a name, likewise
_GAP = 0.55  # between two rows, in lines
_SHRINK = (1.0, 0.92, 0.85, 0.78, 0.7, 0.63)
_READABLE = 4  # of these are tried before lines are left out
_PAD = 6.0  # points between a label and the axes


@dataclass(frozen=True)
class RowEntry:
    """The label of a row.

    Attributes
    ----------
    name : str
        A feature, or a rule.
    listed : tuple of str
        Items of a list to be written below, as many as have room.
    short : str
        Shorter text, if not even the first has room.
    is_rule : bool
        Whether the name is a rule.
    """

    name: str
    listed: tuple[str, ...] = ()
    short: str = ""
    is_rule: bool = False


@dataclass(frozen=True)
class FittedLabels:
    """Labels of all rows, in lines.

    Attributes
    ----------
    font : float
        Size of the font of names.
    names, below : tuple of tuples of str
        Lines of each row.
    """

    font: float
    names: tuple[tuple[str, ...], ...]
    below: tuple[tuple[str, ...], ...]

    @property
    def pitch(self) -> float:
        """Distance of two rows in points at which labels do not touch."""
        most = max(len(name) + len(below) for name, below in zip(self.names, self.below, strict=True))
        return (most + _GAP) * _LINE * self.font

    def fits(self, pitch: float) -> bool:
        """Whether rows of that height hold the labels, if need be with less between them."""
        return self.pitch - 0.7 * _GAP * _LINE * self.font <= pitch


def labels_for(entries: Sequence[RowEntry], room: float, n_names: int, n_below: int) -> FittedLabels:
    """Return labels of rows of any height; `room` is their maximum width."""
    return _labels(entries, room, font_size(), n_names, n_below)


def fitting_labels(
    entries: Sequence[RowEntry], room: float, pitch: float, n_names: int, n_below: int
) -> FittedLabels | None:
    """Return labels of rows that are `pitch` points high, or None if the rows are too low.

    A slightly smaller font is preferred to shortened text, and that to the smallest font.
    """
    fonts = [scale * font_size() for scale in _SHRINK]
    tried = [(lines, n_below, font) for lines in range(n_names, 0, -1) for font in fonts[:_READABLE]]
    drafts = [_labels(entries, room, font, lines, below) for lines, below, font in tried]
    for labels in drafts:
        if labels.fits(pitch) and not any(DOTS in line for name in labels.names for line in name):
            return labels
    fewer = product(range(n_below, -1, -1), range(n_names, 0, -1), fonts[:_READABLE])
    for below, lines, font in (*fewer, *product([0], [1], fonts[_READABLE:])):
        labels = _labels(entries, room, font, lines, below)
        if labels.fits(pitch):
            return labels
    return None


def smallest_row() -> float:
    """Height in points of the lowest row that can be labelled."""
    return (1 + 0.3 * _GAP) * _LINE * _SHRINK[-1] * font_size()


def _labels(entries: Sequence[RowEntry], room: float, font: float, n_names: int, n_below: int) -> FittedLabels:
    ruler, small = Ruler(font), Ruler(_SMALL * font)
    names = tuple(
        ruler.wrap_rule(entry.name, room, n_names) if entry.is_rule else ruler.wrap_name(entry.name, room, n_names)
        for entry in entries
    )
    below = tuple(_listed(entry, small, room, n_below) if entry.listed and n_below else () for entry in entries)
    return FittedLabels(font, names, below)


def _listed(entry: RowEntry, ruler: Ruler, room: float, n_lines: int) -> tuple[str, ...]:
    """Return the items of a list that have room, and the number of further items."""
    items = [one_line(item) for item in entry.listed]
    for shown in range(len(items), 0, -1):
        more = len(items) - shown
        words = [
            *(f"{item}, " for item in items[: shown - 1]),
            f"{items[shown - 1]} ",
            f"and {more} more" * (more > 0),
        ]
        lines = ruler.wrap(words, room)
        if len(lines) <= n_lines and not any(DOTS in line for line in lines):
            return lines
    return (ruler.shorten(entry.short or items[0], room),)


def draw_labels(ax: Axes, labels: FittedLabels) -> None:
    """Write the labels of rows 0, 1, 2 and so on at the left of the axes."""
    # Empty lines keep the room of what is written below a name in another size and colour.
    texts = ["\n".join((*name, *[""] * len(below))) for name, below in zip(labels.names, labels.below, strict=True)]
    ax.set_yticks(range(len(texts)), texts, parse_math=False, size=labels.font, linespacing=1.15)
    ax.tick_params(axis="y", length=0, pad=_PAD)
    for row, (name, below) in enumerate(zip(labels.names, labels.below, strict=True)):
        if below:
            _draw_below(ax, row, below, -(len(name) / 2 + 0.08) * _LINE * labels.font, _SMALL * labels.font)


def _draw_below(ax: Axes, row: int, lines: Sequence[str], shift: float, size: float) -> None:
    written = ax.annotate(
        "\n".join(lines),
        (0.0, row),
        (-_PAD, shift),
        xycoords=ax.get_yaxis_transform(),
        textcoords="offset points",
        ha="right",
        va="center",
        size=size,
        color=GREY,
        linespacing=1.15,
        annotation_clip=False,
    )
    written.set_parse_math(False)


WIDTH = 6.4
"""Width of a new figure in inches."""
LEFT_FOR_ROWS = 0.55
"""Share of the width that is left for the rows at least."""
_MORE = 0.55  # share of the height of a row that a second series adds
_AROUND = 62.0  # points above and below the rows of a new figure, without a legend
_LEGEND = 22.0
_BESIDE = 20.0  # points that labels and notes take of axes that are given


@dataclass(frozen=True, eq=False)
class RowSeries:
    """Values of all rows, from one result; NaN where it has none. `fails` marks failed fidelity checks."""

    label: str
    estimate: Floats
    low: Floats
    high: Floats
    fails: npt.NDArray[np.bool_] | None = None

    @property
    def marked(self) -> npt.NDArray[np.bool_]:
        """Rows that are marked as unreliable."""
        none = np.zeros(len(self.estimate), dtype=np.bool_)
        return none if self.fails is None else self.fails & np.isfinite(self.estimate)

    def first(self, n: int) -> RowSeries:
        """The first rows only."""
        fails = None if self.fails is None else self.fails[:n]
        return RowSeries(self.label, self.estimate[:n], self.low[:n], self.high[:n], fails)


@dataclass(frozen=True)
class RowLabels:
    """Labels of the rows of a plot, their number of lines at most, and their share of the width."""

    entries: tuple[RowEntry, ...]
    n_names: int = 1
    n_below: int = 2
    most_label: float = 0.42
    remedy: str = ""


def new_axes(rows: RowLabels, n_series: int) -> Axes:
    """Axes of a new figure that is high enough for all rows."""
    labels = labels_for(rows.entries, rows.most_label * WIDTH * POINTS, rows.n_names, rows.n_below)
    pitch = max(labels.pitch, (1.3 + _MORE * n_series) * font_size())
    height = len(rows.entries) * pitch + _AROUND + _LEGEND * (n_series > 1)
    return new_figure(WIDTH, height / POINTS).add_subplot()


def check_height(ax: Axes, rows: RowLabels) -> Axes:
    """The user's axes, which are left as they were if they are too low."""
    width, height = size_of(ax)
    pitch = (height - _BESIDE) / len(rows.entries)
    if fitting_labels(rows.entries, rows.most_label * width, pitch, rows.n_names, rows.n_below) is None:
        raise ParameterError(_too_low(height, rows))
    return ax


def frame_rows(ax: Axes, labels: Sequence[str], label: str) -> None:
    """Give axes a frame, a label of x, and a legend if there are several series."""
    dress(ax, grid="x")
    ax.spines["left"].set_visible(False)
    ax.set_yticks([])
    label_axis(ax.xaxis, label, LEFT_FOR_ROWS * size_of(ax)[0])
    if len(labels) > 1:
        width, height = size_of(ax)
        legend_above(ax, [handle(place) for place in range(len(labels))], labels, (0.8 * width, height))


def draw_rows(ax: Axes, rows: RowLabels) -> float:
    """Draw labelled rows on axes that have their legend and note already; return the height of a row."""
    n = len(rows.entries)
    width, height = size_of(ax)
    # Labels take some of the width of the axes.
    labels = fitting_labels(rows.entries, rows.most_label * width, height / n, rows.n_names, rows.n_below)
    if labels is None:
        raise ParameterError(_too_low(height, rows))
    ax.set_ylim(n - 0.5, -0.5)
    draw_labels(ax, labels)
    widest = max(Ruler(labels.font).widest(name) for name in labels.names)
    number_ticks(ax.xaxis, width - min(widest, rows.most_label * width))
    ax.axvline(0, color=GREY, linewidth=1.0, zorder=1.5)
    for row in range(n):
        ax.axhline(row, color=GREY, alpha=0.25, linewidth=0.6, linestyle=(0, (1, 2)), zorder=0.5)
    return height / n


def handle(place: int) -> Line2D:
    """Return the legend handle of a series."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color_of(place), marker=MARKERS[place % len(MARKERS)], markersize=5, linewidth=1.6)


def draw_series(ax: Axes, series: Sequence[RowSeries], pitch: float) -> None:
    """Points with intervals; several results are a little apart, the first at the top."""
    n = len(series[0].estimate)
    step = 0.5 / len(series)
    size = float(np.clip(0.8 * step * pitch, 2.5, 5.0))
    for place, one in enumerate(series):
        y = np.arange(n) + (place - (len(series) - 1) / 2) * step
        ax.hlines(y, one.low, one.high, color=color_of(place), linewidth=1.6, alpha=0.7, zorder=2)
        marker = MARKERS[place % len(MARKERS)]
        ax.plot(one.estimate, y, marker, color=color_of(place), markersize=size, label=one_line(one.label), zorder=3)
        for row in np.flatnonzero(one.marked).tolist():
            _draw_mark(ax, (np.nanmax([one.estimate[row], one.high[row]]), y[row]), color_of(place))


def _draw_mark(ax: Axes, at: tuple[float, float], color: str) -> None:
    """Draw the mark of a failed fidelity check at the right end of an interval."""
    ax.annotate(
        MARK,
        at,
        (4.0, 0.0),
        textcoords="offset points",
        ha="left",
        va="center_baseline",
        size=font_size(),
        weight="bold",
        color=color,
        annotation_clip=False,
    )


def _too_low(height: float, rows: RowLabels) -> str:
    fits = max(0, int((height - _BESIDE) / smallest_row()))
    return (
        f"ax is {height / POINTS:.1f} inches high, too low to write {len(rows.entries)} rows: about {fits} fit. "
        f"Enlarge the figure{rows.remedy}, or leave ax out."
    )
