"""Results on disk, one file a unit, written whole or not at all.

What the design meets: a run that is killed at any moment, power included, leaves no half file that is taken for a
result; a unit is done if and only if its file is there; two runs at once do each other no harm.
So rows go to a file of another name first, which is flushed to the disk and then given its own name in one step.
"""

from __future__ import annotations

import csv
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

_ENDING = ".csv"
_UNFINISHED = ".part"
_ABANDONED_S = 3600.0  # an unfinished file this old belongs to no running process: units take seconds


class Store:
    """The finished units of an experiment.

    Parameters
    ----------
    folder : path
        Where they are; made when the first is written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def done(self) -> set[str]:
        """Keys of the units that are finished."""
        return {self._key(path) for path in self._files(_ENDING)}

    def write(self, key: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store the rows of a unit; all of them are there afterwards, or none."""
        write_whole(self.folder / f"{key}{_ENDING}", rows)

    def read(self) -> pd.DataFrame:
        """Rows of all finished units in the order of their keys, with the column `key` first."""
        keys: list[str] = []
        columns: dict[str, list[str]] = {}
        for path in sorted(self._files(_ENDING), key=self._key):
            for row in _rows(path):
                for name in row:
                    columns.setdefault(name, [""] * len(keys))
                for name, values in columns.items():
                    values.append(row.get(name, ""))
                keys.append(self._key(path))
        typed = {name: _typed(values) for name, values in columns.items()}
        return pd.DataFrame({"key": pd.Series(keys, dtype=object), **typed})

    def sweep(self) -> None:
        """Remove what killed runs left unfinished long ago."""
        for path in self._files(_UNFINISHED):
            with suppress(FileNotFoundError):  # another run has just finished it
                if time.time() - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget every unit."""
        for ending in (_ENDING, _UNFINISHED):
            for path in list(self._files(ending)):
                path.unlink(missing_ok=True)

    def _key(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix().removesuffix(_ENDING)

    def _files(self, ending: str) -> Iterator[Path]:
        return (path for path in self.folder.rglob(f"*{ending}") if path.is_file())


def write_whole(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV in one step: the file is there with all of them, or as it was before."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_text(row.get(name)) for name in names] for row in rows)
    replace_file(path, text.getvalue().encode())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one step: it has all of this content afterwards, or is as it was before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}{_UNFINISHED}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _text(value: Any) -> str:
    """A value as text that reads back as the same; what is missing is empty."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _typed(values: list[str]) -> pd.Series[Any]:
    """A column in the narrowest of: truth values, whole numbers, numbers, text."""
    filled = [value for value in values if value]
    if filled and all(value in ("True", "False") for value in filled):
        return pd.Series([value == "True" if value else None for value in values])
    for kind in (int, float):
        try:
            numbers = [kind(value) for value in filled]
        except ValueError:
            continue
        if len(filled) == len(values):
            return pd.Series(numbers, dtype="int64" if kind is int else "float64")
        found = iter(numbers)
        return pd.Series([next(found) if value else float("nan") for value in values], dtype="float64")
    return pd.Series(values, dtype=object)
