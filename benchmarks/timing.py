"""Measure time and memory: alternating calls, and peak memory of separate processes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

Call = Callable[[], Any]


def seconds(call: Call, clock: Callable[[], float] = time.perf_counter) -> float:
    """How long a call takes."""
    gc.collect()
    start = clock()
    call()
    return clock() - start


def interleaved(
    calls: Mapping[str, Call], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Return the times of calls taken in turns, so that other load affects all; each round starts with another call.

    `time.process_time` as the clock counts the work of this process alone.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for at in range(rounds):
        for name in names[at % len(names) :] + names[: at % len(names)]:
            times[name].append(seconds(calls[name], clock))
    return times


def ratio(times: Mapping[str, list[float]], name: str, other: str) -> float:
    """Return the median over rounds of the ratio of the times of `name` and `other`."""
    return median(mine / theirs for mine, theirs in zip(times[name], times[other], strict=True))


def forget_peak() -> None:
    """Reset the peak memory of this process, where the system allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """Return the peak memory of this process; the resource module would include that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
