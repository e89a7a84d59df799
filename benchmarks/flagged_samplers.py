"""How often the fidelity check flags the default sampler, by how wrong its importances are.

    python benchmarks/flagged_samplers.py [--reps 3] [--best] [--store bench/flagged_samplers.jsonl]

The 37 structures of `sg.simulate.structures()`, and the 44 of `experiments/held_out.py`, which no rule was selected on;
1,000 training and 500 test rows, and 300 and 150. A line is a structure, a model and a number of rows. It is "far" if
the squared error of the default is above twice that of the true sampler: by the stored tables of
`python -m experiments structures` for the 37; for the others by 1 plus the mean squared difference of the two estimates
on the same test rows over the mean squared standard error. Shares are means over lines. Runs are stored as they end,
and not repeated.

`--best` prints instead the power, in the far ones of the 37 structures, of a test that knows both distributions:
boosting separates 20,000 true values from as many draws of the sampler, and the sum of its log odds over the test rows
is compared with the sums for 99 draws. No test on the same test rows that does not know the truth can be much better.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import subgrove as sg

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments lie beside this folder

from experiments.held_out_structures import FIRST, SECOND
from experiments.structures import FLAGS, MODELS, N_REPEATS
from experiments.summary import RESULTS
from subgrove.simulate.conditional_draws import STRUCTURES

ROWS = (300, 1000)
FAR = 2.0
KNOWN, LEVEL = 20_000, 0.05


def one_run(which: str, name: str, n_train: int, rep: int) -> dict[str, Any]:
    """Return the verdicts on the default and on the true sampler, and their estimates."""
    seed = 40_000 + 2 * rep
    one = sg.simulate.structure(name)
    fitted = sg.samplers.Auto(random_state=seed).fit(one.sample(n_train, random_state=seed).X, ["x1"])
    found: dict[str, Any] = {"key": [which, name, n_train, rep]}
    for model in MODELS:
        one = sg.simulate.structure(name, model=model)
        test = one.sample(n_train // 2, random_state=seed + 1)
        for label, sampler in (("auto", fitted), ("true", one.sampler)):
            options: dict[str, Any] = {"features": ["x1"], "n_repeats": N_REPEATS, "loss": "squared_error"}
            options |= {"sampler": sampler, "random_state": seed}
            line = sg.importance(one.model, test.X, test.y, **options).overall.iloc[0]
            found[model + label] = [float(line["estimate"]), float(line["std_error"])]
            found["v" + model + label] = line["fidelity"]
    return found


def best_p_value(name: str, n_train: int, rep: int) -> float:
    """Return the p-value of the nearly best test of real values of the test rows against draws of the default."""
    seed, one = 90_000 + 2 * rep, sg.simulate.structure(name)
    fitted = sg.samplers.Auto(random_state=seed).fit(one.sample(n_train, random_state=seed).X, ["x1"])
    rows, test = one.sample(KNOWN, random_state=seed + 777).X, one.sample(n_train // 2, random_state=seed + 1).X
    new = next(fitted.sample(rows, "x1", [np.random.default_rng(seed)]))
    points = np.vstack([_numbers(rows, fitted), _numbers(rows.assign(x1=new), fitted)])
    boosting = HistGradientBoostingClassifier(max_iter=200, random_state=0)
    boosting.fit(points, np.repeat([1, 0], KNOWN))
    streams = [np.random.default_rng([seed, at]) for at in range(99)]
    tables = [test, *(test.assign(x1=values) for values in fitted.sample(test, "x1", streams))]
    real, *drawn = (boosting.decision_function(_numbers(table, fitted)).sum() for table in tables)
    return float(1 + sum(each >= real for each in drawn)) / 100


def _numbers(X: Any, fitted: Any) -> Any:
    """Return all columns as numbers, levels by their codes."""
    series = [fitted.read(X).series(name) for name in X.columns]
    return np.column_stack([np.asarray(one.values, dtype=np.float64) for one in series])


def print_best(reps: int, store: Path) -> None:
    """Print the power of the nearly best test by structure and number of training rows."""
    lines = pd.read_csv(RESULTS / "structures_lines.csv")
    cells: list[Any] = lines.loc[lines["ratio"] > FAR, ["structure", "n_train"]].drop_duplicates().to_numpy().tolist()
    found = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    known = {tuple(one[:3]) for one in found}
    for rep in range(reps):
        for name, n_train in cells:
            if (name, n_train, rep) not in known:
                found.append([name, n_train, rep, best_p_value(name, n_train, rep)])
                with store.open("a") as file:
                    file.write(json.dumps(found[-1]) + "\n")
    table = pd.DataFrame(found, columns=["structure", "n_train", "rep", "p_value"])
    table["found"] = table["p_value"] <= LEVEL
    by = table.groupby(["n_train", "structure"])["found"].agg(["size", "mean"])
    print(by.round(2).to_string(), by.groupby("n_train")["mean"].mean().round(2).to_string(), sep="\n")


def lines_of(runs: list[dict[str, Any]]) -> pd.DataFrame:
    """Return for each line the ratio of squared errors, and the share of runs with each verdict."""
    known = pd.read_csv(RESULTS / "structures_lines.csv").set_index(["n_train", "structure", "model"])["ratio"]
    lines = []
    for (which, name, n_train), part in pd.DataFrame(runs).groupby(by=_keys(runs)):
        for model in MODELS:
            if which == "zoo":
                ratio = known.get((n_train, name, model), np.nan)
            else:
                auto, true = (np.array(part[model + label].tolist()) for label in ("auto", "true"))
                error = (true[:, 1] ** 2).mean()
                ratio = 1 + ((auto - true)[:, 0] ** 2).mean() / error if error > 0 else np.nan
            shares = {flag: float((part["v" + model + "auto"] == flag).mean()) for flag in FLAGS}
            lines.append({"which": which, "n_train": n_train, "structure": name, "ratio": ratio, **shares})
    return pd.DataFrame(lines).dropna()


def _keys(runs: list[dict[str, Any]]) -> list[Any]:
    return [np.array([run["key"][at] for run in runs]) for at in range(3)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--best", action="store_true")
    parser.add_argument("--store", type=Path, default=Path("bench/flagged_samplers.jsonl"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    arguments.store.parent.mkdir(parents=True, exist_ok=True)
    if arguments.best:
        print_best(arguments.reps, arguments.store.with_name("best_" + arguments.store.name))
        return
    held_out = {**FIRST, **SECOND}
    groups = {"zoo": sg.simulate.structures(), "new": tuple(held_out)}
    cast("dict[str, Any]", STRUCTURES).update(held_out)
    runs = [json.loads(line) for line in arguments.store.read_text().splitlines()] if arguments.store.exists() else []
    known = {tuple(run["key"]) for run in runs}
    for rep in range(arguments.reps):
        for which, names in groups.items():
            for n_train in ROWS:
                for name in names:
                    if (which, name, n_train, rep) in known:
                        continue
                    runs.append(one_run(which, name, n_train, rep))
                    with arguments.store.open("a") as file:
                        file.write(json.dumps(runs[-1]) + "\n")
    lines = lines_of(runs)
    lines["error"] = np.where(lines["ratio"] > FAR, "far", "near")
    lines["flagged"] = lines[list(FLAGS)].sum(axis=1)
    by = lines.groupby(["which", "n_train", "error"])
    print(by[[*FLAGS, "flagged"]].mean().assign(lines=by.size()).round(2).to_string())
    true = pd.Series([run[f"v{model}true"] for run in runs for model in MODELS])
    print(f"true sampler: flagged in {100 * true.isin(FLAGS).mean():.1f} % of {len(true)} runs")


if __name__ == "__main__":
    main()
