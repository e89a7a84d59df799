"""A tree grown again on some of the rows, beside the tree of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Rows
from subgrove._data.table import Table
from subgrove.trees import Node, Split, Tree

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RegrownTree:
    """What a tree on some of the rows has in common with the tree on all rows.

    Attributes
    ----------
    splits : tuple of Split or None
        For each split of the tree on all rows: how the node splits that has most rows in common with it, at the same
        depth; None where none does.
    depths : tuple of pairs (column, depth)
        The least depth at which each column is split on.
    n_subgroups : int
        Number of leaves.
    rand : float
        Adjusted Rand index of the two sets of subgroups, over all rows: 1 for the same, about 0 for unrelated ones.
    together : float
        Share of the pairs of rows of one subgroup that are in one subgroup again.
    """

    splits: tuple[Split | None, ...]
    depths: tuple[tuple[str, int], ...]
    n_subgroups: int
    rand: float
    together: float


@dataclass(frozen=True, eq=False)
class TreeRows:
    """A tree and the rows in each of its nodes."""

    tree: Tree
    leaf: Rows

    @classmethod
    def of(cls, tree: Tree, table: Table) -> TreeRows:
        """Rows of a table in a tree."""
        return cls(tree, tree._leaf_numbers(table))

    @cached_property
    def inner(self) -> tuple[Node, ...]:
        """The nodes that split."""
        return tuple(node for node in self.tree.nodes if node.split is not None)

    def rows_of(self, node: Node) -> Mask:
        """Which rows come through a node."""
        below = [number for number, leaf in enumerate(self.tree.leaves) if self._is_below(leaf, node)]
        return np.isin(self.leaf, below)

    def _is_below(self, leaf: Node, node: Node) -> bool:
        at: Node = leaf
        while at.id != node.id and at.parent is not None:
            at = self.tree.nodes[at.parent - 1]
        return at.id == node.id


def compare(whole: TreeRows, other: TreeRows) -> RegrownTree:
    """What a tree has in common with the tree on all rows; both with the same rows in them."""
    splits = tuple(_counterpart(whole.rows_of(node), node.depth, other) for node in whole.inner)
    least: dict[str, int] = {}
    for node in other.inner:
        assert node.split is not None
        least[node.split.column] = min(node.depth, least.get(node.split.column, node.depth))
    rand, together = agreement(whole.leaf, other.leaf)
    return RegrownTree(splits, tuple(sorted(least.items())), len(other.tree.leaves), rand, together)


def _counterpart(rows: Mask, depth: int, other: TreeRows) -> Split | None:
    """How the node of this depth splits that has most rows in common."""
    best, most = None, 0.0
    for node in other.tree.nodes:
        if node.depth == depth:
            own = other.rows_of(node)
            share = float((rows & own).sum() / max((rows | own).sum(), 1))
            if share > most:
                best, most = node, share
    return None if best is None else best.split


def agreement(one: Rows, other: Rows) -> tuple[float, float]:
    """The adjusted Rand index of two sets of groups (Hubert and Arabie 1985), and the share of pairs that stay."""
    counts = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(counts, (one, other), 1.0)
    both, ours, theirs = (float(_pairs(part).sum()) for part in (counts, counts.sum(axis=1), counts.sum(axis=0)))
    expected = ours * theirs / max(float(_pairs(np.array(float(len(one))))), 1.0)
    most = (ours + theirs) / 2
    rand = 1.0 if most == expected else (both - expected) / (most - expected)
    return rand, both / ours if ours else 1.0


def _pairs(n: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return n * (n - 1) / 2
