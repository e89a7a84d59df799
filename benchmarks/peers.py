"""Importance, partial dependence and accumulated local effects: ours against other packages, in one run.

    python -m benchmarks.peers                   # all of it; goes on where it was stopped
    python -m benchmarks.peers --quick           # small tables, two rounds, to see that everything runs
    python -m benchmarks.peers --jobs pdp ale --models forest
    python -m benchmarks.peers --fresh           # forgets what was measured before

Same model, same rows, same number of repeats, one core each. Calls of the packages are taken in turns, in processor
time, which is the time they take on an idle machine. A ratio is the median over rounds of the package's time over ours
in the same round, so above 1 ours is quicker. Rows predicted by the
model are counted. Peak memory is that of a process of its own, beyond what it held with model and rows loaded. A
package that is missing or raises is listed with its error. Results are kept in `benchmarks/results/peers.csv`.

Packages stand in an environment of their own, since alibi needs NumPy below 2::

    python -m venv peers
    peers/bin/pip install . alibi click effector fippy hidimstat PyALE sage-importance
    peers/bin/python -m benchmarks.peers
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine, version_of
from benchmarks.peers_calls import INTERVALS, JOBS, PEERS, POINTS, REPEATS, Peer, Task, task_of
from benchmarks.timing import forget_peak, interleaved, markdown, peak_mib, ratio

RESULTS = Path(__file__).parent / "results" / "peers.csv"
MODELS = ("linear", "boosting", "forest")
COLUMNS = 10
MEMORY_ROWS = 100_000
LONG = 10.0  # seconds; a call that takes longer is timed once
PATIENCE = 300.0  # seconds that a process may take whose memory is measured
NOISE = 0.03  # ratios of calls that only wait for the same model differ by as much from run to run


class Counting(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted model that counts the rows it predicts."""

    def __init__(self, model: Any = None) -> None:
        self.model = model
        self.n_features_in_ = model.n_features_in_
        self.n_rows = 0

    def fit(self, X: Any, y: Any) -> Counting:
        """It is fitted."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        """What the model predicts."""
        self.n_rows += len(X)
        return self.model.predict(X)


def measured(job: str, model: str, n: int, rounds: int, memory_rows: int) -> list[dict[str, Any]]:
    """One row of results for each package."""
    tasks = {container: task_of(model, n, COLUMNS, container) for container in ("array", "frame")}
    peers = [peer for peer in PEERS if peer.job == job]
    trials = {title(peer): tried(peer, tasks[peer.container]) for peer in peers}
    calls = {title(peer): partial(peer.call, tasks[peer.container]) for peer in peers}
    alive = {name: call for name, call in calls.items() if not trials[name][1] and trials[name][2] <= LONG}
    times = interleaved(alive, rounds, time.process_time)
    times |= {name: [taken] * rounds for name, (_, error, taken) in trials.items() if not error and taken > LONG}
    rows = []
    for peer in peers:
        settings, error, _ = trials[title(peer)]
        mine = next((title(one) for one in peers if one.name == peer.ours and one.package == "subgrove"), None)
        took = times.get(title(peer))
        rows.append(
            {
                "job": job,
                "model": model,
                "rows": n,
                "rounds": rounds,
                "name": peer.name,
                "package": peer.package,
                "version": version_of(peer.package),
                "container": peer.container,
                "same_work": peer.same_work,
                "rows_predicted": settings,
                "seconds": median(took) if took else np.nan,
                "ratio": ratio(times, title(peer), mine) if took and mine and peer.package != "subgrove" else np.nan,
                "against": peer.ours if peer.package != "subgrove" else "",
                "memory_mib": peak_of(peer, memory_rows) if took and model == "linear" else np.nan,
                "differs": peer.differs,
                "error": error,
            }
        )
    return rows


def title(peer: Peer) -> str:
    """A name that no other row of the job has."""
    return f"{peer.package} {peer.name}"


def tried(peer: Peer, task: Task) -> tuple[int, str, float]:
    """Rows predicted by the model, the error if there is one, and the seconds."""
    counting, start = Counting(task.model), time.process_time()
    try:
        peer.call(Task(counting, task.X, task.y, task.train, task.y_train))
    except Exception as error:
        return 0, f"{type(error).__name__}: {error}".splitlines()[0], 0.0
    return counting.n_rows, "", time.process_time() - start


def peak_of(peer: Peer, n: int) -> float:
    """Peak memory of a call in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers", "--memory-of", str(PEERS.index(peer)), "--rows", str(n)]
    options: dict[str, Any] = {"capture_output": True, "text": True, "cwd": Path(__file__).parent.parent}
    try:
        done = subprocess.run(command, timeout=PATIENCE, check=True, **options)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return np.nan
    return float(done.stdout.split()[-1])


