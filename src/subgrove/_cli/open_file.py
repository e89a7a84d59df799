"""A file on disk, before anything is read from it: whether it is there, may be read, and what is in it.

Formats are told by what is in a file, not by its name alone: a Parquet file that is called .csv is read as Parquet, and
a picture that is called .csv is refused.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

from subgrove.exceptions import InputError

Format = Literal["text", "parquet"]

_START = 4096  # bytes that a format is told by
_OTHERS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"ARROW1": "an Arrow (Feather) file",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF document",
}


@dataclass(frozen=True)
class Source:
    """A file that can be read. `format` is what is in it; `zipped` whether gzip packed it."""

    path: Path
    format: Format
    zipped: bool = False

    def open(self) -> IO[bytes]:
        """The file's bytes, unpacked."""
        return cast(IO[bytes], gzip.open(self.path, "rb")) if self.zipped else self.path.open("rb")


def find_source(path: Path) -> Source:
    """The file at a path; what cannot be read is refused in words."""
    reject_unreadable(path)
    with path.open("rb") as file:
        start = file.read(_START)
    if not start:
        raise InputError(f"{path} is empty. A first line with column names and lines of values are expected.")
    zipped = start[:2] == b"\x1f\x8b"
    if zipped:
        start = _unpacked_start(path)
    if start[:4] == b"PAR1":
        return Source(path, "parquet", zipped)
    for mark, what in _OTHERS.items():
        if start.startswith(mark):
            raise InputError(f"{path} is {what}. Save it as CSV or Parquet, and pass that file.")
    return Source(path, "text", zipped)


def reject_unreadable(path: Path) -> None:
    """Refuse a path that is no file to be read: missing, a folder, not permitted."""
    try:
        if not path.exists():
            raise InputError(f"There is no file {path}. Check the name and the folder ({Path.cwd()} is where you are).")
        if path.is_dir():
            raise InputError(f"{path} is a folder. Pass a file in it.")
    except OSError as error:
        raise InputError(f"{str(path)[:80]!r} cannot be looked up: {error.strerror}.") from error
    if not os.access(path, os.R_OK):
        raise InputError(f"{path} may not be read by you (permission denied). Change its permissions, or copy it.")
    if not path.is_file():
        raise InputError(f"{path} is not a regular file. It is read twice, so save the rows to a file first.")


def _unpacked_start(path: Path) -> bytes:
    try:
        with gzip.open(path, "rb") as file:
            start = file.read(_START)
    except (OSError, EOFError) as error:
        raise InputError(f"{path} looks compressed by gzip but cannot be unpacked: {error}.") from error
    if not start:
        raise InputError(f"{path} is empty once unpacked.")
    return start
