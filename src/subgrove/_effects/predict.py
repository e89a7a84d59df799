"""Asking the model: the only step of an effect that needs predictions.

Requirements this design meets:

- the model is asked in large batches, which hold the same rows at several points of the grid;
- no table is copied for a point: only the feature's column is written;
- memory is bounded: a batch has a given number of rows, and of each answer a summary is kept, as far as it will do;
- an answer is summed up point by point over all rows, so that batches and jobs do not change a digit.
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
from subgrove.exceptions import ModelError, ParameterError

BATCH_ROWS = 100_000  # more rows at once save no time
_COPIES = 4  # tables of a batch that are held at once: ours, and those that models commonly make
_MIB = 2**20


@dataclass(frozen=True, eq=False)
class GridBlock:
    """All rows of a table with columns replaced; `text` says by what. Both are made when they are needed.

    `numbers` has for each column that `Frames.infos` tells of the number that all rows are given, if all are given one.
    """

    changes: Callable[[], Changes]
    text: Callable[[], str]
    numbers: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class PredictionRequest:
    """Blocks that are asked for about the same rows, and what is kept of each answer.

    `keep` takes numbers of some blocks, (blocks, outputs, rows), and gives an array with an entry for each block.
    What it gives for a block must not depend on the others.
    """

    frames: Frames
    blocks: Sequence[GridBlock]
    keep: Callable[[Floats], Floats]

    @property
    def n_rows(self) -> int:
        """Rows that the model is asked for."""
        return self.frames.n_rows * len(self.blocks)

    def split(self, parts: int) -> list[PredictionRequest]:
        """The same in several pieces."""
        cuts = np.linspace(0, len(self.blocks), min(parts, len(self.blocks)) + 1).round().astype(int).tolist()
        return [PredictionRequest(self.frames, self.blocks[start:stop], self.keep) for start, stop in pairwise(cuts)]


@dataclass(eq=False)
class EffectPredictor:
    """Has work done, and counts what the model was asked for.

    `labels` are those of the outputs that have a curve, known after the first answer.
    """

    model: Predictor
    outputs: ModelOutputs
    batch_rows: int
    n_jobs: int | None = None
    labels: tuple[Any, ...] = field(default=(), init=False)

    def run(self, works: Sequence[PredictionRequest]) -> list[Floats]:
        """For each work what was kept of its blocks."""
        jobs = effective_jobs(self.n_jobs)
        pieces = [work.split(jobs) for work in works]
        tasks = [_Task(self.model.fresh(), self.outputs, piece, self.batch_rows) for some in pieces for piece in some]
        done = list(parallel_map(_do, tasks, self.n_jobs))
        for one in done:
            self.model.n_rows += one.n_rows
            self.model.n_calls += one.n_calls
            self.labels = self.labels or one.labels
        kept = iter(done)
        return [np.concatenate([next(kept).kept for _ in some]) for some in pieces]


@dataclass(frozen=True, eq=False)
class _Task:
    model: Predictor
    outputs: ModelOutputs
    work: PredictionRequest
    batch_rows: int


@dataclass(frozen=True, eq=False)
class _Done:
    kept: Floats
    labels: tuple[Any, ...]
    n_rows: int
    n_calls: int


def _do(task: _Task) -> _Done:
    kept: list[Floats] = []
    labels: tuple[Any, ...] = ()
    for blocks, answer in _answers(task):
        labels = labels or task.outputs.chosen(1 if answer.ndim == 1 else answer.shape[1])[0]
        numbers = task.outputs.numbers(answer, blocks[0].text)
        # Rows last and side by side: sums over them are then formed in the same way however many blocks there are.
        numbers = numbers.reshape(len(blocks), -1, numbers.shape[1]).transpose(0, 2, 1)
        kept.append(task.work.keep(np.ascontiguousarray(numbers)))
    return _Done(np.concatenate(kept), labels, task.model.n_rows, task.model.n_calls)


def _answers(task: _Task) -> Iterator[tuple[Sequence[GridBlock], Predictions]]:
    """The model's answers to some blocks at a time."""
    frames, blocks = task.work.frames, task.work.blocks
    n = frames.n_rows
    if n > task.batch_rows:
        for block in blocks:
            yield [block], _in_pieces(task.model, frames, block, task.batch_rows)
        return
    n_batches = -(-len(blocks) // (task.batch_rows // n))
    times = -(-len(blocks) // n_batches)  # batches of about the same size
    tile = frames.tile(times)
    for start in range(0, len(blocks), times):
        some = blocks[start : start + times]
        table = _filled(tile, frames, some)
        looked_at = frames.is_matrix and start == 0 and len(some) < len(blocks)
        before = np.array(np.asarray(table)[:n]) if looked_at else None
        answer = task.model.predict(table, n * len(some), _About(some, n))
        if before is not None and before.tobytes() != np.asarray(table)[:n].tobytes():
            # The rest of the batches are written into the same table.
            raise ModelError(
                f"The model changes the table that it is given ({some[0].text()}), so that later predictions would be "
                f"wrong. Pass a function that copies it first, as in lambda X: model.predict(X.copy())."
            )
        yield some, answer


def _filled(tile: Tile, frames: Frames, blocks: Sequence[GridBlock]) -> Any:
    """A table with a copy for each block."""
    numbers = [block.numbers for block in blocks if block.numbers is not None]
    if len(numbers) == len(blocks):
        return tile.fill_numbers(dict(zip(frames.infos, np.array(numbers).T, strict=True)))
    return tile.fill([block.changes() for block in blocks])


@dataclass(frozen=True, eq=False)
class _About:
    """What the rows of a batch were made for."""

    blocks: Sequence[GridBlock]
    n_rows: int

    def __call__(self, row: int | None) -> str:
        if row is not None:
            return self.blocks[row // self.n_rows].text()
        first, last = self.blocks[0].text(), self.blocks[-1].text()
        return first if len(self.blocks) == 1 else f"{first}, to {last}"


def _in_pieces(model: Predictor, frames: Frames, block: GridBlock, batch_rows: int) -> Predictions:
    """A block that is larger than a batch."""
    changes, pieces = block.changes(), []
    for start in range(0, frames.n_rows, batch_rows):
        piece = slice(start, min(start + batch_rows, frames.n_rows))
        table = frames.changed(piece, {name: _part(column, piece) for name, column in changes.items()})
        pieces.append(model.predict(table, piece.stop - piece.start, lambda row: block.text()))
    return np.concatenate(pieces)


def _part(column: Column, rows: slice) -> Column:
    return column.part(rows) if isinstance(column, Donors) else column[rows]


def batch_rows(memory: Any, n_columns: int) -> int:
    """Rows in a batch: as many as save time, and no more than memory (in MiB) allows."""
    number = isinstance(memory, int | float | np.number) and not isinstance(memory, bool)
    if not number or not np.isfinite(memory) or memory <= 0:
        raise ParameterError(f"memory must be a number of MiB above 0; got {memory!r}.")
    return int(max(1, min(BATCH_ROWS, memory * _MIB // (_COPIES * 8 * max(n_columns, 1)))))
