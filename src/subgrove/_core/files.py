"""Write files whole or not at all."""

from __future__ import annotations

import secrets
from pathlib import Path

from subgrove.exceptions import ParameterError


def check_file_path(path: Path) -> None:
    """A file needs a folder that is there, and must not be one."""
    if path.is_dir():
        raise ParameterError(f"path={str(path)!r} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise ParameterError(f"path={str(path)!r} is in a folder that is not there. Make the folder first.")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    check_file_path(path)
    unfinished = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        with unfinished.open("x", encoding="utf-8") as file:
            file.write(text)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
