"""Forest nodes: the donor is a row of the same cell of a tree that foretells the target. Strobl's importance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.random import Streams
from subgrove._core.validate import number_in, reject_another_index
from subgrove._data.replace_columns import Changes, Donors, Rows
from subgrove._data.table import Table, read_series
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, read_training_table
from subgrove.samplers.forest_reading import UserForest, read_forest
from subgrove.samplers.forest_structure import associated_columns, grid_cells, node_cells
from subgrove.samplers.learned import learned_for
from subgrove.samplers.marginal import draw_within
from subgrove.samplers.permutations import weighted_donors
from subgrove.samplers.redraw import ResampledFeature, RowGroups
from subgrove.trees import ConditionalInferenceTree, Tree
from subgrove.trees.training import select_columns, training_rows

_CELLS = {"grid": grid_cells, "nodes": node_cells}


class ForestNodes(Sampler):
    """Gives each row the value of another row that a tree of your forest holds for similar.

    Conditional variable importance for random forests (Strobl et al. 2008, Debeer and Strobl 2020): each repeat takes
    the next tree, divides the rows by its splits on the columns that the feature is associated with, and permutes the
    feature within these cells. The trees were grown to foretell the target, so a column that does not help with that
    is not conditioned on, however much the feature depends on it.

    Parameters
    ----------
    forest : random forest or extra-trees model of scikit-learn, or a Pipeline that ends in one, optional
        Fitted. The steps of a pipeline must keep the columns, as scaling, filling and ordinal encoding do. If neither
        this nor `target` is given, `subgrove.importance` takes the model that it is asked about.
    target : column, optional
        In place of a forest: the target of the training rows. One conditional inference tree is grown on it for each
        feature, from all other columns, and the feature is permuted within its leaves.
    threshold : float, default 0.95
        A column is conditioned on if 1 - p is above this, in a test of its independence from the feature; 0 takes
        all columns, 1 none. Only with `forest`.
    partition : {"grid", "nodes"}, default "grid"
        How splits make cells. "grid": each column is cut at all its cuts in the tree. "nodes": a split counts only
        for rows that get to it, which makes larger cells. Only with `forest`.
    association : {"redrawn", "train"}, default "redrawn"
        Rows of the test of independence: those that are redrawn, or those of training. Only with `forest`.
    tree : ConditionalInferenceTree, optional
        How the tree of `target` is grown; as `ConditionalInferenceTree()` by default.
    fixed_points : bool, default False
        Whether a row may be given its own value, as a plain shuffle does.

    Notes
    -----
    With the defaults, cells are those of the R package permimp: its numbers come out if each tree is asked about its
    own out-of-bag rows, with `fixed_points=True`. The test is Pearson's, of the intervals into which the tree cuts the
    two columns. A feature that a tree does not split is permuted among all rows in the repeats of that tree.

    Cells of deep trees are small. A row alone in its cell keeps its value, which makes importance too small.

    With `target`, training rows must be passed as `train`: folds of cross-fitting have another target.

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

    def __init__(
        self,
        forest: Any = None,
        target: Any = None,
        threshold: float = 0.95,
        partition: Literal["grid", "nodes"] = "grid",
        association: Literal["redrawn", "train"] = "redrawn",
        tree: ConditionalInferenceTree | None = None,
        fixed_points: bool = False,
    ) -> None:
        self.forest = forest
        self.target = target
        self.threshold = threshold
        self.partition = partition
        self.association = association
        self.tree = tree
        self.fixed_points = fixed_points

    @property
    def learns(self) -> bool:  # type: ignore[override]  # the forest has learned already; a target is yet to learn
        """Whether fit looks at the rows."""
        return self.target is not None or self.association == "train"

    def for_model(self, model: Any) -> ForestNodes:
        """The sampler with this model as its forest, unless it was given what it needs.

        Parameters
        ----------
        model : object
            The model that is explained.
        """
        if self.forest is not None or self.target is not None:
            return self
        return type(self)(**{**self.get_params(), "forest": model})

    def fit(self, X: Any, features: Any = None) -> FittedForestNodes | FittedTargetLeaves:
        """Read the forest, or grow the trees of the target.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be redrawn, or groups of names; all columns if not given.
        """
        threshold = number_in("threshold", self.threshold, low=0, high=1)
        if self.partition not in _CELLS:
            raise ParameterError(f"partition must be 'grid' or 'nodes'; got {self.partition!r}.")
        if self.association not in ("redrawn", "train"):
            raise ParameterError(f"association must be 'redrawn' or 'train'; got {self.association!r}.")
        if (self.forest is None) == (self.target is None):
            raise ParameterError(
                "sampler 'forest_nodes' needs either forest, a fitted forest of scikit-learn, or target, the target of "
                f"the training rows; got {'neither' if self.forest is None else 'both'}."
            )
        table, read = read_training_table(X, features, self)
        names = tuple(name for (name,) in read)
        if self.forest is None:
            return FittedTargetLeaves(table.columns, trees=self._grown(X, table, names), fixed_points=self.fixed_points)
        forest = read_forest(self.forest, table.columns)
        used = None
        if self.association == "train":
            seen = forest.seen(table)
            used = {name: _associated(forest, seen, name, threshold) for name in names}
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
    """Redraws within the cells of trees; repeat m takes tree m, and starts again after the last.

    Attributes
    ----------
    forest : Forest
        The splits of the trees.
    used : mapping or None
        Feature -> for each tree the columns that are conditioned on, if training rows decide.
    """

    forest: UserForest = field(kw_only=True)
    threshold: float = field(kw_only=True)
    partition: str = "grid"
    fixed_points: bool = False
    used: Mapping[str, list[tuple[int, ...]]] | None = None

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw of one feature."""
        name = feature[0]
        used = None if self.used is None else learned_for(self.used, feature, ForestNodes.name)
        seen = self.forest.seen(table)

        def draws() -> Iterator[Changes]:
            for repeat, rng in enumerate(rngs):
                at = repeat % len(self.forest.trees)
                columns = used[at] if used is not None else self._columns(at, seen, name)
                cells = _CELLS[self.partition](self.forest.trees[at], seen, columns)
                yield {name: Donors(_donors(cells, rng, weights, self.fixed_points))}

        return ResampledFeature(RowGroups.single(table.n_rows), draws)

    def _columns(self, at: int, seen: Floats, name: str) -> tuple[int, ...]:
        if name not in self.forest.names:
            return ()
        return associated_columns(self.forest.trees[at], seen, self.forest.names.index(name), self.threshold)


@dataclass(frozen=True, eq=False)
class FittedTargetLeaves(FittedSampler):
    """Redraws within the leaves of trees that were grown on the target; `trees` has one for each feature."""

    trees: Mapping[str, Tree] = field(kw_only=True)
    fixed_points: bool = False

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw of one feature."""
        tree = learned_for(self.trees, feature, ForestNodes.name)
        rules = tree.rules
        place = np.zeros(max(rules) + 1, dtype=np.int32)
        place[list(rules)] = np.arange(len(rules))
        asked = tuple(dict.fromkeys(node.split.column for node in tree.nodes if node.split is not None))
        groups = RowGroups(place[tree._apply_table(table)], tuple(rules.values()), asked)
        return draw_within(groups, table, feature, rngs, weights, exact=exact, fixed_points=self.fixed_points)


