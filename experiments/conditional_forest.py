"""The forest of setting II, and its conditional importance after Strobl et al. (2008) and Debeer and Strobl (2020).

That importance (CVIRF) asks each tree alone: its out-of-bag rows are permuted within cells that its own splits make,
and the rise of the squared error is averaged over trees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from subgrove._kinds import Floats
from subgrove._table import read_table
from subgrove.samplers.forest_nodes import donors_within
from subgrove.samplers.forest_reading import read_forest
from subgrove.samplers.forest_structure import associated_columns, grid_cells

_THRESHOLD = 0.95  # 1 - p of the test that makes a column one to condition on


def grown(x: Floats, y: Floats, trees: int, seed: int) -> Any:
    """A forest as R's randomForest grows it: a third of the columns tried, nodes of 5 rows or fewer not split."""
    from sklearn.ensemble import RandomForestRegressor

    tried = max(1, x.shape[1] // 3)
    forest = RandomForestRegressor(trees, max_features=tried, min_samples_split=6, random_state=seed % 2**32)
    return forest.fit(x, y)


def predictions(forest: Any) -> Callable[[Floats], Floats]:
    """The forest as a function of rows; quicker than its own `predict`, which checks the rows for each tree."""
    trees = [one.tree_ for one in forest.estimators_]

    def predict(x: Floats) -> Floats:
        rows = np.ascontiguousarray(x, dtype=np.float32)
        total = np.zeros(len(rows))
        for tree in trees:
            total += tree.predict(rows)[:, 0]
        return total / len(trees)

    return predict


def conditional_rise(forest: Any, x: Floats, y: Floats, seed: int) -> Any:
    """CVIRF of the first column, from the training rows of the forest; each tree permutes once."""
    rng = np.random.default_rng(seed)
    read = read_forest(forest, read_table(x).columns)
    total = 0.0
    for tree, splits, seen in zip(forest.estimators_, read.trees, forest.estimators_samples_, strict=True):
        rows = np.setdiff1d(np.arange(len(x)), seen)
        values = x[rows].astype(np.float32).astype(np.float64)  # as the trees see them
        cells = grid_cells(splits, values, associated_columns(splits, values, 0, _THRESHOLD))
        changed = values.copy()
        changed[:, 0] = values[donors_within(cells, rng, fixed_points=True), 0]
        before, after = (tree.tree_.predict(part.astype(np.float32))[:, 0] for part in (values, changed))
        total += float(((after - y[rows]) ** 2 - (before - y[rows]) ** 2).mean())
    return np.float64(total / len(forest.estimators_))
