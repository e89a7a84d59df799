"""Dots with intervals in the cells of a table; positions are percentages, so that a cell may have any width.

All cells of a table share one scale, with its axis in the head of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from subgrove._report.charts.svg import LinearScale, circle, group, line, rectangle, scale_of, tag, text
from subgrove._report.numbers import estimate_text
from subgrove._report.summary import Estimate, FeatureSummary, GapStepSummary

_ROW = 18.0  # height of one dot's row
_TALL = 26.0  # of the axis
_START, _END = 3.0, 97.0  # percent
_LONG = 7  # characters of a label, beyond which there is room for few ticks


def estimate_scale(estimates: Iterable[Estimate | None]) -> LinearScale:
    """Return a scale in percent for estimates, their intervals and 0."""
    values: list[float | None] = [0.0]
    for one in estimates:
        if one is not None:
            values += [one.estimate, one.conf_low, one.conf_high]
    return scale_of(values, _START, _END, spare=0.02)


def importance_scale(features: Sequence[FeatureSummary]) -> LinearScale:
    """Return the scale of the list of all features."""
    return estimate_scale(one for feature in features for one in (feature.conditional, feature.marginal))


def axis(scale: LinearScale, most: int = 5) -> Markup:
    """Return the axis in the head of a table."""
    labelled = scale.ticks(most)
    if any(len(words) > _LONG for _, words in labelled):
        labelled = scale.ticks(2)
    ticks = [
        group(
            line(_at(scale, value), _TALL - 5, _at(scale, value), _TALL),
            text(_at(scale, value), _TALL - 9, words, text_anchor="middle"),
        )
        for value, words in labelled
    ]
    return tag("svg", *ticks, class_="cell axis", width="100%", height=_TALL, aria_hidden="true")


def dots(scale: LinearScale, rows: Sequence[tuple[str, str, Estimate | None]], most: int = 5) -> Markup:
    """Return dots with intervals, one below the other; rows are name, class and estimate."""
    height = _ROW * len(rows) + 6
    marks = [_dot(scale, row, 3 + _ROW * (place + 0.5)) for place, row in enumerate(rows)]
    label = "; ".join(f"{name} {estimate_text(one)}" for name, _, one in rows)
    inside = [*_grid(scale, height, most), *marks]
    return tag("svg", *inside, class_="cell", width="100%", height=height, role="img", aria_label=label)


def _grid(scale: LinearScale, height: float, most: int) -> list[Markup]:
    return [
        line(_at(scale, value), 0, _at(scale, value), height, class_="grid zero" if words == "0" else "grid")
        for value, words in scale.ticks(most)
    ]


def _dot(scale: LinearScale, row: tuple[str, str, Estimate | None], y: float) -> Markup:
    name, looks, one = row
    if one is None:
        return group()
    parts = []
    if one.conf_low is not None and one.conf_high is not None:
        parts.append(line(_at(scale, one.conf_low), y, _at(scale, one.conf_high), y, class_="bar"))
    parts.append(circle(_at(scale, one.estimate), y, 4.5, class_="dot"))
    # A wide transparent band is easier to point at than the dot.
    parts.append(rectangle("0", y - _ROW / 2, "100%", _ROW, class_="catch"))
    return group(*parts, class_=f"mark {looks}", data_tip=tip(name, one))


def tip(name: str, one: Estimate) -> str:
    """Return the text that is shown when an estimate is pointed at."""
    return f"{name}: {estimate_text(one)}"


def step_scale(steps: Sequence[GapStepSummary]) -> LinearScale:
    """Return the scale of the steps from marginal to conditional importance."""
    return scale_of([0.0, *(value for step in steps for value in (step.start, step.end))], _START, _END, spare=0.02)


def bar(scale: LinearScale, start: float, end: float, looks: str, height: float = 20.0) -> Markup:
    """Return a bar from one number to another."""
    left, right = sorted((scale(start), scale(end)))
    inside = [
        *_grid(scale, height, 4),
        rectangle(f"{left:.2f}%", 4, f"{max(right - left, 0.3):.2f}%", height - 8, class_=looks),
    ]
    return tag("svg", *inside, class_="cell", width="100%", height=height, aria_hidden="true")


def share_bar(share: float | None, looks: str = "share") -> Markup:
    """Return a bar for a share from 0 to 1, and its complement in grey."""
    filled = 100 * min(max(share or 0.0, 0.0), 1.0)
    inside = [
        rectangle("0", 5, "100%", 8, class_="share-complement"),
        rectangle("0", 5, f"{filled:.2f}%", 8, class_=looks),
    ]
    return tag("svg", *inside, class_="cell", width="100%", height=18, aria_hidden="true")


def _at(scale: LinearScale, value: float) -> str:
    return f"{scale(value):.2f}%"
