"""Comparison of resampled rows with reference rows: squared MMD and the held-out AUC of a classifier.

Samplers are fitted one feature at a time where one fit cannot serve all features.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from subgrove._core.execution import Streams, one_blas_thread, parallel_map, progress_bar, stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import PointEncoding, columns_with_missing
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_like
from subgrove._fidelity.mmd import SamplePairs, subsample_two
from subgrove._regress.forest import grow_forest
from subgrove._scoring.two_sample import Points
from subgrove.exceptions import InputError, ParameterError, SubgroveError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, title
from subgrove.samplers.fit import fitted_sampler, read_sampler, sampler_name, with_columns
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.unchanged import Unchanged
from subgrove.samplers.user_defined import check_user_sampler

UNCHANGED, MARGINAL = "unchanged", "marginal"
Fit = FittedSampler | str  # a fitted sampler, or the reason why fitting failed

_MIN_TEST_ROWS = 4
_N_FOLDS = 2
_MIN_CLASSIFIER_ROWS = 10  # rows of each sample
_FOREST: dict[str, Any] = {"n_trees": 30, "min_node_size": 20}


def name_samplers(samplers: Any) -> dict[str, Any]:
    """Return a dict from name to sampler, from the upper bound "unchanged" to the lower bound "marginal"."""
    single = isinstance(samplers, str) or not isinstance(samplers, Iterable) or hasattr(samplers, "partitions")
    if single or getattr(samplers, "shape", None) == ():  # an array without axes cannot be iterated
        samplers = [samplers]
    if isinstance(samplers, Mapping):
        pairs = [(str(name), _read(sampler)) for name, sampler in samplers.items()]
    else:
        pairs = [(sampler_name(read), read) for read in map(_read, samplers)]
    named: dict[str, Any] = {UNCHANGED: Unchanged()}
    for name, sampler in pairs:
        if isinstance(sampler, Sampler) and sampler.is_bound:
            continue  # the bounds are always included
        label, number = name, 1
        while label in (*named, MARGINAL):
            number += 1
            label = f"{name} ({number})"
        named[label] = sampler
    return {**named, MARGINAL: Marginal()}


def fit_each(
    sampler: Any, rows: Any, table: Table, train: Any, features: Sequence[Feature], model: Any, seed: int
) -> dict[Feature, Fit]:
    """Return the fitted sampler for each feature, or the reason why it cannot resample that feature."""
    try:
        ignores_train = isinstance(sampler, Sampler) and sampler.prefitted and sampler.ignores_train
        training = None if ignores_train or isinstance(sampler, FittedSampler) else train
        fitted, _ = fitted_sampler(sampler, rows, table, training, features, model, seed)
    except SubgroveError as error:
        if len(features) == 1:
            return {features[0]: str(error)}
        # A feature that the sampler does not support must not exclude the other features.
        parts = [fit_each(sampler, rows, table, train, [feature], model, seed) for feature in features]
        return {feature: fit for part in parts for feature, fit in part.items()}
    return dict.fromkeys(features, fitted)


def _read(sampler: Any) -> Any:
    """Return a sampler of this package, or the user's object if it meets the sampler contract."""
    sampler = with_columns(sampler)
    if isinstance(sampler, FittedSampler | Sampler):
        return sampler
    if isinstance(sampler, str) or hasattr(sampler, "partitions"):
        return read_sampler(sampler)
    try:
        check_user_sampler(sampler)
    except ParameterError as error:
        raise ParameterError(f"samplers: {error}") from None
    return sampler


