"""The forest of setting II, and its conditional importance after Strobl et al. (2008) and Debeer and Strobl (2020).

That importance (CVIRF) evaluates each tree alone: its out-of-bag rows are permuted within cells of its own splits,
and the rise of the squared error is averaged over trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.running import threads
from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Rows
from subgrove._regress import RandomForest, grow_forest
from subgrove.samplers.donors import shuffle_within
from subgrove.samplers.forest_reading import TreeSplits, associated_columns, grid_cells

_NODE_SIZE = 5  # a node of at most so many rows is not split
_THRESHOLD = 0.95  # 1 - p of the test that makes a column one to condition on


@dataclass(frozen=True, eq=False)
class ModelForest:
    """A forest, its trees as forests of one, and the out-of-bag rows of each tree."""

    whole: RandomForest
    trees: tuple[RandomForest, ...]
    unseen: tuple[Rows, ...]

    def predict(self, x: Floats) -> Floats:
        """The mean over trees."""
        predicted: Floats = self.whole.predict(x)[:, 0]
        return predicted


def grown(x: Floats, y: Floats, trees: int, seed: int) -> ModelForest:
    """A forest as R's randomForest grows it by default: a third of the columns tried at each split."""
    tried = max(1, x.shape[1] // 3)
    forest = grow_forest(
        x, y[:, None], n_trees=trees, min_node_size=_NODE_SIZE, tried=tried, seed=seed, n_jobs=threads()
    )
    if not isinstance(forest, RandomForest):
        raise RuntimeError("setting II needs the compiled forest; install subgrove where there is a C compiler.")
    return ModelForest(
        forest,
        tuple(forest.tree(at) for at in range(trees)),
        tuple(np.flatnonzero(forest.drawn(at) == 0) for at in range(trees)),
    )


def conditional_rise(forest: ModelForest, x: Floats, y: Floats, seed: int) -> float:
    """CVIRF of the first column, from the training rows of the forest; each tree permutes once, as permimp does."""
    rng = np.random.default_rng(seed)
    total = 0.0
    for tree, rows in zip(forest.trees, forest.unseen, strict=True):
        splits = TreeSplits(
            tree.child.astype(np.intp),
            np.where(tree.child >= 0, tree.child + 1, -1),
            tree.feature.astype(np.intp),
            tree.threshold,
            np.zeros(len(tree.child), dtype=np.bool_),
        )
        values = x[rows]
        cells = grid_cells(splits, values, associated_columns(splits, values, 0, _THRESHOLD))
        changed = values.copy()
        changed[:, 0] = values[shuffle_within(cells, rng, fixed_points=True), 0]
        before, after = (tree.predict(part)[:, 0] for part in (values, changed))
        total += float(((after - y[rows]) ** 2 - (before - y[rows]) ** 2).mean())
    return total / len(forest.trees)
