"""Which features depend on which: forests on some training rows, their number bounded by the number of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from subgrove._core.random import stream
from subgrove._dependence import Dependence, dependence
from subgrove._dependence.predict_column import LEAST_ROWS
from subgrove._report.inputs import Asked
from subgrove._report.numbers import counted, listed, percent, tidy
from subgrove._report.summary import Certificate, DependenceSummary, Share
from subgrove._report.wording import dependence_sentence

DEPENDENT = 0.2
"""Share from which on a feature is called dependent."""
_WORK = 6e7  # trees asked about rows, in all: forests of many columns have fewer trees
_MOST_ROWS, _FEW_ROWS, _MANY_COLUMNS = 2_000, 600, 30
_TREES = (10, 100)  # fewest and most
_MOST_PAIRS = 20_000  # features times columns that are looked at
_SHOWN = 10  # columns that a feature is foretold by
_LEAST_SHARE = 0.005


@dataclass(frozen=True, eq=False)
class Foretold:
    """Forests of the features, with how many rows and trees they were grown."""

    found: Dependence | None
    n_rows: int
    n_trees: int


def foretold(asked: Asked, first: Sequence[str]) -> Foretold:
    """Grow the forests; of `first`, in their order, as many as may be looked at."""
    columns = asked.train.table.names
    if len(columns) < 2 or asked.train.n < LEAST_ROWS:
        return Foretold(None, 0, 0)
    most = _FEW_ROWS if len(columns) > _MANY_COLUMNS else _MOST_ROWS
    rows = np.arange(asked.train.n)
    if asked.train.n > most:
        rows = np.sort(stream(asked.seed, "rows of forests").choice(asked.train.n, most, replace=False))
    names = list(first)[: max(_TREES[0], _MOST_PAIRS // len(columns))]
    n_trees = int(np.clip(_WORK / (len(names) * len(columns) * len(rows)), *_TREES))
    found = dependence(
        asked.train.some(rows).X,
        features=[name for name in columns if name in names],
        n_trees=n_trees,
        threshold=DEPENDENT,
        random_state=asked.seed,
        n_jobs=asked.n_jobs,
        progress=False,
    )
    return Foretold(found, len(rows), n_trees)


def dependence_summaries(
    told: Foretold, features: Sequence[str], fidelity_checks: Mapping[str, Certificate | None]
) -> tuple[DependenceSummary, ...]:
    """How much of each feature the others foretell, and whether shuffling it makes rows that do not occur."""
    by_name = {} if told.found is None else {one.feature: one for one in told.found.found}
    summaries = []
    for name in features:
        one = by_name.get(name)
        explained = None if one is None or np.isnan(one.explained) else float(one.explained)
        shares = {} if one is None else {c: s for c, s in one.shares.items() if s == s and s >= _LEAST_SHARE}
        strongest = sorted(shares, key=lambda column: -shares[column])[:_SHOWN]
        by = tuple(Share(column, float(shares[column])) for column in strongest)
        certificate = fidelity_checks.get(name)
        verdict = "unknown" if certificate is None else certificate.verdict
        misleads = verdict == "failed" or (verdict == "unknown" and explained is not None and explained >= DEPENDENT)
        note = "it was not looked at" if one is None else one.note
        sentence = dependence_sentence(name, explained, by, misleads, certificate, note)
        summaries.append(DependenceSummary(name, explained, by, misleads, sentence))
    return tuple(summaries)


def dependence_sentences(summaries: Sequence[DependenceSummary]) -> tuple[str, ...]:
    """What the table of dependence comes to."""
    known = [one for one in summaries if one.explained is not None]
    if not known:
        return ("How far features depend on each other could not be looked at: too few rows or columns.",)
    strong = sorted((one for one in known if (one.explained or 0) >= DEPENDENT), key=lambda one: -(one.explained or 0))
    told = []
    if not strong:
        told.append(f"No feature is foretold by the others by {percent(DEPENDENT)} or more, as far as forests can see.")
    else:
        names = listed([f"{one.feature} ({percent(min(one.explained or 0, 1.0))})" for one in strong])
        told.append(
            f"{counted(len(strong), 'feature')} of {len(known)} {'is' if len(strong) == 1 else 'are'} foretold by the "
            f"others by {percent(DEPENDENT)} or more: {names}."
        )
    wrong = [one.feature for one in summaries if one.misleads]
    if wrong:
        told.append(
            f"Ordinary permutation importance of {listed(wrong)} asks the model about rows that the data do not have, "
            f"so read the conditional number there."
        )
    else:
        told.append("Shuffling a feature alone was not seen to make rows that the data do not have.")
    return tuple(tidy(sentence) for sentence in told)
