"""Classification and regression trees (Breiman, Friedman, Olshen and Stone 1984) that agree with rpart.

Requirements this design meets:

- one arithmetic for both criteria. The weighted Gini impurity of a class label is the sum of squares of its
  indicator columns around their means, so regression has one column of numbers here and K classes have K.
  A split with weight A on one side and B on the other reduces it by  sum_k S_k^2 (A + B) / (A B),
  where S_k is the sum on one side of column k, centred at the mean of the node;
- one search for all trees. Up to a factor that all splits of a node share, this reduction is the statistic that
  `split_points` maximizes for whitened scores; here the scores are the centred columns;
- rounding has no influence. Gains that differ by no more than rounding are ties, and the first one wins, so neither
  the order of the rows nor weights in place of duplicated rows have an influence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.validate import number_in, whole_number
from subgrove._data.table import ColumnInfo
from subgrove.exceptions import InputError
from subgrove.trees.inference_trees import SingleTargetTree
from subgrove.trees.nodes import (
    NO_GAIN,
    ROUNDING,
    SIDES,
    Node,
    Split,
    assign_unseen_values,
    collapse,
    goes_left,
    node_risk,
    renumber,
)
from subgrove.trees.split_points import SplitPoint, best_column_splits, best_level_split
from subgrove.trees.target_scores import Histogram
from subgrove.trees.training import SortedTable, Training
from subgrove.trees.tree import Tree

_NO_COUNTS: Floats = np.empty(0)
_BLOCK_SIZE = 1 << 17  # numbers that are searched at once


@dataclass(eq=False, repr=False)
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

    _method: ClassVar[str] = "cart"

    max_depth: int = 30
    min_samples_leaf: int = 30
    min_samples_split: int | None = None
    cp: float = 0.01

    def _grow(self, training: Training) -> Tree:
        limits = self._validate()
        histogram = Histogram.of(training.target, training.values)
        grower = _CartGrower(training, limits)
        grower.grow()
        nodes = collapse(grower.with_histograms(histogram), limits.cp)
        return self._tree(training, renumber(nodes), histogram)

    def _validate(self) -> CartTree:
        """Return the tree with validated parameters."""
        max_depth = whole_number("max_depth", self.max_depth, least=0)
        leaf, split = whole_number("min_samples_leaf", self.min_samples_leaf, least=1), self.min_samples_split
        split = 3 * leaf if split is None else whole_number("min_samples_split", split, least=2)
        return CartTree(max_depth, leaf, split, number_in("cp", self.cp, low=0, high=1))


class _CartGrower:
    """Nodes of a growing tree."""

    def __init__(self, training: Training, limits: CartTree) -> None:
        self.training = training
        self.limits = limits
        self.weights = np.ones(training.n_rows) if training.weights is None else training.weights
        self.columns = training.columns or SortedTable.of(training.table, shared=True)
        # The target, or the number of the class: the left child is the one with the smaller mean.
        self.position = training.values.astype(np.float64)
        self.targets = _target_columns(training, self.position)
        self.nodes: dict[int, Node] = {}
        self.leaf_of_row = np.ones(training.n_rows, dtype=np.intp)
        # A node with min_samples_split rows may still be too small for two leaves.
        self.min_rows = max(limits.min_samples_split or 0, 2 * limits.min_samples_leaf) * (1 - ROUNDING)
        self.min_risk = 0.0

    def grow(self) -> None:
        """Split until every leaf has a reason to stop."""
        rows = np.arange(self.training.n_rows)
        root = self._add(None, 0, rows)
        self.min_risk = self.limits.cp * _checked_risk(root, self.training) * (1 + ROUNDING)
        waiting = [(root, rows)]
        while waiting:
            node, rows = waiting.pop()
            if node.stop is not None:
                continue
            best = self._best_split(rows)
            if isinstance(best, str):
                self.nodes[node.id] = replace(node, stop=best)
                continue
            split, left = best
            sides = (rows[left], rows[~left])
            children = [self._add(node.id, node.depth + 1, side) for side in sides]
            self.nodes[node.id] = replace(node, children=(children[0].id, children[1].id), split=split)
            waiting += reversed(list(zip(children, sides, strict=True)))

    def _add(self, parent: int | None, depth: int, rows: Rows) -> Node:
        values = self.training.values[rows]
        weights = None if self.training.weights is None else self.training.weights[rows]
        n = float(len(rows) if weights is None else weights.sum())
        numeric = self.training.target.kind == "numeric"
        risk = _sum_of_squares(values, weights) if numeric else _misclassified(values, weights)
        node = Node(len(self.nodes) + 1, parent, depth, n, _NO_COUNTS, risk=risk)
        node = replace(node, stop=self._reason_to_stop(node, constant=bool((values == values[0]).all())))
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

    def _best_split(self, rows: Rows) -> tuple[Split, npt.NDArray[np.bool_]] | str:
        """Return the split with the largest reduction and the rows that go left, or the reason why there is none."""
        targets, weights = self.targets[:, rows], self.weights[rows]
        n = float(weights.sum())
        centred = targets - (targets @ weights / n)[:, np.newaxis]
        stacked = np.vstack([centred * weights, weights])
        points = self._split_points(rows, stacked, n)
        gains = np.array([-np.inf if point is None else point.statistic * n / (n - 1) for point in points])
        best = int(np.argmax(gains >= gains.max() * (1 - ROUNDING)))
        point = points[best]
        if point is None:
            return "no admissible cut"
        if gains[best] <= NO_GAIN * float((centred * stacked[:-1]).sum()):
            return "complexity"
        return self._oriented_split(point, best, rows)

    def _split_points(self, rows: Rows, stacked: Floats, n: float) -> list[SplitPoint | None]:
        """Return the best split point of a node in each column."""
        table, positions = self.training.table, self.training.table.positions()
        # Sums of fractional weights may be off by rounding.
        least = self.limits.min_samples_leaf * (1 - ROUNDING)
        points: dict[int, SplitPoint | None] = {}
        numeric = [at for at, info in enumerate(table.columns) if not info.is_nominal]
        step = max(1, _BLOCK_SIZE // stacked.size)
        for chunk in (numeric[start : start + step] for start in range(0, len(numeric), step)):
            places = np.array([positions[at] for at in chunk])
            values = table.numbers.T[np.ix_(places, rows)]
            known = [self.columns.order_within(place, rows) for place in places]
            order = np.argsort(values, axis=1) if known[0] is None else np.array(known)
            points.update(zip(chunk, best_column_splits(values, order, stacked, n, least), strict=True))
        for at, info in enumerate(table.columns):
            if info.is_nominal:
                codes = table.values(info.name)[rows]
                level = np.where(codes < 0, len(info.levels), codes)
                by_level = np.array([np.bincount(level, weights=line) for line in stacked])
                points[at] = best_level_split(by_level[:-1], by_level[-1], n, least)
        return [points[at] for at in range(len(table.columns))]

    def _oriented_split(self, point: SplitPoint, column: int, rows: Rows) -> tuple[Split, npt.NDArray[np.bool_]]:
        """Order the children, and assign levels and missing values absent from the node."""
        info = self.training.table.columns[column]
        values = self.training.table.values(info.name)[rows]
        split = _at_midpoint(point.split(info), info, values)
        left = goes_left(split, info, values)
        position, weights = self.position[rows], self.weights[rows]
        mean_left, mean_right = (np.average(position[side], weights=weights[side]) for side in (left, ~left))
        # As in rpart, values below go right if both means are equal (possible for classes only).
        if mean_right - mean_left <= ROUNDING * np.ptp(position):
            split, left = _mirror(split), ~left
        if info.is_nominal and len(self.targets) > 1:
            # It has no effect for levels, but stored trees have it, and equal trees have equal dictionaries.
            last = np.argmax(np.where(values < 0, len(info.levels), values))
            split = replace(split, below=SIDES[int(left[last])])
        larger = SIDES[int(weights[left].sum() < weights[~left].sum())]
        return assign_unseen_values(split, info, values, larger), left

    def with_histograms(self, histogram: Histogram) -> dict[int, Node]:
        """Return the nodes, each with the histogram of the target in it."""
        parents = [None if node.parent is None else node.parent - 1 for node in self.nodes.values()]
        counts = histogram.node_counts(self.leaf_of_row - 1, parents, self.training.weights)
        return {id_: replace(node, counts=counts[id_ - 1]) for id_, node in self.nodes.items()}


def _target_columns(training: Training, position: Floats) -> Floats:
    """Return the columns whose sum of squares is reduced: the target, or an indicator of each class (one for two)."""
    if training.target.kind == "numeric":
        return position[np.newaxis]
    classes = np.unique(position)
    indicated = classes[1:] if len(classes) == 2 else classes
    return np.equal(position, indicated[:, np.newaxis]).astype(np.float64)


def _at_midpoint(split: Split, info: ColumnInfo, values: npt.NDArray[Any]) -> Split:
    """Return the split at the midpoint of the values next to it; above the lower one, even if they are adjacent."""
    if split.threshold is None:
        return split
    low, high = split.threshold, float(values[values > split.threshold].min())
    middle = (low + high) / 2
    if info.kind == "ordered":
        return replace(split, threshold=float(np.ceil(middle) - 1))
    if np.isinf(middle):
        middle = low / 2 + high / 2
    middle = middle if middle > low else high
    # Dates are whole microseconds, and rules print them as such.
    return replace(split, threshold=float(np.ceil(middle)) if info.is_date or info.is_duration else middle, strict=True)


def _mirror(split: Split) -> Split:
    """Return the split with the children exchanged."""
    missing = SIDES[split.missing == "left"]
    if split.kind == "nominal":
        return replace(split, levels=split.levels[::-1], missing=missing)
    return replace(split, below="right", missing=missing)


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
