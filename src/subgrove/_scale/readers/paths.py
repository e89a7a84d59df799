"""From a path to the Parquet files behind it, and what the names of their folders say."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

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
        _reject_address(path, argument)
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


def _reject_address(path: str, argument: str) -> None:
    """Paths are those of this machine; who wants data from elsewhere says how to get there."""
    raise InputError(
        f"{argument} is the address {path!r}; paths lead to files of this machine. For data elsewhere pass a Dataset, "
        f"which knows how to get there: pyarrow.dataset.dataset({path!r})"
    )


def _reject_text(place: Path, argument: str, whole: Path) -> None:
    if place.name.lower().endswith(_TEXT):
        raise InputError(
            f"{argument} leads to {place.name!r}, which is no Parquet file. Read it with pandas if it fits in memory, "
            f"or convert it once: import pyarrow.dataset as ds; "
            f"ds.write_dataset(ds.dataset({str(whole)!r}, format='csv'), 'rows', format='parquet')"
        )
