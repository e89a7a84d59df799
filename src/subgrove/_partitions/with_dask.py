"""Dask frames in pieces: its partitions, as they are.

Each piece holds the graph of its own partition, which is carried out where the piece is read. Rows are counted once, by
whichever scheduler is active; levels of categorical columns that Dask does not know yet are found in another pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from subgrove._partitions.data import Partitioned, Piece, Places
from subgrove._partitions.files import refuse_twice


@dataclass(frozen=True, eq=False)
class DaskReader:
    """One partition of a Dask frame."""

    partition: Any
    n_rows: int

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""
        # Carried out here and not by a scheduler: the piece is a task already.
        rows = self.partition[list(columns)].compute(scheduler="synchronous").reset_index(drop=True)
        if len(rows) != self.n_rows:
            raise ValueError(f"{len(rows):,} rows where there were {self.n_rows:,}; the data have changed meanwhile")
        return rows

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some of the rows."""
        return self.read(columns).iloc[places].reset_index(drop=True)


def of_dask(X: Any, argument: str) -> Partitioned:
    """The partitions of a Dask DataFrame."""
    names = tuple(map(str, X.columns))
    refuse_twice(names, f"the Dask frame {argument}")
    unknown = [name for name, dtype in X.dtypes.items() if dtype == "category" and not X[name].cat.known]
    if unknown:
        X = X.categorize(columns=unknown)
    sizes = [int(size) for size in X.map_partitions(len, meta=("n", "int64")).compute()]
    pieces, first = [], 0
    for number, n_rows in enumerate(sizes):
        if n_rows:
            name = f"partition {number} of the Dask frame {argument}"
            pieces.append(Piece(name, first, n_rows, DaskReader(X.get_partition(number), n_rows)))
        first += n_rows
    description = f"the Dask frame {argument} ({len(sizes)} partitions)"
    return Partitioned(tuple(pieces), names, first, "pandas", description, X._meta.iloc[:0].reset_index(drop=True))
