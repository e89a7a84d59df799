"""Trees grown by hypothesis tests: transformation trees, conditional inference trees, joint trees of several features.

All three test the scores of the target against every candidate column, and split the most significant column where
the scores differ most. They differ in the scores (`target_scores`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from subgrove._core.validate import reject_another_index, whole_number
from subgrove._core.weights import read_weights
from subgrove._data.table import Kind, read_table
from subgrove.exceptions import InputError, LengthError
from subgrove.trees.growth import StoppingRules, grow
from subgrove.trees.target_scores import FixedScores, JointScores, checked_likelihood, transformation_scores
from subgrove.trees.training import BaseTree, SingleTargetTree, Training, validate_training, varies
from subgrove.trees.tree import Tree


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

    _method = "transformation"

    def __init__(
        self,
        max_depth: int = 30,
        min_samples_leaf: int = 30,
        alpha: float = 0.05,
        order: int = 5,
        likelihood: Literal["auto", "density", "interval"] = "auto",
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.alpha = alpha
        self.order = order
        self.likelihood = likelihood

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

    _method = "conditional_inference"

    def __init__(self, max_depth: int = 30, min_samples_leaf: int = 30, alpha: float = 0.05) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.alpha = alpha

    def _grow(self, training: Training) -> Tree:
        scores = FixedScores(training.target, training.values)
        return self._tree(training, *grow(training, scores, self._validate()))

    def _validate(self) -> StoppingRules:
        return StoppingRules.checked(self.max_depth, self.min_samples_leaf, self.alpha)


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

    _method = "joint"

    def __init__(self, max_depth: int = 30, min_samples_leaf: int = 30, alpha: float = 0.05, order: int = 5) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.alpha = alpha
        self.order = order

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
