"""What an effect shows of itself in a notebook: a small curve for each subgroup, and where it is lowest and highest."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._data.columns import date_text
from subgrove._data.result_tables import as_count
from subgrove._effects.curves import Curve
from subgrove._effects.grid import has_levels, point_text
from subgrove._effects.result import Effect
from subgrove._report.notebook.frame import MOST_ROWS, Cell, Scale, card, curve, number, sentences, table

KINDS = {"pdp": "partial dependence", "ice": "ICE curves, their mean", "ale": "ALE", "mplot": "M-plot"}


@html_of.register
def effect_html(found: Effect) -> str:
    """A row for each output and subgroup; all curves of an output have one scale."""
    several = len(found.outputs) > 1
    rows: list[list[Cell]] = []
    for at, output in enumerate(found.outputs):
        for line in found.lines:
            if len(rows) < MOST_ROWS:
                head: list[Cell] = [str(output)] if several else []
                rows.append(head + _row(found, line, at))
    picture = [_axis_title(found)] if len(found.infos) == 1 else []
    heads = [*(["output"] if several else []), "rows with", "rows", *picture, "lowest", "highest"]
    total = len(found.outputs) * len(found.lines)
    shown = table(heads, rows, total=total, rest=".curves")
    words = [] if found.heterogeneity is None else [found.heterogeneity.sentence]
    names = " and ".join(info.name for info in found.infos)
    points = sum(len(line.n) for line in found.lines)
    note = f"{KINDS[found.kind]}; {points:,} points; the model was asked for {found.n_rows_predicted:,} rows."
    if found.sampled is not None:
        note += f" Points and boxes are those of {found.sampled[0]:,} rows drawn from {found.sampled[1]:,}."
    return card(f"Effect of {names}", note[:1].upper() + note[1:], shown, sentences(words))


def _row(found: Effect, line: Curve, at: int) -> list[Cell]:
    group, estimate = found.groups[line.subgroup], line.estimate[:, at]
    row: list[Cell] = [group.rule, as_count(group.n)]
    if len(line.axes) == 1:
        axis = line.axes[0]
        across = Scale.of(np.concatenate([each.axes[0].points for each in found.lines]), zero=False)
        up = Scale.of(np.concatenate([each.estimate[:, at] for each in found.lines]), zero=False)
        row.append(curve(across, up, axis.points.tolist(), estimate.tolist(), points=has_levels(axis.info)))
    return [*row, *_ends(line, estimate)]


def _ends(line: Curve, estimate: Floats) -> list[Cell]:
    """Where a curve is lowest and highest."""
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


def _axis_title(found: Effect) -> str:
    """What the pictures' axis goes from and to."""
    info = found.infos[0]
    if has_levels(info) or not found.lines:
        return "curve"
    ends = np.concatenate([line.axes[0].points for line in found.lines])
    return f"{_value(info, float(ends.min()))} to {_value(info, float(ends.max()))}"
