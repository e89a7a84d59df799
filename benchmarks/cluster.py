"""Importance over partitions on clusters of worker processes: same numbers, workers killed, resumed, scaled, estimated.

    python -m benchmarks.cluster                  a million rows in 40 files (about a quarter of an hour, two cores)
    python -m benchmarks.cluster --quick          40,000 rows, one round
    python -m benchmarks.cluster --only dask      some engines only (local, dask, ray; repeat it)

Needs `pip install 'subgrove[dask,ray]'`; an engine that is not installed is left out, and the table says so. A gradient
boosting model of 100 trees, importance of 5 of 20 features, one repeat each, so every row is predicted six times.

1.  Each engine with 4 worker processes against one process here: counts must be the same, sums within 1e-12.
2.  The same with a worker killed (SIGKILL) when a quarter of the chunks are done, and another at a half.
3.  The scheduler of Dask is killed; a new cluster goes on from the checkpoint.
4.  Strong scaling: one process against two, one thread each, in turns.
5.  A cost model of what was measured, and from it an estimate for a billion rows on 100 workers.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster_costs import cost_tables
from benchmarks.cluster_parts import (
    ENGINES,
    Killer,
    Workload,
    engine,
    judged,
    scheduler_killed,
    train_model,
    write_folder,
)
from benchmarks.machine import machine
from benchmarks.timing import markdown

PACKAGES = {"local": "joblib", "dask": "distributed", "ray": "ray"}


def differences(one: Any, other: Any) -> tuple[bool, float]:
    """Whether counts are the same, and the largest relative difference of estimates, errors and statistics."""
    a, b = one.by_subgroup, other.by_subgroup
    counts = bool((a["n"] == b["n"]).all()) and one.settings["left_out"] == other.settings["left_out"]
    worst = 0.0
    for x, y in ((one.overall, other.overall), (a, b)):
        for name in ("estimate", "std_error", "statistic"):
            first, second = x[name].to_numpy(float), y[name].to_numpy(float)
            gap = np.abs(first - second) / np.maximum(np.abs(first), 1e-300)
            worst = max(worst, float(np.nanmax(np.where(first == second, 0.0, gap))))
    return counts, worst


def same_numbers(settings: Workload, engines: list[str]) -> list[list[str]]:
    start = time.perf_counter()
    here = judged(settings, n_jobs=1)
    lines: list[list[str]] = [["one process here", "", "", "", f"{time.perf_counter() - start:.1f}"]]
    for name in engines:
        with engine(name, 4) as cluster:
            judged(settings.first_files(4))  # workers start, import and load
            for kills in (0, 2):
                folder = settings.folder / f"kept-{name}-{kills}"
                start = time.perf_counter()
                with Killer(cluster, folder, settings.n_files, kills) as killer:
                    found = judged(settings, checkpoint=folder)
                counts, worst = differences(here, found)
                took = f"{time.perf_counter() - start:.1f}"
                label = f"{name}, 4 processes" + (f", {len(killer.killed)} killed" if kills else "")
                lines.append([label, "same" if counts else "DIFFER", f"{worst:.1e}", str(len(killer.killed)), took])
    return lines


def scaling(settings: Workload, rounds: int) -> list[list[str]]:
    """Seconds of the whole call and of each further million rows, for one process and for two."""
    quarter = settings.first_files(settings.n_files // 4)
    times: dict[tuple[int, str], list[float]] = {}
    for _ in range(rounds):
        for n_jobs in (1, 2):
            for label, part in (("quarter", quarter), ("all", settings)):
                times.setdefault((n_jobs, label), []).append(part.timed(n_jobs))
    middle = {key: statistics.median(values) for key, values in times.items()}
    slope = {n: middle[n, "all"] - middle[n, "quarter"] for n in (1, 2)}
    scale = 1e6 / (settings.n_rows - quarter.n_rows)
    return [
        ["whole call, s", *(f"{middle[n, 'all']:.2f}" for n in (1, 2)), f"{middle[1, 'all'] / middle[2, 'all']:.2f}"],
        ["each further million rows, s", *(f"{slope[n] * scale:.2f}" for n in (1, 2)), f"{slope[1] / slope[2]:.2f}"],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--rows", type=int, default=25_000, help="rows of a file, which is one chunk")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=ENGINES)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.files, options.rows, options.rounds = 16, 2_500, 1
    engines = [name for name in options.only or ENGINES if importlib.util.find_spec(PACKAGES[name])]
    print(machine("subgrove", "scikit-learn", "joblib", "distributed", "ray"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_folder(folder / "rows", options.files, options.rows)
        train_model(folder, 5_000 if options.quick else 50_000)
        settings = Workload(folder, options.files, options.rows)
        print(f"\n{settings.n_rows:,} rows, {options.files} chunks.\n")
        header = ["engine", "counts", "largest relative difference", "workers killed", "seconds"]
        print(markdown(header, same_numbers(settings, engines)), "\n")
        absent = [name for name in options.only or ENGINES if name not in engines]
        if absent:
            print(f"Not installed, so left out: {', '.join(absent)}.\n")
        if "dask" in engines:
            done = scheduler_killed(settings)
            counts, worst = differences(judged(settings, n_jobs=1), done.result)
            print(
                f"Scheduler killed after {done.kept} of {options.files} chunks: {done.error}. On a new cluster "
                f"{done.again} were done, {done.kept} were not done again; counts "
                f"{'are the same' if counts else 'DIFFER'}, largest relative difference {worst:.1e}.\n"
            )
        print(
            markdown(["strong scaling", "1 process", "2 processes", "ratio"], scaling(settings, options.rounds)), "\n"
        )
        print(cost_tables(settings, engines))


if __name__ == "__main__":
    main()
