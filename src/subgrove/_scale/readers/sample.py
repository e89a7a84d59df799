"""A uniform sample of rows, the same for any partitioning: those whose keyed hash is smallest.

Each row has a number as good as random, made of the seed and its key alone. The n rows with the smallest are a sample
without replacement in which every set of n rows is equally likely; the smallest of two parts are among the smallest of
each, so that parts can be handled alone and in any order. Rows are given in the order of these numbers, which has
nothing to do with where they lie. Without `row_key` keys are row numbers, so that rows are chosen before any is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.random import Keys
from subgrove._scale.engines import Sums
from subgrove._scale.readers.data import Partitioned, Piece, Places
from subgrove._scale.readers.keys import numbered_keys, row_keys, salted
from subgrove._scale.readers.packing import packed, unpacked
from subgrove.exceptions import ColumnError

Run = Callable[[Callable[[Piece], Sums], Sequence[Piece]], Iterable[tuple[int, Sums]]]

_AT_ONCE = 1 << 20  # row numbers that are hashed at a time


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows drawn from data in partitions.

    Attributes
    ----------
    table : table
        The rows, in random order, in the container of the pieces.
    keys : uint64 array
        Their keys, in the same order; `row_keys` of a piece gives the same.
    n : int
        How many there are.
    of : int
        From how many they were drawn.
    """

    table: Any
    keys: Keys
    n: int
    of: int


def one_after_another(work: Callable[[Piece], Sums], pieces: Sequence[Piece]) -> Iterable[tuple[int, Sums]]:
    """The plainest way to carry out work: in this process, piece by piece."""
    return ((number, work(piece)) for number, piece in enumerate(pieces))


def sample_rows(
    data: Partitioned,
    columns: Sequence[str],
    n: int,
    seed: int,
    row_key: str | None = None,
    run: Run = one_after_another,
) -> Sample:
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
        The column that tells rows apart; then the order of rows does not matter either.
    run : function
        Carries out work on pieces and gives (number of the piece, arrays) for each, as `carry_out` of the engines does.
    """
    drawn = _smallest_numbers(data, n, seed) if row_key is None else _smallest_keys(data, n, seed, row_key, run)
    order = np.argsort(drawn.rows)
    starts = np.array([piece.first_row for piece in data.pieces] + [data.n_rows])
    borders = np.searchsorted(drawn.rows[order], starts)
    asked = [k for k in range(len(data.pieces)) if borders[k + 1] > borders[k]]
    pieces = [data.pieces[k] for k in asked]
    places = {
        piece.first_row: drawn.rows[order[borders[k] : borders[k + 1]]] - piece.first_row
        for k, piece in zip(asked, pieces, strict=True)
    }
    parts = [sums["rows"] for _, sums in run(_Taking(tuple(columns), places), pieces)]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))  # from the order of reading to that of the hash
    return Sample(unpacked(parts, data.empty, columns, back), drawn.keys, len(drawn.keys), data.n_rows)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Numbers of rows, their keys and hashes; in the order of the hashes."""

    rows: npt.NDArray[np.int64]
    keys: Keys
    hashes: Keys

    @classmethod
    def of(cls, rows: npt.NDArray[np.int64], keys: Keys, seed: int, n: int) -> _Drawn:
        hashes = salted(keys, seed, "sample")
        if len(keys) > n:
            near = np.argpartition(hashes, n)[: n + 1]
            rows, keys, hashes = rows[near], keys[near], hashes[near]
        order = np.lexsort((rows, hashes))[:n]
        return cls(rows[order], keys[order], hashes[order])

    def merged(self, other: _Drawn, seed: int, n: int) -> _Drawn:
        rows, keys = np.concatenate([self.rows, other.rows]), np.concatenate([self.keys, other.keys])
        return _Drawn.of(rows, keys, seed, n)


def _smallest_numbers(data: Partitioned, n: int, seed: int) -> _Drawn:
    drawn = _Drawn(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint64))
    for start in range(0, data.n_rows, _AT_ONCE):
        stop = min(start + _AT_ONCE, data.n_rows)
        keys = numbered_keys(start, stop - start)
        rows = np.arange(start, stop)
        if len(drawn.hashes) == n:  # most rows are far from being among the smallest: they need no sorting
            near = salted(keys, seed, "sample") < drawn.hashes[-1]
            rows, keys = rows[near], keys[near]
        drawn = drawn.merged(_Drawn.of(rows, keys, seed, n), seed, n)
    return drawn


def _smallest_keys(data: Partitioned, n: int, seed: int, row_key: str, run: Run) -> _Drawn:
    drawn = _Drawn(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint64))
    for _, sums in run(_Keying(row_key, seed, n), data.pieces):
        other = _Drawn(sums["rows"], sums["keys"], sums["hashes"])
        drawn = drawn.merged(other, seed, n)
    same = len(drawn.keys) - len(np.unique(drawn.keys))
    if same:
        raise ColumnError(
            f"row_key names {row_key!r}, which does not tell rows apart: of {len(drawn.keys):,} rows, {same:,} have "
            f"the value of another. Name a column whose values differ from row to row, or leave row_key out."
        )
    return drawn


@dataclass(frozen=True)
class _Keying:
    """Work: the smallest hashes of a piece."""

    row_key: str
    seed: int
    n: int

    def __call__(self, piece: Piece) -> Sums:
        keys = row_keys(piece, piece.read([self.row_key]), self.row_key)
        rows = np.arange(piece.first_row, piece.first_row + piece.n_rows)
        drawn = _Drawn.of(rows, keys, self.seed, self.n)
        return {"rows": drawn.rows, "keys": drawn.keys, "hashes": drawn.hashes}


@dataclass(frozen=True, eq=False)
class _Taking:
    """Work: the chosen rows of a piece, as bytes."""

    columns: tuple[str, ...]
    places: Mapping[int, Places]

    def __call__(self, piece: Piece) -> Sums:
        return {"rows": packed(piece.take(self.columns, self.places[piece.first_row]))}
