"""Importance over a Parquet file that need not fit in memory, beside bare `predict` over the same file.

    python -m benchmarks.large_file                 1, 5 and 20 million rows (about half an hour, 3.5 GB of disk)
    python -m benchmarks.large_file --millions 1    one size
    python -m benchmarks.large_file --quick         200,000 rows

A file of 20 columns and a target is written chunk by chunk to a temporary folder, and a gradient boosting model
(scikit-learn's HistGradientBoostingRegressor, 100 trees) is trained on 200,000 of its rows. Then, each in a process of
its own, with the same two cores:

bare        one pass of `predict` over the file, read in batches of 250,000 rows as pandas frames. Three ways: one
            process, in which the model uses two threads; two processes, one thread each; and two processes that predict
            each batch six times, which leaves reading out of five of six. The quickest counts.
subgrove    `sg.importance(model, path, "y", features=5 of them, n_repeats=1, n_jobs=2)`: a sample is drawn, samplers
            are chosen and fitted on it, and the model predicts six times as many rows as there are.

Throughput is rows predicted in a second, from the start of the call to its end. Memory is the largest sum of the
resident memory of the process and its children, looked at 20 times in a second. Start of Python and imports are left
out of the time, not of the memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine
from benchmarks.timing import markdown

COLUMNS = [f"x{k}" for k in range(1, 21)]
FEATURES = COLUMNS[:5]
ROW_GROUP = 250_000
TRAINING = 200_000
WAYS = ("one process", "two processes", "two processes, six predictions of a batch", "subgrove")


def rows(n: int, seed: int) -> dict[str, Any]:
    """Normal columns, each correlated 0.7 with the one before, and a target of some of them."""
    rng = np.random.default_rng([1, seed])
    x = rng.standard_normal((20, n))
    for k in range(1, 20):
        x[k] = 0.7 * x[k - 1] + np.sqrt(1 - 0.49) * x[k]
    y = x[0] * x[2] + np.sin(2 * x[1]) + np.maximum(x[3], 0) + 0.5 * x[4] + 0.1 * x[5:].sum(axis=0)
    columns = {name: column.round(3) for name, column in zip(COLUMNS, x, strict=True)}
    return columns | {"y": (y + rng.standard_normal(n)).round(3)}


def write(path: Path, n: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = pa.table(rows(2, 0))
    with pq.ParquetWriter(path, first.schema) as writer:
        for number, start in enumerate(range(0, n, ROW_GROUP)):
            writer.write_table(pa.table(rows(min(ROW_GROUP, n - start), number)), row_group_size=ROW_GROUP)


def trained(folder: Path) -> None:
    import joblib
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor

    frame = pd.DataFrame(rows(TRAINING, 10_000))  # rows that are not in the file
    joblib.dump(HistGradientBoostingRegressor(random_state=1).fit(frame[COLUMNS], frame["y"]), folder / "model.joblib")


def bare(model: Any, path: str, groups: list[int], times: int) -> int:
    """Predict rows of some row groups, and forget them."""
    import pyarrow.parquet as pq

    n = 0
    for batch in pq.ParquetFile(path).iter_batches(ROW_GROUP, row_groups=groups, columns=COLUMNS):
        frame = batch.to_pandas()
        for _ in range(times):
            n += len(model.predict(frame))
    return n


def job(way: str, folder: Path, sample: int) -> None:
    """What is measured; prints rows predicted and seconds."""
    import joblib
    import pyarrow.parquet as pq

    model, path = joblib.load(folder / "model.joblib"), str(folder / "rows.parquet")
    more: dict[str, Any] = {}
    if way == "subgrove":
        import subgrove as sg

        start = time.perf_counter()
        options: dict[str, Any] = {
            "features": FEATURES,
            "n_repeats": 1,
            "random_state": 1,
            "n_jobs": 2,
        }
        imp = sg.importance(model, sg.LargeData(path, sample_size=sample), "y", check_fidelity=False, **options)
        n = int(imp.settings["n_rows_predicted"])
        more = {"importance": [round(value, 4) for value in imp.overall.sort_values("feature")["estimate"]]}
    else:
        groups = list(range(pq.ParquetFile(path).num_row_groups))
        start = time.perf_counter()
        if way == "one process":
            n = bare(model, path, groups, 1)
        else:
            times = 6 if "six" in way else 1
            halves = [groups[at::2] for at in range(2)]
            with joblib.parallel_config("loky", n_jobs=2, inner_max_num_threads=1):
                n = sum(joblib.Parallel()(joblib.delayed(bare)(model, path, half, times) for half in halves if half))
    print(json.dumps({"rows": n, "seconds": time.perf_counter() - start, **more}))


def watched(command: list[str]) -> tuple[dict[str, Any], float]:
    """What a command prints at its end, and the most memory that it and its children held, in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, _resident(process.pid))
        time.sleep(0.05)
    assert process.stdout is not None
    text = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}: {text}")
    found: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return found, peak


def _resident(pid: int) -> float:
    """Resident memory of a process and all below it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        mine = next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0.0)
        children = " ".join(task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children")).split()
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return 0.0
    return mine + sum(_resident(int(child)) for child in children)


def measured(millions: float, ways: tuple[str, ...], sample: int, rounds: int) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n = int(millions * 1_000_000)
        write(folder / "rows.parquet", n)
        trained(folder)
        rate: dict[str, float] = {}
        memory: dict[str, float] = {}
        for _ in range(rounds):
            for way in ways:
                command = [sys.executable, "-m", "benchmarks.large_file", "--job", way, "--folder", name]
                found, peak = watched([*command, "--sample", str(sample)])
                rate[way] = max(rate.get(way, 0.0), found["rows"] / found["seconds"])
                memory[way] = max(memory.get(way, 0.0), peak)
                print(f"{n:,} rows, {way}: {found}, {peak:,.0f} MiB", file=sys.stderr, flush=True)
    others = {way: rate[way] for way in ways if way != "subgrove"}
    best = max(others.values(), default=float("nan"))
    one_pass = max((others[way] for way in others if "six" not in way), default=float("nan"))
    return [
        [
            f"{n:,}",
            way,
            f"{rate[way]:,.0f}",
            f"{rate[way] / one_pass:.2f}",
            f"{rate[way] / best:.2f}",
            f"{memory[way]:,.0f}",
        ]
        for way in ways
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 5, 20])
    parser.add_argument("--quick", action="store_true", help="200,000 rows")
    parser.add_argument("--sample", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=2, help="of which the quickest counts")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--job", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        job(options.job, options.folder, options.sample)
        return
    print(machine("numpy", "pandas", "scikit-learn", "pyarrow") + "\n")
    head = ["rows", "way", "rows predicted / s", "of bare, one pass", "of bare, the quickest", "peak MiB"]
    lines: list[list[str]] = []
    for millions in [0.2] if options.quick else options.millions:
        sample = 20_000 if options.quick else options.sample
        lines += measured(millions, tuple(options.ways), sample, 1 if options.quick else options.rounds)
    print(markdown(head, lines))


if __name__ == "__main__":
    main()
