"""Classification and regression trees (Breiman, Friedman, Olshen and Stone 1984), with the decisions of rpart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.validate import ParamsMixin, number_in, public_names, whole_number
from subgrove._data.table import Floats, Kind
from subgrove.exceptions import InputError
from subgrove.trees.cart_search import NO_GAIN, ROUNDING, CartTarget, Rows, SortedRows, SplitSearch
from subgrove.trees.histogram import Histogram
from subgrove.trees.nodes import Node, renumber
from subgrove.trees.structure import Tree
from subgrove.trees.training import Training, read_training

_NO_COUNTS: Floats = np.empty(0)


class CartTree(ParamsMixin):
    """Grows a tree by variance (numeric x) or Gini impurity (nominal and ordered x).

    It looks for subgroups that differ in the mean of x, or in the frequencies of its levels; subgroups that differ
    in the spread of x only are found by `TransformationTree`. Its decisions are those of R's rpart.

    Parameters
    ----------
    max_depth : int
        Most splits above a leaf.
    min_samples_leaf : int
        Least number of rows (sum of weights) of a leaf.
    min_samples_split : int or None
        Least number of rows of a node that may be split; None means `3 * min_samples_leaf`.
    cp : float
        Complexity: a subtree stays if each of its splits reduces the risk of the root by more than
        this share, on average. 0 keeps every split that reduces the risk.

    Notes
    -----
    A cut of a numeric column lies in the middle between two neighbouring values, and the rule is `value < middle`.
    The left child has the smaller mean of x (nominal x: the smaller mean number of the level).
    Equally good cuts: the first column wins, and the lowest cut in it.

    Nominal columns: their levels are ordered by the mean of x, or by the frequency of the second of two levels of x,
    and cut as if they were numbers, which finds the best split. If x has more levels, all partitions are
    tried up to 12 levels present in the node; beyond that, the levels are ordered along the leading direction of
    their vectors of frequencies and cut there, which is close to the best split.

    Missing values are a value of their own: they are tried on both sides of each cut, and alone against
    all others. (rpart uses surrogate splits there.)

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

    def fit(
        self,
        X: Any,
        x: Any,
        sample_weight: Any = None,
        *,
        kinds: Mapping[str, Kind] | None = None,
        x_kind: Kind | None = None,
    ) -> Tree:
        """Grow a tree that tells x from the columns of X.

        Parameters
        ----------
        X : frame, table or 2-d array
            Candidate columns, without x.
        x : column
            The feature whose subgroups are wanted. Rows without a value of it are left out.
        sample_weight : array, optional
            How often each row counts.
        kinds : mapping from column name to {"numeric", "ordered", "nominal"}, optional
            Overrides what the dtypes of X say.
        x_kind : {"numeric", "ordered", "nominal"}, optional
            Overrides what the dtype of x says. The order of levels tells only which child is the left one.

        Returns
        -------
        Tree
        """
        self._limits()  # before anything is read
        return self._grow(read_training(X, x, sample_weight, kinds=kinds, x_kind=x_kind))

    def _grow(self, training: Training) -> Tree:
        limits = self._limits()
        cells = Histogram.of(training.target, training.values)
        growth = _CartGrower(training, limits)
        growth.grow()
        nodes = collapse(growth.counted(cells), limits.cp)
        return Tree(
            method=self._method,
            target=training.target,
            columns=training.table.columns,
            nodes=renumber(nodes),
            edges=cells.edges,
            parameters=self.plain_params(),
        )

    def _limits(self) -> _Limits:
        min_samples_leaf = whole_number("min_samples_leaf", self.min_samples_leaf, least=1)
        return _Limits(
            max_depth=whole_number("max_depth", self.max_depth, least=0),
            min_samples_leaf=min_samples_leaf,
            min_samples_split=3 * min_samples_leaf
            if self.min_samples_split is None
            else whole_number("min_samples_split", self.min_samples_split, least=2),
            cp=number_in("cp", self.cp, low=0, high=1),
        )

    @classmethod
    def _of_the_fitted(cls) -> frozenset[str]:
        return public_names(Tree)


