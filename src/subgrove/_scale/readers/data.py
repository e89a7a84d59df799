"""Large data: chunks that are read one at a time, and how many rows each has.

A chunk holds where its rows are, not the rows. So chunks are small, can be sent to other processes, and are read there.
Each chunk knows the number of its first row among all rows; that makes draws and samples the same for any partitioning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Keys, hash64, mix64
from subgrove._core.text import quote
from subgrove.exceptions import ColumnError, ParameterError

Places = npt.NDArray[np.intp]


class ChunkReader(Protocol):
    """Where the rows of a chunk are; picklable and small."""

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some of the rows, by their places in the chunk, which increase."""


@dataclass(frozen=True, eq=False)
class SeenRows:
    """The first few sampled rows of a chunk, and a digest of their values in each column that was read."""

    places: Places
    digests: Mapping[str, int]

    @classmethod
    def of(cls, places: Places, rows: Any) -> SeenRows:
        """The first few of some rows of a chunk, with their places in it."""
        table = nw.from_native(rows, eager_only=True)[:_SEEN_ROWS]
        return cls(places[:_SEEN_ROWS], {name: _digest(table[name]) for name in table.columns})

    def differ(self, chunk: Any) -> bool:
        """Whether these rows have other values in the table of the chunk."""
        table = nw.from_native(chunk, eager_only=True)[self.places]
        known = [name for name in table.columns if name in self.digests]
        return any(_digest(table[name]) != self.digests[name] for name in known)


_SEEN_ROWS = 5


def _digest(column: Any) -> int:
    by_address: Any = object.__repr__  # objects that print as their address are known by their type
    return hash64(*(type(one) if type(one).__repr__ is by_address else repr(one) for one in column.to_list()))


@dataclass(frozen=True)
class Chunk:
    """What one task handles: some rows that follow each other.

    Attributes
    ----------
    name : str
        For people, as in "part-003.parquet, rows 500,000 to 749,999".
    first_row : int
        Number of its first row among all rows of the data, from 0.
    n_rows : int
        How many there are.
    reader : Reader
        Where they are.
    seen : SeenRows, optional
        Rows that were read before, which must be the same again.
    """

    name: str
    first_row: int
    n_rows: int
    reader: ChunkReader
    seen: SeenRows | None = None

    def read(self, columns: Sequence[str]) -> Any:
        """These columns of its rows, as a table in the user's kind of container."""
        table = self._read(self.reader.read, columns)
        if self.seen is not None and self.seen.differ(table):
            raise OSError(f"{self.name} was changed during the run. Run again when all of it is complete")
        return table

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some of its rows, by their places in it, which increase."""
        return self._read(self.reader.take, columns, places)

    def _read(self, read: Any, *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except MemoryError:
            raise
        except Exception as error:  # each library has errors of its own, which share no class
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise OSError(f"{self.name} could not be read: {text}") from error


@dataclass(frozen=True, eq=False)
class ChunkedData:
    """Rows in chunks, the same columns in each.

    Attributes
    ----------
    chunks : tuple of Chunk
        In the order of their rows.
    columns : tuple of str
        Names of the columns, in order.
    n_rows : int
        Rows of all chunks.
    backend : {"pandas", "polars", "pyarrow"}
        Whose tables the chunks are read as, and results are given in.
    description : str
        What they come from, for people: "rows/ (12 Parquet files)".
    empty : table
        The columns without a row: their types are those of each chunk.
    beside : tuple of str
        Columns that are read by name only, since pandas made them its index; good as `row_key`.
    kept : object
        What must live as long as the chunks, such as a temporary folder.
    stamp : str
        Changes when a file is written again, though its name and its number of rows stay; "" if that is not known.
    """

    chunks: tuple[Chunk, ...]
    columns: tuple[str, ...]
    n_rows: int
    backend: str
    description: str
    empty: Any = None
    beside: tuple[str, ...] = ()
    kept: Any = None
    stamp: str = ""

    def reject_unknown(self, columns: Sequence[str], argument: str) -> None:
        """All of these columns are there."""
        unknown = [name for name in columns if name not in self.columns and name not in self.beside]
        if unknown:
            listed = quote(self.columns[:30]) + (" ..." if len(self.columns) > 30 else "")
            raise ParameterError(
                f"{argument} names {quote(unknown)}, which {self.description} does not have. Its columns: {listed}."
            )


_STEP = 0x9E3779B97F4A7C15  # of splitmix64, from one number to the next


def row_keys(chunk: Chunk, table: Any, row_key: str | None = None) -> Keys:
    """A key for each row of a chunk.

    Parameters
    ----------
    chunk : Chunk
        The chunk; without `row_key` it is all that is needed.
    table : table
        The rows of the chunk, with the column `row_key`.
    row_key : str, optional
        A column whose values differ from row to row: numbers, strings, dates.
    """
    if row_key is None:
        return numbered_keys(chunk.first_row, chunk.n_rows)
    return hash_column(table[row_key], row_key)


def numbered_keys(first_row: int, n_rows: int) -> Keys:
    """Keys of rows by their numbers."""
    return mix64(np.arange(first_row, first_row + n_rows, dtype=np.uint64), _STEP)


def salt_keys(keys: Keys, seed: int, purpose: str) -> Keys:
    """Whole numbers as good as random, from keys, a seed and what they are for."""
    return mix64(keys ^ np.uint64(hash64(f"{seed}/{purpose}")), _STEP)


def hash_column(column: Any, name: str) -> Keys:
    """Keys from values: equal values, equal keys, whatever the container and the width of numbers."""
    import pandas as pd

    values = _plain(column)
    if pd.isna(values).any():
        raise ColumnError(
            f"row_key names {name!r}, which has missing values. A key identifies rows: name a column that has a "
            f"value in each row, or leave row_key out (rows are then identified by their number)."
        )
    if values.dtype.kind in "Mm":
        values = values.astype("M8[us]" if values.dtype.kind == "M" else "m8[us]").view(np.int64)
    if values.dtype.kind in "biu":
        return mix64(values.astype(np.uint64), _STEP)  # negative numbers wrap around, each to its own
    if values.dtype.kind == "f":
        return mix64((values.astype(np.float64) + 0.0).view(np.uint64), _STEP)  # -0.0 and 0.0 are equal
    return mix64(pd.util.hash_array(values.astype(object), categorize=False), _STEP)


def _plain(column: Any) -> npt.NDArray[Any]:
    """Values as numpy has them; strings as objects."""
    import pandas as pd

    if not isinstance(column, pd.Series):
        column = pd.Series(column.to_pandas() if hasattr(column, "to_pandas") else np.asarray(column))
    series: pd.Series = column
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    if not isinstance(series.dtype, np.dtype) and not series.hasnans and series.dtype.kind in "biuf":
        return np.asarray(series.to_numpy(getattr(series.dtype, "numpy_dtype", None)))
    return np.asarray(series.to_numpy())
