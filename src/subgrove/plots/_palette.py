"""Colours, markers and sizes that the pictures of importance and effects share."""

from __future__ import annotations

from typing import Any

from subgrove.plots._leaves import LEAF

COLORS = (LEAF, "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
"""Okabe and Ito without yellow and black, and Tol's wine: told apart by every kind of colour vision."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
STYLES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1.2, 1.2)))
"""Lines: the second and third are used once the colours are."""
GREY = "#737373"
"""Seen on white and on black."""

_USUAL = 10.0  # size of the font that matplotlib has by default


def font_size() -> float:
    """Size of most texts in points; it follows `font.size` of matplotlib."""
    from matplotlib import rcParams

    size = rcParams["font.size"]
    return 0.9 * float(size if isinstance(size, int | float) else _USUAL)


def small_size() -> float:
    """Size of notes and second lines."""
    return 0.86 * font_size()


def color_of(place: int) -> str:
    """The colour of a curve or series."""
    return COLORS[place % len(COLORS)]
