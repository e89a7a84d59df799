"""Parquet files in pieces: row groups are joined or cut until pieces have about as many rows as wanted.

Footers say how many rows there are, so that no data are read to make pieces (but the levels of dictionary columns, and
whole numbers for which a file has no statistics). A row group that is larger than a piece is read as a stream, up to
the piece's last row; then at most one batch of rows is held beside the piece.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from subgrove._containers import quote
from subgrove._partitions.data import Partitioned, Piece, Places
from subgrove._partitions.paths import Found, parquet_files
from subgrove._partitions.view import View, missing_matters, one_set_of_levels
from subgrove.exceptions import InputError

BATCH_ROWS = 65_536


@dataclass(frozen=True)
class File:
    """A Parquet file as its footer describes it.

    Attributes
    ----------
    name : str
        For people.
    path : str
        Where it is.
    group_rows : tuple of int
        Rows of each of its row groups that is used.
    groups : tuple of int
        Numbers of these row groups.
    folders : tuple of pairs
        Columns that have one value in the whole file, and that value.
    filesystem : pyarrow filesystem, optional
        Where its path leads; the local one if None.
    """

    name: str
    path: str
    group_rows: tuple[int, ...]
    groups: tuple[int, ...]
    folders: tuple[tuple[str, Any], ...] = ()
    filesystem: Any = None

    def open(self) -> Any:
        """The file, to read from in small steps."""
        import pyarrow.parquet as pq

        # With a buffer, columns are read page by page and not whole; over a network larger steps are worth it.
        if self.filesystem is None:
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 16)
        return pq.ParquetFile(self.filesystem.open_input_file(self.path), pre_buffer=False, buffer_size=1 << 22)


@dataclass(frozen=True)
class Span:
    """Rows of one file: some of its row groups, less `skip` rows at the start, `n_rows` in all."""

    file: File
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
        own = dict(self.file.folders)
        stored = [name for name in columns if name not in own]
        skip, left = self.skip, self.n_rows
        with self.file.open() as file:
            numbers = [self.file.groups[group] for group in self.groups]
            for batch in file.iter_batches(BATCH_ROWS, row_groups=numbers, columns=stored):
                part = batch.slice(skip, left)
                skip = max(skip - len(batch), 0)
                left -= len(part)
                if len(part):
                    yield _with_folders(part, columns, own)
                if not left:
                    return


def _with_folders(batch: Any, columns: Sequence[str], own: dict[str, Any]) -> Any:
    import pyarrow as pa

    arrays = [pa.repeat(own[name], len(batch)) if name in own else batch.column(name) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


@dataclass(frozen=True)
class ParquetReader:
    """The rows of one or more spans, in the types that all pieces have."""

    spans: tuple[Span, ...]
    view: View

    def read(self, columns: Sequence[str]) -> Any:
        """These columns, in this order."""
        return self.view.table(self._batches(columns), columns)

    def take(self, columns: Sequence[str], places: Places) -> Any:
        """Some rows; the others are let go batch by batch."""
        return self.view.table(_taken(self._batches(columns), places), columns)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for span in self.spans:
            yield from span.batches(columns)


def _taken(batches: Iterator[Any], places: Places) -> Iterator[Any]:
    start = 0
    for batch in batches:
        low, high = np.searchsorted(places, [start, start + len(batch)])
        if high > low:
            yield batch.take(places[low:high] - start)
        start += len(batch)
        if high == len(places):
            return


def of_path(path: str, argument: str, partition_rows: int) -> Partitioned:
    """The pieces of the Parquet files behind a path."""
    try:
        import pyarrow  # noqa: F401  # asked for here, so that the error comes before anything else
    except ImportError:
        raise InputError(
            f"{argument} is a path, and pyarrow, which reads Parquet, is not installed. "
            f"Run: pip install 'subgrove[pyarrow]'"
        ) from None
    found = parquet_files(path, argument)
    read = [_footer(one) for one in found]
    files, folder_fields = _folder_columns([file for file, _ in read], argument)
    schema = common_schema([(file.name, schema) for file, (_, schema) in zip(files, read, strict=True)], argument)
    for field in folder_fields:
        schema = schema.append(field) if field.name not in schema.names else schema
    counted = f"{len(files)} Parquet file{'s' if len(files) > 1 else ''}"
    return of_files(files, schema, "pandas", f"{path} ({counted})", partition_rows)


def of_files(files: Sequence[File], schema: Any, backend: str, description: str, partition_rows: int) -> Partitioned:
    """The pieces of files that agree on a schema."""
    refuse_twice(schema.names, description)
    view = View(schema, _levels(files, schema), _missing(files, schema, backend), backend)
    beside = _index_columns(schema) if backend == "pandas" else ()
    columns = tuple(name for name in schema.names if name not in beside)
    pieces = tuple(_pieces(files, partition_rows, view))
    n_rows = sum(piece.n_rows for piece in pieces)
    return Partitioned(pieces, columns, n_rows, backend, description, view.table([], columns), beside)


def refuse_twice(names: Sequence[str], description: str) -> None:
    """No two columns share a name."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise InputError(f"{description} has columns of the same name: {quote(twice)}. Rename them.")


