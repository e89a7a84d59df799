"""The charts of a feature's effect: cs-PDPs beside PDP and ALE, on the same scales; and a small one for lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from subgrove._report.charts import curves, levels
from subgrove._report.charts.lines import DrawnLine, heights, of_all_rows, of_subgroups, outputs_of, x_values
from subgrove._report.charts.svg import LinearScale, circle, group, line, path, picture, scale_of
from subgrove._report.summary import FeatureSummary

_SMALL = (132.0, 40.0)


@dataclass(frozen=True)
class ChartPanel:
    """A chart with its title and its curves; `points` has the values for the script."""

    title: str
    kind: str
    picture: Markup
    lines: tuple[DrawnLine, ...]
    key: str
    points: dict[str, Any] | None


def panels(feature: FeatureSummary, output: str | None, key: str) -> list[ChartPanel]:
    """Return the charts of one output: of subgroups (if there are two or more) and of all rows."""
    inside, outside = of_subgroups(feature, output), of_all_rows(feature, output)
    charts = [("Within subgroups", "cs-PDP", inside)] if len(inside) > 1 or not outside else []
    charts += [("All rows together", " and ".join(one.name for one in outside), outside)] if outside else []
    values = heights([drawn for _, _, lines in charts for drawn in lines])
    return [
        _panel(feature, title, kind, lines, values, f"{key}-{at}") for at, (title, kind, lines) in enumerate(charts)
    ]


def _panel(
    feature: FeatureSummary, title: str, kind: str, lines: list[DrawnLine], values: list[float | None], key: str
) -> ChartPanel:
    if feature.distribution.levels:
        x = scale_of(values, levels.LEFT, levels.RIGHT)
        return ChartPanel(title, kind, levels.level_picture(feature, lines, x, kind), tuple(lines), key, None)
    x, y = x_scale(feature), scale_of(values, curves.BOTTOM, curves.TOP)
    drawn = curves.curve_picture(feature, lines, x, y, kind, key)
    return ChartPanel(title, kind, drawn, tuple(lines), key, _points(feature, lines, x, y))


def x_scale(feature: FeatureSummary) -> LinearScale:
    """Return the scale of the feature, which includes its rows and its curves."""
    values: list[float | None] = list(feature.distribution.edges)
    values += [value for one in feature.lines for value in x_values(one)]
    return scale_of(values, curves.LEFT, curves.RIGHT, spare=0.01)


def _points(feature: FeatureSummary, lines: Sequence[DrawnLine], x: LinearScale, y: LinearScale) -> dict[str, Any]:
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
                "shift": _round(one.shift),
                "x": [_round(value) for value in x_values(one.line)],
                "y": [_round(value) for value in one.line.y],
            }
            for one in lines
        ],
    }


def _round(value: float) -> float:
    return float(f"{value:.5g}")


def small_scale(features: Sequence[FeatureSummary]) -> LinearScale:
    """Return the common scale of all small charts, on which a flat curve looks flat."""
    values = [height for feature in features for height in heights(_small_lines(feature), supported=True)]
    return scale_of(values, _SMALL[1] - 4, 4)


def _small_lines(feature: FeatureSummary) -> list[DrawnLine]:
    output = next(iter(outputs_of(feature)), None)
    return of_subgroups(feature, output) or of_all_rows(feature, output)[:1]


def small_picture(feature: FeatureSummary, y: LinearScale) -> Markup:
    """Return the feature's curves without axes, for a list."""
    lines = _small_lines(feature)
    width, height = _SMALL
    if feature.distribution.levels:
        names = levels.shown_levels(feature)
        x = LinearScale(-0.5, max(len(names) - 0.5, 0.5), 2, width - 2)
        step = min(6.0, 0.8 * (width - 4) / max(len(names) * len(lines), 1))
        shifts = [step * (at - (len(lines) - 1) / 2) for at in range(len(lines))]
        inside = [_small_stems(drawn, names, x, y, shift) for drawn, shift in zip(lines, shifts, strict=True)]
    else:
        x_numbers = x_scale(feature)
        x = LinearScale(x_numbers.low, x_numbers.high, 2, width - 2)
        inside = [_small_curve(drawn, x, y) for drawn in lines]
    return picture(width, height, f"Effect of {feature.feature}, small", *inside, class_="small")


def _small_curve(drawn: DrawnLine, x: LinearScale, y: LinearScale) -> Markup:
    one = drawn.line
    near = [(x(at), y(value)) for at, value, s in zip(x_values(one), one.y, one.support, strict=True) if s]
    if len(near) == 1:
        return group(circle(*near[0], 2.5, class_="point"), class_=f"curve {drawn.looks}")
    return group(path(near, class_="thin"), class_=f"curve {drawn.looks}") if near else group()


def _small_stems(drawn: DrawnLine, names: Sequence[str], x: LinearScale, y: LinearScale, shift: float) -> Markup:
    one = drawn.line
    stems = [
        line(x(names.index(level)) + shift, y.start, x(names.index(level)) + shift, y(value), class_="stem")
        for level, value in zip(one.x, one.y, strict=True)
        if isinstance(level, str) and level in names
    ]
    return group(*stems, class_=drawn.looks)
