"""Subgroups of dependence, split further where single curves still disagree.

Requirements this design meets:

- no question to the model: curves of rows that were asked for are sorted into groups;
- one tree holds both kinds of splits, so rules, `assign` and pictures are those of any subgroups;
- a split must hold: it leaves `LEAST` rows on each side, explains `SHARE` of how far all curves disagree, and more than
  chance finds at `LEVEL` (which is shared by the subgroups, and by the nodes of each depth below them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MAX_LEVELS, ColumnInfo, Floats, Rows
from subgrove._core.parallel import one_blas_thread
from subgrove._core.random import stream
from subgrove._data.table import Table, read_like, read_table
from subgrove._effects.curves import Curve, IceCurves, averaged
from subgrove._effects.ice_distance import CurveShapes, between, points_of, units_of
from subgrove._effects.interactions.heterogeneity import DEPENDENCE, INTERACTION, NONE, ExplainedSplit, Heterogeneity
from subgrove._effects.interactions.search import MOST_DEALT, BestSplit, best_split, permutation_p_value
from subgrove._subgroups import Partition
from subgrove.trees import Node, Tree
from subgrove.trees.conditions import rule_text
from subgrove.trees.nodes import renumber
from subgrove.trees.training import select_columns

DEPTH = 2  # most interaction splits above a group, where the user says True
LEAST = 20  # rows of a group that an interaction split makes
SHARE = 0.05  # of how far all curves disagree that a split must explain
LEVEL = 0.05  # of finding any split where no column has to do with the curves


@dataclass(frozen=True, eq=False)
class InteractionGroups:
    """Curves sorted into groups.

    Attributes
    ----------
    partition : Partition
        The groups; the numbers of rows in its tree are those of the effect.
    curves : list of Curve
        One for each group that has one.
    reasons : tuple of str
        For each group the reason of the last split that made it.
    rows : list of int arrays
        For each group the rows in it.
    heterogeneity : Heterogeneity
        What splits explain.
    """

    partition: Partition
    curves: list[Curve]
    reasons: tuple[str, ...]
    rows: list[Rows]
    heterogeneity: Heterogeneity


@dataclass(frozen=True, eq=False)
class _Grown:
    """A node below a subgroup of dependence: its rows by their numbers within the subgroup, and how they split on."""

    inside: Rows
    found: BestSplit | None = None
    p_value: float | None = None
    share: float = 0.0
    children: tuple[_Grown, _Grown] | None = None


def one_subgroup(X: Any, feature: ColumnInfo) -> Partition:
    """All rows as one subgroup, which may be split on every column that a tree can split on, but the feature."""
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
    """Split subgroups where curves disagree.

    Parameters
    ----------
    partition : Partition
        Subgroups of dependence.
    X : table
        All rows, in the user's container.
    rows : sequence of int arrays
        The rows of each subgroup.
    curves : sequence of Curve
        ICE curves of the subgroups that have some.
    depth : int
        Most interaction splits above a group.
    weights : float array
        How often each row of X counts.
    """
    table = read_like(X, partition.tree.columns)
    units, by_leaf = units_of(curves), {curve.subgroup: curve for curve in curves}
    shapes = {leaf: CurveShapes.of(curve, units) for leaf, curve in by_leaf.items()}
    within = {leaf: shape.disagreement() for leaf, shape in shapes.items()}
    total, dependence = _dependence_splits(partition.tree, by_leaf, within, units, rows, weights)
    search = _Search(table, total, depth, LEVEL / max(len(curves), 1), partition.feature)
    with one_blas_thread():
        grown = {
            leaf: search.grow(shapes[leaf], curve.ice.rows, np.arange(len(curve.ice.rows)), 0, f"{leaf}")
            for leaf, curve in by_leaf.items()
            if curve.ice is not None
        }
    tree, groups, made = _extended(partition.tree, rows, grown, by_leaf)
    additive = not total > 0
    paths = tree._paths()
    interaction = [
        ExplainedSplit(
            rule_text(paths[node.id]), node.split.column, INTERACTION, float(weights[own].sum()), share / total, p_value
        )
        for node, own, share, p_value in made
        if node.split is not None
    ]
    n = float(sum(shape.weights.sum() for shape in shapes.values()))
    told = Heterogeneity(partition.feature, (*dependence, *interaction), additive, n)
    sorted_rows = [own for own, _, _ in groups]
    new = [replace(curve, subgroup=at) for at, (_, curve, _) in enumerate(groups) if curve is not None]
    reasons = tuple(reason for _, _, reason in groups)
    return InteractionGroups(
        Partition(partition.members, _counted(tree, sorted_rows, weights)), new, reasons, sorted_rows, told
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """How groups are split."""

    table: Table
    total: float  # how far all curves disagree
    depth: int
    level: float
    feature: str

    def grow(self, shapes: CurveShapes, rows: Rows, inside: Rows, depth: int, place: str) -> _Grown:
        """Split some rows of a subgroup, and what comes of it."""
        own = shapes.some(inside)
        if depth >= self.depth or own.weights.sum() < 2 * LEAST or not own.disagreement() >= SHARE * self.total > 0:
            return _Grown(inside)
        columns = self._columns(rows[inside])
        around = own.around()
        found = best_split(around, own.weights, columns, LEAST)
        if found is None or found.gain < SHARE * self.total:
            return _Grown(inside)
        level = max(self.level / 2**depth, 2 / (MOST_DEALT + 1))
        rng = stream(0, f"interaction/{self.feature}/{place}")
        p_value = permutation_p_value(found, around, own.weights, columns, LEAST, level, rng)
        if p_value > level:
            return _Grown(inside)
        children = tuple(
            self.grow(shapes, rows, inside[side], depth + 1, f"{place}{name}")
            for side, name in ((found.left, "l"), (~found.left, "r"))
        )
        return _Grown(inside, found, p_value, found.gain, (children[0], children[1]))

    def _columns(self, rows: Rows) -> list[tuple[ColumnInfo, npt.NDArray[Any]]]:
        return [(column, self.table.values(column.name)[rows]) for column in self.table.columns]


_Group = tuple[Rows, Curve | None, str]
_Made = tuple[Node, Rows, float, float | None]


def _extended(
    tree: Tree, rows: Sequence[Rows], grown: Mapping[int, _Grown], curves: Mapping[int, Curve]
) -> tuple[Tree, list[_Group], list[_Made]]:
    """The tree with the splits below its leaves, the groups in the order of its leaves, and the new splits."""
    nodes = {node.id: node for node in tree.nodes}
    groups: dict[int, _Group] = {}
    made: dict[int, tuple[Rows, float, float | None]] = {}
    first = NONE if len(tree.leaves) == 1 else DEPENDENCE

    def add(node: Node, here: _Grown, curve: Curve, reason: str) -> None:
        assert curve.ice is not None
        if here.children is None or here.found is None:
            nodes[node.id] = node
            groups[node.id] = (curve.ice.rows[here.inside], _part(curve, here.inside), reason)
            return
        ids = len(nodes) + 1, len(nodes) + 2
        nodes[node.id] = replace(node, split=here.found.split, children=ids, stop=None, p_value=here.p_value)
        made[node.id] = (curve.ice.rows[here.inside], here.share, here.p_value)
        # The feature hardly depends on other columns here, so its distribution is that of the subgroup.
        blank = replace(node, parent=node.id, depth=node.depth + 1, tests=None, p_value=None, stop="no interaction")
        for id_ in ids:
            nodes[id_] = replace(blank, id=id_)
        for id_, child in zip(ids, here.children, strict=True):
            add(nodes[id_], child, curve, INTERACTION)

    for at, leaf in enumerate(tree.leaves):
        if at in grown:
            add(leaf, grown[at], curves[at], first)
        else:
            groups[leaf.id] = (rows[at], None, first)
    kept = renumber(nodes)
    deepest = max(node.depth for node in kept)
    parameters = {**tree.parameters, "max_depth": max(int(tree.parameters["max_depth"]), deepest)}
    order = _pre_order(nodes)
    leaves = [groups[id_] for id_ in order if id_ in groups]
    splits = [(kept[number], *made[id_]) for number, id_ in enumerate(order) if id_ in made]
    return replace(tree, nodes=kept, parameters=parameters), leaves, sorted(splits, key=lambda each: each[0].depth)


def _pre_order(nodes: Mapping[int, Node]) -> list[int]:
    order, stack = [], [1]
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(nodes[order[-1]].children or ()))
    return order


def _part(curve: Curve, inside: Rows) -> Curve:
    """The curve of some of the rows."""
    ice = curve.ice
    assert ice is not None
    if len(inside) == len(ice.rows):
        return curve
    weights = None if ice.weights is None else ice.weights[inside]
    return averaged(curve.subgroup, curve.axes, IceCurves(ice.values[:, :, inside], ice.rows[inside], weights))


def _counted(tree: Tree, rows: Sequence[Rows], weights: Floats) -> Tree:
    """The tree with the rows of the effect in each node, in place of those of training."""
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
    """How far all curves disagree, and what each split of dependence explains of that."""
    number = {leaf.id: at for at, leaf in enumerate(tree.leaves)}
    below: dict[int, list[int]] = {}
    for node in reversed(tree.nodes):
        below[node.id] = [number[node.id]] if node.children is None else [
            leaf for child in node.children for leaf in below[child]
        ]  # fmt: skip
    if not curves or not np.isfinite(units).any():
        return 0.0, []
    grid = points_of(list(curves.values()))

    def disagreement(node: int) -> float:
        there = [leaf for leaf in below[node] if leaf in curves]
        return sum(within[leaf] for leaf in there) + between([curves[leaf] for leaf in there], units, grid)

    total, paths, splits = disagreement(1), tree._paths(), []
    for node in sorted(tree.nodes, key=lambda each: each.depth):
        if node.split is not None and node.children is not None:
            share = disagreement(node.id) - sum(disagreement(child) for child in node.children)
            n = float(sum(weights[rows[leaf]].sum() for leaf in below[node.id]))
            rule = rule_text(paths[node.id])
            splits.append(ExplainedSplit(rule, node.split.column, DEPENDENCE, n, max(share, 0.0) / total))
    return total, splits
