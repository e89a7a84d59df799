"""Cells of ForestNodes against R's permimp (1.0-2): conditional importance of a 50-tree randomForest.

permimp shuffles the out-of-bag rows of each tree and averages the rise of the mean squared error over trees. Which rows
its test of independence sees, and how splits make cells, was found by comparing numbers: of twelve ways (four sets of
rows, three tests), one agrees with all of them. It is the default of `ForestNodes`.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Rows
from subgrove.samplers.donors import shuffle_within
from subgrove.samplers.forest_reading import TreeSplits, associated_columns, grid_cells, node_cells

from .cases import FOLDER

HERE = FOLDER.parent / "permimp"
pytestmark = pytest.mark.skipif(not HERE.exists(), reason="the outputs of R's permimp are not beside the repository")
N_SHUFFLES = 60


@cache
def data() -> tuple[Floats, Floats, Any]:
    """Columns, target, and how often each row is in the sample of each tree."""
    table = pd.read_csv(HERE / "data.csv.gz")
    return table.drop(columns="y").to_numpy(), table["y"].to_numpy(), pd.read_csv(HERE / "inbag.csv.gz").to_numpy()


@cache
def forest() -> list[tuple[TreeSplits, Floats]]:
    """The splits of each tree, and the predictions of its nodes."""
    trees = []
    for _, nodes in pd.read_csv(HERE / "forest.csv.gz").groupby("tree"):
        inner = (nodes["status_m1_terminal"] != -1).to_numpy()
        left, right, column = (
            np.where(inner, nodes[name].to_numpy() - 1, -1) for name in ("left", "right", "split_var_1based")
        )
        cut = nodes["split_point"].to_numpy(dtype=np.float64)
        trees.append(
            (TreeSplits(left, right, column, cut, np.zeros(len(cut), np.bool_)), nodes["prediction"].to_numpy())
        )
    return trees


def predicted(splits: TreeSplits, predictions: Floats, values: Floats) -> Floats:
    node = np.zeros(len(values), dtype=np.intp)
    rows = np.arange(len(values))
    while rows.size:
        at = node[rows]
        rows, at = rows[splits.left[at] >= 0], at[splits.left[at] >= 0]
        goes_left = values[rows, splits.column[at]] <= splits.cut[at]
        node[rows] = np.where(goes_left, splits.left[at], splits.right[at])
    return predictions[node]


def cells_of(splits: TreeSplits, values: Floats, column: int, threshold: float | None, partition: Any) -> Rows:
    if threshold is None:
        return np.zeros(len(values), dtype=np.intp)
    cells: Rows = partition(splits, values, associated_columns(splits, values, column, threshold))
    return cells


def importances(threshold: float | None, partition: Any = grid_cells) -> Floats:
    """Importance of each column, a line for each shuffle."""
    X, y, in_bag = data()
    rng = np.random.default_rng(0)
    rise = np.zeros((N_SHUFFLES, X.shape[1]))
    for number, (splits, predictions) in enumerate(forest()):
        rows = np.flatnonzero(in_bag[:, number] == 0)
        values, target = X[rows], y[rows]
        before = ((predicted(splits, predictions, values) - target) ** 2).mean()
        for column in range(X.shape[1]):
            cells = cells_of(splits, values, column, threshold, partition)
            changed = np.tile(values, (N_SHUFFLES, 1))
            shuffles = [shuffle_within(cells, rng, fixed_points=True) for _ in range(N_SHUFFLES)]
            changed[:, column] = values[np.concatenate(shuffles), column]
            after = predicted(splits, predictions, changed).reshape(N_SHUFFLES, -1)
            rise[:, column] += ((after - target) ** 2).mean(axis=1) - before
    return rise / len(forest())


def distances(ours: Floats, name: str) -> Floats:
    """Differences of the means in standard errors: that of R's 30 seeds and that of our shuffles together."""
    theirs = json.loads((HERE / "importance.json").read_text())
    mean, sd = (np.array(list(theirs[name][key].values())) for key in ("mean", "sd"))
    error = np.sqrt(sd**2 / theirs["repetitions"] + ours.var(axis=0, ddof=1) / len(ours))
    distance: Floats = np.abs(ours.mean(axis=0) - mean) / error
    return distance


@pytest.mark.parametrize(
    ("threshold", "name"),
    [(None, "unconditional"), (0.95, "conditional_threshold_0.95"), (0.5, "conditional_threshold_0.5")],
)
def test_importances_are_those_of_permimp(threshold: float | None, name: str) -> None:
    assert distances(importances(threshold), name).max() < 3


def test_nodes_in_place_of_the_grid_are_another_importance() -> None:
    assert distances(importances(0.5, node_cells), "conditional_threshold_0.5").max() > 10
