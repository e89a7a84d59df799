"""Draws a panel of effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove.plots._boxes import draw_levels
from subgrove.plots._curves import draw_curve
from subgrove.plots._figure import dress, label_axis, make_room, note, number_ticks, room_of, size_of
from subgrove.plots._ice import MOST_ROWS, draw_ice, drawn_rows
from subgrove.plots._legend import legend_above
from subgrove.plots._lines import ALE
from subgrove.plots._palette import COLORS, GREY, STYLES, color_of
from subgrove.plots._panel import Panel
from subgrove.plots._strip import draw_strip
from subgrove.plots._surface import draw_color_bar, draw_heat_map, draw_strips, set_axes
from subgrove.plots._text import plain
from subgrove.trees.structure import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_panel(ax: Axes, panel: Panel, *, limits: tuple[float, float] | None = None, legend: bool = True) -> None:
    """Draw a panel into axes; a heat map with the colours of these limits and no bar, if they are given."""
    within = room_of(ax)
    if panel.surface is not None:
        dress(ax)
        draw_heat_map(ax, panel.surface, limits)
        draw_strips(ax, panel.surface)
        set_axes(ax, panel.surface)
        if limits is None:
            draw_color_bar([ax], panel.y_label)
        set_axes(ax, panel.surface)  # the bar took some of the room
    else:
        _draw_lines(ax, panel, legend and bool(panel.labels))
    said = _notes(panel)
    if said:
        note(ax, "; ".join(said))
    make_room(ax, within)


def _draw_lines(ax: Axes, panel: Panel, legend: bool) -> None:
    dress(ax, grid="y")
    draw_strip(ax, panel.scale, panel.supports)
    _set_axes(ax, panel)
    if legend:
        n = len(panel.labels)
        legend_above(ax, _handles(panel), panel.labels, size_of(ax), pale=range(n - len(panel.pale), n))
    if {line.kind for line in panel.lines} == {ALE}:
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    if panel.scale.has_levels:
        draw_levels(ax, panel.scale, panel.lines)
    else:
        _draw_curves(ax, panel)
    _set_axes(ax, panel)  # labels, ticks and the legend took some of the room


def _set_axes(ax: Axes, panel: Panel) -> None:
    """Ticks and labels of both axes, for the room that there is."""
    width, height = size_of(ax)
    shares = np.max([line.support.counts for line in panel.lines], axis=0)
    panel.scale.set_up(ax.xaxis, shares, 0.95 * width)
    number_ticks(ax.yaxis, height)
    label_axis(ax.xaxis, panel.scale.label, width)
    label_axis(ax.yaxis, panel.y_label, height)


def _draw_curves(ax: Axes, panel: Panel) -> None:
    n_rows = sum(map(drawn_rows, panel.lines))
    for place, line in enumerate(panel.lines):
        color, style = color_of(place), STYLES[place // len(COLORS) % len(STYLES)]
        if line.ice is not None:
            draw_ice(ax, panel.scale, line, color if len(panel.lines) > 1 else GREY, n_rows)
        draw_curve(ax, panel.scale, line, color, style, interval=panel.has_bands)


def _handles(panel: Panel) -> list[Any]:
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if len(panel.labels) > len(panel.lines) + len(panel.pale):
        return [Line2D([], [], color=GREY, linewidth=0.6), Line2D([], [], color=color_of(0), linewidth=2.8)]
    boxes = panel.scale.has_levels
    handles: list[Any] = []
    for place in range(len(panel.lines)):
        color, style = color_of(place), STYLES[place // len(COLORS) % len(STYLES)]
        handles.append(
            Patch(facecolor=to_rgba(color, 0.3), edgecolor=color)
            if boxes
            else Line2D([], [], color=color, linestyle=style, linewidth=2.8)
        )
    return handles + [Patch(alpha=0.0)] * len(panel.pale)


def _notes(panel: Panel) -> list[str]:
    """What is not seen in the picture."""
    said = []
    if panel.has_bands:
        said.append("band: 95 % interval, noise of the rows")
    missing = sum(row.support.missing for row in panel.supports) if panel.surface is None else 0
    if missing:
        have = "row has" if missing == 1 else "rows have"
        said.append(f"{format_count(float(missing))} {have} no value of {plain(panel.lines[0].support.info.name)}")
    ice = [line for line in panel.lines if line.ice is not None]
    total = sum(0 if line.ice is None else line.ice.shape[1] for line in ice)
    drawn = sum(map(drawn_rows, ice))
    if drawn < total and not panel.scale.has_levels:
        said.append(f"{drawn} of {total} rows are drawn, at most {MOST_ROWS} for each curve")
    return said