@dataclass(frozen=True, eq=False)
class FidelityComparison:
    """The rows that are compared, and how.

    Attributes
    ----------
    encoding : PointEncoding
        How rows become points with distances.
    rows : frame, table or 2-d array
        The user's test rows.
    test, reference : Table
        Test rows and reference rows; without reference rows, half of the test rows serve as reference.
    with_missing : set of str
        Numeric columns with missing values in any of the tables.
    max_rows : int
        Largest number of resampled and reference rows together.
    n_repeats, seed : int
        Number of repeats, and the seed of their random streams.
    classifier : bool or object
        Whether to compute the AUC of a classifier, or the classifier to use.
    """

    encoding: PointEncoding
    rows: Any
    test: Table
    reference: Table | None
    with_missing: frozenset[str]
    max_rows: int
    n_repeats: int
    seed: int
    classifier: Any

    @classmethod
    def of(cls, train: Table, rows: Any, reference: Any, **options: Any) -> FidelityComparison:
        """Read test and reference rows with the column types of the training rows."""
        test = read_like(rows, train.columns, argument="test")
        if test.n_rows < _MIN_TEST_ROWS:
            raise InputError(f"test needs at least {_MIN_TEST_ROWS} rows to be split in halves; got {test.n_rows}.")
        other = None if reference is None else read_like(reference, train.columns, argument="reference")
        if other is not None and other.n_rows < 2:
            raise InputError(f"reference needs at least 2 rows; got {other.n_rows}.")
        tables = [train, test, *([] if other is None else [other])]
        return cls(PointEncoding.of(train), rows, test, other, columns_with_missing(tables), **options)

    def split(self, repeat: int) -> tuple[Rows, Rows]:
        """Select the test rows to resample, and the rows of the reference (or of the test rows) to compare with."""
        n, rng = self.test.n_rows, stream(self.seed, f"halves {repeat}")
        if self.reference is None:
            shuffled = rng.permutation(n)[: self.max_rows]
            half = len(shuffled) // 2
            return np.sort(shuffled[:half]), np.sort(shuffled[half:])
        reference, test = subsample_two(self.reference.n_rows, n, self.max_rows, rng)
        return np.arange(n)[test], np.arange(self.reference.n_rows)[reference]

    def compare_all(
        self, fits: Mapping[str, Mapping[Feature, Fit]], n_jobs: int | None
    ) -> tuple[Floats, Floats, dict[tuple[str, str], str]]:
        """Return arrays (features, samplers, repeats) of squared MMD and AUC, and the reasons of failures."""
        features, names = list(fits[UNCHANGED]), list(fits)
        # The first task, of unchanged rows, does not depend on the feature, so it is shared by all features.
        tasks = [(features[0], [UNCHANGED]), *((feature, names[1:]) for feature in features)]
        squared, auc = np.full((2, len(features), len(names), self.n_repeats), np.nan)
        notes: dict[tuple[str, str], str] = {}
        with progress_bar(len(tasks), "Resampling") as done:
            for at, result in enumerate(parallel_map(partial(self.compare, fits), tasks, n_jobs)):
                rows, places = (slice(None), slice(1)) if at == 0 else (at - 1, slice(1, None))
                squared[rows, places], auc[rows, places], failures = result
                notes |= {(title(tasks[at][0]), name): reason for name, reason in failures.items()}
                done(1)
        return squared, auc, notes

    def compare(
        self, fits: Mapping[str, Mapping[Feature, Fit]], task: tuple[Feature, Sequence[str]]
    ) -> tuple[Floats, Floats, dict[str, str]]:
        """Compare resampled with reference rows, for one feature and some samplers.

        Returns squared MMD and AUC, (samplers, repeats), NaN for samplers that failed, and the reasons of failures.
        """
        feature, samplers = task
        squared, auc = np.full((2, len(samplers), self.n_repeats), np.nan)
        notes = {name: fit for name in samplers if isinstance(fit := fits[name][feature], str)}
        with one_blas_thread():
            for repeat in range(self.n_repeats):
                halves = self._halves(feature, repeat)
                for place, name in enumerate(samplers):
                    fit = fits[name][feature]
                    if name in notes or isinstance(fit, str):
                        continue
                    try:
                        squared[place, repeat], auc[place, repeat] = self._compare_once(fit, feature, repeat, *halves)
                    except SubgroveError as error:
                        notes[name] = str(error)
                        squared[place] = auc[place] = np.nan
        return squared, auc, notes

    def _halves(self, feature: Feature, repeat: int) -> tuple[Any, Table, SamplePairs]:
        """Return the rows to resample, those to compare with, and pairs of both by the columns not resampled."""
        resampled, compared = self.split(repeat)
        reference = (self.test if self.reference is None else self.reference).rows(compared)
        fixed = [name for name in self.test.names if name not in feature]
        tables = (reference, self.test.rows(resampled))
        points = [Points(*self.encoding.arrays(table, fixed, self.with_missing)) for table in tables]
        return Frames(self.rows, self.test.columns).changed(resampled, {}), reference, SamplePairs.of(*points)

    def _compare_once(
        self, fitted: FittedSampler, feature: Feature, repeat: int, rows: Any, reference: Table, pairs: SamplePairs
    ) -> tuple[float, float]:
        """Return squared MMD and held-out AUC of the rows that a sampler generates."""
        resampled = self._resample(fitted, feature, repeat, rows)
        tables = (reference, read_like(resampled, self.test.columns, argument="test"))
        real, drawn = (Points(*self.encoding.arrays(table, feature, feature)) for table in tables)
        squared = pairs.squared_mmd(real, [drawn])
        if self.classifier is False:
            return squared, float("nan")
        with_missing = {*self.with_missing, *feature}
        real, drawn = (Points(*self.encoding.arrays(table, self.test.names, with_missing)) for table in tables)
        seed = int(stream(self.seed, f"classifier {repeat}").integers(2**31))
        return squared, held_out_auc(real, drawn, self.classifier, seed)

    def _resample(self, fitted: FittedSampler, feature: Feature, repeat: int, rows: Any) -> Any:
        """Return the rows in their own container, with the feature resampled."""
        frames, name = Frames(rows, fitted.columns, fitted.train), title(feature)
        if fitted.user_defined:
            fitted, streams, at = fitted.with_rows(rows), Streams(self.seed, f"{name} {repeat}", 1), 0
        else:  # the draw with the number of this repeat: some samplers use another tree in each draw
            streams, at = Streams(self.seed, name, self.n_repeats), repeat
        draws = fitted.resample(fitted.read(rows), feature, streams, exact=False).draws()
        return frames.changed(slice(0, frames.n_rows), next(islice(draws, at, None)))


