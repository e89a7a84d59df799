"""A grown tree: rules, routing of rows, pruning, text and JSON. It is frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, UNSEEN
from subgrove._core.text import first_of
from subgrove._core.validate import warn, whole_number
from subgrove._data.table import ColumnInfo, Table, read_like
from subgrove.exceptions import FormatError, UnseenValueWarning
from subgrove.trees.nodes import ALL_ROWS, SIDES, Condition, Node, collapse, goes_left, merge, renumber, rule_text

FORMAT = 1
_MAX_BITS = 8  # number of splits up to which one byte holds the directions of a row

# A node at the depth limit is neither fitted nor tested.
_RESULTS_OF_TESTS = ("children", "split", "tests", "p_value", "theta", "log_likelihood")
_AT_DEPTH_LIMIT: dict[str, Any] = {**dict.fromkeys(_RESULTS_OF_TESTS), "stop": "depth"}


@dataclass(frozen=True, eq=False)
class Tree:
    """A grown tree, as returned by `TransformationTree(...).fit(X, x)` and the other constructors.

    Attributes
    ----------
    method : {"transformation", "conditional_inference", "cart", "joint"}
        Method by which it was grown.
    target : ColumnInfo
        Name, kind and levels of the target. Several features have their names joined by " + ", and no levels.
    columns : tuple of ColumnInfo
        Name, kind and levels of the candidate columns.
    nodes : tuple of Node
        In pre-order: `nodes[i].id == i + 1`.
    edges : tuple of float
        Numeric target: edges of the histograms `Node.counts`; empty otherwise.
    parameters : mapping
        Parameters of the constructor.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=2).fit(X.drop(columns="temp"), X["temp"])
    >>> for leaf, rule in tree.rules.items():
    ...     print(leaf, rule)
    3 season in {WINTER}
    4 season in {SPRING, FALL}
    6 season in {SUMMER} and hum <= 67.292
    7 season in {SUMMER} and hum > 67.292
    >>> tree.apply(X)[:5]
    array([3, 3, 3, 3, 3])
    """

    method: str
    target: ColumnInfo
    columns: tuple[ColumnInfo, ...]
    nodes: tuple[Node, ...]
    edges: tuple[float, ...]
    parameters: Mapping[str, Any]

    @cached_property
    def leaves(self) -> tuple[Node, ...]:
        """Nodes without a split."""
        return tuple(node for node in self.nodes if node.is_leaf)

    @property
    def depth(self) -> int:
        """Maximum number of splits from the root to a leaf."""
        return max(node.depth for node in self.nodes)

    @property
    def rules(self) -> dict[int, str]:
        """Leaf id -> its rule, with conditions on the same column merged."""
        return {leaf: rule_text(conditions) for leaf, conditions in self.conditions.items()}

    @property
    def conditions(self) -> dict[int, tuple[Condition, ...]]:
        """Leaf id -> its rule as conditions, one per column, that can be applied to a table."""
        paths = self._paths()
        return {node.id: paths[node.id] for node in self.leaves}

    @property
    def branches(self) -> dict[int, Condition]:
        """Node id -> condition of the split above; levels that cannot reach the node are left out."""
        paths = self._paths()
        branches = {}
        for _, child, condition in self._edges():
            merged = next(path for path in paths[child] if path.column.name == condition.column.name)
            branches[child] = replace(condition, missing=merged.missing, levels=merged.levels, present=merged.present)
        return branches

    def _paths(self) -> dict[int, tuple[Condition, ...]]:
        """Node id -> conditions of the path to it, merged by column."""
        paths: dict[int, tuple[Condition, ...]] = {1: ()}
        for parent, child, condition in self._edges():
            paths[child] = merge(paths[parent], condition)
        return paths

    def _edges(self) -> Iterator[tuple[int, int, Condition]]:
        """Yield ids of parent and child, and the condition of the split on the rows of the child; parents first."""
        for node in self.nodes:
            if node.split is not None and node.children is not None:
                for side, child in zip(SIDES, node.children, strict=True):
                    yield node.id, child, node.split.condition(side, self._info[node.split.column])

    @cached_property
    def _info(self) -> dict[str, ColumnInfo]:
        return {column.name: column for column in self.columns}

    def apply(self, X: Any) -> npt.NDArray[np.intp]:
        """Return the id of the leaf of each row.

        Parameters
        ----------
        X : frame, table or 2-d array
            Rows with the training columns, in any order; other columns are ignored.

        Returns
        -------
        array of int
            Leaf ids. A new level, or a missing value in a column without missing values in training, goes to the
            child with more training rows, with a warning.
        """
        return self._apply_table(read_like(X, self.columns))

    def _apply_table(self, table: Table) -> npt.NDArray[np.intp]:
        """Apply the tree to a table read with these columns."""
        ids = np.array([leaf.id for leaf in self.leaves], dtype=np.intp)
        return ids.take(self._leaf_numbers(table))

    def _leaf_numbers(self, table: Table) -> npt.NDArray[np.intp]:
        """Return the position in `leaves` of the leaf of each row."""
        if len(self.nodes) == 1:
            return np.zeros(table.n_rows, dtype=np.intp)
        numbers = self._leaf_by_directions(table) if len(self.nodes) - len(self.leaves) <= _MAX_BITS else None
        return self._routed(table) if numbers is None else numbers

    def _leaf_by_directions(self, table: Table) -> npt.NDArray[np.intp] | None:
        """Return the leaf of each row from its direction at all splits; None if values may need a warning.

        Evaluating all splits for all rows, even those that do not reach a split, takes half the time of routing rows
        from node to node. New values need a warning only if a row reaches the split, which is not known here.
        """
        splits = [node for node in self.nodes if node.split is not None]
        directions = np.zeros(table.n_rows, dtype=np.uint8)  # one bit per split: whether the row would go left
        columns: dict[str, npt.NDArray[Any]] = {}
        for bit, node in enumerate(splits):
            assert node.split is not None
            name = node.split.column
            if name not in columns:
                columns[name] = np.ascontiguousarray(table.values(name))
                if _new_values(self._info[name], columns[name], table.unseen.get(name, ())):
                    return None
            directions |= goes_left(node.split, self._info[name], columns[name]).view(np.uint8) << bit
        return self._leaf_of_directions.take(directions)

    @cached_property
    def _leaf_of_directions(self) -> npt.NDArray[np.intp]:
        """Position of the leaf for each combination of directions at the splits."""
        bit, number = len(self.nodes) - len(self.leaves), len(self.leaves)
        combinations = np.arange(2**bit)
        below: dict[int, npt.NDArray[np.intp]] = {}
        for node in reversed(self.nodes):  # children before parents
            if node.children is None:
                number -= 1
                below[node.id] = np.full(len(combinations), number, dtype=np.intp)
            else:
                bit -= 1
                left, right = (below.pop(child) for child in node.children)
                below[node.id] = np.where(combinations >> bit & 1, left, right)
        return below[1]

    def _route(self, table: Table) -> Iterator[tuple[Node, npt.NDArray[np.intp], npt.NDArray[Any]]]:
        """Yield each node with its rows, and their values in the column of its split (none for a leaf)."""
        rows_of = {1: np.arange(table.n_rows)}
        for node in self.nodes:
            rows, values = rows_of.pop(node.id), np.empty(0)
            if node.split is not None and node.children is not None:
                values = table.values(node.split.column)[rows]
                left = goes_left(node.split, self._info[node.split.column], values)
                # By number, which is twice as fast as a mask in NumPy.
                for child, goes in zip(node.children, (left, ~left), strict=True):
                    rows_of[child] = rows.take(np.flatnonzero(goes))
            yield node, rows, values

    def _routed(self, table: Table) -> npt.NDArray[np.intp]:
        """Return the leaf of each row by routing rows from node to node."""
        numbers = np.empty(table.n_rows, dtype=np.intp)
        new_values: dict[str, None] = {}
        number = 0
        for node, rows, values in self._route(table):
            if node.split is None:
                numbers[rows] = number
                number += 1
            else:
                column = self._info[node.split.column]
                new_values |= dict.fromkeys(_new_values(column, values, table.unseen.get(column.name, ())))
        if new_values:
            warn(
                f"New rows have {'; '.join(new_values)}. They go to the larger child of each split on that column.",
                UnseenValueWarning,
            )
        return numbers

    def prune(self, depth: int) -> Tree:
        """Return the tree that growing with `max_depth=depth` gives.

        Parameters
        ----------
        depth : int
            Maximum number of splits from the root to a leaf.

        Examples
        --------
        >>> import subgrove as sg
        >>> X = sg.datasets.bike().X
        >>> tree = sg.trees.TransformationTree().fit(X.drop(columns="temp"), X["temp"])
        >>> tree.prune(1).rules
        {2: 'season in {WINTER, SPRING, FALL}', 3: 'season in {SUMMER}'}
        """
        depth = whole_number("depth", depth, least=0)
        if depth >= self.parameters["max_depth"]:
            return self
        nodes = {
            node.id: replace(node, **_AT_DEPTH_LIMIT) if node.depth == depth else node
            for node in self.nodes
            if node.depth <= depth
        }
        if self.method == "cart":
            nodes = collapse(nodes, self.parameters["cp"])
        return replace(self, nodes=renumber(nodes), parameters={**self.parameters, "max_depth": depth})

    def text(self) -> str:
        """Return the tree as indented lines.

        Examples
        --------
        >>> import subgrove as sg
        >>> X = sg.datasets.bike().X
        >>> tree = sg.trees.ConditionalInferenceTree(max_depth=1).fit(X.drop(columns="work"), X["work"])
        >>> print(tree.text())
        work: conditional inference tree, 731 rows, 2 leaves
        [1] all rows (n = 731)
          [2] weekday in {SUN, SAT} (n = 210) *
          [3] weekday in {MON, TUE, WED, THU, FRI} (n = 521) *
        """
        method = self.method.replace("_", " ")
        rows, leaves = format_count(self.nodes[0].n), _leaves(len(self.leaves))
        lines = [f"{self.target.name}: {method} tree, {rows} rows, {leaves}"]
        branches = self.branches
        for node in self.nodes:
            label = branches.get(node.id, ALL_ROWS)
            star = " *" if node.is_leaf else ""
            lines.append(f"{'  ' * node.depth}[{node.id}] {label} (n = {format_count(node.n)}){star}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Tree of {self.target.name!r}: {_leaves(len(self.leaves))}, depth {self.depth}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.method, self.target, self.columns, len(self.nodes)))

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values that JSON can hold.

        Examples
        --------
        >>> import json
        >>> import subgrove as sg
        >>> X = sg.datasets.bike().X
        >>> tree = sg.trees.CartTree(max_depth=2).fit(X.drop(columns="hum"), X["hum"])
        >>> sg.trees.Tree.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree
        True
        """
        values = msgspec.to_builtins(self, enc_hook=_numbers_or_none)
        nodes = list(values["nodes"])
        for node in nodes:
            if node["tests"] is not None:
                del node["tests"]["columns"]  # the columns of the tree
        return {"format": FORMAT, **values, "nodes": nodes}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Tree:
        """Restore a tree from `to_dict`.

        Parameters
        ----------
        values : dict
            Output of `to_dict`, possibly after a round trip through JSON.
        """
        with restoring("Tree", values):
            names = tuple(column["name"] for column in values["columns"])
            nodes = [_with_columns(node, names) for node in values["nodes"]]
            tree = msgspec.convert({**values, "nodes": nodes}, cls, dec_hook=_frozen_array)
            _check_nodes(tree.nodes, names)
        return tree


