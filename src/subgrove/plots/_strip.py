"""The distribution of a feature: a strip below the axes, with a box plot or bars for each subgroup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._effects.subgroup_rows import FeatureSupport
from subgrove.plots._axis import FeatureAxis
from subgrove.plots._figure import POINTS

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_HEIGHT = 26.0  # points
_ROW = 5.5  # the least height of a row of the strip
_GAP = 4.0
FILLED = 0.8
"""Share of the room of a level that bars, or boxes, take."""
_INSIDE, _WIDEST = 0.84, 0.3  # share of its own room that a bar takes, and how wide it is at most


@dataclass(frozen=True, eq=False)
class SupportRow:
    """The distribution of a feature in some rows, and the colour of these."""

    support: FeatureSupport
    color: str


def strip_height(n_rows: int) -> float:
    """Height of the strip in points, with room around it."""
    return max(_HEIGHT, _ROW * n_rows) + 2 * _GAP


def draw_strip(ax: Axes, scale: FeatureAxis, rows: Sequence[SupportRow], side: str = "bottom") -> None:
    """Draw the distribution of a feature below the axes (or at their left), and move the spine outward."""
    height = strip_height(len(rows))
    ax.spines[side].set_position(("outward", height))
    strip = _Strip(ax, side)
    if scale.has_levels:
        _draw_bars(strip, scale, rows, height - 2 * _GAP)
        return
    pitch = (height - 2 * _GAP) / len(rows)
    for place, row in enumerate(rows):
        _draw_box(strip, scale, row, _GAP + (place + 0.5) * pitch, min(0.68 * pitch, 9.0))


class _Strip:
    """Coordinates: a value on the axis, and the distance to the axes in points."""

    def __init__(self, ax: Axes, side: str) -> None:
        from matplotlib.transforms import Affine2D, ScaledTranslation, blended_transform_factory

        self.ax, self.flat = ax, side == "bottom"
        whole: Any = ax.transAxes
        corner = ScaledTranslation(0, 0, whole)  # the lower left corner of the axes, wherever these are
        away = Affine2D().scale(-1 / POINTS) + ax.figure.dpi_scale_trans + corner
        pair = (ax.transData, away) if self.flat else (away, ax.transData)
        self.transform: Any = blended_transform_factory(*pair)

    def line(self, along: Floats, away: Sequence[float], **style: Any) -> None:
        """Draw a line, or points."""
        from matplotlib.lines import Line2D

        x, y = (along.tolist(), away) if self.flat else (away, along.tolist())
        self._add(Line2D(x, y, transform=self.transform, clip_on=False, **style))

    def block(self, start: float, length: float, away: float, height: float, **style: Any) -> None:
        """Draw a filled rectangle."""
        from matplotlib.patches import Rectangle

        corner, size = (start, away), (length, height)
        if not self.flat:
            corner, size = (away, start), (height, length)
        self._add(Rectangle(corner, *size, transform=self.transform, clip_on=False, linewidth=0, **style))

    def _add(self, artist: Artist) -> None:
        artist.set_in_layout(False)  # the axis below the strip keeps its room
        self.ax.add_artist(artist)


def _draw_box(strip: _Strip, scale: FeatureAxis, row: SupportRow, away: float, height: float) -> None:
    """A box plot without a frame: whiskers, quartiles, median, outliers."""
    box, outliers = scale.place(row.support.box), scale.place(row.support.outliers)
    if np.isnan(box).any():
        return
    style: dict[str, Any] = {"color": row.color, "solid_capstyle": "butt"}
    strip.line(box[[1, 5]], [away] * 2, linewidth=1.0, **style)
    strip.line(box[[2, 4]], [away] * 2, linewidth=height, alpha=0.55, **style)
    strip.line(box[[3, 3]], [away - height / 2, away + height / 2], linewidth=1.6, **style)
    strip.line(
        outliers, [away] * len(outliers), linestyle="none", marker=".", markersize=2.5, alpha=0.7, color=row.color
    )


def _draw_bars(strip: _Strip, scale: FeatureAxis, rows: Sequence[SupportRow], height: float) -> None:
    """Bars that hang below the axes: how many rows have each level."""
    most = max((float(row.support.counts.max(initial=0.0)) for row in rows), default=0.0) or 1.0
    room = FILLED / len(rows)
    width = min(_INSIDE * room, _WIDEST)
    for place, row in enumerate(rows):
        counts: Floats = row.support.counts
        for at, level in enumerate(scale.order):
            middle = at - FILLED / 2 + (place + 0.5) * room
            strip.block(middle - width / 2, width, _GAP, counts[level] / most * height, color=row.color, alpha=0.55)
