"""Run time of one unit of the largest cells of the ground-truth simulation, by step.

    python benchmarks/ground_truth.py

A unit of setting I, 3,000 rows and 90 columns, all methods but knockoffs, 20 repeats each: limit 1 s. Forests use all
cores, as in `python -m experiments ground_truth run --jobs 1`.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments lie beside this folder

import subgrove as sg
from experiments.ground_truth_methods import METHODS, redrawn, rises
from experiments.ground_truth_rows import REPEATS
from experiments.running import THREADS_VARIABLE

ROWS, COLUMNS = 3000, 90


def unit(name: str) -> dict[str, float]:
    """Return the seconds of each step of a unit."""
    taken = {}
    start = time.perf_counter()
    scenario = sg.simulate.scenario(name, p=COLUMNS)
    data = scenario.sample(ROWS, random_state=1)
    train, test = data.X.iloc[: 2 * ROWS // 3], data.X.iloc[2 * ROWS // 3 :]
    y = np.asarray(data.y, dtype=np.float64)[2 * ROWS // 3 :]
    scenario.true_importance(random_state=1)
    taken["data, truth"] = time.perf_counter() - start
    samplers = {method: make(1, 500) for method, make in METHODS.items() if method != "ko"}
    for method, sampler in {**samplers, "true": scenario.sampler}.items():
        start = time.perf_counter()
        drawn = redrawn(sampler, train, test, REPEATS, 1)
        rises(scenario.model, test.to_numpy(), y, drawn.columns)
        taken[method] = time.perf_counter() - start
    return taken


def main() -> None:
    os.environ[THREADS_VARIABLE] = str(os.cpu_count() or 1)
    unit("linear")  # imports, and what is prepared once
    for name in sg.simulate.PAPER:
        runs = [unit(name) for _ in range(3)]
        run = runs[int(np.argsort([sum(one.values()) for one in runs])[1])]
        total = sum(run.values())
        parts = ", ".join(f"{part} {seconds:.2f}" for part, seconds in run.items())
        print(f"{name:<12} {total:.2f} s ({'ok' if total < 1 else 'MISSED'}): {parts}", flush=True)


if __name__ == "__main__":
    main()
