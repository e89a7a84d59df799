"""What each compiled kernel gains: its time over that of the best library call, or of the same loops in NumPy.

    python -m benchmarks.kernels           # all kernels, one core, about two minutes
    python -m benchmarks.kernels --quick   # smaller tables and fewer rounds

`docs/native.md` has its table.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine
from benchmarks.timing import Call, forget_peak, interleaved, markdown, peak_mib, ratio
from subgrove._core.kinds import Floats
from subgrove._fidelity.mmd import squared_mmd
from subgrove._native import loader
from subgrove._regress.forest import grow_forest
from subgrove._regress.gram import lasso_paths
from subgrove.trees import TransformationTree


def dependent_columns(n: int, p: int, seed: int = 0) -> Floats:
    """Normal columns with correlations of 0.5."""
    return np.random.default_rng(seed).normal(size=(n, p)) @ np.linalg.cholesky(0.5 * np.eye(p) + 0.5).T


def without(kernels: tuple[str, ...], call: Call) -> Call:
    """Return a call that runs without some kernels."""

    def run() -> None:
        compiled = {name: getattr(loader, name) for name in kernels}
        for name in kernels:
            setattr(loader, name, None)
        try:
            call()
        finally:
            for name, module in compiled.items():
                setattr(loader, name, module)

    return run


def forest(n: int, p: int) -> tuple[Call, Call]:
    """100 trees, and those of scikit-learn."""
    from sklearn.ensemble import RandomForestRegressor

    X = dependent_columns(n, p)
    y = X[:, 0] + np.random.default_rng(1).normal(size=n)
    settings: dict[str, Any] = {"max_features": max(1, int(np.sqrt(p))), "min_samples_split": 6, "random_state": 0}
    return (
        lambda: grow_forest(X, y[:, None], n_trees=100),
        lambda: RandomForestRegressor(100, **settings).fit(X.astype(np.float32), y),
    )


def lars(n: int, p: int) -> tuple[Call, Call]:
    """Paths of ten folds, and `lars_path_gram` of scikit-learn down to the same penalty."""
    from sklearn.linear_model import lars_path_gram

    compiled, folds, penalties = _lasso_problem(n, p)

    def library() -> None:
        for _, _, gram, with_target in folds:
            lars_path_gram(with_target * n, gram * n, n_samples=n, method="lasso", alpha_min=penalties[-1])

    return compiled, library


def coordinate_descent(n: int, p: int) -> tuple[Call, Call]:
    """Paths of ten folds, and `lasso_path` of scikit-learn with the same products and penalties."""
    from sklearn.linear_model import lasso_path

    compiled, folds, penalties = _lasso_problem(n, p)

    def library() -> None:
        for X, y, gram, with_target in folds:
            lasso_path(X, y, alphas=penalties, precompute=gram * n, Xy=with_target * n, tol=1e-7)

    return compiled, library


def _lasso_problem(n: int, p: int) -> tuple[Call, list[tuple[Floats, ...]], Floats]:
    """Return the compiled call, products of columns for ten folds, and 50 penalties."""
    folds: list[tuple[Floats, ...]] = []
    for seed in range(10):
        X = dependent_columns(n, p, seed)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        y = X[:, 0] - 0.5 * X[:, -1] + np.random.default_rng(seed).normal(size=n)
        y = (y - y.mean()) / y.std()
        folds.append((X, y, X.T @ X / n, X.T @ y / n))
    grams, with_targets = (np.array([fold[at] for fold in folds]) for at in (2, 3))
    penalties: Floats = np.abs(with_targets).max() * np.geomspace(1, 1e-3, 50)
    return lambda: lasso_paths(grams, with_targets, penalties), folds, penalties


def mmd(n: int, p: int) -> tuple[Call, Call]:
    """The squared MMD of two samples, and the same by distances of SciPy."""
    a, b = dependent_columns(n, p, 0), dependent_columns(n, p, 1)
    return lambda: squared_mmd(a, b), lambda: scipy_mmd(a, b)


def scipy_mmd(a: Floats, b: Floats) -> float:
    """Return the squared MMD with the median heuristic, all distances in memory."""
    from scipy.spatial.distance import cdist, pdist

    within_a, within_b, across = pdist(a, "sqeuclidean"), pdist(b, "sqeuclidean"), cdist(a, b, "sqeuclidean").ravel()
    gamma = 0.5 / np.median(np.concatenate([within_a, within_b, across]))
    of_a, of_b, of_both = (float(np.exp(-gamma * part).sum()) for part in (within_a, within_b, across))
    n, m = len(a), len(b)
    return (n + 2 * of_a) / n**2 + (m + 2 * of_b) / m**2 - 2 * of_both / (n * m)


def tree(n: int, p: int) -> tuple[Call, Call]:
    """A transformation tree with compiled fits and cuts, and in NumPy."""
    X = dependent_columns(n, p)

    def fit() -> None:
        TransformationTree(max_depth=8, min_samples_leaf=20).fit(X[:, 1:], X[:, 0])

    return fit, without(("tree_fit", "tree_sums"), fit)


def sums(n: int, p: int) -> tuple[Call, Call]:
    """A transformation tree with compiled sums over rows, and with these in NumPy."""
    X = dependent_columns(n, p)

    def fit() -> None:
        TransformationTree(max_depth=8, min_samples_leaf=20).fit(X[:, 1:], X[:, 0])

    return fit, without(("tree_sums",), fit)


KERNELS: list[tuple[str, str, Callable[[int, int], tuple[Call, Call]], list[tuple[int, int]]]] = [
    ("`forest.c`", "scikit-learn `RandomForestRegressor`", forest, [(219, 9), (500, 9), (2000, 20)]),
    ("`lasso_path.c`, 10 folds", "scikit-learn `lars_path_gram`", lars, [(1000, 10), (1000, 50), (1000, 200)]),
    ("`lasso_path.c`, 10 folds", "scikit-learn `lasso_path`", coordinate_descent, [(1000, 10), (1000, 50)]),
    ("`mmd_pairs.c`", "SciPy `pdist`, `cdist`", mmd, [(1000, 5), (3000, 20)]),
    ("`tree_fit.c`, `tree_sums.c`", "the same in NumPy", tree, [(500, 9), (2000, 9), (20_000, 9)]),
    ("`tree_sums.c`", "the same in NumPy", sums, [(2000, 20), (20_000, 20)]),
]


def peak_of(call: Callable[[], Any]) -> float:
    """Return how much a call adds to the peak memory of a new process, in MiB."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        forget_peak()
        before = peak_mib()
        call()
        sender.send(peak_mib() - before)

    process = context.Process(target=run)
    process.start()
    added: float = receiver.recv()
    process.join()
    return added


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    lines = []
    with threadpool_limits(1):
        for name, other, make, sizes in KERNELS:
            for n, p in sizes[:1] if options.quick else sizes:
                compiled, library = make(n, p)
                compiled(), library()  # imports, and the first touch of memory
                times = interleaved(
                    {"compiled": compiled, "library": library}, 2 if options.quick else 5, time.process_time
                )
                milliseconds = [f"{1000 * min(times[which]):,.2f}" for which in ("compiled", "library")]
                gain = ratio(times, "library", "compiled")
                lines.append([name, f"{n:,}", str(p), other, *milliseconds, f"{gain:.1f}"])
    print(machine("numpy", "scipy", "scikit-learn"))
    print(markdown(["kernel", "rows", "columns", "compared with", "ms", "ms of the other", "times faster"], lines))
    n = 1000 if options.quick else 4000
    compiled, library = mmd(n, 20)
    print(f"\nPeak memory of the MMD of {n:,} and {n:,} rows, 20 columns: {peak_of(compiled):,.0f} MiB, ", end="")
    print(f"with SciPy {peak_of(library):,.0f} MiB.")


if __name__ == "__main__":
    main()
