"""The loop over features: resample, predict in batches, accumulate.

Requirements this design meets:

- the model predicts large batches, with several repeats, and several features where tables are small;
- no table is copied for a repeat: only the resampled column is written;
- duplicate rows are predicted once, where they are many (`deduplicate.py`);
- memory is bounded: a batch has a maximum number of rows, however many rows there are;
- predictions of a feature are yielded in the same order whatever the batches are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from subgrove._core.execution import effective_jobs, one_blas_thread, parallel_map, progress_bar
from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Changes, Rows, changes_of, concatenate_changes
from subgrove._data.table import Table
from subgrove._models.predictor import Predictions
from subgrove._scoring import deduplicate
from subgrove._scoring.accumulate import LossAccumulator, NumpyArrays
from subgrove._scoring.adaptive_repeats import continued, copy_sums
from subgrove._scoring.context import BatchDescription, PredictionJob, ScoringContext, build_table, why_no_trees
from subgrove._scoring.estimate_variance import DonorSums
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.fidelity_check import MAX_DRAWS, FidelityChecker
from subgrove._scoring.row_losses import PredictionShifts
from subgrove._scoring.sampler_change import EvaluatedRows
from subgrove.exceptions import ModelError
from subgrove.samplers.base import Feature
from subgrove.samplers.resampled_feature import ResampledFeature


def score_features(
    context: ScoringContext, features: Sequence[Feature], n_jobs: int | None = 1, *, progress: bool = False
) -> list[FeatureResult]:
    """Return the results of features, computed in several processes."""
    workers = min(effective_jobs(n_jobs), len(features))
    with progress_bar(context.frames.n_rows * context.n_repeats * len(features) * progress, "Predicting") as done:
        found = _score_by_trees(context, features, effective_jobs(n_jobs), done)
        if found is not None:
            return found
        if workers == 1:
            return _score(context, features, done)
        shares = [features[at::workers] for at in range(workers)]
        results: dict[Feature, FeatureResult] = {}
        computed = parallel_map(partial(_score_share, context), shares, n_jobs)
        for share, (own, n_rows, n_calls) in zip(shares, computed, strict=True):
            results |= dict(zip(share, own, strict=True))
            context.predictor.n_rows += n_rows
            context.predictor.n_calls += n_calls
            done(n_rows)
        return [results[feature] for feature in features]


def _score_by_trees(
    context: ScoringContext, features: Sequence[Feature], n_threads: int, progress: Callable[[int], None]
) -> list[FeatureResult] | None:
    """Return the results from the trees of the model; None, with the reason in the cache, if it has to predict."""
    if reason := why_no_trees(context.predictor.model):
        context.cache["evaluation"] = f"model predictions: {reason}"
        return None
    from subgrove._models.tree_ensemble.ensemble import NotReadable
    from subgrove._scoring.tree_steps import read_tree_steps

    try:
        known, of = context.cache.get("tree steps of"), (id(context.frames.X), id(context.frames.train), *features)
        steps = context.tree if known == of else read_tree_steps(context, features, n_threads)
        context.cache.update({"tree steps": steps, "tree steps of": of})
        context.cache["evaluation"] = "tree steps"
        return _score(context, features, progress)
    except NotReadable as error:
        context.cache.clear()
        context.cache["evaluation"] = f"model predictions: {error}"
        return None


def _score_share(context: ScoringContext, features: Sequence[Feature]) -> tuple[list[FeatureResult], int, int]:
    """Return the results of the share of one process, and its numbers of rows and calls."""
    context = replace(context, predictor=context.predictor.fresh())
    results = _score(context, features, lambda done: None)
    return results, context.predictor.n_rows, context.predictor.n_calls


def _score(
    context: ScoringContext, features: Sequence[Feature], progress: Callable[[int], None]
) -> list[FeatureResult]:
    """Return the results of features; with adaptive repeats in several rounds, for those that need more repeats."""
    finished: dict[Feature, FeatureScorer] = {}
    unfinished: dict[Feature, FeatureScorer] = {}
    exact: dict[Feature, FeatureResult] = {}
    drawn: dict[Feature, tuple[list[Table] | str, list[EvaluatedRows]]] = {}
    if context.tree is not None:
        from subgrove._scoring.tree_expectation import exact_features

        exact, drawn = exact_features(context, features)
        progress(context.frames.n_rows * context.n_repeats * len(exact))
    n_repeats, left = context.n_repeats, [feature for feature in features if feature not in exact]
    while left:
        for scorer in _one_round(context, left, n_repeats, unfinished, progress):
            if context.adaptive is not None and context.adaptive._needs_more(scorer.provisional(), context.weights):
                unfinished[scorer.feature] = scorer
            else:
                scorer.finish()
                finished[scorer.feature] = scorer
        left = [feature for feature in left if feature not in finished]
        if context.adaptive is not None:
            n_repeats = min(2 * n_repeats, context.adaptive.max_repeats)
    results = exact | {feature: scorer.result for feature, scorer in finished.items()}
    checker = context.fidelity_checker
    if checker is not None:
        drawn |= {feature: (scorer.drawn, scorer.evaluated) for feature, scorer in finished.items()}
        with one_blas_thread():
            known = {feature: results[feature].variance_of_donors(context.losses.per_row) for feature in features}
            checks = {feature: checker.check(feature, *drawn[feature], known[feature]) for feature in features}
        results = {feature: replace(results[feature], fidelity_check=checks[feature]) for feature in features}
    return [results[feature] for feature in features]


def _one_round(
    context: ScoringContext,
    features: Sequence[Feature],
    n_repeats: int,
    unfinished: dict[Feature, FeatureScorer],
    progress: Callable[[int], None],
) -> Iterator[FeatureScorer]:
    """Yield each feature once all its predictions are accumulated, so that few accumulators are held at a time."""
    waiting: dict[Feature, FeatureScorer] = {}

    def resampled_features() -> Iterator[tuple[Feature, ResampledFeature, Iterator[PredictionJob]]]:
        for feature in features:
            scorer = FeatureScorer.start(context, feature, n_repeats, unfinished.pop(feature, None))
            waiting[feature] = scorer
            yield feature, scorer.accumulator.resampled, scorer.jobs()

    current: Feature | None = None
    for job, predictions in predict(context, resampled_features(), n_repeats, progress):
        if job.feature != current:
            current = job.feature
            for feature in [feature for feature, scorer in waiting.items() if scorer.n_jobs == scorer.n_added]:
                yield waiting.pop(feature)
        waiting[current].add(job, predictions)
    yield from waiting.values()


@dataclass(eq=False)
class FeatureScorer:
    """Turns predictions of one feature into loss increases and accumulates them, for a table in memory."""

    context: ScoringContext
    feature: Feature
    accumulator: LossAccumulator
    shifts: PredictionShifts | None
    donors: DonorSums | None = None
    n_done: int = 0  # repeats of earlier rounds
    score_increases: list[Floats] = field(default_factory=list)  # of losses that are scores of all rows together
    draws: list[Changes] = field(default_factory=list)  # the first ones, in the rows of the fidelity check
    drawn: list[Table] | str = ""
    evaluated: list[EvaluatedRows] = field(default_factory=list)  # in the rows of the fidelity check
    checker: FidelityChecker | None = None  # if it takes increases
    n_jobs: int | None = None  # known once all jobs were made
    n_added: int = 0
    result: Any = None

    @classmethod
    def start(
        cls, context: ScoringContext, feature: Feature, n_repeats: int, earlier: FeatureScorer | None
    ) -> FeatureScorer:
        """Return the scorer of a feature; `earlier` has fewer repeats."""
        resampled = context.resample(feature, n_repeats)
        if earlier is not None:
            more = continued(earlier.accumulator, resampled, n_repeats)
            if more is not None:
                done = earlier.accumulator.n_repeats
                if earlier.donors is not None:
                    earlier.donors.go_on(resampled, done)
                return replace(earlier, accumulator=more, n_done=done, n_jobs=None, n_added=0)
        arrays = NumpyArrays(context.frames.n_rows, context.weights)
        sizes = (len(context.baseline_losses), n_repeats)
        accumulator = LossAccumulator(arrays, resampled, *sizes, context.table.clusters)
        values = context.prediction_values
        shifts = None if values is None else PredictionShifts(values)
        donors = None
        if resampled.donor_pool is not None and (resampled.sampled is None or resampled.sampled.any()):
            donors = DonorSums(resampled, len(context.baseline_losses), context.weights)
        checker = context.fidelity_checker
        if checker is not None and not (context.losses.per_row and checker.takes_increases(feature)):
            checker = None
        return cls(context, feature, accumulator, shifts, donors, checker=checker)

    def jobs(self) -> Iterator[PredictionJob]:
        """Yield what is to be predicted."""
        n_jobs = 0
        for job in prediction_jobs(self.feature, self.accumulator.resampled, self.n_done):
            n_jobs += 1
            yield job
        self.n_jobs = n_jobs

    def add(self, job: PredictionJob, predictions: Predictions) -> None:
        """Accumulate the predictions of one job."""
        self.n_added += 1
        context, rows = self.context, job.rows
        increase = context.increases(predictions, rows, job.about)
        if self.shifts is not None:
            self.shifts.add(predictions, rows, None if job.term is None else job.term.weights)
        if self.checker is not None and (job.term is not None or job.draw is not None):
            first = increase[context.losses.per_row[0]]
            self.evaluated.append(EvaluatedRows.of(self.checker.rows, job.rows, job.changes, first))
        if job.term is not None:
            self.accumulator.add_exact(job.term, increase)
            return
        assert job.repeat is not None
        if job.draw is not None and context.fidelity_checker is not None:
            self.draws.append(changes_of(job.draw, context.fidelity_checker.rows))
        if len(context.losses.per_row) < len(context.losses.losses):
            self.score_increases.append(context.losses.whole(predictions, job.about) - context.baseline_scores)
        if self.donors is not None:
            self.donors.add(increase, rows)
        self.accumulator.add_repeat(job.repeat, next(iter(job.changes.values())), increase, rows)

    def provisional(self) -> FeatureResult:
        """Return the result so far."""
        return self._result(copy_sums(self.accumulator))

    def finish(self) -> None:
        """Replace sums by the result."""
        checker = self.context.fidelity_checker
        if checker is not None:
            self.drawn = checker.read(self.draws, lambda: self.accumulator.resampled)
        self.result = self._result(self.accumulator).compact()
        del self.accumulator, self.shifts, self.donors  # sums by row

    def _result(self, accumulator: LossAccumulator) -> FeatureResult:
        scores = {
            at: [float(values[at]) for values in self.score_increases]
            for at, loss in enumerate(self.context.losses.losses)
            if not loss.per_row
        }
        result = accumulator.result(self.feature, scores, self.shifts)
        if self.donors is None:
            return result
        overall, by_subgroup = self.donors.variances()
        return replace(result, donor_variance=overall, donor_subgroup_variance=by_subgroup)


Predicted = Iterator[tuple[PredictionJob, Predictions]]


def prediction_jobs(feature: Feature, resampled: ResampledFeature, done: int = 0) -> Iterator[PredictionJob]:
    """Yield what is to be predicted for a feature after `done` repeats."""
    if resampled.exact is not None and not done:
        for term in resampled.exact.terms():
            if len(term.rows):
                yield PredictionJob(feature, term.changes, term.rows, term=term)
    sampled = resampled.sampled
    if sampled is not None and not sampled.any():
        return
    rows = None if sampled is None else np.flatnonzero(sampled)
    for repeat, changes in enumerate(resampled.draws()):
        if repeat >= done:
            own = changes if rows is None else changes_of(changes, rows)
            yield PredictionJob(feature, own, rows, repeat, draw=changes if repeat < MAX_DRAWS else None)


def predict(
    context: ScoringContext,
    features: Iterable[tuple[Feature, ResampledFeature, Iterator[PredictionJob]]],
    n_repeats: int,
    progress: Callable[[int], None],
) -> Predicted:
    """Yield the predictions of all jobs of some features, with batches that may hold several features."""
    if context.tree is not None:
        every = [job for _, _, jobs in features for job in jobs]
        for job, predictions in context.tree.predict_jobs(every):
            progress(len(predictions))
            yield job, predictions
        return
    batches = BatchPredictor(context, progress)
    for feature, resampled, jobs in features:
        first = next(jobs, None)
        if first is None:
            continue
        many = context.frames.n_rows * n_repeats >= deduplicate.MIN_ROWS
        lookup = deduplicate.lookup_for(context, feature, resampled, first, n_repeats, progress) if many else None
        if lookup is None:
            for job in chain([first], jobs):
                yield from batches.add(job)
            continue
        for job in chain([first], jobs):
            if lookup.takes(job):
                yield from lookup.add(job)
            else:
                yield from lookup.finish()  # so that sums have the same order whatever the batches are
                yield from batches.add(job)
                yield from batches.finish()
        yield from lookup.finish()
    yield from batches.finish()


@dataclass(eq=False)
class BatchPredictor:
    """Collects jobs until a batch is full, then predicts."""

    context: ScoringContext
    progress: Callable[[int], None]
    whole: list[PredictionJob] = field(default_factory=list)  # jobs of all rows
    subsets: list[PredictionJob] = field(default_factory=list)  # jobs of some rows
    large: list[PredictionJob] = field(default_factory=list)  # jobs of all rows, if these are more than a batch
    n_waiting: int = 0
    tile: Any = None

    def __post_init__(self) -> None:
        self.times = max(1, self.context.batch_rows // self.context.frames.n_rows)

    def add(self, job: PredictionJob) -> Iterable[tuple[PredictionJob, Predictions]]:
        """Take a job; return predictions once there is enough for a batch."""
        if job.rows is None and self.context.frames.n_rows <= self.context.batch_rows:
            self.whole.append(job)
            return self._predict_whole() if len(self.whole) == self.times else ()
        return self._add_other(job)

    def _add_other(self, job: PredictionJob) -> Predicted:
        """Take a job of some rows, or of more rows than a batch."""
        batch_rows, n = self.context.batch_rows, job.n_rows(self.context.frames.n_rows)
        if n > batch_rows:
            alone = job.rows is not None or len(self.large) in (0, 8)  # that wait at most
            if alone or self.large[0].changes.keys() != job.changes.keys():
                yield from self.finish()  # jobs that wait come first, so that sums have the same order
            self.large.append(job)
        if job.rows is not None:
            yield from self._predict_large()
        if n <= batch_rows:
            first = self.subsets[0] if self.subsets else job
            if first is not job and (self.n_waiting + n > batch_rows or first.changes.keys() != job.changes.keys()):
                yield from self._predict_subsets()
            self.subsets, self.n_waiting = [*self.subsets, job], self.n_waiting + n

    def finish(self) -> Predicted:
        """Yield the predictions of all jobs that wait."""
        if self.whole:
            yield from self._predict_whole()
        if self.subsets:
            yield from self._predict_subsets()
        yield from self._predict_large()

    def _predict_whole(self) -> Predicted:
        """Predict all rows once for each job."""
        jobs, self.whole = self.whole, []
        self.tile = self.tile or self.context.frames.tile(len(jobs))
        return self._predict(self._built(jobs, lambda: self.tile.fill([job.changes for job in jobs])), jobs)

    def _predict_subsets(self) -> Predicted:
        """Predict some rows for each of several jobs of the same feature."""
        jobs, self.subsets, self.n_waiting = self.subsets, [], 0
        rows = np.concatenate([job.rows for job in jobs if job.rows is not None])
        changes = concatenate_changes([job.changes for job in jobs])
        return self._predict(self._built(jobs, lambda: self.context.frames.changed(rows, changes)), jobs)

    def _predict_large(self) -> Predicted:
        """Predict jobs larger than a batch, all of them batch by batch: they share the memory of a batch."""
        jobs, self.large = self.large, []
        found: list[list[Predictions]] = [[] for _ in jobs]
        rows, n_rows = (jobs[0].rows, jobs[0].n_rows(self.context.frames.n_rows)) if jobs else (None, 0)
        for start in range(0, n_rows, self.context.batch_rows):
            batch = slice(start, min(start + self.context.batch_rows, n_rows))
            changes = [changes_of(job.changes, batch) for job in jobs]
            tables = self.context.frames.changed_each(batch if rows is None else rows[batch], changes)
            for job, own in zip(jobs, found, strict=True):
                about, build = (batch.stop - start, job.about), partial(next, tables)
                predictions = self.context.predictor.predict(self._built([job], build), *about)
                own.append(predictions.copy())  # they may be a column of the table
                self.progress(len(predictions))
        yield from zip(jobs, map(np.concatenate, found), strict=True)

    def _built(self, jobs: list[PredictionJob], build: Callable[[], Any]) -> Any:
        return build_table(build, BatchDescription(jobs, self.context.frames.n_rows))

    def _predict(self, table: Any, jobs: list[PredictionJob]) -> Predicted:
        about = BatchDescription(jobs, self.context.frames.n_rows)
        try:
            predictions = self.context.predictor.predict(table, about.n_rows, about)
        except ModelError:
            self._predict_one_by_one(jobs)
            raise
        self.progress(about.n_rows)
        return about.split(predictions)

    def _predict_one_by_one(self, jobs: list[PredictionJob]) -> None:
        """Predict each job of a failed batch alone, so that the error names the feature and the repeat."""
        for job in jobs if len(jobs) > 1 else ():
            rows: slice | Rows = slice(None) if job.rows is None else job.rows
            table = self.context.frames.changed(rows, job.changes)
            self.context.predictor.predict(table, job.n_rows(self.context.frames.n_rows), job.about)
