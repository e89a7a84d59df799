"""The forest of setting II, and its conditional importance after Strobl et al. (2008) and Debeer and Strobl (2020).

That importance (CVIRF) evaluates each tree alone: its out-of-bag rows are permuted within cells of its own splits,
and the rise of the squared error is averaged over trees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from experiments.running import threads
from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Rows
from subgrove._regress.forest import RandomForest, grow_forest
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
        tuple(one_tree(forest, at) for at in range(trees)),
        tuple(np.flatnonzero(times_drawn(forest, at) == 0) for at in range(trees)),
    )


def one_tree(forest: RandomForest, number: int) -> RandomForest:
    """One tree as a forest, without out-of-bag predictions."""
    first = forest.roots[number]
    last = forest.roots[number + 1] if number + 1 < len(forest.roots) else len(forest.feature)
    here = slice(first, last)
    child = forest.child[here]
    return replace(
        forest,
        roots=np.zeros(1, dtype=np.int32),
        feature=forest.feature[here],
        child=np.where(child >= 0, child - first, -1).astype(np.int32),
        threshold=forest.threshold[here],
        missing_left=forest.missing_left[here],
        values=forest.values[here],
        out_of_bag=np.full_like(forest.out_of_bag, np.nan),
        seeds=forest.seeds[number : number + 1],
    )


def times_drawn(forest: RandomForest, number: int) -> npt.NDArray[np.int64]:
    """How often each training row is in the bootstrap sample of a tree, from the tree's random numbers."""
    n = len(forest.out_of_bag)
    with np.errstate(over="ignore"):  # whole numbers modulo 2^64, as in `next_random` of `forest_split.h`
        z = forest.seeds[number] + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    rows = ((z ^ (z >> np.uint64(31))) >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)
    return np.bincount(rows.astype(np.intp), minlength=n)


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
