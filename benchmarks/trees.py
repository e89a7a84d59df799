"""Speed of growing trees: relative to scikit-learn in the same run and to recorded times of R, memory, scaling with n.

    python benchmarks/trees.py            everything (some minutes)
    python benchmarks/trees.py --only sklearn r bike import scaling together together-memory
    python benchmarks/trees.py --numpy    without the compiled kernels
    python benchmarks/trees.py --quick    the parts on trees found together with small tables

Each row of the first part alternates between the two programs and compares medians, so that other load affects both.
R's times were recorded elsewhere (reference/timing.csv, CPU seconds); ours are CPU seconds too.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import subgrove as sg
from benchmarks.trees_together import together, together_memory
from subgrove._native import loader

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "reference"
SIZES = [(2_000, 10, 15), (10_000, 20, 7), (20_000, 20, 5), (200_000, 20, 3)]
LIMITS = {(2_000, None): 2.0, (20_000, None): 0.7, (200_000, None): 0.45}
LIMIT_AT_DEPTH_2 = 0.4
KINDS = ("linear", "interaction", "strong", "common factor")


def data(n: int, p: int, kind: str, seed: int = 1) -> tuple[Any, Any]:
    """Return a feature x that depends on the columns of X in one of four ways."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    noise = rng.normal(size=n)
    if kind == "linear":
        return X, X[:, :5].sum(axis=1) + noise
    if kind == "interaction":
        return X, X[:, 0] + X[:, 1] * X[:, 2] + noise
    if kind == "strong":
        return X, X[:, 0] + X[:, 1] / 2 + noise / 5
    factor = rng.normal(size=n)
    return 0.7 * X + 0.7 * factor[:, None], factor + 0.7 * noise


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def against_sklearn() -> None:
    from sklearn.tree import DecisionTreeRegressor

    print("\nAgainst scikit-learn's DecisionTreeRegressor(min_samples_leaf=30), medians, ratio = ours / theirs")
    print(
        f"{'rows':>8} {'cols':>4} {'depth':>5} {'data':<14} {'ours ms':>9} {'theirs ms':>9} {'ratio':>6} {'limit':>6}"
    )
    for n, p, repeats in SIZES:
        for depth in (None, 2):
            for kind in KINDS:
                X, x = data(n, p, kind)
                ours, theirs = [], []
                grower = sg.trees.TransformationTree(max_depth=depth or 30)
                peer = DecisionTreeRegressor(min_samples_leaf=30, max_depth=depth)
                for _ in range(repeats):
                    ours.append(seconds(lambda g=grower, X=X, x=x: g.fit(X, x)))  # type: ignore[misc]
                    theirs.append(seconds(lambda g=peer, X=X, x=x: g.fit(X, x)))  # type: ignore[misc]
                ratio = float(np.median(ours) / np.median(theirs))
                limit = LIMITS.get((n, depth)) if depth is None else (LIMIT_AT_DEPTH_2 if n >= 10_000 else None)
                print(
                    f"{n:>8} {p:>4} {depth or 'full':>5} {kind:<14} {1e3 * np.median(ours):>9.1f} "
                    f"{1e3 * np.median(theirs):>9.1f} {ratio:>6.2f} {limit or '':>6}",
                    flush=True,
                )


def reference_frame(name: str) -> pd.DataFrame:
    folder = REFERENCE / "trees" / "data"
    columns = json.loads((folder / f"{name}.schema.json").read_text())["columns"]
    coded = {column: str for column, info in columns.items() if info["type"] in ("factor", "ordered")}
    frame = pd.read_csv(folder / f"{name}.csv.gz", dtype=coded)
    for column, info in columns.items():
        if column in coded:
            frame[column] = pd.Categorical(frame[column], info["levels"], ordered=info["type"] == "ordered")
        elif info["type"] == "double":
            frame[column] = frame[column].astype(float)
    return frame


