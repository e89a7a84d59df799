"""What is done with one chunk of data: read it, ask the model about it and about its redraws, and return sums.

Requirements this design meets:

- a chunk is read once and held once; the model is asked in batches of its rows, and only a batch is copied;
- no table is built for a redraw: the redrawn column is written, and put back;
- sums are all that is kept: nothing of the chunk outlives the call;
- draws depend on the seed, the feature and the keys of rows, so that chunks need nothing of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.random import KeyedStreams, Keys
from subgrove._data.replace_columns import Rows
from subgrove._models.predictor import Predictor, Target, missing_in, read_target
from subgrove._scale.engines import ChunkArrays
from subgrove._scale.readers import Chunk, row_keys
from subgrove._scoring.chunk_batch import ChunkBatch, evaluated_rows, raw_column
from subgrove._scoring.chunk_predict import ChunkPredictor
from subgrove._scoring.chunk_sums import ChunkSums
from subgrove._scoring.row_losses import RowLosses
from subgrove._scoring.score import resample
from subgrove.exceptions import InputError, SubgroveError, SubgroveWarning
from subgrove.losses import Loss
from subgrove.samplers.base import Feature, FittedSampler, title


@dataclass(frozen=True)
class ColumnRoles:
    """Columns of the data: those of the model, and others by what they are for."""

    model: tuple[str, ...]
    target: str
    weights: str | None = None
    row_key: str | None = None

    @property
    def read(self) -> tuple[str, ...]:
        """All that is read of a chunk."""
        others = (self.target, self.weights, self.row_key)
        return (*self.model, *dict.fromkeys(name for name in others if name and name not in self.model))


@dataclass(eq=False)
class ChunkWork:
    """The work on a chunk; shipped once to each process.

    Attributes
    ----------
    model : Model
        Who is asked.
    names : Names
        Columns of the data.
    samplers : mapping
        Feature -> what redraws it.
    losses : tuple of Loss
        All have a value for each row.
    classes : tuple
        Labels of the classes.
    probabilities : bool
        Whether the model is asked for probabilities.
    n_repeats, seed : int
        Of draws.
    batch_rows : int
        Rows that the model is asked for at once.
    left_out : uint64 array
        Keys of rows that are not judged, ascending: the sampler was fitted on them.
    """

    model: Predictor
    names: ColumnRoles
    samplers: Mapping[Feature, FittedSampler]
    losses: tuple[Loss, ...]
    classes: tuple[Any, ...]
    probabilities: bool
    n_repeats: int
    seed: int
    batch_rows: int
    left_out: Keys
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)  # what draws of all chunks have in common

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "memory": {}, "model": self.model.fresh()}

    def __call__(self, chunk: Chunk) -> ChunkArrays:
        """Sums of a chunk."""
        try:
            return self._sums(chunk)
        except (SubgroveError, SubgroveWarning) as error:
            text = str(error)
            if chunk.name in text:
                raise
            raise type(error)(f"{chunk.name}: {text}") from error

    def _sums(self, chunk: Chunk) -> ChunkArrays:
        table = chunk.read(self.names.read)
        keys = row_keys(chunk, table, self.names.row_key)
        counted = None if self.names.weights is None else _weights(table, self.names.weights)
        y = raw_column(table, self.names.target)
        rows, n_left_out = evaluated_rows(keys, self.left_out, counted)
        total = ChunkSums(len(self.samplers), len(self.losses), self.n_repeats)
        total.n_rows, total.n_left_out = len(rows), n_left_out
        model = self.model.fresh()
        for at in range(0, len(rows), self.batch_rows):
            some = rows[at : at + self.batch_rows]
            place = slice(int(some[0]), int(some[-1]) + 1)
            where: slice | Rows = place if place.stop - place.start == len(some) else some
            target = self._target(y[where], chunk.first_row + some)
            own = None if counted is None else counted[where]
            batch = ChunkBatch.of(table, self.names.model, where)
            about = partial(_about, chunk, some)
            asker = ChunkPredictor(model, RowLosses(self.losses, target, self.probabilities), own, batch, about)
            self._add_batch(total, asker, keys[where])
        total.n_predicted += np.array([model.n_rows, model.n_calls])
        return total.arrays()

    def _target(self, y: npt.NDArray[Any], numbers: Rows) -> Target:
        """The y of a batch; rows without one are told by their numbers among all rows."""
        try:
            return read_target(y, len(y), self.classes, self.losses, probabilities=self.probabilities)
        except InputError as error:
            absent = missing_in(y)
            if not absent.any():
                raise
            raise InputError(
                f"y, {self.names.target!r}, is missing in {int(absent.sum()):,} of the rows that are judged, the first "
                f"of them row {int(numbers[absent][0]):,}. Leave these rows out of the data."
            ) from error

    def _add_batch(self, total: ChunkSums, asker: ChunkPredictor, keys: Keys) -> None:
        total.add_baseline(asker.ask_original(len(keys)), asker.weights)
        for number, (feature, fitted) in enumerate(self.samplers.items()):
            memory = self.memory.setdefault(title(feature), {"columns": {}})
            rngs = KeyedStreams(self.seed, title(feature), self.n_repeats, rows=keys, memory=memory)
            redraw = resample(fitted.for_feature(feature), asker.batch.read_by(fitted), feature, rngs, None)
            frames = asker.batch.frames_for(fitted, memory["columns"])
            total.add(number, asker.ask(feature, redraw, frames, self.n_repeats))


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
