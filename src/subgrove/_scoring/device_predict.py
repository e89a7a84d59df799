"""Asking a model on a device: features one after the other, without waiting for it in between.

Requirements this design meets:

- the table is there once; a pass writes the changed column, and puts it back after the last one;
- the host runs ahead: while the device works on a feature, the next ones are drawn by other threads, and the sums of
  the last one become scores;
- nothing but sums comes back, once for each feature, and no answer is waited for within one;
- a batch is a part of the rows; sums are made when all batches of a pass are there, so they do not depend on batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Changes, Donors, changes_of
from subgrove._models.device.losses import TensorLoss
from subgrove._models.device.model import DeviceModel
from subgrove._models.device.torch import Tensor
from subgrove._scoring.device_accumulate import DeviceAccumulator, DeviceContext
from subgrove.exceptions import ModelError
from subgrove.samplers.base import Feature, title
from subgrove.samplers.redraw import ResampledFeature

T = TypeVar("T")
R = TypeVar("R")
_LOOKED_AT = 1_024  # rows that show whether the model writes to its input
_ROUNDING = 1e-6  # how far beyond 0 and 1 a probability may be
_JUDGED = 2**22  # numbers that losses are computed of at once
_AHEAD_BYTES = 2**28  # of draws that are made before they are needed


@dataclass(frozen=True, eq=False)
class DrawnFeature:
    """A feature that is ready to be asked about: its redraw, and its draws, the first of which are there."""

    feature: Feature
    redraw: ResampledFeature
    draws: Iterable[Changes]


def prepared(feature: Feature, redraw: ResampledFeature, n_rows: int) -> DrawnFeature:
    """Make the first draws of a feature, as many as memory allows."""
    if redraw.sampled is not None and not redraw.sampled.any():
        return DrawnFeature(feature, redraw, ())
    draws = redraw.draws()
    first = list(islice(draws, 1))
    turns = first and all(
        isinstance(column, Donors) and column.cyclic_shift is not None for column in first[0].values()
    )
    # Turns of the same circles hold nothing of their own.
    first += list(draws if turns else islice(draws, _AHEAD_BYTES // (8 * n_rows)))
    return DrawnFeature(feature, redraw, chain(first, draws))


def ahead(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
    """Results of a function for each task, in order; `workers` of them are made before they are asked for."""
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


class PendingSums:
    """Sums on their way to the host."""

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
        """The sums, once they are there."""
        if self.event is not None:
            self.event.synchronize()
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        parts = np.split(self.host.numpy(), ends[:-1])
        return {name: array.reshape(shape) for (name, shape), array in zip(self.shapes.items(), parts, strict=True)}


class DevicePredictor:
    """Asks a model about a table on its device.

    Parameters
    ----------
    model : DeviceModel
        Who is asked.
    ground : Ground
        The table, and what all features have in common.
    y : tensor
        Numbers, or numbers of classes.
    losses : sequence of TensorLoss
        How answers are judged.
    n_classes : int
        Of a model that gives probabilities; 0 of one that gives numbers.
    """

    def __init__(
        self, model: DeviceModel, ground: DeviceContext, y: Tensor, losses: Sequence[TensorLoss], n_classes: int
    ) -> None:
        self.model, self.ground, self.y, self.losses, self.n_classes = model, ground, y, losses, n_classes
        self.torch = ground.matrix.send.torch
        self.values = ground.matrix.values
        self.writes = False
        self.n_predicted = self.n_calls = 0
        self.batch = model._rows_at_once(self.values)
        self.baseline = ground.zeros(ground.n_losses, ground.n_rows + 1)
        self.increase = ground.zeros(ground.n_losses, ground.n_rows + 1)

    def ask_originals(self) -> Floats:
        """Ask about the rows as they are; the mean loss of each kind."""
        self._whole_pass(self.baseline, "original rows", first=True)
        weights = self.ground.weights
        rows = self.baseline[:, :-1]
        mean = rows.mean(dim=1) if weights is None else (rows @ weights[:-1]) / weights.sum()
        found: Floats = mean.cpu().numpy()
        if not np.isfinite(found).all():
            reject_not_finite(self._first_bad(self.baseline).cpu().numpy(), "original rows")
        return found

    def ask(self, prepared: DrawnFeature, n_repeats: int, drawn: Callable[[Changes], None]) -> PendingSums:
        """Ask about a feature; `drawn` is told of the first draw."""
        matrix = self.ground.matrix
        matrix.start()
        tally = DeviceAccumulator(self.ground, prepared.redraw, n_repeats)
        name = title(prepared.feature)
        flags = [self._exact_steps(tally, name)]
        sampled = prepared.redraw.sampled
        rows = None if sampled is None or sampled.all() else np.flatnonzero(sampled)
        own = {column: matrix.own(column) for column in prepared.feature if column in matrix.place}
        try:
            for repeat, changes in enumerate(prepared.draws):
                if repeat == 0:
                    drawn(changes)
                about = f"feature {name!r}, repeat {repeat}"
                if rows is None:
                    self._write({column: matrix.new(column, changes[column]) for column in own})
                    self._whole_pass(self.increase, about)
                else:
                    changes = changes_of(changes, rows)
                    here = matrix.send(rows)
                    self.increase.zero_()
                    self.increase[:, here] = self._part_pass(here, changes, about)
                flags.append(self._first_bad(self.increase))
                tally.add(repeat, next(iter(changes.values())), self.increase, rows)
        finally:
            self._write(own)
        return PendingSums({**tally.finished(), "bad": self.torch.stack(flags)}, self.torch)

    def _exact_steps(self, tally: DeviceAccumulator, name: str) -> Tensor:
        bad = self._first_bad(self.increase[:, :0])
        exact = tally.redraw.exact
        for step in () if exact is None else exact.steps():
            if len(step.rows):
                here = self.ground.matrix.send.rows(step.rows)
                increase = self._part_pass(here, step.changes, f"feature {name!r}, exact expectation")
                bad = self.torch.maximum(bad, self._first_bad(increase))
                tally.add_exact(step, increase, here)
        return bad

    def _write(self, columns: dict[str, Tensor]) -> None:
        for name, column in columns.items():
            self.values[:, self.ground.matrix.place[name]] = column

    def _whole_pass(self, into: Tensor, about: str, *, first: bool = False) -> None:
        """Losses of all rows; unless they are the first, less those of the rows as they are."""
        n, held, size, begin = self.ground.n_rows, [], 0, 0
        if first:
            self._look_at_first(self.values[:_LOOKED_AT])
        for start in range(0, n, self.batch):
            rows = self.values[start : start + self.batch]
            held.append(self._answer(rows.clone() if self.writes else rows, about))
            size += held[-1].numel()
            end = start + len(rows)
            # Answers of several batches are judged together: small steps would keep a GPU waiting.
            if size >= _JUDGED or end == n:
                for line, loss in zip(into, self._losses(held, self.y[begin:end], about), strict=True):
                    line[begin:end] = loss
                held, size, begin = [], 0, end
        if not first:
            into -= self.baseline

    def _part_pass(self, here: Tensor, changes: Changes, about: str) -> Tensor:
        """Increases of some rows, which are taken out of the table: (losses, number of rows)."""
        matrix = self.ground.matrix
        new = {name: matrix.new(name, column) for name, column in changes.items() if name in matrix.place}
        parts = []
        for start in range(0, len(here), self.batch):
            some = here[start : start + self.batch]
            rows = self.values.index_select(0, some)
            for name, column in new.items():
                rows[:, matrix.place[name]] = column[start : start + self.batch]
            answer = self._answer(rows, about)
            parts.append(self.torch.stack(self._losses([answer], self.y.index_select(0, some), about)))
        return self.torch.cat(parts, dim=1) - self.baseline.index_select(1, here)

    def _answer(self, rows: Tensor, about: str) -> Tensor:
        self.n_predicted += len(rows)
        self.n_calls += 1
        return self.model._answer(rows, about)

    def _losses(self, answers: list[Tensor], y: Tensor, about: str) -> list[Tensor]:
        """Losses of answers below each other, of each kind."""
        answer = (answers[0] if len(answers) == 1 else self.torch.cat(answers)).to(self.torch.float64)
        if self.n_classes and answer.ndim == 1:
            answer = self.torch.stack([1.0 - answer, answer], dim=1)
        if self.n_classes and answer.shape[1] != self.n_classes:
            raise ModelError(
                f"The model gave {answer.shape[1]} probabilities a row for {self.n_classes} classes ({about}). There "
                f"must be one for each class; name all of them by on_device(..., classes=[...])."
            )
        if not self.n_classes and answer.shape != y.shape:
            raise ModelError(
                f"The model gave predictions of shape {tuple(answer.shape)} where y has {tuple(y.shape)} ({about}). "
                f"For classes say so: on_device(model, gives='logit') or gives='probability'."
            )
        return [loss(y, answer) for loss in self.losses]

    def _look_at_first(self, rows: Tensor) -> None:
        """A module that writes to its input (an activation in place, say) is given copies from then on."""
        with self.torch.inference_mode(False):
            trial = rows.clone()  # a tensor that counts how often it is written to
        answer = self.model._answer(trial, "original rows")
        self.writes = trial._version > 0
        if self.model.gives == "probability":
            low, high = float(answer.min()), float(answer.max())
            if low < -_ROUNDING or high > 1 + _ROUNDING:
                raise ModelError(
                    f"The model gave values from {low:.4g} to {high:.4g} where probabilities are needed. "
                    f"If these are logits, say so: on_device(model, gives='logit')."
                )

    def _first_bad(self, losses: Tensor) -> Tensor:
        """0, or 1 + the number of the first row whose loss is not finite."""
        if not losses.shape[1]:
            return self.torch.zeros((), dtype=self.torch.float64, device=self.model.device)
        bad = ~losses.isfinite().all(dim=0)
        first = 1.0 + bad.to(self.torch.uint8).argmax().to(self.torch.float64)
        return self.torch.where(bad.any(), first, 0.0)


def reject_not_finite(found: Floats, about: str) -> None:
    """Raise if a flag of `ask` says that a loss is not finite."""
    bad = np.flatnonzero(np.atleast_1d(found))
    if len(bad):
        at = about if not np.ndim(found) else f"{about}, " + (f"repeat {bad[0] - 1}" if bad[0] else "exact expectation")
        where = "" if np.ndim(found) and not bad[0] else f", row {int(np.atleast_1d(found)[bad[0]]) - 1}"
        raise ModelError(
            f"The loss is not finite ({at}{where}): the model gave what is no number, or what the loss is not defined "
            f"for. Look at how the model treats missing values, or choose another loss."
        )
