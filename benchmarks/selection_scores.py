"""Held-out score of the sampler that the default selects, and the time of the selection, over many columns.

    python benchmarks/selection_scores.py --store before.json    # with one state of the package
    python benchmarks/selection_scores.py --store after.json     # with another one
    python benchmarks/selection_scores.py --compare before.json after.json

Up to five columns of each data set beside the repository with at most 80 columns (1,500 rows of each), and x1 of the 37
structures of `sg.simulate.structures()` with 1,000 and 300 rows. Scores are those by which candidates are compared,
CRPS of numbers and log score of levels; a change is relative to the score before, of levels to that of the marginal
sampler. Time is processor time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments lie beside this folder

from experiments.data import folder, manifest

ROWS, MOST_COLUMNS, FEATURES = 1500, 80, 5
NOTICEABLE = 0.02
LEAST_LOG_SCORE = 0.05  # of the marginal sampler: smaller ones would make changes look large


def columns() -> Iterator[tuple[str, Any, str]]:
    """Yield a name, rows, and the name of the column to resample."""
    for name in sg.simulate.structures():
        for n in (1000, 300):
            yield f"{name}, {n} rows", sg.simulate.structure(name).sample(n, random_state=5).X, "x1"
    where, rng = folder(), np.random.default_rng(0)
    if where is None:
        raise SystemExit("No data sets found. Set SUBGROVE_DATA to their folder.")
    for entry in manifest().to_dict("records"):
        if entry["columns"] <= MOST_COLUMNS and entry["file"].endswith(".parquet"):
            X = pd.read_parquet(where / entry["file"]).drop(columns=[entry["target"]])
            X = X.sample(min(len(X), ROWS), random_state=1).reset_index(drop=True)
            names = [str(name) for name in rng.permutation(X.columns)[:FEATURES]]
            yield from ((f"{entry['name']}, {feature}", X, feature) for feature in names)


def measured(X: Any, feature: str) -> dict[str, Any]:
    """Return the seconds of the selection, what was selected, and the score of each candidate."""
    start = time.process_time()
    choice = sg.samplers.Auto().fit(X, [feature]).choices[feature]
    seconds, scores = time.process_time() - start, {one.name: one.score for one in choice.scores}
    return {"seconds": seconds, "selected": choice.selected, "measure": choice.measure, "scores": scores}


def changes(before: dict[str, Any], after: dict[str, Any]) -> pd.DataFrame:
    """Return a line for each column: the relative change of the score of the selected sampler."""
    lines = []
    for name, old in before.items():
        new, marginal = after[name], old["scores"].get("marginal", np.nan)
        first, second = (one["scores"].get(one["selected"], np.nan) for one in (old, new))
        size = first if old["measure"] == "CRPS" else max(marginal, LEAST_LOG_SCORE)
        change = (second - first) / size if size > 0 else np.nan
        lines.append([name, old["selected"], new["selected"], first, second, marginal, change])
    named = ["column", "before", "after", "score_before", "score_after", "marginal", "change"]
    return pd.DataFrame(lines, columns=named).dropna()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("bench/selection_scores.json"))
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    options = parser.parse_args()
    if options.compare:
        before, after = (json.loads(path.read_text(encoding="utf-8")) for path in options.compare)
        table = changes(before, after).sort_values("change")
        seconds = [sum(one["seconds"] for one in found.values()) for found in (before, after)]
        worse, better = (table["change"] > NOTICEABLE).sum(), (table["change"] < -NOTICEABLE).sum()
        print(pd.concat([table.head(6), table.tail(12)]).round(4).to_string(index=False))
        print(
            f"{len(table)} columns: change {100 * table['change'].mean():.2f} % on average, "
            f"{100 * table['change'].median():.2f} % in the median; by more than {100 * NOTICEABLE:.0f} % worse in "
            f"{worse}, better in {better}; {seconds[0]:.1f} s before, {seconds[1]:.1f} s after"
        )
        return
    warnings.simplefilter("ignore")
    found = {name: measured(X, feature) for name, X, feature in columns()}
    options.store.parent.mkdir(parents=True, exist_ok=True)
    options.store.write_text(json.dumps(found), encoding="utf-8")
    print(f"{len(found)} columns, {sum(one['seconds'] for one in found.values()):.1f} s, written to {options.store}")


if __name__ == "__main__":
    main()
