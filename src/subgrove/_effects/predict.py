"""Predictions for grid points: the only step of an effect that calls the model.

Requirements this design meets:

- batches are large: they contain the same rows at several grid points;
- no table is copied for a grid point: only the column of the feature is written;
- memory is bounded: batches have a limited number of rows, and predictions are summarized where possible;
- predictions are summarized point by point over all rows, so results do not depend on batches or jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.parallel import effective_jobs, parallel_map
from subgrove._data.replace_columns import Changes, Column, Donors, Frames, Tile
from subgrove._effects.outputs import ModelOutputs
from subgrove._models.predictor import Predictions, Predictor
from subgrove.exceptions import ModelError

BATCH_ROWS = 100_000  # larger batches are not faster
_COPIES = 4  # copies of a batch in memory: ours, and those that models commonly make
_MIB = 2**20


@dataclass(frozen=True, eq=False)
class GridBlock:
    """All rows of a table with columns replaced, created when needed; `text` describes the values.

    `numbers` has one number for each column of `Frames.infos`, if all rows have the same.
    """

    changes: Callable[[], Changes]
    text: Callable[[], str]
    numbers: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class PredictionRequest:
    """Blocks of the same rows to predict, and how to summarize the predictions.

    `summarize` maps the predictions of some blocks, (blocks, outputs, rows), to an array with an entry for each block,
    which must not depend on the other blocks.
    """

    frames: Frames
    blocks: Sequence[GridBlock]
    summarize: Callable[[Floats], Floats]

    def split(self, n_jobs: int) -> list[PredictionRequest]:
        """Distribute the blocks over several requests."""
        cuts = np.linspace(0, len(self.blocks), min(n_jobs, len(self.blocks)) + 1).round().astype(int).tolist()
        return [PredictionRequest(self.frames, self.blocks[a:b], self.summarize) for a, b in pairwise(cuts)]


@dataclass(eq=False)
class EffectPredictor:
    """Fulfils prediction requests, and counts calls and rows.

    `labels` are those of the outputs with a curve, known after the first prediction.
    """

    model: Predictor
    outputs: ModelOutputs
    batch_rows: int
    n_jobs: int | None = None
    labels: tuple[Any, ...] = field(default=(), init=False)

    def run(self, requests: Sequence[PredictionRequest]) -> list[Floats]:
        """Return the summarized predictions of each request."""
        n_jobs = effective_jobs(self.n_jobs)
        split = [request.split(n_jobs) for request in requests]
        jobs = [_Job(self.model.fresh(), self.outputs, part, self.batch_rows) for parts in split for part in parts]
        results = list(parallel_map(_run_job, jobs, self.n_jobs))
        for result in results:
            self.model.n_rows += result.n_rows
            self.model.n_calls += result.n_calls
            self.labels = self.labels or result.labels
        summaries = iter(result.summary for result in results)
        return [np.concatenate([next(summaries) for _ in parts]) for parts in split]


@dataclass(frozen=True, eq=False)
class _Job:
    model: Predictor
    outputs: ModelOutputs
    request: PredictionRequest
    batch_rows: int


@dataclass(frozen=True, eq=False)
class _JobResult:
    summary: Floats
    labels: tuple[Any, ...]
    n_rows: int
    n_calls: int


def _run_job(job: _Job) -> _JobResult:
    summaries: list[Floats] = []
    labels: tuple[Any, ...] = ()
    for blocks, predictions in _predict_blocks(job):
        labels = labels or job.outputs.selected(1 if predictions.ndim == 1 else predictions.shape[1])[0]
        numbers = job.outputs.numbers(predictions, blocks[0].text)
        # Rows are the last, contiguous axis, so that sums over them do not depend on the number of blocks.
        numbers = numbers.reshape(len(blocks), -1, numbers.shape[1]).transpose(0, 2, 1)
        summaries.append(job.request.summarize(np.ascontiguousarray(numbers)))
    return _JobResult(np.concatenate(summaries), labels, job.model.n_rows, job.model.n_calls)


def _predict_blocks(job: _Job) -> Iterator[tuple[Sequence[GridBlock], Predictions]]:
    """Yield some blocks at a time with their predictions."""
    frames, blocks = job.request.frames, job.request.blocks
    n = frames.n_rows
    if n > job.batch_rows:
        for block in blocks:
            yield [block], _predict_in_batches(job.model, frames, block, job.batch_rows)
        return
    n_batches = -(-len(blocks) // (job.batch_rows // n))
    times = -(-len(blocks) // n_batches)  # batches of about the same size
    tile = frames.tile(times)
    for start in range(0, len(blocks), times):
        some = blocks[start : start + times]
        table = _filled(tile, frames, some)
        check_writes = frames.is_matrix and start == 0 and len(some) < len(blocks)
        copy = np.array(np.asarray(table)[:n]) if check_writes else None
        predictions = job.model.predict(table, n * len(some), _BatchText(some, n))
        if copy is not None and copy.tobytes() != np.asarray(table)[:n].tobytes():
            # The following batches are written into the same table.
            raise ModelError(
                f"The model modifies its input ({some[0].text()}), so later predictions would be wrong. Pass a "
                f"function that copies it first, as in lambda X: model.predict(X.copy())."
            )
        yield some, predictions


def _filled(tile: Tile, frames: Frames, blocks: Sequence[GridBlock]) -> Any:
    """Return a table with a copy of the rows for each block."""
    numbers = [block.numbers for block in blocks if block.numbers is not None]
    if len(numbers) == len(blocks):
        return tile.fill_numbers(dict(zip(frames.infos, np.array(numbers).T, strict=True)))
    return tile.fill([block.changes() for block in blocks])


@dataclass(frozen=True, eq=False)
class _BatchText:
    """Description of the rows of a batch, for error messages."""

    blocks: Sequence[GridBlock]
    n_rows: int

    def __call__(self, row: int | None) -> str:
        if row is not None:
            return self.blocks[row // self.n_rows].text()
        first, last = self.blocks[0].text(), self.blocks[-1].text()
        return first if len(self.blocks) == 1 else f"{first}, to {last}"


def _predict_in_batches(model: Predictor, frames: Frames, block: GridBlock, batch_rows: int) -> Predictions:
    """Predict a block that is larger than a batch."""
    changes, predictions = block.changes(), []
    for start in range(0, frames.n_rows, batch_rows):
        rows = slice(start, min(start + batch_rows, frames.n_rows))
        table = frames.changed(rows, {name: _part(column, rows) for name, column in changes.items()})
        predictions.append(model.predict(table, rows.stop - rows.start, lambda row: block.text()))
    return np.concatenate(predictions)


def _part(column: Column, rows: slice) -> Column:
    return column.part(rows) if isinstance(column, Donors) else column[rows]


def batch_rows(n_columns: int) -> int:
    """Return the number of rows in a batch, limited by the `working_memory` of scikit-learn's configuration."""
    from sklearn import get_config

    memory = float(get_config()["working_memory"])
    return int(max(1, min(BATCH_ROWS, memory * _MIB // (_COPIES * 8 * max(n_columns, 1)))))
