"""Cost of an effect relative to the predictions of the model.

    python benchmarks/effects.py [--runs 15] [--models boosting forest] [--container numpy] [--threads 1]

Partial dependence with 50 points of 1,000 rows and 20 columns, and accumulated local effects with 50 intervals of
10,000 rows and 20 columns, compared with `predict` alone on the same rows, in the same large batch. Both run in
turns, and the minimum time of each is compared: a ratio of 1.05 means 5 % overhead. `--threads 1` keeps boosting from
waiting for a second core that is busy.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg

COLUMNS = 20


def data(n: int, container: str, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, :10].sum(axis=1) + rng.normal(size=n)
    if container == "numpy":
        return X, y
    frame = pd.DataFrame(X, columns=[f"x{index}" for index in range(COLUMNS)])
    if container == "mixed":
        frame["x19"] = (frame["x19"] > 0).astype(int)
    return frame, y


def fitted(name: str, container: str, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    X, y = data(2000, container, seed)
    models = {
        "boosting": HistGradientBoostingRegressor(random_state=seed),
        "forest": RandomForestRegressor(100, random_state=seed),
    }
    return models[name].fit(X, y)


def best_in_turn(runs: int, *functions: Callable[[], object]) -> list[float]:
    """Return the minimum time of each function; they run in turns."""
    least = [float("inf")] * len(functions)
    for _ in range(runs):
        for at, function in enumerate(functions):
            start = time.perf_counter()
            function()
            least[at] = min(least[at], time.perf_counter() - start)
    return least


class Recorder:
    """A model that stores the tables it predicts."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tables: list[Any] = []

    def predict(self, X: Any) -> Any:
        """Predict and store the table."""
        self.tables.append(X.copy())
        return self.model.predict(X)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--models", nargs="+", choices=["boosting", "forest"], default=["boosting", "forest"])
    parser.add_argument("--container", choices=["numpy", "pandas", "mixed"], default="numpy")
    parser.add_argument("--threads", type=int, default=None, help="threads of BLAS and OpenMP; unchanged by default")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ["SUBGROVE_TREE_STEPS"] = "0"  # predictions of the model are what is measured here
    from threadpoolctl import threadpool_limits

    print(f"{arguments.container}, {COLUMNS} columns, minimum of {arguments.runs} alternating runs", end="")
    print(f", {arguments.threads} threads" if arguments.threads else "")
    with threadpool_limits(arguments.threads):
        for name in arguments.models:
            model = fitted(name, arguments.container, arguments.seed)
            for kind, n in (("pdp", 1000), ("ale", 10_000)):
                compare(name, model, kind, data(n, arguments.container, arguments.seed + 1)[0], arguments.runs)


def compare(name: str, model: Any, kind: Any, X: Any, runs: int) -> None:
    recorder = Recorder(model)
    options = sg.effect(recorder, X, "x0", kind=kind, grid_resolution=50, subgroups=None).n_rows_predicted

    def ours() -> object:
        return sg.effect(model, X, "x0", kind=kind, grid_resolution=50, subgroups=None)

    def bare() -> object:
        return [model.predict(table) for table in recorder.tables]

    least, least_bare = best_in_turn(runs, ours, bare)
    print(
        f"{name:9} {kind}: {options:6} rows in {len(recorder.tables)} batch, {1000 * least:7.1f} ms; "
        f"bare predict {1000 * least_bare:7.1f} ms; ratio {least / least_bare:.3f}"
    )


if __name__ == "__main__":
    main()
