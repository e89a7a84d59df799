"""Coverage of 95 % intervals with and without a mark in the column `reliable` (docs/decisions/0023).

    python benchmarks/marks.py [--runs 200]

x and z are normal, y = f(x) + noise, and the model is f; marginal sampler, 10 repeats. The functions and losses are not
those that the bounds of the rule were selected on. The truth is the mean over ten million rows. The last lines have the
shares of lines with a lower bound only whose lower bound is above the truth, and whose upper one would be below it;
2.5 % each would be those of an interval that holds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove._scoring.estimate_variance import ONE_SIDED

ROWS = (20, 30, 40, 50, 100, 200, 500)
Function = Callable[[Floats], Floats]
SETTINGS: dict[str, tuple[Function, str]] = {
    "tanh(2 x), squared error": (lambda x: np.tanh(2 * x), "squared_error"),
    "x + x^2 / 4, squared error": (lambda x: x + x**2 / 4, "squared_error"),
    "|x|, absolute error": (np.abs, "absolute_error"),
    "3 x, absolute error": (lambda x: 3 * x, "absolute_error"),
    "exp(0.6 x), squared error": (lambda x: np.exp(0.6 * x), "squared_error"),
    "exp(x), squared error": (np.exp, "squared_error"),
    "exp(1.2 x), absolute error": (lambda x: np.exp(1.2 * x), "absolute_error"),
    "x^3, squared error": (lambda x: x**3, "squared_error"),
}


def predict(f: Function, X: Floats) -> Floats:
    return f(X[:, 0])


def truth(f: Function, loss: str) -> float:
    rng, means = np.random.default_rng(99), []
    size = np.square if loss == "squared_error" else np.abs
    for _ in range(20):
        x, other, noise = rng.normal(size=(3, 500_000))
        means.append(float(np.mean(size(f(x) + noise - f(other)) - size(noise))))
    return float(np.mean(means))


def simulate(name: str, n: int, expected: float, runs: int) -> tuple[Floats, Floats, Floats]:
    """Return for each sample whether the interval covers, whether it is marked, and where it lies.

    That is 1 above the truth, -1 below it, 0 if it covers, and NaN if there is not even a lower bound.
    """
    f, loss = SETTINGS[name]
    rng = np.random.default_rng([777, n, list(SETTINGS).index(name)])
    lines = []
    for run in range(runs):
        X = rng.normal(size=(n, 2))
        y = f(X[:, 0]) + rng.normal(size=n)
        imp = sg.importance(
            partial(predict, f), X, y, sampler="marginal", features=[0], loss=loss, random_state=run,
            check_fidelity=False,
        )  # fmt: skip
        line = imp.overall.iloc[0]
        low, high = line["conf_low"], line["conf_high"]
        place = float(low > expected) - float(high < expected) if line["reliable"] in ONE_SIDED else np.nan
        lines.append((low <= expected <= high, line["reliable"] != "", place))
    covered, marked, places = np.array(lines, dtype=float).T
    return covered, marked, places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    print("| f, loss | rows | coverage | marked | coverage without a mark |")
    print("| --- | --- | --- | --- | --- |")
    every = []
    for name, (f, loss) in SETTINGS.items():
        expected = truth(f, loss)
        for n in ROWS:
            covered, marked, places = simulate(name, n, expected, runs)
            every += [(n, *each) for each in zip(covered, marked, places, strict=True)]
            plain = covered[marked == 0]
            rate = f"{100 * plain.mean():.0f} %" if len(plain) >= 20 else "-"
            print(f"| {name} | {n} | {100 * covered.mean():.0f} % | {100 * marked.mean():.0f} % | {rate} |", flush=True)
    table = np.array(every)
    for some in (ROWS, *((n,) for n in ROWS)):
        plain = table[(table[:, 2] == 0) & np.isin(table[:, 0], some), 1]
        if not len(plain):
            continue
        error = 100 * np.sqrt(plain.mean() * (1 - plain.mean()) / len(plain))
        rows = " or ".join(map(str, some))
        print(f"without a mark, {rows} rows: {100 * plain.mean():.1f} % ({error:.1f}) of {len(plain)} lines")
    for n in ROWS:
        places = table[(table[:, 0] == n) & ~np.isnan(table[:, 3]), 3]
        above, below = 100 * np.mean(places > 0), 100 * np.mean(places < 0)
        print(f"lower bound only, {n} rows: above the truth {above:.1f} %, below {below:.1f} % of {len(places)} lines")


if __name__ == "__main__":
    main()
