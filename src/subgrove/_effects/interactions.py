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
from subgrove._core.kinds import Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import Table, read_like, read_table
from subgrove._effects import interaction_search as search
from subgrove._effects.curves import Curve, IceCurves, mean_of_ice
from subgrove._effects.result import DEPENDENCE, INTERACTION, NONE, ExplainedSplit, Heterogeneity
from subgrove._subgroups import Partition
from subgrove._subgroups.partition import why_unusable
from subgrove.trees import Node, Tree
from subgrove.trees.nodes import renumber, rule_text
from subgrove.trees.training import select_columns

DEPTH = 2  # largest number of interaction splits above a group, for interactions=True
MIN_ROWS = 20  # rows on each side of an interaction split
MIN_SHARE = 0.05  # share of the heterogeneity of all curves that a split must explain
ALPHA = 0.05  # level of the permutation tests, over all subgroups


@dataclass(frozen=True, eq=False)
class InteractionGroup:
    """A group after interaction splits: its rows, its curve if it has one, and the reason of its last split."""

    rows: Rows
    curve: Curve | None
    reason: str


def one_subgroup(X: Any, feature: ColumnInfo) -> Partition:
    """Return all rows as one subgroup, which can be split on all suitable columns except the feature."""
    whole = read_table(X, lenient=True)
    others = [column for column in whole.columns if column.name != feature.name]
    table = select_columns(whole, [column.name for column in others if why_unusable(whole, column) is None])
    counts = np.zeros(len(feature.levels))
    root = Node(1, None, 0, float(table.n_rows), counts, stop="no interaction")
    return Partition((feature.name,), Tree(INTERACTION, feature, table.columns, (root,), (), {"max_depth": 0}))


