"""Which curves a feature has, what they are called, and how each looks: shared by curves, levels and small pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from subgrove._report.charts.palette import letter, subgroup_class
from subgrove._report.summary import FeatureSummary, Line

_MOST_POINTS = 80


@dataclass(frozen=True)
class Drawn:
    """A curve as it is drawn: its name, its look, the key it is shown and hidden by, and how much it was raised."""

    name: str
    looks: str
    key: str
    line: Line
    raised: float = 0.0


def outputs_of(feature: FeatureSummary) -> list[str | None]:
    """The outputs that have curves, in their order; [None] for a model with one output."""
    return list(dict.fromkeys(line.output for line in feature.lines))


def subgroup_places(feature: FeatureSummary) -> dict[int, int]:
    """From the number of a subgroup to its place among the colours."""
    return {one.subgroup: place for place, one in enumerate(feature.subgroups)}


def of_subgroups(feature: FeatureSummary, output: str | None) -> list[Drawn]:
    """The cs-PDPs of an output."""
    places = subgroup_places(feature)
    return [
        _of_subgroup(line, line.subgroup, places[line.subgroup])
        for line in feature.lines
        if line.subgroup is not None and line.subgroup in places and line.output == output and line.y
    ]


def _of_subgroup(line: Line, subgroup: int, place: int) -> Drawn:
    return Drawn(letter(place), subgroup_class(place), str(subgroup), thinned(line))


def of_all_rows(feature: FeatureSummary, output: str | None) -> list[Drawn]:
    """The PDP and the ALE curve of an output; ALE has mean 0, and is raised to the height of the PDP."""
    found = {line.kind: thinned(line) for line in feature.lines if line.subgroup is None and line.output == output}
    drawn = [Drawn("PDP", "pdp", "pdp", found["pdp"])] if "pdp" in found and found["pdp"].y else []
    if "ale" in found and found["ale"].y:
        raised = _mean(found["pdp"].y) - _mean(found["ale"].y) if drawn else 0.0
        drawn.append(Drawn("ALE", "ale", "ale", lifted(found["ale"], raised), raised))
    return drawn


def lifted(line: Line, by: float) -> Line:
    """A curve moved up."""
    y = tuple(value + by for value in line.y)
    low, high = (tuple(None if value is None else value + by for value in side) for side in (line.low, line.high))
    return replace(line, y=y, low=low, high=high)


def thinned(line: Line) -> Line:
    """A curve of numbers with at most so many points, first and last among them."""
    n = len(line.x)
    if n <= _MOST_POINTS or isinstance(line.x[0], str):
        return line
    kept = [round(at * (n - 1) / (_MOST_POINTS - 1)) for at in range(_MOST_POINTS)]
    parts: dict[str, Any] = {
        name: tuple(getattr(line, name)[at] for at in kept) for name in ("x", "y", "low", "high", "support")
    }
    return replace(line, **parts)


def heights(lines: Sequence[Drawn], *, supported: bool = False) -> list[float | None]:
    """All heights that curves and, where rows lie, their intervals reach; or those of curves where rows lie."""
    if supported:
        return [y for one in lines for y, near in zip(one.line.y, one.line.support, strict=True) if near]
    found: list[float | None] = []
    for drawn in lines:
        one = drawn.line
        found += one.y
        for side in (one.low, one.high):
            found += [value for value, near in zip(side, one.support, strict=True) if near]
    return found


def numbers(line: Line) -> list[float]:
    """The points of a curve of numbers."""
    return [float(value) for value in line.x if not isinstance(value, str)]


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return sum(known) / len(known) if known else 0.0