def _footer(found: Found) -> tuple[File, Any]:
    """What the end of a file says: rows of its groups, and its schema."""
    import pyarrow as pa

    file = File(found.name, found.path, (), (), found.folders)
    try:
        with file.open() as opened:
            metadata, schema = opened.metadata, opened.schema_arrow
    except (pa.ArrowException, OSError) as error:
        text = str(error).splitlines()[0]
        raise InputError(
            f"{found.name} is damaged or no Parquet file: {text} Write it again, or take it out of the folder."
        ) from error
    sizes = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    return replace(file, group_rows=sizes, groups=tuple(range(len(sizes)))), schema


def common_schema(schemas: Sequence[tuple[str, Any]], argument: str) -> Any:
    """The schema that all files agree on, in the order of the first; numbers of different widths take the wider."""
    import pyarrow as pa

    first_name, common = schemas[0]
    for name, schema in schemas[1:]:
        if schema.equals(common):
            continue
        lacking = [column for column in common.names if column not in schema.names]
        more = [column for column in schema.names if column not in common.names]
        if lacking or more:
            parts = [f"lacks {quote(lacking)}"] * bool(lacking) + [f"has {quote(more)} as well"] * bool(more)
            raise InputError(
                f"The files of {argument} have different columns: {name} {' and '.join(parts)}, compared with "
                f"{first_name}. Write all files with the same columns."
            )
        for column in common.names:
            both = [pa.schema([one.field(column).remove_metadata()]) for one in (common, schema)]
            try:
                wider = pa.unify_schemas(both, promote_options="permissive").field(0)
            except (pa.ArrowTypeError, pa.ArrowInvalid):
                raise InputError(
                    f"The files of {argument} disagree on column {column!r}: {both[0].field(0).type} in {first_name}, "
                    f"{both[1].field(0).type} in {name}. Write it with one type."
                ) from None
            common = common.set(common.names.index(column), wider)
    return common


def _folder_columns(files: Sequence[File], argument: str) -> tuple[list[File], list[Any]]:
    """Values in names of folders become those of categorical columns: whole numbers if all are, else strings."""
    import pyarrow as pa

    names = [tuple(name for name, _ in file.folders) for file in files]
    other = next((file for file, own in zip(files, names, strict=True) if own != names[0]), None)
    if other is not None:
        raise InputError(
            f"The folders of {argument} do not agree: {other.name} stands for {quote(names[files.index(other)])}, and "
            f"{files[0].name} for {quote(names[0])}. Use the same levels of folders throughout."
        )
    typed, fields = [dict(file.folders) for file in files], []
    for name in names[0]:
        values = [own[name] for own in typed]
        whole = all(value is None or value.lstrip("-").isdecimal() for value in values)
        for own in typed:
            own[name] = int(own[name]) if whole and own[name] is not None else own[name]
        fields.append(pa.field(name, pa.dictionary(pa.int32(), pa.int64() if whole else pa.string())))
    return [replace(file, folders=tuple(own.items())) for file, own in zip(files, typed, strict=True)], fields


def _index_columns(schema: Any) -> tuple[str, ...]:
    """Columns that pandas wrote as its index."""
    noted = (schema.metadata or {}).get(b"pandas")
    index = json.loads(noted).get("index_columns", []) if noted else []
    return tuple(name for name in index if isinstance(name, str) and name in schema.names)


