"""Work on one chunk of large data: read it, predict it and its resamples, and return sums.

Requirements this design meets:

- a chunk is read once and held once; the model predicts batches of its rows, and only a batch is copied;
- no table is built for a resample: the resampled column is written, and restored. A table of floats is one array in row
  order, so that the model reads a row at once; in other tables the column is replaced;
- only sums are stored: nothing of the chunk outlives the call;
- draws depend on the seed, the feature and the keys of rows, so that chunks are independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import KeyedStreams, Keys
from subgrove._core.kinds import Floats
from subgrove._core.weights import RelativeWeights
from subgrove._data.from_containers import narwhals_frame
from subgrove._data.replace_columns import Frames, Rows
from subgrove._data.table import read_once
from subgrove._models.predictor import Predictions, Predictor, Target, missing_in, read_target
from subgrove._models.tree_ensemble.ensemble import NotReadable
from subgrove._scale.engines import ChunkArrays
from subgrove._scale.readers import Chunk, row_keys
from subgrove._scoring.accumulate import NumpyArrays
from subgrove._scoring.chunk_sums import BincountSums, ChunkSums, FeatureSums, RunningAccumulator
from subgrove._scoring.context import PredictionJob, ScoringContext, build_table, resample
from subgrove._scoring.row_losses import ALL, RowLosses
from subgrove._scoring.score import prediction_jobs
from subgrove._scoring.tree_expectation import all_rows_exact, expected_increases, serves
from subgrove._scoring.tree_steps import ChunkTrees, Steps
from subgrove.exceptions import InputError, SubgroveError, SubgroveWarning
from subgrove.losses import Loss
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.resampled_feature import ResampledFeature

_FIRST_BITS = 20
_LAST_BITS = np.uint64(64 - _FIRST_BITS)


def evaluated_rows(keys: Keys, left_out: Keys, weights: Floats | None) -> tuple[Rows, int]:
    """Return the rows to evaluate (not left out, weight above 0), and how many are left out."""
    evaluated = np.ones(len(keys), dtype=np.bool_)
    if len(left_out):
        # Most keys share their first bits with none of these, which takes a tenth of the time of a search.
        taken = np.zeros(1 << _FIRST_BITS, dtype=np.bool_)
        taken[left_out >> _LAST_BITS] = True
        near = np.flatnonzero(taken[keys >> _LAST_BITS])
        at = np.minimum(np.searchsorted(left_out, keys[near]), len(left_out) - 1)
        evaluated[near] = left_out[at] != keys[near]
    n_left_out = len(keys) - int(evaluated.sum())
    if weights is not None:
        evaluated &= weights > 0
    return np.flatnonzero(evaluated), n_left_out


def raw_column(table: Any, name: str) -> npt.NDArray[Any]:
    """Return the values of a column."""
    column = table.column(name) if type(table).__module__.startswith("pyarrow") else table[name]
    return np.asarray(column.to_numpy())


def rows_for_model(table: Any, names: Sequence[str], where: slice | Rows) -> Any:
    """Return some rows and columns, as the model takes them."""
    if not hasattr(table, "iloc"):
        return narwhals_frame(table, "X")[list(names)][where].to_native()
    if {table[name].dtype for name in names} != {np.dtype(np.float64)}:
        return table.iloc[where][list(names)].reset_index(drop=True)
    n = where.stop - where.start if isinstance(where, slice) else len(where)
    array = np.empty((n, len(names)))
    for place, name in enumerate(names):
        array[:, place] = table[name].to_numpy()[where]
    return type(table)(array, columns=list(names), copy=False)


@dataclass(frozen=True)
class ColumnRoles:
    """Columns of the data: those of the model, and others by their role."""

    model: tuple[str, ...]
    target: str
    weights: str | None = None
    frequencies: bool = False
    row_key: str | None = None

    @property
    def read(self) -> tuple[str, ...]:
        """All columns that are read."""
        others = (self.target, self.weights, self.row_key)
        return (*self.model, *dict.fromkeys(name for name in others if name and name not in self.model))


@dataclass(eq=False, kw_only=True)
class ChunkWork:
    """The work on a chunk; sent once to each process.

    Attributes
    ----------
    predictor : Predictor
        The model.
    columns : ColumnRoles
        Columns of the data.
    samplers : mapping
        Feature -> its sampler.
    losses : tuple of Loss
        All have a value for each row.
    classes : tuple
        Labels of the classes.
    probabilities : bool
        Whether the model predicts probabilities.
    n_repeats, seed : int
        Of resamples.
    batch_rows : int
        Maximum number of rows predicted at once.
    left_out : uint64 array
        Keys of rows that are not evaluated, ascending: the sampler was fitted on them.
    """

    predictor: Predictor
    columns: ColumnRoles
    samplers: Mapping[Feature, FittedSampler]
    losses: tuple[Loss, ...]
    classes: tuple[Any, ...]
    probabilities: bool
    n_repeats: int
    seed: int
    batch_rows: int
    left_out: Keys
    trees: ChunkTrees | None = None  # of the model, if they take the place of its predictions
    cache: dict[str, dict[str, Any]] = field(default_factory=dict)  # shared by the draws of all chunks

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": {}, "predictor": self.predictor.fresh()}

    def __call__(self, chunk: Chunk) -> ChunkArrays:
        """Return the sums of a chunk."""
        try:
            return self._sums(chunk)
        except (SubgroveError, SubgroveWarning) as error:
            text = str(error)
            if chunk.name in text:
                raise
            raise type(error)(f"{chunk.name}: {text}") from error

    def _sums(self, chunk: Chunk) -> ChunkArrays:
        table = chunk.read(self.columns.read)
        keys = row_keys(chunk, table, self.columns.row_key)
        weights = None if self.columns.weights is None else _weights(table, self.columns)
        y = raw_column(table, self.columns.target)
        rows, n_left_out = evaluated_rows(keys, self.left_out, weights)
        total = ChunkSums(len(self.samplers), len(self.losses))
        total.n_rows, total.n_left_out = len(rows), n_left_out
        predictor = self.predictor.fresh()
        for at in range(0, len(rows), self.batch_rows):
            some = rows[at : at + self.batch_rows]
            span = slice(int(some[0]), int(some[-1]) + 1)
            where: slice | Rows = span if span.stop - span.start == len(some) else some
            losses = RowLosses(self.losses, self._target(y[where], chunk.first_row + some), self.probabilities)
            own = None if weights is None else weights[where]
            X = rows_for_model(table, self.columns.model, where)
            about = partial(_about, chunk, some)
            with read_once(X):
                self._add_batch(total, BatchScorer(predictor, losses, own, X, about), keys[where])
        total.n_predicted += np.array([predictor.n_rows, predictor.n_calls])
        return total.arrays()

    def _target(self, y: npt.NDArray[Any], numbers: Rows) -> Target:
        """Return the target of a batch; errors have the numbers of rows in the whole data."""
        try:
            return read_target(y, len(y), self.classes, self.losses, probabilities=self.probabilities)
        except InputError as error:
            absent = missing_in(y)
            if not absent.any():
                raise
            raise InputError(
                f"y, {self.columns.target!r}, is missing in {int(absent.sum()):,} of the evaluated rows, the first "
                f"of them row {int(numbers[absent][0]):,}. Leave these rows out of the data."
            ) from error

    def _add_batch(self, total: ChunkSums, scorer: BatchScorer, keys: Keys) -> None:
        total.add_baseline(scorer.predict_baseline(len(keys)), scorer.weights)
        steps = None if self.trees is None else self.trees.of_batch(scorer.X)
        waiting = (
            {} if steps is None else {feature: self._resampled(scorer, feature, keys) for feature in self.samplers}
        )
        found = None if steps is None else self._by_trees(scorer, steps, {f: one for f, (one, _) in waiting.items()})
        total.n_batches += [1, found is not None]
        for number, feature in enumerate(self.samplers):
            if found is None:
                drawn = waiting.get(feature) or self._resampled(scorer, feature, keys)
                total.add(number, scorer.score(feature, *drawn, self.n_repeats))
            else:
                total.add(number, found[feature])

    def _resampled(self, scorer: BatchScorer, feature: Feature, keys: Keys) -> tuple[ResampledFeature, Frames]:
        """Return a resampled feature of a batch, and the rows that its columns are replaced in."""
        fitted, cache = self.samplers[feature], self.cache.setdefault(title(feature), {"columns": {}})
        streams = KeyedStreams(self.seed, title(feature), self.n_repeats, rows=keys, memory=cache)
        frames = Frames(scorer.X, fitted.columns, fitted.train, cache["columns"])
        return resample(fitted, fitted.read(scorer.X), feature, streams, None), frames

    def _by_trees(
        self, scorer: BatchScorer, steps: Steps, resampled: Mapping[Feature, ResampledFeature]
    ) -> dict[Feature, FeatureSums] | None:
        """Return the sums from the trees of the model; None if a new value has no place in them."""
        found: dict[Feature, FeatureSums] = {}
        try:
            for features, fitted, tree in steps:
                context = ScoringContext(
                    predictor=scorer.predictor,
                    frames=tree.frames,
                    table=fitted.read(scorer.X),
                    sampler=fitted,
                    losses=scorer.losses,
                    baseline_losses=scorer.baseline,
                    baseline_scores=np.full(len(self.losses), np.nan),
                    weights=scorer.weights,
                    n_repeats=self.n_repeats,
                    seed=self.seed,
                    batch_rows=self.batch_rows,
                )
                context.cache["tree steps"] = tree
                found |= scorer.score_by_trees(context, {feature: resampled[feature] for feature in features})
        except NotReadable:
            return None
        return found


@dataclass(eq=False)
class BatchScorer:
    """Predicts resamples of the rows of a batch, and accumulates their losses."""

    predictor: Predictor
    losses: RowLosses
    weights: Floats | None
    X: Any  # the baseline rows, in the container of the model
    about: Callable[..., str]
    baseline: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def predict_baseline(self, n_rows: int) -> Floats:
        """Return the losses of the baseline rows."""
        about = partial(self.about, "original rows")
        predictions = self.predictor.predict(self.X, n_rows, about)
        self.baseline = self.losses.rows(predictions, ALL, about)
        return self.baseline

    def score(self, feature: Feature, resampled: ResampledFeature, frames: Frames, n_repeats: int) -> FeatureSums:
        """Return the sums over all resamples of one feature."""
        accumulator = self._accumulator(resampled, n_repeats)
        tile = cache(partial(frames.tile, 1))  # samplers read the rows between draws, so a copy of them is written
        for job in prediction_jobs(feature, resampled):
            some = None if job.rows is None else partial(frames.changed, job.rows, job.changes)
            table = build_table(some or partial(tile().fill, [job.changes]), job.about)
            self._add(accumulator, job, self.predictor.predict(table, job.n_rows(frames.n_rows), self._of(job)))
        return FeatureSums.of(accumulator)

    def score_by_trees(
        self, context: ScoringContext, features: Mapping[Feature, ResampledFeature]
    ) -> dict[Feature, FeatureSums]:
        """Return the sums of features from the trees: exact expectations, or draws that are looked up."""
        tree, found = context.tree, {}
        exact = {feature: one for feature, one in features.items() if serves(context, feature, one.distribution)}
        for feature, ((_, expected),) in expected_increases(context, exact).items():
            own = self._accumulator(all_rows_exact(exact[feature], context.frames.n_rows), context.n_repeats)
            own.set_expectation(expected.increase, None, donors_in_group=True)
            found[feature] = FeatureSums.of(own)
        drawn = {
            feature: self._accumulator(one, context.n_repeats)
            for feature, one in features.items()
            if feature not in exact
        }
        for job, predictions in tree.predict_jobs(
            job for feature in drawn for job in prediction_jobs(feature, features[feature])
        ):
            self._add(drawn[job.feature], job, predictions)
        return found | {feature: FeatureSums.of(accumulator) for feature, accumulator in drawn.items()}

    def _accumulator(self, resampled: ResampledFeature, n_repeats: int) -> RunningAccumulator:
        n_losses, n = self.baseline.shape
        return RunningAccumulator(NumpyArrays(n, self.weights, BincountSums), resampled, n_losses, n_repeats)

    def _of(self, job: PredictionJob) -> Callable[[int | None], str]:
        """Return what describes a job, or one of its rows, in error messages."""

        def about(row: int | None = None) -> str:
            return str(self.about(job.about(), row if job.rows is None or row is None else int(job.rows[row])))

        return about

    def _add(self, accumulator: RunningAccumulator, job: PredictionJob, predictions: Predictions) -> None:
        """Accumulate the predictions of a job."""
        rows = ALL if job.rows is None else job.rows
        increase = self.losses.rows(predictions, rows, self._of(job))
        increase -= self.baseline[:, rows]
        if job.term is not None:
            accumulator.add_exact(job.term, increase)
        elif job.repeat is not None:
            accumulator.add_repeat(job.repeat, next(iter(job.changes.values())), increase, job.rows)


def _about(chunk: Chunk, numbers: Rows, what: str, row: int | None = None) -> str:
    at = "" if row is None else f", row {chunk.first_row + int(numbers[row]):,}"
    return f"{chunk.name}, {what}{at}"


def _weights(table: Any, columns: ColumnRoles) -> Floats:
    name = str(columns.weights)
    raw = raw_column(table, name)
    try:
        values = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"weights names {name!r}, which does not hold numbers: {error}.") from error
    if not np.isfinite(values).all() or (values < 0).any():
        at = int(np.flatnonzero(~np.isfinite(values) | (values < 0))[0])
        raise InputError(f"weights names {name!r}; weights must be finite and >= 0, and one is {values[at]}.")
    if not columns.frequencies:
        return values.view(RelativeWeights)
    if (values % 1).any():
        raise InputError(f"weights names {name!r}; FrequencyWeights must be whole numbers.")
    return values
