"""Colours, markers and sizes of all pictures, here, in the report and in notebooks."""

from __future__ import annotations

from typing import Any

COLORS = ("#0072b2", "#d55e00", "#00805d", "#b55a8e", "#a67300", "#3489c2", "#882255", "#6b6b6b")
"""Colours of series, curves and subgroups: Okabe and Ito's, darker where they need contrast with white, and Tol's wine.

They are safe for colour blindness.
"""
LIGHT = {
    "paper": "#ffffff",
    "panel": "#f6f6f3",
    "ink": "#1b1f24",
    "soft": "#565d66",
    "rule": "#d8d8d2",
    "grid": "#e9e9e4",
    "link": "#0b5394",
    "shade": "#c4c5c2",
    "conditional": "#14324f",
    "marginal": "#767b82",
    "good": "#1d6b3c",
    "warn": "#8a4b00",
    "bad": "#a11c1c",
    **{f"s{place}": color for place, color in enumerate(COLORS, 1)},
}
"""Colours of the report on white, by the names of its style sheet."""
N_COLORS = len(COLORS)
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
STYLES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1.2, 1.2)))
"""Line styles: the second and third are for series beyond the number of colours."""
GREY = "#737373"
"""Visible on white and on black."""


def font_size() -> float:
    """Return the size of most texts in points; it follows `font.size` of matplotlib."""
    from matplotlib import rcParams

    return 0.9 * float(rcParams["font.size"])


def small_size() -> float:
    """Return the size of notes and second lines."""
    return 0.86 * font_size()


def color_of(place: int) -> str:
    """Return the colour of a curve or series."""
    return COLORS[place % len(COLORS)]


def style_of(place: int) -> Any:
    """Return the line style of a curve."""
    return STYLES[place // len(COLORS) % len(STYLES)]
