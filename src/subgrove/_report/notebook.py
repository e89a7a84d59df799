"""Notebook views of subgroups, effects, dependence, fidelity and reports; importing this module registers all views."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.kinds import Floats
from subgrove._core.text import count_of
from subgrove._data.columns import ColumnInfo, date_text
from subgrove._data.to_containers import as_count
from subgrove._dependence.result import Dependence
from subgrove._effects.curves import Curve
from subgrove._effects.grid import has_levels, point_text
from subgrove._effects.model_fidelity import ModelFidelity
from subgrove._effects.result import Effect
from subgrove._fidelity.result import Fidelity
from subgrove._report.notebook_cards import (
    MOST_ROWS,
    Cell,
    bar,
    card,
    chart_scale,
    curve,
    dot,
    folded,
    sentences,
    table,
)
from subgrove._report.report import Report
from subgrove._report.svg import UNKNOWN, number
from subgrove._report.wording import with_range
from subgrove._subgroups.depth import DepthChoice
from subgrove._subgroups.partition import Partition
from subgrove._subgroups.stability_result import FeatureStability, Stability
from subgrove._subgroups.subgroups import Subgroups


@html_of.register
def subgroups_html(groups: Subgroups) -> str:
    """Return the number of subgroups of each feature and their columns; the rules are folded away."""
    selected = groups.parameters["max_depth"] == "auto"
    rows: list[list[Cell]] = [
        [each.feature, len(each), ", ".join(each.conditioning) or UNKNOWN, *([each.tree.depth] if selected else [])]
        for each in groups.partitions[:MOST_ROWS]
    ]
    heads = ["feature", "subgroups", "by", *(["depth"] if selected else [])]
    count = sum(len(each) for each in groups.partitions)
    lines: list[list[Cell]] = [
        [each.feature, rule, n]
        for each in groups.partitions[:MOST_ROWS]
        for rule, n in zip(each.rules, each.sizes, strict=True)
    ]
    rules = table(["feature", "rule", "training rows"], lines, total=count, source=".table")
    note = f"{groups.parameters['tree'].capitalize()} trees, max_depth {groups.parameters['max_depth']}."
    shown = table(heads, rows, total=len(groups), source="list(...)")
    return card(f"Subgroups of {count_of(len(groups), 'feature')}", note, shown, folded(f"Rules ({count:,})", rules))


@html_of.register
def partition_html(partition: Partition) -> str:
    """Return the rules of a feature, and the number of training rows in each subgroup."""
    largest = chart_scale(map(float, partition.sizes))
    rows: list[list[Cell]] = [
        [at, rule, n, bar(largest, 0.0, float(n))]
        for at, (rule, n) in enumerate(zip(partition.rules[:MOST_ROWS], partition.sizes, strict=False))
    ]
    shown = table(["", "rule", "training rows", ""], rows, total=len(partition), source=".rules")
    reason = "" if partition.choice is None else partition.choice.reason
    return card(f"Subgroups of {partition.feature}: {partition._summary()}", reason, shown)


@html_of.register
def choice_html(choice: DepthChoice) -> str:
    """Return the score at each depth, with the selected one marked."""
    scores = choice.scores or (float("nan"),) * len(choice.n_subgroups)
    errors = choice.std_errors or scores
    scale = chart_scale(scores)
    rows: list[list[Cell]] = [
        [depth, n, score, score - min(scores), error, bar(scale, 0.0, score), "selected" * (depth == choice.depth)]
        for depth, (n, score, error) in enumerate(zip(choice.n_subgroups, scores, errors, strict=True))
    ]
    heads = ["depth", "subgroups", choice.measure, "gap to the best", "std. error", "", ""]
    return card(f"Depth of the subgroups of {choice.feature}", choice.reason, table(heads, rows, source=".table"))


@html_of.register
def stability_html(stability: Stability) -> str:
    """Return how often the first split of each feature is found again, and how similar the subgroups are."""
    rows = [_stability_row(each) for each in stability.features[:MOST_ROWS]]
    heads = ["feature", "subgroups", "first split", "found again in", "stay together", "Rand index", ""]
    note = (
        f"Trees refitted on {stability.n_resamples} random halves of the rows. 'Stay together': share of pairs of rows "
        "of one subgroup; the Rand index is adjusted, 1 for the same subgroups and 0 for chance."
    )
    shown = table(heads, rows, total=len(stability.features), source=".overall")
    texts = [sentence for each in stability.features[:MOST_ROWS] for sentence in each.sentences()]
    title = f"Stability of the subgroups of {count_of(len(stability.features), 'feature')}"
    return card(title, note, shown, folded("In words", sentences(texts, ".sentences")))


def _stability_row(each: FeatureStability) -> list[Cell]:
    column, n_again = "no split", sum(regrown.n_subgroups == 1 for regrown in each.regrown)
    if each.splits:
        column, n_again = each.splits[0].split.column, len(each.splits[0].recurring)
    again, picture = f"{n_again} of {len(each.regrown)}", bar(chart_scale([0.0, 1.0]), 0.0, each.rand)
    together = f"{each.together:.0%}" if each.together == each.together else UNKNOWN
    return [each.feature, len(each.partition), column, again, together, each.rand, picture]


KINDS = {"pdp": "partial dependence", "ice": "ICE curves, their mean", "ale": "ALE", "mplot": "M-plot"}


@html_of.register
def effect_html(result: Effect) -> str:
    """Return a row for each output and subgroup; all curves of an output have one scale."""
    several = len(result.outputs) > 1
    curves = [(at, line) for at in range(len(result.outputs)) for line in result.lines]
    rows = [[*[str(result.outputs[at])] * several, *_row(result, line, at)] for at, line in curves[:MOST_ROWS]]
    picture = [_axis_title(result)] if len(result.infos) == 1 else []
    heads = [*(["output"] if several else []), "subgroup", "rows", *picture, "lowest", "highest"]
    shown = table(heads, rows, total=len(curves), source=".curves")
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
        return [UNKNOWN, UNKNOWN]
    extremes = int(np.nanargmin(estimate)), int(np.nanargmax(estimate))
    return [f"{number(estimate[place])} at {_where(line, place)}" for place in extremes]


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


@html_of.register
def dependence_html(result: Dependence) -> str:
    """Return how well each feature is predicted and by which columns, the most dependent first."""
    most_first = sorted(result.found, key=lambda each: -np.nan_to_num(each.explained, nan=-np.inf))
    unit, noted = chart_scale([0.0, 1.0]), any(each.note for each in most_first[:MOST_ROWS])
    rows: list[list[Cell]] = []
    for each in most_first[:MOST_ROWS]:
        low, high = each.explained - each.std_error, each.explained + each.std_error
        picture = dot(unit, each.explained, low, high)
        note: list[Cell] = [each.note] if noted else []
        rows.append([each.feature, each.explained, picture, each.named(), result._sampler(each), *note])
    heads = ["feature", "R2", "0 to 1, +- std. error", "predictors (share)", "suggested sampler"]
    heads += ["note"] if noted else []
    count = len(result.dependent)
    about = f"{count_of(count, 'feature') if count else 'No feature'} with an R2 of {result.threshold:.0%} or more"
    about += ": marginal importance and effects are misleading there." if count else "."
    shown = table(heads, rows, total=len(most_first), source=".table")
    return card(f"Dependence of {count_of(len(most_first), 'feature')} on the other columns", about, shown)


@html_of.register
def fidelity_html(result: Fidelity) -> str:
    """Return a row for each sampler, the best first, with its position between marginal and unchanged."""
    lines = replace(result, backend="pandas").overall.to_dict("records")
    scale = chart_scale([0.0, 1.0, *(line["position"] for line in lines)])
    rows: list[list[Cell]] = []
    for line in lines:
        place = float(line["position"])
        row: list[Cell] = [str(line["sampler"]), float(line["estimate"]), place, dot(scale, place, place, place)]
        auc = [float(line["auc"])] if "auc" in line else []
        rows.append([*row, float(line["mean_rank"]), *auc, int(line["failed"])])
    heads = ["sampler", "fidelity", "position", "0 marginal, 1 unchanged", "mean rank"]
    heads += ["AUC"] if result.auc is not None else []
    common = int(lines[0]["n_features"])
    note = (
        f"Means over the {count_of(common, 'feature')} that all samplers could sample; {result.n:,} resampled rows "
        f"against {result.n_reference:,}. Fidelity is -log of the squared MMD: larger is better."
    )
    failed = [f"{sampler} could not sample {feature}: {why}" for (feature, sampler), why in result.notes.items()]
    reasons = folded(f"Reasons of {count_of(len(failed), 'failure')}", sentences(failed, ".notes")) if failed else None
    title = f"Data fidelity: {count_of(len(result.features), 'feature')}"
    return card(title, note, table([*heads, "failed"], rows, source=".overall"), reasons)


@html_of.register
def model_fidelity_html(result: ModelFidelity) -> str:
    """Return a row for each method; the single curves are folded away."""
    lines = replace(result, backend="pandas").overall.to_dict("records")
    scale = chart_scale(line["estimate"] for line in lines)
    names = ("method", "against", "curves", "estimate", "median")
    methods = [[*(line[name] for name in names), bar(scale, 0.0, line["estimate"])] for line in lines]
    several = result._several_outputs
    curves: list[list[Cell]] = [
        [loss.feature, loss.method, *[str(loss.output)] * several, loss.against, loss.estimate, loss.std_error]
        for loss in result.losses[:MOST_ROWS]
    ]
    heads = ["feature", "method", *(["output"] if several else []), "against", "difference", "std. error"]
    each = table(heads, curves, total=len(result.losses), source=".table")
    note = "Mean squared difference between a curve at the rows' values and its reference: less is better."
    shown = table(["method", "against", "curves", "mean", "median", ""], methods, source=".overall")
    title = f"Model fidelity of {count_of(result._n_curves, 'curve')}"
    return card(title, note, shown, folded(f"Each curve ({len(result.losses):,})", each))


@html_of.register
def report_html(report: Report) -> str:
    """Return the key findings and the importance of each feature."""
    summary = report.summary
    rows: list[list[Cell]] = [
        [one.feature, with_range(one.conditional), with_range(one.marginal)] for one in summary.features[:MOST_ROWS]
    ]
    shown = table(["feature", "conditional", "marginal"], rows, total=len(summary.features), source=".summary.features")
    note = 'The whole report: .save("report.html")'
    return card(summary.title, note, sentences(summary.highlights), shown)
