"""Points with intervals in rows, one row for each feature or subgroup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._importance.fidelity_columns import MARK
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import POINTS, dress, label_axis, make_room, new_figure, number_ticks, size_of
from subgrove.plots._labels import Entry, draw_labels, fitting_labels, labels_for, smallest_row
from subgrove.plots._legend import legend_above
from subgrove.plots._palette import GREY, MARKERS, color_of, font_size
from subgrove.plots._text import Ruler, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.transforms import Bbox

WIDTH = 6.4
"""Width of a new figure in inches."""
LEFT_FOR_ROWS = 0.55
"""Share of the width that is left for the rows at least."""
_MORE = 0.55  # share of the height of a row that a second series adds
_AROUND = 62.0  # points above and below the rows of a new figure, without a legend
_LEGEND = 22.0
_BESIDE = 20.0  # points that labels and notes take of axes that are given


@dataclass(frozen=True, eq=False)
class Series:
    """Values of all rows, from one result; NaN where it has none. `fails` says which redraws do not pass for real."""

    label: str
    estimate: Floats
    low: Floats
    high: Floats
    fails: npt.NDArray[np.bool_] | None = None

    @property
    def marked(self) -> npt.NDArray[np.bool_]:
        """Which rows are marked as not to be trusted."""
        none = np.zeros(len(self.estimate), dtype=np.bool_)
        return none if self.fails is None else self.fails & np.isfinite(self.estimate)

    def first(self, n: int) -> Series:
        """The first rows only."""
        fails = None if self.fails is None else self.fails[:n]
        return Series(self.label, self.estimate[:n], self.low[:n], self.high[:n], fails)


@dataclass(frozen=True)
class Rows:
    """What the rows of a picture say, in how many lines at most, and on which share of the width."""

    entries: tuple[Entry, ...]
    n_names: int = 1
    n_below: int = 2
    most_label: float = 0.42
    remedy: str = ""


def new_axes(rows: Rows, n_series: int) -> Axes:
    """Axes of a new figure that is high enough for all rows."""
    labels = labels_for(rows.entries, rows.most_label * WIDTH * POINTS, rows.n_names, rows.n_below)
    pitch = max(labels.pitch, (1.3 + _MORE * n_series) * font_size())
    height = len(rows.entries) * pitch + _AROUND + _LEGEND * (n_series > 1)
    return new_figure(WIDTH, height / POINTS).add_subplot()


def high_enough(ax: Axes, rows: Rows) -> Axes:
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


def draw_rows(ax: Axes, rows: Rows, within: Bbox | None) -> float:
    """Give axes a labelled row for each entry; what stands above and below them is there already. Height of a row."""
    n = len(rows.entries)
    make_room(ax, within)
    width, height = size_of(ax)
    # Labels take some of the width of the axes, so ask for the part of what both will have.
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
    """What stands for a series in a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color_of(place), marker=MARKERS[place % len(MARKERS)], markersize=5, linewidth=1.6)


def draw_series(ax: Axes, series: Sequence[Series], pitch: float) -> None:
    """Points with intervals; several results are a little apart, the first at the top."""
    n = len(series[0].estimate)
    step = 0.5 / len(series)
    size = float(np.clip(0.8 * step * pitch, 2.5, 5.0))
    for place, one in enumerate(series):
        y = np.arange(n) + (place - (len(series) - 1) / 2) * step
        ax.hlines(y, one.low, one.high, color=color_of(place), linewidth=1.6, alpha=0.7, zorder=2)
        marker = MARKERS[place % len(MARKERS)]
        ax.plot(one.estimate, y, marker, color=color_of(place), markersize=size, label=plain(one.label), zorder=3)
        for row in np.flatnonzero(one.marked).tolist():
            _draw_mark(ax, (np.nanmax([one.estimate[row], one.high[row]]), y[row]), color_of(place))


def _draw_mark(ax: Axes, at: tuple[float, float], color: str) -> None:
    """What `EXPLAINED` tells of, at the right end of an interval."""
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


def _too_low(height: float, rows: Rows) -> str:
    fits = max(0, int((height - _BESIDE) / smallest_row()))
    return (
        f"ax is {height / POINTS:.1f} inches high, too low to write {len(rows.entries)} rows: about {fits} fit. "
        f"Enlarge the figure{rows.remedy}, or leave ax out."
    )
