"""Distributions as bars: of all rows, or stacked by subgroup."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from subgrove._report.charts.palette import subgroup_class
from subgrove._report.charts.scale import Scale
from subgrove._report.charts.svg import boxes, group, stairs
from subgrove._report.numbers import counted
from subgrove._report.summary import Distribution, FeatureSummary
from subgrove._report.typography import number


def bars(feature: FeatureSummary, x: Scale, top: float, bottom: float, *, stacked: bool) -> Markup:
    """Bars of counts between the edges; stacked, each subgroup has its share in its colour."""
    distribution = feature.distribution
    parted = stacked and len(distribution.by_subgroup) == len(feature.subgroups) > 1
    layers = distribution.by_subgroup if parted else (distribution.counts,)
    most = max(1, *map(sum, zip(*layers, strict=True)))
    drawn, floor = [], [0.0] * len(distribution.counts)
    for place, counts in enumerate(layers):
        inside = []
        for at, n in enumerate(counts):
            if n:
                left, right = x(distribution.edges[at]), x(distribution.edges[at + 1])
                high, low = (bottom - (bottom - top) * value / most for value in (floor[at] + n, floor[at]))
                inside.append((left + 0.4, high, max(right - left - 0.8, 0.6), low - high))
                floor[at] += n
        looks = f"bars {subgroup_class(place)}" if parted else "bars all"
        key = feature.subgroups[place].subgroup if parted else None
        drawn.append(boxes(inside, class_=looks, data_subgroup=key))
    return group(*drawn, class_="histogram")


def outline(edges: Sequence[float], counts: Sequence[int], x: Scale, base: float, height: float, looks: str) -> Markup:
    """Shares of rows as one filled shape; `height` is that of the largest share's bar times its value."""
    total = sum(counts)
    if not total:
        return group()
    steps = [(x(edges[at]), base - height * n / total) for at, n in enumerate(counts)]
    return stairs(base, steps, x(edges[-1]), class_=looks)


def largest_share(rows: Sequence[Sequence[int]]) -> float:
    """The largest share that any bar of any row has."""
    return max((max(counts) / sum(counts) for counts in rows if sum(counts)), default=1.0)


def told(distribution: Distribution) -> str:
    """The distribution in words."""
    n = counted(sum(distribution.counts), "row")
    if distribution.edges:
        return f"{n} from {number(distribution.edges[0])} to {number(distribution.edges[-1])}"
    return f"{n} at {counted(len(distribution.levels), 'level')}"
