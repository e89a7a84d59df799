"""Notebook views of subgroups, effects, dependence, fidelity and reports; importing this module registers all views."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.text import count_of, percent
from subgrove._data.columns import ColumnInfo, date_text
from subgrove._data.to_containers import as_count
from subgrove._dependence.result import Dependence
from subgrove._effects import Effect, InteractionStrength, ModelFidelity
from subgrove._effects.curves import Curve
from subgrove._effects.grid import has_levels, point_text
from subgrove._fidelity import Fidelity
from subgrove._report.notebook_cards import MOST_ROWS, bar, card, chart_scale, curve, dot, folded, sentences, table
from subgrove._report.report import Report
from subgrove._report.svg import UNKNOWN, number
from subgrove._report.wording import with_range
from subgrove._subgroups import DepthChoice, Partition, Stability, Subgroups
from subgrove._subgroups.stability_result import FeatureStability


@html_of.register
def subgroups_html(groups: Subgroups) -> str:
    """Return the number of subgroups of each feature and their columns; the rules are folded away."""
    every, parameters = groups.partitions, groups.parameters
    heads = ["feature", "subgroups", "by", "depth" if parameters["max_depth"] == "auto" else None]
    rows = ([each.feature, len(each), ", ".join(each.conditioning) or UNKNOWN, each.tree.depth] for each in every)
    count = sum(map(len, every))
    lines = ([each.feature, rule, n] for each in every for rule, n in zip(each.rules, each.sizes, strict=True))
    rules = table(["feature", "rule", "training rows"], lines, count, ".table")
    note = f"{parameters['tree'].capitalize()} trees, max_depth {parameters['max_depth']}."
    shown = table(heads, rows, len(groups), "list(...)")
    return card(f"Subgroups of {count_of(len(groups), 'feature')}", note, shown, folded(f"Rules ({count:,})", rules))


@html_of.register
def partition_html(partition: Partition) -> str:
    """Return the rules of a feature, and the number of training rows in each subgroup."""
    largest = chart_scale(map(float, partition.sizes))
    pairs = zip(partition.rules, partition.sizes, strict=True)
    rows = ([at, rule, n, bar(largest, 0.0, float(n))] for at, (rule, n) in enumerate(pairs))
    shown = table(["", "rule", "training rows", ""], rows, len(partition), ".rules")
    reason = "" if partition.choice is None else partition.choice.reason
    return card(f"Subgroups of {partition.feature}: {partition._summary()}", reason, shown)


@html_of.register
def choice_html(choice: DepthChoice) -> str:
    """Return the score at each depth, with the selected one marked."""
    scores = choice.scores or (float("nan"),) * len(choice.n_subgroups)
    errors = choice.std_errors or scores
    scale = chart_scale(scores)
    rows: list[list[object]] = []
    for depth, (n, score, error) in enumerate(zip(choice.n_subgroups, scores, errors, strict=True)):
        selected = "selected" * (depth == choice.depth)
        rows.append([depth, n, score, score - min(scores), error, bar(scale, 0.0, score), selected])
    heads = ["depth", "subgroups", choice.measure, "gap to the best", "std. error", "", ""]
    shown = table(heads, rows, len(rows), ".table")
    return card(f"Depth of the subgroups of {choice.feature}", choice.reason, shown)


@html_of.register
def stability_html(stability: Stability) -> str:
    """Return how often the first split of each feature is found again, and how similar the subgroups are."""
    features = stability.features
    heads = ["feature", "subgroups", "first split", "found again in", "stay together", "Rand index", ""]
    note = f"Trees refitted on {stability.n_resamples} random halves of the rows. 'Stay together': share of pairs of "
    note += "rows of one subgroup; the Rand index is adjusted, 1 for the same subgroups and 0 for chance."
    shown = table(heads, map(_stability_row, features), len(features), ".overall")
    texts = [sentence for each in features[:MOST_ROWS] for sentence in each.sentences()]
    title = f"Stability of the subgroups of {count_of(len(features), 'feature')}"
    return card(title, note, shown, folded("In words", sentences(texts, ".sentences")))


def _stability_row(each: FeatureStability) -> list[object]:
    column, n_again = "no split", sum(regrown.n_subgroups == 1 for regrown in each.regrown)
    if each.splits:
        column, n_again = each.splits[0].split.column, len(each.splits[0].recurring)
    again, picture = f"{n_again} of {len(each.regrown)}", bar(chart_scale([0.0, 1.0]), 0.0, each.rand)
    together = percent(each.together) if each.together == each.together else UNKNOWN
    return [each.feature, len(each.partition), column, again, together, each.rand, picture]


KINDS = {"pdp": "partial dependence", "ice": "ICE curves, their mean", "ale": "ALE", "mplot": "M-plot"}


@html_of.register
def effect_html(result: Effect) -> str:
    """Return a row for each output and subgroup; all curves of an output have one scale."""
    curves = [(at, line) for at in range(len(result.outputs)) for line in result.lines]
    rows = ([str(result.outputs[at]), *_effect_row(result, line, at)] for at, line in curves)
    several, picture = len(result.outputs) > 1, len(result.infos) == 1
    heads = ["output" if several else None, "subgroup", "rows", _axis_title(result) if picture else None]
    shown = table([*heads, "lowest", "highest"], rows, len(curves), ".curves")
    words = [] if result.heterogeneity is None else [result.heterogeneity.sentence]
    names = " and ".join(info.name for info in result.infos)
    points = sum(len(line.n) for line in result.lines)
    note = f"{KINDS[result.kind]}; {points:,} points; {result.n_rows_predicted:,} rows predicted."
    if result.sampled is not None:
        note += f" Points and boxes are those of a sample of {result.sampled[0]:,} of {result.sampled[1]:,} rows."
    return card(f"Effect of {names}", note[:1].upper() + note[1:], shown, sentences(words))


def _effect_row(result: Effect, line: Curve, at: int) -> list[object]:
    """Return the subgroup, its rows, its curve if there is one feature, and its lowest and highest value."""
    group, axis, estimate = result.groups[line.subgroup], line.axes[0], line.estimate[:, at]
    picture = None
    if len(line.axes) == 1:
        all_x = np.concatenate([each.axes[0].points for each in result.lines]).tolist()
        all_y = np.concatenate([each.estimate[:, at] for each in result.lines]).tolist()
        picture = curve(axis.points.tolist(), estimate.tolist(), all_x, all_y, points=has_levels(axis.info))
    ends = [UNKNOWN, UNKNOWN]
    if not np.isnan(estimate).all():
        extremes = int(np.nanargmin(estimate)), int(np.nanargmax(estimate))
        ends = [f"{number(estimate[place])} at {_where(line, place)}" for place in extremes]
    return [group.rule, as_count(group.n), picture, *ends]


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
    rows = []
    for each in most_first[:MOST_ROWS]:
        picture = dot(unit, each.explained, each.explained - each.std_error, each.explained + each.std_error)
        rows.append([each.feature, each.explained, picture, each.named(), result._sampler(each), each.note])
    heads = ["feature", "R2", "0 to 1, +- std. error", "predictors (share)", "suggested sampler"]
    count = len(result.dependent)
    about = f"{count_of(count, 'feature') if count else 'No feature'} with an R2 of {percent(result.threshold)} or more"
    about += ": rows with one of them shuffled may not occur." if count else "."
    shown = table([*heads, "note" if noted else None], rows, len(most_first), ".table")
    return card(f"Dependence of {count_of(len(most_first), 'feature')} on the other columns", about, shown)


@html_of.register
def fidelity_html(result: Fidelity) -> str:
    """Return a row for each sampler, the best first, with its position between marginal and unchanged."""
    lines = replace(result, backend="pandas").overall.to_dict("records")
    scale = chart_scale([0.0, 1.0, *(line["position"] for line in lines)])
    rows = []
    for line in lines:
        estimate, place, rank = (float(line[name]) for name in ("estimate", "position", "mean_rank"))
        picture = dot(scale, place, place, place)
        checks = line.get("auc"), int(line["failed"])
        rows.append([line["sampler"], int(line["n_features"]), estimate, place, picture, rank, *checks])
    heads = ["sampler", "features", "fidelity", "position", "0 marginal, 1 unchanged", "mean rank"]
    heads_of_checks = ["AUC" if result.auc is not None else None, "failed"]
    rows_compared = f"{result.n:,} resampled rows against {result.n_reference:,}"
    note = f"Means over the features that each sampler can resample; {rows_compared}. "
    note += "Fidelity is -log of the squared MMD: larger is better."
    failed = [f"{sampler} could not sample {feature}: {why}" for (feature, sampler), why in result.notes.items()]
    reasons = folded(f"Reasons of {count_of(len(failed), 'failure')}", sentences(failed, ".notes")) if failed else None
    title = f"Data fidelity: {count_of(len(result.features), 'feature')}"
    return card(title, note, table([*heads, *heads_of_checks], rows, len(rows), ".overall"), reasons)


@html_of.register
def model_fidelity_html(result: ModelFidelity) -> str:
    """Return a row for each method; the single curves are folded away."""
    lines = replace(result, backend="pandas").overall.to_dict("records")
    scale = chart_scale(line["estimate"] for line in lines)
    methods = [[*line.values(), bar(scale, 0.0, line["estimate"])] for line in lines]
    shown = table(["method", "against", "curves", "mean", "median", ""], methods, len(methods), ".overall")
    names = ("feature", "method", "output", "against", "difference", "std. error")
    heads = [None if name == "output" and not result._several_outputs else name for name in names]
    found = result.losses
    curves = ([one.feature, one.method, str(one.output), one.against, one.estimate, one.std_error] for one in found)
    each = table(heads, curves, len(result.losses), ".table")
    note = "Mean squared difference between a curve at the rows' values and its reference: less is better."
    title = f"Model fidelity of {count_of(result._n_curves, 'curve')}"
    return card(title, note, shown, folded(f"Each curve ({len(result.losses):,})", each))


@html_of.register
def interaction_strength_html(result: InteractionStrength) -> str:
    """Return a row for each pair of features, the strongest interactions first."""
    frame = result.to_frame()
    scale = chart_scale(frame["strength"])
    lines = ([*line, bar(scale, 0.0, line[-1])] for line in frame.itertuples(index=False))
    shown = table([*frame.columns, ""], lines, len(frame), ".table")
    note = f"Friedman's H-squared, and the standard deviation of the interaction in units of the {result.scale}."
    return card(f"Interactions of {count_of(len(frame), 'pair')} of features", note, shown)


@html_of.register
def report_html(report: Report) -> str:
    """Return the key findings and the importance of each feature."""
    summary = report.summary
    rows = ([one.feature, with_range(one.conditional), with_range(one.marginal)] for one in summary.features)
    shown = table(["feature", "conditional", "marginal"], rows, len(summary.features), ".summary.features")
    note = 'The whole report: .save("report.html")'
    return card(summary.title, note, sentences(summary.highlights), shown)
