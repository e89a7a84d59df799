"""Cost of selecting the depth relative to growing a tree of one depth: processor seconds per feature, minimum of 8.

Run `python -m benchmarks.depth`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import subgrove as sg

ROWS, COLUMNS, REPEATS = 2000, 20, 8


def seconds(X: Any, max_depth: Any) -> float:
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        sg.find_subgroups(X, features=["x0", "x1"], max_depth=max_depth)
        taken.append((time.process_time() - start) / 2)
    return min(taken)


def main() -> None:
    X = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    X[:, 0] += X[:, 1:6].sum(axis=1)
    plain = {depth: seconds(X, depth) for depth in (2, 6)}
    chosen = seconds(X, "auto")
    print(f"{ROWS} rows, {COLUMNS} columns, one feature that depends on five of them")
    for depth, taken in plain.items():
        print(f"max_depth={depth}: {taken:.4f} s; 'auto' takes {chosen / taken:.1f} times that ({chosen:.4f} s)")


if __name__ == "__main__":
    main()
