"""Dask frames in chunks: its partitions, as they are.

Each chunk holds the graph of its own partition, which is carried out where the chunk is read. Rows are counted once, by
whichever scheduler is active; levels of categorical columns that Dask does not know yet are found in another pass.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from subgrove._scale.readers.data import Chunk, ChunkedData, Places
from subgrove._scale.readers.files import reject_duplicate_names


@dataclass(frozen=True, eq=False)
class DaskReader:
    """One partition of a Dask frame."""

    partition: Any
    n_rows: int
    persisted: bool = False

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""
        selected = self.partition[list(columns)]
        # Carried out here and not by a scheduler: the chunk is a task already. But what a cluster holds, it gives.
        rows = _from_cluster(selected) if self.persisted else selected.compute(scheduler="synchronous")
        rows = rows.reset_index(drop=True)
        if len(rows) != self.n_rows:
            raise ValueError(f"{len(rows):,} rows where there were {self.n_rows:,}; the data have changed meanwhile")
        return rows

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some of the rows."""
        return self.read(columns).iloc[places].reset_index(drop=True)


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
