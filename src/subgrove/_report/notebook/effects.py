"""Notebook view of an effect: a small curve for each subgroup, and its lowest and highest value."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import html_of
from subgrove._data.columns import ColumnInfo, date_text
from subgrove._data.to_containers import as_count
from subgrove._effects.curves import Curve
from subgrove._effects.grid import has_levels, point_text
from subgrove._effects.result import Effect
from subgrove._report.notebook.frame import MOST_ROWS, Cell, card, curve, sentences, table
from subgrove._report.numbers import number

KINDS = {"pdp": "partial dependence", "ice": "ICE curves, their mean", "ale": "ALE", "mplot": "M-plot"}


@html_of.register
def effect_html(result: Effect) -> str:
    """Return a row for each output and subgroup; all curves of an output have one scale."""
    several = len(result.outputs) > 1
    rows: list[list[Cell]] = []
    for at, output in enumerate(result.outputs):
        for line in result.lines:
            if len(rows) < MOST_ROWS:
                head: list[Cell] = [str(output)] if several else []
                rows.append(head + _row(result, line, at))
    picture = [_axis_title(result)] if len(result.infos) == 1 else []
    heads = [*(["output"] if several else []), "subgroup", "rows", *picture, "lowest", "highest"]
    total = len(result.outputs) * len(result.lines)
    shown = table(heads, rows, total=total, source=".curves")
    words = [] if result.heterogeneity is None else [result.heterogeneity.sentence]
    names = " and ".join(info.name for info in result.infos)
    points = sum(len(line.n) for line in result.lines)
    note = f"{KINDS[result.kind]}; {points:,} points; {result.n_rows_predicted:,} rows predicted."
    if result.sampled is not None:
        note += f" Points and boxes are those of a sample of {result.sampled[0]:,} of {result.sampled[1]:,} rows."
    return card(f"Effect of {names}", note[:1].upper() + note[1:], shown, sentences(words))


def _row(result: Effect, line: Curve, at: int) -> list[Cell]:
    group, estimate = result.groups[line.subgroup], line.estimate[:, at]
    row: list[Cell] = [group.rule, as_count(group.n)]
    if len(line.axes) == 1:
        axis = line.axes[0]
        all_x = np.concatenate([each.axes[0].points for each in result.lines]).tolist()
        all_y = np.concatenate([each.estimate[:, at] for each in result.lines]).tolist()
        levels = has_levels(axis.info)
        row.append(curve(axis.points.tolist(), estimate.tolist(), all_x, all_y, points=levels))
    return [*row, *_ends(line, estimate)]


def _ends(line: Curve, estimate: Floats) -> list[Cell]:
    """Return the lowest and the highest value of a curve."""
    if np.isnan(estimate).all():
        return [number(None), number(None)]
    return [f"{number(estimate[place])} at {_where(line, place)}" for place in _extremes(estimate)]


def _extremes(estimate: Floats) -> tuple[int, int]:
    return int(np.nanargmin(estimate)), int(np.nanargmax(estimate))


def _where(line: Curve, place: int) -> str:
    places = np.unravel_index(place, [len(axis) for axis in line.axes])
    values = [_value(axis.info, float(axis.points[at])) for axis, at in zip(line.axes, places, strict=True)]
    if len(values) == 1:
        return values[0]
    return ", ".join(f"{axis.info.name} {value}" for axis, value in zip(line.axes, values, strict=True))


def _value(info: ColumnInfo, point: float) -> str:
    if has_levels(info):
        return point_text(info, point)
    if info.is_date:
        return date_text(point)[:16]  # to the minute
    return str(timedelta(seconds=round(point / 1e6))) if info.is_duration else number(point)


def _axis_title(result: Effect) -> str:
    """Return the range of the horizontal axis of the charts."""
    info = result.infos[0]
    if has_levels(info) or not result.lines:
        return "curve"
    ends = np.concatenate([line.axes[0].points for line in result.lines])
    return f"{_value(info, float(ends.min()))} to {_value(info, float(ends.max()))}"
