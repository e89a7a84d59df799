"""Names at the right ends of lines, in a column, moved apart as little as needed so that they do not touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.plots._figure import POINTS, size_of
from subgrove.plots._palette import color_of, font_size
from subgrove.plots._text import Ruler, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEADER = 16.0  # points between the axes and the names


def write_ends(ax: Axes, names: Sequence[str], ends: Floats, share: float) -> None:
    """Write names beside the ends of lines, apart from each other, with leaders where they had to move.

    A name takes at most a share of the width of the axes.
    """
    width, height = size_of(ax)
    low, high = ax.get_ylim()
    size = min(0.94 * font_size(), height / (1.15 * max(len(names), 1)))
    wanted = (ends - low) / (high - low) * height
    places = spread(wanted.tolist(), 1.2 * size, 0.0, height) / height
    ruler = Ruler(size)
    for at, (name, end, place) in enumerate(zip(names, ends, places, strict=True)):
        _write_end(ax, ruler.shorten(plain(name), share * width), float(end), float(place), color_of(at), size)


def _write_end(ax: Axes, name: str, end: float, place: float, color: str, size: float) -> None:
    from matplotlib.transforms import ScaledTranslation

    right = ax.transAxes + ScaledTranslation(_LEADER / POINTS, 0, ax.figure.dpi_scale_trans)
    ax.annotate(
        "",
        (1.0, end),
        (1.0, place),
        xycoords=ax.get_yaxis_transform(),
        textcoords=right,
        arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.7, "alpha": 0.7, "shrinkA": 2, "shrinkB": 0},
        annotation_clip=False,
    )
    text = ax.text(1.0, place, name, transform=right, size=size, color=color, va="center", ha="left")
    text.set_parse_math(False)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> Floats:
    """Places at least `gap` apart and from `low` to `high`, in the order of the wanted ones and as near as can be.

    Places that would touch form a block that stands at the mean of where its members want to be; blocks that touch are
    joined (isotonic regression of the wanted places less their distances). If there are too many, they share the room.
    """
    n = len(wanted)
    gap = min(gap, (high - low) / max(n - 1, 1))
    order = np.argsort(wanted, kind="stable")
    shifts = gap * np.arange(n)
    free = _increasing(np.asarray(wanted, dtype=np.float64)[order] - shifts)
    places = np.empty(n)
    places[order] = np.clip(free, low, high - gap * (n - 1)) + shifts
    return places


def _increasing(values: Floats) -> Floats:
    """The nearest numbers that do not decrease."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, n = value, 1
        while blocks and blocks[-1][0] > mean:
            before, many = blocks.pop()
            mean, n = (before * many + mean * n) / (many + n), many + n
        blocks.append((mean, n))
    return np.concatenate([np.full(n, mean) for mean, n in blocks]) if blocks else np.empty(0)
