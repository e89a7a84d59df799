"""Notebook views of dependence, data fidelity, model fidelity and reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._dependence.result import Dependence
from subgrove._effects.model_fidelity.result import CurveLoss, ModelFidelity
from subgrove._fidelity.result import Fidelity
from subgrove._report.notebook.frame import MOST_ROWS, Cell, Scale, bar, card, counted, dot, folded, sentences, table
from subgrove._report.numbers import with_range
from subgrove._report.report import Report


@html_of.register
def dependence_html(found: Dependence) -> str:
    """How well each feature is foretold and by which columns, the most dependent first."""
    most_first = sorted(found.found, key=lambda each: -np.nan_to_num(each.explained, nan=-np.inf))
    unit, noted = Scale(0.0, 1.0), any(each.note for each in most_first[:MOST_ROWS])
    rows: list[list[Cell]] = []
    for each in most_first[:MOST_ROWS]:
        low, high = each.explained - each.std_error, each.explained + each.std_error
        picture = dot(unit, each.explained, low, high)
        note: list[Cell] = [each.note] if noted else []
        rows.append([each.feature, each.explained, picture, each.named(), found._sampler(each), *note])
    heads = ["feature", "share foretold", "0 to 1, +- std. error", "by (its part)", "advised sampler"]
    heads += ["note"] if noted else []
    count = len(found.dependent)
    about = f"{counted(count, 'feature') if count else 'No feature'} foretold by at least {found.threshold:.0%}"
    about += ": there ordinary importance and effects mislead most." if count else "."
    shown = table(heads, rows, total=len(most_first), rest=".table")
    return card(f"How well {counted(len(most_first), 'feature')} can be foretold from the other columns", about, shown)


@html_of.register
def fidelity_html(found: Fidelity) -> str:
    """One row for each sampler, the best first: where it stands between marginal and unchanged."""
    lines = replace(found, backend="pandas").overall.to_dict("records")
    scale = Scale.of([0.0, 1.0, *(line["position"] for line in lines)])
    rows: list[list[Cell]] = []
    for line in lines:
        place = float(line["position"])
        row: list[Cell] = [str(line["sampler"]), float(line["estimate"]), place, dot(scale, place, place, place)]
        auc = [float(line["auc"])] if "auc" in line else []
        rows.append([*row, float(line["mean_rank"]), *auc, int(line["failed"])])
    heads = ["sampler", "fidelity", "position", "0 marginal, 1 unchanged", "mean rank"]
    heads += ["AUC"] if found.auc is not None else []
    common = int(lines[0]["n_features"])
    note = (
        f"Means over the {counted(common, 'feature')} that all samplers could redraw; {found.n:,} redrawn rows against "
        f"{found.n_reference:,}. Fidelity is -log of the squared MMD: larger is better."
    )
    failed = [f"{sampler} could not redraw {feature}: {why}" for (feature, sampler), why in found.notes.items()]
    reasons = folded(f"Why {counted(len(failed), 'redraw')} failed", sentences(failed, ".notes")) if failed else None
    title = f"Data fidelity: {counted(len(found.features), 'feature')}"
    return card(title, note, table([*heads, "failed"], rows, rest=".overall"), reasons)


@html_of.register
def model_fidelity_html(found: ModelFidelity) -> str:
    """One row for each method; the single curves are folded away."""
    lines = replace(found, backend="pandas").overall.to_dict("records")
    scale = Scale.of(line["estimate"] for line in lines)
    methods: list[list[Cell]] = [
        [line[name] for name in ("method", "against", "curves", "estimate", "median")] for line in lines
    ]
    methods = [[*row, bar(scale, 0.0, line["estimate"])] for row, line in zip(methods, lines, strict=True)]
    several = found._several_outputs
    curves: list[list[Cell]] = [
        [loss.feature, loss.method, *_output(loss, several), loss.against, loss.estimate, loss.std_error]
        for loss in found.losses[:MOST_ROWS]
    ]
    heads = ["feature", "method", *(["output"] if several else []), "against", "difference", "std. error"]
    each = table(heads, curves, total=len(found.losses), rest=".table")
    note = "Mean squared difference between a curve at the rows' values and what it is compared with: less is better."
    shown = table(["method", "against", "curves", "mean", "median", ""], methods, rest=".overall")
    title = f"Model fidelity of {counted(found._n_curves, 'curve')}"
    return card(title, note, shown, folded(f"Each curve ({len(found.losses):,})", each))


def _output(loss: CurveLoss, several: bool) -> list[Cell]:
    return [str(loss.output)] if several else []


@html_of.register
def report_html(report: Report) -> str:
    """The key findings and the importance of each feature; the page has the rest."""
    summary = report.summary
    rows: list[list[Cell]] = [
        [one.feature, with_range(one.conditional), with_range(one.marginal)] for one in summary.features[:MOST_ROWS]
    ]
    shown = table(["feature", "conditional", "marginal"], rows, total=len(summary.features), rest=".summary.features")
    note = 'The whole report: .save("report.html")'
    return card(summary.title, note, sentences(summary.highlights), shown)