def _associated(forest: UserForest, seen: Floats, name: str, threshold: float) -> list[tuple[int, ...]]:
    if name not in forest.names:
        return [()] * len(forest.trees)
    column = forest.names.index(name)
    return [associated_columns(tree, seen, column, threshold) for tree in forest.trees]


def _donors(cells: Rows, rng: np.random.Generator, weights: Floats | None, fixed_points: bool) -> Rows:
    if weights is None:
        return donors_within(cells, rng, fixed_points=fixed_points)
    n_cells = int(cells.max()) + 1
    code = cells.astype(np.int32)
    return next(weighted_donors(code, n_cells, weights, [rng], fixed_points=fixed_points))


def donors_within(cells: npt.NDArray[Any], rng: np.random.Generator, *, fixed_points: bool = False) -> Rows:
    """A random donor of the same cell for each row, each row being donor once.

    The rows of a cell stand in a random circle, and each takes the value of the next; a row alone keeps its own. With
    `fixed_points` it is a plain shuffle.
    """
    shuffled = rng.permutation(len(cells))
    shuffled = shuffled[np.argsort(cells[shuffled], kind="stable")]
    donors = np.empty_like(shuffled)
    if fixed_points:
        donors[np.argsort(cells, kind="stable")] = shuffled
        return donors
    ends = np.flatnonzero(np.diff(cells[shuffled], append=-1))
    starts = np.concatenate(([0], ends[:-1] + 1))
    following = np.arange(1, len(cells) + 1)
    following[ends] = starts
    donors[shuffled] = shuffled[following]
    return donors
