"""Features with levels: the distribution of predictions at each level, side by side by subgroup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._effects.support import BOX
from subgrove.plots._figure import size_of
from subgrove.plots._lines import Line
from subgrove.plots._palette import GREY, color_of
from subgrove.plots._scale import Scale
from subgrove.plots._strip import FILLED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INSIDE = 0.84  # share of its room that a box fills
_DOT = 0.45  # size of the dot at the mean, as a share of the same


def draw_levels(ax: Axes, scale: Scale, lines: Sequence[Line]) -> None:
    """Draw boxes of predictions where they are known, else estimates with intervals."""
    width = FILLED / len(lines)
    dot = float(np.clip(_DOT * width * size_of(ax)[0] / len(scale.order), 1.2, 3.5))
    for place, line in enumerate(lines):
        x = scale.place(line.x) - FILLED / 2 + (place + 0.5) * width
        if line.spread is not None:
            _draw_boxes(ax, line, x, _INSIDE * width, dot, color_of(place))
        else:
            _draw_points(ax, line, x, color_of(place), joined=len(lines) == 1)
    for between in range(len(scale.order) - 1):
        ax.axvline(between + 0.5, color=GREY, alpha=0.25, linewidth=0.6, zorder=0.5)


def _draw_boxes(ax: Axes, line: Line, x: Floats, width: float, dot: float, color: str) -> None:
    from matplotlib.colors import to_rgba

    spread = line.spread
    assert spread is not None
    known = np.isfinite(spread).all(axis=1)
    names = {"whislo": "whisker_low", "q1": "q1", "med": "median", "q3": "q3", "whishi": "whisker_high"}
    stats: list[dict[str, Any]] = [
        {key: float(one[BOX.index(name)]) for key, name in names.items()} for one in spread[known]
    ]
    edge = {"color": color, "linewidth": 1.0}
    ax.bxp(
        stats,
        positions=x[known].tolist(),
        widths=width,
        patch_artist=True,
        showfliers=False,
        showcaps=False,
        manage_ticks=False,
        boxprops={"facecolor": to_rgba(color, 0.3), "edgecolor": color, "linewidth": 1.0},
        whiskerprops=edge,
        medianprops={"color": color, "linewidth": 1.6, "solid_capstyle": "butt"},
    )
    look: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": color, "markeredgewidth": min(1.0, dot / 3)}
    ax.plot(x, line.y, "o", markersize=dot, zorder=3, **look)


def _draw_points(ax: Axes, line: Line, x: Floats, color: str, *, joined: bool) -> None:
    if joined:
        ax.plot(x, line.y, color=color, linewidth=0.8, alpha=0.5)
    ax.vlines(x, line.low + line.shift, line.high + line.shift, color=color, linewidth=1.6, alpha=0.7)
    ax.plot(x, line.y, "o", color=color, markersize=4.5)
