"""Nodes of a grown tree and the tests in them; pruning. Everything here is frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from subgrove.trees.splits import Split

ROUNDING = 1e-10  # relative difference of gains that may be rounding
NO_GAIN = 1e-12  # relative reduction of the risk that may be rounding


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """Test of one candidate column in one node.

    Attributes
    ----------
    column : str
        Name of the column.
    statistic : float
        Quadratic test statistic.
    df : int
        Degrees of freedom.
    p_value : float
        P-value adjusted for the number of columns.
    log_p_unadjusted : float
        Logarithm of the unadjusted p-value.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=1).fit(X.drop(columns="temp"), X["temp"])
    >>> test = tree.nodes[0].tests["season"]
    >>> test.column, test.df, test.p_value < 0.001
    ('season', 18, True)
    """

    column: str
    statistic: float
    df: int
    p_value: float
    log_p_unadjusted: float


@dataclass(frozen=True, eq=False, slots=True)
class ColumnTests(Mapping[str, ColumnTest]):
    """Tests of all candidate columns in a node: a mapping from column name to `ColumnTest`.

    Columns that are constant in the node are not tested and not counted in the adjustment.

    Attributes
    ----------
    columns : tuple of str
        Names of the candidate columns.
    statistic : float array
        Quadratic test statistic; NaN if the column was not tested.
    df : int array
        Degrees of freedom; 0 if not tested.
    log_p : float array
        Logarithm of the unadjusted p-value.
    log1m_p_adjusted : float array
        log(1 - p) after the Sidak adjustment, by which columns are ranked.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=1).fit(X.drop(columns="temp"), X["temp"])
    >>> tests = tree.nodes[0].tests
    >>> len(tests), min(tests, key=lambda name: tests[name].p_value)
    (8, 'season')
    """

    columns: tuple[str, ...]
    statistic: npt.NDArray[np.float64]
    df: npt.NDArray[np.int64]
    log_p: npt.NDArray[np.float64]
    log1m_p_adjusted: npt.NDArray[np.float64]

    @property
    def p_value(self) -> npt.NDArray[np.float64]:
        """P-values with the Sidak adjustment for the number of columns tested in the node."""
        return np.asarray(np.where(self.df > 0, -np.expm1(self.log1m_p_adjusted), np.nan))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, column: str) -> ColumnTest:
        if column not in self.columns:
            raise KeyError(f"{column!r} is not among the candidate columns {', '.join(map(repr, self.columns))}")
        at = self.columns.index(column)
        return ColumnTest(
            column, float(self.statistic[at]), int(self.df[at]), float(self.p_value[at]), float(self.log_p[at])
        )


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One node of a tree.

    Attributes
    ----------
    id : int
        Pre-order number; the root is 1, and a left subtree precedes the right one.
    parent : int or None
        Id of the parent.
    depth : int
        Number of splits above the node.
    n : float
        Number of training rows (sum of weights).
    children : pair of int, or None
        Ids of the left and the right child; None for a leaf.
    split : Split or None
        Split of the node; None for a leaf.
    counts : float array
        Histogram of the target in the node: weight by level, or between the `Tree.edges`. Empty in a tree of several
        features.
    stop : str or None
        Why a leaf was not split: "depth", "few rows", "constant" (the target, or every column), "no columns" (to split
        on), "many levels" (of the target), "not fitted" (the likelihood has no maximum within floating point), "not
        significant", "no admissible cut" or "complexity" (CART).
    tests : Tests or None
        Tests of the candidate columns; None if there were none.
    p_value : float or None
        Adjusted p-value of the split column; the smallest one for a leaf.
    theta : tuple of float, or None
        Coefficients of the transformation model (transformation trees).
    log_likelihood : float or None
        Log-likelihood of the transformation model.
    risk : float or None
        Sum of squares around the mean, or misclassified weight (CART).

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=1).fit(X.drop(columns="temp"), X["temp"])
    >>> root = tree.nodes[0]
    >>> root.n, root.children, root.is_leaf
    (731.0, (2, 3), False)
    >>> tree.nodes[1].stop
    'depth'
    """

    id: int
    parent: int | None
    depth: int
    n: float
    counts: npt.NDArray[np.float64]
    children: tuple[int, int] | None = None
    split: Split | None = None
    stop: str | None = None
    tests: ColumnTests | None = None
    p_value: float | None = None
    theta: tuple[float, ...] | None = None
    log_likelihood: float | None = None
    risk: float | None = None

    def __repr__(self) -> str:
        kind = f"leaf ({self.stop})" if self.split is None else f"split on {self.split.column!r}"
        return f"<Node {self.id}: n = {self.n:g}, depth {self.depth}, {kind}>"

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no split."""
        return self.children is None


def renumber(nodes: Mapping[int, Node]) -> tuple[Node, ...]:
    """Return the nodes reachable from the root (id 1), renumbered in pre-order."""
    order: list[int] = []
    stack = [1]
    while stack:
        id_ = stack.pop()
        order.append(id_)
        children = nodes[id_].children
        if children is not None:
            stack.extend(reversed(children))
    new = {id_: index + 1 for index, id_ in enumerate(order)}
    renumbered = []
    for id_ in order:
        node = nodes[id_]
        parent = None if node.parent is None else new[node.parent]
        children = None if node.children is None else (new[node.children[0]], new[node.children[1]])
        same = (node.id, node.parent, node.children) == (new[id_], parent, children)
        renumbered.append(node if same else replace(node, id=new[id_], parent=parent, children=children))
    return tuple(renumbered)


def collapse(nodes: Mapping[int, Node], cp: float) -> dict[int, Node]:
    """Prune by cost complexity: the smallest subtree that minimizes risk + cp * (risk of the root) * splits.

    From the leaves up, a node whose pruned subtree with k splits reduces its risk by no more than
    k * cp * (risk of the root) becomes a leaf. Weakest-link pruning would first collapse weaker splits below the node.
    This can only raise the mean reduction of the remaining splits, so the result is the same.

    Parameters
    ----------
    nodes : mapping from id to Node
        The root is 1; parents have smaller ids than their children.
    cp : float
        Minimum reduction of the risk per split, as a share of the root's risk.
    """
    price = (cp * (1 + ROUNDING) + NO_GAIN) * node_risk(nodes[1])
    pruned: dict[int, Node] = {}
    risk: dict[int, float] = {}
    splits: dict[int, int] = {}
    for id_ in sorted(nodes, reverse=True):
        node = nodes[id_]
        pruned[id_], risk[id_], splits[id_] = node, node_risk(node), 0
        if node.children is None:
            continue
        below = sum(risk[child] for child in node.children)
        n_splits = 1 + sum(splits[child] for child in node.children)
        if node_risk(node) - below <= price * n_splits:
            pruned[id_] = replace(node, children=None, split=None, stop="complexity")
        else:
            risk[id_], splits[id_] = below, n_splits
    return _reachable(pruned)


def node_risk(node: Node) -> float:
    """Return the risk of a node; 0 if it has none."""
    return 0.0 if node.risk is None else node.risk


def _reachable(nodes: Mapping[int, Node]) -> dict[int, Node]:
    reached: dict[int, Node] = {}
    for id_ in sorted(nodes):
        parent = nodes[id_].parent
        if parent is None or (parent in reached and not reached[parent].is_leaf):
            reached[id_] = nodes[id_]
    return reached
