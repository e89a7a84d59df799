"""Drawing of effects: curves, ICE curves, boxes of predictions at levels, and the distribution of the feature below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._effects.subgroup_rows import FeatureSupport
from subgrove.plots._axis import FeatureAxis
from subgrove.plots._figure import size_of
from subgrove.plots._lines import EffectLine
from subgrove.plots._palette import GREY, color_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOLD, _THIN = 2.8, 1.1  # widths of a line in points
_BAND = 0.16  # opacity of an interval


def draw_curve(ax: Axes, scale: FeatureAxis, line: EffectLine, color: str, style: Any, *, interval: bool) -> None:
    """Draw a curve: bold within the quartiles of the feature, thin within the whiskers, points at outliers."""
    from matplotlib.patheffects import withStroke

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
        look: dict[str, Any] = {"color": color, "linestyle": style, "linewidth": width, "solid_capstyle": "butt"}
        if line.ice is not None:  # an outline in the colour of the background sets a mean apart from thin lines
            look["path_effects"] = [withStroke(linewidth=width + 1.8, foreground=ax.get_facecolor())]
        ax.plot(scale.place(at), np.interp(at, x, y), **look)
    outliers = line.support.outliers
    outliers = outliers[(outliers >= x[0]) & (outliers <= x[-1])]
    ax.plot(scale.place(outliers), np.interp(outliers, x, y), ".", color=color, markersize=4, alpha=0.8)


def _draw_band(ax: Axes, scale: FeatureAxis, line: EffectLine, color: str) -> None:
    known = np.isfinite(line.low + line.high)
    if not known.any():
        return
    x, low, high = line.x[known], line.low[known] + line.shift, line.high[known] + line.shift
    at = _between(x, *line.support.box[[1, 5]])
    ax.fill_between(
        scale.place(at), np.interp(at, x, low), np.interp(at, x, high), color=color, alpha=_BAND, linewidth=0
    )


def _between(x: Floats, low: float, high: float) -> Floats:
    """Return the points of a curve between two values, including these."""
    low, high = max(low, float(x[0])), min(high, float(x[-1]))
    inside = x[(x > low) & (x < high)]
    return np.concatenate([[low], inside, [high]]) if high >= low else np.empty(0)


MOST_ROWS = 300
"""Number of rows of a curve that are drawn at most."""
_INK = 24.0  # lines that would be as dark as one


def drawn_rows(line: EffectLine) -> int:
    """Return the number of rows of a curve that are drawn."""
    return 0 if line.ice is None else min(MOST_ROWS, line.ice.shape[1])


def draw_ice(ax: Axes, scale: FeatureAxis, line: EffectLine, color: str, n_rows: int) -> None:
    """Draw the curves of rows; of many, an evenly spaced selection. `n_rows` are drawn in all lines."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    values = line.ice
    if values is None:
        return
    rows = np.linspace(0, values.shape[1] - 1, drawn_rows(line)).round().astype(int)
    x, values = scale.place(line.x), values[:, rows]
    alpha = float(np.clip(_INK / n_rows, 0.08, 0.5))
    if line.curve.opacity is None or len(x) < 2:
        curves = [np.column_stack([x, one]) for one in values.T]
        colors: list[Floats] | Floats = np.array([[*to_rgba(color)[:3], alpha]])
    else:
        curves, colors = _segments(x, values, line.curve.opacity, to_rgba(color)[:3], min(1.0, 2.5 * alpha))
    ax.add_collection(LineCollection(curves, colors=colors, linewidths=0.6, zorder=1.5))
    ax.autoscale_view()


def _segments(
    x: Floats, values: Floats, opacity: Floats, color: tuple[float, ...], alpha: float
) -> tuple[list[Floats], Floats]:
    """Return the segments between points, each with its own opacity."""
    segments: list[Floats] = []
    colors = []
    for at in range(len(x) - 1):
        here = alpha * float(opacity[at] + opacity[at + 1]) / 2
        segments += [np.array([[x[at], one[at]], [x[at + 1], one[at + 1]]]) for one in values.T]
        colors += [(*color, here)] * values.shape[1]
    return segments, np.array(colors)


