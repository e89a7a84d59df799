"""Importance of a model on a device: one feature after the other, without waiting for the device in between.

Requirements this design meets:

- the table is on the device once; a job writes the resampled column, and restores it after the last one;
- the host runs ahead: while the device works on a feature, the next ones are resampled by other threads, and the sums
  of the last one become its result;
- only sums come back, once for each feature; nothing within a feature waits for the device;
- a batch is a part of the rows; sums are computed when all batches of a repeat are there, so they do not depend on
  batches.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any, TypeVar

import numpy as np

from subgrove._core.execution import Streams, one_blas_thread, progress_bar
from subgrove._core.kinds import Floats
from subgrove._core.moments import Moments
from subgrove._data.replace_columns import Changes, Donors, changes_of
from subgrove._data.table import Table
from subgrove._models.device_arrays import TensorArrays, TensorLoss, central_moments
from subgrove._models.device_model import DeviceModel
from subgrove._models.device_table import Tensor
from subgrove._scoring.accumulate import LossAccumulator
from subgrove._scoring.context import resample
from subgrove._scoring.feature_result import FeatureResult, result_from_sums, spread_from_sums
from subgrove._scoring.fidelity_check import FidelityChecker
from subgrove._scoring.score import prediction_jobs
from subgrove.exceptions import ModelError
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.resampled_feature import ResampledFeature

T = TypeVar("T")
R = TypeVar("R")
_CHECKED_ROWS = 1_024  # rows that show whether the model modifies its input
_ROUNDING = 1e-6  # how far beyond 0 and 1 a probability may be
_LOSS_VALUES = 2**22  # predictions whose losses are computed at once
_DRAW_BYTES = 2**28  # of draws that are made ahead
_MAX_WORKERS = 4  # threads that resample while a GPU works


def score_on_device(
    predictor: DevicePredictor,
    sampler: FittedSampler,
    table: Table,
    features: tuple[Feature, ...],
    n_repeats: int,
    seed: int,
    checker: FidelityChecker | None,
) -> list[FeatureResult]:
    """Return the results of features; each is started before the sums of the last one are read."""
    weights, n = predictor.arrays.host_weights, predictor.arrays.n_rows

    def drawn(feature: Feature) -> tuple[Feature, ResampledFeature]:
        resampled = resample(sampler, table, feature, Streams(seed, title(feature), n_repeats), weights)
        return feature, _with_first_draws(resampled, n)

    results: list[FeatureResult] = []
    with progress_bar(len(features), "Predicting") as done:
        ahead = map_ahead(drawn, features, _n_workers(predictor.model, sampler))
        started = chain((predictor.start(*each, n_repeats, checker) for each in ahead), [None])
        for result, _ in pairwise(started):  # the next one is started first
            assert result is not None
            results.append(result())
            done(1)
    return results


def _n_workers(model: DeviceModel, sampler: FittedSampler) -> int:
    """Return the number of threads that resample: one if the model needs the processor, or for a user's sampler."""
    if model.device.type == "cpu" or any(part.user_defined for part in sampler.members):
        return 1
    return min(_MAX_WORKERS, os.cpu_count() or 1)


