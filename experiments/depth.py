"""How deep must a tree be? The paper's importance by depth, for both trees, in setting I (the true model).

Trees are grown without a test and without a price for leaves, so that depth and at least 30 rows in a leaf alone stop
them. The paper shows depths 1 to 10; published numbers are there for 1 to 5.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.depth_reading import by_depth, draw, section
from experiments.units import Size, Unit
from subgrove import trees
from subgrove.samplers.donors import shuffle_within

SUMMARY = "importance against the depth of the tree, depths 1 to 10, both trees"

ROWS = (300, 3000)
FEATURES = (10, 90)
DEPTHS = tuple(range(1, 11))
_REPETITIONS = {300: 1000, 3000: 300}
_MIN_LEAF = 30


def units(size: Size) -> list[Unit]:
    """Repetitions of all cells, the first of each before the second of any."""
    cells = list(product(sg.simulate.PAPER, ROWS, FEATURES))
    if size.quick:
        cells = [cell for cell in cells if cell[1:] == (300, 10)]
    listed = [
        (repetition, _unit(*cell, repetition)) for cell in cells for repetition in range(_repetitions(size, cell[1]))
    ]
    return [unit for _, unit in sorted(listed, key=lambda one: one[0])]


def _repetitions(size: Size, n: int) -> int:
    if size.reps is not None:
        return size.reps if n == min(ROWS) else -(-size.reps // 3)
    return 3 if size.quick else _REPETITIONS[n]


def _unit(scenario: str, n: int, p: int, repetition: int) -> Unit:
    cell = f"{scenario}-{n}-{p}"
    return Unit(f"{cell}/r{repetition:04d}", cell, {"scenario": scenario, "n": n, "p": p, "rep": repetition})


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """The estimate at each depth of both trees, in one repetition of a cell."""
    options = unit.params
    scenario = sg.simulate.scenario(options["scenario"], p=options["p"])
    data = scenario.sample(options["n"], random_state=seed)
    cut = 2 * options["n"] // 3
    train, test = data.X.iloc[:cut], data.X.iloc[cut:]
    x, y = np.asarray(test.iloc[:, :10]), np.asarray(data.y[cut:])
    before = (scenario.model(x) - y) ** 2
    growers: dict[str, Any] = {
        "cart": trees.CartTree(max_depth=max(DEPTHS), min_samples_leaf=_MIN_LEAF, cp=0.0),
        "trtr": trees.TransformationTree(max_depth=max(DEPTHS), min_samples_leaf=_MIN_LEAF, alpha=1.0),
    }
    lines = []
    for kind, grower in growers.items():
        # Cut back to each depth, the deepest tree is the tree grown to that depth.
        deepest = sg.Partition(("x1",), grower.fit(train.drop(columns="x1"), train["x1"]))
        for depth in DEPTHS:
            partition = deepest.at_depth(depth)
            rows = shuffle_within(partition.assign(test), np.random.default_rng((seed, depth, kind == "cart")))
            changed = np.column_stack([x[rows, 0], x[:, 1:]])
            estimate = float(((scenario.model(changed) - y) ** 2 - before).mean())
            lines.append(
                {**options, "tree": kind, "depth": depth, "estimate": estimate, "leaves": len(partition.rules)}
            )
    return lines


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`by_depth`: median, quantiles and mean of the estimates, published numbers beside ours."""
    return {"by_depth": by_depth(results)}


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """One figure of all cells."""
    return [draw(by_depth(results), folder / "depth_importance.png")]


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the reproduction page."""
    return section(tables["by_depth"])
