"""Drawing of effects: curves, ICE curves, boxes at levels, the distribution of the feature below, and surfaces.

The effect of two features together is drawn as a heat map, or as a line for each level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._effects.subgroup_rows import FeatureSupport
from subgrove.plots._axis import FeatureAxis, feature_axis
from subgrove.plots._figure import label_axis, number_ticks, size_of
from subgrove.plots._lines import EffectLine
from subgrove.plots._palette import COLORS, GREY, color_of, font_size, small_size
from subgrove.trees.tree import format_count

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
    lower, upper = np.interp(at, x, low), np.interp(at, x, high)
    ax.fill_between(scale.place(at), lower, upper, color=color, alpha=_BAND, linewidth=0)


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
    """Draw the curves of rows, if any; of many, an evenly spaced selection. `n_rows` are drawn in all lines."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    values = line.ice
    if values is None:
        return
    rows = np.linspace(0, values.shape[1] - 1, drawn_rows(line)).round().astype(int)
    values, opacity = values[:, rows], line.curve.opacity
    points = np.stack([np.broadcast_to(scale.place(line.x)[:, None], values.shape), values], axis=-1)
    alphas = np.clip([_INK / n_rows], 0.08, 0.5)
    if opacity is None or len(points) < 2:
        curves = points.swapaxes(0, 1)
    else:  # segments between points, each with its own opacity
        curves = np.stack([points[:-1], points[1:]], axis=2).reshape(-1, 2, 2)
        alphas = np.repeat(min(1.0, 2.5 * float(alphas[0])) * (opacity[:-1] + opacity[1:]) / 2, len(rows))
    colors = [to_rgba(color, float(alpha)) for alpha in alphas]
    ax.add_collection(LineCollection(list(curves), colors=colors, linewidths=0.6, zorder=1.5))
    ax.autoscale_view()


FILLED = 0.8
"""Share of the room of a level that bars, or boxes, take."""
_INSIDE, _WIDEST = 0.84, 0.3  # share of its own room that a box or bar takes, and how wide a bar is at most
_STRIP, _STRIP_ROW = 0.15, 0.028  # share of the height of the axes that a strip takes, and a row of it at least
_BXP = ("whislo", "q1", "med", "q3", "whishi")  # what matplotlib calls the middle five of our box statistics
_PLAIN_BOXES: dict[str, Any] = {"patch_artist": True, "showfliers": False, "showcaps": False, "manage_ticks": False}
_DOT = 0.45  # size of the dot at the mean, as a share of the same


def draw_levels(ax: Axes, scale: FeatureAxis, lines: Sequence[EffectLine]) -> None:
    """Draw boxes of predictions where they are known, else estimates with intervals."""
    width = FILLED / len(lines)
    dot = float(np.clip(_DOT * width * size_of(ax)[0] / len(scale.order), 1.2, 3.5))
    for place, line in enumerate(lines):
        x = scale.place(line.x) - FILLED / 2 + (place + 0.5) * width
        if (spread := line.spread) is not None:
            _draw_boxes(ax, line, spread, x, _INSIDE * width, dot, color_of(place))
        else:
            _draw_points(ax, line, x, color_of(place), joined=len(lines) == 1)
    for between in range(len(scale.order) - 1):
        ax.axvline(between + 0.5, color=GREY, alpha=0.25, linewidth=0.6, zorder=0.5)


def _draw_boxes(ax: Axes, line: EffectLine, spread: Floats, x: Floats, width: float, dot: float, color: str) -> None:
    from matplotlib.colors import to_rgba

    known = np.isfinite(spread).all(axis=1)
    stats: list[dict[str, Any]] = [dict(zip(_BXP, one[1:6].tolist(), strict=True)) for one in spread[known]]
    looks: dict[str, Any] = {
        "boxprops": {"facecolor": to_rgba(color, 0.3), "edgecolor": color, "linewidth": 1.0},
        "whiskerprops": {"color": color, "linewidth": 1.0},
        "medianprops": {"color": color, "linewidth": 1.6, "solid_capstyle": "butt"},
    }
    ax.bxp(stats, positions=x[known].tolist(), widths=width, **_PLAIN_BOXES, **looks)
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
    start, width = -0.9 * share, 0.8 * share
    if flat:
        strip = ax.inset_axes((0.0, start, 1.0, width), sharex=ax)
    else:
        strip = ax.inset_axes((start, 0.0, width, 1.0), sharey=ax)
    strip.set_axis_off()
    if scale.has_levels:
        _draw_counts(strip, scale, rows, flat=flat)
    else:
        for place, (support, color) in enumerate(rows):
            _draw_support(strip, scale, support, color, place, flat=flat)
    far, near = (1.0, 0.0) if scale.has_levels else (len(rows) - 0.3, -0.7)
    (strip.set_ylim if flat else strip.set_xlim)(far, near)


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


_CELLS = 60  # cells of a heat map that have their number written in them
_CONTOURS = 8