def _with_first_draws(resampled: ResampledFeature, n_rows: int) -> ResampledFeature:
    """Return a resampled feature, to be drawn once, whose first draws are made: as many as memory allows."""
    exact = resampled.exact
    if exact is not None and exact.rows.all():
        return resampled
    draws = resampled.draws()
    first = list(islice(draws, 1))
    shifts = first and all(
        isinstance(column, Donors) and column.cyclic_shift is not None for column in first[0].values()
    )
    # Cyclic shifts of the same order hold no arrays of their own.
    first += list(draws if shifts else islice(draws, _DRAW_BYTES // (8 * n_rows)))
    every = chain(first, draws)
    return replace(resampled, draws=lambda: every, exact=exact if exact is not None and exact.rows.any() else None)


def map_ahead(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
    """Yield results of a function for each task, in order; threads compute `workers` of them ahead."""
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Any] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(function, task))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _moments(sizes: Floats, moments: Floats) -> Moments:
    """Return what `central_moments` computed on the device."""
    n = np.broadcast_to(sizes, moments[:, 0].shape).copy()
    return Moments(n, *(moments[:, at] for at in range(4)))


def _squared_sizes(code: Any, weights: Floats, n_groups: int) -> Floats:
    """Return the sum of the squared weights of each subgroup."""
    return np.bincount(code, weights=np.asarray(weights) ** 2, minlength=n_groups).astype(np.float64)


class PendingSums:
    """Tensors that are copied to the host without waiting."""

    def __init__(self, tensors: dict[str, Tensor], torch: Any) -> None:
        self.shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors.values()])
        self.event = None
        if flat.device.type == "cuda":
            self.host = torch.empty(flat.shape, dtype=flat.dtype, pin_memory=True)
            self.host.copy_(flat, non_blocking=True)
            self.event = torch.cuda.Event()
            self.event.record(torch.cuda.current_stream(flat.device))
        else:
            self.host = flat.cpu()

    def arrays(self) -> dict[str, Floats]:
        """Wait for the sums and return them."""
        if self.event is not None:
            self.event.synchronize()
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        parts = np.split(self.host.numpy(), ends[:-1])
        return {name: array.reshape(shape) for (name, shape), array in zip(self.shapes.items(), parts, strict=True)}


