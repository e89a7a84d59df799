"""The paper's application: rented bikes, a forest, and what it uses.

Cells: "splits" are random splits of the days, a forest for each; "dependence" is the dependence table on such splits;
"authors" is the split that the authors' own functions were run on, with forests of other seeds; "closed_form" is a
formula on that split, so that only the method can differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.parts import bike_tables
from experiments.parts.bike_pictures import PICTURES
from experiments.parts.bike_report import section
from experiments.parts.bike_unit import application, authors_split, dependence_rows, importance_rows, random_split
from experiments.parts.ran import ran
from experiments.units import Size, Unit

SUMMARY = "the bike application: dependence, importance by depth and subgroup, effects (5 minutes)"

_REPS = 20
_FULL = {"trees": 200, "repeats": 50, "max_depth": 5}
_SMALL = {"trees": 10, "repeats": 3, "max_depth": 2}


def units(size: Size) -> list[Unit]:
    """Repetitions are splits and forests; the closed form needs one."""
    reps = 1 if size.quick else size.reps or _REPS
    params = {**(_SMALL if size.quick else _FULL), "dependence_trees": 20 if size.quick else 500}
    found = [Unit("closed_form", "closed_form", params)]
    for place in range(1, reps + 1):
        found += [Unit(f"{cell}/r{place:04d}", cell, params) for cell in ("splits", "authors", "dependence")]
    return [unit for unit in found if size.takes(unit.cell)]


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Rows of a split, or of the closed form."""
    how = {name: int(unit.params[name]) for name in _FULL}
    if unit.cell == "closed_form":
        return _closed_form_rows(seed, how["max_depth"], 4 * how["repeats"])
    train, test = authors_split() if unit.cell == "authors" else random_split(seed)
    if unit.cell == "dependence":
        return dependence_rows(train.X, seed, int(unit.params["dependence_trees"]))
    return application(train, test, seed, **how)


def _closed_form_rows(seed: int, max_depth: int, repeats: int) -> list[dict[str, Any]]:
    train, test = authors_split()
    groups = sg.find_subgroups(train.X, max_depth=max_depth)
    depths = range(max_depth + 1)
    return [
        row
        for depth in depths
        for row in importance_rows(_formula, test, groups.at_depth(depth), depth, repeats, seed)
        if row["part"] == "importance"
    ]


def _formula(X: pd.DataFrame) -> Any:
    """The model that the authors' functions were given in place of a forest."""
    temp, hum, wind = X["temp"], X["hum"], X["wind"]
    season = np.where(X["season"] == "WINTER", -400, np.where(X["season"] == "SUMMER", 250, 0))
    year = np.where(X["yr"] == "2012", 1800, 0)
    weather = 90 * temp - 1.2 * temp**2 + 0.4 * temp * (100 - hum) - 12 * wind + 0.02 * hum * wind
    return 1500 + weather + season + year * (1 + 0.01 * temp)


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Tables by name; those whose cells were not run are left out."""
    makers = {
        "claims": ("splits", bike_tables.claims),
        "dependence": ("dependence", bike_tables.dependence),
        "importance": ("", bike_tables.importance),
        "subgroups": ("", bike_tables.subgroups),
        "curves": ("authors", bike_tables.curves),
        "closed_form": ("closed_form", bike_tables.closed_form),
        "errors": ("", bike_tables.errors),
    }
    cells = set(results["cell"])
    made = {
        name: make(results)
        for name, (cell, make) in makers.items()
        if cell in cells or (not cell and cells & {"splits", "authors"})
    }
    return made | {"run": ran(results)}


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """Pictures of the application; those whose cells were not run are left out."""
    cells = set(results["cell"])
    return [draw(results, folder / f"bike_{name}.png") for name, (need, draw) in PICTURES.items() if need <= cells]


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of docs/reproduction.md."""
    return section(tables)
