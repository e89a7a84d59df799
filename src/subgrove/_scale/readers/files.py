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
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from subgrove._core.text import quote
from subgrove._scale.readers.arrow_types import ArrowTypes, common_levels, nullable_columns
from subgrove.exceptions import InputError

SUFFIXES = (".parquet", ".parq", ".pq")
_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".json", ".jsonl", ".feather", ".arrow")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class FoundFile:
    """A file, its name for people, and the values that its folders stand for, as in "year=2024"."""

    path: str
    name: str
    folders: tuple[tuple[str, str | None], ...] = ()


def parquet_files(path: str, argument: str) -> tuple[FoundFile, ...]:
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
        return (FoundFile(str(place), place.name),)
    if place.is_dir():
        return _in_folder(place, argument)
    if glob.has_magic(path):
        matches = sorted(glob.glob(str(place), recursive=True))
        found = [file for match in matches for file in _matched(Path(match), argument)]
        if found:
            return tuple(found)
        raise InputError(f"{argument} is the pattern {path!r}, which no Parquet file matches. Check it.")
    raise InputError(
        f"{argument} is {path!r}, and there is no such file or folder. Pass a table, or the path of a Parquet file, of "
        f"a folder with such files, or a pattern such as 'rows/*.parquet'."
    )


def _matched(place: Path, argument: str) -> tuple[FoundFile, ...]:
    if place.is_dir():
        return tuple(_files_below(place))
    return (FoundFile(str(place), place.name, _folders(place.parts[:-1])),) if _is_parquet(place) else ()


def _in_folder(folder: Path, argument: str) -> tuple[FoundFile, ...]:
    found = tuple(_files_below(folder))
    if found:
        return found
    others = sorted(place for place in folder.rglob("*") if place.is_file())
    for place in others:
        _reject_text(place, argument, whole=folder)
    what = f"{len(others)} other files" if others else "nothing"
    raise InputError(
        f"{argument} is the folder {str(folder)!r}, which holds no Parquet file, but {what}. Files are known by their "
        f"endings: {', '.join(SUFFIXES)}."
    )


def _files_below(folder: Path) -> list[FoundFile]:
    files = sorted(place for place in folder.rglob("*") if _is_parquet(place))
    below = [place.relative_to(folder) for place in files]
    return [
        FoundFile(str(place), name.as_posix(), _folders(name.parts[:-1]))
        for place, name in zip(files, below, strict=True)
        if not any(part.startswith(("_", ".")) for part in name.parts)
    ]


def _is_parquet(place: Path) -> bool:
    return place.suffix.lower() in SUFFIXES and place.is_file()


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


@dataclass(frozen=True)
class ParquetFile:
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


def read_footer(found: FoundFile) -> tuple[ParquetFile, Any]:
    """What the end of a file says: rows of its groups, and its schema."""
    import pyarrow as pa

    file = ParquetFile(found.name, found.path, (), (), found.folders)
    try:
        with file.open() as opened:
            metadata, schema = opened.metadata, opened.schema_arrow
    except (pa.ArrowException, OSError) as error:
        text = str(error).splitlines()[0].rstrip(". ")
        raise InputError(
            f"{found.name} is damaged or no Parquet file: {text}. Write it again, or take it out of the folder."
        ) from error
    sizes = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    return replace(file, group_rows=sizes, groups=tuple(range(len(sizes)))), schema


def file_stamp(files: Sequence[ParquetFile]) -> str:
    """A short text that is another one after a file was written again: from sizes and times of change."""
    digest = sha256()
    for file in files:
        if file.filesystem is None:
            status = os.stat(file.path)
            size, changed = status.st_size, status.st_mtime_ns
        else:
            info = file.filesystem.get_file_info(file.path)
            size, changed = info.size, info.mtime_ns
        digest.update(f"{file.path}\0{size}\0{changed}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def arrow_types_of(files: Sequence[ParquetFile], schema: Any, backend: str) -> ArrowTypes:
    """How columns look in every chunk of these files."""
    return ArrowTypes(schema, _levels(files, schema), _missing(files, schema, backend), backend)


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


def folder_columns(files: Sequence[ParquetFile], argument: str) -> tuple[list[ParquetFile], list[Any]]:
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


def index_columns(schema: Any) -> tuple[str, ...]:
    """Columns that pandas wrote as its index."""
    noted = (schema.metadata or {}).get(b"pandas")
    index = json.loads(noted).get("index_columns", []) if noted else []
    return tuple(name for name in index if isinstance(name, str) and name in schema.names)


def _levels(files: Sequence[ParquetFile], schema: Any) -> dict[str, Any]:
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
        levels[name] = common_levels(name, kind, [one.cast(kind.value_type) for one in dictionaries])
    return levels


def _dictionaries(file: ParquetFile, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa

    if not names:
        return
    with file.open() as opened:
        for batch in opened.iter_batches(BATCH_ROWS, row_groups=list(file.groups), columns=list(names)):
            for name in names:
                column = batch.column(name)
                encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
                yield name, encoded.dictionary


def _missing(files: Sequence[ParquetFile], schema: Any, backend: str) -> frozenset[str]:
    """Whole numbers and booleans of which a value is missing in some file."""
    if backend != "pandas":
        return frozenset()
    candidates = nullable_columns(schema)
    found: set[str] = set()
    for file in files:
        left = [name for name in candidates if name not in found and name not in dict(file.folders)]
        found.update(_missing_in(file, left))
    return frozenset(found)


def _missing_in(file: ParquetFile, names: Sequence[str]) -> set[str]:
    if not names:
        return set()
    with file.open() as opened:
        metadata = opened.metadata
        place = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
        unsure, found = set(), set()
        for name in names:
            for group in file.groups:
                statistics = metadata.row_group(group).column(place[name]).statistics
                if statistics is None or not statistics.has_null_count:
                    unsure.add(name)
                elif statistics.null_count:
                    found.add(name)
                    break
        unsure -= found
        if unsure:
            for batch in opened.iter_batches(BATCH_ROWS, row_groups=list(file.groups), columns=sorted(unsure)):
                found |= {name for name in unsure if batch.column(name).null_count}
    return found
