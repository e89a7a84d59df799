"""Classification and regression trees (Breiman, Friedman, Olshen and Stone 1984) that agree with rpart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.validate import number_in, whole_number
from subgrove._data.table import Floats
from subgrove.exceptions import InputError
from subgrove.trees.cart_search import CartTarget, Rows, SortedRows, SplitSearch
from subgrove.trees.nodes import ROUNDING, Node, collapse, node_risk, renumber
from subgrove.trees.training import Histogram, SingleTargetTree, Training
from subgrove.trees.tree import Tree

_NO_COUNTS: Floats = np.empty(0)


class CartTree(SingleTargetTree):
    """Tree grown by variance reduction (numeric target) or Gini impurity (nominal and ordered target).

    It finds subgroups that differ in the mean of the target, or in the frequencies of its levels; subgroups that differ
    only in its variance are found by `TransformationTree`. Its decisions are those of R's rpart.

    Parameters
    ----------
    max_depth : int
        Maximum number of splits from the root to a leaf.
    min_samples_leaf : int
        Minimum number of rows (sum of weights) of a leaf.
    min_samples_split : int or None
        Minimum number of rows of a node to split it; None means `3 * min_samples_leaf`.
    cp : float
        Complexity parameter of cost-complexity pruning: a subtree is retained if its splits reduce the risk by more
        than this share of the root's risk per split. 0 retains every split that reduces the risk.

    Notes
    -----
    A split point of a numeric column is the midpoint of two neighbouring values, and the rule is `value < midpoint`.
    The left child has the smaller mean of the target (nominal target: the smaller mean number of the level).
    Ties go to the first column, and to its lowest split point.

    Levels of nominal columns are ordered by the mean of the target, or by the frequency of the second of two target
    levels, and split as if they were numbers, which finds the best split. If the target has more levels, all partitions
    are tried up to 12 levels present in the node; beyond that, the levels are ordered along the first principal axis of
    their vectors of frequencies, which gives a split close to the best.

    A missing value is a category of its own: it is tried on both sides of each split point, and alone against all
    others. (rpart uses surrogate splits.)

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.CartTree(max_depth=2).fit(X.drop(columns="temp"), X["temp"])
    >>> for leaf, rule in tree.rules.items():
    ...     print(leaf, rule)
    3 season in {WINTER}
    4 season in {FALL}
    6 season in {SPRING}
    7 season in {SUMMER}
    """

    _method = "cart"

    def __init__(
        self, max_depth: int = 30, min_samples_leaf: int = 30, min_samples_split: int | None = None, cp: float = 0.01
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.cp = cp

    def _grow(self, training: Training) -> Tree:
        limits = self._validate()
        histogram = Histogram.of(training.target, training.values)
        grower = _CartGrower(training, limits)
        grower.grow()
        nodes = collapse(grower.with_histograms(histogram), limits.cp)
        return self._tree(training, renumber(nodes), histogram)

    def _validate(self) -> _CartLimits:
        min_samples_leaf = whole_number("min_samples_leaf", self.min_samples_leaf, least=1)
        return _CartLimits(
            max_depth=whole_number("max_depth", self.max_depth, least=0),
            min_samples_leaf=min_samples_leaf,
            min_samples_split=3 * min_samples_leaf
            if self.min_samples_split is None
            else whole_number("min_samples_split", self.min_samples_split, least=2),
            cp=number_in("cp", self.cp, low=0, high=1),
        )


@dataclass(frozen=True)
class _CartLimits:
    """Validated parameters."""

    max_depth: int
    min_samples_leaf: int
    min_samples_split: int
    cp: float


class _CartGrower:
    """Nodes of a growing tree."""

    def __init__(self, training: Training, limits: _CartLimits) -> None:
        self.training = training
        self.limits = limits
        self.nodes: dict[int, Node] = {}
        self.leaf_of_row = np.ones(training.n_rows, dtype=np.intp)
        # A node with min_samples_split rows may still be too small for two leaves.
        self.min_rows = max(limits.min_samples_split, 2 * limits.min_samples_leaf) * (1 - ROUNDING)
        self.min_risk = 0.0

    def grow(self) -> None:
        """Split until every leaf has a reason to stop."""
        search = SplitSearch(self.training, CartTarget.of(self.training), self.limits.min_samples_leaf)
        root = self._add(None, 0, np.arange(self.training.n_rows))
        self.min_risk = self.limits.cp * _checked_risk(root, self.training) * (1 + ROUNDING)
        waiting = [(root, SortedRows.of(self.training))] if root.stop is None else []
        while waiting:
            node, rows = waiting.pop()
            split = search.best(rows)
            if isinstance(split, str):
                self.nodes[node.id] = replace(node, stop=split)
                continue
            left = search.goes_left(split, rows.rows)
            sides = (rows.rows[left], rows.rows[~left])
            first, second = (self._add(node.id, node.depth + 1, side) for side in sides)
            self.nodes[node.id] = replace(node, children=(first.id, second.id), split=split)
            for child, side in zip((second, first), sides[::-1], strict=True):
                # Rows are sorted only for nodes that are searched, since sorting is most of the work.
                if child.stop is None:
                    waiting.append((child, rows.part(side, self.training.n_rows)))

    def _add(self, parent: int | None, depth: int, rows: Rows) -> Node:
        values = self.training.values[rows]
        weights = None if self.training.weights is None else self.training.weights[rows]
        n = float(len(rows) if weights is None else weights.sum())
        numeric = self.training.target.kind == "numeric"
        risk = _sum_of_squares(values, weights) if numeric else _misclassified(values, weights)
        node = Node(len(self.nodes) + 1, parent, depth, n, _NO_COUNTS, risk=risk)
        reason = self._reason_to_stop(node, constant=bool((values == values[0]).all()))
        node = node if reason is None else replace(node, stop=reason)
        self.nodes[node.id] = node
        self.leaf_of_row[rows] = node.id
        return node

    def _reason_to_stop(self, node: Node, *, constant: bool) -> str | None:
        if node.depth >= self.limits.max_depth:
            return "depth"
        if node.n < self.min_rows:
            return "few rows"
        if constant:
            return "constant"
        return "complexity" if node_risk(node) <= self.min_risk else None

    def with_histograms(self, histogram: Histogram) -> dict[int, Node]:
        """Return the nodes, each with the histogram of the target in it."""
        parents = [None if node.parent is None else node.parent - 1 for node in self.nodes.values()]
        counts = histogram.node_counts(self.leaf_of_row - 1, parents, self.training.weights)
        return {id_: replace(node, counts=counts[id_ - 1]) for id_, node in self.nodes.items()}


def _sum_of_squares(values: Floats, weights: Floats | None) -> float:
    # An overflow is reported at the root.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (values - np.average(values, weights=weights)) ** 2
        return float(squares.sum() if weights is None else squares @ weights)


def _misclassified(codes: npt.NDArray[Any], weights: Floats | None) -> float:
    by_class = np.bincount(codes.astype(np.intp), weights=weights)
    return float(by_class.sum() - by_class.max())


def _checked_risk(root: Node, training: Training) -> float:
    risk = node_risk(root)
    if not 0 < risk < np.inf:
        raise InputError(
            f"x ({training.target.name!r}) has a sum of squares outside the range of floats: its values are "
            f"{'too close together' if risk == 0 else 'too far apart'}. Rescale x."
        )
    return risk
