"""False discovery rate and power of `SubgroupImportanceSelector` in the null scenarios.

    python benchmarks/selection.py [--runs 200] [--rows 400] [--features 20] [--q 0.1] [--test independence importance]

x1 follows x2 and is redundant given it, x2 to x10 have an effect, and the columns after x10 are irrelevant: with 20
features 11 are redundant. Printed are the means over runs of the share of redundant features among those selected,
which q bounds, and of the share of the nine others that were selected, with their standard errors. With several
tests, the same data are used for each. The estimator is a linear model, one-hot encoded.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove.sklearn import SubgroupImportanceSelector

RELEVANT = [f"x{number}" for number in range(2, 11)]


def estimator() -> Any:
    levels = (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category"))
    return make_pipeline(make_column_transformer(levels, remainder="passthrough"), LinearRegression())


def one_run(name: str, rows: int, features: int, q: float, test: str, seed: int) -> tuple[float, float]:
    """Return the share of redundant features among those selected, and the share of relevant features selected."""
    data = sg.simulate.null_scenario(name, p=features).sample(rows, random_state=seed)
    selector = SubgroupImportanceSelector(
        estimator(), q=q, test=test, loss="squared_error", sampler="auto", random_state=seed
    )
    selected = set(selector.fit(data.X, data.y).get_feature_names_out())
    false = selected - set(RELEVANT)
    return len(false) / max(len(selected), 1), len(selected & set(RELEVANT)) / len(RELEVANT)


def rates(name: str, runs: int, rows: int, features: int, q: float, test: str) -> Floats:
    """Return an array with a row for each run: false discovery proportion, power."""
    return np.array([one_run(name, rows, features, q, test, seed) for seed in range(runs)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--q", type=float, default=0.1)
    parser.add_argument("--test", nargs="+", default=["importance", "independence"])
    parser.add_argument("--only", nargs="+", default=sg.simulate.null_scenarios())
    options = parser.parse_args()
    print("| scenario | p-values | false discovery rate | power |\n| --- | --- | --- | --- |")
    for test in options.test:
        for name in options.only:
            found = rates(name, options.runs, options.rows, options.features, options.q, test)
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(options.runs)
            cells = [f"{one:.3f} ({other:.3f})" for one, other in zip(mean, error, strict=True)]
            print(f"| {name} | {test} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
