"""Colours of the page, light and dark. Subgroups have the same colour in tree, table and curves.

Requirements: words have a contrast of 4.5 with what they stand on, marks one of 3; neighbouring subgroups are told
apart by every kind of colour vision. Eight colours; further subgroups have them again, with another line.
"""

from __future__ import annotations

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
    "s1": "#0072b2",
    "s2": "#d55e00",
    "s3": "#00805d",
    "s4": "#b55a8e",
    "s5": "#a67300",
    "s6": "#3489c2",
    "s7": "#882255",
    "s8": "#6b6b6b",
}
"""Okabe and Ito's colours, darker where white needs it, and Tol's wine."""

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
"""What words are written in."""
MARKS = ("conditional", "marginal", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8")
"""What dots and lines are drawn in."""
N_COLORS = 8
N_LINES = 3


def subgroup_class(place: int) -> str:
    """The class of a subgroup, counted from 0: its colour and its line."""
    return f"s{place % N_COLORS + 1} d{place // N_COLORS % N_LINES + 1}"


def letter(place: int) -> str:
    """What a subgroup, counted from 0, is called in pictures: A to Z, then AA and so on."""
    name = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


def declarations(colors: dict[str, str]) -> str:
    """Colours as custom properties of CSS."""
    return "".join(f"--{name}:{value};" for name, value in colors.items())
