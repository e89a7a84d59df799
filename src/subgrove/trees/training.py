"""Training rows of a tree, the range and histogram of the target, and base classes of the tree constructors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Rows
from subgrove._core.text import TOGETHER
from subgrove._core.validate import ParamsMixin, public_names, reject_another_index
from subgrove._core.weights import read_weights
from subgrove._data.table import ColumnInfo, Floats, Kind, Table, TypedColumn, read_series, read_table
from subgrove.exceptions import InputError
from subgrove.trees.candidates import SortedTable, ascending
from subgrove.trees.nodes import Node
from subgrove.trees.tree import Tree

BINS = 48  # of the histogram of a numeric target


@dataclass(frozen=True, eq=False)
class Training:
    """Rows to grow a tree on: those with a value of the target and a positive weight.

    Attributes
    ----------
    table : Table
        Candidate columns.
    members : tuple of TypedColumn
        The target, or each of several features that share a tree; without missing values.
    weights : float array or None
        Sample weights; None if all are 1.
    columns : SortedTable or None
        Sorted orders and ranges of the table, possibly with more columns; None if they are not shared.
    """

    table: Table
    members: tuple[TypedColumn, ...]
    weights: Floats | None
    columns: SortedTable | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def target(self) -> ColumnInfo:
        """Name, kind and levels of the target; several features have a joint name, no levels and no order."""
        if len(self.members) == 1:
            return self.members[0].info
        return ColumnInfo(TOGETHER.join(member.info.name for member in self.members), "nominal")

    @property
    def values(self) -> npt.NDArray[Any]:
        """Numbers of the target, or codes if it is nominal."""
        return self.members[0].values

    @property
    def order(self) -> npt.NDArray[Any]:
        """Rows in ascending order of the target; the shared order if the target is a column of the shared table."""
        shared = self.columns
        if shared is None or shared.orders is None or self.target.name not in shared.table.names:
            return ascending(self.values)
        return shared.order(shared.table.positions()[shared.table.names.index(self.target.name)])

    def rows(self, rows: Rows) -> Training:
        """Return some of the rows, without shared orders."""
        members = tuple(TypedColumn(member.info, member.values[rows]) for member in self.members)
        return Training(self.table.rows(rows), members, None if self.weights is None else self.weights[rows])

    @property
    def stop(self) -> str | None:
        """Reason why no tree can grow: "few rows", "constant" or "no columns"; None if one can."""
        if self.n_rows < 2:
            return "few rows"
        if not any(varies(member.values) for member in self.members):
            return "constant"
        return None if self.table.columns else "no columns"


@dataclass(frozen=True)
class Support:
    """Range of a numeric target: the interval on which h is a polynomial."""

    low: float
    high: float

    @classmethod
    def of(cls, x: Floats) -> Support:
        """Return the range of x."""
        support = cls(float(x.min()), float(x.max()))
        if not support.half > 1e-300:
            raise InputError(
                f"x has a range of {support.high - support.low:g}, too small for floats. Rescale it: multiply x by a "
                f"large number."
            )
        return support

    @property
    def half(self) -> float:
        """Half the width, since the width itself may overflow."""
        return self.high / 2 - self.low / 2

    @property
    def unit(self) -> float:
        """Length of 1 on the scale of `scaled`."""
        return 0.5 / self.half

    @property
    def log_range(self) -> float:
        """Logarithm of the width."""
        return float(np.log(self.half) + np.log(2.0))

    def scaled(self, x: Floats) -> Floats:
        """Return x on a scale where the support is [0, 1]."""
        scaled: Floats = (x / 2 - self.low / 2) / self.half
        return scaled

    def raw(self, u: Floats) -> Floats:
        """Return the inverse of `scaled`."""
        with np.errstate(over="ignore"):
            raw: Floats = self.low + u * self.half + u * self.half
        return raw


@dataclass(frozen=True, eq=False)
class Histogram:
    """Histogram of the target, which nodes store for plots of the tree.

    Attributes
    ----------
    cell : int array
        Cell of each row.
    n_cells : int
        Number of cells.
    edges : tuple of float
        Numeric target: edges of equal-width cells over its range. Empty otherwise: a cell is then a level, and there
        are no cells if several features share the tree.
    """

    cell: npt.NDArray[np.intp]
    n_cells: int
    edges: tuple[float, ...]

    @classmethod
    def of(cls, info: ColumnInfo, values: npt.NDArray[Any]) -> Histogram:
        """Return the cells of a target: its levels, or equal-width bins over its range."""
        if not len(values) or not (info.levels or info.kind == "numeric"):
            return cls(np.zeros(len(values), dtype=np.intp), len(info.levels), ())
        if info.kind != "numeric":
            first = 0 if info.is_nominal else 1
            return cls(values.astype(np.intp) - first, len(info.levels), ())
        low, high = float(values.min()), float(values.max())
        # Halved before the difference is taken, since the range of the target may overflow.
        width = high / 2 - low / 2
        share = (values / 2 - low / 2) / width if width > 0 else np.zeros(len(values))
        cell = np.minimum((share * BINS).astype(np.intp), BINS - 1)
        at = np.linspace(0, 1, BINS + 1)
        return cls(cell, BINS, tuple((low * (1 - at) + high * at).tolist()))

    def counts(self, group: npt.NDArray[np.intp], n_groups: int, weights: Floats | None) -> Floats:
        """Return the weight in each cell of each group of rows: (n_groups, n_cells)."""
        if not self.n_cells:
            return np.empty((n_groups, 0))
        flat = np.bincount(group * self.n_cells + self.cell, weights=weights, minlength=n_groups * self.n_cells)
        return flat.reshape(n_groups, self.n_cells).astype(np.float64)

    def node_counts(self, leaf: npt.NDArray[np.intp], parents: Sequence[int | None], weights: Floats | None) -> Floats:
        """Return the weight of each node in each cell: counted in leaves, summed up to the root.

        `leaf` is the position of the leaf of each row among the nodes, `parents` that of the parent of each node, which
        comes before the node.
        """
        counts = self.counts(leaf, len(parents), weights)
        for node in range(len(parents) - 1, -1, -1):
            parent = parents[node]
            if parent is not None:
                counts[parent] += counts[node]
        counts.flags.writeable = False
        return counts


def read_training(
    X: Any, x: Any, weights: Any = None, *, kinds: Mapping[str, Kind] | None = None, x_kind: Kind | None = None
) -> Training:
    """Read and validate the arguments of `fit`."""
    table = read_table(X, kinds=kinds)
    series = read_series(x, n_rows=table.n_rows, kind=x_kind)
    reject_another_index(X, x=x, sample_weight=weights)
    return validate_training(table, (series,), read_weights(weights, table.n_rows))


def validate_training(table: Table, members: tuple[TypedColumn, ...], weights: Floats | None) -> Training:
    """Return the training rows; raise an error if no tree can grow on them."""
    for member in members:
        _reject_x_in_table(table, member)
    training = training_rows(table, members, weights)
    name = "x" if len(members) == 1 else "every x"
    if training.stop == "few rows":
        raise InputError(
            f"{training.n_rows} row has a value of {name} and a positive weight; a tree needs at least 2 rows. "
            f"Pass more rows."
        )
    if training.stop == "constant":
        member = training.members[0]
        value = member.values[0]
        shown = f"every row has {member.info.levels[int(value)] if member.info.is_nominal else value}"
        raise InputError(
            f"{name} ({training.target.name!r}) is constant{f': {shown}' if len(members) == 1 else ''}. "
            f"A constant feature has no subgroups; leave it out."
        )
    return training


def training_rows(
    table: Table, members: tuple[TypedColumn, ...], weights: Floats | None, columns: SortedTable | None = None
) -> Training:
    """Select the rows with a value of every member and a positive weight; `columns` is used if these are all rows."""
    used = ~np.logical_or.reduce([member.missing for member in members])
    if weights is not None:
        used &= weights > 0
    training = Training(table, members, weights, columns)
    if not used.all():
        training = training.rows(np.flatnonzero(used))
    if training.weights is not None and (training.weights == 1).all():
        training = replace(training, weights=None)
    return training


def select_columns(table: Table, names: Sequence[str]) -> Table:
    """Return some columns in the order of the table: a copy, or the table itself if it has no others.

    Columns are contiguous in memory whatever the layout of the table, so that sums over them are equal to the last
    digit.
    """
    if len(names) == len(table.columns) and all(values.flags.f_contiguous for values in (table.numbers, table.codes)):
        return table
    selected = [
        (column, at) for column, at in zip(table.columns, table.positions(), strict=True) if column.name in names
    ]
    numbers = _copy_columns(table.numbers, [at for column, at in selected if not column.is_nominal])
    codes = _copy_columns(table.codes, [at for column, at in selected if column.is_nominal])
    return Table(tuple(column for column, _ in selected), numbers, codes)


def varies(values: npt.NDArray[Any]) -> bool:
    """Return whether there are two distinct values."""
    return bool((values != values[:1]).any())


def has_three_values(values: npt.NDArray[Any]) -> bool:
    """Return whether there are more than two distinct values."""
    return varies(values[values != values[:1]])


def _copy_columns(values: npt.NDArray[Any], places: list[int]) -> npt.NDArray[Any]:
    copy = np.empty((len(places), len(values)), dtype=values.dtype)
    for column, at in zip(copy, places, strict=True):
        column[:] = values[:, at]
    return copy.T


def _reject_x_in_table(table: Table, x: TypedColumn) -> None:
    if x.info.name not in table.names:
        return
    column = table.series(x.info.name)
    nominal = column.info.is_nominal
    if column.info.kind == x.info.kind and np.array_equal(column.values, x.values, equal_nan=not nominal):
        raise InputError(
            f"X has a column {x.info.name!r} that equals x. A feature cannot define its own subgroups; leave it out."
        )


class BaseTree(ParamsMixin):
    """Constructor of a tree: stores parameters, and grows a frozen `Tree` from training rows."""

    _method: ClassVar[str]

    @abstractmethod
    def _grow(self, training: Training) -> Tree:
        """Grow the tree on rows that allow it."""

    @abstractmethod
    def _validate(self) -> Any:
        """Raise an error if a parameter is invalid; return the validated parameters."""

    def _grow_or_stop(self, training: Training) -> Tree:
        """Grow the tree; return a single leaf if no tree can grow on these rows."""
        return self._grow(training) if training.stop is None else self._single_leaf(training, training.stop)

    def _single_leaf(self, training: Training, stop: str) -> Tree:
        """Return a tree with all rows in one leaf; `stop` is the reason."""
        histogram = Histogram.of(training.target, training.values)
        (counts,) = histogram.node_counts(np.zeros(training.n_rows, dtype=np.intp), [None], training.weights)
        n = float(training.n_rows if training.weights is None else training.weights.sum())
        # At depth 0 the depth limit is the reason, as in a grown tree; so pruning equals growing with less depth.
        root = Node(1, None, 0, n, counts, stop=stop if self.plain_params()["max_depth"] else "depth")
        return self._tree(training, (root,), histogram)

    def _tree(self, training: Training, nodes: tuple[Node, ...], histogram: Histogram) -> Tree:
        """Return the tree with these nodes."""
        columns, parameters = training.table.columns, self.plain_params()
        return Tree(self._method, training.target, columns, nodes, histogram.edges, parameters)

    @classmethod
    def _of_the_fitted(cls) -> frozenset[str]:
        return public_names(Tree)


class SingleTargetTree(BaseTree):
    """Constructor of a tree with one target."""

    def fit(
        self,
        X: Any,
        x: Any,
        sample_weight: Any = None,
        *,
        kinds: Mapping[str, Kind] | None = None,
        x_kind: Kind | None = None,
    ) -> Tree:
        """Grow the tree of a feature on the other columns.

        Parameters
        ----------
        X : pandas or polars frame, pyarrow table or 2-d array
            Candidate columns, without the feature; missing values are allowed.
        x : column or 1-d array
            Feature to find subgroups for. Rows with a missing value of it are left out.
        sample_weight : 1-d array or FrequencyWeights, optional
            Relative weights, whose scale does not matter; a frequency is equivalent to repeating the row.
        kinds : mapping, optional
            Column name -> "numeric", "ordered" or "nominal", to override the kind that the dtype implies.
        x_kind : {"numeric", "ordered", "nominal"}, optional
            Kind of x, to override the kind that its dtype implies.

        Returns
        -------
        Tree
        """
        self._validate()  # before the data are read
        return self._grow(read_training(X, x, sample_weight, kinds=kinds, x_kind=x_kind))
