"""Charts of a numeric feature: curves, and below them the histogram of its rows.

Curves are bold within the quartiles of their rows, thin within the whiskers, dotted and pale beyond, where the model
extrapolates.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from markupsafe import Markup

from subgrove._core.text import count_of
from subgrove._report.charts.lines import DrawnLine, subgroup_class, x_values
from subgrove._report.charts.svg import (
    LinearScale,
    boxes,
    group,
    line,
    path,
    picture,
    shorten,
    stairs,
    strokes,
    tag,
    text,
)
from subgrove._report.numbers import number
from subgrove._report.summary import Distribution, FeatureSummary

WIDTH, HEIGHT = 440.0, 310.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 430.0, 24.0, 218.0
_BARS_TOP, _BARS_BOTTOM = 230.0, 270.0
_NAMES = {2: "bold", 1: "thin", 0: "far"}


def curve_picture(
    feature: FeatureSummary, lines: Sequence[DrawnLine], x: LinearScale, y: LinearScale, name: str, key: str
) -> Markup:
    """Return a chart of curves; `key` is where the script finds their points."""
    stacked = any(drawn.line.subgroup is not None for drawn in lines)
    inside = [
        _axes(feature, x, y),
        bars(feature, x, _BARS_TOP, _BARS_BOTTOM, stacked=stacked),
        *(_band(drawn, x, y) for drawn in lines),
        *(_curve(drawn, x, y) for drawn in lines),
        line(LEFT, TOP, LEFT, BOTTOM, class_="cursor"),
    ]
    label = f"{name} of {feature.feature}: {', '.join(one.name for one in lines)}; {describe(feature.distribution)}"
    return picture(WIDTH, HEIGHT, label, *inside, class_="curves", data_chart=key, tabindex=0)


def _axes(feature: FeatureSummary, x: LinearScale, y: LinearScale) -> Markup:
    rows = [(LEFT, y(value), RIGHT, y(value)) for value, _ in y.ticks(5)]
    parts = [text(0, 11, "mean prediction", class_="tick"), strokes(rows, class_="grid")]
    for value, words in y.ticks(5):
        parts.append(text(LEFT - 8, y(value) + 4, words, text_anchor="end", class_="tick"))
    labels = list(feature.x_labels) or x.ticks(6)
    for value, words in labels:
        if x.low <= value <= x.high:
            parts.append(text(x(value), _BARS_BOTTOM + 17, words, text_anchor="middle", class_="tick"))
    ticks = [(x(value), _BARS_BOTTOM, x(value), _BARS_BOTTOM + 4) for value, _ in labels if x.low <= value <= x.high]
    parts.append(strokes([(LEFT, _BARS_BOTTOM, RIGHT, _BARS_BOTTOM), *ticks], class_="base"))
    name = shorten(feature.feature, RIGHT - LEFT, 12)
    parts.append(text((LEFT + RIGHT) / 2, HEIGHT - 6, name, text_anchor="middle", class_="name"))
    return group(*parts)


def _curve(drawn: DrawnLine, x: LinearScale, y: LinearScale) -> Markup:
    """Return the curve in segments of the same support."""
    one = drawn.line
    points = [(x(at), y(value)) for at, value in zip(x_values(one), one.y, strict=True)]
    steps = [min(pair) for pair in itertools.pairwise(one.support)]
    segments, start = [], 0
    for near, run in itertools.groupby(steps):
        end = start + len(list(run))
        segments.append(path(points[start : end + 1], class_=_NAMES[near]))
        start = end
    if len(points) == 1:
        segments.append(tag("circle", cx=points[0][0], cy=points[0][1], r=4.0, class_="point"))
    return group(*segments, class_=f"curve {drawn.looks}", data_subgroup=drawn.key)


def _band(drawn: DrawnLine, x: LinearScale, y: LinearScale) -> Markup:
    """Return the interval, where it is supported by rows."""
    one = drawn.line
    upper, lower = [], []
    for at, low, high, near in zip(x_values(one), one.low, one.high, one.support, strict=True):
        if near and low is not None and high is not None:
            upper.append((round(x(at)), round(y(high))))  # a band is pale: whole units are fine enough
            lower.append((round(x(at)), round(y(low))))
    if len(upper) < 2:
        return group()
    band = path([*upper, *reversed(lower)], closed=True)
    return group(band, class_=f"band {drawn.looks}", data_subgroup=drawn.key)


def bars(feature: FeatureSummary, x: LinearScale, top: float, bottom: float, *, stacked: bool) -> Markup:
    """Return bars of counts between the edges; stacked, each subgroup has its share in its colour."""
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


def outline(
    edges: Sequence[float], counts: Sequence[int], x: LinearScale, base: float, height: float, looks: str
) -> Markup:
    """Return shares of rows as one filled shape; a share of 1 would be `height` high."""
    total = sum(counts)
    if not total:
        return group()
    steps = [(x(edges[at]), base - height * n / total) for at, n in enumerate(counts)]
    return stairs(base, steps, x(edges[-1]), class_=looks)


def largest_share(rows: Sequence[Sequence[int]]) -> float:
    """Return the largest share of any bar of any row."""
    return max((max(counts) / sum(counts) for counts in rows if sum(counts)), default=1.0)


def describe(distribution: Distribution) -> str:
    """Return the distribution in words."""
    n = count_of(sum(distribution.counts), "row")
    if distribution.edges:
        return f"{n} from {number(distribution.edges[0])} to {number(distribution.edges[-1])}"
    return f"{n} at {count_of(len(distribution.levels), 'level')}"
