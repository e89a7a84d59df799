"""Cuts of a grown tree, moved to where the distributions on their two sides fit best.

A tree cuts where a test statistic is largest, which finds the right column, but the place only roughly: the scores it
compares are those of the undivided node. Once all subgroups are known, the place of a cut is the one that makes its
rows most likely, each side by the (normal) distributions of the subgroups below it. Rows near a cut are then on the
right side more often, and a row on the wrong side is given values that are far from possible.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove.trees.histogram import Histogram
from subgrove.trees.nodes import Node, Split, goes_left
from subgrove.trees.sorted_table import ascending
from subgrove.trees.structure import Tree
from subgrove.trees.training import Training

_MOST_LEAVES = 8  # beyond it the cuts are many and each matters little
_LEAST_SPREAD = 1e-3  # of a subgroup, as a share of the spread of all rows


def refine_split_points(tree: Tree, training: Training, least: int) -> Tree:
    """The tree with numeric cuts moved; columns and nominal splits stay.

    Parameters
    ----------
    tree : Tree
        Of one numeric x.
    training : Training
        The rows it grew on, without weights.
    least : int
        Rows that every subgroup must keep; if one would not, the tree stays as it is.
    """
    cuts = [node for node in tree.nodes if node.split is not None and _can_move(node.split)]
    if not cuts or len(tree.leaves) > _MOST_LEAVES:
        return tree
    work = _SplitPointRefiner(tree, training, least)
    work.polish(tree.nodes[0], np.arange(training.n_rows))
    leaf = work.leaf_of_rows()
    sizes = np.bincount(leaf, minlength=len(tree.leaves))
    return tree if sizes.min() < least else work.rebuilt(leaf, sizes)


def _can_move(split: Split) -> bool:
    return split.kind == "numeric" and split.threshold is not None and not split.strict


class _SplitPointRefiner:
    """A tree whose splits are changed one after the other, from the root down."""

    def __init__(self, tree: Tree, training: Training, least: int) -> None:
        self.tree, self.training, self.least = tree, training, least
        self.nodes = {node.id: node for node in tree.nodes}
        self.columns = {column.name: column for column in training.table.columns}
        self.splits = {node.id: node.split for node in tree.nodes if node.split is not None}
        self.left = {id_: self._goes_left(split) for id_, split in self.splits.items()}
        x: Floats = training.values
        leaf = self.leaf_of_rows()
        counts = np.maximum(np.bincount(leaf, minlength=len(tree.leaves)), 1)
        mean = np.bincount(leaf, weights=x, minlength=len(counts)) / counts
        spread = np.sqrt(np.bincount(leaf, weights=(x - mean[leaf]) ** 2, minlength=len(counts)) / counts)
        spread = np.maximum(spread, _LEAST_SPREAD * float(x.std()))
        likely = -0.5 * ((x - mean[:, None]) / spread[:, None]) ** 2 - np.log(spread)[:, None]
        # How likely each row is in the subgroup that it would reach below a node. The cuts below a node move after its
        # own, so these hold until they are asked for.
        self.likely = self._below({node.id: line for node, line in zip(tree.leaves, likely, strict=True)})

    def _below(self, of_leaves: dict[int, Any]) -> dict[int, npt.NDArray[Any]]:
        """For each node what a row gets from the leaf that it would reach below it."""
        found = dict(of_leaves)
        for node in reversed(self.tree.nodes):  # children come after their parents
            if node.children is not None:
                found[node.id] = np.where(self.left[node.id], *(found[child] for child in node.children))
        return found

    def leaf_of_rows(self) -> Rows:
        """The number of the leaf of each row."""
        return self._below({node.id: number for number, node in enumerate(self.tree.leaves)})[1]

    def polish(self, node: Node, rows: Rows) -> None:
        """Move the cut of a node, then those below it."""
        if node.children is None:
            return
        split = self.splits[node.id]
        if _can_move(split):
            self.splits[node.id] = split = self._moved(node.children, split, rows)
            self.left[node.id] = self._goes_left(split)
        left = self.left[node.id][rows]
        for child, own in zip(node.children, (rows[left], rows[~left]), strict=True):
            self.polish(self.nodes[child], own)

    def _moved(self, children: tuple[int, int], split: Split, rows: Rows) -> Split:
        values = self.training.table.values(split.column)[rows]
        known = ~np.isnan(values)
        if not known.all():
            rows, values = rows[known], values[known]
        below, above = children if split.below == "left" else children[::-1]
        gain = self.likely[below][rows] - self.likely[above][rows]
        order = ascending(values)
        ordered, total = values[order], np.cumsum(gain[order])
        allowed = np.flatnonzero(ordered[1:] > ordered[:-1])
        allowed = allowed[(allowed >= self.least - 1) & (allowed < len(rows) - self.least)]
        if not len(allowed):
            return split
        best = int(allowed[np.argmax(total[allowed])])
        low, high = float(ordered[best]), float(ordered[best + 1])
        middle = low / 2 + high / 2
        return replace(split, threshold=middle if low <= middle < high else low)

    def _goes_left(self, split: Split) -> npt.NDArray[np.bool_]:
        """Whether each row would go left."""
        return goes_left(split, self.columns[split.column], self.training.table.values(split.column))

    def rebuilt(self, leaf: Rows, sizes: Rows) -> Tree:
        """The tree with the new cuts, its numbers of rows counted anew."""
        counts = Histogram.of(self.tree.target, self.training.values).counts(leaf, len(sizes), None)
        counts.flags.writeable = False
        counted: dict[int, tuple[float, Any]] = {
            node.id: (float(size), line) for node, size, line in zip(self.tree.leaves, sizes, counts, strict=True)
        }
        for node in reversed(self.tree.nodes):  # children come after their parents
            if node.children is not None:
                one, two = (counted[child] for child in node.children)
                counted[node.id] = one[0] + two[0], one[1] + two[1]
                counted[node.id][1].flags.writeable = False
        nodes = [
            replace(node, split=self.splits.get(node.id), n=counted[node.id][0], counts=counted[node.id][1])
            for node in self.tree.nodes
        ]
        return replace(self.tree, nodes=tuple(nodes))
