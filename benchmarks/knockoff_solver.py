"""Time and accuracy of the solver behind knockoffs, beside coordinate ascent: `python benchmarks/knockoff_solver.py`.

Coordinate ascent (Askari et al. 2020) moves one s at a time to the optimum of a barrier problem, with an update of
rank one of the inverse, and makes the barrier smaller after each round.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from subgrove._core.execution import one_blas_thread
from subgrove._core.kinds import Floats
from subgrove.samplers.knockoff_solver import largest_s

SIZES = [10, 50, 100, 250]
MATRICES: dict[str, Callable[[int], Floats]] = {}


def matrix(make: Callable[[int], Floats]) -> Callable[[int], Floats]:
    MATRICES[make.__name__.replace("_", " ")] = make
    return make


@matrix
def five_factors(p: int) -> Floats:
    rng = np.random.default_rng(0)
    n = 2 * p + 50
    return np.asarray(np.corrcoef((rng.normal(size=(n, p)) + rng.normal(size=(n, 5)) @ rng.normal(size=(5, p))).T))


@matrix
def neighbours(p: int) -> Floats:
    return np.asarray(0.9 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))), dtype=np.float64)


@matrix
def near_duplicates(p: int) -> Floats:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * p + 50, p))
    X[:, : p // 2] = X[:, p // 2 : 2 * (p // 2)] + 1e-2 * rng.normal(size=(len(X), p // 2))
    return np.asarray(np.corrcoef(X.T))


def coordinate_ascent(correlation: Floats, rounds: int = 250) -> Floats:
    s = np.full(len(correlation), 0.5 * min(1.0, 2.0 * float(np.linalg.eigvalsh(correlation)[0])))
    barrier = 0.1
    for _ in range(rounds):
        inverse = np.linalg.inv(2.0 * correlation - np.diag(s))  # anew each round, against rounding
        for j in range(len(s)):
            step = np.clip(s[j] + 1.0 / inverse[j, j] - barrier, 0.0, 1.0) - s[j]
            s[j] += step
            inverse += step / (1.0 - step * inverse[j, j]) * np.outer(inverse[j], inverse[j])
        barrier *= 0.93  # faster, and it stops further from the optimum
    return s


def main() -> None:
    print(f"{'correlations':16}{'p':>5}{'seconds':>10}{'steps':>7}{'gap':>10}{'ascent, s':>11}{'falls short by':>16}")
    for name, make in MATRICES.items():
        for p in SIZES:
            correlation = make(p)
            start = time.perf_counter()
            found = largest_s(correlation)
            middle = time.perf_counter()
            with one_blas_thread():
                other = coordinate_ascent(correlation)
            end = time.perf_counter()
            short = found.s.sum() - other.sum()
            print(
                f"{name:16}{p:5}{middle - start:10.3f}{found.n_steps:7}{found.gap:10.1e}"
                f"{end - middle:11.3f}{short:16.1e}"
            )


if __name__ == "__main__":
    main()
