"""`sg.importance` as it is called by default on the rows of the ground-truth simulation: test rows are calibrated.

`auto_alike` is what the same redraws give if all rows count alike, so that differences are of the same rows and draws.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.beside_published import CELL
from experiments.beside_true import beside_true, mse_ratio
from experiments.ground_truth import FEATURES, ROWS, in_order, rows_of
from experiments.ground_truth_figures import TITLES
from experiments.ground_truth_methods import FEATURE, redrawn
from experiments.ground_truth_rows import REPEATS, Repetition, drawn_repetition
from experiments.ground_truth_samplers import one_unit
from experiments.parts.sections import markdown, number, with_error
from experiments.units import Size, Unit, seed_of

BEYOND = "the default call, which calibrates test rows, on the rows of ground_truth"
DEFAULT, UNWEIGHTED = "auto", "auto_alike"

_REPETITIONS = {300: 200, 3000: 100}


def units(size: Size) -> list[Unit]:
    """Repetitions of all cells, the first of each before the second of any."""
    cells = [("I", *cell) for cell in product(sg.simulate.scenarios(), ROWS, FEATURES)]
    cells += [("II", *cell) for cell in product(sg.simulate.PAPER, ROWS, FEATURES)]
    if size.quick:
        cells = [("I", "linear", 300, 10), ("II", "linear", 300, 10)]
    size = replace(size, forest="own")  # as the paper's methods had
    listed = [(at, one_unit(size, *cell, at)) for cell in cells for at in range(_repetitions(size, cell[2]))]
    return [unit for _, unit in sorted(listed, key=lambda one: one[0])]


def _repetitions(size: Size, n: int) -> int:
    if size.reps is not None:
        return size.reps if n == min(ROWS) else ceil(size.reps / 3)
    return 2 if size.quick else _REPETITIONS[n]


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Estimates with and without calibration, and of the true sampler; rows are those of `ground_truth`."""
    one = drawn_repetition(unit.params, seed_of("ground_truth", unit.key))
    drawn = redrawn(one.scenario.sampler, one.train, one.test, REPEATS, one.seeds[1])
    return [*rows_of(unit.params, one.truth, {"true": one.rises(drawn.columns)}), *asked_by_default(unit, one)]


def asked_by_default(unit: Unit, one: Repetition) -> list[dict[str, Any]]:
    """Estimates of the default call, and of the same if all rows count alike, with one redraw and with many."""
    labels = {name: unit.params[name] for name in ("setting", "scenario", "n", "p", "rep")} | {"truth": one.truth}
    return [labels | {"m": m, **line} for m in (1, REPEATS) for line in _asked(one, m)]


