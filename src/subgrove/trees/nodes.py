"""Nodes of a grown tree: their splits, the rules that these define, and pruning. Everything here is frozen.

The printed rule and the condition applied to rows are the same object, so they cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._data.columns import ColumnInfo, number_text
from subgrove._data.table import Kind, Table
from subgrove.trees.column_tests import ColumnTests

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
ALL_ROWS = "all rows"
ROUNDING = 1e-10  # relative difference of gains that may be rounding
NO_GAIN = 1e-12  # relative reduction of the risk that may be rounding


@dataclass(frozen=True, slots=True)
class Split:
    """Split of a node into two children.

    Attributes
    ----------
    column : str
        Column that is split.
    kind : {"numeric", "ordered", "nominal"}
        Kind of the column.
    threshold : float or None
        Numeric: values up to it are below. Ordered: number of levels below. None for nominal columns, and if missing
        values are separated from all others.
    strict : bool
        Whether a value equal to the threshold is above it (CART) instead of below.
    below : {"left", "right"}
        Child that receives the values below.
    levels : pair of tuples of str
        Nominal: levels of the left and of the right child; levels without training rows in the node are assigned to
        the larger child.
    missing : {"left", "right"}
        Child that receives missing values.
    larger : {"left", "right"}
        Child with more training rows, which receives new levels.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=1).fit(X.drop(columns="temp"), X["temp"])
    >>> split = tree.nodes[0].split
    >>> split.column, split.kind, split.levels
    ('season', 'nominal', (('WINTER', 'SPRING', 'FALL'), ('SUMMER',)))
    """

    column: str
    kind: Kind
    threshold: float | None = None
    strict: bool = False
    below: Side = "left"
    levels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    missing: Side = "left"
    larger: Side = "left"

    def condition(self, side: Side, column: ColumnInfo) -> Condition:
        """Return the condition of the split on the rows of one side.

        Parameters
        ----------
        side : {"left", "right"}
            Child that receives the rows.
        column : ColumnInfo
            Name, kind and levels of the column that is split.
        """
        missing = self.missing == side
        if self.kind == "nominal":
            levels = frozenset(self.levels[SIDES.index(side)])
            return Condition(column, levels=levels, present=bool(levels), missing=missing)
        if self.threshold is None:
            return Condition(column, present=self.below == side, missing=missing)
        if self.below == side:
            return Condition(column, high=self.threshold, high_closed=not self.strict, missing=missing)
        return Condition(column, low=self.threshold, low_closed=self.strict, missing=missing)


def goes_left(split: Split, column: ColumnInfo, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which rows go to the left child; `values` are numbers, or codes if nominal."""
    to_left = np.array([split.missing == "left", split.larger == "left"])
    if split.kind == "nominal":
        left = set(split.levels[0])
        table = np.array([level in left for level in column.levels] + [to_left[1], to_left[0]])
        return np.asarray(table[values])  # -1 is missing, -2 a new level
    missing = np.isnan(values)
    if split.threshold is None:
        below = ~missing
    else:
        below = values < split.threshold if split.strict else values <= split.threshold
    left_side = below if split.below == "left" else ~below
    if missing.any():
        left_side = np.where(missing, to_left[0], left_side)
    if split.kind == "ordered":
        left_side = np.where(np.isinf(values), to_left[1], left_side)
    return np.asarray(left_side)


def assign_unseen_values(split: Split, column: ColumnInfo, values: npt.NDArray[Any], larger: Side) -> Split:
    """Return a split that sends levels and missing values absent from the node to the larger child.

    `values` are those of the node's training rows: numbers, or codes if nominal.
    """
    has_missing = bool((values < 0).any() if column.is_nominal else np.isnan(values).any())
    split = replace(split, larger=larger, missing=split.missing if has_missing else larger)
    if not column.is_nominal:
        return split
    present = {column.levels[code] for code in np.unique(values) if code >= 0}
    left, right = (
        tuple(level for level in column.levels if (level in group if level in present else side == larger))
        for side, group in zip(SIDES, split.levels, strict=True)
    )
    return replace(split, levels=(left, right))


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
    order = _pre_order(nodes)
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
    return {id_: pruned[id_] for id_ in _pre_order(pruned)}


def node_risk(node: Node) -> float:
    """Return the risk of a node; 0 if it has none."""
    return 0.0 if node.risk is None else node.risk


