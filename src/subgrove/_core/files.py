"""Write files whole or not at all."""

from __future__ import annotations

import secrets
from pathlib import Path

from subgrove.exceptions import ParameterError


def check_file_path(path: Path) -> None:
    """Check that the parent folder exists and that the path is not a folder."""
    if path.is_dir():
        raise ParameterError(f"path={str(path)!r} is a folder. Pass the path of a file.")
    if not path.parent.is_dir():
        raise ParameterError(f"path={str(path)!r} is in a folder that does not exist. Create the folder first.")


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all, as UTF-8."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    check_file_path(path)
    unfinished = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        with unfinished.open("xb") as file:
            file.write(content)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