FILLED = 0.8
"""Share of the room of a level that bars, or boxes, take."""
_INSIDE, _WIDEST = 0.84, 0.3  # share of its own room that a box or bar takes, and how wide a bar is at most
_STRIP, _STRIP_ROW = 0.15, 0.028  # share of the height of the axes that a strip takes, and a row of it at least
_BXP = ("whislo", "q1", "med", "q3", "whishi")  # what matplotlib calls the middle five of our box statistics
_DOT = 0.45  # size of the dot at the mean, as a share of the same


def draw_levels(ax: Axes, scale: FeatureAxis, lines: Sequence[EffectLine]) -> None:
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


def _draw_boxes(ax: Axes, line: EffectLine, x: Floats, width: float, dot: float, color: str) -> None:
    from matplotlib.colors import to_rgba

    spread = line.spread
    assert spread is not None
    known = np.isfinite(spread).all(axis=1)
    stats: list[dict[str, Any]] = [dict(zip(_BXP, one[1:6].tolist(), strict=True)) for one in spread[known]]
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


def _draw_points(ax: Axes, line: EffectLine, x: Floats, color: str, *, joined: bool) -> None:
    if joined:
        ax.plot(x, line.y, color=color, linewidth=0.8, alpha=0.5)
    ax.vlines(x, line.low + line.shift, line.high + line.shift, color=color, linewidth=1.6, alpha=0.7)
    ax.plot(x, line.y, "o", color=color, markersize=4.5)


def draw_strip(ax: Axes, scale: FeatureAxis, rows: Sequence[tuple[FeatureSupport, str]], *, flat: bool = True) -> None:
    """Draw the distribution of a feature in a strip below the axes (or at their left), and move the spine outward."""
    share = max(_STRIP if flat else 0.7 * _STRIP, _STRIP_ROW * len(rows))
    ax.spines["bottom" if flat else "left"].set_position(("axes", -share))
    bounds = (0.0, -0.9 * share, 1.0, 0.8 * share)
    strip = ax.inset_axes(bounds, sharex=ax) if flat else ax.inset_axes(_swapped(bounds), sharey=ax)
    strip.set_axis_off()
    if scale.has_levels:
        _draw_counts(strip, scale, rows, flat=flat)
    else:
        for place, (support, color) in enumerate(rows):
            _draw_support(strip, scale, support, color, place, flat=flat)
    far, near = (1.0, 0.0) if scale.has_levels else (len(rows) - 0.3, -0.7)
    (strip.set_ylim if flat else strip.set_xlim)(far, near)


def _swapped(bounds: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    return bounds[1], bounds[0], bounds[3], bounds[2]


def _draw_support(
    strip: Axes, scale: FeatureAxis, support: FeatureSupport, color: str, place: int, *, flat: bool
) -> None:
    """A box plot without a frame: whiskers, quartiles, median, outliers."""
    box, outliers = scale.place(support.box), scale.place(support.outliers)
    if np.isnan(box).any():
        return
    lines: list[tuple[Floats, Sequence[float], dict[str, Any]]] = [
        (box[[1, 5]], [place] * 2, {"linewidth": 1.0}),
        (box[[3, 3]], [place - 0.34, place + 0.34], {"linewidth": 1.6}),
        (outliers, [place] * len(outliers), {"linestyle": "", "marker": ".", "markersize": 2.5, "alpha": 0.7}),
    ]
    for along, away, look in lines:
        strip.plot(*((along, away) if flat else (away, along)), color=color, **look)
    fill = strip.fill_between if flat else strip.fill_betweenx
    fill(box[[2, 4]], place - 0.34, place + 0.34, color=color, alpha=0.55, linewidth=0)


def _draw_counts(strip: Axes, scale: FeatureAxis, rows: Sequence[tuple[FeatureSupport, str]], *, flat: bool) -> None:
    """Bars that hang below the axes: how many rows have each level."""
    most = max(float(support.counts.max(initial=0.0)) for support, _ in rows) or 1.0
    room = FILLED / len(rows)
    bars = strip.bar if flat else strip.barh
    for place, (support, color) in enumerate(rows):
        at = np.arange(len(scale.order)) - FILLED / 2 + (place + 0.5) * room
        counts = support.counts[list(scale.order)] / most
        bars(at, counts, min(_INSIDE * room, _WIDEST), color=color, alpha=0.55, linewidth=0)
