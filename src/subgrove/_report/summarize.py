"""From a model and its rows to a summary: call the verbs one after the other, and put the results into words.

Requirements: the time is bounded (rows, trees and repeats are fewer where there is much to do, and the methods section
says so); warnings of subgrove become part of the report; the same seed gives the same summary for any number of jobs;
all rows that the model predicts are counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from subgrove._core.parallel import progress_bar
from subgrove._importance import importance
from subgrove._report.data import data_summary
from subgrove._report.dependence import dependence_sentences, dependence_summaries, grow_forests
from subgrove._report.features import ReportResults, feature_summaries, fidelity_of
from subgrove._report.gaps import feature_gaps
from subgrove._report.inputs import ReportInputs, ReportLabels
from subgrove._report.key_findings import cautions, highlights
from subgrove._report.methods import loss_unit, method_summary, model_description
from subgrove._report.numbers import tidy
from subgrove._report.performance import performance
from subgrove._report.summary import ModelSummary, Summary
from subgrove.exceptions import SubgroveWarning


def summarize(inputs: ReportInputs, labels: ReportLabels, *, progress: bool | None) -> Summary:
    """Return the summary of a report."""
    data = data_summary(inputs, labels.columns)
    messages: list[str] = []
    n = len(inputs.features)
    with progress_bar(progress, 7 * n, "Explaining the model") as advance, _collected(messages):
        quality = performance(inputs)
        common: dict[str, Any] = {
            "features": list(inputs.features),
            "loss": inputs.loss,
            "n_repeats": inputs.n_repeats,
            "random_state": inputs.seed,
            "n_jobs": inputs.n_jobs,
            "progress": False,
        }
        X, y = inputs.used.X, inputs.used.y
        conditional = importance(inputs.model, X, y, sampler=inputs.sampler, train=inputs.fitted_on, **common)
        advance(2 * n)
        marginal = importance(inputs.model, X, y, sampler="marginal", **common)
        advance(n)
        by_marginal = sorted(marginal.scores, key=lambda score: -float(score.overall[0].mean()))
        forests = grow_forests(inputs, [score.title for score in by_marginal])
        advance(n)
        gaps = feature_gaps(conditional, marginal, len(inputs.test.table.names) - 1)
        advance(2 * n)
        results = ReportResults(conditional, marginal, gaps, quality.spread)
        features, n_curve_rows = feature_summaries(inputs, results, advance)
    rows = {
        "performance": quality.rows_predicted,
        "conditional importance": int(conditional.settings["n_rows_predicted"]),
        "marginal importance": int(marginal.settings["n_rows_predicted"]),
        "gaps": gaps.rows_predicted,
        "curves": n_curve_rows,
    }
    model = ModelSummary(
        description=labels.description if labels.description is not None else model_description(inputs.model),
        task=inputs.task,
        target=inputs.target,
        classes=tuple(str(label) for label in inputs.classes),
        origin=labels.origin or "",
        scores=quality.scores,
        verdict=quality.verdict,
        sentences=quality.sentences,
    )
    shuffled = {score.title: fidelity_of(score, "shuffled") for score in marginal.scores}
    dependence = dependence_summaries(forests, inputs.features, shuffled)
    return Summary(
        title=labels.title if labels.title is not None else f"What the model of {inputs.target} uses",
        created=labels.created,
        level=conditional.level,
        loss=inputs.loss.name,
        loss_unit=loss_unit(inputs),
        baseline=results.baseline,
        model=model,
        data=data,
        highlights=highlights(model, data, features, results.baseline, inputs.loss.name.replace("_", " ")),
        dependence=dependence,
        dependence_sentences=dependence_sentences(dependence),
        features=tuple(features),
        methods=method_summary(inputs, conditional.level, forests, rows, len(gaps.by_feature)),
        cautions=cautions(model, features, dependence, conditional.level),
        warnings=tuple(dict.fromkeys(messages)),
    )


@contextmanager
def _collected(messages: list[str]) -> Iterator[None]:
    """Collect warnings of subgrove in `messages`; pass others on, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    others = {}
    for one in caught:
        if issubclass(one.category, SubgroveWarning):
            messages.append(tidy(str(one.message)))
        else:
            others[one.category, str(one.message)] = one
    for one in others.values():
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
