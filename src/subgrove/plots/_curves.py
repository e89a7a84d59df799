"""Curves of numeric features: bold where most rows lie, thin to the whiskers, points at outliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.plots._lines import Line
from subgrove.plots._scale import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_BOLD, _THIN = 2.8, 1.1  # widths of a line in points
_BAND = 0.16  # opacity of an interval


def draw_curve(ax: Axes, scale: Scale, line: Line, color: str, style: Any, *, interval: bool) -> None:
    """Draw a curve as a box plot of the feature would have it."""
    known = np.isfinite(line.y)
    x, y = line.x[known], line.y[known]
    box = line.support.box
    if len(x) <= 1 or box[0] == box[6]:
        ax.plot(scale.place(x), y, "o", color=color, markersize=5)
        return
    if interval:
        _draw_band(ax, scale, line, color)
    for (low, high), width in (((box[1], box[5]), _THIN), ((box[2], box[4]), _BOLD)):
        at = _between(x, low, high)
        look = {"color": color, "linestyle": style, "linewidth": width, "solid_capstyle": "butt"}
        (drawn,) = ax.plot(scale.place(at), np.interp(at, x, y), **look)
        if line.ice is not None:
            _set_apart(ax, drawn, width)
    outliers = line.support.outliers
    outliers = outliers[(outliers >= x[0]) & (outliers <= x[-1])]
    ax.plot(scale.place(outliers), np.interp(outliers, x, y), ".", color=color, markersize=4, alpha=0.8)


def _set_apart(ax: Axes, drawn: Line2D, width: float) -> None:
    """A rim in the colour of the background, so that a mean is seen among many thin lines."""
    from matplotlib.patheffects import Normal, Stroke

    drawn.set_path_effects([Stroke(linewidth=width + 1.8, foreground=ax.get_facecolor()), Normal()])


def _draw_band(ax: Axes, scale: Scale, line: Line, color: str) -> None:
    known = np.isfinite(line.low + line.high)
    if not known.any():
        return
    x, low, high = line.x[known], line.low[known] + line.shift, line.high[known] + line.shift
    at = _between(x, *line.support.box[[1, 5]])
    ax.fill_between(
        scale.place(at), np.interp(at, x, low), np.interp(at, x, high), color=color, alpha=_BAND, linewidth=0
    )


def _between(x: Floats, low: float, high: float) -> Floats:
    """The points of a curve from one value to another, and these two."""
    low, high = max(low, float(x[0])), min(high, float(x[-1]))
    inside = x[(x > low) & (x < high)]
    return np.concatenate([[low], inside, [high]]) if high >= low else np.empty(0)
