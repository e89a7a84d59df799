"""Datasets of pyarrow in chunks, each given as a pyarrow table.

Parquet files without a filter are read as from a path. With a filter, rows are counted row group by row group, since
nobody knows how many are left. Tables in memory are sliced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from subgrove._scale.readers.arrow_types import ArrowTypes
from subgrove._scale.readers.data import Chunk, ChunkedData, Places
from subgrove._scale.readers.files import BATCH_ROWS, ParquetFile, arrow_types_of, file_stamp, reject_duplicate_names
from subgrove._scale.readers.parquet import BatchReader, chunks_of_files, group_parts, slice_batches
from subgrove.exceptions import InputError


def chunks_of_dataset(X: Any, argument: str, chunk_rows: int) -> ChunkedData:
    """The chunks of a Dataset."""
    import pyarrow.dataset as ds

    if isinstance(X, ds.InMemoryDataset):
        return _of_table(X.to_table(), chunk_rows)
    parts = list(_file_datasets(X, argument))
    files = [(part, *found) for part in parts for found in _files(part, X.schema)]
    description = f"the Dataset {argument} ({len(files)} Parquet file{'s' if len(files) != 1 else ''})"
    if all(_filter(part) is None for part in parts):
        return chunks_of_files([file for _, file, _ in files], X.schema, "pyarrow", description, chunk_rows)
    reject_duplicate_names(X.schema.names, description)
    view = arrow_types_of([file for _, file, _ in files], X.schema, "pyarrow")
    groups = [
        FilteredRows(group, _filter(part), 0, _count(group, _filter(part), X.schema), file.name, X.schema)
        for part, file, fragment in files
        for group in fragment.split_by_row_group()
    ]
    chunks = tuple(_chunks(groups, view, chunk_rows))
    n_rows, columns = sum(chunk.n_rows for chunk in chunks), tuple(X.schema.names)
    stamp, empty = file_stamp([file for _, file, _ in files]), view.table([], columns)
    return ChunkedData(chunks, columns, n_rows, "pyarrow", description, empty, stamp=stamp)


def _file_datasets(X: Any, argument: str) -> Iterator[Any]:
    """The parts of a Dataset, each of Parquet files."""
    import pyarrow.dataset as ds

    if isinstance(X, ds.UnionDataset):
        for child in X.children:
            yield from _file_datasets(child, argument)
        return
    if not isinstance(X, ds.FileSystemDataset) or not isinstance(X.format, ds.ParquetFileFormat):
        kind = X.format.default_extname if isinstance(X, ds.FileSystemDataset) else type(X).__name__
        raise InputError(
            f"{argument} is a Dataset of {kind}; chunks are read from Parquet, where row groups can be found without "
            f"reading what is before them. Convert it once: "
            f"pyarrow.dataset.write_dataset({argument}, 'rows', format='parquet')"
        )
    yield X


def _filter(part: Any) -> Any:
    return getattr(part, "_scan_options", {}).get("filter")


def _count(group: Any, kept: Any, schema: Any) -> int:
    """Rows of a row group that a filter keeps; with the whole schema, since it may use a column of folders."""
    return int(group.scanner(schema=schema, columns=[], filter=kept).count_rows())


def _files(part: Any, schema: Any) -> Iterator[tuple[ParquetFile, Any]]:
    """The files of a Dataset with their fragments; columns that a file does not have are missing in it."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    for fragment in _unfiltered(part).get_fragments(filter=_filter(part)):
        own = dict(ds.get_partition_keys(fragment.partition_expression))
        stored = fragment.physical_schema.names
        folders = {name: own.get(name) for name in schema.names if name in own or name not in stored}
        sizes = [(group.id, group.num_rows) for group in fragment.row_groups]
        filesystem = None if isinstance(fragment.filesystem, LocalFileSystem) else fragment.filesystem
        numbers, rows = (tuple(values) for values in zip(*sizes, strict=True)) if sizes else ((), ())
        yield (
            ParquetFile(
                fragment.path.rpartition("/")[2], fragment.path, rows, numbers, tuple(folders.items()), filesystem
            ),
            fragment,
        )


def _unfiltered(part: Any) -> Any:
    """The Dataset without its filter; one with a filter does not list its fragments."""
    import pyarrow.dataset as ds

    if _filter(part) is None:
        return part
    folders = part.partitioning
    if folders is not None and folders.schema.names and not isinstance(folders, ds.HivePartitioning):
        raise InputError(
            f"X is a Dataset with a filter and {type(folders).__name__}; of filtered ones, folders must be like "
            f"'year=2024' (partitioning='hive'). Leave the filter out, or write it: "
            f"pyarrow.dataset.write_dataset(X, 'rows', format='parquet')"
        )
    options = {"schema": part.schema, "format": part.format, "filesystem": part.filesystem}
    return ds.dataset(part.files, **options, partitioning=folders)


@dataclass(frozen=True, eq=False)
class FilteredRows:
    """The rows of a row group that a filter keeps, or some of them."""

    fragment: Any
    filter: Any
    skip: int
    n_rows: int
    name: str
    schema: Any

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows as record batches, a few at a time."""
        options = {"columns": list(columns), "filter": self.filter, "schema": self.schema, "batch_size": BATCH_ROWS}
        batches = self.fragment.to_batches(**options, batch_readahead=1, fragment_readahead=0)
        yield from slice_batches(batches, self.skip, self.n_rows)


def _cut(group: FilteredRows, most: int) -> Iterator[FilteredRows]:
    for skip in range(0, group.n_rows, most):
        yield replace(group, skip=skip, n_rows=min(most, group.n_rows - skip))


def _chunks(groups: Sequence[FilteredRows], view: ArrowTypes, most: int) -> Iterator[Chunk]:
    first = 0
    for parts in group_parts((group for group in groups if group.n_rows), most, _cut):
        n_rows = sum(part.n_rows for part in parts)
        names = list(dict.fromkeys(part.name for part in parts))
        files = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        name = f"{files}, filtered rows {first:,} to {first + n_rows - 1:,}"
        yield Chunk(name, first, n_rows, BatchReader(tuple(parts), view))
        first += n_rows


@dataclass(frozen=True, eq=False)
class TableReader:
    """Rows of a pyarrow table in memory."""

    table: Any

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""
        return self.table.select(list(columns))

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some of the rows."""
        return self.table.select(list(columns)).take(places)


def _of_table(table: Any, most: int) -> ChunkedData:
    names, n_rows = tuple(table.column_names), table.num_rows
    reject_duplicate_names(names, "the Dataset")
    table = table.unify_dictionaries()
    chunks = tuple(
        Chunk(
            f"rows {first:,} to {min(first + most, n_rows) - 1:,}", first, min(most, n_rows - first), TableReader(part)
        )
        for first in range(0, n_rows, most)
        if (part := table.slice(first, most)) is not None
    )
    return ChunkedData(chunks, names, n_rows, "pyarrow", f"a Dataset of {n_rows:,} rows in memory", table.slice(0, 0))
