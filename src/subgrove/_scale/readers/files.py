"""Parquet files as their footers describe them, and what all of them agree on.

Footers say how many rows there are and which types columns have, so that no data are read here; but the levels of
dictionary columns are, and whole numbers and booleans for which a file has no statistics.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import sha256
from operator import and_
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote

from subgrove._core.text import quote
from subgrove._scale.readers.arrow_types import common_levels, nullable_columns
from subgrove.exceptions import InputError

SUFFIXES = (".parquet", ".parq", ".pq")
_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".json", ".jsonl", ".feather", ".arrow")
_HIDDEN = ("_", ".")  # first characters of files and folders that are not read
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class FoundFile:
    """A file, its name for people, and the values that its folders stand for, as in "year=2024"."""

    path: str
    name: str
    folders: tuple[tuple[str, Any], ...] = ()


def parquet_files(path: str, argument: str) -> list[FoundFile]:
    """The files of a path, a folder or a pattern, in the order of their names."""
    if not path.strip():
        raise InputError(f"{argument} is an empty string. Pass the path of a Parquet file or folder; '.' is this one.")
    if "://" in path:
        raise InputError(
            f"{argument} is the address {path!r}; paths lead to files of this machine. For data elsewhere pass a "
            f"Dataset, which knows how to get there: pyarrow.dataset.dataset({path!r})"
        )
    place = Path(path).expanduser()
    if place.is_file():
        _reject_text(place, argument, whole=place)
        return [FoundFile(str(place), place.name)]
    if place.is_dir():
        return _files_below(place) or _reject_folder(place, argument)
    if glob.has_magic(path):
        matches = sorted(glob.glob(str(place), recursive=True))
        found = [file for match in matches for file in _files_below(Path(match))]
        if found:
            return found
        raise InputError(f"{argument} is the pattern {path!r}, which no Parquet file matches. Check it.")
    raise InputError(
        f"{argument} is {path!r}, and there is no such file or folder. Pass a table, or the path of a Parquet file, of "
        f"a folder with such files, or a pattern such as 'rows/*.parquet'."
    )


def _reject_folder(folder: Path, argument: str) -> NoReturn:
    others = sorted(_entries_below(folder))
    for place in others:
        _reject_text(place, argument, whole=folder)
    what = f"{len(others)} other files" if others else "nothing"
    raise InputError(
        f"{argument} is the folder {str(folder)!r}, which holds no Parquet file, but {what}. Files are known by their "
        f"endings: {', '.join(SUFFIXES)}."
    )


def _files_below(place: Path) -> list[FoundFile]:
    """The Parquet files of a folder, in the order of their names; or the file itself, if it is one."""
    if not place.is_dir():
        return [FoundFile(str(place), place.name, _folders(place.parts[:-1]))] if _is_parquet(place) else []
    files = {file.relative_to(place): file for file in sorted(_entries_below(place)) if _is_parquet(file)}
    return [
        FoundFile(str(file), name.as_posix(), _folders(name.parts[:-1]))
        for name, file in files.items()
        if not any(part.startswith(_HIDDEN) for part in name.parts)
    ]


def _entries_below(folder: Path) -> Iterator[Path]:
    """Files of a folder and its subfolders, linked ones too, but not of hidden ones.

    A link to a folder around it is not followed.
    """

    def fail(error: OSError) -> NoReturn:
        raise InputError(f"The folder {error.filename} cannot be read: {error.strerror}. Check its permissions.")

    for path, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        place = Path(path)
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN) and not _leads_around(place / name)]
        yield from (place / name for name in names)


def _leads_around(place: Path) -> bool:
    """Return whether a path is a link to a folder that it lies in."""
    return place.is_symlink() and place.resolve() in {
        one.resolve() for one in (*place.parents, *place.parent.resolve().parents)
    }


def _is_parquet(place: Path) -> bool:
    return place.suffix.lower() in SUFFIXES and not place.is_dir()


def _folders(parts: tuple[str, ...]) -> tuple[tuple[str, str | None], ...]:
    named = [part.split("=", 1) for part in parts if "=" in part and not part.startswith("=")]
    return tuple((unquote(name), None if value == _NO_VALUE else unquote(value)) for name, value in named)


def _reject_text(place: Path, argument: str, whole: Path) -> None:
    if place.name.lower().endswith(_TEXT):
        raise InputError(
            f"{argument} leads to {place.name!r}, which is no Parquet file. Read it with pandas if it fits in memory, "
            f"or convert it once: import pyarrow.dataset as ds; "
            f"ds.write_dataset(ds.dataset({str(whole)!r}, format='csv'), 'rows', format='parquet')"
        )


BATCH_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class ParquetFile:
    """A Parquet file.

    Attributes
    ----------
    name : str
        For people.
    fragment : pyarrow ParquetFileFragment
        Where it is, its row groups that are used, and the values that its folders stand for.
    group_rows : tuple of int
        Rows of each of these row groups that the filter keeps.
    filter : pyarrow Expression, optional
        Which rows are used; all of them if None.
    version : str
        Size and time of change when the file was opened.
    """

    name: str
    fragment: Any
    group_rows: tuple[int, ...]
    filter: Any = None
    version: str = ""

    @classmethod
    def of(cls, name: str, fragment: Any, schema: Any, kept: Any = None) -> ParquetFile:
        """The file, its rows counted."""
        version = file_version(fragment)
        if kept is None:
            return cls(name, fragment, tuple(group.num_rows for group in fragment.row_groups), version=version)
        # With the whole schema, since a filter may use a column of folders.
        scanners = [group.scanner(schema=schema, columns=[], filter=kept) for group in fragment.split_by_row_group()]
        return cls(name, fragment, tuple(int(scanner.count_rows()) for scanner in scanners), kept, version)

    def reject_changed(self) -> None:
        """Raise if the file was written again since it was opened: its rows would be mixed with earlier ones."""
        if file_version(self.fragment) != self.version:
            raise OSError(f"{self.name} was changed during the run. Run again when all files are complete")

    def batches(self, columns: Sequence[str], schema: Any, groups: Sequence[int]) -> Iterator[Any]:
        """Record batches of the rows of some row groups, given by their places, that the filter keeps."""
        import pyarrow.dataset as ds

        if self.filter is None:
            yield from self.stored_batches(columns, groups)
            return
        options = {"columns": list(columns), "filter": self.filter, "schema": schema, "batch_size": BATCH_ROWS}
        some = self.fragment.subset(row_group_ids=self._ids(groups))
        verified = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        yield from some.to_batches(**options, batch_readahead=1, fragment_readahead=0, fragment_scan_options=verified)

    def stored_batches(self, columns: Sequence[str], groups: Sequence[int] | None = None) -> Iterator[Any]:
        """Record batches of all rows of some row groups, read in small steps, with the types that the file has."""
        import pyarrow as pa
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        own, filesystem = dict(ds.get_partition_keys(self.fragment.partition_expression)), self.fragment.filesystem
        stored = [name for name in columns if name in self.fragment.physical_schema.names and name not in own]
        # With a buffer, columns are read page by page and not whole; over a network larger steps are worth it.
        size = 1 << 16 if filesystem.type_name == "local" else 1 << 22
        source = filesystem.open_input_file(self.fragment.path)
        options = {"metadata": self.fragment.metadata, "page_checksum_verification": True, "pre_buffer": False}
        with pq.ParquetFile(source, **options, buffer_size=size) as file:
            for batch in file.iter_batches(BATCH_ROWS, row_groups=self._ids(groups), columns=stored):
                arrays = [
                    batch.column(name) if name in stored else pa.repeat(own.get(name), len(batch)) for name in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _ids(self, groups: Sequence[int] | None) -> list[int]:
        used = self.fragment.row_groups
        return [group.id for group in used] if groups is None else [used[at].id for at in groups]


def open_file(found: FoundFile) -> Any:
    """The fragment of a file, its footer read."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    equal = [ds.field(name).is_null() if value is None else ds.field(name) == value for name, value in found.folders]
    place = reduce(and_, equal) if equal else None
    fragment = ds.ParquetFileFormat().make_fragment(found.path, LocalFileSystem(), place)
    try:
        fragment.ensure_complete_metadata()
    except (pa.ArrowException, OSError) as error:
        text = str(error).splitlines()[0].rstrip(". ")
        raise InputError(
            f"{found.name} is damaged or no Parquet file: {text}. Write it again, or take it out of the folder."
        ) from error
    return fragment


