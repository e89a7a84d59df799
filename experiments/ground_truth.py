"""Do the samplers find the true conditional importance? The paper's simulation, settings I and II.

Setting I asks about the true model, setting II about a random forest that is grown anew in each repetition.
A cell is a setting, a scenario, a number of rows (two thirds train, one third is asked) and a number of features.
"""

from __future__ import annotations

from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.beside_published import agreement, summed_up, truths
from experiments.conditional_forest import conditional_rise, grown
from experiments.ground_truth_figures import draw_setting
from experiments.ground_truth_methods import METHODS, redrawn, rises
from experiments.ground_truth_report import section
from experiments.units import Size, Unit
from subgrove._kinds import Floats

SUMMARY = "true and estimated conditional importance, settings I (true model) and II (forest)"

ROWS = (300, 3000)
FEATURES = (10, 90)
REPEATS = 20  # redraws of an estimate; the first of them alone is the paper's estimate
_REPETITIONS = {("I", 300): 300, ("I", 3000): 100, ("II", 300): 100, ("II", 3000): 30}
_FRESH_ROWS = 1000
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
    asked = unit.params
    scenario = sg.simulate.scenario(asked["scenario"], p=asked["p"])
    seeds = [int(one) for one in np.random.default_rng(seed).integers(2**62, size=6)]
    data = scenario.sample(asked["n"], seed=seeds[0])
    cut = 2 * asked["n"] // 3
    train, test = data.X.iloc[:cut], data.X.iloc[cut:]
    x: Floats = np.asarray(data.X, dtype=np.float64)
    y: Floats = np.asarray(data.y, dtype=np.float64)
    predict, forest = scenario.model, None
    if asked["setting"] == "II":
        forest = grown(x[:cut], y[:cut], asked["trees"], seeds[1])
        predict = forest.predict
    truth = scenario.true_importance(lambda X: predict(X.to_numpy()), n=_FRESH_ROWS, seed=seeds[2])
    samplers = {name: method(seeds[3], asked["trees"]) for name, method in METHODS.items()}
    samplers["true"] = scenario.sampler
    drawn = {name: redrawn(sampler, train, test, REPEATS, seeds[4]) for name, sampler in samplers.items()}
    asked_columns = x[cut:] if forest is not None else x[cut:, :10]  # the true model has no use for more
    estimates = _estimates(predict, asked_columns, y[cut:], {name: one.columns for name, one in drawn.items()})
    subgroups = {name: one.subgroups for name, one in drawn.items()}
    if forest is not None:
        estimates["cvirf"] = np.array([conditional_rise(forest, x[:cut], y[:cut], seeds[5])])
    return [
        {
            **{name: asked[name] for name in ("setting", "scenario", "n", "p", "rep")},
            "method": method,
            "m": m,
            "estimate": float(values[:m].mean()),
            "truth": truth,
            "subgroups": subgroups.get(method),
        }
        for method, values in estimates.items()
        for m in (1, REPEATS)
        if m <= len(values)
    ]


def _estimates(predict: Any, test: Floats, y: Floats, columns: dict[str, Floats]) -> dict[str, Floats]:
    """Mean rise of the squared error, for each method and redraw; the model is asked once for all of them."""
    rise = rises(predict, test, y, np.concatenate(list(columns.values())))
    ends = np.cumsum([len(part) for part in columns.values()])[:-1]
    return dict(zip(columns, np.split(rise, ends), strict=True))


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`cells`: every method in every cell; `truths`; `agreement`: how many cells agree with the published numbers."""
    results = results.assign(order=_order(results)).sort_values(["order", "rep"], kind="stable")
    exact = {name: sg.simulate.scenario(name).importance for name in sg.simulate.PAPER}
    cells = summed_up(results)
    return {"cells": cells, "truths": truths(results, exact), "agreement": agreement(cells)}


def _order(results: pd.DataFrame) -> list[int]:
    place = {name: at for at, name in enumerate(sg.simulate.PAPER)}
    numbers = zip(results["setting"], results["scenario"], results["n"], results["p"], strict=True)
    return [((setting == "II") * 10 + place[scenario]) * 10**7 + n * 1000 + p for setting, scenario, n, p in numbers]


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """One figure for each setting."""
    cells = tables(results)["cells"]
    return [draw_setting(cells, setting, folder) for setting in sorted(set(cells["setting"]))]


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the reproduction page."""
    return section(tables)
