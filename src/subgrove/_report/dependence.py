"""Dependence between features: random forests on a sample of training rows, smaller ones for many columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.text import count_of, listed, percent
from subgrove._dependence import Dependence, dependence
from subgrove._dependence.dependence import LEAST_ROWS
from subgrove._report.inputs import ReportInputs
from subgrove._report.numbers import tidy
from subgrove._report.summary import DependenceSummary, FidelitySummary, PredictorShare
from subgrove._report.wording import dependence_sentence

DEPENDENT = 0.2
"""Explained share from which on a feature is called dependent."""
_WORK = 6e7  # predictions of trees in all: forests of many columns have fewer trees
_MOST_ROWS, _FEW_ROWS, _MANY_COLUMNS = 2_000, 600, 30
_TREES = (10, 100)  # fewest and most
_MOST_PAIRS = 20_000  # features times columns
_SHOWN = 10  # predictors of a feature
_LEAST_SHARE = 0.005


@dataclass(frozen=True, eq=False)
class ReportForests:
    """The dependence of the features (None if it could not be computed), and the size of the forests."""

    result: Dependence | None
    n_rows: int
    n_trees: int


def grow_forests(inputs: ReportInputs, first: Sequence[str]) -> ReportForests:
    """Grow the forests; of the features in `first`, in their order, as many as the budget allows."""
    columns = inputs.train.table.names
    if len(columns) < 2 or inputs.train.n < LEAST_ROWS:
        return ReportForests(None, 0, 0)
    most = _FEW_ROWS if len(columns) > _MANY_COLUMNS else _MOST_ROWS
    rows = np.arange(inputs.train.n)
    if inputs.train.n > most:
        rows = np.sort(stream(inputs.seed, "rows of forests").choice(inputs.train.n, most, replace=False))
    names = list(first)[: max(_TREES[0], _MOST_PAIRS // len(columns))]
    n_trees = int(np.clip(_WORK / (len(names) * len(columns) * len(rows)), *_TREES))
    result = dependence(
        inputs.train.some(rows).X,
        features=[name for name in columns if name in names],
        n_trees=n_trees,
        threshold=DEPENDENT,
        random_state=inputs.seed,
        n_jobs=inputs.n_jobs,
        progress=False,
    )
    return ReportForests(result, len(rows), n_trees)


def dependence_summaries(
    forests: ReportForests, features: Sequence[str], shuffled: Mapping[str, FidelitySummary | None]
) -> tuple[DependenceSummary, ...]:
    """Return how well the others predict each feature, and whether `shuffled` rows are realistic."""
    by_name = {} if forests.result is None else {one.feature: one for one in forests.result.found}
    summaries = []
    for name in features:
        one = by_name.get(name)
        explained = None if one is None or np.isnan(one.explained) else float(one.explained)
        shares = {} if one is None else {c: s for c, s in one.shares.items() if s == s and s >= _LEAST_SHARE}
        strongest = sorted(shares, key=lambda column: -shares[column])[:_SHOWN]
        predictors = tuple(PredictorShare(column, float(shares[column])) for column in strongest)
        fidelity = shuffled.get(name)
        verdict = "unknown" if fidelity is None else fidelity.verdict
        misleads = verdict == "failed" or (verdict == "unknown" and explained is not None and explained >= DEPENDENT)
        note = "it was not computed" if one is None else one.note
        sentence = dependence_sentence(name, explained, predictors, misleads, fidelity, note)
        summaries.append(DependenceSummary(name, explained, predictors, misleads, sentence))
    return tuple(summaries)


def dependence_sentences(summaries: Sequence[DependenceSummary]) -> tuple[str, ...]:
    """Return the findings of the dependence table."""
    known = [one for one in summaries if one.explained is not None]
    if not known:
        return ("Dependence between features was not computed: there are too few rows or columns.",)
    strong = sorted((one for one in known if (one.explained or 0) >= DEPENDENT), key=lambda one: -(one.explained or 0))
    sentences = []
    if not strong:
        sentences.append(f"No feature has an R2 of {percent(DEPENDENT)} or more given the others (random forest).")
    else:
        names = listed([f"{one.feature} ({percent(min(one.explained or 0, 1.0))})" for one in strong])
        verb = "is" if len(strong) == 1 else "are"
        sentences.append(
            f"{len(strong)} of {count_of(len(known), 'feature')} {verb} predicted by the others with an R2 of "
            f"{percent(DEPENDENT)} or more: {names}."
        )
    wrong = [one.feature for one in summaries if one.misleads]
    if wrong:
        sentences.append(
            f"Permutation importance of {listed(wrong)} evaluates the model on unrealistic rows; use the conditional "
            "importance there."
        )
    else:
        sentences.append("Rows with one shuffled feature are realistic here, so permutation importance is reliable.")
    return tuple(tidy(sentence) for sentence in sentences)