def against_r() -> None:
    if not REFERENCE.exists():
        print("\nAgainst R: no reference folder beside the repository, skipped")
        return
    print("\nAgainst R (trtf), CPU seconds, ratio = R / ours (median of 5); limit 15 in each, 60 in sum")
    timed = [row for row in csv.DictReader((REFERENCE / "timing.csv").open()) if row["method"] == "trafotree"]
    rows = [row for row in timed if (REFERENCE / "trees" / "data" / f"{row['dataset']}.csv.gz").exists()]
    ours_total = r_total = 0.0
    slowest = (np.inf, "")
    for row in rows:
        frame = reference_frame(row["dataset"])
        case = REFERENCE / "trees" / f"{row['dataset']}__{row['target']}.json"
        names = json.loads(case.read_text())["covariates"] if case.exists() else frame.columns.drop(row["target"])
        X, x = frame[list(names)], frame[row["target"]]
        grower = sg.trees.TransformationTree(max_depth=int(row["maxdepth"]))
        grower.fit(X, x)
        ours = float(np.median([seconds(lambda g=grower, X=X, x=x: g.fit(X, x), time.process_time) for _ in range(5)]))  # type: ignore[misc]
        ratio = float(row["tree_cpu_seconds"]) / ours
        ours_total += ours
        r_total += float(row["tree_cpu_seconds"])
        label = f"{row['dataset']} {row['target']} depth {row['maxdepth']}"
        slowest = min(slowest, (ratio, label))
        print(f"  {label:<48} {1e3 * ours:>8.2f} ms {ratio:>7.0f}x", flush=True)
    print(f"  sum over {len(rows)} fits: {r_total / ours_total:.0f}x; least: {slowest[0]:.0f}x ({slowest[1]})")
    print(f"  left out: {len(timed) - len(rows)} timed fits whose data are not in the folder")


def bike() -> None:
    X = sg.datasets.bike().X

    def nine() -> None:
        for name in X.columns:
            numeric = X[name].dtype == float
            grower = sg.trees.TransformationTree() if numeric else sg.trees.ConditionalInferenceTree()
            grower.fit(X.drop(columns=name), X[name])

    nine()
    print(f"\nAll nine bike trees, fully grown: {np.median([seconds(nine) for _ in range(9)]):.3f} s (limit 0.3)")


def import_time() -> None:
    code = "import time; t = time.perf_counter(); import subgrove; print(time.perf_counter() - t)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(7)
    ]
    print(f"\nimport subgrove: {np.median(times):.2f} s (limit 0.5)")


def scaling() -> None:
    print(
        "\nGrowth with n, 20 columns, max_depth 4; memory beyond X while growing, in sizes of X (limit 2, so 3 in all)"
    )
    for n in (125_000, 250_000, 500_000, 1_000_000):
        X, x = data(n, 20, "linear")
        grower = sg.trees.TransformationTree(max_depth=4)
        taken = min(seconds(lambda g=grower, X=X, x=x: g.fit(X, x)) for _ in range(2))  # type: ignore[misc]
        tracemalloc.start()
        grower.fit(X, x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        per_row = 1e9 * taken / (n * np.log2(n))
        print(f"  {n:>9} rows {taken:>7.2f} s  {per_row:>6.1f} ns / (n log2 n)  {peak / X.nbytes:>5.2f} X", flush=True)
    print(f"  peak of the whole process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


PARTS: dict[str, Callable[[], None]] = {
    "sklearn": against_sklearn,
    "r": against_r,
    "bike": bike,
    "import": import_time,
    "scaling": scaling,
}
SIZED: dict[str, Callable[[bool], None]] = {"together": together, "together-memory": together_memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*PARTS, *SIZED]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="parts to run")
    parser.add_argument("--quick", action="store_true", help="small tables of trees found together")
    parser.add_argument("--numpy", action="store_true", help="without the compiled kernels")
    arguments = parser.parse_args()
    if arguments.numpy:
        loader.tree_fit = loader.tree_sums = None
    print(f"compiled kernels: {'no' if loader.tree_fit is None else 'yes'}")
    parts = PARTS | {name: partial(part, arguments.quick) for name, part in SIZED.items()}
    for name in arguments.only:
        parts[name]()


if __name__ == "__main__":
    main()
