"""Predictions for grid points: the only step of an effect that calls the model.

Requirements this design meets:

- batches are large: they contain the same rows at several grid points;
- no table is copied for a grid point: only the column of the feature is written;
- memory is bounded: batches have a limited number of rows, and predictions are summarized where possible;
- predictions are summarized point by point over all rows, so results do not depend on batches or jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from subgrove._core.execution import effective_jobs, parallel_map, working_memory
from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import quote
from subgrove._data.replace_columns import Changes, Column, Frames, Tile, changes_of
from subgrove._effects.grid import has_levels
from subgrove._effects.subgroup_rows import GridBlock, PredictionRequest
from subgrove._models.predictor import Predictions, Predictor, is_classifier, read_model, response_for
from subgrove._models.tree_ensemble.places import Places
from subgrove._models.tree_ensemble.steps import StepFunctions
from subgrove._scoring.context import check_repeatable
from subgrove.exceptions import ModelError, ParameterError

BATCH_ROWS = 100_000  # larger batches are not faster
_COPIES = 4  # copies of a batch in memory: ours, and those that models commonly make


@dataclass(eq=False)
class EffectPredictor:
    """Fulfils prediction requests, and counts calls and rows.

    `n_outputs` is the number of outputs of the model, known after the first prediction. `evaluation` states whether
    predictions came from the model or from its trees; `n_rows_again` is the number of rows that were predicted only to
    see whether the model predicts the same.
    """

    model: Predictor
    outputs: ModelOutputs
    batch_rows: int
    n_jobs: int | None
    n_outputs: int = 0
    evaluation: str = ""
    n_rows_again: int = 0

    def fresh(self) -> EffectPredictor:
        """Return a predictor with its counters at zero, which runs in the worker of a chunk."""
        return EffectPredictor(self.model.fresh(), self.outputs, self.batch_rows, 1)

    def run(self, requests: Sequence[PredictionRequest], *, check: bool = False) -> list[Floats]:
        """Return the summarized predictions of each request; `check` warns if the model does not predict the same."""
        n_jobs = effective_jobs(self.n_jobs)
        marked = [replace(request, is_checked=check and not at) for at, request in enumerate(requests)]
        split = [request.split(n_jobs) for request in marked]
        parts = [part for some in split for part in some]
        results = list(parallel_map(self._predict, parts, self.n_jobs))
        for _, n_rows, n_calls, n_outputs, _ in results:
            self.count(n_rows, n_calls, n_outputs)
        if check and parts:
            frames, changes = parts[0].rows.frames, parts[0].changes(parts[0].blocks[0])
            self.n_rows_again = check_repeatable(self.model, frames, results[0][-1], "The effect", changes)
        summaries = iter(result[0] for result in results)
        return [np.concatenate([next(summaries) for _ in some]) for some in split]

    def count(self, n_rows: int, n_calls: int, n_outputs: int) -> None:
        """Add predictions that a worker made."""
        self.model.n_rows += n_rows
        self.model.n_calls += n_calls
        self.n_outputs = max(self.n_outputs, n_outputs)

    @property
    def labels(self) -> tuple[Any, ...]:
        """Labels of the outputs with a curve; none before the first prediction."""
        labels = self.outputs.labels(self.n_outputs)
        return tuple(labels[column] for column in self.outputs.columns(self.n_outputs)) if labels else ()

    def _predict(self, request: PredictionRequest) -> tuple[Floats, int, int, int, Any]:
        """Return the summarized predictions of a request, and the numbers of predicted rows, calls and outputs.

        The last is a copy of the first predictions, if they are checked.
        """
        model, summaries, n_outputs, first = self.model.fresh(), [], 0, None
        for blocks, predictions in _predict_blocks(model, request, self.batch_rows):
            n_outputs = 1 if predictions.ndim == 1 else predictions.shape[1]
            first = predictions.copy() if request.is_checked and first is None else first
            numbers = self.outputs.numbers(predictions, blocks[0].text)
            # Rows are the last, contiguous axis, so that sums over them do not depend on the number of blocks.
            numbers = numbers.reshape(len(blocks), -1, numbers.shape[1]).transpose(0, 2, 1)
            summaries.append(request.summarize(np.ascontiguousarray(numbers)))
        return np.concatenate(summaries), model.n_rows, model.n_calls, n_outputs, first


def _predict_blocks(
    model: Predictor, request: PredictionRequest, batch_rows: int
) -> Iterator[tuple[Sequence[GridBlock], Predictions]]:
    """Yield some blocks at a time with their predictions."""
    frames, blocks = request.rows.frames, request.blocks
    n = frames.n_rows
    if n > batch_rows:
        for block in blocks:
            yield [block], predict_in_batches(model, frames, request.changes(block), block.text, batch_rows)
        return
    n_batches = -(-len(blocks) // (batch_rows // n))
    times = -(-len(blocks) // n_batches)  # batches of about the same size
    tile = frames.tile(times)
    for start in range(0, len(blocks), times):
        some = blocks[start : start + times]
        table = _filled(tile, request, some)
        check_writes = frames.is_matrix and start == 0 and len(some) < len(blocks)
        copy = np.array(np.asarray(table)[:n]) if check_writes else None
        predictions = model.predict(table, n * len(some), partial(_describe_batch, some, n))
        if copy is not None and copy.tobytes() != np.asarray(table)[:n].tobytes():
            # The following batches are written into the same table.
            raise ModelError(
                f"The model modifies its input ({some[0].text}), so later predictions would be wrong. Pass a "
                f"function that copies it first, as in lambda X: model.predict(X.copy())."
            )
        yield some, predictions


def _filled(tile: Tile, request: PredictionRequest, blocks: Sequence[GridBlock]) -> Any:
    """Return a table with a copy of the rows for each block."""
    infos = request.rows.data.infos
    if all(len(block.points.get(info.name, ())) == 1 and not has_levels(info) for block in blocks for info in infos):
        each = {info.name: np.concatenate([block.points[info.name] for block in blocks]) for info in infos}
        return tile.fill_numbers(each)
    return tile.fill([request.changes(block) for block in blocks])


def _describe_batch(blocks: Sequence[GridBlock], n_rows: int, row: int | None) -> str:
    """Describe a row of a batch, or the batch, for error messages."""
    if row is not None:
        return blocks[row // n_rows].text
    return blocks[0].text if len(blocks) == 1 else f"{blocks[0].text}, to {blocks[-1].text}"


def predict_in_batches(model: Predictor, frames: Frames, changes: Changes, text: str, batch_rows: int) -> Predictions:
    """Predict a table with columns replaced in batches, as tables that are larger than a batch; `text` describes it."""
    predictions = []
    for start in range(0, frames.n_rows, batch_rows):
        rows = slice(start, min(start + batch_rows, frames.n_rows))
        table = frames.changed(rows, changes_of(changes, rows))
        predictions.append(model.predict(table, rows.stop - rows.start, lambda row: text))
    return np.concatenate(predictions)


def changed_rows(
    frames: Frames, steps: StepFunctions, rows: Rows, blocks: Sequence[Mapping[str, tuple[Column, Places]]]
) -> tuple[Any, Floats]:
    """Return a copy of some rows for each block, and their margins.

    A block is feature -> the column that replaces it, and the places of its values.
    """
    places = np.tile(steps.places[rows], (len(blocks), 1, 1))
    for own, block in zip(places, blocks, strict=True):
        for name, (_, received) in block.items():
            own[:, frames.names.index(name)] = received
    some = Frames(frames.changed(rows, {}), [*frames.infos.values()], frames.train)
    table = some.tile(len(blocks)).fill([{name: column for name, (column, _) in block.items()} for block in blocks])
    return table, steps.predict(places.reshape(-1, places.shape[2]))


def batch_rows(n_columns: int) -> int:
    """Return the number of rows in a batch, limited by the `working_memory` of scikit-learn's configuration."""
    return int(max(1, min(BATCH_ROWS, working_memory() * 2**20 // (_COPIES * 8 * max(n_columns, 1)))))


def model_for_effect(model: Any, response_method: str | None) -> Predictor:
    """Return a predictor of probabilities if the model has them, otherwise of `predict`."""
    if response_method is not None:
        return read_model(model, response_for((), response_method))
    probabilities = is_classifier(model) and hasattr(model, "predict_proba")
    return read_model(model, "probability" if probabilities else "value")


@dataclass(frozen=True)
class ModelOutputs:
    """Selection of the columns of predictions.

    Attributes
    ----------
    classes : tuple
        Label of each column of probabilities; empty if there are none.
    method : str
        Method of the model.
    wanted : object
        Label or number of the selected output; None for all with a curve.
    """

    classes: tuple[Any, ...]
    method: str
    wanted: Any = None

    @classmethod
    def of(cls, model: Predictor, wanted: Any) -> ModelOutputs:
        """Return the outputs of a model; raises for an unknown class."""
        classes = model.classes
        if classes and isinstance(classes[0], tuple):
            classes = tuple(f"{at}: {label}" for at, some in enumerate(classes) for label in some)
        outputs = cls(classes, model.method, wanted)
        if model.method == "predict_proba" and classes:
            outputs.columns(len(classes))
        return outputs

    def labels(self, n_outputs: int) -> tuple[Any, ...]:
        """Return the label of each column of predictions: its class if known, otherwise its number."""
        by_class = self.method in ("predict_proba", "decision_function") and len(self.classes) == n_outputs
        return self.classes if by_class else tuple(range(n_outputs))

    def columns(self, n_outputs: int) -> list[int]:
        """Return the columns of the outputs with a curve: the selected one, the second of two classes, or all."""
        if self.wanted is None:
            return [1] if self.method == "predict_proba" and n_outputs == 2 else list(range(n_outputs))
        labels = self.labels(n_outputs)
        if (place := place_of(self.wanted, labels)) is not None:
            return [place]
        whole = isinstance(self.wanted, int | np.integer) and not isinstance(self.wanted, bool)
        if whole and 0 <= self.wanted < n_outputs:
            return [int(self.wanted)]
        raise ParameterError(
            f"output={self.wanted!r} is not an output of the model. Its outputs: {quote(labels[:20])}; "
            f"pass one of these, or its number from 0 to {n_outputs - 1}."
        )

    def numbers(self, predictions: Predictions, about: str) -> Floats:
        """Return predictions of the outputs with a curve: (rows, outputs)."""
        table = predictions.reshape(len(predictions), -1)
        columns = self.columns(table.shape[1])
        with suppress(TypeError, ValueError):
            if table.dtype.kind in "iufbO":
                numbers = np.asarray(table if len(columns) == table.shape[1] else table[:, columns], dtype=np.float64)
                if table.dtype != object or np.isfinite(numbers).all():
                    return numbers
        raise ModelError(
            f"{self.method} returned {predictions.dtype} ({about}), such as {predictions.ravel()[0]!r}, but "
            f"effects need numbers. Pass response_method='predict_proba' or 'decision_function', or a function."
        )


def place_of(wanted: Any, labels: Sequence[Any]) -> int | None:
    """Return the position of a label, None if it is not among them; False and True are not 0 and 1."""
    for at, label in enumerate(labels):
        with suppress(TypeError, ValueError):  # an array or pandas.NA is not equal to a label
            if label == wanted and isinstance(label, bool) == isinstance(wanted, bool):
                return at
    return None