def values_of(line: EffectLine) -> Floats:
    """Values of a surface: (points of the first feature, points of the second)."""
    return line.y.reshape([len(axis) for axis in line.curve.axes])


def as_lines(line: EffectLine) -> bool:
    """Whether a surface is drawn as a line for each level of one feature."""
    kinds = [axis.info.kind != "numeric" for axis in line.curve.axes]
    n_levels = [len(axis) for axis, levels in zip(line.curve.axes, kinds, strict=True) if levels]
    return sum(kinds) == 1 and n_levels[0] <= len(COLORS)


def scales_of(line: EffectLine) -> list[FeatureAxis]:
    """The axes of both features."""
    return [feature_axis(axis.info, [axis.points]) for axis in line.curve.axes]


def draw_heat_map(ax: Axes, line: EffectLine, limits: tuple[float, float] | None) -> None:
    """Draw a surface in colours, with lines of equal height if both features are numeric."""
    one, two = scales_of(line)
    values = values_of(line)
    low, high = limits or (float(np.nanmin(values)), float(np.nanmax(values)))
    if low == high:
        low, high = low - 0.5, high + 0.5
    x, y = (scale.place(axis.points) for scale, axis in zip((one, two), line.curve.axes, strict=True))
    look: dict[str, Any] = {"cmap": "viridis", "vmin": low, "vmax": high, "rasterized": True}
    if not one.has_levels and not two.has_levels and min(values.shape) > 1:
        # Linear between the points, as `Effect.predict` reads the surface.
        ax.pcolormesh(x, y, values.T, shading="gouraud", **look)
        if np.ptp(values) > 0:
            ax.contour(x, y, values.T, levels=_CONTOURS, colors="white", linewidths=0.7, alpha=0.8)
    else:
        ax.pcolormesh(_borders(x), _borders(y), values.T, linewidth=0, **look)
    if one.has_levels and two.has_levels and values.size <= _CELLS:
        _write_cells(ax, x, y, values, (low, high))


def draw_strips(ax: Axes, line: EffectLine) -> None:
    """Draw the distributions of both features, below the axes and at their left."""
    for scale, support, flat in zip(scales_of(line), line.group.supports, (True, False), strict=True):
        draw_strip(ax, scale, [(support, GREY)], flat=flat)


def set_axes(ax: Axes, line: EffectLine) -> None:
    """Ticks and labels of both axes, for the room that there is."""
    rooms, axes = size_of(ax), (ax.xaxis, ax.yaxis)
    for scale, room, axis in zip(scales_of(line), rooms, axes, strict=True):
        scale.set_up(axis, 0.95 * room, margin=0.0)
        label_axis(axis, scale.label, room)


def draw_color_bar(axes: Sequence[Axes], label: str) -> None:
    """Say what the colours of heat maps mean, once."""
    mesh = next(each for each in axes[-1].collections if each.get_array() is not None)
    bar = axes[-1].figure.colorbar(mesh, ax=list(axes) if len(axes) > 1 else axes[0], pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=0.94 * font_size(), color=GREY, length=3)
    height = size_of(axes[-1])[1]
    number_ticks(bar.ax.yaxis, height)
    label_axis(bar.ax.yaxis, label, height)


def _borders(places: Floats) -> Floats:
    """Borders of cells around places."""
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    middles = places[:-1] / 2 + places[1:] / 2
    return np.concatenate([[2 * places[0] - middles[0]], middles, [2 * places[-1] - middles[-1]]])


def _write_cells(ax: Axes, x: Floats, y: Floats, values: Floats, limits: tuple[float, float]) -> None:
    digits = max(0, 2 - int(np.floor(np.log10(max(limits[1] - limits[0], 1e-12)))))
    for (one, two), value in np.ndenumerate(values):
        if np.isfinite(value):
            color = "white" if (value - limits[0]) / (limits[1] - limits[0]) < 0.6 else "black"
            text = f"{value:.{min(digits, 8)}f}"
            ax.text(float(x[one]), float(y[two]), text, size=small_size(), ha="center", va="center", color=color)


def level_lines(line: EffectLine) -> list[EffectLine]:
    """A surface of a numeric feature and one with levels as a line for each level."""
    levels = 0 if line.curve.axes[0].info.kind != "numeric" else 1
    axis, numeric = line.curve.axes[levels], line.curve.axes[1 - levels]
    support = line.group.supports[levels]
    values = np.moveaxis(values_of(line), levels, 0)
    unknown = np.full(len(numeric), np.nan)
    group, lines = replace(line.group, supports=(line.group.supports[1 - levels],)), []
    for place, level in enumerate(axis.points.astype(int).tolist()):
        label = f"{axis.info.name}: {axis.info.levels[level]} (n = {format_count(float(support.counts[level]))})"
        curve = replace(line.curve, axes=(numeric,), estimate=values[place][:, None], spread=None)
        lines.append(EffectLine(label, line.kind, line.output, group, curve, 0, unknown, unknown))
    return lines