@contextmanager
def restoring(name: str, values: Any) -> Iterator[None]:
    """Check the format of a dictionary of `to_dict`; report errors in it as a `FormatError`."""
    if not isinstance(values, Mapping) or values.get("format") != FORMAT:
        received = values.get("format") if isinstance(values, Mapping) else type(values).__name__
        raise FormatError(f"Expected a dictionary of {name}.to_dict() in format {FORMAT}; got {received!r}.")
    try:
        yield
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise FormatError(f"The dictionary is not one of {name}.to_dict(): {error!r}.") from error


def _numbers_or_none(array: npt.NDArray[Any]) -> list[Any]:
    """Return an array as a list, with None for what JSON cannot hold."""
    return [number if np.isfinite(number) else None for number in array.tolist()]


def _frozen_array(array_type: Any, values: list[Any]) -> npt.NDArray[Any]:
    """Return a list as an array of this type; None becomes NaN."""
    (dtype,) = get_args(get_args(array_type)[1])
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


def _with_columns(node: Mapping[str, Any], columns: tuple[str, ...]) -> Mapping[str, Any]:
    """Return a node with the columns of its tests, and with the criterion of columns that were not tested."""
    tests = node["tests"]
    if tests is None:
        return node
    criterion = [each if df else -np.inf for each, df in zip(tests["log1m_p_adjusted"], tests["df"], strict=True)]
    return {**node, "tests": {**tests, "columns": columns, "log1m_p_adjusted": criterion}}


