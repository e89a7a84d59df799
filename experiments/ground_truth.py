"""Do the samplers find the true conditional importance? The paper's simulation, settings I and II.

Setting I explains the true model, setting II a random forest that is grown anew in each repetition.
A cell is a setting, a scenario, a number of rows (two thirds training, one third test) and a number of features.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.beside_published import agreement, summed_up, truths
from experiments.conditional_forest import conditional_rise
from experiments.ground_truth_figures import draw_setting
from experiments.ground_truth_methods import METHODS, redrawn
from experiments.ground_truth_report import section
from experiments.ground_truth_rows import REPEATS, Repetition, drawn_repetition
from experiments.units import Size, Unit
from subgrove._core.kinds import Floats

SUMMARY = "true and estimated conditional importance, settings I (true model) and II (forest)"

ROWS = (300, 3000)
FEATURES = (10, 90)
_REPETITIONS = {("I", 300): 300, ("I", 3000): 100, ("II", 300): 100, ("II", 3000): 30}
_TREES = 500


def units(size: Size) -> list[Unit]:
    """Repetitions of all cells, the first of each before the second of any."""
    if size.quick:
        cells = [("I", name, 300, 10) for name in sg.simulate.PAPER] + [("II", "linear", 300, 10)]
    else:
        cells = list(product(("I", "II"), sg.simulate.PAPER, ROWS, FEATURES))
    listed = [
        (repetition, _unit(*cell, repetition, 20 if size.quick else _TREES))
        for cell in cells
        for repetition in range(_repetitions(size, cell[0], cell[2]))
    ]
    return [unit for _, unit in sorted(listed, key=lambda one: one[0])]


def _repetitions(size: Size, setting: str, n: int) -> int:
    if size.reps is not None:
        return size.reps if n == min(ROWS) else ceil(size.reps / 3)
    return 2 if size.quick else _REPETITIONS[setting, n]


def _unit(setting: str, scenario: str, n: int, p: int, repetition: int, trees: int) -> Unit:
    cell = f"{setting}-{scenario}-{n}-{p}"
    params = {"setting": setting, "scenario": scenario, "n": n, "p": p, "rep": repetition, "trees": trees}
    return Unit(f"{cell}/r{repetition:04d}", cell, params)


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Estimates of every method, and the true importance on fresh rows, in one repetition of a cell."""
    options = unit.params
    one = drawn_repetition(options, seed)
    samplers = {name: method(one.seeds[0], options["trees"]) for name, method in METHODS.items()}
    samplers["true"] = one.scenario.sampler
    drawn = {name: redrawn(sampler, one.train, one.test, REPEATS, one.seeds[1]) for name, sampler in samplers.items()}
    estimates = all_rises(one, {name: columns.columns for name, columns in drawn.items()})
    subgroups = {name: columns.subgroups for name, columns in drawn.items()}
    if one.forest is not None:
        x = one.train.to_numpy(np.float64)
        estimates["cvirf"] = np.array([conditional_rise(one.forest, x, one.y_train, one.seeds[2])])
    return [row | {"subgroups": subgroups.get(row["method"])} for row in rows_of(options, one.truth, estimates)]


def rows_of(options: Mapping[str, Any], truth: float, estimates: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """What is stored of a repetition: for each method the estimate of one redraw, and that of all."""
    return [
        {
            **{name: options[name] for name in ("setting", "scenario", "n", "p", "rep")},
            "method": method,
            "m": m,
            "estimate": float(values[:m].mean()),
            "truth": truth,
        }
        for method, values in estimates.items()
        for m in (1, REPEATS)
        if m <= len(values)
    ]


def all_rises(one: Repetition, columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """Mean rise of the squared error, for each method and redraw; the model is called once for all of them."""
    rise = one.rises(np.concatenate(list(columns.values())))
    ends = np.cumsum([len(part) for part in columns.values()])[:-1]
    return dict(zip(columns, np.split(rise, ends), strict=True))


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`cells`: every method in every cell; `truths`; `agreement`: how many cells agree with the published numbers."""
    results = results.assign(order=in_order(results)).sort_values(["order", "rep"], kind="stable")
    exact = {name: sg.simulate.scenario(name).importance for name in sg.simulate.PAPER}
    cells = summed_up(results)
    return {"cells": cells, "truths": truths(results, exact), "agreement": agreement(cells)}


def in_order(results: pd.DataFrame) -> list[int]:
    """For each line a number that puts cells in the order of the paper's tables."""
    place = {name: at for at, name in enumerate(sg.simulate.scenarios())}
    numbers = zip(results["setting"], results["scenario"], results["n"], results["p"], strict=True)
    return [((setting == "II") * 10 + place[scenario]) * 10**7 + n * 1000 + p for setting, scenario, n, p in numbers]


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """One figure for each setting."""
    cells = tables(results)["cells"]
    return [draw_setting(cells, setting, folder) for setting in sorted(set(cells["setting"]))]


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the reproduction page."""
    return section(tables)
