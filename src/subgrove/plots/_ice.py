"""ICE curves: a thin line for each row, the more opaque the denser the feature lies there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.plots._lines import Line
from subgrove.plots._scale import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 300
"""Rows that are drawn of a curve."""
_INK = 24.0  # lines that would be as dark as one


def drawn_rows(line: Line) -> int:
    """How many rows of a curve are drawn."""
    return 0 if line.ice is None else min(MOST_ROWS, line.ice.shape[1])


def draw_ice(ax: Axes, scale: Scale, line: Line, color: str, n_rows: int) -> None:
    """Draw the curves of rows; of many, some that are evenly spaced among them. `n_rows` are drawn in all lines."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    values = line.ice
    if values is None:
        return
    chosen = np.linspace(0, values.shape[1] - 1, drawn_rows(line)).round().astype(int)
    x, values = scale.place(line.x), values[:, chosen]
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
    """Each piece between two points on its own, with its own opacity."""
    pieces: list[Floats] = []
    colors = []
    for at in range(len(x) - 1):
        here = alpha * float(opacity[at] + opacity[at + 1]) / 2
        pieces += [np.array([[x[at], one[at]], [x[at + 1], one[at + 1]]]) for one in values.T]
        colors += [(*color, here)] * values.shape[1]
    return pieces, np.array(colors)
