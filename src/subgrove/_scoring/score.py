"""The loop over features: resample, predict, accumulate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from subgrove._core.execution import effective_jobs, one_blas_thread, parallel_map, progress_bar
from subgrove._core.kinds import Floats
from subgrove._data.table import Table
from subgrove._models.predictor import Predictions
from subgrove._scoring.accumulate import LossAccumulator
from subgrove._scoring.arrays import NumpyArrays, to_float32
from subgrove._scoring.context import PredictionJob, ScoringContext
from subgrove._scoring.feature_result import FeatureResult, finite_population_correction
from subgrove._scoring.predict import predict, prediction_jobs
from subgrove._scoring.prediction_shifts import PredictionShifts
from subgrove.samplers.base import Feature
from subgrove.samplers.resampled_feature import ResampledFeature


def score_features(
    context: ScoringContext, features: Sequence[Feature], n_jobs: int | None = 1, progress: bool | None = False
) -> list[FeatureResult]:
    """Return the results of features, computed in several processes."""
    total = context.frames.n_rows * context.n_repeats * len(features)
    workers = min(effective_jobs(n_jobs), len(features))
    with progress_bar(progress, total, "Predicting") as done:
        if workers == 1:
            return _score(context, features, done)
        shares = [features[at::workers] for at in range(workers)]
        results: dict[Feature, FeatureResult] = {}
        for share, (own, n_rows, n_calls) in zip(shares, parallel_map(_Worker(context), shares, n_jobs), strict=True):
            results |= dict(zip(share, own, strict=True))
            context.predictor.n_rows += n_rows
            context.predictor.n_calls += n_calls
            done(n_rows)
        return [results[feature] for feature in features]


class _Worker:
    """The share of the features of one process."""

    def __init__(self, context: ScoringContext) -> None:
        self.context = context

    def __call__(self, features: Sequence[Feature]) -> tuple[list[FeatureResult], int, int]:
        context = replace(self.context, predictor=self.context.predictor.fresh())
        results = _score(context, features, lambda done: None)
        return results, context.predictor.n_rows, context.predictor.n_calls


def _score(
    context: ScoringContext, features: Sequence[Feature], progress: Callable[[int], None]
) -> list[FeatureResult]:
    """Return the results of features; with adaptive repeats in several rounds, for those that need more repeats."""
    finished: dict[Feature, FeatureScorer] = {}
    unfinished: dict[Feature, FeatureScorer] = {}
    n_repeats, left = context.n_repeats, list(features)
    while left:
        for scorer in _one_round(context, left, n_repeats, unfinished, progress):
            if context.adaptive is not None and context.adaptive.needs_more(scorer.provisional(), context.weights):
                unfinished[scorer.feature] = scorer
            else:
                scorer.finish()
                finished[scorer.feature] = scorer
        left = [feature for feature in left if feature not in finished]
        if context.adaptive is not None:
            n_repeats = context.adaptive.more_than(n_repeats)
    results = {feature: scorer.result for feature, scorer in finished.items()}
    checker = context.fidelity_checker
    if checker is not None:
        with one_blas_thread():
            checks = {feature: checker.check(feature, finished[feature].first_draw) for feature in features}
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

    for job, predictions in predict(context, resampled_features(), n_repeats, progress):
        waiting[job.feature].add(job, predictions)
        for feature in [feature for feature, scorer in waiting.items() if scorer.is_complete]:
            yield waiting.pop(feature)
    yield from waiting.values()


@dataclass(eq=False)
class FeatureScorer:
    """Turns predictions of one feature into loss increases and accumulates them, for a table in memory."""

    context: ScoringContext
    feature: Feature
    accumulator: LossAccumulator
    shifts: PredictionShifts | None
    n_done: int = 0  # repeats of earlier rounds
    score_increases: list[Floats] = field(default_factory=list)  # of losses that are scores of all rows together
    first_draw: Table | str | None = None
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
            more = earlier.accumulator.extended(resampled, n_repeats)
            if more is not None:
                done = earlier.accumulator.n_repeats
                return replace(earlier, accumulator=more, n_done=done, n_jobs=None, n_added=0)
        arrays = NumpyArrays(context.frames.n_rows, context.weights)
        accumulator = LossAccumulator(arrays, resampled, len(context.baseline_losses), n_repeats)
        values = context.prediction_values
        return cls(context, feature, accumulator, None if values is None else PredictionShifts(values))

    def jobs(self) -> Iterator[PredictionJob]:
        """Yield what is to be predicted."""
        n_jobs = 0
        for job in prediction_jobs(self.feature, self.accumulator.resampled, self.n_done):
            n_jobs += 1
            yield job
        self.n_jobs = n_jobs

    @property
    def is_complete(self) -> bool:
        """Whether all predictions are accumulated."""
        return self.n_jobs == self.n_added

    def add(self, job: PredictionJob, predictions: Predictions) -> None:
        """Accumulate the predictions of one job."""
        self.n_added += 1
        context, rows = self.context, job.rows
        increase = context.losses.rows(predictions, slice(None) if rows is None else rows, job.about)
        increase -= context.baseline_losses if rows is None else context.baseline_losses[:, rows]
        if self.shifts is not None:
            self.shifts.add(predictions, rows, None if job.term is None else job.term.weights)
        if job.term is not None:
            self.accumulator.add_exact(job.term, increase)
            return
        assert job.repeat is not None
        if job.draw is not None and context.fidelity_checker is not None:
            self.first_draw = context.fidelity_checker.read_draw(job.draw)
        if len(context.losses.per_row) < len(context.losses.losses):
            self.score_increases.append(context.losses.whole(predictions, job.about) - context.baseline_scores)
        self.accumulator.add_repeat(job.repeat, next(iter(job.changes.values())), increase, rows)

    def provisional(self) -> FeatureResult:
        """Return the result so far."""
        return self._result(self.accumulator.copy())

    def finish(self) -> None:
        """Replace sums by the result."""
        checker = self.context.fidelity_checker
        if self.first_draw is None and checker is not None:
            self.first_draw = checker.first_draw(self.accumulator.resampled)
        self.result = self._result(self.accumulator)
        del self.accumulator

    def _result(self, accumulator: LossAccumulator) -> FeatureResult:
        losses = self.context.losses.losses
        scores = {
            at: [float(values[at]) for values in self.score_increases]
            for at, loss in enumerate(losses)
            if not loss.per_row
        }
        return accumulator.result(self.feature, scores, **self._prediction_shifts(accumulator))

    def _prediction_shifts(self, accumulator: LossAccumulator) -> dict[str, Any]:
        if self.shifts is None:
            return {}
        resampled, m = accumulator.resampled, accumulator.n_repeats
        correction = finite_population_correction(resampled.population, m)
        by_row = np.broadcast_to(correction, len(accumulator.sizes)).take(accumulator.host_code)
        exact = None if resampled.exact is None else resampled.exact.rows
        moved, variance = self.shifts.means(m, by_row, exact)
        return {"moved": to_float32(moved), "moved_variance": to_float32(variance)}
