"""Notebook views of dependence, data fidelity, model fidelity and reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from subgrove._core.text import count_of, html_of
from subgrove._dependence.result import Dependence
from subgrove._effects.model_fidelity import CurveLoss, ModelFidelity
from subgrove._fidelity.result import Fidelity
from subgrove._report.notebook.frame import MOST_ROWS, Cell, bar, card, chart_scale, dot, folded, sentences, table
from subgrove._report.numbers import with_range
from subgrove._report.report import Report


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
    methods: list[list[Cell]] = [
        [line[name] for name in ("method", "against", "curves", "estimate", "median")] for line in lines
    ]
    methods = [[*row, bar(scale, 0.0, line["estimate"])] for row, line in zip(methods, lines, strict=True)]
    several = result._several_outputs
    curves: list[list[Cell]] = [
        [loss.feature, loss.method, *_output(loss, several), loss.against, loss.estimate, loss.std_error]
        for loss in result.losses[:MOST_ROWS]
    ]
    heads = ["feature", "method", *(["output"] if several else []), "against", "difference", "std. error"]
    each = table(heads, curves, total=len(result.losses), source=".table")
    note = "Mean squared difference between a curve at the rows' values and its reference: less is better."
    shown = table(["method", "against", "curves", "mean", "median", ""], methods, source=".overall")
    title = f"Model fidelity of {count_of(result._n_curves, 'curve')}"
    return card(title, note, shown, folded(f"Each curve ({len(result.losses):,})", each))


def _output(loss: CurveLoss, several: bool) -> list[Cell]:
    return [str(loss.output)] if several else []


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
