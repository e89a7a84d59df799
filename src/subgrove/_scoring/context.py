"""`ScoringContext`: everything that is fixed before features are resampled one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from subgrove._core.execution import IndependentStreams, Streams
from subgrove._core.kinds import Floats
from subgrove._core.validate import warn
from subgrove._data.replace_columns import Changes, Frames, Rows, changes_of
from subgrove._data.table import Table
from subgrove._models.predictor import Predictions, Predictor
from subgrove._scoring.adaptive_repeats import AdaptiveRepeats
from subgrove._scoring.fidelity_check import FidelityChecker
from subgrove._scoring.row_losses import RowLosses, describe_baseline_row
from subgrove.exceptions import SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.resampled_feature import ExpectationTerm, ResampledFeature

_BATCH_ROWS = 100_000  # rows predicted at once, if memory allows
_MIN_BATCH_ROWS = 1_000
_COPIES = 6  # memory needed to build and predict a batch, as a multiple of its size
_RESULT_BYTES = 21  # stored for each row and feature
_ROWS_AGAIN = 10  # that are predicted once more, to see whether the model returns the same
_ROUNDING = 1e-13  # of the largest loss
_SAME = 1e-3  # standard deviations by which predictions may change with the size of a batch, which rounds
NO_CHANGES: Changes = {}
_model_is_checked: ContextVar[bool] = ContextVar("model is checked", default=False)
_TREE_LIBRARIES = {"sklearn", "lightgbm", "xgboost", "catboost", "subgrove"}


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoringContext:
    """What all features of one call have in common.

    Attributes
    ----------
    predictor : Predictor
        The model.
    frames : Frames
        The rows, for the model.
    table : Table
        The rows, for the sampler.
    sampler : FittedSampler
        Resamples features.
    losses : RowLosses
        Losses and target.
    baseline_losses : float array (L, n)
        Losses of the baseline rows.
    baseline_scores : float array (L,)
        Losses that are scores of all rows together; NaN for others.
    weights : float array (n,) or None
        Weights of the rows.
    n_repeats, seed : int
        Number of resamples, and the seed of their random streams.
    batch_rows : int
        Maximum number of rows predicted at once.
    fidelity_checker : FidelityChecker or None
        Checks that resampled rows are realistic.
    prediction_values : float array (n, C) or None
        Baseline predictions as numbers, if they are.
    adaptive : AdaptiveRepeats or None
        Adds repeats to `n_repeats`.
    baseline_predictions : array or None
        Baseline predictions as the model returned them. Without them no duplicates are looked up.
    independent_draws : bool
        Whether rows and repeats are drawn independently: no balanced draws, no exact expectations.
    """

    predictor: Predictor
    frames: Frames
    table: Table
    sampler: FittedSampler
    losses: RowLosses
    baseline_losses: Floats
    baseline_scores: Floats
    weights: Floats | None
    n_repeats: int
    seed: int
    batch_rows: int
    fidelity_checker: FidelityChecker | None = None
    prediction_values: Floats | None = None
    adaptive: AdaptiveRepeats | None = None
    baseline_predictions: Predictions | None = None
    independent_draws: bool = False
    cache: dict[str, Any] = field(init=False, default_factory=dict)

    @property
    def tree(self) -> Any:
        """`TreeSteps` of the model; None if it predicts."""
        return self.cache.get("tree steps")

    def increases(self, predictions: Predictions, rows: Rows | None, about: Any) -> Any:
        """Return the increases of the losses of some or all rows (L, m); 0 where all of them are rounding errors.

        A model may add in another order in a larger batch, so that a column which it does not use seems to matter.
        """
        own = self.baseline_losses if rows is None else self.baseline_losses[:, rows]
        increase = self.losses.rows(predictions, slice(None) if rows is None else rows, about)
        increase -= own
        if isinstance(increase, np.ndarray) and increase.size:
            largest = np.maximum(increase.max(axis=1), -increase.min(axis=1))
            increase[largest <= _ROUNDING * np.abs(own).max(axis=1)] = 0.0
        return increase

    def resample(self, feature: Feature, n_repeats: int) -> ResampledFeature:
        """Resample a feature."""
        kind = IndependentStreams if self.independent_draws else Streams
        streams = kind(self.seed, title(feature), n_repeats)
        exact = len(self.losses.per_row) == len(self.losses.losses) and not self.independent_draws
        return resample(self.sampler, self.table, feature, streams, self.weights, exact=exact)


@dataclass(frozen=True, eq=False)
class PredictionJob:
    """Rows to be predicted once: those of one repeat, or of one value of an exact expectation.

    Attributes
    ----------
    feature : tuple of str
        What is resampled.
    changes : mapping
        Columns that are replaced, for the rows of the job.
    rows : int array or None
        The rows; None for all rows of the table.
    repeat : int or None
        Number of the repeat; None for an exact expectation.
    term : ExpectationTerm or None
        Term of the exact expectation.
    draw : mapping or None
        Columns that are replaced for all rows, in the first repeats, for the fidelity check.
    """

    feature: Feature
    changes: Changes
    rows: Rows | None = None
    repeat: int | None = None
    term: ExpectationTerm | None = None
    draw: Changes | None = None

    def n_rows(self, n_table_rows: int) -> int:
        """Return the number of rows."""
        return n_table_rows if self.rows is None else len(self.rows)

    def about(self, row: int | None = None) -> str:
        """Describe the job, or one of its rows, in error messages."""
        repeat = "exact expectation" if self.repeat is None else f"repeat {self.repeat}"
        at = "" if row is None else f", row {row if self.rows is None else self.rows[row]}"
        return f"feature {title(self.feature)!r}, {repeat}{at}"


class BatchDescription:
    """Describes a batch of jobs, or one of its rows, in error messages; and splits its predictions."""

    def __init__(self, jobs: list[PredictionJob], n_table_rows: int) -> None:
        self.jobs = jobs
        self.ends = np.cumsum([job.n_rows(n_table_rows) for job in jobs])
        self.n_rows = int(self.ends[-1])

    def __call__(self, row: int | None = None) -> str:
        if row is not None:
            at = int(np.searchsorted(self.ends, row, side="right"))
            return self.jobs[at].about(row - (int(self.ends[at - 1]) if at else 0))
        first, last = self.jobs[0].about(), self.jobs[-1].about()
        return first if len(self.jobs) == 1 else f"{first} to {last}"

    def split(self, predictions: Predictions) -> Iterator[tuple[PredictionJob, Predictions]]:
        """Return the predictions of each job, of those of the batch."""
        return zip(self.jobs, np.split(predictions, self.ends[:-1]), strict=True)


def resample(
    sampler: FittedSampler,
    table: Table,
    feature: Feature,
    streams: Streams,
    weights: Floats | None,
    *,
    exact: bool = True,
) -> ResampledFeature:
    """Resample a feature; errors of the sampler are raised again with the name of the feature."""
    try:
        return sampler.resample(table, feature, streams, weights=weights, exact=exact)
    except (SubgroveError, SubgroveWarning):
        raise
    except Exception as error:
        raise SamplerError(
            f"The sampler raised {type(error).__name__} for feature {title(feature)!r}: {error}"
        ) from error


def build_table(build: Callable[[], Any], about: Callable[[], str]) -> Any:
    """Return a table for the model; values that its columns cannot hold are an error of the sampler."""
    try:
        return build()
    except (SubgroveError, SubgroveWarning):
        raise
    except Exception as error:
        raise SamplerError(f"The sampler gave values that the table cannot hold ({about()}): {error}") from error


def why_no_trees(model: Any) -> str:
    """Return why a model cannot have trees that are read; empty if it, or its owner, is of a library that may have."""
    owner = getattr(model, "__self__", model)  # of a method
    known = any(cls.__module__.partition(".")[0] in _TREE_LIBRARIES for cls in type(owner).__mro__)
    return "" if known else "not a model of a library whose trees can be read"


def batch_size(frames: Frames, n_features: int, n_losses: int, memory: float) -> int:
    """Return the number of rows predicted at once, so that tables and results stay within `memory` (MiB)."""
    left = max(memory * 2**20 - _result_bytes(frames, n_features, n_losses), memory * 2**20 / 8)
    return int(np.clip(left / (_COPIES * 8 * len(frames.names)), _MIN_BATCH_ROWS, _BATCH_ROWS))


def _result_bytes(frames: Frames, n_features: int, n_losses: int) -> int:
    return n_features * n_losses * frames.n_rows * _RESULT_BYTES


def predict_baseline(predictor: Predictor, frames: Frames, batch_rows: int) -> Predictions:
    """Return the predictions of the baseline rows; also detect models that modify their input."""
    batches = []
    for at in range(0, frames.n_rows, batch_rows):
        rows = slice(at, min(at + batch_rows, frames.n_rows))
        table = frames.changed(rows, {})
        batches.append(predictor.predict(table, rows.stop - rows.start, partial(describe_baseline_row, start=at)))
        predictor.writes = predictor.writes or not frames.holds(table, rows)
    return batches[0] if len(batches) == 1 else np.concatenate(batches)


@contextmanager
def without_repeats() -> Iterator[None]:
    """Predict no rows once more: the model has been checked."""
    token = _model_is_checked.set(True)
    try:
        yield
    finally:
        _model_is_checked.reset(token)


def check_repeatable(
    predictor: Predictor,
    frames: Frames,
    predictions: Predictions,
    result: str = "Importance",
    changes: Changes = NO_CHANGES,
) -> int:
    """Warn if some rows are predicted otherwise on their own; return how many rows were predicted again.

    `predictions` are those of the rows of `frames` with columns replaced by `changes`; more may follow, of the same
    batch. `result` names what is computed from them. Within `without_repeats` nothing is predicted.
    """
    if _model_is_checked.get():
        return 0
    rows = np.unique(np.linspace(0, frames.n_rows - 1, _ROWS_AGAIN).astype(np.intp))

    def again() -> Predictions:
        table = frames.changed(rows, changes_of(changes, rows))
        return predictor.predict(table, len(rows), lambda row: "rows that are predicted again")

    expected, found = predictions[rows], again()
    numbers = predictions.dtype.kind in "iufb" and found.dtype.kind in "iufb" and found.shape == expected.shape
    if not numbers:
        if not np.array_equal(expected, found):
            _warn_of_other_predictions(np.array_equal(found, again()), "other values", len(rows), result)
        return len(rows)
    values = predictions.astype(np.float64)
    limit = _SAME * np.maximum(values.std(axis=0), _SAME * np.abs(values).max(axis=0))
    largest = np.abs(found - values[rows]).max(axis=0)
    if (largest > limit).any():
        stable = bool((np.abs(again() - found.astype(np.float64)).max(axis=0) <= limit).all())
        _warn_of_other_predictions(stable, f"values that differ by up to {largest.max():.3g}", len(rows), result)
    return len(rows)


def _warn_of_other_predictions(stable: bool, others: str, n_rows: int, result: str) -> None:
    why, remedy = "at each call", "Switch randomness off when it predicts (dropout, sampling)"
    if stable:
        why, remedy = "depending on the other rows of a call", "Let it predict each row on its own"
    warn(
        f"The model predicts {others} for the same rows, {why} ({n_rows} of the rows were predicted twice). "
        f"{result} includes these changes and may be wrong. {remedy}."
    )