def file_stamp(files: Sequence[ParquetFile]) -> str:
    """A short text that is another one after a file was written again: from sizes and times of change."""
    digest = sha256()
    for file in files:
        digest.update(f"{file.fragment.path}\0{file.version}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def file_version(fragment: Any) -> str:
    """Size and time of change of a file."""
    info = fragment.filesystem.get_file_info(fragment.path)
    return f"{info.size}\0{info.mtime_ns}"


def reject_duplicate_names(names: Sequence[str], description: str) -> None:
    """No two columns share a name."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise InputError(f"{description} has columns of the same name: {quote(twice)}. Rename them.")


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


def folder_columns(files: Sequence[FoundFile], argument: str) -> tuple[list[FoundFile], list[Any]]:
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
        whole = all(own[name] is None or own[name].lstrip("-").isdecimal() for own in typed)
        for own in typed:
            own[name] = int(own[name]) if whole and own[name] is not None else own[name]
        fields.append(pa.field(name, pa.dictionary(pa.int32(), pa.int64() if whole else pa.string())))
    return [replace(file, folders=tuple(own.items())) for file, own in zip(files, typed, strict=True)], fields


def index_columns(schema: Any) -> tuple[str, ...]:
    """Columns that pandas wrote as its index."""
    noted = (schema.metadata or {}).get(b"pandas")
    index = json.loads(noted).get("index_columns", []) if noted else []
    return tuple(name for name in index if isinstance(name, str) and name in schema.names)


def levels_of_files(files: Sequence[ParquetFile], schema: Any) -> dict[str, Any]:
    """Levels of dictionary columns over all files; the one thing for which columns are read here."""
    import pyarrow as pa

    found: dict[str, list[Any]] = {field.name: [] for field in schema if pa.types.is_dictionary(field.type)}
    for file in files if found else ():
        for batch in file.stored_batches(list(found)):
            for name, known in found.items():
                column = batch.column(name)
                encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
                levels = encoded.dictionary.cast(schema.field(name).type.value_type)
                if len(levels) and not any(levels.equals(other) for other in known[-3:]):
                    known.append(levels)
    return {name: common_levels(name, schema.field(name).type, known) for name, known in found.items()}


def columns_with_gaps(files: Sequence[ParquetFile], schema: Any, backend: str) -> frozenset[str]:
    """Whole numbers and booleans of which a value is missing in some file."""
    found: set[str] = set()
    for file in files if backend == "pandas" else ():
        found |= _missing_in(file, set(nullable_columns(schema)) - found)
    return frozenset(found)


def _missing_in(file: ParquetFile, names: set[str]) -> set[str]:
    """Columns with a missing value according to the statistics of the file, or its rows where there are none."""
    metadata = file.fragment.metadata
    unsure, found = set(), set()
    for at in range(metadata.num_columns):
        name = metadata.schema.column(at).path
        groups = [metadata.row_group(group.id).column(at).statistics for group in file.fragment.row_groups]
        known = [group.null_count for group in groups if group is not None and group.has_null_count]
        if name in names and any(known):
            found.add(name)
        elif name in names and len(known) < len(groups):
            unsure.add(name)
    for batch in file.stored_batches(sorted(unsure)) if unsure else ():
        found |= {name for name in unsure if batch.column(name).null_count}
    return found
