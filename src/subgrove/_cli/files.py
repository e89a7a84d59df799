"""Files that the command writes: checked before the work, whole or not at all after it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from subgrove._core.files import write_text
from subgrove.exceptions import ParameterError

STDOUT = "-"


def check_output(path: Path | None, option: str, suffixes: tuple[str, ...] = ()) -> None:
    """Refuse a path that cannot be written, before time is spent on what would be written there."""
    if path is None or str(path) == STDOUT:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise ParameterError(f"{option} {path}: the name must end with {' or '.join(suffixes)}.")
    if path.is_dir():
        raise ParameterError(f"{option} {path} is a folder. Name a file in it.")
    folder = path.parent
    if not folder.is_dir():
        raise ParameterError(f"{option} {path}: there is no folder {folder}. Create it first.")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ParameterError(f"{option} {path} may not be written by you (permission denied). Choose another place.")


def deliver(path: Path, text: str) -> None:
    """Write text to a file, whole or not at all, or to standard output, as UTF-8 wherever it goes."""
    if str(path) == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write((text if text.endswith("\n") else text + "\n").encode())
        sys.stdout.buffer.flush()
    else:
        write_text(path, text)