def collapse(nodes: Mapping[int, Node], cp: float) -> dict[int, Node]:
    """Cost-complexity pruning: the smallest subtree with the least risk + cp * (risk of the root) * splits.

    From the leaves up, a node whose kept subtree with k splits reduces its risk by no more than
    k * cp * (risk of the root) becomes a leaf. Weakest-link pruning would first collapse weaker sons at the node.
    That raises the mean reduction of the splits that are left, never the other way, so it decides nothing here.

    Parameters
    ----------
    nodes : mapping from id to Node
        The root is 1; parents have smaller ids than their children.
    cp : float
        Share of the root's risk that a split has to be worth.
    """
    price = (cp * (1 + ROUNDING) + NO_GAIN) * _risk(nodes[1])
    kept: dict[int, Node] = {}
    risk: dict[int, float] = {}
    splits: dict[int, int] = {}
    for id_ in sorted(nodes, reverse=True):
        node = nodes[id_]
        kept[id_], risk[id_], splits[id_] = node, _risk(node), 0
        if node.children is None:
            continue
        below = sum(risk[child] for child in node.children)
        n_splits = 1 + sum(splits[child] for child in node.children)
        if _risk(node) - below <= price * n_splits:
            kept[id_] = replace(node, children=None, split=None, stop="complexity")
        else:
            risk[id_], splits[id_] = below, n_splits
    return _reachable(kept)


@dataclass(frozen=True)
class _Limits:
    """The parameters, checked."""

    max_depth: int
    min_samples_leaf: int
    min_samples_split: int
    cp: float


class _CartGrower:
    """Nodes of a tree while it grows."""

    def __init__(self, training: Training, limits: _Limits) -> None:
        self.training = training
        self.limits = limits
        self.nodes: dict[int, Node] = {}
        self.leaf_of_row = np.ones(training.n_rows, dtype=np.intp)
        # More rows than min_samples_split may still be too few for two leaves.
        self.least_rows = max(limits.min_samples_split, 2 * limits.min_samples_leaf) * (1 - ROUNDING)
        self.least_risk = 0.0

    def grow(self) -> None:
        """Split until every leaf has a reason to stay one."""
        search = SplitSearch(self.training, CartTarget.of(self.training), self.limits.min_samples_leaf)
        root = self._add(None, 0, np.arange(self.training.n_rows))
        self.least_risk = self.limits.cp * _checked_risk(root, self.training) * (1 + ROUNDING)
        waiting = [(root, SortedRows.of(self.training))] if root.stop is None else []
        while waiting:
            node, rows = waiting.pop()
            found = search.best(rows)
            if isinstance(found, str):
                self.nodes[node.id] = replace(node, stop=found)
                continue
            left = search.goes_left(found, rows.rows)
            sides = (rows.rows[left], rows.rows[~left])
            first, second = (self._add(node.id, node.depth + 1, side) for side in sides)
            self.nodes[node.id] = replace(node, children=(first.id, second.id), split=found)
            for child, side in zip((second, first), sides[::-1], strict=True):
                # Sorted rows are made for nodes that are searched only: they are the larger part of the work.
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
        if node.n < self.least_rows:
            return "few rows"
        if constant:
            return "constant"
        return "complexity" if _risk(node) <= self.least_risk else None

    def counted(self, cells: Histogram) -> dict[int, Node]:
        """The nodes, each with the distribution of x in it."""
        by_node = cells.counts(self.leaf_of_row - 1, len(self.nodes), self.training.weights)
        for id_ in range(len(self.nodes), 1, -1):
            parent = self.nodes[id_].parent
            if parent is not None:
                by_node[parent - 1] += by_node[id_ - 1]
        by_node.flags.writeable = False
        return {id_: replace(node, counts=by_node[id_ - 1]) for id_, node in self.nodes.items()}


def _sum_of_squares(values: Floats, weights: Floats | None) -> float:
    # What overflows is refused at the root.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (values - np.average(values, weights=weights)) ** 2
        return float(squares.sum() if weights is None else squares @ weights)


def _misclassified(codes: npt.NDArray[Any], weights: Floats | None) -> float:
    by_class = np.bincount(codes.astype(np.intp), weights=weights)
    return float(by_class.sum() - by_class.max())


def _checked_risk(root: Node, training: Training) -> float:
    risk = _risk(root)
    if not 0 < risk < np.inf:
        raise InputError(
            f"x ({training.target.name!r}) has a sum of squares that no float holds: its values are "
            f"{'too close together' if risk == 0 else 'too far apart'}. Rescale x."
        )
    return risk


def _risk(node: Node) -> float:
    return 0.0 if node.risk is None else node.risk


def _reachable(nodes: Mapping[int, Node]) -> dict[int, Node]:
    reached: dict[int, Node] = {}
    for id_ in sorted(nodes):
        parent = nodes[id_].parent
        if parent is None or (parent in reached and not reached[parent].is_leaf):
            reached[id_] = nodes[id_]
    return reached