def _pre_order(nodes: Mapping[int, Node]) -> list[int]:
    """Return the ids of the nodes that are reachable from the root, a left subtree before the right one."""
    order: list[int] = []
    stack = [1]
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(nodes[order[-1]].children or ()))
    return order


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a rule on one column.

    Attributes
    ----------
    column : ColumnInfo
        Name, kind and levels of the column.
    low, high : float
        Bounds of a numeric or ordered column (ordered: number of the level, from 1).
    low_closed, high_closed : bool
        Whether the bound is included.
    levels : frozenset of str, or None
        Allowed levels of a nominal column.
    present : bool
        Whether values that are not missing are allowed.
    missing : bool
        Whether missing values are allowed.
    """

    column: ColumnInfo
    low: float = -np.inf
    high: float = np.inf
    low_closed: bool = False
    high_closed: bool = True
    levels: frozenset[str] | None = None
    present: bool = True
    missing: bool = True

    def matches(self, table: Table) -> npt.NDArray[np.bool_]:
        """Return which rows of a table satisfy the condition."""
        values = table.values(self.column.name)
        if self.column.is_nominal:
            return self._matches_codes(values)
        missing = np.isnan(values)
        above = values >= self.low if self.low_closed else values > self.low
        below = values <= self.high if self.high_closed else values < self.high
        # Infinite: a new level of an ordered column, which no rule covers.
        inside = above & below & self.present & ~np.isinf(values)
        return np.asarray(np.where(missing, self.missing, inside))

    def _matches_codes(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        levels = self.levels or frozenset()
        allowed = np.array([level in levels for level in self.column.levels] + [False, self.missing])
        return np.asarray(allowed[codes])

    def __str__(self) -> str:
        name = self.column.name
        allows_missing = self.missing and self.column.has_missing
        if not self.present or (self.levels is not None and not self.levels):
            return f"{name} is missing"
        text = self._range_text() if self.levels is None else self._levels_text()
        if text is None:
            return ALL_ROWS if allows_missing or not self.column.has_missing else f"{name} is not missing"
        return f"{text} or missing" if allows_missing else text

    def _levels_text(self) -> str | None:
        levels = self.levels or frozenset()
        if len(levels) == len(self.column.levels):
            return None
        listed = ", ".join(level_text(level) for level in self.column.levels if level in levels)
        return f"{self.column.name} in {{{listed}}}"

    def _range_text(self) -> str | None:
        name = self.column.name
        low = None if np.isneginf(self.low) else self._value(self.low)
        high = None if np.isposinf(self.high) else self._value(self.high)
        less_low = "<=" if self.low_closed else "<"
        less_high = "<=" if self.high_closed else "<"
        if low is not None and high is not None:
            return f"{low} {less_low} {name} {less_high} {high}"
        if high is not None:
            return f"{name} {less_high} {high}"
        if low is not None:
            return f"{name} {'>=' if self.low_closed else '>'} {low}"
        return None

    def _value(self, value: float) -> str:
        if self.column.kind == "ordered":
            return level_text(self.column.levels[int(value) - 1])
        return number_text(value, self.column)


def level_text(level: str) -> str:
    """Return a level as printed in a rule: quoted if it would be ambiguous."""
    plain = level == level.strip() and level not in ("", "missing", "or missing") and not set(level) & set("{},'\"\n\r")
    return level if plain else repr(level)


def merge(path: tuple[Condition, ...], condition: Condition) -> tuple[Condition, ...]:
    """Add a condition to a path; conditions on the same column are intersected."""
    name = condition.column.name
    if all(earlier.column.name != name for earlier in path):
        return (*path, condition)
    return tuple(_intersect(earlier, condition) if earlier.column.name == name else earlier for earlier in path)


def rule_text(conditions: tuple[Condition, ...]) -> str:
    """Return the rule of a leaf in one line."""
    texts = [text for text in map(str, conditions) if text != ALL_ROWS]
    if len(texts) < 2:
        return texts[0] if texts else ALL_ROWS
    return " and ".join(f"({text})" if text.endswith(" or missing") else text for text in texts)


def matches(conditions: tuple[Condition, ...], table: Table) -> npt.NDArray[np.bool_]:
    """Return which rows of a table satisfy all conditions."""
    result = np.ones(table.n_rows, dtype=np.bool_)
    for condition in conditions:
        result &= condition.matches(table)
    return result


def _intersect(one: Condition, other: Condition) -> Condition:
    changes: dict[str, Any] = {"present": one.present and other.present, "missing": one.missing and other.missing}
    if one.levels is not None or other.levels is not None:
        everything = frozenset(one.column.levels)
        levels = (everything if one.levels is None else one.levels) & (
            everything if other.levels is None else other.levels
        )
        return replace(one, **changes, levels=levels)
    if other.low > one.low or (other.low == one.low and not other.low_closed):
        changes |= {"low": other.low, "low_closed": other.low_closed}
    if other.high < one.high or (other.high == one.high and not other.high_closed):
        changes |= {"high": other.high, "high_closed": other.high_closed}
    return replace(one, **changes)
