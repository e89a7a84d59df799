"""Lazy frames of polars in chunks, each collected on its own as a polars frame.

A plan that only scans Parquet files (or a frame in memory) and computes row by row is sliced: polars then reads the row
groups of the slice and no others. Any other plan (a filter, a join, a sort) would be carried out anew for each chunk,
and need not give rows in the same order each time; its rows are written to a temporary Parquet file once, as a stream,
and that is sliced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from subgrove._scale.readers.data import Chunk, ChunkedData, Places
from subgrove.exceptions import InputError

# Lines of a plan whose slices cost what they hold.
_PLAIN = ("PARQUET SCAN", "PROJECT", "SLICE: ", "ROW_INDEX", "ESTIMATED ROWS", "SIMPLE Π", "WITH_COLUMNS", "SELECT ")
_BY_ROW = (*_PLAIN, "[", "DF [")


@dataclass(frozen=True, eq=False)
class LazyReader:
    """Some rows of a plan."""

    plan: Any
    first: int
    n_rows: int

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""
        return self._rows(columns)

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some of the rows."""
        return self._rows(columns)[places]

    def _rows(self, columns: Sequence[str]) -> Any:
        rows = self.plan.slice(self.first, self.n_rows).select(list(columns)).collect()
        if len(rows) != self.n_rows:
            raise ValueError(f"{len(rows):,} rows where there were {self.n_rows:,}; the data have changed meanwhile")
        return rows


class TemporaryFolder:
    """A temporary folder that is removed when nobody holds it any more, or at the end of the program."""

    def __init__(self, place: Path) -> None:
        self.place = place
        finalize(self, rmtree, place, ignore_errors=True)


def chunks_of_lazy_frame(X: Any, argument: str, chunk_rows: int) -> ChunkedData:
    """The chunks of a LazyFrame."""
    import polars as pl

    schema, kept = _schema(X, argument), None
    description = f"the LazyFrame {argument}"
    if not slices_are_cheap(X):
        kept = TemporaryFolder(Path(mkdtemp(prefix="subgrove-")))
        path = kept.place / "rows.parquet"
        X.sink_parquet(path, row_group_size=chunk_rows)
        X, description = pl.scan_parquet(path, glob=False), f"{description} (written to a temporary file)"
    n_rows = int(X.select(pl.len()).collect().item())
    chunks = tuple(
        Chunk(f"rows {first:,} to {first + n - 1:,} of {description}", first, n, LazyReader(X, first, n))
        for first in range(0, n_rows, chunk_rows)
        if (n := min(chunk_rows, n_rows - first))
    )
    empty = pl.DataFrame(schema=schema)
    return ChunkedData(chunks, tuple(schema.names()), n_rows, "polars", description, empty, kept=kept)


def _schema(X: Any, argument: str) -> Any:
    """Columns and types; a plan that cannot be carried out is reported here, before anything is read."""
    import polars as pl

    try:
        return X.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        text = str(error).splitlines()[0].rstrip(". ")
        raise InputError(f"{argument} is a LazyFrame whose plan polars rejects: {text}. Mend the plan.") from error


def slices_are_cheap(plan: Any) -> bool:
    """Whether a slice of the plan reads its own rows and no others."""
    lines = [line.strip().upper() for line in plan.slice(1, 1).explain().splitlines() if line.strip()]
    if not all(line.startswith(_BY_ROW) for line in lines):
        return False
    sources = [line.startswith("DF [") or line.startswith("PARQUET SCAN") for line in lines]
    pushed = any(line.startswith("SLICE: ") for line in lines) or any(line.startswith("DF [") for line in lines)
    return sum(sources) == 1 and pushed
