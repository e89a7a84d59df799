"""Write files whole or not at all; temporary files that are removed however the program ends."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize
from zipfile import ZipFile

from subgrove.exceptions import InputError, ParameterError

_MOST_UNPACKED, _MOST_TIMES = 1 << 30, 100  # bytes, and times its size, that a zip archive may unpack to


class TemporaryFolder:
    """A temporary folder that is removed when it is closed or nobody holds it any more, or with the program.

    A program that is killed cannot remove it: the resource tracker of loky does, a process that outlives its own.
    """

    def __init__(self) -> None:
        from loky.backend import resource_tracker

        try:
            self.place = Path(mkdtemp(prefix="subgrove-"))
        except OSError as error:
            raise ParameterError(
                f"No temporary folder can be made: {error}. Set TMPDIR to a folder with room."
            ) from error
        resource_tracker.register(str(self.place), "folder")
        self.close = finalize(self, _remove, self.place)

    def __enter__(self) -> Path:
        return self.place

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(folder: Path) -> None:
    from loky.backend import resource_tracker

    rmtree(folder, ignore_errors=True)
    resource_tracker.unregister(str(folder), "folder")


def check_file_path(path: Path) -> None:
    """Check that the parent folder exists and that the path is not a folder."""
    if path.is_dir():
        raise ParameterError(f"path={str(path)!r} is a folder. Pass the path of a file.")
    if not path.parent.is_dir():
        raise ParameterError(f"path={str(path)!r} is in a folder that does not exist. Create the folder first.")


def check_unpacked_size(path: Path) -> None:
    """Reject a zip archive that is small but would fill the memory."""
    with ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(_MOST_UNPACKED, _MOST_TIMES * path.stat().st_size):
        times = f"{unpacked / 2**30:.1f} GiB, more than {_MOST_TIMES} times its size"
        raise InputError(f"The file would unpack to {times}. No ordinary file does, so it was not opened.")


def utf8(text: str) -> bytes:
    """Return text as UTF-8; halves of surrogate pairs, which it does not have, are escaped."""
    return text.encode(errors="backslashreplace")


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all, as UTF-8."""
    write_files({path: utf8(text)})


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    write_files({path: content})


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files, all of them completely or none at all; the file that a link leads to is written, not the link."""
    unfinished: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            check_file_path(path)
            if path.exists() and not path.is_file():  # a device or a pipe, which must not be replaced by a file
                path.write_bytes(content)
                continue
            place = path.resolve()
            unfinished[place] = place.parent / f".{secrets.token_hex(8)}.unfinished"
            with unfinished[place].open("xb") as file:
                file.write(content)
        for place, written in unfinished.items():
            written.replace(place)
    except BaseException as error:
        for written in unfinished.values():
            written.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = str(path)  # that of the temporary file, or none if the disk is full
        raise
