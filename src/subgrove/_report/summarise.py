"""From a model and its rows to a summary: the verbs are called one after the other, and what they say is put together.

Requirements this design meets: the time is bounded (rows, trees and repeats are fewer where there is much to do, and
the methods part says so); warnings of subgrove become part of the report; the same seed gives the same summary,
whatever the number of jobs; the rows that the model was asked for are counted, all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from subgrove._core.parallel import progress_bar
from subgrove._importance import importance
from subgrove._report.columns import data_summary
from subgrove._report.dependence import dependence_sentences, dependence_summaries, foretold
from subgrove._report.features import Results, certificate_of, feature_summaries
from subgrove._report.gap_summaries import gaps_of
from subgrove._report.inputs import Asked
from subgrove._report.key_findings import cautions, highlights
from subgrove._report.methods import loss_unit, method_summary, model_description
from subgrove._report.numbers import tidy
from subgrove._report.performance import performance
from subgrove._report.summary import ModelSummary, Summary
from subgrove.exceptions import SubgroveWarning


def summarise(
    asked: Asked,
    *,
    title: str | None,
    created: str,
    description: str | None,
    origin: str | None,
    column_notes: Mapping[str, str] | None,
    progress: bool | None,
) -> Summary:
    """The summary of a report."""
    data = data_summary(asked, column_notes)
    noticed: list[str] = []
    n = len(asked.features)
    with progress_bar(progress, 7 * n, "Explaining the model") as done, _noted(noticed):
        judged = performance(asked)
        common: dict[str, Any] = {
            "features": list(asked.features),
            "loss": asked.loss,
            "n_repeats": asked.n_repeats,
            "random_state": asked.seed,
            "n_jobs": asked.n_jobs,
            "progress": False,
        }
        X, y = asked.used.X, asked.used.y
        conditional = importance(asked.model, X, y, sampler=asked.sampler, train=asked.fitted_on, **common)
        done(2 * n)
        marginal = importance(asked.model, X, y, sampler="marginal", **common)
        done(n)
        first = sorted(marginal.scores, key=lambda score: -float(score.overall[0].mean()))
        told = foretold(asked, [score.title for score in first])
        done(n)
        gaps = gaps_of(conditional, marginal, len(asked.test.table.names) - 1)
        done(2 * n)
        results = Results(conditional, marginal, gaps, judged.spread)
        features, of_curves = feature_summaries(asked, results, done)
    rows = {
        "how good the model is": judged.rows_predicted,
        "conditional importance": int(conditional.settings["n_rows_predicted"]),
        "marginal importance": int(marginal.settings["n_rows_predicted"]),
        "gaps": gaps.rows_predicted,
        "curves": of_curves,
    }
    model = ModelSummary(
        description if description is not None else model_description(asked.model),
        asked.task,
        asked.target,
        tuple(str(label) for label in asked.classes),
        origin if origin is not None else "",
        judged.scores,
        judged.verdict,
        judged.sentences,
    )
    shuffled = {score.title: certificate_of(score, "shuffled") for score in marginal.scores}
    dependence = dependence_summaries(told, asked.features, shuffled)
    return Summary(
        title if title is not None else f"What the model of {asked.target} uses",
        created,
        conditional.level,
        asked.loss.name,
        loss_unit(asked),
        results.baseline,
        model,
        data,
        highlights(model, features, results.baseline, asked.loss.name.replace("_", " ")),
        dependence,
        dependence_sentences(dependence),
        tuple(features),
        method_summary(asked, conditional.level, told, rows, len(gaps.by_feature)),
        cautions(model, features, dependence, conditional.level),
        tuple(dict.fromkeys(noticed)),
    )


@contextmanager
def _noted(noticed: list[str]) -> Iterator[None]:
    """Warnings of subgrove are noted for the report; others are passed on, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    others = {}
    for one in caught:
        if issubclass(one.category, SubgroveWarning):
            noticed.append(tidy(str(one.message)))
        else:
            others[one.category, str(one.message)] = one
    for one in others.values():
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
