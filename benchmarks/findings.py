"""How often a column of noise is called important: `python benchmarks/findings.py --runs 20`.

30 columns of normal noise are added to the bike data, or to a file (`--csv houses.csv --target price`), gradient
boosting is trained on 70 % of the rows, and a report is made on the others. With `--pure` the target depends on
nothing: numbers, skewed numbers and two classes in turn.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

import subgrove as sg

NOISE = 30


def important(X: pd.DataFrame, y: Any, run: int) -> list[str]:
    """Return the features that are called important."""
    classes = len(np.unique(y)) == 2
    learner = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    train, test, trained, target = train_test_split(X, y, test_size=0.3, random_state=run)
    model = learner(categorical_features="from_dtype", random_state=0).fit(train, trained)
    summary = sg.report(model, (train, trained), (test, target), n_repeats=5, random_state=run).summary
    return [one.feature for one in summary.features if one.conditional.finding == "important"]


def with_noise(X: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the columns, text as categories, and columns of noise."""
    changed = X.copy()
    for name in X.columns:
        if X[name].dtype.kind not in "iuf":
            changed[name] = X[name].astype("category")
    for at in range(NOISE):
        changed[f"noise{at}"] = rng.normal(size=len(X))
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--csv")
    parser.add_argument("--target")
    parser.add_argument("--pure", action="store_true")
    options = parser.parse_args()
    wrong = 0
    for run in range(options.runs):
        rng = np.random.default_rng(run)
        if options.pure:
            X = pd.DataFrame(rng.normal(size=(400, 8)), columns=list("abcdefgh"))
            y = [rng.normal(size=400), rng.lognormal(size=400), 1.0 * rng.integers(0, 2, 400)][run % 3]
            found = named = important(X, y, run)
        else:
            bike = sg.datasets.bike()
            X, y = bike.X, np.asarray(bike.y)
            if options.csv:
                rows = pd.read_csv(options.csv)
                X, y = rows.drop(columns=options.target), rows[options.target].to_numpy()
            found = important(with_noise(X, rng), y, run)
            named = [name for name in found if name.startswith("noise")]
        wrong += bool(named)
        print(run, found, flush=True)
    print(f"noise is called important in {wrong} of {options.runs} runs")


if __name__ == "__main__":
    main()
