"""The pictures of a feature's effect: cs-PDPs beside PDP and ALE, on the same scales; and a small one for lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from subgrove._report.charts import curves, levels
from subgrove._report.charts.lines import Drawn, heights, numbers, of_all_rows, of_subgroups, outputs_of
from subgrove._report.charts.scale import Scale, scale_of
from subgrove._report.charts.svg import circle, group, line, path, picture
from subgrove._report.summary import FeatureSummary

_SMALL = (132.0, 40.0)


@dataclass(frozen=True)
class Panel:
    """A picture with its title and its curves; `points` is what the script reads values from."""

    title: str
    kind: str
    picture: Markup
    lines: tuple[Drawn, ...]
    key: str
    points: dict[str, Any] | None


def panels(feature: FeatureSummary, output: str | None, key: str) -> list[Panel]:
    """The pictures of one output: of subgroups (where there are two or more) and of all rows."""
    inside, outside = of_subgroups(feature, output), of_all_rows(feature, output)
    groups = [("Within subgroups", "cs-PDP", inside)] if len(inside) > 1 or not outside else []
    groups += [("All rows together", " and ".join(one.name for one in outside), outside)] if outside else []
    values = heights([drawn for _, _, lines in groups for drawn in lines])
    return [
        _panel(feature, title, kind, lines, values, f"{key}-{at}") for at, (title, kind, lines) in enumerate(groups)
    ]


def _panel(
    feature: FeatureSummary, title: str, kind: str, lines: list[Drawn], values: list[float | None], key: str
) -> Panel:
    if feature.distribution.levels:
        x = scale_of(values, levels.LEFT, levels.RIGHT)
        return Panel(title, kind, levels.level_picture(feature, lines, x, kind), tuple(lines), key, None)
    x, y = x_scale(feature), scale_of(values, curves.BOTTOM, curves.TOP)
    drawn = curves.curve_picture(feature, lines, x, y, kind, key)
    return Panel(title, kind, drawn, tuple(lines), key, _points(feature, lines, x, y))


def x_scale(feature: FeatureSummary) -> Scale:
    """The scale of the feature: where its rows and its curves lie."""
    values: list[float | None] = list(feature.distribution.edges)
    values += [value for one in feature.lines for value in numbers(one)]
    return scale_of(values, curves.LEFT, curves.RIGHT, spare=0.01)


def _points(feature: FeatureSummary, lines: Sequence[Drawn], x: Scale, y: Scale) -> dict[str, Any]:
    return {
        "x": [_round(x.low), _round(x.high), x.start, x.end],
        "y": [_round(y.low), _round(y.high), y.start, y.end],
        "feature": feature.feature,
        "labels": [[value, words] for value, words in feature.x_labels],
        "lines": [
            {
                "name": one.name,
                "looks": one.looks,
                "key": one.key,
                "raised": _round(one.raised),
                "x": [_round(value) for value in numbers(one.line)],
                "y": [_round(value) for value in one.line.y],
            }
            for one in lines
        ],
    }


def _round(value: float) -> float:
    return float(f"{value:.5g}")


def small_scale(features: Sequence[FeatureSummary]) -> Scale:
    """The one scale of all small pictures, so that a flat curve is seen to be flat."""
    values = [height for feature in features for height in heights(_small_lines(feature), supported=True)]
    return scale_of(values, _SMALL[1] - 4, 4)


def _small_lines(feature: FeatureSummary) -> list[Drawn]:
    output = next(iter(outputs_of(feature)), None)
    return of_subgroups(feature, output) or of_all_rows(feature, output)[:1]


def small_picture(feature: FeatureSummary, y: Scale) -> Markup:
    """The feature's curves without axes, for a list."""
    lines = _small_lines(feature)
    width, height = _SMALL
    if feature.distribution.levels:
        names = levels.shown_levels(feature)
        x = Scale(-0.5, max(len(names) - 0.5, 0.5), 2, width - 2)
        step = min(6.0, 0.8 * (width - 4) / max(len(names) * len(lines), 1))
        shifts = [step * (at - (len(lines) - 1) / 2) for at in range(len(lines))]
        inside = [_small_stems(drawn, names, x, y, shift) for drawn, shift in zip(lines, shifts, strict=True)]
    else:
        x_numbers = x_scale(feature)
        x = Scale(x_numbers.low, x_numbers.high, 2, width - 2)
        inside = [_small_curve(drawn, x, y) for drawn in lines]
    return picture(width, height, f"Effect of {feature.feature}, small", *inside, class_="small")


def _small_curve(drawn: Drawn, x: Scale, y: Scale) -> Markup:
    one = drawn.line
    near = [(x(at), y(value)) for at, value, s in zip(numbers(one), one.y, one.support, strict=True) if s]
    if len(near) == 1:
        return group(circle(*near[0], 2.5, class_="point"), class_=f"curve {drawn.looks}")
    return group(path(near, class_="thin"), class_=f"curve {drawn.looks}") if near else group()


def _small_stems(drawn: Drawn, names: Sequence[str], x: Scale, y: Scale, shift: float) -> Markup:
    one = drawn.line
    stems = [
        line(x(names.index(level)) + shift, y.start, x(names.index(level)) + shift, y(value), class_="stem")
        for level, value in zip(one.x, one.y, strict=True)
        if isinstance(level, str) and level in names
    ]
    return group(*stems, class_=drawn.looks)
