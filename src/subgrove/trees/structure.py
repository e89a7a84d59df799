"""A grown tree and what can be asked of it. It is frozen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, UNSEEN
from subgrove._data.table import ColumnInfo, Table, read_like
from subgrove.exceptions import FormatError, ParameterError, UnseenValueWarning
from subgrove.trees.conditions import ALL_ROWS, Condition, merge, rule_text, split_condition
from subgrove.trees.nodes import SIDES, Node, goes_left, renumber

FORMAT = 1
_FEW_SPLITS = 8  # a bit of a byte for each

# A node at the depth limit is neither fitted nor tested.
_AT_DEPTH_LIMIT: dict[str, Any] = {
    "children": None,
    "split": None,
    "stop": "depth",
    "tests": None,
    "p_value": None,
    "theta": None,
    "log_likelihood": None,
}


@dataclass(frozen=True, eq=False)
class Tree:
    """A grown tree: what `TransformationTree(...).fit(X, x)` and its siblings return.

    Attributes
    ----------
    method : {"transformation", "conditional_inference", "cart", "joint"}
        What grew it.
    target : ColumnInfo
        Name, kind and levels of x. Several features have their names joined by " + ", and no levels.
    columns : tuple of ColumnInfo
        Name, kind and levels of the candidate columns.
    nodes : tuple of Node
        In pre-order: `nodes[i].id == i + 1`.
    edges : tuple of float
        Numeric x: borders of the cells that `Node.counts` counts in; empty otherwise.
    parameters : mapping
        What the constructor was given.

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
    edges: tuple[float, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def leaves(self) -> tuple[Node, ...]:
        """The nodes that were not split."""
        return tuple(node for node in self.nodes if node.is_leaf)

    @property
    def depth(self) -> int:
        """Number of splits above the deepest leaf."""
        return max(node.depth for node in self.nodes)

    @property
    def rules(self) -> dict[int, str]:
        """Leaf id -> the rule that its rows satisfy, conditions on the same column merged."""
        return {leaf: rule_text(conditions) for leaf, conditions in self.conditions.items()}

    @property
    def conditions(self) -> dict[int, tuple[Condition, ...]]:
        """Leaf id -> its rule as conditions, one for each column, that can be asked of a table."""
        paths = self._paths()
        return {node.id: paths[node.id] for node in self.leaves}

    @property
    def branches(self) -> dict[int, Condition]:
        """Node id -> what the split above asks of its rows; levels that cannot get there are left out."""
        info = {column.name: column for column in self.columns}
        paths = self._paths()
        asked = {}
        for node in self.nodes:
            if node.split is not None and node.children is not None:
                for side, child in zip(SIDES, node.children, strict=True):
                    condition = split_condition(node.split, side, info[node.split.column])
                    merged = next(path for path in paths[child] if path.column.name == node.split.column)
                    asked[child] = replace(
                        condition, missing=merged.missing, levels=merged.levels, present=merged.present
                    )
        return asked

    def _paths(self) -> dict[int, tuple[Condition, ...]]:
        """Node id -> conditions on the way to it, merged by column."""
        info = {column.name: column for column in self.columns}
        paths: dict[int, tuple[Condition, ...]] = {1: ()}
        for node in self.nodes:
            if node.split is not None and node.children is not None:
                for side, child in zip(SIDES, node.children, strict=True):
                    condition = split_condition(node.split, side, info[node.split.column])
                    paths[child] = merge(paths[node.id], condition)
        return paths

    def apply(self, X: Any) -> npt.NDArray[np.intp]:
        """Id of the leaf of each row of a table.

        Parameters
        ----------
        X : frame, table or 2-d array
            New rows, with the columns of training (in any order; others are ignored).

        Returns
        -------
        array of int
            Leaf ids. A level that training did not have goes with the larger child, with a warning;
            so do missing values in a column that had none in training.
        """
        table = read_like(X, self.columns)
        return self._apply_table(table)

    def _apply_table(self, table: Table, stacklevel: int = 3) -> npt.NDArray[np.intp]:
        """The same for a table that was read with these columns; `stacklevel` is where a warning points to."""
        ids = np.array([leaf.id for leaf in self.leaves], dtype=np.intp)
        return ids.take(self._leaf_numbers(table, stacklevel + 1))

    def _leaf_numbers(self, table: Table, stacklevel: int = 3) -> npt.NDArray[np.intp]:
        """For each row of such a table the number of its leaf among `leaves`, from 0."""
        if len(self.nodes) == 1:
            return np.zeros(table.n_rows, dtype=np.intp)
        found = self._by_answers(table) if len(self.nodes) - len(self.leaves) <= _FEW_SPLITS else None
        return self._routed(table, stacklevel + 1) if found is None else found

    def _by_answers(self, table: Table) -> npt.NDArray[np.intp] | None:
        """The leaf of each row from its answers to all splits; None where values must be warned of.

        Asking all rows, also those that never get to a split, takes half the time of sorting rows out to the nodes.
        What training did not have is warned of only where a row gets to the split, which is not known here.
        """
        splits = [node for node in self.nodes if node.split is not None]
        answers = np.zeros(table.n_rows, dtype=np.uint8)  # one bit for each split: whether the row would go left
        columns: dict[str, npt.NDArray[Any]] = {}
        info = {column.name: column for column in self.columns}
        for bit, node in enumerate(splits):
            assert node.split is not None
            name = node.split.column
            if name not in columns:
                columns[name] = np.ascontiguousarray(table.values(name))
                if _surprises(info[name], columns[name], table.unseen.get(name, ())):
                    return None
            answers |= goes_left(node.split, info[name], columns[name]).view(np.uint8) << bit
        return self._leaf_of_answers.take(answers)

    @cached_property
    def _leaf_of_answers(self) -> npt.NDArray[np.intp]:
        """For each combination of answers to the splits the number of the leaf that it leads to."""
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

    def _routed(self, table: Table, stacklevel: int) -> npt.NDArray[np.intp]:
        """The leaf of each row, sorting rows out to the nodes."""
        info = {column.name: column for column in self.columns}
        numbers = np.empty(table.n_rows, dtype=np.intp)
        rows_of = {1: np.arange(table.n_rows)}
        surprises: dict[str, None] = {}
        number = 0
        for node in self.nodes:
            rows = rows_of.pop(node.id)
            if node.split is None or node.children is None:
                numbers[rows] = number
                number += 1
                continue
            column = info[node.split.column]
            values = table.values(column.name)[rows]
            surprises |= dict.fromkeys(_surprises(column, values, table.unseen.get(column.name, ())))
            left = goes_left(node.split, column, values)
            # By number: NumPy takes rows by number at twice the speed of a mask.
            for child, chosen in zip(node.children, (left, ~left), strict=True):
                rows_of[child] = rows.take(np.flatnonzero(chosen))
        if surprises:
            warnings.warn(
                f"New rows hold {'; '.join(surprises)}. They go with the larger child of each split on that column.",
                UnseenValueWarning,
                stacklevel=stacklevel,
            )
        return numbers

    def prune(self, depth: int) -> Tree:
        """The tree that growing with `max_depth=depth` would have given.

        Parameters
        ----------
        depth : int
            The largest number of splits above a leaf.

        Examples
        --------
        >>> import subgrove as sg
        >>> X = sg.datasets.bike().X
        >>> tree = sg.trees.TransformationTree().fit(X.drop(columns="temp"), X["temp"])
        >>> tree.prune(1).rules
        {2: 'season in {WINTER, SPRING, FALL}', 3: 'season in {SUMMER}'}
        """
        if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or depth < 0:
            raise ParameterError(f"depth must be a whole number >= 0; got {depth!r}.")
        if depth >= self.parameters["max_depth"]:
            return self
        nodes = {
            node.id: replace(node, **_AT_DEPTH_LIMIT) if node.depth == depth else node
            for node in self.nodes
            if node.depth <= depth
        }
        if self.method == "cart":
            from subgrove.trees.cart import collapse

            nodes = collapse(nodes, self.parameters["cp"])
        return replace(self, nodes=renumber(nodes), parameters={**self.parameters, "max_depth": int(depth)})

    def text(self) -> str:
        """The tree as indented lines.

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
        """A dictionary of plain values that JSON can hold.

        Examples
        --------
        >>> import json
        >>> import subgrove as sg
        >>> X = sg.datasets.bike().X
        >>> tree = sg.trees.CartTree(max_depth=2).fit(X.drop(columns="hum"), X["hum"])
        >>> sg.trees.Tree.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree
        True
        """
        return {
            "format": FORMAT,
            "method": self.method,
            "parameters": dict(self.parameters),
            "target": column_dict(self.target),
            "columns": [column_dict(column) for column in self.columns],
            "edges": list(self.edges),
            "nodes": [node.to_dict() for node in self.nodes],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Tree:
        """The tree that `to_dict` wrote.

        Parameters
        ----------
        values : dict
            What `to_dict` of a tree gave, also after a way through JSON.
        """
        if not isinstance(values, Mapping) or values.get("format") != FORMAT:
            found = values.get("format") if isinstance(values, Mapping) else type(values).__name__
            raise FormatError(f"Expected a dictionary of Tree.to_dict() in format {FORMAT}; got {found!r}.")
        try:
            columns = tuple(column_from(column) for column in values["columns"])
            names = tuple(column.name for column in columns)
            nodes = tuple(Node.from_dict(names, node) for node in values["nodes"])
            _check_nodes(nodes, names)
            edges, parameters = tuple(values["edges"]), dict(values["parameters"])
            return cls(values["method"], column_from(values["target"]), columns, nodes, edges, parameters)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"The dictionary is not one of Tree.to_dict(): {error!r}.") from error


def _leaves(count: int) -> str:
    return "1 leaf" if count == 1 else f"{count} leaves"


def format_count(n: float) -> str:
    """A count without a needless decimal point."""
    return str(int(n)) if float(n).is_integer() else f"{n:.6g}"


def _surprises(column: ColumnInfo, values: npt.NDArray[Any], unseen: tuple[str, ...]) -> list[str]:
    """What values, numbers or codes, hold that training did not."""
    what = []
    missing = (values == MISSING) if column.is_nominal else np.isnan(values)
    if missing.any() and not column.has_missing:
        what.append(f"missing values in column {column.name!r}, which had none in training")
    if unseen and ((values == UNSEEN) if column.is_nominal else np.isinf(values)).any():
        more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
        listed = ", ".join(repr(level) for level in unseen[:5]) + more
        what.append(f"levels of column {column.name!r} that training did not have: {listed}")
    return what


def _check_nodes(nodes: tuple[Node, ...], columns: tuple[str, ...]) -> None:
    """Refuse nodes that are no tree in pre-order, or that ask for columns that are not there."""
    expected = [1]
    for node in nodes:
        if not expected or node.id != expected.pop():
            raise ValueError("its nodes are not a tree in pre-order")
        if node.children is not None:
            if node.children[0] != node.id + 1 or not node.id + 1 < node.children[1] <= len(nodes):
                raise ValueError(f"node {node.id} has children that are not there")
            expected += [node.children[1], node.children[0]]
        if (node.split is None) != (node.children is None):
            raise ValueError(f"node {node.id} has a split without children, or children without a split")
        if node.split is not None and node.split.column not in columns:
            raise ValueError(f"node {node.id} splits {node.split.column!r}, which is not among the columns")
    if expected:
        raise ValueError("it lacks nodes")


def column_dict(column: ColumnInfo) -> dict[str, Any]:
    """A dictionary of plain values."""
    return {
        "name": column.name,
        "kind": column.kind,
        "levels": list(column.levels),
        "has_missing": column.has_missing,
        "is_date": column.is_date,
        "is_integer": column.is_integer,
        "is_duration": column.is_duration,
    }


def column_from(values: Mapping[str, Any]) -> ColumnInfo:
    """The column that `column_dict` wrote."""
    return ColumnInfo(**{**values, "levels": tuple(values["levels"])})
