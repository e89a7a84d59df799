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

from subgrove._kinds import Floats, Rows
from subgrove._table import Table
from subgrove.trees.cells import Cells
from subgrove.trees.nodes import Node, Split, goes_left
from subgrove.trees.structure import Tree
from subgrove.trees.training import Training

_MOST_LEAVES = 8  # beyond it the cuts are many and each matters little
_LEAST_SPREAD = 1e-3  # of a subgroup, as a share of the spread of all rows


def polished(tree: Tree, training: Training, least: int) -> Tree:
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
    work = _Polishing(tree, training, least)
    work.polish(1, np.arange(training.n_rows))
    leaf = work.leaf_of(1, np.arange(training.n_rows))
    sizes = np.bincount(leaf, minlength=len(tree.leaves))
    return tree if sizes.min() < least else work.rebuilt(leaf)


def _can_move(split: Split) -> bool:
    return split.kind == "numeric" and split.threshold is not None and not split.strict


class _Polishing:
    """A tree whose splits are changed one after the other, from the root down."""

    def __init__(self, tree: Tree, training: Training, least: int) -> None:
        self.tree = tree
        self.table: Table = training.table
        self.training = training
        self.least = least
        self.nodes = {node.id: node for node in tree.nodes}
        self.number = {node.id: at for at, node in enumerate(tree.leaves)}
        x: Floats = training.values
        leaf = self.leaf_of(1, np.arange(training.n_rows))
        counts = np.maximum(np.bincount(leaf, minlength=len(tree.leaves)), 1)
        mean = np.bincount(leaf, weights=x, minlength=len(counts)) / counts
        spread = np.sqrt(np.bincount(leaf, weights=(x - mean[leaf]) ** 2, minlength=len(counts)) / counts)
        spread = np.maximum(spread, _LEAST_SPREAD * float(x.std()))
        self.fit: Floats = -0.5 * ((x[:, None] - mean) / spread) ** 2 - np.log(spread)

    def leaf_of(self, id_: int, rows: Rows) -> Rows:
        """The leaf below a node that each row would reach."""
        found = np.empty(len(rows), dtype=np.intp)
        waiting = [(id_, np.arange(len(rows)))]
        while waiting:
            at, places = waiting.pop()
            node = self.nodes[at]
            if node.split is None or node.children is None:
                found[places] = self.number[at]
                continue
            left = self._goes_left(node.split, rows[places])
            waiting += [(node.children[0], places[left]), (node.children[1], places[~left])]
        return found

    def polish(self, id_: int, rows: Rows) -> None:
        """Move the cut of a node, then those below it."""
        node = self.nodes[id_]
        if node.split is None or node.children is None:
            return
        if _can_move(node.split):
            self.nodes[id_] = node = replace(node, split=self._moved(node, node.split, rows))
        assert node.split is not None
        assert node.children is not None
        left = self._goes_left(node.split, rows)
        self.polish(node.children[0], rows[left])
        self.polish(node.children[1], rows[~left])

    def _moved(self, node: Node, split: Split, rows: Rows) -> Split:
        assert node.children is not None
        values = self.table.values(split.column)[rows]
        rows, values = rows[~np.isnan(values)], values[~np.isnan(values)]
        sides = [self.fit[rows, self.leaf_of(child, rows)] for child in node.children]
        gain = sides[0] - sides[1] if split.below == "left" else sides[1] - sides[0]
        order = np.argsort(values, kind="stable")
        ordered, total = values[order], np.cumsum(gain[order])
        allowed = np.flatnonzero(ordered[1:] > ordered[:-1])
        allowed = allowed[(allowed >= self.least - 1) & (allowed < len(rows) - self.least)]
        if not len(allowed):
            return split
        best = int(allowed[np.argmax(total[allowed])])
        low, high = float(ordered[best]), float(ordered[best + 1])
        middle = low / 2 + high / 2
        return replace(split, threshold=middle if low <= middle < high else low)

    def _goes_left(self, split: Split, rows: Rows) -> npt.NDArray[np.bool_]:
        column = self.table.columns[self.table.names.index(split.column)]
        return goes_left(split, column, self.table.values(split.column)[rows])

    def rebuilt(self, leaf: Rows) -> Tree:
        """The tree with the new cuts, its numbers of rows counted anew."""
        cells = Cells.of(self.tree.target, self.training.values)
        of_leaf = cells.counts(leaf, len(self.number), None)
        sizes = np.bincount(leaf, minlength=len(self.number)).astype(np.float64)
        counted: dict[int, tuple[float, Any]] = {}
        for node in reversed(self.tree.nodes):  # children come after their parents
            if node.children is None:
                counted[node.id] = float(sizes[self.number[node.id]]), of_leaf[self.number[node.id]]
            else:
                one, two = (counted[child] for child in node.children)
                counted[node.id] = one[0] + two[0], one[1] + two[1]
        nodes = []
        for node in self.tree.nodes:
            n, counts = counted[node.id]
            counts = np.array(counts)
            counts.flags.writeable = False
            nodes.append(replace(self.nodes[node.id], n=n, counts=counts))
        return replace(self.tree, nodes=tuple(nodes))
