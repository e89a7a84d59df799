"""Predictions of resampled rows in batches: a generator of (job, predictions).

Requirements this design meets:

- the model predicts large batches, with several repeats, and several features where tables are small;
- no table is copied for a repeat: only the resampled column is written;
- duplicate rows are predicted once, where they are many (`deduplicate.py`);
- memory is bounded: a batch has a maximum number of rows, however many rows there are;
- predictions of a feature are yielded in the same order whatever the batches are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from subgrove._data.replace_columns import Donors, Rows, changes_of
from subgrove._models.predictor import Predictions
from subgrove._scoring.context import BatchDescription, PredictionJob, ScoringContext
from subgrove._scoring.deduplicate import lookup_for
from subgrove.exceptions import ModelError, SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import Feature
from subgrove.samplers.resampled_feature import ResampledFeature

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
            yield PredictionJob(feature, own, rows, repeat, draw=changes if repeat == 0 else None)


def predict(
    context: ScoringContext,
    features: Iterable[tuple[Feature, ResampledFeature, Iterator[PredictionJob]]],
    n_repeats: int,
    progress: Callable[[int], None],
) -> Predicted:
    """Yield the predictions of all jobs of some features, with batches that may hold several features."""
    batches = BatchPredictor(context, progress)
    for feature, resampled, jobs in features:
        first = next(jobs, None)
        if first is None:
            continue
        lookup = lookup_for(context, feature, resampled, first, n_repeats, progress)
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
    n_waiting: int = 0
    tile: Any = None

    def __post_init__(self) -> None:
        self.times = max(1, self.context.batch_rows // self.context.frames.n_rows)

    def add(self, job: PredictionJob) -> Predicted:
        """Take a job; yield predictions once there is enough for a batch."""
        batch_rows, n_rows = self.context.batch_rows, self.context.frames.n_rows
        if job.rows is None and n_rows <= batch_rows:
            self.whole.append(job)
            if len(self.whole) == self.times:
                yield from self._predict_whole()
            return
        n = n_rows if job.rows is None else len(job.rows)
        if job.rows is None or n > batch_rows:
            yield from self.finish()  # jobs that wait come first, so that sums have the same order
            yield job, self._predict_large(job, n)
            return
        if self.subsets and (self.n_waiting + n > batch_rows or self.subsets[0].changes.keys() != job.changes.keys()):
            yield from self._predict_subsets()
        self.subsets.append(job)
        self.n_waiting += n

    def finish(self) -> Predicted:
        """Yield the predictions of all jobs that wait."""
        if self.whole:
            yield from self._predict_whole()
        if self.subsets:
            yield from self._predict_subsets()

    def _predict_whole(self) -> Predicted:
        """Predict all rows once for each job."""
        n, jobs, self.whole = self.context.frames.n_rows, self.whole, []
        if self.tile is None:
            self.tile = self.context.frames.tile(len(jobs))
        table = self._built(jobs, lambda: self.tile.fill([job.changes for job in jobs]))
        predictions = self._predict(table, jobs)
        for at, job in enumerate(jobs):
            yield job, predictions[at * n : (at + 1) * n]

    def _predict_subsets(self) -> Predicted:
        """Predict some rows for each of several jobs of the same feature."""
        jobs, self.subsets, self.n_waiting = self.subsets, [], 0
        rows = np.concatenate([job.rows for job in jobs if job.rows is not None])
        changes = {name: _concatenate([job.changes[name] for job in jobs]) for name in jobs[0].changes}
        table = self._built(jobs, lambda: self.context.frames.changed(rows, changes))
        predictions = self._predict(table, jobs)
        start = 0
        for job in jobs:
            assert job.rows is not None
            yield job, predictions[start : start + len(job.rows)]
            start += len(job.rows)

    def _predict_large(self, job: PredictionJob, n_rows: int) -> Predictions:
        """Predict a job larger than a batch."""
        batches = []
        tile = self._filled_tile(job) if job.rows is None and self.context.copies_table else None
        for start in range(0, n_rows, self.context.batch_rows):
            batch = slice(start, min(start + self.context.batch_rows, n_rows))
            if tile is not None:
                table = tile.rows(batch)
            else:
                rows = batch if job.rows is None else job.rows[batch]
                table = self._built([job], partial(self.context.frames.changed, rows, changes_of(job.changes, batch)))
            n = batch.stop - batch.start
            batches.append(self.context.predictor.predict(table, n, job.about))
            self.progress(n)
        return np.concatenate(batches)

    def _filled_tile(self, job: PredictionJob) -> Any:
        """Return the copy of the whole table with the columns of a job; batches are views of its rows."""
        if self.tile is None:
            self.tile = self.context.frames.tile(1)
        self._built([job], lambda: self.tile.fill([job.changes]))
        return self.tile

    def _built(self, jobs: list[PredictionJob], build: Callable[[], Any]) -> Any:
        """Return a table for the model; values that its columns cannot hold are an error of the sampler."""
        try:
            return build()
        except (SubgroveError, SubgroveWarning):
            raise
        except Exception as error:
            about = BatchDescription(jobs, self.context.frames.n_rows)
            raise SamplerError(
                f"The sampler gave values that the table cannot hold ({about(None)}): {error}"
            ) from error

    def _predict(self, table: Any, jobs: list[PredictionJob]) -> Predictions:
        about = BatchDescription(jobs, self.context.frames.n_rows)
        try:
            predictions = self.context.predictor.predict(table, about.n_rows, about)
        except ModelError:
            self._predict_one_by_one(jobs)
            raise
        self.progress(about.n_rows)
        return predictions

    def _predict_one_by_one(self, jobs: list[PredictionJob]) -> None:
        """Predict each job of a failed batch alone, so that the error names the feature and the repeat."""
        for job in jobs if len(jobs) > 1 else ():
            rows: slice | Rows = slice(None) if job.rows is None else job.rows
            table = self.context.frames.changed(rows, job.changes)
            self.context.predictor.predict(table, job.n_rows(self.context.frames.n_rows), job.about)


def _concatenate(columns: list[Any]) -> Any:
    first = columns[0]
    if isinstance(first, Donors):
        return Donors(np.concatenate([column.rows for column in columns]), first.train, first.representatives)
    return np.concatenate(columns)
