"""Trees of all features at once, compared with as many fits of scikit-learn's CART and with growing them one by one.

    python benchmarks/trees.py --only together            10,000 x 50, a few minutes
    python benchmarks/trees.py --only together-memory     100,000 x 100, peak memory of a process of its own
    both with --quick                                     smaller, in seconds; the ratios are then unreliable

Times are taken in turns, single process, single thread. Ratios are of wall time and of processor time, which
hardly depends on other load.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import subgrove as sg
from benchmarks.timing import markdown, peak_mib

KINDS = ("independent", "chain", "common factor", "interaction")
LIMIT = 0.25
LIMIT_MIB = 2 * 1e9 / 2**20

Times = list[tuple[float, float]]


def columns(n: int, p: int, kind: str, seed: int = 1) -> npt.NDArray[np.float64]:
    """Return numeric columns that depend on each other in one of four ways."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, p))
    X = noise.copy()
    if kind == "chain":
        for j in range(1, p):
            X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * noise[:, j]
    if kind == "common factor":
        X = 0.7 * noise + 0.7 * rng.normal(size=(n, 1))
    if kind == "interaction":
        for j in range(2, p, 3):
            X[:, j] = X[:, j - 2] + X[:, j - 1] * X[:, j - 2] + noise[:, j]
    return X


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Return wall time and processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def together(quick: bool = False) -> None:
    """Print the table of times and ratios."""
    n, p, rounds = (2_000, 12, 1) if quick else (10_000, 50, 5)
    print(f"\nTrees of depth 2 for all {p} features of {n:,} x {p}; ratio = ours / {p} fits of CART; limit {LIMIT}\n")
    rows = []
    for kind in KINDS:
        X = columns(n, p, kind)
        sg.find_subgroups(X[:200])  # imports lazily loaded modules
        _sklearn_fit(X[:200, 1:], X[:200, 0])
        ours: Times = []
        cart: Times = []
        alone: Times = []
        for _ in range(rounds):
            ours.append(timed(lambda X=X: sg.find_subgroups(X)))  # type: ignore[misc]
            cart.append(_each(X, _sklearn_fit))
            alone.append(_each(X, _own_fit))
        walls = [f"{median(wall for wall, _ in times):.2f}" for times in (ours, alone, cart)]
        rows.append(
            [kind, *walls, *(f"{_ratio(ours, cart, at):.3f}" for at in (0, 1)), f"{_ratio(ours, alone, 1):.2f}"]
        )
        print(f"  {kind}: done", file=sys.stderr, flush=True)
    head = ["dependence", "together (s)", "one by one (s)", f"{p} CART fits (s)"]
    print(markdown([*head, "ratio", "ratio, processor time", "together / one by one"], rows), flush=True)


def _ratio(ours: Times, theirs: Times, at: int) -> float:
    """Return the median of the ratios of consecutive times."""
    return median(one[at] / other[at] for one, other in zip(ours, theirs, strict=True))


def _each(X: npt.NDArray[np.float64], fit: Callable[[Any, Any], Any]) -> tuple[float, float]:
    """Time of a fit for each column on the others; taking the column out is not counted."""
    wall = processor = 0.0
    for j in range(X.shape[1]):
        others, x = np.delete(X, j, axis=1), X[:, j].copy()
        one = timed(lambda others=others, x=x: fit(others, x))  # type: ignore[misc]
        wall, processor = wall + one[0], processor + one[1]
    return wall, processor


def _sklearn_fit(others: Any, x: Any) -> None:
    from sklearn.tree import DecisionTreeRegressor

    DecisionTreeRegressor(max_depth=2, min_samples_leaf=30).fit(others, x)


def _own_fit(others: Any, x: Any) -> None:
    sg.trees.TransformationTree(max_depth=2, min_samples_leaf=30).fit(others, x)


def together_memory(quick: bool = False) -> None:
    """Print the peak memory of processes that find subgroups of a large table."""
    n, p = (20_000, 20) if quick else (100_000, 100)
    print(f"\nTrees of depth 2 for all {p} features of {n:,} x {p} ({8e-6 * n * p:.0f} MB), a process each\n")
    rows = []
    for tree in ("transformation", "cart"):
        for kind in KINDS:
            if tree == "cart" and kind != "chain":
                continue
            options = [sys.executable, __file__, str(n), str(p), kind, tree]
            labels = subprocess.run(options, check=True, capture_output=True, text=True).stdout.split()
            peak = float(labels[1])
            rows.append([tree, kind, labels[0], f"{peak:,.0f}", f"{LIMIT_MIB:,.0f}"])
            print(f"  {tree}, {kind}: done", file=sys.stderr, flush=True)
    print(markdown(["tree", "dependence", "processor seconds", "peak of the process (MiB)", "limit"], rows), flush=True)


def _one_process(n: str, p: str, kind: str, tree: Any) -> None:
    X = columns(int(n), int(p), kind)
    taken = timed(lambda: sg.find_subgroups(X, tree=tree))
    print(f"{taken[1]:.1f} {peak_mib():.1f}")


if __name__ == "__main__":
    _one_process(*sys.argv[1:])
