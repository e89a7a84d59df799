"""Work on one chunk of large data: read it, predict it and its resamples, and return sums.

Requirements this design meets:

- a chunk is read once and held once; the model predicts batches of its rows, and only a batch is copied;
- no table is built for a resample: the resampled column is written, and restored;
- only sums are stored: nothing of the chunk outlives the call;
- draws depend on the seed, the feature and the keys of rows, so that chunks are independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import KeyedStreams, Keys
from subgrove._core.kinds import Floats
from subgrove._core.moments import Moments
from subgrove._data.replace_columns import Changes, Frames, Rows, changes_of
from subgrove._models.predictor import Predictor, Target, missing_in, read_target
from subgrove._scale.engines import ChunkArrays
from subgrove._scale.readers import Chunk, row_keys
from subgrove._scoring.accumulate import RunningAccumulator
from subgrove._scoring.arrays import BincountSums, NumpyArrays
from subgrove._scoring.chunk_table import ChunkBatch, evaluated_rows, raw_column
from subgrove._scoring.context import resample
from subgrove._scoring.feature_result import FeatureResult, result_from_sums
from subgrove._scoring.row_losses import ALL, RowLosses
from subgrove.exceptions import InputError, SamplerError, SubgroveError, SubgroveWarning
from subgrove.losses import Loss
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.resampled_feature import ResampledFeature


@dataclass(frozen=True)
class ColumnRoles:
    """Columns of the data: those of the model, and others by their role."""

    model: tuple[str, ...]
    target: str
    weights: str | None = None
    row_key: str | None = None

    @property
    def read(self) -> tuple[str, ...]:
        """All columns that are read."""
        others = (self.target, self.weights, self.row_key)
        return (*self.model, *dict.fromkeys(name for name in others if name and name not in self.model))


@dataclass(eq=False)
class FeatureSums:
    """Sums of one feature over rows of a batch, a chunk or several chunks; they can be merged.

    Attributes
    ----------
    moments : Moments (L, K)
        Of the mean increases of rows, by subgroup.
    sums : float array (L, M, K)
        Of increases, by repeat and subgroup.
    spread : float array (L, K)
        Of squared deviations from the mean of each row.
    n_sampled : float array (K,)
        Number of sampled rows.
    n_exact : int
        Number of rows with an exact expectation.
    """

    moments: Moments
    sums: Floats
    spread: Floats
    n_sampled: Floats
    n_exact: int = 0

    @classmethod
    def of(cls, accumulator: RunningAccumulator) -> FeatureSums:
        """Return the sums of an accumulator."""
        means, spread = accumulator.finish()
        resampled, groups = accumulator.resampled, len(accumulator.sizes)
        code = resampled.groups.code
        sampled = code if resampled.sampled is None else code[resampled.sampled]
        n_sampled = np.zeros(groups) + np.bincount(sampled, minlength=groups)
        moments = Moments.of(means, code, groups, accumulator.arrays.weights)
        return cls(moments, accumulator.sums, spread, n_sampled, len(code) - len(sampled))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sums as plain arrays."""
        return {
            "moments": self.moments.array,
            "sums": self.sums,
            "spread": self.spread,
            "n_sampled": self.n_sampled,
            "n_exact": np.array(self.n_exact),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> FeatureSums:
        """Undo `arrays`."""
        own = {name: arrays[name] for name in ("sums", "spread", "n_sampled")}
        return cls(Moments.from_array(arrays["moments"]), **own, n_exact=int(arrays["n_exact"]))

    def merged(self, other: FeatureSums) -> FeatureSums:
        """Return the sums over the rows of both."""
        return FeatureSums(
            self.moments.merged(other.moments),
            self.sums + other.sums,
            self.spread + other.spread,
            self.n_sampled + other.n_sampled,
            self.n_exact + other.n_exact,
        )


@dataclass(eq=False)
class ChunkSums:
    """Sums of all features over rows of a batch, a chunk or several chunks."""

    n_features: int
    n_losses: int
    features: list[FeatureSums | None] = field(default_factory=list)
    baseline: Moments = field(init=False)
    n_rows: int = 0
    n_left_out: int = 0
    n_predicted: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, dtype=np.int64))

    def __post_init__(self) -> None:
        self.features = self.features or [None] * self.n_features
        self.baseline = Moments.none((self.n_losses, 1))

    def add_baseline(self, losses: Floats, weights: Floats | None) -> None:
        """Add losses of baseline rows."""
        self.baseline = self.baseline.merged(Moments.of(losses, weights=weights))

    def add(self, number: int, sums: FeatureSums) -> None:
        """Add sums of one feature."""
        so_far = self.features[number]
        self.features[number] = sums if so_far is None else so_far.merged(sums)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sums as plain arrays; a feature without rows has none."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "baseline": self.baseline.array,
            "rows": np.array([self.n_rows, self.n_left_out]),
            "predicted": self.n_predicted,
        }
        for number, sums in enumerate(self.features):
            if sums is not None:
                arrays |= {f"{number}.{name}": value for name, value in sums.arrays().items()}
        return arrays

    def add_arrays(self, arrays: ChunkArrays) -> None:
        """Add the arrays of another chunk."""
        self.baseline = self.baseline.merged(Moments.from_array(arrays["baseline"]))
        self.n_rows += int(arrays["rows"][0])
        self.n_left_out += int(arrays["rows"][1])
        self.n_predicted = self.n_predicted + arrays["predicted"]
        for number in range(self.n_features):
            names = [name for name in arrays if name.startswith(f"{number}.")]
            if names:
                self.add(number, FeatureSums.from_arrays({name.split(".")[1]: arrays[name] for name in names}))

    def result(self, number: int, feature: Feature, resampled: ResampledFeature, check: Any) -> FeatureResult:
        """Return the result of a feature; `resampled` has its subgroups."""
        sums = self.features[number]
        assert sums is not None
        return result_from_sums(
            feature,
            resampled,
            sums.moments.n[0],
            sums.sums,
            sums.spread,
            sums.n_sampled,
            independent=True,
            moments=sums.moments,
            n_rows=self.n_rows,
            n_exact=sums.n_exact,
            singletons=(),
            fidelity_check=check,
        )


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
        weights = None if self.columns.weights is None else _weights(table, self.columns.weights)
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
            batch = ChunkBatch.of(table, self.columns.model, where)
            about = partial(_about, chunk, some)
            self._add_batch(total, BatchScorer(predictor, losses, own, batch, about), keys[where])
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
        for number, (feature, fitted) in enumerate(self.samplers.items()):
            cache = self.cache.setdefault(title(feature), {"columns": {}})
            streams = KeyedStreams(self.seed, title(feature), self.n_repeats, rows=keys, memory=cache)
            resampled = resample(fitted, scorer.batch.read_by(fitted), feature, streams, None)
            frames = scorer.batch.frames_for(fitted, cache["columns"])
            total.add(number, scorer.score(feature, resampled, frames, self.n_repeats))


