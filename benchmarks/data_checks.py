"""Time of `fidelity` and `dependence` on 6,000 rows of hourly data, and what their bounds on rows and trees change.

`python -m benchmarks.data_checks` prints, for the default and for all rows, seconds of wall and of processor time, and
the position of each sampler; for 100 and for 500 trees the share of each feature that the others explain.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from benchmarks.machine import machine
from benchmarks.timing import markdown

ROWS = 6000


def hourly(n: int, seed: int) -> pd.DataFrame:
    """Return hours with weather and calendar, numbers and categories that depend on each other."""
    rng = np.random.default_rng(seed)
    hour, day = rng.integers(0, 24, n), rng.integers(0, 365, n)
    season = np.array(["winter", "spring", "summer", "fall"])[(day // 92).clip(0, 3)]
    yearly, daily = np.sin((day - 90) / 365 * 2 * np.pi), np.sin((hour - 9) / 24 * 2 * np.pi)
    temp = 10 + 12 * yearly + 4 * daily + rng.normal(0, 3, n)
    feel = 1.05 * temp + rng.normal(0, 1, n)
    hum = np.clip(80 - 1.2 * temp + rng.normal(0, 12, n), 10, 100)
    weekday = rng.choice(["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"], n)
    weather = np.where(hum > 75, rng.choice(["rain", "mist"], n), rng.choice(["clear", "mist"], n))
    columns = {"hour": hour, "season": season, "temp": temp, "feel": feel, "hum": hum, "wind": rng.gamma(2, 5, n)}
    return pd.DataFrame({**columns, "weekday": weekday, "work": ~np.isin(weekday, ["Sa", "Su"]), "weather": weather})


def timed(call: Any) -> tuple[Any, str]:
    """Return what a call gives, and its seconds of wall and processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    return result, f"{time.perf_counter() - wall:.1f} s ({time.process_time() - processor:.1f} s)"


def main(rows: int = ROWS) -> None:
    """Print the tables."""
    X = hourly(rows, 0)
    half = rows // 2
    lines, shares = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.exceptions.SubgroveWarning)  # knockoffs that are nearly copies
        for bound in (1000, 10_000):
            made, took = timed(lambda bound=bound: sg.fidelity(X[:half], X[half:], max_rows=bound, random_state=1))
            positions = made.overall.set_index("sampler")["position"]
            lines.append([f"{bound:,}", took, *(f"{positions[name]:.2f}" for name in made.samplers[1:-1])])
    for trees in (100, 500):
        found, took = timed(lambda trees=trees: sg.dependence(X, n_trees=trees, random_state=1))
        shares.append([str(trees), took, *(f"{each.explained:.2f}" for each in found.found)])
    print(machine("numpy", "pandas"))
    print(markdown(["max_rows", "wall (processor)", *made.samplers[1:-1]], lines))
    print(markdown(["n_trees", "wall (processor)", *X.columns], shares))


if __name__ == "__main__":
    main()