def _leaves(count: int) -> str:
    return "1 leaf" if count == 1 else f"{count} leaves"


def format_count(n: float) -> str:
    """Return a count as text, without a decimal point if it is whole."""
    return str(int(n)) if float(n).is_integer() else f"{n:.6g}"


def _new_values(column: ColumnInfo, values: npt.NDArray[Any], unseen: tuple[str, ...]) -> list[str]:
    """Describe missing values and levels that did not occur in training."""
    new = []
    missing = (values == MISSING) if column.is_nominal else np.isnan(values)
    if missing.any() and not column.has_missing:
        new.append(f"missing values in column {column.name!r}, which had none in training")
    if unseen and ((values == UNSEEN) if column.is_nominal else np.isinf(values)).any():
        listed = first_of([repr(level) for level in unseen], most=5)
        new.append(f"levels of column {column.name!r} that did not occur in training: {listed}")
    return new


def _check_nodes(nodes: tuple[Node, ...], columns: tuple[str, ...]) -> None:
    """Raise an error if nodes are not a tree in pre-order, or use unknown columns."""
    expected = [1]
    for node in nodes:
        if not expected or node.id != expected.pop():
            raise ValueError("its nodes are not a tree in pre-order")
        if node.children is not None:
            if node.children[0] != node.id + 1 or not node.id + 1 < node.children[1] <= len(nodes):
                raise ValueError(f"node {node.id} has children that do not exist")
            expected += [node.children[1], node.children[0]]
        if (node.split is None) != (node.children is None):
            raise ValueError(f"node {node.id} has a split without children, or children without a split")
        if node.split is not None and node.split.column not in columns:
            raise ValueError(f"node {node.id} splits {node.split.column!r}, which is not among the columns")
    if expected:
        raise ValueError("nodes are missing")
