"""Sufficient number of sampled rows for fitting a sampler, if many more rows are evaluated.

    python benchmarks/sample_size.py            all cells (about ten minutes); resumes an interrupted run
    python benchmarks/sample_size.py --quick    a few small cells
    python benchmarks/sample_size.py --table    print the stored results

Large data are resampled row by row, by a sampler that was fitted on a uniform sample. Its size determines the bias of
the estimate, its variance over samples (which more evaluated rows do not reduce), and which sampler and which
subgroups are selected.

Rows are fresh draws of scenarios in which the importance of x1 is known, the model is the true one, and all samples of
a scenario are judged on the same 100,000 rows. `off` is the estimate less that of the true conditional distribution on
these rows, so that the noise of the rows themselves is in neither. Beside them, the electricity data (45,312 rows of
the CC18 collection, if its file is there): a boosting model, 10,000 judged rows, `off` against all 20,000 rows that are
left for sampling.

`noise` is the standard deviation of `off` over samples, less (in squares) what the draws of one sample's redraw add
(`mc_error`).

Each cell is a line in benchmarks/results/sample_size.jsonl, written when it is done.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
SCENARIOS = ("linear", "nonlinear", "mixed")
SAMPLERS = ("auto", "subgroups")
JUDGED = 100_000
RESULTS = Path(__file__).parent / "results" / "sample_size.jsonl"
ELECTRICITY = Path(os.environ.get("SUBGROVE_DATA", "data")) / "cc18" / "151.parquet"
OPTIONS: dict[str, Any] = {"n_repeats": 5, "check_fidelity": False, "random_state": 1}


@dataclass(frozen=True)
class Task:
    """Rows to evaluate, a model, the source of the samples, and the true importance."""

    feature: str
    model: Any
    X: Any
    y: Any
    draw: Callable[[int, int], Any]
    reference: float
    std_error: float  # of the importance, from the judged rows alone


@cache
def simulated(name: str, judged: int) -> Task:
    made = sg.simulate.scenario(name)
    test = made.sample(judged, random_state=1_000_003)
    options = OPTIONS | {"n_repeats": 20}
    true = sg.importance(
        made.model, test.X, test.y, sampler=made.sampler, features=["x1"], loss="squared_error", **options
    ).overall.iloc[0]

    def draw(n: int, seed: int) -> Any:
        return made.sample(n, random_state=seed).X

    return Task("x1", made.model, test.X, test.y, draw, float(true["estimate"]), float(true["std_error"]))


@cache
def electricity(feature: str) -> Task:
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame = pd.read_parquet(ELECTRICITY).sample(frac=1, random_state=1).reset_index(drop=True)
    X, y = frame.drop(columns="class").select_dtypes("number"), frame["class"].astype(str)
    model = HistGradientBoostingClassifier(random_state=1).fit(X[:15_000], y[:15_000])
    judged, rest = slice(15_000, 25_000), X[25_000:45_000]

    def draw(n: int, seed: int) -> Any:
        return rest.sample(n, random_state=seed)

    whole = sg.importance(
        model, X[judged], y[judged], sampler="auto", train=rest, features=[feature], loss="squared_error", **OPTIONS
    )
    line = whole.overall.iloc[0]
    return Task(feature, model, X[judged], y[judged], draw, float(line["estimate"]), float(line["std_error"]))


def cells(quick: bool) -> Iterator[tuple[str, str, int, int]]:
    """(data, sampler, size, number of the sample); small sizes have more samples, since theirs differ more."""
    sizes = SIZES[:3] if quick else SIZES
    for number in range(2 if quick else 12):
        for size in sizes:
            if number >= {300_000: 5, 100_000: 8}.get(size, 12):
                continue
            for name in SCENARIOS[:1] if quick else SCENARIOS:
                for sampler in SAMPLERS:
                    yield name, sampler, size, number
            if ELECTRICITY.exists() and not quick and size <= 10_000:
                for feature in ("nswprice", "date"):
                    yield f"electricity: {feature}", "auto", size, number


def done(data: str, sampler: str, size: int, number: int, judged: int) -> dict[str, Any]:
    """Fit the sampler on one sample and evaluate it."""
    task = electricity(data.split(": ")[1]) if data.startswith("electricity") else simulated(data, judged)
    train = task.draw(size, 1 + number)
    imp = sg.importance(
        task.model,
        task.X,
        task.y,
        sampler=sampler,
        train=train,
        features=[task.feature],
        loss="squared_error",
        **OPTIONS,
    )
    groups = sg.find_subgroups(train, features=task.feature)[task.feature]
    chosen = str(imp.choices.query("selected")["sampler"].iloc[0]) if sampler == "auto" else sampler
    estimate = float(imp.overall["estimate"].iloc[0])
    return {
        "data": data,
        "sampler": sampler,
        "size": size,
        "number": number,
        "judged": judged,
        "off": estimate - task.reference,
        "reference": task.reference,
        "std_error": task.std_error,
        "mc_error": float(imp.overall["mc_error"].iloc[0]),
        "chosen": chosen,
        "split": sorted({node.split.column for node in groups.tree.nodes if node.split is not None}),
        "n_subgroups": len(groups),
    }


def compact(lines: list[dict[str, Any]]) -> None:
    """The same for a page: a column for each data set, in each cell `off` and its error, and the noise."""
    frame = pd.DataFrame(lines)
    names = list(dict.fromkeys(frame["data"]))
    print("| sampler | sampled rows | " + " | ".join(names) + " |")
    print("| --- | --: | " + " | ".join(["--:"] * len(names)) + " |")
    for key, part in frame.groupby(["sampler", "size"]):
        cells = []
        for name in names:
            off, noise, _ = summary(part[part["data"] == name]) if (part["data"] == name).any() else (None, 0.0, 0.0)
            cells.append(
                "" if off is None else f"{off.mean():+.1f} +- {off.std() / np.sqrt(len(off)):.1f}, {noise:.1f}"
            )
        print(f"| {key[0]} | {key[1]:,} | " + " | ".join(cells) + " |")
    print()


def summary(part: pd.DataFrame) -> tuple[Any, float, float]:
    """How far estimates are off in percent of the importance, their noise, and that of draws."""
    off = 100 * part["off"] / part["reference"]
    draws = 100 * float((part["mc_error"] / part["reference"]).mean())
    return off, float(np.sqrt(max(off.var() - draws**2, 0.0))), draws


def table(lines: list[dict[str, Any]]) -> None:
    print("| data | sampler | sampled rows | samples | off, % of the importance | noise, % | chosen | tree splits on |")
    print("| --- | --- | --: | --: | --: | --: | --- | --- |")
    frame = pd.DataFrame(lines)
    for key, part in frame.groupby(["data", "sampler", "size"], sort=False):
        data, sampler, size = key
        off, noise, _ = summary(part)
        error = off.std() / np.sqrt(len(off)) if len(off) > 1 else np.nan
        print(
            f"| {data} | {sampler} | {size:,} | {len(part)} | {off.mean():+.2f} +- {error:.2f} | {noise:.2f} "
            f"| {shares(part['chosen'])} | {shares(part['split'].map(', '.join))} |"
        )
    print("\nStandard error of the importance from judged rows alone, for 20 million of them, in % of the importance:")
    for name, part in frame.groupby("data", sort=False):
        first = part.iloc[0]
        judged = first["judged"] if "electricity" not in str(name) else 10_000
        print(f"- {name}: {100 * first['std_error'] / first['reference'] * np.sqrt(judged / 20e6):.3f}")


def shares(values: Any) -> str:
    """List the selected candidates by frequency, with the frequency unless it is always the same."""
    found = Counter(values).most_common(3)
    return "; ".join(f"{value}" if n == len(values) else f"{value} {n}/{len(values)}" for value, n in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few small cells, kept nowhere")
    parser.add_argument("--table", action="store_true", help="print the stored results")
    options = parser.parse_args()
    judged = 5_000 if options.quick else JUDGED
    lines: list[dict[str, Any]] = []
    if RESULTS.exists() and not options.quick:
        lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    known = {(line["data"], line["sampler"], line["size"], line["number"]) for line in lines}
    for cell in () if options.table else cells(options.quick):
        if cell in known:
            continue
        lines.append(done(*cell, judged))
        if not options.quick:
            RESULTS.parent.mkdir(exist_ok=True)
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    lines = sorted(lines, key=lambda line: (line["data"], line["sampler"], line["size"], line["number"]))
    compact(lines)
    table(lines)


if __name__ == "__main__":
    main()
