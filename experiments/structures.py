"""The default sampler beside the true one on dependence structures of many kinds.

`python -m experiments structures`, or `ground_truth --scenarios zoo`. x1 is drawn given the other columns in 37 ways
(`sg.simulate.structures()`); two models are explained. The squared error of the estimated importance is compared with
that of the true sampler, which draws x1 from its true conditional distribution, on the same test rows.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.units import Size, Unit
from subgrove._scoring.fidelity_check import UNCERTAIN
from subgrove.simulate.structures import ModelName

BEYOND = "the default sampler beside the true one on 37 dependence structures"

MODELS: tuple[ModelName, ...] = ("linear", "saturating")
ROWS = ((1000, 500), (300, 150))  # training and test rows
WITHOUT_TRUTH = {("Cauchy", "linear")}  # the mean of squared Cauchy variables is infinite
REPETITIONS = 40
N_REPEATS = 20
DIFFERENCES = ("small difference", "failed")
FLAGS = ("uncertain sampler", *DIFFERENCES)
_FAR, _VERY_FAR = 2.0, 10.0  # times the error of the true sampler
_SHOWN = 1.5
_EXACT = 1e-9  # importance below which the truth is 0


def units(size: Size) -> list[Unit]:
    """Repetitions of all lines, the first of each before the second of any."""
    names = sg.simulate.structures()[:3] if size.quick else sg.simulate.structures()
    repetitions = size.reps or (2 if size.quick else REPETITIONS)
    listed = []
    for n_train, n_test in ROWS[1:] if size.quick else ROWS:
        for name in names:
            cell = f"{name.replace(' ', '_').replace(',', '')}-{n_train}"
            options = {"structure": name, "n_train": n_train, "n_test": n_test}
            for at in range(repetitions):
                key = f"{cell}/s{size.seed}-{at:03d}"
                listed.append((at, Unit(key, cell, {**options, "rep": at})))
    return [unit for _, unit in sorted(listed, key=lambda one: one[0])]


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Estimates of the default and of the true sampler for both models, on the same rows."""
    options = unit.params
    rows = []
    for model in MODELS:
        if (options["structure"], model) in WITHOUT_TRUTH:
            continue
        structure = sg.simulate.structure(options["structure"], model=model)
        train = structure.sample(options["n_train"], random_state=seed)
        test = structure.sample(options["n_test"], random_state=seed + 1)
        for method in ("true", "auto"):
            own: dict[str, Any] = {"sampler": structure.sampler} if method == "true" else {"train": train.X}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                imp = sg.importance(
                    structure.model,
                    test.X,
                    test.y,
                    features=["x1"],
                    n_repeats=N_REPEATS,
                    loss="squared_error",
                    random_state=seed,
                    **own,
                )
            line = imp.overall.iloc[0]
            selected = imp.choices.loc[imp.choices["selected"], "sampler"] if method == "auto" else pd.Series([""])
            rows.append(
                {
                    **{name: options[name] for name in ("structure", "n_train", "n_test", "rep")},
                    "model": model,
                    "method": method,
                    "truth": structure.importance,
                    "estimate": float(line["estimate"]),
                    "covered": bool(line["conf_low"] <= structure.importance <= line["conf_high"]),
                    "difference": line["fidelity"] in DIFFERENCES,
                    "sampler_change": float(imp.fidelity_checks["sampler_change"].iloc[0]),
                    "selected": selected.iloc[0],
                }
            )
    return rows


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`lines`: errors, coverage and fidelity checks of each structure, model and number of rows; `all`: in short."""
    known = [line not in WITHOUT_TRUTH for line in zip(results["structure"], results["model"], strict=True)]
    results = results[known]
    flagged = results["difference"] | (results["sampler_change"] > UNCERTAIN)
    results = results.assign(square=(results["estimate"] - results["truth"]) ** 2, flagged=flagged)
    lines = []
    by = ["n_train", "structure", "model"]
    for place, part in results.groupby(by, sort=False):
        true, auto = (part[part["method"] == method] for method in ("true", "auto"))
        truth, error = float(part["truth"].iloc[0]), float(true["square"].mean())
        exact = truth < _EXACT
        bias = float(auto["estimate"].mean()) - truth
        lines.append(
            {
                **dict(zip(by, place, strict=True)),
                "repetitions": len(auto),
                "truth": truth,
                "ratio": np.nan if exact else float(auto["square"].mean()) / error,
                "bias": bias if exact else bias / truth,
                "covered": float(auto["covered"].mean()),
                "covered_true": float(true["covered"].mean()),
                "flagged": float(auto["flagged"].mean()),
                "flagged_true": float(true["flagged"].mean()),
                "selected": auto["selected"].mode().iloc[0],
            }
        )
    table = pd.DataFrame(lines).sort_values(["n_train", "ratio"], ascending=[False, False], kind="stable")
    return {"lines": table.reset_index(drop=True), "all": _in_short(table)}


def _in_short(lines: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for n_train, part in lines.groupby("n_train", sort=False):
        known = part[part["ratio"].notna()]
        far, near = known[known["ratio"] > _FAR], known[known["ratio"] <= _FAR]
        rows.append(
            {
                "n_train": n_train,
                "lines": len(known),
                "above_2": len(far) / len(known),
                "above_10": int((known["ratio"] > _VERY_FAR).sum()),
                "largest": known["ratio"].max(),
                "median": known["ratio"].median(),
                "exact_off": part.loc[part["ratio"].isna(), "bias"].abs().max(),
                "covered_near": near["covered"].mean(),
                "covered_far": far["covered"].mean(),
                "flagged_far": far["flagged"].mean(),
                "flagged_near": near["flagged"].mean(),
                "flagged_true": part["flagged_true"].mean(),
            }
        )
    return pd.DataFrame(rows)


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """No figure: the table says it."""
    return []


_HEAD = ("training rows", "structure", "model", "ratio", "bias", "covered", "selected most often")


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the page, from the tables and from nothing else."""
    lines = tables["lines"]
    intro = (
        "The scenarios above are those that samplers are usually compared on. People bring seasons, hours of the day, "
        "coordinates, 0/1 columns, saturating curves, atoms and missing values. Here x1 is drawn given the other "
        f"columns in {lines['structure'].nunique()} ways (`sg.simulate.structures()`), for a linear and a saturating "
        "model. The ratio is the squared error of the default over that of the true sampler on the same test rows, "
        f"over {int(lines['repetitions'].min())} or more repetitions with {N_REPEATS} draws. The candidates of the "
        "default were developed on these structures, with other rows: for structures that are not among them, expect "
        "larger errors."
    )
    shown = lines[lines["ratio"] > _SHOWN]
    rows = [f"| {' | '.join(_HEAD)} |", "|--:|---|---|--:|--:|--:|---|", *(_row(line) for line in shown.itertuples())]
    return "\n\n".join(
        [
            "## Dependence structures of many kinds",
            intro,
            *(_sentences(line) for line in tables["all"].itertuples()),
            f"Lines above {_SHOWN} times the error of the true sampler:",
            "\n".join(rows),
        ]
    )


def _sentences(line: Any) -> str:
    return (
        f"**{line.n_train:,} training rows**: of {line.lines} lines {100 * line.above_2:.0f} % are above twice the "
        f"error of the true sampler, {line.above_10} above ten times; the median is {line.median:.2f}, the largest "
        f"{line.largest:.1f}. Exact relations, whose importance is 0, are off by at most {line.exact_off:.1e}. The "
        f"95 % interval covers in {100 * line.covered_near:.0f} % of the runs of lines within twice the error, and in "
        f"{100 * line.covered_far:.0f} % of the others. The fidelity check flags {100 * line.flagged_far:.0f} % of the "
        "runs of those (it finds a difference, or the sampler is uncertain), "
        f"{100 * line.flagged_near:.0f} % of the runs within twice the error, and "
        f"{100 * line.flagged_true:.1f} % of the runs with the true sampler."
    )


def _row(line: Any) -> str:
    return (
        f"| {line.n_train} | {line.structure} | {line.model} | {line.ratio:.1f} | {100 * line.bias:+.0f} % | "
        f"{100 * line.covered:.0f} % | `{line.selected}` |"
    )