def _asked(one: Repetition, m: int) -> list[dict[str, Any]]:
    imp = sg.importance(
        one.predict,
        one.test,
        one.y,
        train=one.train,
        features=[FEATURE],
        n_repeats=m,
        random_state=one.seeds[1],
        check_fidelity=False,
    )
    own = {"estimate": imp.overall["estimate"].iloc[0], "std_error": imp.variance_components["test rows"].iloc[0]}
    before, by = own, 0
    if len(imp.calibration):
        line = imp.calibration.iloc[0]
        before, by = {name: line[f"{name}_before"] for name in own}, len(line["columns"].split(", "))
    return [{"method": DEFAULT, **own, "by": by}, {"method": UNWEIGHTED, **before, "by": 0}]


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`cells`: both estimates in every cell beside the true sampler; `pairs`: what calibration changes, run by run."""
    results = results.assign(order=in_order(results)).sort_values(["order", "rep"], kind="stable")
    return {"cells": beside_true(results), "pairs": _pairs(results)}


def _pairs(results: pd.DataFrame) -> pd.DataFrame:
    """The error of the default call as a multiple of the one with rows alike, and how far estimates move on average."""
    lines = []
    for key, part in results.groupby([*CELL, "m"], sort=False):
        before, after = (part[part["method"] == name].set_index("rep") for name in (UNWEIGHTED, DEFAULT))
        ratio, error = mse_ratio(after, before)
        moved = (after["estimate"] - before["estimate"]).to_numpy(np.float64)
        labels = dict(zip([*CELL, "m"], key if isinstance(key, tuple) else (key,), strict=True))
        spread = float(moved.std(ddof=1) / np.sqrt(len(moved))) if len(moved) > 1 else float("nan")
        weighted = float((after["by"] > 0).mean())
        lines.append(
            {
                **labels,
                "weighted": weighted,
                "times": ratio,
                "times_se": error,
                "moved": moved.mean(),
                "moved_se": spread,
            }
        )
    return pd.DataFrame(lines)


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """None: `peers` draws these errors beside those of other packages."""
    return []


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the page on what goes past the paper."""
    cells, pairs = tables["cells"], tables["pairs"]
    parts = [
        "## Calibrated test rows",
        "`sg.importance` weights test rows part of the way to how test and training rows are together, where that "
        "takes much of the noise away ([Inference](inference.md#calibrated-test-rows)). The default "
        "call; *times* is the mean squared error as a multiple of that of the same call with `calibrate=False` (same "
        "rows, same draws), *moved* how far estimates move on average, which shows a bias if it has one; both with "
        "their standard errors. *Weighted* is the share of repetitions in which rows were weighted. Setting II asks "
        "the forest of the paper's methods. Cells that are not here have not been run.",
    ]
    for setting, m in product(sorted(set(pairs["setting"])), sorted(set(pairs["m"]), reverse=True)):
        here = pairs[(pairs["m"] == m) & (pairs["setting"] == setting)]
        errors = cells[(cells["m"] == m) & (cells["setting"] == setting)]
        parts += [f"### Setting {setting}, {m} redraw{'s' if m > 1 else ''}", _table(errors, here), _verdict(here)]
        parts += _beside_published(errors)
    return "\n\n".join(parts) + "\n"


def _beside_published(cells: pd.DataFrame) -> list[str]:
    """In how many cells the error is below that of the best published method, and where not."""
    own = cells[(cells["method"] == DEFAULT) & cells["best_published"].notna()]
    lost = own[~own["below_published"].astype(bool)]
    named = [
        f"{TITLES[one['scenario']]} {one['n']} x {one['p']} ({with_error(one['mse'], one['mse_se'])} against "
        f"{number(one['best_published'])})"
        for one in lost.to_dict("records")
    ]
    if own.empty:
        return []
    where = f"; not in {', '.join(named)}" if named else ""
    return [f"Below the best published method in {len(own) - len(lost)} of {len(own)} cells{where}."]


def _table(cells: pd.DataFrame, pairs: pd.DataFrame) -> str:
    found = {(*(one[name] for name in CELL), one["method"]): one for one in cells.to_dict("records")}
    lines = []
    for one in pairs.to_dict("records"):
        own = {name: found[(*(one[key] for key in CELL), name)] for name in (UNWEIGHTED, DEFAULT, "true")}
        lines.append(
            (
                *(TITLES[one["scenario"]], str(one["n"]), str(one["p"]), str(own[DEFAULT]["reps"])),
                *(number(own[name]["mse"]) for name in (UNWEIGHTED, DEFAULT, "true")),
                f"{100 * one['weighted']:.0f} %",
                with_error(one["times"], one["times_se"]),
                f"{one['moved']:+.2g} ± {one['moved_se']:.1g}",
            )
        )
    return markdown(
        ("scenario", "n", "p", "repetitions", "rows alike", "default", "true sampler", "weighted", "times", "moved"),
        lines,
    )


def _verdict(pairs: pd.DataFrame) -> str:
    smaller = int((pairs["times"] < 1).sum())
    worse = pairs[pairs["times"] > 1 + 2 * pairs["times_se"]]
    places = ", ".join(f"{TITLES[one['scenario']]} {one['n']} x {one['p']}" for one in worse.to_dict("records"))
    biased = int((pairs["moved"].abs() > 2 * pairs["moved_se"]).sum())
    return (
        f"Smaller than with rows alike in {smaller} of {len(pairs)} cells; larger by more than two standard errors in "
        f"{f'{len(worse)} ({places})' if len(worse) else 'none'}. Estimates move by more than two standard errors in "
        f"{biased} of {len(pairs)} cells."
    )