class DevicePredictor:
    """Predicts resampled rows of a table on a device, and accumulates their losses there.

    Parameters
    ----------
    model : DeviceModel
        The model.
    arrays : TensorArrays
        The table, weights and array operations.
    y : tensor
        Target: numbers, or codes of classes.
    losses : sequence of TensorLoss
        The losses.
    n_classes : int
        Number of classes of a model that returns probabilities; 0 for one that returns numbers.
    """

    def __init__(
        self, model: DeviceModel, arrays: TensorArrays, y: Tensor, losses: Sequence[TensorLoss], n_classes: int
    ) -> None:
        self.model, self.arrays, self.y, self.losses, self.n_classes = model, arrays, y, losses, n_classes
        self.torch, self.matrix = arrays.xp, arrays.matrix
        self.values = self.matrix.values
        self.modifies_input = False
        self.n_predicted = self.n_calls = 0
        self.batch = model._rows_at_once(self.values)
        self.baseline = arrays.zeros(len(losses), arrays.n_rows + 1)
        self.increase = arrays.zeros(len(losses), arrays.n_rows + 1)

    def baseline_losses(self) -> Floats:
        """Predict the baseline rows and return their mean losses."""
        self._check_model(self.values[:_CHECKED_ROWS])
        self._all_rows(self.baseline, "original rows")
        weights, rows = self.arrays.weights, self.baseline[:, :-1]
        mean = rows.mean(dim=1) if weights is None else (rows @ weights[:-1]) / weights.sum()
        losses: Floats = mean.cpu().numpy()
        if not np.isfinite(losses).all():
            reject_not_finite(self._first_not_finite(self.baseline).cpu().numpy(), "original rows")
        return losses

    def start(
        self, feature: Feature, resampled: ResampledFeature, n_repeats: int, checker: FidelityChecker | None
    ) -> Callable[[], FeatureResult]:
        """Predict all resamples of a feature, and send its sums to the host; return what waits for the result."""
        self.matrix.start()
        accumulator = LossAccumulator(self.arrays, resampled, len(self.losses), n_repeats)
        flags = [self._first_not_finite(self.increase[:, :0])]  # of exact expectations, then of each repeat
        unchanged = {column: self.matrix.own(column) for column in feature if column in self.matrix.place}
        draws: list[Changes] = []
        try:
            for job in prediction_jobs(feature, resampled):
                if job.draw is not None and checker is not None:
                    draws.append(changes_of(job.draw, checker.rows))
                if job.rows is None:
                    self._write({column: self.matrix.new(column, job.changes[column]) for column in unchanged})
                    self._all_rows(self.increase, job.about())
                    self.increase -= self.baseline
                    increase = self.increase
                else:
                    increase = self._some_rows(self.arrays.index(job.rows), job.changes, job.about())
                if job.term is not None:
                    flags[0] = self.torch.maximum(flags[0], self._first_not_finite(increase))
                    accumulator.add_exact(job.term, increase)
                elif job.repeat is not None:
                    flags.append(self._first_not_finite(increase, job.rows))
                    accumulator.add_repeat(job.repeat, next(iter(job.changes.values())), increase, job.rows)
        finally:
            self._write(unchanged)
        sums = PendingSums({**_tensors(accumulator), "not_finite": self.torch.stack(flags)}, self.torch)
        return partial(self._result, feature, resampled, sums, checker, draws)

    def _result(
        self,
        feature: Feature,
        resampled: ResampledFeature,
        pending: PendingSums,
        checker: FidelityChecker | None,
        draws: Sequence[Changes],
    ) -> FeatureResult:
        """Return the result of a feature, once its sums are on the host."""
        check = None
        if checker is not None:  # of the first draws, or of others if all rows are exact; while the device works
            with one_blas_thread():
                check = checker.check(feature, checker.read(draws, lambda: resampled))
        sums = pending.arrays()
        reject_not_finite(sums["not_finite"], f"feature {title(feature)!r}")
        groups, weights, m = resampled.groups, self.arrays.host_weights, sums["sums"].shape[1]
        sizes = np.bincount(groups.code, weights=weights, minlength=len(groups)).astype(np.float64)
        spread = spread_from_sums((sums["squares"], None), sums["squared_means"], weights is not None, m)
        if len(sums["squared_means"]) > 1 and sums["donors_in_group"]:
            spread *= np.where(sizes > 2, (sizes - 1) / np.maximum(sizes - 2, 1.0), 1.0) ** 2
        sampled = groups.code if resampled.exact is None else groups.code[~resampled.exact.rows]
        n_sampled = np.bincount(sampled, minlength=len(groups))
        more: dict[str, Any] = {"moments": _moments(sizes, sums["moments"]), "fidelity_check": check}
        if weights is not None and "squared" in sums:
            more["squared"] = _moments(_squared_sizes(groups.code, weights, len(groups)), sums["squared"])
        return result_from_sums(feature, resampled, more["moments"].n[0], sums["sums"], spread, n_sampled, **more)

    def _write(self, columns: dict[str, Tensor]) -> None:
        for name, column in columns.items():
            self.values[:, self.matrix.place[name]] = column

    def _all_rows(self, into: Tensor, about: str) -> None:
        """Write the losses of all rows."""
        n, waiting, size, begin = self.arrays.n_rows, [], 0, 0
        for start in range(0, n, self.batch):
            rows = self.values[start : start + self.batch]
            waiting.append(self._predict(rows.clone() if self.modifies_input else rows, about))
            size += waiting[-1].numel()
            end = start + len(rows)
            # Losses of several batches are computed together: small steps would keep a GPU waiting.
            if size >= _LOSS_VALUES or end == n:
                for line, loss in zip(into, self._losses(waiting, self.y[begin:end], about), strict=True):
                    line[begin:end] = loss
                waiting, size, begin = [], 0, end

    def _some_rows(self, index: Tensor, changes: Changes, about: str) -> Tensor:
        """Return the increases (losses, number of rows) of some rows, which are copied from the table."""
        new = {name: self.matrix.new(name, column) for name, column in changes.items() if name in self.matrix.place}
        batches = []
        for start in range(0, len(index), self.batch):
            own = index[start : start + self.batch]
            rows = self.values.index_select(0, own)
            for name, column in new.items():
                rows[:, self.matrix.place[name]] = column[start : start + self.batch]
            predictions = self._predict(rows, about)
            batches.append(self.torch.stack(self._losses([predictions], self.y.index_select(0, own), about)))
        return self.torch.cat(batches, dim=1) - self.baseline.index_select(1, index)

    def _predict(self, rows: Tensor, about: str) -> Tensor:
        self.n_predicted += len(rows)
        self.n_calls += 1
        return self.model._predict_tensor(rows, about)

    def _losses(self, batches: list[Tensor], y: Tensor, about: str) -> list[Tensor]:
        """Return the losses of each kind for predictions of several batches."""
        predictions = (batches[0] if len(batches) == 1 else self.torch.cat(batches)).to(self.torch.float64)
        if self.n_classes and predictions.ndim == 1:
            predictions = self.torch.stack([1.0 - predictions, predictions], dim=1)
        if self.n_classes and predictions.shape[1] != self.n_classes:
            raise ModelError(
                f"The model returned {predictions.shape[1]} probabilities per row for {self.n_classes} classes "
                f"({about}). There must be one for each class; list all of them: DeviceModel(..., classes=[...])."
            )
        if not self.n_classes and predictions.shape != y.shape:
            raise ModelError(
                f"The model returned predictions of shape {tuple(predictions.shape)}, but y has {tuple(y.shape)} "
                f"({about}). For classes pass DeviceModel(model, output='logit') or output='probability'."
            )
        return [loss(y, predictions) for loss in self.losses]

    def _check_model(self, rows: Tensor) -> None:
        """Detect a model that modifies its input (an activation in place, say), which is given copies from then on."""
        with self.torch.inference_mode(False):
            trial = rows.clone()  # a tensor that counts how often it is written to
        predictions = self.model._predict_tensor(trial, "original rows")
        self.modifies_input = trial._version > 0
        if self.model.output == "probability":
            low, high = float(predictions.min()), float(predictions.max())
            if low < -_ROUNDING or high > 1 + _ROUNDING:
                raise ModelError(
                    f"The model returned values from {low:.4g} to {high:.4g} where probabilities are needed. "
                    f"If these are logits, pass DeviceModel(model, output='logit')."
                )

    def _first_not_finite(self, losses: Tensor, rows: Any = None) -> Tensor:
        """Return 0, or 1 + the number of the first row whose loss is not finite."""
        if not losses.shape[1]:
            return self.torch.zeros((), dtype=self.torch.float64, device=self.model.device)
        bad = ~losses.isfinite().all(dim=0)
        first = bad.to(self.torch.uint8).argmax()
        number = first if rows is None else self.arrays.index(rows)[first]
        return self.torch.where(bad.any(), 1.0 + number.to(self.torch.float64), 0.0)


