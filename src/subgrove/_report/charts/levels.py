"""Charts of a feature with levels: a row for each level, a dot for each curve, and the number of rows of the level."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from subgrove._core.text import count_of
from subgrove._report.charts.lines import DrawnLine
from subgrove._report.charts.svg import LinearScale, circle, group, line, picture, rectangle, text, wrap
from subgrove._report.numbers import number
from subgrove._report.summary import FeatureSummary

WIDTH = 440.0
LEFT, RIGHT = 112.0, 372.0
MOST_LEVELS = 24
_TOP, _FOOT, _FONT = 8.0, 42.0, 12.0
_DOT, _SPARE, _LINE = 9.0, 12.0, 13.0


def shown_levels(feature: FeatureSummary) -> list[str]:
    """Return the levels that have a row: all, or the most frequent ones in their order."""
    spread = feature.distribution
    order = sorted(range(len(spread.levels)), key=lambda at: -spread.counts[at])[:MOST_LEVELS]
    return [spread.levels[at] for at in sorted(order)]


def level_picture(feature: FeatureSummary, lines: Sequence[DrawnLine], x: LinearScale, name: str) -> Markup:
    """Return a chart of the values of curves at levels."""
    levels = shown_levels(feature)
    row = _DOT * max(len(lines), 1) + _SPARE
    bottom = _TOP + row * len(levels)
    inside = [_axes(feature, x, bottom)]
    for at, level in enumerate(levels):
        inside.append(_row(feature, lines, x, level, _TOP + row * at, row))
    label = f"{name} of {feature.feature} at {count_of(len(levels), 'level')}: {', '.join(one.name for one in lines)}"
    return picture(WIDTH, bottom + _FOOT, label, *inside, class_="levels", tabindex=0)


def _axes(feature: FeatureSummary, x: LinearScale, bottom: float) -> Markup:
    parts = []
    for value, words in x.ticks(4):
        parts.append(line(x(value), _TOP, x(value), bottom, class_="grid"))
        parts.append(text(x(value), bottom + 16, words, text_anchor="middle", class_="tick"))
    parts.append(text((LEFT + RIGHT) / 2, bottom + 34, "mean prediction", text_anchor="middle", class_="name"))
    parts.append(text(WIDTH - 2, bottom + 16, "rows", text_anchor="end", class_="tick"))
    return group(*parts)


def _row(
    feature: FeatureSummary, lines: Sequence[DrawnLine], x: LinearScale, level: str, top: float, row: float
) -> Markup:
    middle = top + row / 2
    rows = dict(zip(feature.distribution.levels, feature.distribution.counts, strict=True)).get(level, 0)
    share = rows / max([*feature.distribution.counts, 1])
    parts = [
        line(0, top + row, WIDTH, top + row, class_="grid"),
        *_name(level, middle, row),
        rectangle(RIGHT + 12, middle - 5, (WIDTH - RIGHT - 14) * share, 10, class_="rows"),
        group(
            rectangle(RIGHT + 12, top, WIDTH - RIGHT - 12, row, class_="catch"),
            data_tip=f"{level}: {count_of(rows, 'row')}",
        ),
    ]
    for place, drawn in enumerate(lines):
        y = top + _SPARE / 2 + _DOT * (place + 0.5)
        parts.append(_dot(drawn, x, level, y))
    return group(*parts)


def _name(level: str, middle: float, row: float) -> list[Markup]:
    """Return the level's name, in two lines where there is room."""
    words = wrap(level, LEFT - 14, _FONT, 2 if row >= 2 * _LINE + 2 else 1)
    first = middle + 4 - (len(words) - 1) * _LINE / 2
    return [text(LEFT - 12, first + _LINE * at, one, text_anchor="end", class_="level") for at, one in enumerate(words)]


def _dot(drawn: DrawnLine, x: LinearScale, level: str, y: float) -> Markup:
    one = drawn.line
    if level not in one.x:
        return group()
    at = one.x.index(level)
    low, high = one.low[at], one.high[at]
    parts = [line(x(low), y, x(high), y, class_="bar")] if low is not None and high is not None else []
    looks = "dot" if one.support[at] else "dot hollow"
    parts.append(circle(x(one.y[at]), y, 3.8, class_=looks))
    parts.append(rectangle(LEFT, y - _DOT / 2, RIGHT - LEFT, _DOT, class_="catch"))
    value = number(one.y[at] - drawn.shift)
    tip = f"{level}, {drawn.name}: {value}" + ("" if one.support[at] else " (no such rows)")
    return group(*parts, class_=f"mark {drawn.looks}", data_subgroup=drawn.key, data_tip=tip)