def split_further(
    partition: Partition, X: Any, rows: Sequence[Rows], curves: Sequence[Curve], depth: int, weights: Floats
) -> tuple[Partition, list[InteractionGroup], Heterogeneity]:
    """Split subgroups where curves differ in shape; the numbers of rows in the new tree are those of the effect.

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
    units, by_leaf = search.output_units(curves), {curve.subgroup: curve for curve in curves}
    shapes = {leaf: search.CurveShapes.of(curve, units) for leaf, curve in by_leaf.items()}
    within = {leaf: shape.heterogeneity() for leaf, shape in shapes.items()}
    total, dependence = _dependence_splits(partition.tree, by_leaf, within, units, rows, weights)
    growth = _Growth(
        table=read_like(X, partition.tree.columns),
        feature=partition.feature,
        total=total,
        max_depth=depth,
        alpha=ALPHA / max(len(curves), 1),
        weights=weights,
        nodes={node.id: node for node in partition.tree.nodes},
    )
    reason = NONE if len(partition) == 1 else DEPENDENCE
    with one_blas_thread():
        for leaf, node in enumerate(partition.tree.leaves):
            if leaf in by_leaf:
                everything = np.arange(len(shapes[leaf].rows))
                growth.grow(node, by_leaf[leaf], shapes[leaf], everything, 0, f"{leaf}", reason)
            else:
                growth.groups.append(InteractionGroup(rows[leaf], None, reason))
    splits = (*dependence, *growth.explained(partition.tree))
    n = float(sum(shape.weights.sum() for shape in shapes.values()))
    heterogeneity = Heterogeneity(partition.feature, splits, not total > 0, n)
    return Partition(partition.members, growth.tree(partition.tree)), growth.groups, heterogeneity


@dataclass(eq=False, kw_only=True)
class _Growth:
    """Growth of interaction splits below the leaves of a tree; `total` is the heterogeneity of all curves.

    `nodes` are those of the tree and the new ones, by temporary number; `groups` the leaves from left to right.
    `splits` are the new splits by node: the number of their rows, the heterogeneity that they explain, and the p-value.
    """

    table: Table
    feature: str
    total: float
    max_depth: int
    alpha: float
    weights: Floats
    nodes: dict[int, Node]
    groups: list[InteractionGroup] = field(default_factory=list)
    splits: dict[int, tuple[float, float, float]] = field(default_factory=dict)

    def grow(
        self, node: Node, curve: Curve, shapes: search.CurveShapes, inside: Rows, depth: int, place: str, reason: str
    ) -> None:
        """Split a node recursively; `inside` are its rows, by their position in the subgroup of the curve."""
        assert curve.ice is not None
        rows = curve.ice.rows[inside]
        split, p_value = self._significant_split(shapes.some(inside), rows, depth, place)
        if split is None:
            self.groups.append(InteractionGroup(rows, _curve_of_rows(curve, inside), reason))
            return
        ids = len(self.nodes) + 1, len(self.nodes) + 2
        self.nodes[node.id] = replace(node, split=split.split, children=ids, stop=None, p_value=p_value)
        self.splits[node.id] = float(self.weights[rows].sum()), split.gain, p_value
        # The feature hardly depends on other columns in a leaf, so children have the distribution of their parent.
        blank = replace(node, parent=node.id, depth=node.depth + 1, tests=None, p_value=None, stop="no interaction")
        self.nodes |= {id_: replace(blank, id=id_) for id_ in ids}
        for id_, side, name in zip(ids, (split.left, ~split.left), "lr", strict=True):
            self.grow(self.nodes[id_], curve, shapes, inside[side], depth + 1, f"{place}{name}", INTERACTION)

    def _significant_split(
        self, shapes: search.CurveShapes, rows: Rows, depth: int, place: str
    ) -> tuple[search.BestSplit | None, float]:
        """Return the best split of some rows and its p-value; None if it explains too little."""
        threshold = MIN_SHARE * self.total
        enough = shapes.weights.sum() >= 2 * MIN_ROWS
        if depth >= self.max_depth or not enough or not shapes.heterogeneity() >= threshold > 0:
            return None, 1.0
        columns: list[search.SplitColumn] = [
            (column, self.table.values(column.name)[rows]) for column in self.table.columns
        ]
        residuals = shapes.residuals()
        split = search.best_split(residuals, shapes.weights, columns, MIN_ROWS)
        if split is None or split.gain < threshold:
            return None, 1.0
        alpha = max(self.alpha / 2**depth, 2 / (search.MAX_PERMUTATIONS + 1))
        rng = stream(0, f"interaction/{self.feature}/{place}")
        p_value = search.permutation_p_value(split, residuals, shapes.weights, columns, MIN_ROWS, alpha, rng)
        return (split if p_value <= alpha else None), p_value

    def tree(self, tree: Tree) -> Tree:
        """Return the extended tree, with nodes in pre-order and the number of rows of the effect in each."""
        nodes = renumber(self.nodes)
        leaves = [node.id for node in nodes if node.is_leaf]
        n = {leaf: float(self.weights[group.rows].sum()) for leaf, group in zip(leaves, self.groups, strict=True)}
        for node in reversed(nodes):
            if node.children is not None:
                n[node.id] = sum(n[child] for child in node.children)
        max_depth = max(int(tree.parameters["max_depth"]), *(node.depth for node in nodes))
        with_counts = tuple(replace(node, n=n[node.id]) for node in nodes)
        return replace(tree, nodes=with_counts, parameters={**tree.parameters, "max_depth": max_depth})

    def explained(self, tree: Tree) -> list[ExplainedSplit]:
        """Return the interaction splits and the shares that they explain, from the root downwards."""
        paths = replace(tree, nodes=tuple(self.nodes.values()))._paths()
        splits = []
        for id_, (n, gain, p_value) in sorted(self.splits.items(), key=lambda item: self.nodes[item[0]].depth):
            split = self.nodes[id_].split
            assert split is not None
            rule, share = rule_text(paths[id_]), gain / self.total
            splits.append(ExplainedSplit(rule, split.column, INTERACTION, n, share, p_value))
        return splits


def _curve_of_rows(curve: Curve, inside: Rows) -> Curve:
    """Return the curve of some of the rows."""
    ice = curve.ice
    assert ice is not None
    if len(inside) == len(ice.rows):
        return curve
    weights = None if ice.weights is None else ice.weights[inside]
    return mean_of_ice(curve.subgroup, curve.axes, IceCurves(ice.values[:, :, inside], ice.rows[inside], weights))


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
    grid, heterogeneity = search.union_of_points(list(curves.values())), {}
    for node in tree.nodes:
        leaves = [leaf for leaf in below[node.id] if leaf in curves]
        between = search.heterogeneity_between([curves[leaf] for leaf in leaves], units, grid)
        heterogeneity[node.id] = sum(within[leaf] for leaf in leaves) + between
    total, paths, splits = heterogeneity[1], tree._paths(), []
    for node in sorted(tree.nodes, key=lambda each: each.depth):
        if node.split is not None and node.children is not None:
            gain = heterogeneity[node.id] - sum(heterogeneity[child] for child in node.children)
            n = float(sum(weights[rows[leaf]].sum() for leaf in below[node.id]))
            rule, share = rule_text(paths[node.id]), max(gain, 0.0) / total
            splits.append(ExplainedSplit(rule, node.split.column, DEPENDENCE, n, share))
    return total, splits
