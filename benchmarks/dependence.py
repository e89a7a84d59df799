"""Time of `dependence` by the number of columns, and what it finds among columns that carry nothing.

`python -m benchmarks.dependence` prints, for 500 rows and 10 to 500 columns of which neighbours are correlated, seconds
of processor time. Then, for columns that depend on others in five ways while the number of unrelated columns grows, the
share explained in held-out rows, mean over samples: by forests of the best predictors, as `dependence` grows them, and
by forests of all columns.
"""

from __future__ import annotations

import sys
import time
from unittest.mock import patch

import numpy as np
import pandas as pd

import subgrove as sg
from benchmarks.machine import machine
from benchmarks.timing import markdown

MODULE = sys.modules["subgrove._dependence.dependence"]
SAMPLES = 5
TIMED, COLUMNS = (10, 30, 60, 125, 250, 500), (30, 60, 125, 250, 500)
KINDS = ("linear", "curve", "levels", "product", "sum of 20", "independent")


def chained(p: int, n: int = 500) -> pd.DataFrame:
    """Return columns each of which is correlated with the one before it."""
    values = np.random.default_rng(1).normal(size=(n, p))
    for at in range(1, p):
        values[:, at] += 0.5 * values[:, at - 1]
    return pd.DataFrame(values, columns=[f"x{at}" for at in range(p)])


def related(p: int, n: int, seed: int) -> pd.DataFrame:
    """Return independent columns, and one of each kind that depends on them; p columns in all."""
    rng = np.random.default_rng(seed)
    free = p - len(KINDS)
    X = pd.DataFrame(rng.normal(size=(n, free)), columns=[f"x{at}" for at in range(free)])
    noise = rng.normal(size=(n, 4))
    X["linear"] = X["x0"] + X["x1"] + np.sqrt(2) / 2 * noise[:, 0]
    X["curve"] = np.abs(X["x2"]) + 0.3 * noise[:, 1]
    X["levels"] = np.where(rng.random(n) < 0.2, "mid", np.where(X["x3"] > 0, "high", "low"))
    X["product"] = X["x4"] * X["x5"] + 0.5 * noise[:, 2]
    X["sum of 20"] = X[[f"x{at}" for at in range(20)]].sum(axis=1) + 2 * noise[:, 3]
    X["independent"] = rng.normal(size=n)
    return X


def seconds(p: int) -> str:
    """Return the processor seconds of all columns; the median of three calls for few columns."""
    X, taken = chained(p), []
    for _ in range(3 if p < 100 else 1):
        start = time.process_time()
        sg.dependence(X, random_state=1)
        taken.append(time.process_time() - start)
    return f"{np.median(taken):.1f}"


def explained(p: int, n: int, most: int) -> list[float]:
    """Return the mean over samples of the share explained of each kind, by at most so many predictors."""
    with patch.object(MODULE, "MOST_PREDICTORS", most):
        found = [sg.dependence(related(p, n, seed), features=list(KINDS), random_state=seed) for seed in range(SAMPLES)]
    return [float(np.mean([each.found[at].explained for each in found])) for at in range(len(KINDS))]


def main() -> None:
    """Print both tables."""
    print(machine())
    print(markdown(["columns", "seconds of one core"], [[str(p), seconds(p)] for p in TIMED]), flush=True)
    rows = []
    for n in (500, 2000):
        for p in COLUMNS:
            best, all_of_them = explained(p, n, MODULE.MOST_PREDICTORS), explained(p, n, p)
            cells = [f"{one:.2f} / {other:.2f}" for one, other in zip(best, all_of_them, strict=True)]
            rows.append([str(n), str(p), *cells])
            print(rows[-1], file=sys.stderr, flush=True)
    print(markdown(["rows", "columns", *KINDS], rows))


if __name__ == "__main__":
    main()
