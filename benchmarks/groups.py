"""Coverage of 95 % intervals where rows are dependent within groups, with `groups=` and without.

Rows of a group share part of their feature values and of their errors, as the measurements of a person do; in a time
series each row depends on the one before, and groups are blocks of consecutive rows. The model is fixed, and the
importance is known::

    python -m benchmarks.groups --runs 1000

Prints the share of the runs in which the interval covers the truth, with its
standard error, and the mean standard error as a share of the standard deviation over runs.

    python -m benchmarks.groups --sampler --runs 25

compares samplers that are fitted on all training rows, and on one of each group, where two of three features are the
same in all rows of a group: mean estimate as a multiple of the truth, and how many fidelity checks failed.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from subgrove._cli.learning_task import LearningTask
from subgrove._cli.splitting import dependent_groups

SHARED = 0.7  # share of the variance of features and errors that the rows of a group have in common
CORRELATION = 0.6  # of the two features
SLOPE = 0.8  # of the model; that of the target is 1
TRUTH = 2 * SLOPE  # marginal importance of x1: twice the covariance of target and prediction
SETTINGS = ((20, 10), (40, 10), (100, 5), (40, 0))  # groups and rows in each; 0 for sizes from 2 to 30
SERIES = ((100, 0.5), (440, 0.5), (440, 0.8), (440, 0.9), (2000, 0.8))  # rows, and correlation of neighbours


def clustered_rows(n_groups: int, size: int, seed: int) -> tuple[pd.DataFrame, Any, Any]:
    """Return features, target and group of each row."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 31, n_groups) if size == 0 else np.full(n_groups, size)
    groups = np.repeat(np.arange(n_groups), sizes)
    shared, own = rng.normal(size=(n_groups, 3))[groups], rng.normal(size=(len(groups), 3))
    first, second, error = (np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * own).T
    second = CORRELATION * first + np.sqrt(1 - CORRELATION**2) * second
    return pd.DataFrame({"x1": first, "x2": second}), first + error, groups


def time_series(n_rows: int, correlation: float, seed: int) -> tuple[pd.DataFrame, Any, Any]:
    """Return features, target and block of each row, as `subgrove explain --time` forms them."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n_rows, 3)) * np.sqrt(1 - correlation**2)
    noise[0] = rng.normal(size=3)
    for at in range(1, n_rows):
        noise[at] += correlation * noise[at - 1]
    task = LearningTask(pd.DataFrame(noise), pd.Series(noise[:, 0]), "regression", (), np.arange(n_rows))
    return pd.DataFrame({"x1": noise[:, 0], "x2": noise[:, 1]}), noise[:, 0] + noise[:, 2], dependent_groups(task)


def linear_model(X: pd.DataFrame) -> Any:
    """Predict from x1."""
    return SLOPE * X["x1"].to_numpy()


def constant_columns(n_groups: int, size: int, seed: int) -> tuple[pd.DataFrame, Any, Any]:
    """Return rows with x1 and x2 the same within groups, x3 not, which depends on x2."""
    rng = np.random.default_rng(seed)
    groups, shared = np.repeat(np.arange(n_groups), size), rng.normal(size=(n_groups, 3))
    first, second, error = shared[groups].T
    second = CORRELATION * first + np.sqrt(1 - CORRELATION**2) * second
    third = 0.5 * second + np.sqrt(0.75) * rng.normal(size=len(groups))
    y = first + third + np.sqrt(0.5) * error + np.sqrt(0.5) * rng.normal(size=len(groups))
    return pd.DataFrame({"x1": first, "x2": second, "x3": third}), y, groups


def compare_samplers(runs: int) -> None:
    """Print the bias of the default sampler, fitted on all training rows and on one of each group."""
    truths = {"x1": TRUTH * (1 - CORRELATION**2), "x3": TRUTH * 0.75}
    for n_groups in (100, 300):
        for single in (False, True):
            lines = []
            for seed in range(runs):
                X, y, groups = constant_columns(120, 5, seed)
                train, _, own = constant_columns(n_groups, 5, seed + 10_000)
                train = train.groupby(own).sample(1, random_state=seed) if single else train
                lines.append(
                    sg.importance(
                        lambda X: SLOPE * (X["x1"] + X["x3"]).to_numpy(), X, y, train=train, groups=groups,
                        features=list(truths), loss="squared_error", random_state=seed,
                    ).overall
                )  # fmt: skip
            for name, truth in truths.items():
                own_lines = pd.concat(lines).set_index("feature").loc[[name]]
                ratio, failed = own_lines["estimate"].mean() / truth, int((own_lines["fidelity"] == "failed").sum())
                rows = "one row of each" if single else "all rows"
                print(f"{n_groups} groups, {rows:15} {name}: {ratio:.2f} times the truth, {failed} of {runs} failed")


def main() -> None:
    """Print the coverage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--sampler", action="store_true")
    runs = parser.parse_args().runs
    if parser.parse_args().sampler:
        compare_samplers(runs)
        return
    print("rows                               groups=  coverage         mean s.e. / s.d.")
    settings: list[tuple[str, Any]] = [
        (f"{n} groups of {size or '2 to 30'}", partial(clustered_rows, n, size)) for n, size in SETTINGS
    ]
    settings += [(f"{n} rows in time, correlation {share}", partial(time_series, n, share)) for n, share in SERIES]
    for name, draw in settings:
        for grouped in (True, False):
            lines = []
            for seed in range(runs):
                X, y, groups = draw(seed=seed)
                imp = sg.importance(
                    linear_model, X, y, groups=groups if grouped else None, sampler="marginal", features=["x1"],
                    loss="squared_error", check_fidelity=False, random_state=seed,
                )  # fmt: skip
                lines.append(imp.overall.iloc[0])
            share = float(np.mean([line.conf_low <= TRUTH <= line.conf_high for line in lines]))
            ratio = np.mean([line.std_error for line in lines]) / np.std([line.estimate for line in lines])
            error = np.sqrt(share * (1 - share) / runs)
            print(f"{name:33}  {'yes' if grouped else 'no':7}  {share:.3f} +- {error:.3f}  {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
