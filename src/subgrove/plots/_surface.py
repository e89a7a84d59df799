"""The effect of two features together: a heat map, or a line for each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.plots._axis import FeatureAxis, feature_axis
from subgrove.plots._curves import draw_strip
from subgrove.plots._figure import label_axis, number_ticks, size_of
from subgrove.plots._lines import EffectLine
from subgrove.plots._palette import COLORS, GREY, font_size, small_size
from subgrove.trees.tree import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    for one, column in zip(x, values, strict=True):
        for two, value in zip(y, column, strict=True):
            if np.isfinite(value):
                dark = (value - limits[0]) / (limits[1] - limits[0]) < 0.6
                text = f"{value:.{min(digits, 8)}f}"
                ax.text(one, two, text, size=small_size(), ha="center", va="center", color="white" if dark else "black")


def level_lines(line: EffectLine) -> list[EffectLine]:
    """A surface of a numeric feature and one with levels as a line for each level."""
    levels = 0 if line.curve.axes[0].info.kind != "numeric" else 1
    axis, numeric = line.curve.axes[levels], line.curve.axes[1 - levels]
    support = line.group.supports[levels]
    values = np.moveaxis(values_of(line), levels, 0)
    unknown = np.full(len(numeric), np.nan)
    return [
        EffectLine(
            f"{axis.info.name}: {axis.info.levels[int(level)]} (n = {format_count(float(support.counts[int(level)]))})",
            line.kind,
            line.output,
            replace(line.group, supports=(line.group.supports[1 - levels],)),
            replace(line.curve, axes=(numeric,), estimate=values[place][:, None], spread=None),
            0,
            unknown,
            unknown,
        )
        for place, level in enumerate(axis.points)
    ]
