"""A uniform sample of rows, the same for any partitioning: those whose keyed hash is smallest.

Each row has a number as good as random, made of the seed and its key alone. The n rows with the smallest are a sample
without replacement in which every set of n rows is equally likely; the smallest of two parts are among the smallest of
each, so that parts can be handled alone and in any order. Rows are given in the order of these numbers, which has
nothing to do with where they lie. Without `row_key` keys are row numbers, so that rows are chosen before any is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Keys
from subgrove._scale.engines import ChunkArrays
from subgrove._scale.readers.data import (
    Chunk,
    ChunkedData,
    Places,
    SeenRows,
    numbered_keys,
    row_keys,
    salt_keys,
)
from subgrove.exceptions import ColumnError

RunChunks = Callable[[Callable[[Chunk], ChunkArrays], Sequence[Chunk]], Iterable[tuple[int, ChunkArrays]]]

_AT_ONCE = 1 << 20  # row numbers that are hashed at a time


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Rows drawn from large data.

    Attributes
    ----------
    table : table
        The rows, in random order, in the container of the chunks.
    keys : uint64 array
        Their keys, in the same order; `row_keys` of a chunk gives the same.
    rows : int array
        Their numbers among all rows, in the same order.
    n : int
        How many there are.
    of : int
        From how many they were drawn.
    chunks : tuple of Chunk
        All chunks of the data, which raise an error if a row that was drawn is another when they are read.
    """

    table: Any
    keys: Keys
    rows: npt.NDArray[np.int64]
    n: int
    of: int
    chunks: tuple[Chunk, ...]


def run_serially(work: Callable[[Chunk], ChunkArrays], chunks: Sequence[Chunk]) -> Iterable[tuple[int, ChunkArrays]]:
    """The plainest way to carry out work: in this process, chunk by chunk."""
    return ((number, work(chunk)) for number, chunk in enumerate(chunks))


def sample_rows(
    data: ChunkedData,
    columns: Sequence[str],
    n: int,
    seed: int,
    row_key: str | None = None,
    run: RunChunks = run_serially,
) -> SampledRows:
    """A uniform sample of at most n rows, without replacement.

    Parameters
    ----------
    data : Partitioned
        What to draw from.
    columns : sequence of str
        Which columns to read.
    n : int
        How many rows; all of them, in random order, if there are fewer.
    seed : int
        The same seed gives the same rows, for any partitioning.
    row_key : str, optional
        Column that identifies rows; then the order of rows does not matter either.
    run : function
        Carries out work on chunks and gives (number of the chunk, arrays) for each, as `carry_out` of the engines does.
    """
    drawn = _smallest_numbers(data, n, seed) if row_key is None else _smallest_keys(data, n, seed, row_key, run)
    order = np.argsort(drawn.rows)
    starts = np.array([chunk.first_row for chunk in data.chunks] + [data.n_rows])
    borders = np.searchsorted(drawn.rows[order], starts)
    numbers = [k for k in range(len(data.chunks)) if borders[k + 1] > borders[k]]
    chunks = [data.chunks[k] for k in numbers]
    places = {
        chunk.first_row: drawn.rows[order[borders[k] : borders[k + 1]]] - chunk.first_row
        for k, chunk in zip(numbers, chunks, strict=True)
    }
    read = [sums["rows"] for _, sums in run(partial(_take_work, tuple(columns), places), chunks)]
    seen = {
        chunk.first_row: SeenRows.of(places[chunk.first_row], rows) for chunk, rows in zip(chunks, read, strict=True)
    }
    back = np.argsort(order)  # from the order of reading to that of the hash
    table = nw.maybe_reset_index(nw.concat([nw.from_native(rows) for rows in read])[back]).to_native()
    checked = tuple(replace(chunk, seen=seen.get(chunk.first_row)) for chunk in data.chunks)
    return SampledRows(table, drawn.keys, drawn.rows, len(drawn.keys), data.n_rows, checked)


class _Drawn(NamedTuple):
    """Numbers of rows and their keys, in the order of their hashes."""

    rows: npt.NDArray[np.int64]
    keys: Keys


_NONE = _Drawn(np.empty(0, np.int64), np.empty(0, np.uint64))


def _smallest(drawn: _Drawn, rows: npt.NDArray[np.int64], keys: Keys, seed: int, n: int) -> _Drawn:
    """Of the rows drawn so far and others, the n with the smallest hashes."""
    rows, keys = np.concatenate([drawn.rows, rows]), np.concatenate([drawn.keys, keys])
    hashes = salt_keys(keys, seed, "sample")
    if len(keys) > n:
        near = np.argpartition(hashes, n)[: n + 1]
        rows, keys, hashes = rows[near], keys[near], hashes[near]
    order = np.lexsort((rows, hashes))[:n]
    return _Drawn(rows[order], keys[order])


def _smallest_numbers(data: ChunkedData, n: int, seed: int) -> _Drawn:
    drawn = _NONE
    for start in range(0, data.n_rows, _AT_ONCE):
        rows = np.arange(start, min(start + _AT_ONCE, data.n_rows))
        keys = numbered_keys(start, len(rows))
        if len(drawn.keys) == n:  # most rows are far from being among the smallest: they need no sorting
            near = salt_keys(keys, seed, "sample") < salt_keys(drawn.keys[-1:], seed, "sample")
            rows, keys = rows[near], keys[near]
        drawn = _smallest(drawn, rows, keys, seed, n)
    return drawn


def _smallest_keys(data: ChunkedData, n: int, seed: int, row_key: str, run: RunChunks) -> _Drawn:
    drawn = _NONE
    for _, sums in run(partial(_hash_work, row_key, seed, n), data.chunks):
        drawn = _smallest(drawn, sums["rows"], sums["keys"], seed, n)
    same = len(drawn.keys) - len(np.unique(drawn.keys))
    if same:
        raise ColumnError(
            f"row_key names {row_key!r}, which does not identify rows: of {len(drawn.keys):,} rows, {same:,} have "
            f"the value of another. Name a column whose values differ from row to row, or leave row_key out."
        )
    return drawn


def _hash_work(row_key: str, seed: int, n: int, chunk: Chunk) -> ChunkArrays:
    """Work: the smallest hashes of a chunk."""
    keys = row_keys(chunk, chunk.read([row_key]), row_key)
    rows = np.arange(chunk.first_row, chunk.first_row + chunk.n_rows)
    return _smallest(_NONE, rows, keys, seed, n)._asdict()


def _take_work(columns: tuple[str, ...], places: Mapping[int, Places], chunk: Chunk) -> ChunkArrays:
    """Work: the chosen rows of a chunk."""
    return {"rows": chunk.take(columns, places[chunk.first_row])}
