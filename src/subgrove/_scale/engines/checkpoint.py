"""A folder that keeps what is done, so that a run that was stopped goes on where it was.

::

    run.json             what the sums depend on (`mark`), the chunks, the version
    chunk-000017.npz     sums of chunk 17, plain arrays, written under another name first

Files are only ever added, whole, and the same run writes the same bytes whoever does it: two processes in one folder
do some chunks twice and harm nothing. Another run is rejected, with the differences.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from subgrove._core.files import write_bytes
from subgrove._core.validate import warn
from subgrove._scale.engines.base import ChunkArrays, SupportsChunk
from subgrove._version import __version__
from subgrove.exceptions import FormatError, ParameterError

FORMAT = 1
OF = "of_run"  # the name under which a file of sums says what it belongs to
_DAMAGED = (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Checkpoint:
    """An open folder of one run."""

    folder: Path
    digest: str

    def file(self, number: int) -> Path:
        """Where sums of a chunk are, or will be."""
        return self.folder / f"chunk-{number:06d}.npz"

    def done(self, number: int) -> bool:
        """Whether sums of a chunk are there."""
        return self.file(number).exists()

    def read(self, number: int) -> dict[str, np.ndarray] | None:
        """Sums of a chunk; None, with a warning, if the file is damaged."""
        try:
            with open(self.file(number), "rb") as file, np.load(file, allow_pickle=False) as saved:
                sums = {name: saved[name] for name in saved.files}
            if str(sums.pop(OF)) != self._seal(number, sums):
                raise ValueError("it belongs to another run or chunk, or was changed")
        except _DAMAGED as error:
            warn(f"{self.file(number)} cannot be used ({error}); its chunk is done again.")
            return None
        return sums

    def write(self, number: int, sums: ChunkArrays) -> None:
        """Keep sums of a chunk: whole, or not at all."""
        content = io.BytesIO()
        np.savez(content, **{OF: np.array(self._seal(number, sums))}, **sums)  # type: ignore[arg-type]  # its stub wants a flag
        _write(self.file(number), content.getvalue())

    def _seal(self, number: int, sums: ChunkArrays) -> str:
        """What says which run and chunk sums belong to, and that they are as they were written."""
        digest = hashlib.sha256(f"{self.digest}/{number}".encode())
        for name in sorted(sums):
            array = np.asarray(sums[name])
            digest.update(f"/{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
        return digest.hexdigest()


def open_checkpoint(folder: Path | str, mark: str, chunks: Sequence[SupportsChunk], what: str) -> Checkpoint:
    """The folder for this run: created if it does not exist, rejected if it belongs to another run."""
    folder = Path(folder)
    run = {
        "format": FORMAT,
        "subgrove": __version__,
        "what": what,
        "mark": mark,
        "chunks": [[chunk.name, int(chunk.first_row), int(chunk.n_rows)] for chunk in chunks],
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"checkpoint={str(folder)!r} cannot be made a folder: {error}. Name another.") from error
    if not (folder / "run.json").exists():
        write_run(folder, run)
    try:
        found = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{folder / 'run.json'} cannot be read: {error}. Name another checkpoint folder.") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FormatError(f"{folder / 'run.json'} is no checkpoint of this version. Name another checkpoint folder.")
    if found != run:
        raise ParameterError(
            f"checkpoint={str(folder)!r} holds another run: {'; '.join(describe_differences(found, run))}. "
            f"Name another folder, or remove this one if what it holds is not needed."
        )
    digest = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:32]
    return Checkpoint(folder, digest)


def write_run(folder: Path, run: dict[str, Any]) -> None:
    """Write what the run is, into a folder that holds nothing else."""
    others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if others and "run.json" not in others:
        raise ParameterError(
            f"checkpoint={str(folder)!r} is no checkpoint and is not empty: it holds {others[0]!r}"
            f"{f' and {len(others) - 1} more' if len(others) > 1 else ''}. Name a new or an empty folder."
        )
    _write(folder / "run.json", json.dumps(run, indent=1).encode())


def describe_differences(found: dict[str, Any], run: dict[str, Any]) -> list[str]:
    """In words, what two runs differ in; a mark is compared line by line."""
    words = [
        f"{key} {found.get(key)!r}, now {run[key]!r}" for key in ("subgrove", "what") if found.get(key) != run[key]
    ]
    old, new = (str(each.get("mark")).splitlines() for each in (found, run))
    gone, come = ([line for line in a if line not in b] for a, b in ((old, new), (new, old)))
    if gone or come:
        words.append(f"{', '.join(gone) or 'nothing'}, now {', '.join(come) or 'nothing'}")
    if found.get("chunks") != run["chunks"]:
        known = found.get("chunks")
        n_known = len(known) if isinstance(known, list) else "no"
        words.append(f"{n_known} chunks, now {len(run['chunks'])} or others")
    return words or ["its mark"]


def _write(path: Path, content: bytes) -> None:
    try:
        write_bytes(path, content)
    except OSError as error:
        raise ParameterError(f"checkpoint: {path} cannot be written: {error}. What is there is kept.") from error
