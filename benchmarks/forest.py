"""Time of growing a forest of 500 trees relative to scikit-learn in the same run, on one core.

python benchmarks/forest.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from subgrove._regress.forest import grow_forest

SIZES = [(200, 9), (200, 89), (2000, 9), (2000, 89), (4000, 20)]


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measured(n: int, p: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X[:, :5].sum(axis=1) + rng.normal(size=n)
    other = RandomForestRegressor(500, max_features="sqrt", min_samples_split=5, random_state=0)
    pairs = [(seconds(lambda: grow_forest(X, y[:, None])), seconds(lambda: other.fit(X, y))) for _ in range(3)]
    ours, theirs = (float(np.median(column)) for column in zip(*pairs, strict=True))
    return ours, theirs


def main() -> None:
    print(f"{'rows':>6} {'columns':>8} {'ours (s)':>9} {'scikit-learn (s)':>17} {'ratio':>6}")
    for n, p in SIZES:
        ours, theirs = measured(n, p)
        print(f"{n:>6} {p:>8} {ours:>9.2f} {theirs:>17.2f} {ours / theirs:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
