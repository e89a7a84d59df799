"""The default sampler on dependence structures that it was not developed on: `python -m experiments.held_out`.

`FIRST` was written before the candidates were changed for the first time, and showed what to change; `SECOND` was
looked at before they were changed for the second time (separate modes, predicted spreads); `THIRD` was written after
that; only its three thresholds were looked at before the last change, of the search for thresholds. Options: `--set
first|second|third`, `--reps`, `--rows 1000 300`.
`--check` prints instead how often the fidelity check finds a difference, a large one, and an uncertain sampler, by the
bias of the estimate.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.held_out_structures import FIRST, SECOND, THIRD
from experiments.structures import MODELS, N_REPEATS
from subgrove.simulate.conditional_draws import STRUCTURES, ConditionalDraw


def run(chosen: Mapping[str, ConditionalDraw], n_train: int, repetitions: int, seed: int) -> pd.DataFrame:
    """Return the squared error of the default over that of the true sampler, by structure and model."""
    cast("dict[str, ConditionalDraw]", STRUCTURES).update(chosen)
    lines = []
    for name in chosen:
        squares: dict[tuple[str, str], list[float]] = {}
        selected: list[str] = []
        for start in range(seed, seed + 2 * repetitions, 2):
            one = sg.simulate.structure(name)
            fitted = sg.samplers.Auto(random_state=start).fit(one.sample(n_train, random_state=start).X, ["x1"])
            selected.append(fitted.choices["x1"].selected)
            for model in MODELS:
                one = sg.simulate.structure(name, model=model)
                test = one.sample(n_train // 2, random_state=start + 1)
                for method, sampler in (("true", one.sampler), ("auto", fitted)):
                    line = _importance(one, test, sampler, start, check_fidelity=False)
                    error = float(line["estimate"]) - one.importance
                    squares.setdefault((model, method), []).append(error**2)
        for model in MODELS:
            true, auto = np.mean(squares[model, "true"]), np.mean(squares[model, "auto"])
            lines.append(
                {
                    "rows": n_train,
                    "structure": name,
                    "model": model,
                    "ratio": auto / true if true > 1e-12 else np.nan,
                    "rmse": np.sqrt(auto),
                    "selected": max(set(selected), key=selected.count),
                }
            )
            print(*lines[-1].values(), flush=True)
    return pd.DataFrame(lines)


def _importance(structure: Any, test: Any, sampler: Any, seed: int, **options: Any) -> Any:
    """Return the row of x1 in the table of importances."""
    options = {"features": ["x1"], "n_repeats": N_REPEATS, "loss": "squared_error", "random_state": seed, **options}
    return sg.importance(structure.model, test.X, test.y, sampler=sampler, **options).overall.iloc[0]


def check(chosen: Mapping[str, ConditionalDraw], n_train: int, repetitions: int, seed: int) -> pd.DataFrame:
    """Return the shares of differences and failures, by sampler and by the bias of the mean estimate."""
    cast("dict[str, ConditionalDraw]", STRUCTURES).update(chosen)
    runs = []
    for name in chosen:
        one = sg.simulate.structure(name)
        for start in range(seed, seed + 2 * repetitions, 2):
            train, test = one.sample(n_train, random_state=start), one.sample(n_train // 2, random_state=start + 1)
            groups = sg.find_subgroups(train.X, features=["x1"], max_depth=2)
            default = sg.samplers.Auto(random_state=start).fit(train.X, ["x1"])
            for method, sampler in (("true", one.sampler), ("default", default), ("subgroups of depth 2", groups)):
                line = _importance(one, test, sampler, start)
                error = line["estimate"] / one.importance - 1 if one.importance > 1e-9 else np.nan
                runs.append((method, name, error, line["fidelity"]))
    table = pd.DataFrame(runs, columns=["sampler", "structure", "error", "fidelity"]).dropna()
    bias = table.groupby(["sampler", "structure"])["error"].transform("mean").abs()
    table["bias"] = pd.cut(bias, [0, 0.1, 0.25, 0.5, 1, np.inf])
    table["difference"] = table["fidelity"].isin(["small difference", "failed"])
    table["failed"] = table["fidelity"] == "failed"
    table["uncertain"] = table["fidelity"] == "uncertain sampler"
    by = table.groupby(["sampler", "bias"], observed=True)
    shares = {name: (name, "mean") for name in ("difference", "failed", "uncertain")}
    return by.agg(runs=("failed", "size"), **shares).round(2)


SETS = {"first": FIRST, "second": SECOND, "third": THIRD}


def main() -> None:
    """Print a line for each structure and model, and how many are above 2, 10 and 50."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=list(SETS), default="third")
    parser.add_argument("--reps", type=int, default=15)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 300])
    parser.add_argument("--seed", type=int, default=5000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for n_train in options.rows:
        if options.check:
            print(n_train, "rows")
            print(check({**FIRST, **SECOND}, n_train, options.reps, options.seed).to_string(), flush=True)
            continue
        table = run(SETS[options.set], n_train, options.reps, options.seed)
        known = table["ratio"].dropna()
        print(
            f"{n_train} rows: {len(known)} lines, {100 * (known > 2).mean():.0f} % above 2, {(known > 10).sum()} above "
            f"10, {(known > 50).sum()} above 50, median {known.median():.2f}, largest {known.max():.1f}"
        )


if __name__ == "__main__":
    main()
