"""Parquet files in chunks: row groups are joined or cut until chunks have about as many rows as wanted.

A row group that is larger than a chunk is read as a stream, up to the chunk's last row; so at most one batch of rows is
held beside the chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from subgrove._scale.readers.arrow_types import ArrowTypes
from subgrove._scale.readers.data import Chunk, ChunkedData, Places
from subgrove._scale.readers.files import (
    ParquetFile,
    columns_with_gaps,
    common_schema,
    file_stamp,
    folder_columns,
    index_columns,
    levels_of_files,
    open_file,
    parquet_files,
    reject_duplicate_names,
)
from subgrove.exceptions import InputError


@dataclass(frozen=True, eq=False)
class RowSpan:
    """Rows of one file: those of some of its row groups, less `skip` rows at the start, `n_rows` in all."""

    file: ParquetFile
    groups: tuple[int, ...]
    skip: int
    n_rows: int
    start: int

    @property
    def name(self) -> str:
        """The file, and which of its rows unless it is all."""
        if self.file.filter is not None or self.n_rows == sum(self.file.group_rows):
            return self.file.name
        return f"{self.file.name}, rows {self.start:,} to {self.start + self.n_rows - 1:,}"


def slice_batches(batches: Iterable[Any], skip: int, n_rows: int) -> Iterator[Any]:
    """So many rows of record batches, after those to skip."""
    for batch in batches:
        part = batch.slice(skip, n_rows)
        skip = max(skip - len(batch), 0)
        n_rows -= len(part)
        if len(part):
            yield part
        if not n_rows:
            return


@dataclass(frozen=True, eq=False)
class BatchReader:
    """The rows of one or more spans, in the types that all chunks have."""

    spans: tuple[RowSpan, ...]
    view: ArrowTypes

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""
        return self._unchanged(self.view.table(self._batches(columns), columns))

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some rows; the others are let go batch by batch."""
        return self._unchanged(self.view.table(take_rows(self._batches(columns), places), columns))

    def _unchanged(self, table: Any) -> Any:
        """The table, if no file was written again before it was read."""
        for span in self.spans:
            span.file.reject_changed()
        return table

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for span in self.spans:
            batches = span.file.batches(columns, self.view.schema, span.groups)
            yield from slice_batches(batches, span.skip, span.n_rows)


def take_rows(batches: Iterator[Any], places: Places) -> Iterator[Any]:
    """Some rows of record batches, by their places among all rows, which increase."""
    start = 0
    for batch in batches:
        low, high = np.searchsorted(places, [start, start + len(batch)])
        if high > low:
            yield batch.take(places[low:high] - start)
        start += len(batch)
        if high == len(places):
            return


def chunks_of_path(path: str, argument: str, chunk_rows: int) -> ChunkedData:
    """The chunks of the Parquet files behind a path."""
    try:
        import pyarrow  # noqa: F401  # imported here, so that the error comes first
    except ImportError:
        raise InputError(
            f"{argument} is a path, and pyarrow, which reads Parquet, is not installed. "
            f"Run: pip install 'subgrove[pyarrow]'"
        ) from None
    found, folder_fields = folder_columns(parquet_files(path, argument), argument)
    opened = [(one.name, open_file(one)) for one in found]
    schema = common_schema([(name, fragment.physical_schema) for name, fragment in opened], argument)
    for field in folder_fields:
        schema = schema.append(field) if field.name not in schema.names else schema
    files = [ParquetFile.of(name, fragment, schema) for name, fragment in opened]
    n_files = f"{len(files)} Parquet file{'s' if len(files) > 1 else ''}"
    return chunks_of_files(files, schema, "pandas", f"{path} ({n_files})", chunk_rows)


def chunks_of_dataset(X: Any, argument: str, chunk_rows: int) -> ChunkedData:
    """The chunks of a Dataset."""
    files = [file for part in _file_datasets(X, argument) for file in _files(part, X.schema)]
    description = f"the Dataset {argument} ({len(files)} Parquet file{'s' if len(files) != 1 else ''})"
    return chunks_of_files(files, X.schema, "pyarrow", description, chunk_rows)


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
            f"reading what is before them. Pass {argument}.to_table() if it fits in memory, or convert it once: "
            f"pyarrow.dataset.write_dataset({argument}, 'rows', format='parquet')"
        )
    yield X


def _filter(part: Any) -> Any:
    return getattr(part, "_scan_options", {}).get("filter")


def _files(part: Any, schema: Any) -> Iterator[ParquetFile]:
    """The files of a Dataset; columns that a file does not have are missing in it."""
    for fragment in _unfiltered(part).get_fragments(filter=_filter(part)):
        yield ParquetFile.of(fragment.path.rpartition("/")[2], fragment, schema, _filter(part))


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


def chunks_of_files(
    files: Sequence[ParquetFile], schema: Any, backend: str, description: str, chunk_rows: int
) -> ChunkedData:
    """The chunks of files that agree on a schema."""
    reject_duplicate_names(schema.names, description)
    view = ArrowTypes(schema, levels_of_files(files, schema), columns_with_gaps(files, schema, backend), backend)
    beside = index_columns(schema) if backend == "pandas" else ()
    columns = tuple(name for name in schema.names if name not in beside)
    chunks = tuple(_chunks(files, chunk_rows, view))
    n_rows = sum(chunk.n_rows for chunk in chunks)
    empty = view.table([], columns)
    return ChunkedData(chunks, columns, n_rows, backend, description, empty, beside, stamp=file_stamp(files))


def _chunks(files: Sequence[ParquetFile], most: int, view: ArrowTypes) -> Iterator[Chunk]:
    first = 0
    for spans in _grouped(_row_groups(files), most):
        name = spans[0].name if len(spans) == 1 else f"{spans[0].name} to {spans[-1].name}"
        n_rows = sum(span.n_rows for span in spans)
        if any(file.filter is not None for file in files):
            name += f", filtered rows {first:,} to {first + n_rows - 1:,}"
        yield Chunk(name, first, n_rows, BatchReader(tuple(spans), view))
        first += n_rows


def _grouped(spans: Iterable[RowSpan], most: int) -> Iterator[list[RowSpan]]:
    """Row groups in order, small ones together and large ones cut, at most so many rows at a time."""
    held: list[RowSpan] = []
    for span in spans:
        if held and sum(one.n_rows for one in held) + span.n_rows > most:
            yield held
            held = []
        if span.n_rows <= most:
            held = _joined(held, span)
        else:
            yield from ([one] for one in _cut(span, most))
    if held:
        yield held


def _row_groups(files: Sequence[ParquetFile]) -> Iterator[RowSpan]:
    for file in files:
        start = 0
        for group, n_rows in enumerate(file.group_rows):
            if n_rows:
                yield RowSpan(file, (group,), 0, n_rows, start)
            start += n_rows


def _joined(held: list[RowSpan], span: RowSpan) -> list[RowSpan]:
    if held and held[-1].file is span.file:
        last = held[-1]
        return [*held[:-1], replace(last, groups=last.groups + span.groups, n_rows=last.n_rows + span.n_rows)]
    return [*held, span]


def _cut(span: RowSpan, most: int) -> Iterator[RowSpan]:
    """Parts of about the same size, each of at most so many rows."""
    borders = np.linspace(0, span.n_rows, -(-span.n_rows // most) + 1).round().astype(int).tolist()
    for low, high in pairwise(borders):
        yield replace(span, skip=low, n_rows=high - low, start=span.start + low)