def _levels(files: Sequence[File], schema: Any) -> dict[str, Any]:
    """Levels of dictionary columns over all files; the one thing for which columns are read here."""
    import pyarrow as pa

    names = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    found: dict[str, list[Any]] = {name: [] for name in names}
    for file in files:
        own = dict(file.folders)
        for name, value in own.items():
            if name in found and value is not None:
                found[name].append(value)
        stored = [name for name in names if name not in own]
        for name, dictionary in _dictionaries(file, stored):
            if not any(dictionary.equals(known) for known in found[name][-3:]):
                found[name].append(dictionary)
    levels = {}
    for name, dictionaries in found.items():
        kind = schema.field(name).type
        if dictionaries and not isinstance(dictionaries[0], pa.Array):
            dictionaries = [pa.array(sorted(set(dictionaries)), kind.value_type)]
        levels[name] = one_set_of_levels(name, kind, [one.cast(kind.value_type) for one in dictionaries])
    return levels


def _dictionaries(file: File, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa

    if not names:
        return
    with file.open() as opened:
        for batch in opened.iter_batches(BATCH_ROWS, row_groups=list(file.groups), columns=list(names)):
            for name in names:
                column = batch.column(name)
                encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
                yield name, encoded.dictionary


def _missing(files: Sequence[File], schema: Any, backend: str) -> frozenset[str]:
    """Whole numbers and booleans of which a value is missing in some file."""
    if backend != "pandas":
        return frozenset()
    asked = missing_matters(schema)
    found: set[str] = set()
    for file in files:
        left = [name for name in asked if name not in found and name not in dict(file.folders)]
        found.update(_missing_in(file, left))
    return frozenset(found)


def _missing_in(file: File, names: Sequence[str]) -> set[str]:
    if not names:
        return set()
    with file.open() as opened:
        metadata = opened.metadata
        place = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
        unsure, found = set(), set()
        for name in names:
            for group in file.groups:
                told = metadata.row_group(group).column(place[name]).statistics
                if told is None or not told.has_null_count:
                    unsure.add(name)
                elif told.null_count:
                    found.add(name)
                    break
        unsure -= found
        if unsure:
            for batch in opened.iter_batches(BATCH_ROWS, row_groups=list(file.groups), columns=sorted(unsure)):
                found |= {name for name in unsure if batch.column(name).null_count}
    return found


def _pieces(files: Sequence[File], most: int, view: View) -> Iterator[Piece]:
    """Row groups in order, small ones together and large ones cut."""
    first, held = 0, list[Span]()
    for span in _row_groups(files):
        together = sum(one.n_rows for one in held)
        if held and together + span.n_rows > most:
            yield _piece(held, first, view)
            first, held = first + together, []
        if span.n_rows <= most:
            held = _joined(held, span)
            continue
        for part in _cut(span, most):
            yield _piece([part], first, view)
            first += part.n_rows
    if held:
        yield _piece(held, first, view)


def _row_groups(files: Sequence[File]) -> Iterator[Span]:
    for file in files:
        start = 0
        for group, n_rows in enumerate(file.group_rows):
            if n_rows:
                yield Span(file, (group,), 0, n_rows, start)
            start += n_rows


def _joined(held: list[Span], span: Span) -> list[Span]:
    if held and held[-1].file is span.file:
        last = held[-1]
        return [*held[:-1], replace(last, groups=last.groups + span.groups, n_rows=last.n_rows + span.n_rows)]
    return [*held, span]


def _cut(span: Span, most: int) -> Iterator[Span]:
    """Parts of about the same size, each of at most so many rows."""
    borders = np.linspace(0, span.n_rows, -(-span.n_rows // most) + 1).round().astype(int).tolist()
    for low, high in pairwise(borders):
        yield replace(span, skip=low, n_rows=high - low, start=span.start + low)


def _piece(spans: Sequence[Span], first_row: int, view: View) -> Piece:
    name = spans[0].name if len(spans) == 1 else f"{spans[0].name} to {spans[-1].name}"
    return Piece(name, first_row, sum(span.n_rows for span in spans), ParquetReader(tuple(spans), view))
