"""The cost of a chunk by step, and the resulting estimate for a billion rows on 100 workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.cluster_parts import Workload, engine
from benchmarks.large_file import COLUMNS, FEATURES
from benchmarks.timing import markdown

ROWS, WORKERS, CHUNK_ROWS = 1_000_000_000, 100, 250_000
PASSES = 1 + len(FEATURES)
NETWORK = 125e6  # bytes in a second: 1 Gbit/s, shared by all workers when the model is shipped
N_EMPTY = 200


@dataclass(frozen=True)
class Nothing:
    """Work without cost, to measure the overhead of the engine."""

    def __call__(self, chunk: Any) -> dict[str, np.ndarray]:
        """The number of rows."""
        return {"n": np.array(chunk.n_rows)}


def cost_tables(options: Workload, engines: list[str]) -> str:
    """Return two tables: measured costs, and the estimate."""
    from subgrove._scale.engines.base import load_work, pickle_work
    from subgrove._scale.large_data import read_chunks

    model, data = options.model, read_chunks(options.path, chunk_rows=options.rows_each)
    frames: list[Any] = []
    read = _seconds(lambda: frames.append(data.chunks[0].read(COLUMNS)), 5) / options.rows_each
    with threadpool_limits(1):
        predict = _seconds(lambda: model.predict(frames[0]), 5) / options.rows_each
    part = options.first_files(options.n_files // 4)
    whole = (options.timed(1) - part.timed(1)) / (options.n_rows - part.n_rows)
    rest = max(whole - read - PASSES * predict, 0.0)
    sent = pickle_work(model)
    loading = _seconds(lambda: load_work(sent), 5)
    overhead = {name: _per_task(name, data.chunks[0]) for name in engines}
    lines = [
        ["read a row", f"{1e9 * read:.0f} ns"],
        ["predict a row, one thread of the model", f"{1e9 * predict:.0f} ns"],
        [f"everything else of a row (redraws, losses, sums; {len(FEATURES)} features)", f"{1e9 * rest:.0f} ns"],
        *([f"submit a chunk and collect its sums, {name}", f"{1e3 * one:.1f} ms"] for name, one in overhead.items()),
        ["the work, shipped once to each worker", f"{len(sent.data) / 1e6:.2f} MB, loaded in {1e3 * loading:.0f} ms"],
    ]
    row = read + PASSES * predict + rest
    return (
        markdown(["what", "costs"], lines)
        + "\n\n"
        + estimate(row, read, max(overhead.values()), len(sent.data), loading)
    )


def estimate(row: float, read: float, overhead: float, size: int, loading: float) -> str:
    """A billion rows on 100 workers of one core each, if storage serves each of them as fast as here."""
    chunks = ROWS // CHUNK_ROWS
    rounds = -(-chunks // WORKERS)
    lines: list[tuple[str, float]] = [
        ("ship the work to each worker, over 1 Gbit/s", WORKERS * size / NETWORK + loading),
        ("draw the sample: each chunk is read once", rounds * CHUNK_ROWS * read),
        (f"{chunks:,} chunks of {CHUNK_ROWS:,} rows, {rounds} for each worker", rounds * CHUNK_ROWS * row),
    ]
    total = sum(seconds for _, seconds in lines)
    table = markdown(["step", "seconds"], [[name, f"{seconds:.1f}"] for name, seconds in lines])
    busy = chunks * overhead
    return (
        f"{table}\n\nEstimate for {ROWS:,} rows on {WORKERS} workers: {total:.0f} s ({total / 60:.0f} minutes), beside "
        f"fitting samplers on the sample. Submitting chunks keeps the client busy for {busy:.0f} s of these, at the "
        f"same time ({100 * busy / total:.0f} %); with chunks of this size, more than about "
        f"{WORKERS * total / busy:,.0f} workers would wait for it."
    )


def _per_task(name: str, chunk: Any) -> float:
    from subgrove._scale.engines import run_chunks

    with engine(name, 4):
        list(run_chunks(Nothing(), [chunk] * 8))
        return _seconds(lambda: list(run_chunks(Nothing(), [chunk] * N_EMPTY)), 1) / N_EMPTY


def _seconds(call: Callable[[], Any], times: int) -> float:
    """Return the minimum time of some calls."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)
