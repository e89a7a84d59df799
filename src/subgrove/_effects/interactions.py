"""Split subgroups further where ICE curves still differ in shape, because the feature interacts with other columns.

Requirements this design meets:

- no further predictions: ICE curves that are already known are assigned to groups;
- one tree contains both kinds of splits, so rules, `assign` and plots are those of any subgroups;
- splits are significant: at least `MIN_ROWS` rows on each side, a share of at least `MIN_SHARE` of the heterogeneity,
  and a permutation p-value below `ALPHA` (divided by the number of subgroups, and by that of nodes at each depth).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from subgrove._core.execution import one_blas_thread, stream
from subgrove._core.kinds import MAX_LEVELS, Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import Table, read_like, read_table
from subgrove._effects.curves import Curve, IceCurves, mean_of_ice
from subgrove._effects.heterogeneity import (
    DEPENDENCE,
    INTERACTION,
    NONE,
    CurveShapes,
    ExplainedSplit,
    Heterogeneity,
    heterogeneity_between,
    output_units,
    union_of_points,
)
from subgrove._effects.interaction_search import (
    MAX_PERMUTATIONS,
    BestSplit,
    SplitColumn,
    best_split,
    permutation_p_value,
)
from subgrove._subgroups import Partition
from subgrove.trees import Node, Tree
from subgrove.trees.nodes import renumber
from subgrove.trees.splits import rule_text
from subgrove.trees.training import select_columns

DEPTH = 2  # largest number of interaction splits above a group, for interactions=True
MIN_ROWS = 20  # rows on each side of an interaction split
MIN_SHARE = 0.05  # share of the heterogeneity of all curves that a split must explain
ALPHA = 0.05  # level of the permutation tests, over all subgroups


@dataclass(frozen=True, eq=False)
class InteractionGroups:
    """Curves of the groups after interaction splits.

    Attributes
    ----------
    partition : Partition
        The groups; the numbers of rows in its tree are those of the effect.
    curves : list of Curve
        One for each group with a curve.
    reasons : tuple of str
        For each group the reason of its last split.
    rows : list of int arrays
        For each group its rows.
    heterogeneity : Heterogeneity
        Shares that the splits explain.
    """

    partition: Partition
    curves: list[Curve]
    reasons: tuple[str, ...]
    rows: list[Rows]
    heterogeneity: Heterogeneity


@dataclass(frozen=True, eq=False)
class _GrownNode:
    """A node below a subgroup: its rows by their position in the subgroup, and its split."""

    inside: Rows
    split: BestSplit | None = None
    p_value: float | None = None
    children: tuple[_GrownNode, _GrownNode] | None = None


def one_subgroup(X: Any, feature: ColumnInfo) -> Partition:
    """Return all rows as one subgroup, which can be split on all suitable columns except the feature."""
    whole = read_table(X, lenient=True)
    usable = [
        column.name
        for column in whole.columns
        if column.name != feature.name
        and len(column.levels) <= MAX_LEVELS
        and not bool(whole.series(column.name).missing.all())
    ]
    table = select_columns(whole, usable)
    counts = np.zeros(len(feature.levels))
    root = Node(1, None, 0, float(table.n_rows), counts, stop="no interaction")
    return Partition((feature.name,), Tree(INTERACTION, feature, table.columns, (root,), (), {"max_depth": 0}))


def split_further(
    partition: Partition, X: Any, rows: Sequence[Rows], curves: Sequence[Curve], depth: int, weights: Floats
) -> InteractionGroups:
    """Split subgroups where curves differ in shape.

    Parameters
    ----------
    partition : Partition
        Subgroups.
    X : table
        All rows, in the user's container.
    rows : sequence of int arrays
        The rows of each subgroup.
    curves : sequence of Curve
        ICE curves of the subgroups that have some.
    depth : int
        Largest number of interaction splits above a group.
    weights : float array
        Sample weights of the rows of X.
    """
    units, by_leaf = output_units(curves), {curve.subgroup: curve for curve in curves}
    shapes = {leaf: CurveShapes.of(curve, units) for leaf, curve in by_leaf.items()}
    within = {leaf: shape.heterogeneity() for leaf, shape in shapes.items()}
    total, dependence = _dependence_splits(partition.tree, by_leaf, within, units, rows, weights)
    table = read_like(X, partition.tree.columns)
    search = _Search(table, total, depth, ALPHA / max(len(curves), 1), partition.feature)
    with one_blas_thread():
        grown = {
            leaf: search.grow(shapes[leaf], curve.ice.rows, np.arange(len(curve.ice.rows)), 0, f"{leaf}")
            for leaf, curve in by_leaf.items()
            if curve.ice is not None
        }
    extended = _ExtendedTree.of(partition.tree, rows, grown, by_leaf)
    tree, groups = extended.renumbered()
    paths = tree._paths()
    interaction = [
        ExplainedSplit(
            node=rule_text(paths[node.id]),
            column=split.split.column,
            reason=INTERACTION,
            n=float(weights[own].sum()),
            share=split.gain / total,
            p_value=p_value,
        )
        for node, own, split, p_value in extended.splits_by_depth(tree)
    ]
    n = float(sum(shape.weights.sum() for shape in shapes.values()))
    group_rows = [group.rows for group in groups]
    return InteractionGroups(
        partition=Partition(partition.members, _with_counts(tree, group_rows, weights)),
        curves=[replace(each.curve, subgroup=at) for at, each in enumerate(groups) if each.curve is not None],
        reasons=tuple(group.reason for group in groups),
        rows=group_rows,
        heterogeneity=Heterogeneity(partition.feature, (*dependence, *interaction), not total > 0, n),
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """Search for interaction splits; `total` is the heterogeneity of all curves."""

    table: Table
    total: float
    depth: int
    alpha: float
    feature: str

    def grow(self, shapes: CurveShapes, rows: Rows, inside: Rows, depth: int, place: str) -> _GrownNode:
        """Split some rows of a subgroup recursively."""
        own = shapes.some(inside)
        threshold = MIN_SHARE * self.total
        if depth >= self.depth or own.weights.sum() < 2 * MIN_ROWS or not own.heterogeneity() >= threshold > 0:
            return _GrownNode(inside)
        columns: list[SplitColumn] = [
            (column, self.table.values(column.name)[rows[inside]]) for column in self.table.columns
        ]
        residuals = own.residuals()
        split = best_split(residuals, own.weights, columns, MIN_ROWS)
        if split is None or split.gain < threshold:
            return _GrownNode(inside)
        alpha = max(self.alpha / 2**depth, 2 / (MAX_PERMUTATIONS + 1))
        rng = stream(0, f"interaction/{self.feature}/{place}")
        p_value = permutation_p_value(split, residuals, own.weights, columns, MIN_ROWS, alpha, rng)
        if p_value > alpha:
            return _GrownNode(inside)
        left, right = (
            self.grow(shapes, rows, inside[side], depth + 1, f"{place}{name}")
            for side, name in ((split.left, "l"), (~split.left, "r"))
        )
        return _GrownNode(inside, split, p_value, (left, right))


@dataclass(frozen=True, eq=False)
class _LeafGroup:
    """A leaf of the extended tree: its rows, its curve, and the reason of its last split."""

    rows: Rows
    curve: Curve | None
    reason: str


@dataclass(frozen=True, eq=False)
class _ExtendedTree:
    """A tree with interaction splits below its leaves; nodes, groups and splits by temporary node number."""

    tree: Tree
    nodes: dict[int, Node]
    groups: dict[int, _LeafGroup] = field(default_factory=dict)
    splits: dict[int, tuple[Rows, BestSplit, float | None]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, tree: Tree, rows: Sequence[Rows], grown: Mapping[int, _GrownNode], curves: Mapping[int, Curve]
    ) -> _ExtendedTree:
        """Add the splits below each leaf."""
        extended = cls(tree, {node.id: node for node in tree.nodes})
        reason = NONE if len(tree.leaves) == 1 else DEPENDENCE
        for at, leaf in enumerate(tree.leaves):
            if at in grown:
                extended._add(leaf, grown[at], curves[at], reason)
            else:
                extended.groups[leaf.id] = _LeafGroup(rows[at], None, reason)
        return extended

    def _add(self, node: Node, here: _GrownNode, curve: Curve, reason: str) -> None:
        assert curve.ice is not None
        if here.children is None or here.split is None:
            self.nodes[node.id] = node
            own = _curve_of_rows(curve, here.inside)
            self.groups[node.id] = _LeafGroup(curve.ice.rows[here.inside], own, reason)
            return
        ids = len(self.nodes) + 1, len(self.nodes) + 2
        self.nodes[node.id] = replace(node, split=here.split.split, children=ids, stop=None, p_value=here.p_value)
        self.splits[node.id] = (curve.ice.rows[here.inside], here.split, here.p_value)
        # The feature hardly depends on other columns in a leaf, so children have the distribution of their parent.
        blank = replace(node, parent=node.id, depth=node.depth + 1, tests=None, p_value=None, stop="no interaction")
        for id_ in ids:
            self.nodes[id_] = replace(blank, id=id_)
        for id_, child in zip(ids, here.children, strict=True):
            self._add(self.nodes[id_], child, curve, INTERACTION)

    def renumbered(self) -> tuple[Tree, list[_LeafGroup]]:
        """Return the tree with nodes numbered in pre-order, and the groups in the order of its leaves."""
        nodes = renumber(self.nodes)
        max_depth = max(int(self.tree.parameters["max_depth"]), *(node.depth for node in nodes))
        parameters = {**self.tree.parameters, "max_depth": max_depth}
        groups = [self.groups[id_] for id_ in self._pre_order() if id_ in self.groups]
        return replace(self.tree, nodes=nodes, parameters=parameters), groups

    def splits_by_depth(self, tree: Tree) -> list[tuple[Node, Rows, BestSplit, float | None]]:
        """Return the interaction splits with their nodes in the renumbered tree, from the root downwards."""
        order = self._pre_order()
        splits = [(tree.nodes[at], *self.splits[id_]) for at, id_ in enumerate(order) if id_ in self.splits]
        return sorted(splits, key=lambda each: each[0].depth)

    def _pre_order(self) -> list[int]:
        order, stack = [], [1]
        while stack:
            order.append(stack.pop())
            stack.extend(reversed(self.nodes[order[-1]].children or ()))
        return order


def _curve_of_rows(curve: Curve, inside: Rows) -> Curve:
    """Return the curve of some of the rows."""
    ice = curve.ice
    assert ice is not None
    if len(inside) == len(ice.rows):
        return curve
    weights = None if ice.weights is None else ice.weights[inside]
    return mean_of_ice(curve.subgroup, curve.axes, IceCurves(ice.values[:, :, inside], ice.rows[inside], weights))


def _with_counts(tree: Tree, rows: Sequence[Rows], weights: Floats) -> Tree:
    """Return the tree with the number of rows of the effect in each node, in place of those of training."""
    n = dict(zip((leaf.id for leaf in tree.leaves), (float(weights[own].sum()) for own in rows), strict=True))
    for node in reversed(tree.nodes):
        if node.children is not None:
            n[node.id] = sum(n[child] for child in node.children)
    return replace(tree, nodes=tuple(replace(node, n=n[node.id]) for node in tree.nodes))


def _dependence_splits(
    tree: Tree,
    curves: Mapping[int, Curve],
    within: Mapping[int, float],
    units: Floats,
    rows: Sequence[Rows],
    weights: Floats,
) -> tuple[float, list[ExplainedSplit]]:
    """Return the heterogeneity of all curves, and the share that each dependence split explains."""
    number = {leaf.id: at for at, leaf in enumerate(tree.leaves)}
    below: dict[int, list[int]] = {}
    for node in reversed(tree.nodes):
        if node.children is None:
            below[node.id] = [number[node.id]]
        else:
            below[node.id] = [leaf for child in node.children for leaf in below[child]]
    if not curves or not np.isfinite(units).any():
        return 0.0, []
    grid, heterogeneity = union_of_points(list(curves.values())), {}
    for node in tree.nodes:
        leaves = [leaf for leaf in below[node.id] if leaf in curves]
        between = heterogeneity_between([curves[leaf] for leaf in leaves], units, grid)
        heterogeneity[node.id] = sum(within[leaf] for leaf in leaves) + between
    total, paths, splits = heterogeneity[1], tree._paths(), []
    for node in sorted(tree.nodes, key=lambda each: each.depth):
        if node.split is not None and node.children is not None:
            gain = heterogeneity[node.id] - sum(heterogeneity[child] for child in node.children)
            n = float(sum(weights[rows[leaf]].sum() for leaf in below[node.id]))
            rule, share = rule_text(paths[node.id]), max(gain, 0.0) / total
            splits.append(ExplainedSplit(rule, node.split.column, DEPENDENCE, n, share))
    return total, splits
