"""Charts of a feature's effect: cs-PDPs beside PDP and ALE on the same scales, and a small one for lists.

A numeric feature has curves, and below them the histogram of its rows. Curves are bold within the quartiles of their
rows, thin within the whiskers, dotted and pale beyond, where the model extrapolates. A feature with levels has a row
for each level, a dot for each curve, and the number of rows of the level.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from markupsafe import Markup
from msgspec.structs import replace

from subgrove._core.text import count_of, letter
from subgrove._report import svg
from subgrove._report.summary import FeatureSummary, ReportCurve
from subgrove._report.svg import LinearScale

MOST_LEVELS = 24
_WIDTH = 440.0
_MOST_POINTS = 80


@dataclass(frozen=True)
class DrawnLine:
    """A curve to draw: its name, its style, the key that shows and hides it, and the shift of an ALE curve."""

    name: str
    looks: str
    key: str
    line: ReportCurve
    shift: float = 0.0


Lines = Sequence[DrawnLine]


@dataclass(frozen=True)
class ChartPanel:
    """A chart with its title and its curves; `points` has the values for the script."""

    title: str
    kind: str
    picture: Markup
    lines: tuple[DrawnLine, ...]
    key: str
    points: dict[str, Any]


def panels(feature: FeatureSummary, output: str | None, key: str) -> list[ChartPanel]:
    """Return the charts of one output: of subgroups (if there are two or more) and of all rows."""
    inside, outside = list(_of_subgroups(feature, output)), _of_all_rows(feature, output)
    charts = [("Within subgroups", "cs-PDP", inside)] if len(inside) > 1 or not outside else []
    charts += [("All rows together", " and ".join(one.name for one in outside), outside)] if outside else []
    values, found = _heights([drawn for _, _, lines in charts for drawn in lines]), []
    for at, (title, kind, lines) in enumerate(charts):
        own = f"{key}-{at}"
        if feature.distribution.levels:
            x = svg.scale_of(values, _LEVEL_LEFT, _LEVEL_RIGHT)
            drawn = _level_picture(feature, lines, x, kind, own)
            points: dict[str, Any] = {"feature": feature.feature, "lines": [_values(one) for one in lines]}
        else:
            x, y = _x_scale(feature, _LEFT, _RIGHT), svg.scale_of(values, _BOTTOM, _TOP)
            drawn, points = _curve_picture(feature, lines, x, y, kind, own), _points(feature, lines, x, y)
        found.append(ChartPanel(title, kind, drawn, tuple(lines), own, points))
    return found


def _of_subgroups(feature: FeatureSummary, output: str | None) -> Iterator[DrawnLine]:
    """Yield the cs-PDPs of an output."""
    for one in feature.lines:
        if one.subgroup is not None and one.subgroup in feature.places and one.output == output and one.y:
            place = feature.places[one.subgroup]
            yield DrawnLine(letter(place), svg.subgroup_class(place), str(one.subgroup), _thinned(one))


def _of_all_rows(feature: FeatureSummary, output: str | None) -> list[DrawnLine]:
    """Return the PDP and the ALE curve of an output; ALE is shifted to the mean of the PDP over the rows."""
    own = [one for one in feature.lines if one.subgroup is None and one.output == output and one.y]
    curves = {one.kind: _thinned(one) for one in own}
    drawn = [DrawnLine("PDP", "pdp", "pdp", curves["pdp"])] if "pdp" in curves else []
    if "ale" in curves:
        ale = curves["ale"]
        shift = _mean(curves["pdp"]) - _mean(ale) if drawn else 0.0
        low, high = (tuple(None if value is None else value + shift for value in side) for side in (ale.low, ale.high))
        moved = replace(ale, y=tuple(value + shift for value in ale.y), low=low, high=high)
        drawn.append(DrawnLine("ALE", "ale", "ale", moved, shift))
    return drawn


def _mean(curve: ReportCurve) -> float:
    """Return the mean over the rows; over the points in a report of an earlier version, which has no other."""
    return fmean(curve.y) if curve.mean is None else curve.mean


def _thinned(curve: ReportCurve) -> ReportCurve:
    """Return a curve of numbers with at most 80 points, including the first and the last."""
    n = len(curve.x)
    if n <= _MOST_POINTS or isinstance(curve.x[0], str):
        return curve
    shown = [round(at * (n - 1) / (_MOST_POINTS - 1)) for at in range(_MOST_POINTS)]
    names = ("x", "y", "low", "high", "support")
    parts: dict[str, Any] = {name: tuple(getattr(curve, name)[at] for at in shown) for name in names}
    return replace(curve, **parts)


def _heights(lines: Lines) -> list[float | None]:
    """Return all values of curves and of their supported intervals."""
    curves = [drawn.line for drawn in lines]
    sides = [(side, one.support) for one in curves for side in (one.low, one.high)]
    ends = [value for side, support in sides for value, near in zip(side, support, strict=True) if near]
    return [*(y for one in curves for y in one.y), *ends]


def _x_values(curve: ReportCurve) -> list[float]:
    return [float(value) for value in curve.x if not isinstance(value, str)]


def _x_scale(feature: FeatureSummary, start: float, end: float) -> LinearScale:
    """Return the scale of the feature, which includes its rows and its curves."""
    values: list[float | None] = list(feature.distribution.edges)
    values += [value for one in feature.lines for value in _x_values(one)]
    return svg.scale_of(values, start, end, spare=0.01)


def _points(feature: FeatureSummary, lines: Lines, x: LinearScale, y: LinearScale) -> dict[str, Any]:
    axes = {name: [_round(one.low), _round(one.high), one.start, one.end] for name, one in (("x", x), ("y", y))}
    drawn = [{**_values(one), "key": one.key, "shift": _round(one.shift)} for one in lines]
    return {**axes, "feature": feature.feature, "labels": feature.x_labels, "lines": drawn}


def _values(drawn: DrawnLine) -> dict[str, Any]:
    """Return the points of a curve; an ALE curve as it is drawn."""
    x = [value if isinstance(value, str) else _round(value) for value in drawn.line.x]
    return {"name": drawn.name, "x": x, "y": [_round(value) for value in drawn.line.y]}


def _round(value: float) -> float:
    return float(f"{value:.5g}")


# Curves of a numeric feature

_HEIGHT = 310.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 430.0, 24.0, 218.0
_BARS_TOP, _BARS_BOTTOM = 230.0, 270.0
_SUPPORT_CLASSES = {2: "bold", 1: "thin", 0: "far"}


def _curve_picture(
    feature: FeatureSummary, lines: Lines, x: LinearScale, y: LinearScale, name: str, key: str
) -> Markup:
    """Return a chart of curves; `key` is where the script finds their points."""
    stacked = any(drawn.line.subgroup is not None for drawn in lines)
    marks = [draw(drawn, x, y) for draw in (_band, _curve) for drawn in lines]
    marks.append(svg.line(_LEFT, _TOP, _LEFT, _BOTTOM, class_="cursor"))
    inside = [_curve_axes(feature, x, y), _histogram(feature, x, stacked=stacked), *marks]
    edges, n = feature.distribution.edges, count_of(sum(feature.distribution.counts), "row")
    rows = f"{n} from {svg.number(edges[0])} to {svg.number(edges[-1])}" if edges else f"{n} at 0 levels"
    label = f"{name} of {feature.feature}: {', '.join(one.name for one in lines)}; {rows}"
    return svg.picture(_WIDTH, _HEIGHT, label, *inside, class_="curves", data_chart=key, tabindex=0)


def _curve_axes(feature: FeatureSummary, x: LinearScale, y: LinearScale) -> Markup:
    heights = [(y(value), words) for value, words in y.ticks(5)]
    grid = svg.strokes([(_LEFT, at, _RIGHT, at) for at, _ in heights], class_="grid")
    parts = [svg.text(0, 11, "mean prediction", class_="tick"), grid]
    parts += [svg.text(_LEFT - 8, at + 4, words, text_anchor="end", class_="tick") for at, words in heights]
    labels = [(x(value), words) for value, words in feature.x_labels or x.ticks(6) if x.low <= value <= x.high]
    parts += [svg.text(at, _BARS_BOTTOM + 17, words, text_anchor="middle", class_="tick") for at, words in labels]
    ticks = [(at, _BARS_BOTTOM, at, _BARS_BOTTOM + 4) for at, _ in labels]
    parts.append(svg.strokes([(_LEFT, _BARS_BOTTOM, _RIGHT, _BARS_BOTTOM), *ticks], class_="base"))
    name = svg.shorten(feature.feature, _RIGHT - _LEFT, 12)
    parts.append(svg.text((_LEFT + _RIGHT) / 2, _HEIGHT - 6, name, text_anchor="middle", class_="name"))
    return svg.group(*parts)


def _curve(drawn: DrawnLine, x: LinearScale, y: LinearScale) -> Markup:
    """Return the curve in segments of the same support."""
    one = drawn.line
    points = [(x(at), y(value)) for at, value in zip(_x_values(one), one.y, strict=True)]
    steps = [min(pair) for pair in itertools.pairwise(one.support)]
    segments, start = [], 0
    for near, run in itertools.groupby(steps):
        end = start + len(list(run))
        segments.append(svg.path(points[start : end + 1], class_=_SUPPORT_CLASSES[near]))
        start = end
    if len(points) == 1:
        segments.append(svg.circle(*points[0], 4.0, class_="point"))
    return svg.group(*segments, class_=f"curve {drawn.looks}", data_subgroup=drawn.key)


def _band(drawn: DrawnLine, x: LinearScale, y: LinearScale) -> Markup:
    """Return the interval, where it is supported by rows."""
    one = drawn.line
    ends = [
        (round(x(at)), round(y(low)), round(y(high)))  # a band is pale: whole units are fine enough
        for at, low, high, near in zip(_x_values(one), one.low, one.high, one.support, strict=True)
        if near and low is not None and high is not None
    ]
    if len(ends) < 2:
        return svg.group()
    upper, lower = [(at, high) for at, _, high in ends], [(at, low) for at, low, _ in reversed(ends)]
    band = svg.path([*upper, *lower], closed=True)
    return svg.group(band, class_=f"band {drawn.looks}", data_subgroup=drawn.key)


def _histogram(feature: FeatureSummary, x: LinearScale, *, stacked: bool) -> Markup:
    """Return bars of counts between the edges; stacked, each subgroup has its share in its colour."""
    distribution = feature.distribution
    parted = stacked and len(distribution.by_subgroup) == len(feature.subgroups) > 1
    layers = distribution.by_subgroup if parted else (distribution.counts,)
    height = (_BARS_BOTTOM - _BARS_TOP) / max(1, *map(sum, zip(*layers, strict=True)))
    drawn, floor = [], [0.0] * len(distribution.counts)
    for place, counts in enumerate(layers):
        inside = []
        for at, n in enumerate(counts):
            if n:
                left, right = x(distribution.edges[at]), x(distribution.edges[at + 1])
                top = _BARS_BOTTOM - height * (floor[at] + n)
                inside.append((left + 0.4, top, max(right - left - 0.8, 0.6), height * n))
                floor[at] += n
        looks = f"bars {svg.subgroup_class(place)}" if parted else "bars all"
        key = feature.subgroups[place].subgroup if parted else None
        drawn.append(svg.boxes(inside, class_=looks, data_subgroup=key))
    return svg.group(*drawn, class_="histogram")


# Dots at the levels of a feature

_LEVEL_LEFT, _LEVEL_RIGHT = 112.0, 372.0
_LEVEL_TOP, _FOOT, _FONT = 8.0, 42.0, 12.0
_DOT, _SPARE, _LINE = 9.0, 12.0, 13.0


def _shown_levels(feature: FeatureSummary) -> list[str]:
    """Return the levels that have a row: all, or the most frequent ones in their order."""
    spread = feature.distribution
    order = sorted(range(len(spread.levels)), key=lambda at: -spread.counts[at])[:MOST_LEVELS]
    return [spread.levels[at] for at in sorted(order)]


def _level_picture(feature: FeatureSummary, lines: Lines, x: LinearScale, name: str, key: str) -> Markup:
    """Return a chart of the values of curves at levels."""
    levels = _shown_levels(feature)
    row = _DOT * max(len(lines), 1) + _SPARE
    bottom = _LEVEL_TOP + row * len(levels)
    rows = [_level_row(feature, lines, x, level, _LEVEL_TOP + row * at, row) for at, level in enumerate(levels)]
    label = f"{name} of {feature.feature} at {count_of(len(levels), 'level')}: {', '.join(one.name for one in lines)}"
    inside = [_level_axes(x, bottom), *rows]
    return svg.picture(_WIDTH, bottom + _FOOT, label, *inside, class_="levels", data_points=key, tabindex=0)


def _level_axes(x: LinearScale, bottom: float) -> Markup:
    parts = []
    for value, words in x.ticks(4):
        parts.append(svg.line(x(value), _LEVEL_TOP, x(value), bottom, class_="grid"))
        parts.append(svg.text(x(value), bottom + 16, words, text_anchor="middle", class_="tick"))
    middle = (_LEVEL_LEFT + _LEVEL_RIGHT) / 2
    parts.append(svg.text(middle, bottom + 34, "mean prediction", text_anchor="middle", class_="name"))
    parts.append(svg.text(_WIDTH - 2, bottom + 16, "rows", text_anchor="end", class_="tick"))
    return svg.group(*parts)


def _level_row(feature: FeatureSummary, lines: Lines, x: LinearScale, level: str, top: float, row: float) -> Markup:
    middle, left = top + row / 2, _LEVEL_RIGHT + 12
    spread = feature.distribution
    rows = spread.counts[spread.levels.index(level)]
    share = rows / max([*spread.counts, 1])
    name = svg.wrap(level, _LEVEL_LEFT - 14, _FONT, 2 if row >= 2 * _LINE + 2 else 1)
    first = middle + 4 - (len(name) - 1) * _LINE / 2
    parts = [svg.line(0, top + row, _WIDTH, top + row, class_="grid")]
    for at, words in enumerate(name):
        parts.append(svg.text(_LEVEL_LEFT - 12, first + _LINE * at, words, text_anchor="end", class_="level"))
    parts.append(svg.rectangle(left, middle - 5, (_WIDTH - left - 2) * share, 10, class_="rows"))
    catch = svg.rectangle(left, top, _WIDTH - left, row, class_="catch")
    parts.append(svg.group(catch, data_tip=f"{level}: {count_of(rows, 'row')}"))
    dots = (_level_dot(one, x, level, top + _SPARE / 2 + _DOT * (at + 0.5)) for at, one in enumerate(lines))
    return svg.group(*parts, *dots)


def _level_dot(drawn: DrawnLine, x: LinearScale, level: str, y: float) -> Markup:
    one = drawn.line
    if level not in one.x:
        return svg.group()
    at = one.x.index(level)
    low, high = one.low[at], one.high[at]
    parts = [svg.line(x(low), y, x(high), y, class_="bar")] if low is not None and high is not None else []
    parts.append(svg.circle(x(one.y[at]), y, 3.8, class_="dot" if one.support[at] else "dot hollow"))
    parts.append(svg.rectangle(_LEVEL_LEFT, y - _DOT / 2, _LEVEL_RIGHT - _LEVEL_LEFT, _DOT, class_="catch"))
    value = svg.number(one.y[at] - drawn.shift)
    tip = f"{level}, {drawn.name}: {value}" + ("" if one.support[at] else " (no such rows)")
    return svg.group(*parts, class_=f"mark {drawn.looks}", data_subgroup=drawn.key, data_tip=tip)


# Small charts without axes, for lists

_SMALL_WIDTH, _SMALL_HEIGHT = 132.0, 40.0


def small_scale(features: Sequence[FeatureSummary]) -> LinearScale:
    """Return the common scale of all small charts, on which a flat curve looks flat."""
    curves = [drawn.line for feature in features for drawn in _small_lines(feature)]
    values = [y for one in curves for y, near in zip(one.y, one.support, strict=True) if near]
    return svg.scale_of(values, _SMALL_HEIGHT - 4, 4)


def _small_lines(feature: FeatureSummary) -> list[DrawnLine]:
    output = next(iter(feature.outputs), None)
    return list(_of_subgroups(feature, output)) or _of_all_rows(feature, output)[:1]


def small_picture(feature: FeatureSummary, y: LinearScale) -> Markup:
    """Return the feature's curves without axes."""
    lines = _small_lines(feature)
    if feature.distribution.levels:
        names = _shown_levels(feature)
        x = LinearScale(-0.5, max(len(names) - 0.5, 0.5), 2, _SMALL_WIDTH - 2)
        step = min(6.0, 0.8 * (_SMALL_WIDTH - 4) / max(len(names) * len(lines), 1))
        shifts = [step * (at - (len(lines) - 1) / 2) for at in range(len(lines))]
        inside = [_small_stems(drawn, names, x, y, shift) for drawn, shift in zip(lines, shifts, strict=True)]
    else:
        x = _x_scale(feature, 2, _SMALL_WIDTH - 2)
        inside = [_small_curve(drawn, x, y) for drawn in lines]
    return svg.picture(_SMALL_WIDTH, _SMALL_HEIGHT, f"Effect of {feature.feature}, small", *inside, class_="small")


def _small_curve(drawn: DrawnLine, x: LinearScale, y: LinearScale) -> Markup:
    one = drawn.line
    near = [(x(at), y(value)) for at, value, s in zip(_x_values(one), one.y, one.support, strict=True) if s]
    if not near:
        return svg.group()
    shape = svg.path(near, class_="thin") if len(near) > 1 else svg.circle(*near[0], 2.5, class_="point")
    return svg.group(shape, class_=f"curve {drawn.looks}")


def _small_stems(drawn: DrawnLine, names: Sequence[str], x: LinearScale, y: LinearScale, shift: float) -> Markup:
    known = [(level, y(value)) for level, value in zip(drawn.line.x, drawn.line.y, strict=True) if level in names]
    places = [(x(names.index(level)) + shift, height) for level, height in known]
    return svg.group(*(svg.line(at, y.start, at, end, class_="stem") for at, end in places), class_=drawn.looks)
