"""`StepFunctions`: predictions of rows of which one column changes, from one pass over the trees for all columns.

With all columns but one fixed, a tree ensemble is a step function of that column. Requirements this design meets:

- one pass serves all columns: only columns on a row's own path can change its prediction;
- rows go through the kernel in blocks that stay in the processor's cache; no array of all rows by places is made;
- threads share the blocks; sums over rows are formed in an order that does not depend on their number;
- a value that leaves the prediction unchanged has an increase of exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._models.tree_ensemble.ensemble import TreeEnsemble, require
from subgrove._models.tree_ensemble.inputs import TreeInputs
from subgrove._models.tree_ensemble.places import ColumnPlaces, Places, column_places, placed_nodes
from subgrove._native.loader import tree_steps as compiled

Result = TypeVar("Result")
kernel: Any = compiled  # None without a compiler: `StepFunctions` is then not made
_BLOCK_NUMBERS = 1 << 16  # of a block of rows at all places: half a megabyte
_MAX_DENSE = 1 << 16  # places of all columns, above which only those where a prediction changes are stored
_LIST_ROWS = 512
_BUFFER_ROWS = 64  # rows that are transposed at once, unless blocks are larger
_SHARES = 16  # of the rows, each with sums of its own, so that these do not depend on the number of threads


def in_threads(function: Callable[[Any], Result], items: Iterable[Any], n_threads: int) -> Iterator[Result]:
    """Yield the results of a function for each item, in their order, computed in several threads."""
    if n_threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(function, items)


def one_probability(ensemble: TreeEnsemble) -> TreeEnsemble:
    """Return a forest of two classes with the probability of the second one only."""
    if ensemble.n_classes != 2 or ensemble.n_outputs != 2 or ensemble.link != "identity":
        return ensemble
    return replace(
        ensemble,
        n_outputs=1,
        output=np.zeros_like(ensemble.output),
        value=np.ascontiguousarray(ensemble.value[:, 1:]),
        base=ensemble.base[1:],
    )


@dataclass(frozen=True, eq=False)
class StepBlock:
    """Steps of a block of rows.

    Attributes
    ----------
    rows : slice
        The rows.
    margins : float array (m, K)
        Margins of the baseline rows.
    steps : float array (entries, K)
        Difference of the margins at each entry.
    pointers : int array (m * p + 1) or None
        Entries of each row and column; None if all places are entries, with `slots` of them a row.
    starts : int array or None
        First place of each entry.
    missing : float array (m * p, K) or None
        Difference at the missing value of each column.
    """

    rows: slice
    margins: Floats
    steps: Floats
    pointers: Rows | None = None
    starts: Places | None = None
    missing: Floats | None = None

    def row_pointers(self, n_columns: int) -> Rows:
        """Return the range of the entries of each row."""
        if self.pointers is None:
            return np.arange(len(self.margins) + 1) * (len(self.steps) // len(self.margins))
        return np.ascontiguousarray(self.pointers[::n_columns])


@dataclass(frozen=True, eq=False)
class ChangedColumn:
    """Some rows with one column at other places.

    Attributes
    ----------
    column : int
        The column.
    rows : int array (m,)
        The rows, increasing.
    places : int array (B,) or (B, m)
        Places that all rows take, or those of each row.
    """

    column: int
    rows: Rows
    places: Places


class StepFunctions:
    """Step functions of the columns of a table.

    Parameters
    ----------
    ensemble : TreeEnsemble
        The model.
    inputs : TreeInputs
        How its inputs are computed from the user's columns.
    rows : float array (n, n_inputs)
        Encoded rows.
    donors : sequence of float arrays (m, n_inputs)
        Encoded rows whose values the rows may receive.
    n_threads : int
        Number of threads that find places.
    """

    def __init__(
        self,
        ensemble: TreeEnsemble,
        inputs: TreeInputs,
        rows: Floats,
        donors: Sequence[Floats] = (),
        n_threads: int = 1,
    ) -> None:
        require(compiled is not None, "the compiled part is not installed")
        self.ensemble = ensemble = one_probability(ensemble)
        self.n_rows, self.n_threads = len(rows), n_threads
        self.columns: tuple[ColumnPlaces, ...] = column_places(ensemble, inputs, [rows, *donors])
        self.n_columns = len(self.columns)
        self.any_missing = any(bool(np.isnan(table).any()) for table in (rows, *donors))
        nodes, self.base = placed_nodes(ensemble, self.columns, any_missing=self.any_missing)
        sizes = np.array([column.n_places + 2 for column in self.columns])
        self.starts = np.concatenate(([0], np.cumsum(sizes)))
        self.slots = int(self.starts[-1]) + 1  # of a row, for each output
        dense = self.slots * ensemble.n_outputs <= _MAX_DENSE
        self.kernel = kernel.ensemble(*nodes, dense)
        self.is_dense = bool(kernel.has_masks(self.kernel))
        # Of all rows, in the smallest integers; kernels take int32.
        self._place_type = np.min_scalar_type(int(sizes.max(initial=0)))
        self.places = self.places_of(rows)

    def for_rows(self, rows: Rows) -> StepFunctions:
        """Return the step functions of some of the rows."""
        some = copy(self)
        some.places, some.n_rows = self.places[rows], len(rows)
        return some

    def with_rows(self, rows: Floats) -> StepFunctions:
        """Return the step functions of other encoded rows; raise `NotReadable` if they have values without a place."""
        require(self.any_missing or not np.isnan(rows).any(), "rows have missing values, which had no place before")
        some = copy(self)
        some.places, some.n_rows = self.places_of(rows), len(rows)
        return some

    def places_of(self, rows: Floats) -> Places:
        """Return the places of encoded rows, (m, columns)."""
        places = np.empty((len(rows), self.n_columns), dtype=self._place_type)

        def fill(j: int) -> None:
            places[:, j] = self.columns[j].of(rows[:, list(self.columns[j].inputs)])

        for _ in in_threads(fill, range(self.n_columns), self.n_threads):
            pass
        return places

    def predict(self, places: Places) -> Floats:
        """Return the margins of rows given by their places, (m, K)."""
        margins = np.empty((len(places), self.ensemble.n_outputs))
        kernel.margins(self.kernel, np.ascontiguousarray(places, dtype=np.int32), len(places), margins)
        margins += self.base
        return margins

    def block_rows(self) -> int:
        """Return the number of rows of a block."""
        if not self.is_dense:
            return _LIST_ROWS
        return int(np.clip(_BLOCK_NUMBERS // (self.slots * self.ensemble.n_outputs) // 8 * 8, 8, 256))

    def blocks(self, rows: slice) -> Iterator[StepBlock]:
        """Yield the steps of rows block by block."""
        size, outputs = self.block_rows(), self.ensemble.n_outputs
        room = 0
        for start in range(rows.start, rows.stop, size):
            part = slice(start, min(start + size, rows.stop))
            places = np.ascontiguousarray(self.places[part], dtype=np.int32)
            n = len(places)
            margins = np.empty((n, outputs))
            if self.is_dense:
                steps = np.empty((n, outputs, self.slots))
                kernel.dense(self.kernel, places, n, margins, steps)
                yield StepBlock(part, margins + self.base, steps.transpose(0, 2, 1).reshape(-1, outputs))
                continue
            pointers = np.empty(n * self.n_columns + 1, dtype=np.int64)
            missing = np.empty((n * self.n_columns, outputs))
            while True:
                starts, steps = np.empty(room, dtype=np.int32), np.empty((room, outputs))
                needed = kernel.lists(self.kernel, places, n, room, margins, pointers, starts, steps, missing)
                if needed <= room:
                    break
                room = needed + needed // 4
            yield StepBlock(part, margins + self.base, steps[:needed], pointers, starts[:needed], missing)

    def shares(self) -> list[slice]:
        """Return parts of the rows, each a whole number of blocks, whose sums are formed on their own."""
        size = self.block_rows()
        blocks = -(-self.n_rows // size)
        ends = np.unique(np.minimum(np.linspace(0, blocks, min(_SHARES, blocks) + 1).astype(int) * size, self.n_rows))
        return [slice(int(start), int(end)) for start, end in pairwise(ends)]

    def changed_margins(self, wanted: Sequence[ChangedColumn]) -> list[Floats]:
        """Return the margins of each request, (B, K, m), from one pass over the rows."""
        outputs = self.ensemble.n_outputs
        found: dict[int, Floats] = {}
        common: list[int] = []
        if self.is_dense:  # all rows at the same places: one selection of slots for all columns
            common = [at for at, each in enumerate(wanted) if each.places.ndim == 1 and len(each.rows) == self.n_rows]
        if common:
            slots = np.concatenate([self.starts[wanted[at].column] + wanted[at].places for at in common])
            together = np.empty((len(slots), outputs, self.n_rows))
            most = max(_BUFFER_ROWS, self.block_rows())
            buffer, start, filled = np.empty((most, len(slots), outputs)), 0, 0
            ends = np.cumsum([len(wanted[at].places) for at in common])
            found = dict(zip(common, np.split(together, ends[:-1]), strict=True))
        others = [at for at in range(len(wanted)) if at not in found]
        for at in others:
            found[at] = np.empty((len(wanted[at].places), outputs, len(wanted[at].rows)))
        for block in self.blocks(slice(0, self.n_rows)):
            if common:
                n = len(block.margins)
                selected = buffer[filled : filled + n]
                block.steps.reshape(n, self.slots, outputs).take(slots, axis=1, out=selected, mode="clip")
                selected += block.margins[:, None, :]
                filled += n
                if filled > most - n or block.rows.stop == self.n_rows:
                    together[:, :, start : start + filled] = buffer[:filled].transpose(1, 2, 0)
                    start, filled = start + filled, 0
            for at in others:
                each = wanted[at]
                first, last = each.rows.searchsorted((block.rows.start, block.rows.stop))
                if first < last:
                    local = each.rows[first:last] - block.rows.start
                    own = each.places[:, first:last] if each.places.ndim == 2 else each.places[:, None]
                    values = self._steps_at(block, each.column, local, np.broadcast_to(own, (len(own), len(local))))
                    values += block.margins[local][:, None, :]
                    found[at][:, :, first:last] = values.transpose(1, 2, 0)
        return [found[at] for at in range(len(wanted))]

    def _steps_at(self, block: StepBlock, column: int, local: Rows, places: Places) -> Floats:
        """Return the steps of rows of a block at places (B, m) of a column: (m, B, K)."""
        n, outputs = len(block.margins), self.ensemble.n_outputs
        if block.pointers is None:
            at = local[:, None] * self.slots + self.starts[column] + places.T
            return np.asarray(block.steps.take(at, axis=0))
        own = np.zeros((n, len(places)), dtype=np.int32)
        own[local] = places.T
        found = np.empty((n, len(places), outputs))
        kernel.look_up(
            self.kernel, n, outputs, block.pointers, block.starts, len(block.steps), block.steps, block.missing,
            np.array([column]), 1, own, len(places), found,
        )  # fmt: skip
        return found[local]
