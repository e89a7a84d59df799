"""Base classes of the tree constructors: the shared `fit`, and trees of a single leaf."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from subgrove._core.validate import ParamsMixin, public_names
from subgrove._data.table import Kind
from subgrove.trees.nodes import Node
from subgrove.trees.training import Histogram, Training, read_training
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
        (counts,) = histogram.counts(np.zeros(training.n_rows, dtype=np.intp), 1, training.weights)
        counts.flags.writeable = False
        n = float(training.n_rows if training.weights is None else training.weights.sum())
        parameters = self.plain_params()
        # At depth 0 the depth limit is the reason, as in a grown tree; so pruning equals growing with less depth.
        root = Node(1, None, 0, n, counts, stop=stop if parameters["max_depth"] else "depth")
        return Tree(self._method, training.target, training.table.columns, (root,), histogram.edges, parameters)

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
        sample_weight : 1-d array, optional
            Sample weights; an integer weight is equivalent to repeating the row.
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