def _tensors(accumulator: LossAccumulator) -> dict[str, Tensor]:
    """Return what the host needs of an accumulator: small tensors by name."""
    arrays, torch = accumulator.arrays, accumulator.arrays.xp
    means = accumulator.row_means()
    influence = accumulator.influence(means)
    weights = None if arrays.weights is None else arrays.weights[: arrays.n_rows]
    sizes = arrays.array(accumulator.sizes)
    squared: dict[str, Any] = {}
    if weights is not None and accumulator.relative:
        sizes_2 = arrays.array(_squared_sizes(accumulator.host_code, arrays.host_weights, len(accumulator.sizes)))
        squared["squared"] = central_moments(influence, accumulator.by_group, accumulator.code, sizes_2, weights**2)
    in_group = accumulator.donors_in_group
    in_group = torch.ones((), device=arrays.send.device) if in_group is None else in_group
    return {
        "sums": accumulator.sums,
        "squares": accumulator.squares,
        "squared_means": torch.stack(means.squares),
        "moments": central_moments(influence, accumulator.by_group, accumulator.code, sizes, weights),
        **squared,
        "donors_in_group": in_group.to(torch.float64),
    }


def reject_not_finite(flags: Floats, about: str) -> None:
    """Raise if a flag is the number of a row whose loss is not finite."""
    bad = np.flatnonzero(np.atleast_1d(flags))
    if len(bad):
        several = np.ndim(flags) > 0
        at = about if not several else f"{about}, " + (f"repeat {bad[0] - 1}" if bad[0] else "exact expectation")
        row = "" if several and not bad[0] else f", row {int(np.atleast_1d(flags)[bad[0]]) - 1}"
        raise ModelError(
            f"The loss is not finite ({at}{row}): the model returned a value that is not a number, or that the loss is "
            f"not defined for. Check how the model treats missing values, or choose another loss."
        )