def check_classifier(classifier: Any) -> None:
    """Raise unless `classifier` is a bool or a classifier."""
    has = all(callable(getattr(classifier, name, None)) for name in ("fit", "predict_proba"))
    if isinstance(classifier, type) or not (isinstance(classifier, bool) or has):
        raise ParameterError(
            f"classifier must be True, False, or an object with fit and predict_proba; got {classifier!r}."
        )


def held_out_auc(real: Points, resampled: Points, classifier: Any, seed: int) -> float:
    """Return the held-out AUC of a classifier that separates resampled from real rows.

    It is the mean over two folds, each with half of both samples: a classifier is trained on one fold and evaluated on
    the other. Its expectation is 0.5 if both samples have the same distribution; single values may be lower.

    NaN if a sample has fewer than 10 rows.
    """
    if min(len(real), len(resampled)) < _MIN_CLASSIFIER_ROWS:
        return float("nan")
    from scipy.stats import rankdata
    from sklearn.base import clone
    from threadpoolctl import threadpool_limits

    X = np.vstack([real.matrix, resampled.matrix])
    X = X[:, np.ptp(X, axis=0) > 0]  # a forest tries random columns, which should not depend on indicators of none
    y = np.repeat([0, 1], [len(real), len(resampled)])
    areas = []
    # One thread, so that floating-point sums do not depend on the number of cores.
    with nullcontext() if classifier is True else threadpool_limits(1, user_api="openmp"):
        for train, test in _folds(len(real), len(resampled), np.random.default_rng(seed)):
            if classifier is True:
                forest = grow_forest(X[train], y[train, None] * 1.0, seed=seed, n_jobs=1, **_FOREST)
                scores = forest.predict(X[test])[:, 0]
            else:
                scores = clone(classifier, safe=False).fit(X[train], y[train]).predict_proba(X[test])[:, 1]
            ranks, n_real = rankdata(scores)[y[test] == 1], (y[test] == 0).sum()
            areas.append((ranks.mean() - (len(ranks) + 1) / 2) / n_real)
    return float(np.mean(areas))


def _folds(n: int, m: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Return training and test rows of each fold, stratified by sample."""
    fold = np.concatenate([rng.permutation(np.arange(size) % _N_FOLDS) for size in (n, m)])
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(_N_FOLDS)]
