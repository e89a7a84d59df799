"""Chunks and works for the tests of engines: small, picklable, and bad on request."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from subgrove.exceptions import ModelError, SubgroveWarning


@dataclass(frozen=True)
class Rows:
    """A chunk: some numbers in a row."""

    first_row: int
    n_rows: int

    @property
    def name(self) -> str:
        return f"rows {self.first_row} to {self.first_row + self.n_rows - 1}"


def chunks(n: int = 10) -> list[Rows]:
    return [Rows(start, 3) for start in range(0, 3 * n, 3)]


@dataclass(frozen=True)
class Add:
    """Count and sum; says who did what in `log`, and is bad at the chunk `at` for the first `times` times.

    How: "raise" an error, a "model" error, "kill" the process, "warn", or "wait" a long time.
    """

    log: Path
    how: str = ""
    at: int = -1
    times: int = 1_000
    seconds: float = 0.0
    seconds_of_wait: float = 60.0

    def __call__(self, chunk: Rows) -> Mapping[str, np.ndarray]:
        with open(self.log, "a") as file:  # short appended lines are whole
            file.write(f"{os.getpid()} {chunk.first_row}\n")
        time.sleep(self.seconds)
        if chunk.first_row == self.at and len(self.attempts()) <= self.times:
            self.misbehave()
        rows = np.arange(chunk.first_row, chunk.first_row + chunk.n_rows)
        return {"n": np.array(len(rows)), "sum": np.array([rows.sum(), 0.1 * rows.sum()])}

    def misbehave(self) -> None:
        if self.how == "raise":
            raise OSError("the disk is gone")
        if self.how == "model":
            raise ModelError("The model raised KeyError on 3 rows.")
        if self.how == "warn":
            warnings.warn("a level that is new", SubgroveWarning, stacklevel=2)
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "wait":
            time.sleep(self.seconds_of_wait)

    def lines(self) -> list[tuple[int, int]]:
        """Process and first row of each chunk that was begun."""
        if not self.log.exists():
            return []
        return [(int(pid), int(row)) for pid, row in (line.split() for line in self.log.read_text().splitlines())]

    def attempts(self) -> list[int]:
        """First row of the bad chunk, once for each attempt."""
        return [row for _, row in self.lines() if row == self.at]


def total(results: Iterable[tuple[int, Mapping[str, np.ndarray]]]) -> list[int]:
    return [int(sums["sum"][0]) for _, sums in results]


def begun(work: Add) -> None:
    """Wait until the bad chunk is worked on."""
    for _ in range(600):
        if work.attempts():
            return
        time.sleep(0.05)
    raise AssertionError("the chunk was not begun within half a minute")


def runs(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0]


class Loaded:
    """Leaves a file each time that another process unpickles it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        (self.folder / f"load-{os.getpid()}-{time.time_ns()}").touch()

    def __call__(self, chunk: Rows) -> dict[str, np.ndarray]:
        return {"n": np.array(chunk.n_rows)}
