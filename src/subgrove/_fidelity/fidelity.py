"""Data fidelity (as in the paper): how close resampled rows are to the data, for any sampler."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from subgrove._core.execution import RandomStateLike, effective_jobs, parallel_map, progress_bar, read_seed, stream
from subgrove._core.kinds import Floats
from subgrove._core.text import percent
from subgrove._core.validate import names_arguments, warn, whole_number
from subgrove._data.columns import parse_features
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_table, shared_rows
from subgrove._data.to_containers import backend_of
from subgrove._fidelity.compare import FidelityComparison, Fit, check_classifier, fit_each, name_samplers
from subgrove._fidelity.result import MARGINAL, UNCHANGED, Fidelity
from subgrove.exceptions import SameRowsWarning, SamplerError
from subgrove.samplers.base import Feature, title
from subgrove.samplers.fit import training_rows

_SAMPLERS = ("auto", "subgroups", "knockoffs", "imputation", "intervals")


@names_arguments()
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
    max_rows: int = 1000,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> Fidelity:
    """Measure how realistic resampled rows are: -log of the squared MMD between resampled and reference rows.

    The test rows are split at random into two halves. One half is resampled by a sampler fitted on the training rows,
    the other one is the reference. With an ideal sampler, both halves have the same distribution. No model is needed,
    so samplers can be compared before any model is explained with them.

    Parameters
    ----------
    train : frame, table, 2-d array, pair (X, y) or Dataset
        Rows to fit the samplers on, and to standardize columns by.
    test : frame, table, 2-d array, pair (X, y) or Dataset
        Rows to resample and to compare with, with the columns of `train`.
    samplers : list, or mapping from name to sampler
        Samplers to compare: names, objects of `subgrove.samplers`, your own samplers, or the result of
        `find_subgroups`; by default "auto", which `importance` uses, and the samplers of the paper. The bounds
        "unchanged" and "marginal" are always added.
    features : str or list, optional
        Features to resample, one at a time; all columns by default. A list of names within the list is a group of
        features that is resampled jointly.
    reference : frame, table or 2-d array, optional
        Reference rows, in place of half of the test rows. All test rows are then resampled.
    n_repeats : int, default 5
        Number of random splits.
    model : object, optional
        Fitted model, for samplers that use its structure, such as "forest_nodes".
    classifier : bool or scikit-learn classifier, default True
        Whether to train a classifier that separates resampled from reference rows (column `auc`), or the classifier to
        use; True uses a random forest of 30 trees.
    max_rows : int, default 1,000
        Largest number of training rows that samplers are fitted on, and of rows of both halves together; of larger
        data, random subsets are used, in each repeat another one of the test rows. More rows take longer, and flexible
        samplers learn more from them (`docs/fidelity.md` shows how much).
    random_state : int, RandomState instance or Generator, optional
        Seed of all random numbers. Results do not depend on `n_jobs` or on the order of features.
    n_jobs : int, optional
        Number of processes, as in joblib; features are computed in parallel. Each process needs up to 512 MiB.

    Returns
    -------
    Fidelity
        `table` has a row for each feature and sampler, `overall` one for each sampler, `repeats` one for each repeat.

    Notes
    -----
    Distances use columns standardized by the training rows: numbers have mean 0 and standard deviation 1, two different
    labels have distance 1, and a missing value is a label of its own (a missing number is set to the mean and flagged
    by an indicator column). The MMD has a Gaussian kernel whose width comes from the median heuristic.

    A sampler that cannot resample a feature has NaN there, and `note` states the reason. An error is raised only if no
    sampler can resample any feature.

    MMD and classifier use all columns. If a feature depends on one of a hundred columns, resampling it changes the
    joint distribution little, so compare samplers feature by feature, by `position`.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> options = {"features": ["temp", "season"], "classifier": False, "random_state": 1}
    >>> fid = sg.fidelity(train.X, test.X, samplers=["subgroups", "knockoffs"], **options)
    >>> print(fid.table[["feature", "sampler", "estimate", "position"]].round(2).to_string(index=False))
    feature   sampler  estimate  position
       temp unchanged      5.18      1.00
       temp subgroups      5.11      0.70
       temp knockoffs      5.02      0.29
       temp  marginal      4.95      0.00
     season unchanged      5.18      1.00
     season subgroups      5.15      0.76
     season knockoffs       NaN       NaN
     season  marginal      5.06      0.00
    >>> fid.notes["season", "knockoffs"].split(".")[0]
    "sampler 'knockoffs' takes numeric columns, but 'season' is nominal"
    """
    train_rows, test_rows, reference_rows = map(training_rows, (train, test, reference))
    n_repeats = whole_number("n_repeats", n_repeats, least=1)
    max_rows = whole_number("max_rows", max_rows, least=4)
    check_classifier(classifier)
    effective_jobs(n_jobs)  # raises if n_jobs is invalid
    seed, named = read_seed(random_state), name_samplers(samplers)
    train_table = read_table(train_rows, argument="train", lenient=True)
    test_table = read_table(test_rows, argument="test", lenient=True)
    parsed = parse_features(features, test_table.names)
    options = {"max_rows": max_rows, "n_repeats": n_repeats, "seed": seed, "classifier": classifier}
    comparison = FidelityComparison.of(train_table, test_rows, reference_rows, **options)
    _warn_of_same_rows(train_table, test_table)
    if train_table.n_rows > max_rows:
        some = np.sort(stream(seed, "training rows").permutation(train_table.n_rows)[:max_rows])
        train_rows = Frames(train_rows, train_table.columns).changed(some, {})
    fits = {
        name: fit_each(sampler, test_rows, test_table, train_rows, parsed, model, seed)
        for name, sampler in named.items()
    }
    squared, auc, notes = _compare_all(comparison, fits, n_jobs)
    _reject_if_all_failed(squared, tuple(fits), notes)
    n, n_reference = map(len, comparison.split(0))
    return Fidelity(
        features=tuple(title(feature) for feature in parsed),
        samplers=tuple(fits),
        squared_mmd=squared,
        auc=None if classifier is False else auc,
        notes=notes,
        n=n,
        n_reference=n_reference,
        settings={
            "n_repeats": n_repeats,
            "random_state": seed,
            "max_rows": max_rows,
            "n_train": train_table.n_rows,
            "n_test": test_table.n_rows,
        },
        backend=backend_of(test_rows),
    )


def _compare_all(
    comparison: FidelityComparison, fits: Mapping[str, Mapping[Feature, Fit]], n_jobs: int | None
) -> tuple[Floats, Floats, dict[tuple[str, str], str]]:
    """Return arrays (features, samplers, repeats) of squared MMD and AUC, and the reasons of failures."""
    features, names = list(fits[UNCHANGED]), list(fits)
    # The first task, of unchanged rows, does not depend on the feature, so it is shared by all features.
    tasks = [(features[0], [UNCHANGED]), *((feature, names[1:]) for feature in features)]
    squared, auc = np.full((2, len(features), len(names), comparison.n_repeats), np.nan)
    notes: dict[tuple[str, str], str] = {}
    with progress_bar(len(tasks), "Resampling") as done:
        for at, result in enumerate(parallel_map(partial(comparison.compare, fits), tasks, n_jobs)):
            rows, places = (slice(None), slice(1)) if at == 0 else (at - 1, slice(1, None))
            squared[rows, places], auc[rows, places], failures = result
            notes |= {(title(tasks[at][0]), name): reason for name, reason in failures.items()}
            done(1)
    return squared, auc, notes


def _warn_of_same_rows(train: Table, test: Table) -> None:
    if share := shared_rows(test, train):
        what = (
            "train and test are the same rows" if share == 1 else f"{percent(share)} of the rows of test are in train"
        )
        warn(f"{what}, so samplers are evaluated on their training data. Pass held-out rows as test.", SameRowsWarning)


def _reject_if_all_failed(squared: Floats, samplers: tuple[str, ...], notes: Mapping[tuple[str, str], str]) -> None:
    """Raise if there are samplers besides the bounds, and none could resample any feature."""
    candidates = [place for place, name in enumerate(samplers) if name not in (UNCHANGED, MARGINAL)]
    if candidates and np.isnan(squared[:, candidates]).all():
        (feature, sampler), reason = next(iter(notes.items()))
        raise SamplerError(f"No sampler could resample any feature. Error of {sampler!r} for {feature!r}: {reason}")
