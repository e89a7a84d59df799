"""Curves of a feature with names and styles, and the colours of the page: those of the plots, and a dark theme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from subgrove._report.summary import FeatureSummary, ReportCurve
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


_MOST_POINTS = 80


@dataclass(frozen=True)
class DrawnLine:
    """A curve to draw: its name, its style, the key that shows and hides it, and the shift of an ALE curve."""

    name: str
    looks: str
    key: str
    line: ReportCurve
    shift: float = 0.0


def outputs_of(feature: FeatureSummary) -> list[str | None]:
    """Return the outputs that have curves, in their order; [None] for a model with one output."""
    return list(dict.fromkeys(line.output for line in feature.lines))


def subgroup_places(feature: FeatureSummary) -> dict[int, int]:
    """Return the position of each subgroup among the colours."""
    return {one.subgroup: place for place, one in enumerate(feature.subgroups)}


def of_subgroups(feature: FeatureSummary, output: str | None) -> list[DrawnLine]:
    """Return the cs-PDPs of an output."""
    places = subgroup_places(feature)
    return [
        _of_subgroup(line, line.subgroup, places[line.subgroup])
        for line in feature.lines
        if line.subgroup is not None and line.subgroup in places and line.output == output and line.y
    ]


def _of_subgroup(line: ReportCurve, subgroup: int, place: int) -> DrawnLine:
    return DrawnLine(letter(place), subgroup_class(place), str(subgroup), thinned(line))


def of_all_rows(feature: FeatureSummary, output: str | None) -> list[DrawnLine]:
    """Return the PDP and the ALE curve of an output; ALE has mean 0, and is shifted to the mean of the PDP."""
    curves = {line.kind: thinned(line) for line in feature.lines if line.subgroup is None and line.output == output}
    drawn = [DrawnLine("PDP", "pdp", "pdp", curves["pdp"])] if "pdp" in curves and curves["pdp"].y else []
    if "ale" in curves and curves["ale"].y:
        shift = _mean(curves["pdp"].y) - _mean(curves["ale"].y) if drawn else 0.0
        drawn.append(DrawnLine("ALE", "ale", "ale", shifted(curves["ale"], shift), shift))
    return drawn


def shifted(line: ReportCurve, by: float) -> ReportCurve:
    """Return a curve moved up."""
    y = tuple(value + by for value in line.y)
    low, high = (tuple(None if value is None else value + by for value in side) for side in (line.low, line.high))
    return replace(line, y=y, low=low, high=high)


def thinned(line: ReportCurve) -> ReportCurve:
    """Return a curve of numbers with at most 80 points, including the first and the last."""
    n = len(line.x)
    if n <= _MOST_POINTS or isinstance(line.x[0], str):
        return line
    shown = [round(at * (n - 1) / (_MOST_POINTS - 1)) for at in range(_MOST_POINTS)]
    parts: dict[str, Any] = {
        name: tuple(getattr(line, name)[at] for at in shown) for name in ("x", "y", "low", "high", "support")
    }
    return replace(line, **parts)


def heights(lines: Sequence[DrawnLine], *, supported: bool = False) -> list[float | None]:
    """Return all values of curves and of their supported intervals; or only the supported values of curves."""
    if supported:
        return [y for one in lines for y, near in zip(one.line.y, one.line.support, strict=True) if near]
    values: list[float | None] = []
    for drawn in lines:
        one = drawn.line
        values += one.y
        for side in (one.low, one.high):
            values += [value for value, near in zip(side, one.support, strict=True) if near]
    return values


def x_values(line: ReportCurve) -> list[float]:
    """Return x of a curve of numbers."""
    return [float(value) for value in line.x if not isinstance(value, str)]


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return sum(known) / len(known) if known else 0.0