@dataclass(eq=False)
class BatchScorer:
    """Predicts resamples of the rows of a batch, and accumulates their losses."""

    predictor: Predictor
    losses: RowLosses
    weights: Floats | None
    batch: ChunkBatch
    about: Callable[..., str]
    baseline: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def predict_baseline(self, n_rows: int) -> Floats:
        """Return the losses of the baseline rows."""
        about = partial(self.about, "original rows")
        predictions = self.predictor.predict(self.batch.table, n_rows, about)
        self.baseline = self.losses.rows(predictions, ALL, about)
        return self.baseline

    def score(self, feature: Feature, resampled: ResampledFeature, frames: Frames, n_repeats: int) -> FeatureSums:
        """Return the sums over all resamples of one feature."""
        n_losses, n = self.baseline.shape
        arrays = NumpyArrays(n, self.weights, BincountSums)
        accumulator = RunningAccumulator(arrays, resampled, n_losses, n_repeats)
        for term in () if resampled.exact is None else resampled.exact.terms():
            if len(term.rows):
                table = self._built(feature, partial(frames.changed, term.rows, term.changes))
                about = f"feature {title(feature)!r}, exact expectation"
                accumulator.add_exact(term, self._increase(table, term.rows, about))
        sampled = resampled.sampled
        if sampled is None or sampled.any():
            rows = None if sampled is None else np.flatnonzero(sampled)
            for repeat, (changes, increase) in enumerate(self._repeats(feature, resampled, frames, rows)):
                accumulator.add_repeat(repeat, next(iter(changes.values())), increase, rows)
        return FeatureSums.of(accumulator)

    def _repeats(
        self, feature: Feature, resampled: ResampledFeature, frames: Frames, rows: Rows | None
    ) -> Iterator[tuple[Changes, Floats]]:
        for repeat, changes in enumerate(resampled.draws()):
            table = self._built(feature, partial(self._table, frames, rows, changes))
            increase = self._increase(table, rows, f"feature {title(feature)!r}, repeat {repeat}")
            self.batch.restore()
            yield changes, increase

    def _table(self, frames: Frames, rows: Rows | None, changes: Changes) -> Any:
        if rows is None:
            return self.batch.written({name: frames.native(name, column) for name, column in changes.items()})
        return frames.changed(rows, changes_of(changes, rows))

    def _increase(self, table: Any, rows: Rows | None, what: str) -> Floats:
        n = self.baseline.shape[1] if rows is None else len(rows)

        def about(row: int | None = None) -> str:
            return str(self.about(what, row if rows is None or row is None else int(rows[row])))

        predictions = self.predictor.predict(table, n, about)
        increase = self.losses.rows(predictions, ALL if rows is None else rows, about)
        increase -= self.baseline if rows is None else self.baseline[:, rows]
        return increase

    def _built(self, feature: Feature, build: Any) -> Any:
        """Return a table for the model; values that its columns cannot hold are an error of the sampler."""
        try:
            return build()
        except (SubgroveError, SubgroveWarning):
            raise
        except Exception as error:
            raise SamplerError(
                f"The sampler gave values that the table cannot hold (feature {title(feature)!r}): {error}"
            ) from error


def _about(chunk: Chunk, numbers: Rows, what: str, row: int | None = None) -> str:
    at = "" if row is None else f", row {chunk.first_row + int(numbers[row]):,}"
    return f"{chunk.name}, {what}{at}"


def _weights(table: Any, name: str) -> Floats:
    raw = raw_column(table, name)
    try:
        values = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"weights names {name!r}, which does not hold numbers: {error}.") from error
    if not np.isfinite(values).all() or (values < 0).any():
        at = int(np.flatnonzero(~np.isfinite(values) | (values < 0))[0])
        raise InputError(f"weights names {name!r}; weights must be finite and >= 0, and one is {values[at]}.")
    return values
