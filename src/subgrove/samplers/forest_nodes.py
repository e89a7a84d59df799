"""Forest nodes: the donor is a row of the same cell of a tree that predicts the target (Strobl et al.)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove._core.validate import number_in, reject_another_index
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table, read_series
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, lookup_feature, read_training_table
from subgrove.samplers.donors import shuffle_within, weighted_donors
from subgrove.samplers.forest_reading import UserForest, associated_columns, grid_cells, node_cells, read_forest
from subgrove.samplers.marginal import resample_within
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups
from subgrove.trees import ConditionalInferenceTree, Tree
from subgrove.trees.training import select_columns, training_rows

_CELLS = {"grid": grid_cells, "nodes": node_cells}


@dataclass(eq=False, repr=False)
class ForestNodes(Sampler):
    """Gives each row the value of another row in the same cell of a tree of your forest.

    Conditional variable importance for random forests (Strobl et al. 2008, Debeer and Strobl 2020): each repeat takes
    the next tree, divides the rows by its splits on the columns that the feature is associated with, and permutes the
    feature within these cells. The trees were grown to predict the target, so a column that does not help with that
    is not conditioned on, however strongly the feature depends on it.

    Parameters
    ----------
    forest : random forest or extra-trees model of scikit-learn, or a Pipeline that ends in one, optional
        Fitted. The steps of a pipeline must keep the columns, as scaling, filling and ordinal encoding do. If neither
        this nor `target` is given, `subgrove.importance` takes the model that it explains.
    target : column, optional
        In place of a forest: the target of the training rows. One conditional inference tree is grown on it for each
        feature, from all other columns, and the feature is permuted within its leaves.
    threshold : float, default 0.95
        A column is conditioned on if 1 - p is above this, in a test of its independence from the feature; 0 takes
        all columns, 1 none. Only with `forest`.
    partition : {"grid", "nodes"}, default "grid"
        How splits define cells. "grid": each column is cut at all its cuts in the tree. "nodes": a split counts only
        for rows that reach it, which gives larger cells. Only with `forest`.
    association : {"test", "train"}, default "test"
        Rows of the test of independence: those of X, or those of training. Only with `forest`.
    tree : ConditionalInferenceTree, optional
        How the tree of `target` is grown; as `ConditionalInferenceTree()` by default.
    fixed_points : bool, default False
        Whether a row may receive its own value, as in a plain permutation.

    Notes
    -----
    With the defaults, cells are those of the R package permimp: its numbers result if each tree predicts its own
    out-of-bag rows, with `fixed_points=True`. The test is Pearson's chi-square test of the intervals into which the
    tree cuts the two columns. A feature that a tree does not split is permuted among all rows in its repeats.

    Cells of deep trees are small. A row alone in its cell keeps its value, which biases the importance towards 0.

    With `target`, training rows must be passed as `train`: cross-fitting would need the target of each fold.

    Examples
    --------
    >>> import subgrove as sg
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> columns = ["temp", "hum", "wind"]
    >>> forest = RandomForestRegressor(20, min_samples_leaf=30, random_state=1).fit(train.X[columns], train.y)
    >>> sampler = sg.samplers.ForestNodes(forest).fit(train.X[columns])
    >>> for column in sampler.sample(test.X[columns], "temp", 2):
    ...     print(len(column))
    219
    219
    """

    name = "forest_nodes"
    row_wise = False

    forest: Any = None
    target: Any = None
    threshold: float = 0.95
    partition: Literal["grid", "nodes"] = "grid"
    association: Literal["test", "train"] = "test"
    tree: ConditionalInferenceTree | None = None
    fixed_points: bool = False

    @property
    def learns(self) -> bool:  # type: ignore[override]  # a forest is fitted already, a target is not
        """Whether fit uses the rows."""
        return self.target is not None or self.association == "train"

    def for_model(self, model: Any) -> ForestNodes:
        """Return the sampler with this model as its forest, unless it has a forest or a target.

        Parameters
        ----------
        model : object
            The model to explain.
        """
        if self.forest is not None or self.target is not None:
            return self
        return replace(self, forest=model)

    def fit(self, X: Any, features: Any = None) -> FittedForestNodes | FittedTargetLeaves:
        """Read the forest, or grow trees that predict the target.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """
        threshold = number_in("threshold", self.threshold, low=0, high=1)
        if self.partition not in _CELLS:
            raise ParameterError(f"partition must be 'grid' or 'nodes'; got {self.partition!r}.")
        if self.association not in ("test", "train"):
            raise ParameterError(f"association must be 'test' or 'train'; got {self.association!r}.")
        if (self.forest is None) == (self.target is None):
            raise ParameterError(
                "sampler 'forest_nodes' needs either forest, a fitted forest of scikit-learn, or target, the target of "
                f"the training rows; got {'neither' if self.forest is None else 'both'}."
            )
        table, parsed = read_training_table(X, features, self)
        names = tuple(name for (name,) in parsed)
        if self.forest is None:
            return FittedTargetLeaves(table.columns, trees=self._grown(X, table, names), fixed_points=self.fixed_points)
        forest = read_forest(self.forest, table.columns)
        used = None
        if self.association == "train":
            seen = forest.encode(table)
            trees = range(len(forest.trees))
            used = {name: [_associated(forest, at, seen, name, threshold) for at in trees] for name in names}
        return FittedForestNodes(
            table.columns,
            forest=forest,
            threshold=threshold,
            partition=self.partition,
            fixed_points=self.fixed_points,
            used=used,
        )

    def _grown(self, X: Any, table: Table, names: tuple[str, ...]) -> dict[str, Tree]:
        grower = ConditionalInferenceTree() if self.tree is None else self.tree
        target = read_series(self.target, n_rows=table.n_rows, argument="target")
        reject_another_index(X, target=self.target)
        trees = {}
        for name in names:
            others = select_columns(table, [other for other in table.names if other != name])
            training = training_rows(others, (target,), None)
            trees[name] = grower._grow_or_stop(training)
        return trees


@dataclass(frozen=True, eq=False)
class FittedForestNodes(FittedSampler):
    """Resamples within the cells of trees; repeat m uses tree m, cyclically.

    Attributes
    ----------
    forest : Forest
        Splits of the trees.
    used : mapping or None
        Feature -> conditioning columns of each tree, if they are determined on training rows.
    """

    forest: UserForest = field(kw_only=True)
    threshold: float = field(kw_only=True)
    partition: str = "grid"
    fixed_points: bool = False
    used: Mapping[str, list[tuple[int, ...]]] | None = None

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature."""
        name = feature[0]
        used = None if self.used is None else lookup_feature(self.used, feature, ForestNodes.name)
        seen = self.forest.encode(table)

        def draws() -> Iterator[Changes]:
            for repeat, rng in enumerate(rngs):
                at = repeat % len(self.forest.trees)
                columns = _associated(self.forest, at, seen, name, self.threshold) if used is None else used[at]
                cells = _CELLS[self.partition](self.forest.trees[at], seen, columns)
                if weights is None and (self.fixed_points or table.clusters is None):
                    rows = shuffle_within(cells, rng, fixed_points=self.fixed_points)
                else:
                    code, n_cells = cells.astype(np.int32), int(cells.max()) + 1
                    kept, clusters = self.fixed_points, table.clusters
                    rows = next(weighted_donors(code, n_cells, weights, [rng], fixed_points=kept, clusters=clusters))
                yield {name: Donors(rows)}

        return ResampledFeature(RowGroups.single(table.n_rows), draws)


@dataclass(frozen=True, eq=False)
class FittedTargetLeaves(FittedSampler):
    """Resamples within the leaves of trees that predict the target; `trees` has one for each feature."""

    trees: Mapping[str, Tree] = field(kw_only=True)
    fixed_points: bool = False

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature."""
        tree = lookup_feature(self.trees, feature, ForestNodes.name)
        rules = tree.rules
        place = np.zeros(max(rules) + 1, dtype=np.int32)
        place[list(rules)] = np.arange(len(rules))
        split_columns = tuple(dict.fromkeys(node.split.column for node in tree.nodes if node.split is not None))
        groups = RowGroups(place[tree._apply_table(table)], tuple(rules.values()), split_columns)
        return resample_within(groups, table, feature, rngs, weights, exact=exact, fixed_points=self.fixed_points)


def _associated(forest: UserForest, at: int, seen: Floats, name: str, threshold: float) -> tuple[int, ...]:
    if name not in forest.names:
        return ()
    return associated_columns(forest.trees[at], seen, forest.names.index(name), threshold)
