"""How close redrawn rows stay to the data: the paper's data fidelity, for any samplers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.parallel import effective_jobs, parallel_map, progress_bar
from subgrove._core.random import read_seed
from subgrove._core.validate import whole_number
from subgrove._data.features import parse_features
from subgrove._data.fingerprint import fingerprint
from subgrove._data.result_tables import backend_of
from subgrove._data.table import Table, read_table
from subgrove._fidelity.classifier import check_classifier
from subgrove._fidelity.compare import ComparisonData, FidelityComparison, compare, comparison_tasks
from subgrove._fidelity.fit_samplers import fit_each, name_samplers
from subgrove._fidelity.mmd import MAX_ROWS
from subgrove._fidelity.result import MARGINAL, UNCHANGED, Fidelity
from subgrove.exceptions import SameRowsWarning, SamplerError
from subgrove.samplers.base import title

_SAMPLERS = ("subgroups", "knockoffs", "imputation", "intervals")


def fidelity(
    train: Any,
    test: Any,
    *,
    samplers: Any = _SAMPLERS,
    features: Any = None,
    reference: Any = None,
    n_repeats: int = 5,
    model: Any = None,
    classifier: Any = True,
    max_rows: int = MAX_ROWS,
    random_state: int | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Fidelity:
    """How close rows stay to the data when a feature is redrawn: -log of the squared MMD from rows left alone.

    The test rows are halved at random. In one half the feature is redrawn, by a sampler that was fitted on the training
    rows; the other half, the reference, stays. If the sampler is good, the two halves are of the same distribution. So
    it can be known whether a sampler keeps to the data before any model is explained with it.

    Parameters
    ----------
    train : frame, table or 2-d array
        Rows that samplers are fitted on, and that columns are scaled by.
    test : frame, table or 2-d array
        Rows that are redrawn and compared with, with the columns of `train`.
    samplers : list, or mapping from name to sampler
        What is compared: whatever `sampler=` takes elsewhere, that is names, objects of `subgrove.samplers` or of your
        own, or what `find_subgroups` returned. "unchanged" and "marginal" are always there too, as bounds.
    features : str or list, optional
        The features to redraw, one after the other; every column by default. A list of names among them is a group that
        is redrawn together.
    reference : frame, table or 2-d array, optional
        Rows to compare with, in place of half of the test rows. All test rows are redrawn then.
    n_repeats : int, default 5
        How often rows are halved and redrawn.
    model : object, optional
        For samplers that look into a model, such as "forest_nodes".
    classifier : bool or classifier of scikit-learn, default True
        Whether a classifier learns, too, to tell redrawn rows from the reference (column `auc`), and which: boosted
        trees if True. It takes most of the time where there are few rows.
    max_rows : int, default 10,000
        Most rows of both halves together. Of more rows, another part is drawn at random in each repeat.
    random_state : int, RandomState instance or Generator, optional
        Makes the numbers the same each time, whatever the number of jobs and the order of features.
    n_jobs : int, optional
        Processes that features are shared among; None follows `joblib.parallel_config`. Each needs up to 512 MiB.
    progress : bool, optional
        Whether to show a progress bar; None shows it in a terminal.

    Returns
    -------
    Fidelity
        `table` has a row for each feature and sampler, `overall` one for each sampler, `repeats` one for each repeat.

    Notes
    -----
    Columns are made comparable by the training rows: numbers are scaled to mean 0 and standard deviation 1, two
    different labels have distance 1, a missing value is a label of its own (of numbers: they lie at the mean, and
    distance 1 from others in a further column). MMD is that of `squared_mmd`, with the median heuristic.

    A sampler that cannot redraw a feature has NaN there, and `note` says why. Only if none can redraw any is it an
    error.

    Both MMD and the classifier look at all columns. A feature that depends on one of a hundred columns changes the
    distribution but little, whatever is done to it; compare samplers feature by feature, by `position`.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> asked = {"features": ["temp", "season"], "classifier": False, "random_state": 1}
    >>> found = sg.fidelity(train.X, test.X, samplers=["subgroups", "knockoffs"], **asked)
    >>> print(found.table[["feature", "sampler", "estimate", "position"]].round(2).to_string(index=False))
    feature   sampler  estimate  position
       temp unchanged      5.18      1.00
       temp subgroups      5.11      0.70
       temp knockoffs      5.02      0.29
       temp  marginal      4.95      0.00
     season unchanged      5.18      1.00
     season subgroups      5.15      0.76
     season knockoffs       NaN       NaN
     season  marginal      5.06      0.00
    >>> found.notes["season", "knockoffs"].split(".")[0]
    "sampler 'knockoffs' takes numeric columns, but 'season' is nominal"
    """
    given, rows, other = (_table_of(each) for each in (train, test, reference))
    repeats, most = whole_number("n_repeats", n_repeats, least=1), whole_number("max_rows", max_rows, least=4)
    check_classifier(classifier)
    effective_jobs(n_jobs)  # refuses what is no number of jobs
    start, named = read_seed(random_state), name_samplers(samplers)
    learned, table = read_table(given, argument="train", lenient=True), read_table(rows, argument="test", lenient=True)
    chosen = parse_features(features, table.names)
    data = ComparisonData.of(learned, rows, other, most)
    _warn_of_same_rows(learned, table)
    fits = {name: fit_each(sampler, rows, table, given, chosen, model, start) for name, sampler in named.items()}
    question = FidelityComparison(data, fits, repeats, start, classifier)
    squared, auc, notes = _answers(question, n_jobs, progress)
    _reject_nothing(squared, tuple(fits), notes)
    n, n_reference = data.sizes
    return Fidelity(
        features=tuple(title(feature) for feature in chosen),
        samplers=tuple(fits),
        squared_mmd=squared,
        auc=None if classifier is False else auc,
        notes=notes,
        n=n,
        n_reference=n_reference,
        settings={
            "n_repeats": repeats,
            "random_state": start,
            "max_rows": most,
            "n_train": learned.n_rows,
            "n_test": table.n_rows,
        },
        backend=backend_of(rows),
    )


def _table_of(given: Any) -> Any:
    """The table of a data set that has a target beside it."""
    return given.X if hasattr(given, "X") and not hasattr(given, "columns") else given


def _answers(
    question: FidelityComparison, n_jobs: int | None, progress: bool | None
) -> tuple[Floats, Floats, dict[tuple[str, str], str]]:
    """Arrays (features, samplers, repeats) of squared MMD and AUC, and why some have no numbers."""
    tasks, names = comparison_tasks(question.fits), list(question.fits)
    squared, auc = np.full((2, len(tasks) - 1, len(names), question.n_repeats), np.nan)
    notes: dict[tuple[str, str], str] = {}
    with progress_bar(progress, len(tasks), "Redrawing") as done:
        for at, answer in enumerate(parallel_map(partial(compare, question), tasks, n_jobs)):
            rows = slice(None) if at == 0 else at - 1  # the first is the same for all features
            places = [names.index(name) for name in tasks[at].samplers]
            squared[rows, places], auc[rows, places] = answer.squared_mmd, answer.auc
            notes |= {(title(tasks[at].feature), name): why for name, why in answer.notes.items()}
            done(1)
    return squared, auc, notes


def _warn_of_same_rows(train: Table, test: Table) -> None:
    if fingerprint(train) == fingerprint(test):
        warnings.warn(
            "train and test are the same rows, so samplers are judged on what they have learned from. Pass other rows "
            "as test.",
            SameRowsWarning,
            stacklevel=3,
        )


def _reject_nothing(squared: Floats, samplers: tuple[str, ...], notes: Mapping[tuple[str, str], str]) -> None:
    """Raise if there is a sampler besides the bounds, and none could redraw anything."""
    asked = [place for place, name in enumerate(samplers) if name not in (UNCHANGED, MARGINAL)]
    if asked and np.isnan(squared[:, asked]).all():
        (feature, sampler), why = next(iter(notes.items()))
        raise SamplerError(
            f"None of the samplers could redraw any of the features. Of {feature!r}, {sampler!r} says: {why}"
        )
