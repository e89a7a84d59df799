"""Whether a file is explained in parts: what a user says for that, without anything heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Large:
    """Where the parts are worked on, and how."""

    cluster: str | None = None
    checkpoint: Path | None = None
    sample: int | None = None
    row_key: str | None = None


def is_large(path: Path, large: Large) -> bool:
    """Whether all rows are asked about, in parts: a folder, a pattern, or an option says so."""
    pattern = any(sign in str(path) for sign in "*?[") and not path.exists()
    return path.is_dir() or pattern or large != Large()