def print_memory(at: int, n: int) -> None:
    """What the process above runs; a call of few rows first, which loads what is loaded late."""
    peer = PEERS[at]
    peer.call(task_of("linear", 600, COLUMNS, peer.container))
    task = task_of("linear", n, COLUMNS, peer.container)
    forget_peak()
    before = peak_mib()
    peer.call(task)
    print(peak_mib() - before)


def tables(found: pd.DataFrame) -> str:
    """Markdown: a table for each job."""
    parts = []
    for job, own in found.groupby("job", sort=False):
        lines = []
        for (name, package), rows in own.groupby(["name", "package"], sort=False):
            by_model = {row["model"]: row for _, row in rows.iterrows()}
            one = rows.iloc[0]
            cells = [_cell(by_model.get(model)) for model in MODELS]
            memory = rows["memory_mib"].dropna()
            label = f"**{name}**" if package == "subgrove" else f"{package} {one['version']} `{name}`"
            labels = one["error"] if isinstance(one["error"], str) and one["error"] else one["differs"]
            against = one["against"] if isinstance(one["against"], str) else ""
            most = f"{memory.iloc[0]:.0f}" if len(memory) else ""
            lines.append(
                [label, against, *cells, f"{one['rows_predicted']:,}", most, labels if isinstance(labels, str) else ""]
            )
        head = ["way", "against", *MODELS, "rows predicted", "MiB", "remarks"]
        parts.append(f"### {JOBS[str(job)].capitalize()}\n\n{markdown(head, lines)}\n")
    return "\n".join(parts)


def _cell(row: Any) -> str:
    """Milliseconds of ours, times ours of others."""
    if row is None or not np.isfinite(row["seconds"]):
        return ""
    if not np.isfinite(row["ratio"]):
        return f"{1000 * row['seconds']:.0f} ms"
    return f"{row['ratio']:.2f}" if row["same_work"] else f"({row['ratio']:.2f})"


def slower(found: pd.DataFrame) -> list[str]:
    """Rows of the same work in which ours is not the quickest."""
    lost = found[found["same_work"] & (found["ratio"] < 1 - NOISE)]
    return [
        f"{row['job']}, {row['model']}: {row['package']} {row['name']} {row['ratio']:.2f}" for _, row in lost.iterrows()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="500 rows, two rounds; results are printed, not kept")
    parser.add_argument("--fresh", action="store_true", help="measure anew what is in the results already")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of is not None:
        print_memory(arguments.memory_of, arguments.rows)
        return
    n, rounds, memory_rows = arguments.rows, arguments.rounds, MEMORY_ROWS
    if arguments.quick:
        n, rounds, memory_rows = 500, 2, 5000
    kept = pd.DataFrame() if arguments.quick or not RESULTS.exists() else pd.read_csv(RESULTS)
    found: list[pd.DataFrame] = []
    for job in arguments.jobs:
        for model in arguments.models:
            there = kept.query("job == @job and model == @model and rows == @n") if len(kept) else kept
            if not len(there) or arguments.fresh:
                print(f"{job}, {model} ...", file=sys.stderr, flush=True)
                there = pd.DataFrame(measured(job, model, n, rounds, memory_rows))
                if not arguments.quick:
                    kept = _stored(kept, there)
            found.append(there)
    table = pd.concat(found, ignore_index=True)
    packages = sorted(set(table["package"]) - {"subgrove"})
    print(machine("numpy", "pandas", *packages), "One core.")
    print(f"\n{n:,} rows, {COLUMNS} columns, {REPEATS} repeats, {POINTS} points, {INTERVALS} intervals; "
          f"median of {rounds} in turns, processor time. Memory: {memory_rows:,} rows, linear model.\n")  # fmt: skip
    print(tables(table))
    lost = slower(table)
    if lost:
        print("Ours is slower:\n- " + "\n- ".join(lost))
    else:
        print(f"Ours is the quickest in every row of the same work, or as quick within {100 * NOISE:.0f} %.")


def _stored(kept: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Results with those of one job and model replaced, written under another name first."""
    if len(kept):
        same = (kept["job"] == new["job"].iloc[0]) & (kept["model"] == new["model"].iloc[0])
        new = pd.concat([kept[~same], new], ignore_index=True)
    RESULTS.parent.mkdir(exist_ok=True)
    unfinished = RESULTS.with_suffix(".tmp")
    new.to_csv(unfinished, index=False)
    unfinished.replace(RESULTS)
    return new


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
