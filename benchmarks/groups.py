"""Coverage of 95 % intervals where rows are dependent within groups, with `groups=` and without.

Rows of a group share part of their feature values and of their errors, as the measurements of a person do. The model is
fixed, and the importance is known::

    python -m benchmarks.groups --runs 1000

Prints, for each number and size of the groups, the share of the runs in which the interval covers the truth, with its
standard error, and the mean standard error as a share of the standard deviation over runs.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg

SHARED = 0.7  # share of the variance of features and errors that the rows of a group have in common
CORRELATION = 0.6  # of the two features
SLOPE = 0.8  # of the model; that of the target is 1
TRUTH = 2 * SLOPE  # marginal importance of x1: twice the covariance of target and prediction
SETTINGS = ((20, 10), (40, 10), (100, 5), (40, 0))  # groups and rows in each; 0 for sizes from 2 to 30


def clustered_rows(n_groups: int, size: int, seed: int) -> tuple[pd.DataFrame, Any, Any]:
    """Return features, target and group of each row."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 31, n_groups) if size == 0 else np.full(n_groups, size)
    groups = np.repeat(np.arange(n_groups), sizes)
    shared, own = rng.normal(size=(n_groups, 3))[groups], rng.normal(size=(len(groups), 3))
    first, second, error = (np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * own).T
    second = CORRELATION * first + np.sqrt(1 - CORRELATION**2) * second
    return pd.DataFrame({"x1": first, "x2": second}), first + error, groups


def linear_model(X: pd.DataFrame) -> Any:
    """Predict from x1."""
    return SLOPE * X["x1"].to_numpy()


def main() -> None:
    """Print the coverage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    print("groups  rows     groups=  coverage         mean s.e. / s.d.")
    for n_groups, size in SETTINGS:
        for grouped in (True, False):
            covered, estimates, errors = [], [], []
            for seed in range(runs):
                X, y, groups = clustered_rows(n_groups, size, seed)
                imp = sg.importance(
                    linear_model, X, y, groups=groups if grouped else None, sampler="marginal", features=["x1"],
                    loss="squared_error", check_fidelity=False, random_state=seed,
                )  # fmt: skip
                line = imp.overall.iloc[0]
                covered.append(line.conf_low <= TRUTH <= line.conf_high)
                estimates.append(line.estimate)
                errors.append(line.std_error)
            share = float(np.mean(covered))
            print(
                f"{n_groups:6}  {size or '2 to 30':7}  {'yes' if grouped else 'no':7}  "
                f"{share:.3f} +- {np.sqrt(share * (1 - share) / runs):.3f}  {np.mean(errors) / np.std(estimates):.2f}"
            )


if __name__ == "__main__":
    main()
