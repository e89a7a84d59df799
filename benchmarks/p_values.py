"""Size and power of the one-sided p-value of `overall`, with the true conditional sampler (docs/decisions/0023).

    python benchmarks/p_values.py [--runs 1000]             size: about an hour
    python benchmarks/p_values.py --effect 0.5 [--runs 300] power: y also depends on x1

x1 depends on x2 in five ways, and y on x2 and x3 (and with `--effect` on x1). A forest is fitted on training rows and
explained on test rows, with the squared error and 10 repeats. Without an effect the importance of x1 is exactly 0:
x1 and its resamples are exchangeable. Printed are the shares of p-values below 0.05 and 0.01, with standard errors:
those of the table, and those of Student's t.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr
from sklearn.ensemble import RandomForestRegressor

import subgrove as sg
from subgrove._core.kinds import Floats

KINDS = ("sine", "exp", "linear", "step", "logistic")
SIZES = ((100, 100), (300, 300), (100, 500))
COLUMNS = ["x1", "x2", "x3", "x4", "x5"]


def draw_x1(kind: str, x2: Floats, rng: np.random.Generator) -> Floats:
    """Draw x1 given the other columns."""
    noise = rng.normal(size=len(x2))
    if kind == "sine":
        return np.asarray(np.sin(2.5 * x2) + 0.3 * noise)
    if kind == "exp":
        return np.asarray(np.exp(x2) + 0.5 * noise)
    if kind == "linear":
        return np.asarray(0.9 * x2 + np.sqrt(1 - 0.81) * noise)
    if kind == "step":
        return 2.0 * (x2 > 0) + 0.5 * noise
    return (rng.random(len(x2)) < 1 / (1 + np.exp(-2 * x2))).astype(float)


def signal(kind: str, x2: Floats) -> Floats:
    """Return the part of y that x1 and x2 share."""
    shapes = {
        "sine": 1.5 * np.sin(2.5 * x2),
        "exp": np.exp(x2),
        "linear": x2,
        "step": 2.0 * (x2 > 0),
        "logistic": x2 + (x2 > 0),
    }
    return np.asarray(shapes[kind])


def sample(kind: str, n: int, effect: float, rng: np.random.Generator) -> tuple[pd.DataFrame, Floats]:
    Z = rng.normal(size=(n, 4))
    x1 = draw_x1(kind, Z[:, 0], rng)
    y = signal(kind, Z[:, 0]) + Z[:, 1] + effect * x1 + rng.normal(size=n)
    return pd.DataFrame(np.column_stack([x1, Z]), columns=COLUMNS), y


class TrueSampler:
    """Sampler of x1 from its true distribution given x2."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def fit(self, X: Any, features: Any) -> TrueSampler:
        """Return the sampler, which has nothing to learn."""
        return self

    def sample(self, X: Any, feature: Any, rngs: Any) -> Iterator[Floats]:
        """Yield a column for each generator."""
        for rng in rngs:
            yield draw_x1(self.kind, X["x2"].to_numpy(), rng)


def p_values(kind: str, n_train: int, n_test: int, effect: float, run: int) -> tuple[float, float]:
    """Return the p-value of the table, and that of Student's t."""
    rng = np.random.default_rng([run, KINDS.index(kind), n_train, n_test])
    (X, y), (test, target) = (sample(kind, n, effect, rng) for n in (n_train, n_test))
    model = RandomForestRegressor(50, random_state=run).fit(X, y)
    imp = sg.importance(
        model, test, target, train=X, sampler=TrueSampler(kind), features=["x1"], random_state=run,
        check_fidelity=False, loss="squared_error",
    )  # fmt: skip
    line = imp.overall.iloc[0]
    return line["p_value"], float(stdtr(n_test - 1, -line["statistic"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--effect", type=float, default=0.0)
    options = parser.parse_args()
    print("| x1 given x2 | training / test rows | p < 0.05 | p < 0.01 | Student: p < 0.05 | p < 0.01 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n_train, n_test in SIZES:
        for kind in KINDS:
            found = np.array([p_values(kind, n_train, n_test, options.effect, run) for run in range(options.runs)])
            shares = [(found[:, which] < level).mean() for which in (0, 1) for level in (0.05, 0.01)]
            error = [100 * np.sqrt(share * (1 - share) / options.runs) for share in shares]
            cells = " | ".join(f"{100 * share:.1f} % ({one:.1f})" for share, one in zip(shares, error, strict=True))
            print(f"| {kind} | {n_train} / {n_test} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
