"""Nodes of a grown tree: splits, tests and counts. Everything here is frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._data.table import ColumnInfo, Kind

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")


@dataclass(frozen=True, slots=True)
class Split:
    """How a node sends its rows to two children.

    Attributes
    ----------
    column : str
        The column that is asked.
    kind : {"numeric", "ordered", "nominal"}
        Its kind.
    threshold : float or None
        Numeric: values up to it lie below. Ordered: number of levels that lie below.
        None for nominal columns, and where missing values are split from all others.
    strict : bool
        Whether a value equal to the threshold lies above (CART) instead of below.
    below : {"left", "right"}
        The child that gets the values below.
    levels : pair of tuples of str
        Nominal: levels of the left and of the right child; levels that no training row of the node had
        stand with the larger child.
    missing : {"left", "right"}
        The child that gets missing values.
    larger : {"left", "right"}
        The child with more training rows; it gets levels that training did not have.

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

    def to_dict(self) -> dict[str, Any]:
        """A dictionary of plain values."""
        return {
            "column": self.column,
            "kind": self.kind,
            "threshold": self.threshold,
            "strict": self.strict,
            "below": self.below,
            "levels": [list(levels) for levels in self.levels],
            "missing": self.missing,
            "larger": self.larger,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Split:
        """The split that `to_dict` wrote.

        Parameters
        ----------
        values : dict
            What `to_dict` of a split gave, also after a way through JSON.
        """
        left, right = values["levels"]
        return cls(**{**values, "levels": (tuple(left), tuple(right))})


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """Test of one candidate column in one node.

    Attributes
    ----------
    column : str
        Name of the column.
    statistic : float
        Quadratic statistic.
    df : int
        Degrees of freedom.
    p_value : float
        P-value after adjustment for the number of columns.
    log_p_unadjusted : float
        Logarithm of the p-value before.

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

    Columns that are constant in the node are not tested and do not count for the adjustment.

    Attributes
    ----------
    columns : tuple of str
    statistic : float array
        Quadratic statistic; NaN where the column was not tested.
    df : int array
        Degrees of freedom; 0 where not tested.
    log_p : float array
        Logarithm of the p-value before adjustment.
    log1m_p_adjusted : float array
        log(1 - p) after the Sidak adjustment: what columns are ranked by.

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
        """P-values after the Sidak adjustment for the number of columns tested in the node."""
        adjusted: npt.NDArray[np.float64] = np.where(self.df > 0, -np.expm1(self.log1m_p_adjusted), np.nan)
        return adjusted

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, column: str) -> ColumnTest:
        if column not in self.columns:
            raise KeyError(f"{column!r} is not among the candidate columns {', '.join(map(repr, self.columns))}")
        at = self.columns.index(column)
        return ColumnTest(
            column,
            float(self.statistic[at]),
            int(self.df[at]),
            float(self.p_value[at]),
            float(self.log_p[at]),
        )

    def to_dict(self) -> dict[str, Any]:
        """A dictionary of plain values (the columns are those of the tree)."""
        return {
            "statistic": _plain(self.statistic),
            "df": self.df.tolist(),
            "log_p": _plain(self.log_p),
            "log1m_p_adjusted": _plain(self.log1m_p_adjusted),
        }

    @classmethod
    def from_dict(cls, columns: tuple[str, ...], values: Mapping[str, Any]) -> ColumnTests:
        """The tests that `to_dict` wrote.

        Parameters
        ----------
        columns : tuple of str
            Names of the candidate columns of the tree.
        values : dict
            What `to_dict` of tests gave, also after a way through JSON.
        """
        df = np.array(values["df"], dtype=np.int64)
        criterion = np.array(values["log1m_p_adjusted"], dtype=np.float64)
        return cls(
            columns,
            np.array(values["statistic"], dtype=np.float64),
            df,
            np.array(values["log_p"], dtype=np.float64),
            np.where(df > 0, criterion, -np.inf),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One node of a tree.

    Attributes
    ----------
    id : int
        Pre-order number; the root is 1, a left subtree comes before the right one.
    parent : int or None
        Id of the parent.
    depth : int
        Number of splits above.
    n : float
        Sum of the weights of its training rows, which is their number without weights.
    children : pair of int, or None
        Ids of the left and the right child; None in a leaf.
    split : Split or None
        How it sends rows on; None in a leaf.
    counts : float array
        Weight of its training rows in each cell of x: its levels, or the steps between `Tree.edges`. Empty in a tree
        of several features.
    stop : str or None
        Why a leaf was not split: "depth", "few rows", "constant" (x, or every column), "no columns" (to split on),
        "many levels" (of x), "not fitted" (the model's likelihood has no maximum within floating point),
        "not significant", "no admissible cut" or "complexity" (CART).
    tests : Tests or None
        Tests of the candidate columns; None where nothing was tested.
    p_value : float or None
        Adjusted p-value of the column that was split on, or the smallest one in a leaf.
    theta : tuple of float, or None
        Coefficients of the transformation model (trees of one feature).
    log_likelihood : float or None
        Its log-likelihood.
    risk : float or None
        Sum of squares around the mean, or weight misclassified (CART).

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
        what = f"leaf ({self.stop})" if self.split is None else f"split on {self.split.column!r}"
        return f"<Node {self.id}: n = {self.n:g}, depth {self.depth}, {what}>"

    @property
    def is_leaf(self) -> bool:
        """Whether the node was not split."""
        return self.children is None

    def to_dict(self) -> dict[str, Any]:
        """A dictionary of plain values."""
        return {
            "id": self.id,
            "parent": self.parent,
            "depth": self.depth,
            "n": self.n,
            "counts": self.counts.tolist(),
            "children": None if self.children is None else list(self.children),
            "split": None if self.split is None else self.split.to_dict(),
            "stop": self.stop,
            "tests": None if self.tests is None else self.tests.to_dict(),
            "p_value": self.p_value,
            "theta": None if self.theta is None else list(self.theta),
            "log_likelihood": self.log_likelihood,
            "risk": self.risk,
        }

    @classmethod
    def from_dict(cls, columns: tuple[str, ...], values: Mapping[str, Any]) -> Node:
        """The node that `to_dict` wrote.

        Parameters
        ----------
        columns : tuple of str
            Names of the candidate columns of the tree.
        values : dict
            What `to_dict` of a node gave, also after a way through JSON.
        """
        plain = dict(values)
        plain["counts"] = np.array(values["counts"], dtype=np.float64)
        plain["counts"].flags.writeable = False
        plain["children"] = None if values["children"] is None else tuple(values["children"])
        plain["split"] = None if values["split"] is None else Split.from_dict(values["split"])
        plain["tests"] = None if values["tests"] is None else ColumnTests.from_dict(columns, values["tests"])
        plain["theta"] = None if values["theta"] is None else tuple(values["theta"])
        return cls(**plain)


def goes_left(split: Split, column: ColumnInfo, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which rows a split sends to the left child; `values` are numbers, or codes if nominal."""
    to_left = np.array([split.missing == "left", split.larger == "left"])
    if split.kind == "nominal":
        left = set(split.levels[0])
        table = np.array([level in left for level in column.levels] + [to_left[1], to_left[0]])
        chosen: npt.NDArray[np.bool_] = table[values]  # -1 is missing, -2 a level that training did not have
        return chosen
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
    result: npt.NDArray[np.bool_] = left_side
    return result


def assign_unseen_values(split: Split, column: ColumnInfo, values: npt.NDArray[Any], larger: Side) -> Split:
    """A split that also says where to send what its node did not have: with the larger child.

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


def renumber(nodes: Mapping[int, Node]) -> tuple[Node, ...]:
    """Nodes reachable from the root (id 1), numbered anew in pre-order."""
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


def _plain(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
