"""Coverage of 95 % intervals with relative weights (`sample_weight`), marginal sampler.

    python benchmarks/weights.py [--runs 1000] [--rows 300]

x and z are normal, f(x, z) = x + z, y = f + noise, squared error: the importance of x is 2 Var(x) in the population
that the weights stand for. Weights: exponential and log-normal (sigma 1), independent of the data; survey weights of
mean about 1000, inverse to probabilities that depend on z, where the sample has too many rows of large z; and inverse
to probabilities that depend on x itself. In the last two cases the population is standard normal.
"""

from __future__ import annotations

import argparse

import numpy as np

import subgrove as sg
from subgrove._core.kinds import Floats

KINDS = ("equal", "exponential", "log-normal", "survey by z", "survey by x")


def model(X: Floats) -> Floats:
    return X[:, 0] + X[:, 1]


def sample(kind: str, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return rows, target and weights."""
    X, weights = rng.normal(size=(n, 2)), np.ones(n)
    if kind == "exponential":
        weights = rng.exponential(size=n)
    elif kind == "log-normal":
        weights = np.exp(rng.normal(size=n) - 0.5)
    elif kind.startswith("survey"):  # normal with mean 0.5 in the sample, with mean 0 in the population
        column = int(kind.endswith("z"))
        X[:, column] += 0.5
        weights = 1000 * np.exp(0.125 - 0.5 * X[:, column])
    return X, model(X) + rng.normal(size=n), weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=300)
    options = parser.parse_args()
    print("| weights | coverage (s.e.) | mean estimate (truth 2) | sd of estimates | mean std_error | effective rows |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in KINDS:
        lines = []
        for run in range(options.runs):
            X, y, weights = sample(kind, options.rows, np.random.default_rng([run, KINDS.index(kind)]))
            imp = sg.importance(
                model, X, y, sampler="marginal", features=[0], sample_weight=weights, random_state=run,
                check_fidelity=False, loss="squared_error",
            )  # fmt: skip
            line = imp.overall.iloc[0]
            covered = line["conf_low"] <= 2 <= line["conf_high"]
            lines.append((covered, line["estimate"], line["std_error"], line["n"]))
        covered_, estimate, error, n = np.array(lines, dtype=float).T
        rate = covered_.mean()
        print(
            f"| {kind} | {100 * rate:.1f} % ({100 * np.sqrt(rate * (1 - rate) / len(lines)):.1f}) | "
            f"{estimate.mean():.3f} | {estimate.std():.3f} | {error.mean():.3f} | {n.mean():.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
