"""Constructors of trees: their base classes, and the trees grown by hypothesis tests.

Transformation trees, conditional inference trees and joint trees of several features test the scores of the target
against every candidate column, and split the most significant column where the scores differ most. They differ in the
scores (`target_scores`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.validate import ParamsMixin, public_names, reject_another_index, whole_number
from subgrove._core.weights import read_weights
from subgrove._data.table import Kind, Table, TypedColumn, read_series, read_table
from subgrove.exceptions import InputError, LengthError
from subgrove.trees.growth import StoppingRules, grow
from subgrove.trees.nodes import Node
from subgrove.trees.target_scores import FixedScores, Histogram, JointScores, checked_likelihood, transformation_scores
from subgrove.trees.training import Training, training_rows, varies
from subgrove.trees.tree import Tree


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
        table = read_table(X, kinds=kinds)
        series = read_series(x, n_rows=table.n_rows, kind=x_kind)
        reject_another_index(X, x=x, sample_weight=sample_weight)
        return self._grow(validate_training(table, (series,), read_weights(sample_weight, table.n_rows)))


@dataclass(eq=False, repr=False)
class TransformationTree(SingleTargetTree):
    """Tree whose leaves differ in the distribution of a numeric target.

    In each node the target has the model P(X <= x) = Phi(h(x)), with h a monotone Bernstein polynomial. The scores of
    its coefficients are tested against every column; the most significant column is split where the scores differ most.
    So the tree detects changes of location, scale and shape (Hothorn and Zeileis 2017).

    Parameters
    ----------
    max_depth : int, default 30
        Maximum number of splits from the root to a leaf; 0 gives a single leaf.
    min_samples_leaf : int, default 30
        Minimum number of rows (sum of weights) in a leaf; a child also has at least 1 % of the rows of its parent.
    alpha : float, default 0.05
        Significance level of the tests, after Sidak's adjustment for the number of columns; 1 splits whenever possible.
    order : int, default 5
        Order of the Bernstein polynomial.
    likelihood : {"auto", "density", "interval"}, default "auto"
        "interval" treats x as integers, with P(x - 1 < X <= x); "auto" does so for an integer dtype.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=1).fit(X.drop(columns="hum"), X["hum"])
    >>> print(tree.text())
    hum: transformation tree, 731 rows, 2 leaves
    [1] all rows (n = 731)
      [2] weather in {GOOD} (n = 463) *
      [3] weather in {BAD} (n = 268) *
    """

    _method: ClassVar[str] = "transformation"

    max_depth: int = 30
    min_samples_leaf: int = 30
    alpha: float = 0.05
    order: int = 5
    likelihood: Literal["auto", "density", "interval"] = "auto"

    def _grow(self, training: Training) -> Tree:
        rules, order, likelihood = self._validate()
        if training.target.kind != "numeric":
            raise InputError(
                f"x ({training.target.name!r}) is {training.target.kind}, but a transformation tree needs numbers. "
                f"Use ConditionalInferenceTree for it, or convert it if it holds numbers."
            )
        scores = transformation_scores(training.target, training.values, order, likelihood, lambda: training.order)
        return self._tree(training, *grow(training, scores, rules))

    def _validate(self) -> tuple[StoppingRules, int, str]:
        rules = StoppingRules.checked(self.max_depth, self.min_samples_leaf, self.alpha)
        return rules, whole_number("order", self.order, least=1), checked_likelihood(self.likelihood)


@dataclass(eq=False, repr=False)
class ConditionalInferenceTree(SingleTargetTree):
    """Tree whose leaves differ in the frequencies of a nominal target, or the mean of an ordered or numeric one.

    Each column is tested for independence of the target; the most significant one is split where the target differs
    most (Hothorn, Hornik and Zeileis 2006). The scores of the target are fixed: indicators of its levels (a single one
    if there are two), the numbers 1, 2, ... of ordered levels, the values of a numeric target.

    Parameters
    ----------
    max_depth : int, default 30
        Maximum number of splits from the root to a leaf; 0 gives a single leaf.
    min_samples_leaf : int, default 30
        Minimum number of rows (sum of weights) in a leaf; a child also has at least 1 % of the rows of its parent.
    alpha : float, default 0.05
        Significance level of the tests, after Sidak's adjustment for the number of columns; 1 splits whenever possible.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.ConditionalInferenceTree(max_depth=1).fit(X.drop(columns="season"), X["season"])
    >>> tree.rules
    {2: 'temp <= 19', 3: 'temp > 19'}
    """

    _method: ClassVar[str] = "conditional_inference"

    max_depth: int = 30
    min_samples_leaf: int = 30
    alpha: float = 0.05

    def _grow(self, training: Training) -> Tree:
        scores = FixedScores(training.target, training.values)
        return self._tree(training, *grow(training, scores, self._validate()))

    def _validate(self) -> StoppingRules:
        return StoppingRules.checked(self.max_depth, self.min_samples_leaf, self.alpha)


@dataclass(eq=False, repr=False)
class JointTree(BaseTree):
    """Tree whose leaves differ in the distribution of any of several features.

    Each feature has the same scores as in a tree of its own: those of a transformation model if it is numeric with
    more than two distinct values, those of a conditional inference tree otherwise. The scores are concatenated and
    tested jointly against every column, so that one tree serves features that are resampled jointly.

    Parameters
    ----------
    max_depth : int, default 30
        Maximum number of splits from the root to a leaf; 0 gives a single leaf.
    min_samples_leaf : int, default 30
        Minimum number of rows (sum of weights) in a leaf; a child also has at least 1 % of the rows of its parent.
    alpha : float, default 0.05
        Significance level of the tests, after Sidak's adjustment for the number of columns; 1 splits whenever possible.
    order : int, default 5
        Order of the Bernstein polynomials of numeric features.

    Notes
    -----
    The scores describe the marginal distribution of each feature, not the dependence between the features: subgroups
    that differ only in the correlation of two features are not separated. Each numeric feature adds `order + 1` scores,
    so many features need many rows: the test loses power as the number of scores approaches the number of rows in a
    node.

    The scores of each feature are divided by their standard deviation in each node, so that no feature dominates. A
    constant feature has no influence.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> both = ["temp", "hum"]
    >>> tree = sg.trees.JointTree(max_depth=2).fit(X.drop(columns=both), X[both])
    >>> print(tree.text())
    temp + hum: joint tree, 731 rows, 4 leaves
    [1] all rows (n = 731)
      [2] season in {WINTER, SPRING, FALL} (n = 543)
        [3] season in {WINTER} (n = 181) *
        [4] season in {SPRING, FALL} (n = 362) *
      [5] season in {SUMMER} (n = 188)
        [6] weather in {GOOD} (n = 136) *
        [7] weather in {BAD} (n = 52) *
    """

    _method: ClassVar[str] = "joint"

    max_depth: int = 30
    min_samples_leaf: int = 30
    alpha: float = 0.05
    order: int = 5

    def fit(
        self,
        X: Any,
        xs: Any,
        sample_weight: Any = None,
        *,
        kinds: Mapping[str, Kind] | None = None,
        xs_kinds: Mapping[str, Kind] | None = None,
    ) -> Tree:
        """Grow the tree of several features on the other columns.

        Parameters
        ----------
        X : pandas or polars frame, pyarrow table or 2-d array
            Candidate columns, without the features; missing values are allowed.
        xs : pandas or polars frame, pyarrow table or 2-d array
            Features to find subgroups for. Rows with a missing value of any of them are left out.
        sample_weight : 1-d array or FrequencyWeights, optional
            Relative weights, whose scale does not matter; a frequency is equivalent to repeating the row.
        kinds, xs_kinds : mapping, optional
            Name of a column of X, or of xs -> "numeric", "ordered" or "nominal", to override the kind that the dtype
            implies.

        Returns
        -------
        Tree
            The name of its target is the names of the features joined by " + ". With several features, nodes have
            neither coefficients nor counts.
        """
        self._validate()  # before the data are read
        table, features = read_table(X, kinds=kinds), read_table(xs, kinds=xs_kinds, argument="xs")
        if features.n_rows != table.n_rows:
            raise LengthError(
                f"xs has {features.n_rows} rows, but X has {table.n_rows}. Pass one row of xs for each row of X."
            )
        reject_another_index(X, xs=xs, sample_weight=sample_weight)
        members = tuple(features.series(name) for name in features.names)
        return self._grow(validate_training(table, members, read_weights(sample_weight, table.n_rows)))

    def _grow(self, training: Training) -> Tree:
        rules, order = self._validate()
        scores = JointScores([member for member in training.members if varies(member.values)], order)
        return self._tree(training, *grow(training, scores, rules))

    def _validate(self) -> tuple[StoppingRules, int]:
        rules = StoppingRules.checked(self.max_depth, self.min_samples_leaf, self.alpha)
        return rules, whole_number("order", self.order, least=1)


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


def _reject_x_in_table(table: Table, x: TypedColumn) -> None:
    if x.info.name not in table.names:
        return
    column = table.series(x.info.name)
    nominal = column.info.is_nominal
    if column.info.kind == x.info.kind and np.array_equal(column.values, x.values, equal_nan=not nominal):
        raise InputError(
            f"X has a column {x.info.name!r} that equals x. A feature cannot define its own subgroups; leave it out."
        )
