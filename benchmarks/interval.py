"""Coverage of the intervals of `importance` in a simulation with known importance.

x1 = 2 [x0 > 0] + noise, the model is f(x) = x1, y = x1 + noise, squared error. The marginal importance of x1 is
2 Var(x1) = 4, the conditional one 2 Var(x1 | x0) = 2. In each of 400 samples of 300 test rows the importance is
estimated; subgroups were found once, on other rows::

    python benchmarks/interval.py [--runs 400]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

import subgrove as sg
from subgrove._scoring.feature_result import with_rows

ROWS = 300


def sample(rng: np.random.Generator, n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    X = rng.normal(size=(n, 3))
    X[:, 1] += 2 * (X[:, 0] > 0)
    return X, X[:, 1] + rng.normal(size=n)


def model(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return X[:, 1]


def known_groups() -> sg.Subgroups:
    """Return subgroups with a threshold close to 0 (0.0008 with 4000 rows)."""
    X, _ = sample(np.random.default_rng(0), 4000)
    return sg.find_subgroups(X, features=["x1"], max_depth=1)


def simulate(sampler: Any, truth: float, repeats: int, runs: int) -> str:
    rng = np.random.default_rng(repeats)
    lines = []
    for run in range(runs):
        X, y = sample(rng, ROWS)
        result = sg.importance(
            model, X, y, sampler=sampler, features=["x1"], n_repeats=repeats, random_state=run, loss="squared_error"
        )
        row = result.overall.iloc[0]
        one_part = with_rows(result.scores, "interval")[0].rows[0].std(ddof=1) / np.sqrt(ROWS)
        covered = row["conf_low"] <= truth <= row["conf_high"]
        naive = abs(row["estimate"] - truth) <= 1.96 * one_part
        lines.append((row["estimate"], row["std_error"], row["mc_error"], covered, naive))
    estimate, error, mc, covered_, naive_ = (np.array(column, dtype=float) for column in zip(*lines, strict=True))
    known = np.sqrt(np.mean(error**2) + np.nanmean(mc**2)) if repeats > 1 else np.sqrt(np.mean(error**2))
    return (
        f"{repeats} | {estimate.mean():.2f} ({estimate.std() / np.sqrt(runs):.2f}) | {estimate.std():.3f} | "
        f"{known:.3f} | {np.sqrt(np.mean(error**2)):.3f} | {100 * covered_.mean():.0f} % | {100 * naive_.mean():.0f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="samples (default: 400)")
    runs = parser.parse_args().runs
    print(
        "| sampler | repeats | mean estimate (s.e.) | sd of estimates | std_error and mc_error together | std_error "
        "| coverage | coverage, one part |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, sampler, truth in (("marginal", "marginal", 4.0), ("subgroups", known_groups(), 2.0)):
        for repeats in (1, 2, 10, 50):
            print(f"| {name} | {simulate(sampler, truth, repeats, runs)} |", flush=True)


if __name__ == "__main__":
    main()
