"""Colours of the page: those of the plots, a dark theme, and style classes of subgroups.

A subgroup has the same colour in tree, table and curves. Text has a contrast of 4.5 with its background, marks have
one of 3. There are eight colours; further subgroups use them again with another line style.
"""

from __future__ import annotations

from subgrove.plots._palette import N_COLORS

DARK = {
    "paper": "#14171a",
    "panel": "#1c2024",
    "ink": "#e8e8e4",
    "soft": "#a7aeb6",
    "rule": "#3a4047",
    "grid": "#282d33",
    "link": "#7cbcf0",
    "shade": "#565d65",
    "conditional": "#cfe3f7",
    "marginal": "#9299a1",
    "good": "#74c990",
    "warn": "#e9a94d",
    "bad": "#f08a80",
    "s1": "#4aa8e0",
    "s2": "#ef8134",
    "s3": "#2fbf93",
    "s4": "#dd92bd",
    "s5": "#e3b341",
    "s6": "#9ad0f5",
    "s7": "#d3739d",
    "s8": "#a5a5a5",
}
"""The same hues, lighter."""

WORDS = ("ink", "soft", "link", "good", "warn", "bad")
"""Colours of text."""
MARKS = ("conditional", "marginal", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8")
"""Colours of dots and lines."""
N_LINES = 3


def subgroup_class(place: int) -> str:
    """Return the style classes of a subgroup, counted from 0: colour and line style."""
    return f"s{place % N_COLORS + 1} d{place // N_COLORS % N_LINES + 1}"


def letter(place: int) -> str:
    """Return the letter of a subgroup, counted from 0: A to Z, then AA and so on."""
    name = ""
    place += 1
    while place:
        place, digit = divmod(place - 1, 26)
        name = chr(ord("A") + digit) + name
    return name


def declarations(colors: dict[str, str]) -> str:
    """Return colours as CSS custom properties."""
    return "".join(f"--{name}:{value};" for name, value in colors.items())
