"""A unit of work: the smallest part that is computed, stored and skipped when it is there already."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

_PART = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")


@dataclass(frozen=True)
class Unit:
    """One unit of an experiment; its result depends on these fields and on nothing else.

    Attributes
    ----------
    key : str
        Unique in the experiment, such as "I-linear-300-10/r0017"; it is the seed and the place where rows are stored.
    cell : str
        What the repetitions of the same question have in common; `--cells` chooses among these.
    params : dict
        What the experiment needs to know to compute it.
    """

    key: str
    cell: str
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(_PART.fullmatch(part) for part in self.key.split("/")):
            raise ValueError(f"key {self.key!r} must be made of letters, digits, _ . + - and single slashes.")


@dataclass(frozen=True)
class Size:
    """How much of an experiment to run.

    Attributes
    ----------
    reps : int or None
        Repetitions; None for the number that the experiment thinks right.
    cells : tuple of str
        Patterns such as "I-linear-*"; empty for all cells.
    quick : bool
        Small enough to see in seconds that everything works; the numbers mean nothing.
    data : Path or None
        Folder with data sets, where they are needed.
    samplers : tuple of str
        Names of samplers of the package, where an experiment uses some.
    seed : int
        0 for the rows that stored tables are of; with another number every unit gets rows of its own.
    forest : {"sklearn", "own"}
        Which forests are explained where an experiment has a choice: scikit-learn's, or ours with R's rule for leaves.
    """

    reps: int | None = None
    cells: tuple[str, ...] = ()
    quick: bool = False
    data: Path | None = None
    samplers: tuple[str, ...] = ()
    seed: int = 0
    forest: str = "sklearn"

    def takes(self, cell: str) -> bool:
        """Whether a cell is requested."""
        return not self.cells or any(fnmatchcase(cell, pattern) for pattern in self.cells)


def seed_of(experiment: str, key: str) -> int:
    """The seed of a unit: the same in every run, whatever else is run."""
    return int.from_bytes(hashlib.sha256(f"{experiment}/{key}".encode()).digest()[:8], "little") >> 1


def reject_twins(units: Sequence[Unit]) -> None:
    """Raise if two units have the same key, so that one would be taken for the other."""
    seen: set[str] = set()
    for unit in units:
        if unit.key in seen:
            raise ValueError(f"two units have the key {unit.key!r}; a key must name one unit.")
        seen.add(unit.key)
