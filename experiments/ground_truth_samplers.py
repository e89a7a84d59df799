"""Samplers of the package beside the true one, on the rows of the ground-truth simulation.

`python -m experiments ground_truth --sampler auto`. Cells are the paper's, and those of two scenarios past it.
Repetitions have the rows that the paper's methods had in `ground_truth`, unless `--seed` selects others. Setting II
explains a forest of scikit-learn with leaves of five rows; `--forest own` is setting II alone with the forest that the
paper's methods had, in which nodes of five rows are not split.
"""

from __future__ import annotations

from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import pandas as pd

import subgrove as sg
from experiments.beside_published import CELL
from experiments.beside_true import beside_true, choices, with_choices
from experiments.ground_truth import FEATURES, ROWS, all_rises, in_order, rows_of
from experiments.ground_truth_methods import redrawn
from experiments.ground_truth_rows import REPEATS, drawn_repetition
from experiments.samplers_figures import draw_ratios
from experiments.samplers_report import section
from experiments.units import Size, Unit, seed_of
from subgrove.samplers.fit import samplers_by_name

_REPETITIONS = {300: 200, 3000: 100}
_TREES = 500
_FURTHER = tuple(name for name in sg.simulate.scenarios() if name not in sg.simulate.PAPER)


def units(size: Size) -> list[Unit]:
    """Repetitions of all cells, the first of each before the second of any."""
    unknown = [name for name in size.samplers if name not in samplers_by_name()]
    if unknown or not size.samplers:
        raise ValueError(
            f"--sampler takes names out of {', '.join(sorted(samplers_by_name()))}; got {', '.join(unknown) or 'none'}."
        )
    if size.quick:
        cells = [("I", name, 300, 10) for name in sg.simulate.scenarios()] + [("II", "linear", 300, 10)]
    else:
        cells = [("I", *cell) for cell in product(sg.simulate.scenarios(), ROWS, FEATURES)]
        cells += [("II", *cell) for cell in product(sg.simulate.PAPER, ROWS, FEATURES)]
    if size.forest == "own":  # the true model of setting I has none
        cells = [cell for cell in cells if cell[0] == "II"]
    listed = [(at, one_unit(size, *cell, at)) for cell in cells for at in range(_repetitions(size, cell[2]))]
    return [unit for _, unit in sorted(listed, key=lambda one: one[0])]


def _repetitions(size: Size, n: int) -> int:
    if size.reps is not None:
        return size.reps if n == min(ROWS) else ceil(size.reps / 3)
    return 2 if size.quick else _REPETITIONS[n]


def one_unit(size: Size, setting: str, scenario: str, n: int, p: int, at: int) -> Unit:
    """A repetition of a cell; of seed 0 it has the key, and so the rows, that it has in `ground_truth`."""
    cell = f"{setting}-{scenario}-{n}-{p}"
    params = {"setting": setting, "scenario": scenario, "n": n, "p": p, "rep": at}
    params |= {"trees": 20 if size.quick else _TREES, "samplers": size.samplers, "forest": size.forest}
    return Unit(f"{cell}/r{at:04d}" if size.seed == 0 else f"{cell}/s{size.seed}-r{at:04d}", cell, params)


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Estimates of the samplers and of the true one; rows are those of the unit of that key in `ground_truth`."""
    options = unit.params
    one = drawn_repetition(options, seed_of("ground_truth", unit.key))
    samplers = {name: samplers_by_name()[name]() for name in options["samplers"]} | {"true": one.scenario.sampler}
    drawn = {name: redrawn(sampler, one.train, one.test, REPEATS, one.seeds[1]) for name, sampler in samplers.items()}
    estimates = all_rises(one, {name: columns.columns for name, columns in drawn.items()})
    forest = options["forest"] if options["setting"] == "II" else None
    return [
        row | {"subgroups": drawn[row["method"]].subgroups, "chosen": drawn[row["method"]].chosen, "forest": forest}
        for row in rows_of(options, one.truth, estimates)
    ]


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`cells`: every sampler in every cell beside the true one and what was published; `choices`: what auto chose."""
    results = results.assign(order=in_order(results)).sort_values(["order", "rep"], kind="stable")
    chosen = choices(results)
    return {"cells": _with_forests(with_choices(beside_true(results), chosen), results), "choices": chosen}


def _with_forests(cells: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Cells with the column `forest`: the forest they explain. Our run of the paper's methods used our own only."""
    if "forest" not in results:
        return cells.assign(forest=None)
    cells = cells.merge(results[[*CELL, "forest"]].drop_duplicates(CELL), on=CELL, how="left", sort=False)
    repeated = [name for name in map(str, cells.columns) if name.startswith("best_repeated")]
    cells.loc[cells["forest"] == "sklearn", repeated] = None
    return cells


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """One figure for each sampler: how many times the true sampler's mean squared error it has in each cell."""
    cells = tables(results)["cells"]
    return [draw_ratios(cells, name, folder) for name in dict.fromkeys(cells["method"]) if name != "true"]


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the page on what goes past the paper."""
    return section(tables)
