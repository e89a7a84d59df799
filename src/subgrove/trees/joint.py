"""Trees of several features at once: subgroups in which all of them hardly depend on the other columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from subgrove._core.validate import ParamsMixin, public_names, reject_another_index, whole_number
from subgrove._data.table import Floats, Kind, TypedColumn, read_table, read_weights
from subgrove.exceptions import LengthError
from subgrove.trees.candidates import Block
from subgrove.trees.conditional_inference import FixedScores
from subgrove.trees.growth import NodeScores, StoppingRules, TargetScores, grow
from subgrove.trees.structure import Tree
from subgrove.trees.training import Training, has_three_values, validate_training, varies
from subgrove.trees.transformation_tree import transformation_scores


class JointTree(ParamsMixin):
    """Tree whose leaves differ in the distribution of any of several features.

    Each feature has the scores it has on its own: those of a transformation model if it is numeric with more than two
    distinct values, those of a conditional inference tree otherwise. They are put side by side and tested against
    every column together, so one tree serves features that are to be redrawn together.

    Parameters
    ----------
    max_depth : int, default 30
        Most splits above a leaf; 0 gives a single leaf.
    min_samples_leaf : int, default 30
        Least number of rows (weight) in a leaf; at least 1 % of the node that is split.
    alpha : float, default 0.05
        Level of the tests, after Sidak's adjustment for the number of columns; 1 splits as long as it can.
    order : int, default 5
        Order of the Bernstein polynomials of numeric features.

    Notes
    -----
    The scores see how each feature is distributed, not how the features depend on each other: two subgroups in which
    only the correlation of two features differs are not told apart. Each numeric feature adds `order + 1` scores,
    so many features need many rows: the test loses power as the number of scores nears that of the rows in a node.

    The scores of a feature are divided by their spread in each node, so that none is lost beside one
    with larger scores. A feature that is constant has no say.

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
        """Grow the tree.

        Parameters
        ----------
        X : pandas or polars frame, pyarrow table or 2-d array
            Candidate columns; missing values are allowed.
        xs : pandas or polars frame, pyarrow table or 2-d array
            The features whose subgroups are sought. Rows where any of them is missing are left out.
        weights : 1-d array, optional
            How often each row counts.
        kinds, xs_kinds : mapping, optional
            Name of a column of X, or of xs -> "numeric", "ordered" or "nominal", where the dtype says otherwise.

        Returns
        -------
        Tree
            Its target has the names of the features joined by " + "; the nodes have neither coefficients nor counts
            if there are several.
        """
        self._checked()  # before anything is read
        table, features = read_table(X, kinds=kinds), read_table(xs, kinds=xs_kinds, argument="xs")
        if features.n_rows != table.n_rows:
            raise LengthError(
                f"xs has {features.n_rows} rows, but X has {table.n_rows}. Pass one row of xs for each row of X."
            )
        reject_another_index(X, xs=xs, sample_weight=sample_weight)
        members = tuple(features.series(name) for name in features.names)
        return self._grow(validate_training(table, members, read_weights(sample_weight, table.n_rows)))

    def _grow(self, training: Training) -> Tree:
        rules, order = self._checked()
        response = JointScores([member for member in training.members if varies(member.values)], order)
        return grow(training, response, rules, self._method, self.plain_params())

    def _checked(self) -> tuple[StoppingRules, int]:
        rules = StoppingRules.checked(self.max_depth, self.min_samples_leaf, self.alpha)
        return rules, whole_number("order", self.order, least=1)

    @classmethod
    def _of_the_fitted(cls) -> frozenset[str]:
        return public_names(Tree)


class JointScores:
    """Scores of several features side by side; where a feature does not vary, or could not be fitted, they are 0."""

    def __init__(self, members: list[TypedColumn], order: int) -> None:
        self.members = [_response(member, order) for member in members]
        self.order = order

    def score(self, block: Block, starts: list[Any]) -> NodeScores:
        """Score each feature, and go on from where its last good fit ended."""
        n_nodes, at_root = len(starts), starts[0] is None
        steps = np.ones((n_nodes, len(self.members), self.order + 1)) if at_root else np.array(starts)
        parts, some_vary, some_fitted = [], np.zeros(n_nodes, np.bool_), np.zeros(n_nodes, np.bool_)
        for place, member in enumerate(self.members):
            scored = member.score(block, starts if at_root else list(steps[:, place]))
            usable = scored.varies & scored.fitted
            scores = scored.scores
            scores[~usable] = 0.0
            scores *= _factors(scores, block)[:, None, None]
            parts.append(scores)
            if scored.steps is not None:
                steps[usable, place] = scored.steps[usable]
            some_vary |= scored.varies
            some_fitted |= usable
        return NodeScores(np.concatenate(parts, axis=1), some_vary, some_fitted, steps)


def _response(member: TypedColumn, order: int) -> TargetScores:
    if member.info.kind == "numeric" and has_three_values(member.values):
        return transformation_scores(member.info, member.values, order, "auto")
    return FixedScores(member.info, member.values)


def _factors(scores: Floats, block: Block) -> Floats:
    """What brings the spread of each node's scores near 1: a power of two, which changes no digit."""
    total = scores.sum(axis=2) if block.roots is None else np.matmul(scores, block.roots[:, :, None])[:, :, 0]
    spread = np.einsum("kqm,kqm->k", scores, scores) / block.n - ((total / block.n[:, None]) ** 2).sum(axis=1)
    exponents = np.frexp(np.maximum(spread, 0.0))[1] // 2
    factors: Floats = np.ldexp(1.0, -exponents)
    return factors
