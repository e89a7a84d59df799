"""Share of transformation trees whose root splits although x is independent of all columns.

    python benchmarks/size_of_test.py [--runs 12000]

n = 200 rows, p = 10 columns, alpha = 0.05. The share of splits is the size of the test, after its adjustment for the
number of columns.
"""

from __future__ import annotations

import argparse

import numpy as np

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=99)
    arguments = parser.parse_args()
    for skewed in (False, True):
        share = share_of_splits(skewed, arguments.runs, arguments.seed)
        error = (share * (1 - share) / arguments.runs) ** 0.5
        print(f"{'skewed' if skewed else 'normal'} x: {100 * share:.2f} % +- {100 * error:.2f} % (standard error)")


if __name__ == "__main__":
    main()
