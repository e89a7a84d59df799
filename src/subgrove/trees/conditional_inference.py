"""Conditional inference trees: subgroups for nominal, ordered, binary or numeric x."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.validate import ParamsMixin, public_names
from subgrove._data.table import ColumnInfo, Kind
from subgrove.trees.candidates import Block, power_of_two
from subgrove.trees.growth import NodeScores, StoppingRules, grow
from subgrove.trees.structure import Tree
from subgrove.trees.training import Training, read_training


class ConditionalInferenceTree(ParamsMixin):
    """Tree whose leaves differ in the frequencies of a nominal x, or in the mean of an ordered or numeric one.

    Each column is tested for independence of x; the most significant one is cut where x differs most
    (Hothorn, Hornik and Zeileis 2006). The scores of x are fixed: indicators of its levels (one of them if there
    are two), the numbers 1, 2, ... of ordered levels, the values themselves if numeric.

    Parameters
    ----------
    max_depth : int, default 30
        Most splits above a leaf; 0 gives a single leaf.
    min_samples_leaf : int, default 30
        Least number of rows (weight) in a leaf; at least 1 % of the node that is split.
    alpha : float, default 0.05
        Level of the tests, after Sidak's adjustment for the number of columns; 1 splits as long as it can.

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

    def fit(
        self,
        X: Any,
        x: Any,
        sample_weight: Any = None,
        *,
        kinds: Mapping[str, Kind] | None = None,
        x_kind: Kind | None = None,
    ) -> Tree:
        """Grow the tree.

        Parameters
        ----------
        X : pandas or polars frame, pyarrow table or 2-d array
            Candidate columns; missing values are allowed.
        x : column or 1-d array
            The feature whose subgroups are sought. Rows where it is missing are left out.
        weights : 1-d array, optional
            How often each row counts.
        kinds : mapping, optional
            Column name -> "numeric", "ordered" or "nominal", where the dtype says otherwise.
        x_kind : {"numeric", "ordered", "nominal"}, optional
            Kind of x, where its dtype says otherwise.

        Returns
        -------
        Tree
        """
        self._checked()  # before anything is read
        return self._grow(read_training(X, x, sample_weight, kinds=kinds, x_kind=x_kind))

    def _grow(self, training: Training) -> Tree:
        response = FixedScores(training.target, training.values)
        return grow(training, response, self._checked(), self._method, self.plain_params())

    def _checked(self) -> StoppingRules:
        return StoppingRules.checked(self.max_depth, self.min_samples_leaf, self.alpha)

    @classmethod
    def _of_the_fitted(cls) -> frozenset[str]:
        return public_names(Tree)


class FixedScores:
    """What x of any kind contributes: fixed scores, the same in every node."""

    def __init__(self, target: ColumnInfo, values: npt.NDArray[Any]) -> None:
        if not target.is_nominal:
            self.scores = (values * power_of_two(values))[None, :]
            return
        levels = len(target.levels)
        first = 1 if levels == 2 else 0
        self.scores = (np.arange(first, levels)[:, None] == values[None, :]).astype(np.float64)

    def score(self, block: Block, starts: list[Any]) -> NodeScores:
        """The scores of a block's rows; there is nothing to fit."""
        scores = np.moveaxis(self.scores[:, block.rows], 0, 1).copy()
        # From the first row's value, so that a distant origin of x costs no digits.
        scores -= scores[:, :, :1]
        spread = (scores != 0).any(axis=(1, 2))
        if block.roots is not None:
            scores *= block.roots[:, None, :]
        return NodeScores(scores, spread, np.ones(len(spread), dtype=np.bool_))
