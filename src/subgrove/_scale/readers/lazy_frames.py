"""Lazy frames of polars and Dask in chunks.

A polars plan that only scans Parquet files (or a frame in memory) and computes row by row is sliced: polars then reads
only the row groups of the slice. Any other plan (a filter, a join, a sort) would run again for each chunk, and need not
return rows in the same order each time; its rows are streamed to a temporary Parquet file once, and that is sliced.

Chunks of a Dask frame are its partitions. Each chunk holds the graph of its own partition, which runs where the chunk
is read. Rows are counted once, by the active scheduler; unknown levels of categorical columns take another pass.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from subgrove._core.files import TemporaryFolder
from subgrove._scale.readers.data import Chunk, ChunkedData, Places
from subgrove._scale.readers.files import reject_duplicate_names
from subgrove.exceptions import InputError

# Lines of a plan whose slices cost what they hold.
_PLAIN = ("PARQUET SCAN", "PROJECT", "SLICE: ", "ROW_INDEX", "ESTIMATED ROWS", "SIMPLE Π", "WITH_COLUMNS", "SELECT ")
_BY_ROW = (*_PLAIN, "[", "DF [")


@dataclass(frozen=True, eq=False)
class LazyReader:
    """Some rows of a lazy frame, which must still be as many when they are read."""

    frame: Any
    n_rows: int

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""
        rows = self.compute(list(columns))
        if len(rows) != self.n_rows:
            raise ValueError(f"{len(rows):,} rows where there were {self.n_rows:,}; the data have changed meanwhile")
        return rows

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some of the rows."""
        return nw.maybe_reset_index(nw.from_native(self.read(columns), eager_only=True)[places]).to_native()

    def compute(self, columns: list[str]) -> Any:
        """These columns of a polars plan."""
        return self.frame.select(columns).collect()


def chunks_of_lazy_frame(X: Any, argument: str, chunk_rows: int) -> ChunkedData:
    """The chunks of a LazyFrame."""
    import polars as pl

    try:
        schema = X.collect_schema()  # a plan that cannot be carried out is reported before anything is read
    except (pl.exceptions.PolarsError, OSError) as error:
        text = str(error).splitlines()[0].rstrip(". ")
        raise InputError(f"{argument} is a LazyFrame whose plan polars rejects: {text}. Mend the plan.") from error
    kept = None
    description = f"the LazyFrame {argument}"
    if not slices_are_cheap(X):
        kept = TemporaryFolder()
        path = kept.place / "rows.parquet"
        X.sink_parquet(path, row_group_size=chunk_rows)
        X, description = pl.scan_parquet(path, glob=False), f"{description} (written to a temporary file)"
    n_rows = int(X.select(pl.len()).collect().item())
    chunks = tuple(
        Chunk(f"rows {first:,} to {first + n - 1:,} of {description}", first, n, LazyReader(X.slice(first, n), n))
        for first in range(0, n_rows, chunk_rows)
        if (n := min(chunk_rows, n_rows - first))
    )
    empty = pl.DataFrame(schema=schema)
    return ChunkedData(chunks, tuple(schema.names()), n_rows, "polars", description, empty, kept=kept)


def slices_are_cheap(plan: Any) -> bool:
    """Whether a slice of the plan reads its own rows and no others."""
    lines = [line.strip().upper() for line in plan.slice(1, 1).explain().splitlines() if line.strip()]
    if not all(line.startswith(_BY_ROW) for line in lines):
        return False
    pushed = any(line.startswith(("SLICE: ", "DF [")) for line in lines)
    return pushed and sum(line.startswith(("DF [", "PARQUET SCAN")) for line in lines) == 1


@dataclass(frozen=True, eq=False)
class DaskReader(LazyReader):
    """One partition of a Dask frame."""

    persisted: bool = False

    def compute(self, columns: list[str]) -> Any:
        """These columns, computed here and not by a scheduler: the chunk is a task already."""
        selected = self.frame[columns]  # what a cluster holds, it gives
        rows = _from_cluster(selected) if self.persisted else selected.compute(scheduler="synchronous")
        return rows.reset_index(drop=True)


def _from_cluster(partition: Any) -> Any:
    from distributed import get_client, worker_client
    from distributed.worker import thread_state

    if hasattr(thread_state, "execution_state"):  # a task of the cluster steps aside while it waits for another
        with worker_client() as client:
            return client.compute(partition).result()
    return get_client().compute(partition).result()


def _is_persisted(X: Any) -> bool:
    """Whether its partitions are held by a cluster."""
    module = sys.modules.get("distributed")
    return module is not None and any(isinstance(value, module.Future) for value in _values(X.__dask_graph__()))


def _values(graph: Any) -> Iterator[Any]:
    for value in dict(graph).values():
        yield value
        yield getattr(value, "value", None)  # of a node that holds what was persisted


def chunks_of_dask(X: Any, argument: str) -> ChunkedData:
    """The partitions of a Dask DataFrame."""
    names = tuple(map(str, X.columns))
    reject_duplicate_names(names, f"the Dask frame {argument}")
    if names != tuple(X.columns):  # numbers, which are names by their digits, as elsewhere
        X = X.rename(columns=dict(zip(X.columns, names, strict=True)))
    unknown = [name for name, dtype in X.dtypes.items() if dtype == "category" and not X[name].cat.known]
    if unknown:
        X = X.categorize(columns=unknown)
    sizes = [int(size) for size in X.map_partitions(len, meta=("n", "int64")).compute()]
    chunks, first, persisted = [], 0, _is_persisted(X)
    for number, n_rows in enumerate(sizes):
        if n_rows:
            name = f"partition {number} of the Dask frame {argument}"
            chunks.append(Chunk(name, first, n_rows, DaskReader(X.get_partition(number), n_rows, persisted)))
        first += n_rows
    description = f"the Dask frame {argument} ({len(sizes)} partitions)"
    return ChunkedData(tuple(chunks), names, first, "pandas", description, X._meta.iloc[:0].reset_index(drop=True))
