"""Size and power of `imp.independence_test` where x1 depends on x2 in five ways, with three numbers of rows.

    python benchmarks/size_of_independence_test.py [--runs 100] [--first 0] [--effect]
        [--sampler subgroups] [--only step sine]

Columns x2 to x5 are normal; y contains twice the conditional mean of x1, so that x1 is redundant given x2, and x3. The
model is a random forest of 50 trees, which uses x1. With `--effect`, y contains a multiple of x1 that a t-test with the
true regression would detect in 80 % of the samples of test rows (one-sided, 5 %). Finished runs are stored in `--store`
and not repeated. Shares in percent, with standard errors: of p < 0.05 among all runs (by `overall`, by the test), and
of runs that are undecided.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import subgrove as sg

SIZES = ((100, 100), (300, 300), (100, 500))
SPREADS = {"sine": 0.3, "exponential": 0.3, "linear": 0.5, "step": 0.3, "0/1 logistic": 0.385}  # of x1 given x2
DETECTED = 2.49  # standard errors that a one-sided test at 5 % detects in 80 % of the samples


def conditional_mean(kind: str, z: Any) -> Any:
    """Return the mean of x1 given x2."""
    if kind == "sine":
        return np.sin(2.5 * z)
    if kind == "exponential":
        return np.exp(z) / 2
    if kind == "step":
        return 1.0 * (z > 0.3)
    return z if kind == "linear" else 1 / (1 + np.exp(-2 * z))


def sample(kind: str, n: int, effect: float, rng: np.random.Generator) -> tuple[pd.DataFrame, Any]:
    """Return columns and target."""
    others = rng.normal(size=(n, 4))
    mean = conditional_mean(kind, others[:, 0])
    x1 = 1.0 * (rng.random(n) < mean) if kind == "0/1 logistic" else mean + SPREADS[kind] * rng.normal(size=n)
    X = pd.DataFrame(np.column_stack([x1, others]), columns=[f"x{at}" for at in range(1, 6)])
    return X, 2 * mean + others[:, 1] + rng.normal(size=n) + effect * (x1 - mean)


def one_run(kind: str, n_train: int, n_test: int, with_effect: bool, sampler: str, seed: int) -> dict[str, Any]:
    """Return the p-values of `overall` and of the test (None if undecided) for x1."""
    rng = np.random.default_rng([seed, n_train, n_test, list(SPREADS).index(kind)])
    effect = DETECTED / (SPREADS[kind] * np.sqrt(n_test)) if with_effect else 0.0
    train, test = sample(kind, n_train, effect, rng), sample(kind, n_test, effect, rng)
    model = RandomForestRegressor(50, min_samples_leaf=5, random_state=seed).fit(*train)
    imp = sg.importance(
        model,
        *test,
        train=train[0],
        sampler=sampler,
        features=["x1"],
        check_fidelity=False,
        random_state=seed,
        loss="squared_error",
    )
    line = imp.independence_test(test[0]).iloc[0]
    undecided = line["decision"] == "undecided"
    return {"overall": float(imp.overall["p_value"][0]), "test": None if undecided else float(line["p_value"])}


def share(values: list[bool]) -> str:
    """Return a share in percent with its standard error."""
    mean = float(np.mean(values))
    return f"{100 * mean:.0f} ± {100 * np.sqrt(mean * (1 - mean) / len(values)):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--only", nargs="*", choices=list(SPREADS), default=list(SPREADS))
    parser.add_argument("--effect", action="store_true", help="power in place of size")
    parser.add_argument("--sampler", default="auto")
    parser.add_argument("--store", type=Path, default=Path("bench/size_of_independence_test.jsonl"))
    arguments = parser.parse_args()
    arguments.store.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.store.read_text().splitlines() if arguments.store.exists() else []
    known = {tuple(line["key"]): line for line in map(json.loads, lines)}
    print("| x1 given x2 | train / test | `overall` | test | undecided |\n|---|--:|--:|--:|--:|")
    for kind in arguments.only:
        for n_train, n_test in SIZES:
            found = []
            for seed in range(arguments.first, arguments.first + arguments.runs):
                key = (kind, n_train, n_test, arguments.effect, arguments.sampler, seed)
                if key not in known:
                    known[key] = {"key": key, **one_run(*key)}
                    with arguments.store.open("a") as file:
                        file.write(json.dumps(known[key]) + "\n")
                found.append(known[key])
            undecided = [one["test"] is None for one in found]
            below = [one["test"] is not None and one["test"] < 0.05 for one in found]
            overall = [one["overall"] < 0.05 for one in found]
            shares = " | ".join(map(share, (overall, below, undecided)))
            print(f"| {kind} | {n_train} / {n_test} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
