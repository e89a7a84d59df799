"""Share of transformation trees whose root splits although x is independent of all columns.

    python benchmarks/size_of_test.py [--runs 12000]
    python benchmarks/size_of_test.py --columns [--runs 400]     skewed columns, and columns of many levels

n = 200 rows, p = 10 columns, alpha = 0.05; with `--columns` 200, 500 and 1,000 rows and 5 columns. The share of splits
is the size of the test, after its adjustment for the number of columns.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import subgrove as sg


def share_of_splits(skewed: bool, runs: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    grower = sg.trees.TransformationTree(max_depth=1)
    splits = 0
    for _ in range(runs):
        X = rng.normal(size=(200, 10))
        x = rng.gamma(0.7, size=200) if skewed else rng.normal(size=200)
        splits += not grower.fit(X, x).nodes[0].is_leaf
    return splits / runs


def independent_columns(kind: str, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return five columns of a kind."""
    if kind == "normal":
        made = [rng.normal(size=n) for _ in range(5)]
    elif kind == "log-normal":
        made = [np.exp(rng.normal(size=n)) for _ in range(5)]
    elif kind == "90 % zeros":
        made = [np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)) for _ in range(5)]
    else:  # 20 levels, their frequencies by Zipf's law
        made = [np.minimum(rng.zipf(1.5, size=n), 20).astype(str).astype(object) for _ in range(5)]
    return pd.DataFrame({f"z{at}": values for at, values in enumerate(made)})


def by_columns(runs: int, seed: int) -> None:
    for kind in ("normal", "log-normal", "90 % zeros", "20 levels"):
        shares = []
        for n in (200, 500, 1000):
            rng, splits = np.random.default_rng(seed), 0
            for _ in range(runs):
                X = independent_columns(kind, n, rng)
                splits += not sg.trees.TransformationTree(max_depth=1).fit(X, rng.normal(size=n)).nodes[0].is_leaf
            shares.append(splits / runs)
        error = max((share * (1 - share) / runs) ** 0.5 for share in shares)
        listed = ", ".join(f"{100 * share:.1f} %" for share in shares)
        print(f"{kind} columns, 200, 500 and 1,000 rows: {listed} (standard error at most {100 * error:.1f} %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=99)
    parser.add_argument("--columns", action="store_true", help="kinds of columns in place of kinds of x")
    arguments = parser.parse_args()
    if arguments.columns:
        by_columns(arguments.runs, arguments.seed)
        return
    for skewed in (False, True):
        share = share_of_splits(skewed, arguments.runs, arguments.seed)
        error = (share * (1 - share) / arguments.runs) ** 0.5
        print(f"{'skewed' if skewed else 'normal'} x: {100 * share:.2f} % +- {100 * error:.2f} % (standard error)")


if __name__ == "__main__":
    main()
