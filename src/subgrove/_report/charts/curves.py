"""Curves of a numeric feature, and below them where its rows lie.

Bold where the middle half of a curve's rows lies, thin within the whiskers, dotted and pale beyond: there the model
was hardly asked about rows like these.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from markupsafe import Markup

from subgrove._report.charts.histogram import bars, told
from subgrove._report.charts.lines import Drawn, numbers
from subgrove._report.charts.scale import Scale
from subgrove._report.charts.svg import group, line, path, picture, strokes, tag, text
from subgrove._report.charts.text import shorten
from subgrove._report.summary import FeatureSummary

WIDTH, HEIGHT = 440.0, 310.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 430.0, 24.0, 218.0
_BARS_TOP, _BARS_BOTTOM = 230.0, 270.0
_NAMES = {2: "bold", 1: "thin", 0: "far"}


def curve_picture(feature: FeatureSummary, lines: Sequence[Drawn], x: Scale, y: Scale, name: str, key: str) -> Markup:
    """A picture of curves; `key` is where the script finds their points."""
    stacked = any(drawn.line.subgroup is not None for drawn in lines)
    inside = [
        _axes(feature, x, y),
        bars(feature, x, _BARS_TOP, _BARS_BOTTOM, stacked=stacked),
        *(_band(drawn, x, y) for drawn in lines),
        *(_curve(drawn, x, y) for drawn in lines),
        line(LEFT, TOP, LEFT, BOTTOM, class_="cursor"),
    ]
    label = f"{name} of {feature.feature}: {', '.join(one.name for one in lines)}; {told(feature.distribution)}"
    return picture(WIDTH, HEIGHT, label, *inside, class_="curves", data_chart=key, tabindex=0)


def _axes(feature: FeatureSummary, x: Scale, y: Scale) -> Markup:
    rows = [(LEFT, y(value), RIGHT, y(value)) for value, _ in y.ticks(5)]
    parts = [text(0, 11, "prediction", class_="tick"), strokes(rows, class_="grid")]
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


def _curve(drawn: Drawn, x: Scale, y: Scale) -> Markup:
    """The curve in pieces, one for each stretch of the same support."""
    one = drawn.line
    points = [(x(at), y(value)) for at, value in zip(numbers(one), one.y, strict=True)]
    steps = [min(pair) for pair in itertools.pairwise(one.support)]
    pieces, start = [], 0
    for near, run in itertools.groupby(steps):
        end = start + len(list(run))
        pieces.append(path(points[start : end + 1], class_=_NAMES[near]))
        start = end
    if len(points) == 1:
        pieces.append(tag("circle", cx=points[0][0], cy=points[0][1], r=4.0, class_="point"))
    return group(*pieces, class_=f"curve {drawn.looks}", data_subgroup=drawn.key)


def _band(drawn: Drawn, x: Scale, y: Scale) -> Markup:
    """The interval where rows lie."""
    one = drawn.line
    upper, lower = [], []
    for at, low, high, near in zip(numbers(one), one.low, one.high, one.support, strict=True):
        if near and low is not None and high is not None:
            upper.append((round(x(at)), round(y(high))))  # a band is pale: whole units are fine enough
            lower.append((round(x(at)), round(y(low))))
    if len(upper) < 2:
        return group()
    band = path([*upper, *reversed(lower)], closed=True)
    return group(band, class_=f"band {drawn.looks}", data_subgroup=drawn.key)
