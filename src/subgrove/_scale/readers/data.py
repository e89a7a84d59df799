"""Large data: chunks that are read one at a time, and how many rows each has.

A chunk holds where its rows are, not the rows. So chunks are small, can be sent to other processes, and are read there.
Each chunk knows the number of its first row among all rows; that makes draws and samples the same for any partitioning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from subgrove._core.text import quote
from subgrove.exceptions import ParameterError

Places = npt.NDArray[np.intp]


class ChunkReader(Protocol):
    """Where the rows of a chunk are; picklable and small."""

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""
        ...

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some of the rows, by their places in the chunk, which increase."""
        ...


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
    """

    name: str
    first_row: int
    n_rows: int
    reader: ChunkReader

    def read(self, columns: Sequence[str]) -> Any:
        """These columns of its rows, as a table in the user's kind of container."""
        return self._told(self.reader.read, columns)

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some of its rows, by their places in it, which increase."""
        return self._told(self.reader.take, columns, places)

    def _told(self, read: Any, *asked: Any) -> Any:
        try:
            return read(*asked)
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
