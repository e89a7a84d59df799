"""Cost of results that are computed from the trees of a model, relative to its predictions.

    OMP_NUM_THREADS=1 python -m benchmarks.tree_models [--sections effects interactions] [--rounds 5]

One thread, processor time, minimum of several rounds in turns, all in one run. `predict` is the model's own prediction
of the rows times the number of predictions that the result needs without the trees.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from benchmarks.machine import machine
from benchmarks.timing import interleaved, markdown

ROWS, COLUMNS, POINTS = 10_000, 20, 50


def data(n: int = ROWS, p: int = COLUMNS, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Independent normal columns, a product, a wave and sums."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, :10].sum(axis=1) + rng.normal(size=n)
    return pd.DataFrame(X, columns=[f"x{index}" for index in range(p)]), y


def models(X: pd.DataFrame, y: Any) -> dict[str, Any]:
    """Fitted models; those of libraries that are not installed are left out."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    made: dict[str, Callable[[], Any]] = {
        "HistGradientBoosting 100 x 31": lambda: HistGradientBoostingRegressor(random_state=0),
        "LightGBM 200 x 31": lambda: _library("lightgbm").LGBMRegressor(n_estimators=200, n_jobs=1, verbose=-1),
        "XGBoost 200 x depth 6": lambda: _library("xgboost").XGBRegressor(n_estimators=200, max_depth=6, n_jobs=1),
        "forest 100, leaves of 5": lambda: RandomForestRegressor(100, min_samples_leaf=5, random_state=0),
    }
    fitted = {}
    for name, make in made.items():
        try:
            fitted[name] = make().fit(X, y)
        except ImportError:
            print(f"{name}: not installed")
    return fitted


def _library(name: str) -> Any:
    from importlib import import_module

    return import_module(name)


def _mean(model: Any, X: pd.DataFrame) -> float:
    return float(np.asarray(model.predict(X), dtype=np.float64).mean())


def effects(rounds: int) -> str:
    """Partial dependence of all features on 50 points, and the largest difference to the model's own curves."""
    X, y = data()
    lines = []
    for name, model in models(X, y).items():

        def curves(model: Any = model) -> Any:
            return sg.Effects.compute(model, X, subgroups=None, grid_resolution=POINTS)

        calls = {"predict": lambda model=model: model.predict(X), "effects": curves}
        times = {key: min(own) for key, own in interleaved(calls, rounds, time.process_time).items()}
        found, at = curves()["x1"].curves, X.copy()
        difference = 0.0
        for line in found.iloc[:: POINTS // 5].itertuples():
            difference = max(difference, abs(_mean(model, at.assign(x1=line.x)) - line.estimate))
        bare = times["predict"] * POINTS * COLUMNS
        cells = [name, f"{1000 * times['effects']:.0f}", f"{bare:.1f}", f"{times['effects'] / bare:.4f}"]
        lines.append([*cells, f"{difference:.0e}"])
    return markdown(["model", "curves of all features, ms", "bare predict, s", "ratio", "difference"], lines)


def interactions(rounds: int) -> str:
    """H-squared of all pairs of features."""
    X, y = data()
    lines = []
    for name, model in models(X, y).items():
        calls = {"h": lambda model=model: sg.InteractionStrength.compute(model, X, random_state=0)}
        n = rounds if "forest" not in name else 1
        seconds = min(interleaved(calls, n, time.process_time)["h"])
        lines.append([name, str(COLUMNS * (COLUMNS - 1) // 2), f"{seconds:.2f}"])
    return markdown(["model", "pairs", "s"], lines)


SECTIONS: dict[str, Callable[[int], str]] = {"effects": effects, "interactions": interactions}


def main() -> None:
    """Print the table of each section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(machine("scikit-learn", "lightgbm", "xgboost-cpu"))
    for name in arguments.sections:
        print(f"\n{name}\n\n{SECTIONS[name](arguments.rounds)}")


if __name__ == "__main__":
    main()
