"""Parquet files in chunks: row groups are joined or cut until chunks have about as many rows as wanted.

A row group that is larger than a chunk is read as a stream, up to the chunk's last row; so at most one batch of rows is
held beside the chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from subgrove._scale.readers.arrow_types import ArrowTypes
from subgrove._scale.readers.data import Chunk, ChunkedData, Places
from subgrove._scale.readers.files import (
    BATCH_ROWS,
    ParquetFile,
    arrow_types_of,
    common_schema,
    file_stamp,
    folder_columns,
    index_columns,
    parquet_files,
    read_footer,
    reject_duplicate_names,
)
from subgrove.exceptions import InputError


@dataclass(frozen=True)
class RowSpan:
    """Rows of one file: some of its row groups, less `skip` rows at the start, `n_rows` in all."""

    file: ParquetFile
    groups: tuple[int, ...]
    skip: int
    n_rows: int
    start: int

    @property
    def name(self) -> str:
        """The file, and which of its rows unless it is all."""
        if self.n_rows == sum(self.file.group_rows):
            return self.file.name
        return f"{self.file.name}, rows {self.start:,} to {self.start + self.n_rows - 1:,}"

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows as record batches, a few at a time."""
        import pyarrow as pa

        own = dict(self.file.folders)
        stored = [name for name in columns if name not in own]
        with self.file.open() as file:
            numbers = [self.file.groups[group] for group in self.groups]
            batches = file.iter_batches(BATCH_ROWS, row_groups=numbers, columns=stored)
            for part in slice_batches(batches, self.skip, self.n_rows):
                arrays = [pa.repeat(own[name], len(part)) if name in own else part.column(name) for name in columns]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


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


class SupportsBatches(Protocol):
    """Some rows of a file."""

    @property
    def n_rows(self) -> int:
        """How many there are."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """They, as record batches of these columns."""


Part = TypeVar("Part", bound=SupportsBatches)


@dataclass(frozen=True, eq=False)
class BatchReader:
    """The rows of one or more parts, each of which gives record batches, in the types that all chunks have."""

    parts: tuple[SupportsBatches, ...]
    view: ArrowTypes

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""
        return self.view.table(self._batches(columns), columns)

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some rows; the others are let go batch by batch."""
        return self.view.table(take_rows(self._batches(columns), places), columns)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for part in self.parts:
            yield from part.batches(columns)


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
    found = parquet_files(path, argument)
    read = [read_footer(one) for one in found]
    files, folder_fields = folder_columns([file for file, _ in read], argument)
    schema = common_schema([(file.name, schema) for file, (_, schema) in zip(files, read, strict=True)], argument)
    for field in folder_fields:
        schema = schema.append(field) if field.name not in schema.names else schema
    n_files = f"{len(files)} Parquet file{'s' if len(files) > 1 else ''}"
    return chunks_of_files(files, schema, "pandas", f"{path} ({n_files})", chunk_rows)


def chunks_of_files(
    files: Sequence[ParquetFile], schema: Any, backend: str, description: str, chunk_rows: int
) -> ChunkedData:
    """The chunks of files that agree on a schema."""
    reject_duplicate_names(schema.names, description)
    view = arrow_types_of(files, schema, backend)
    beside = index_columns(schema) if backend == "pandas" else ()
    columns = tuple(name for name in schema.names if name not in beside)
    chunks = tuple(_chunks(files, chunk_rows, view))
    n_rows = sum(chunk.n_rows for chunk in chunks)
    empty = view.table([], columns)
    return ChunkedData(chunks, columns, n_rows, backend, description, empty, beside, stamp=file_stamp(files))


def _chunks(files: Sequence[ParquetFile], most: int, view: ArrowTypes) -> Iterator[Chunk]:
    first = 0
    for spans in group_parts(_row_groups(files), most, _cut):
        joined = list[RowSpan]()
        for span in spans:
            joined = _joined(joined, span)
        name = joined[0].name if len(joined) == 1 else f"{joined[0].name} to {joined[-1].name}"
        n_rows = sum(span.n_rows for span in joined)
        yield Chunk(name, first, n_rows, BatchReader(tuple(joined), view))
        first += n_rows


def group_parts(parts: Iterable[Part], most: int, cut: Callable[[Part, int], Iterable[Part]]) -> Iterator[list[Part]]:
    """Parts in order, small ones together and large ones cut, at most so many rows at a time."""
    held = list[Part]()
    for part in parts:
        if held and sum(one.n_rows for one in held) + part.n_rows > most:
            yield held
            held = []
        if part.n_rows <= most:
            held.append(part)
        else:
            yield from ([one] for one in cut(part, most))
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
