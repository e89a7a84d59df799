"""Donors by a random forest: values of training rows that fall into the same leaf of a tree.

The trees are split where the distribution of a feature changes, in location or spread. A feature may have been
predicted before; donors then pass on their residual. So conditional distributions of any shape can be resampled:
several modes, changing spread, atoms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams, stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import Design, DesignColumn
from subgrove._data.replace_columns import Changes
from subgrove._data.table import Table
from subgrove._regress.forest import ForestColumns, grow_forest
from subgrove._regress.gram import FoldGrams, location_and_spread
from subgrove.samplers.base import Feature, FittedSampler
from subgrove.samplers.location_shift import NewValues, prediction_details
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups

_TREES_PER_FOLD = 8
_NODE_SIZES = (20, 6, 60)  # the last one is tried only where the second is not better than the first
_TRIAL_FOLDS = 2  # by which the leaf size is selected
_DONORS_PER_TREE = 4  # of each scored row
_MIN_ROWS = 60


@dataclass(frozen=True, eq=False)
class DonorForest:
    """Trees of several folds, each grown without the rows of its fold.

    Attributes
    ----------
    parts : tuple of DesignColumn
        Predictors.
    forests : tuple
        One for each fold.
    design : Design
        Encoding of the columns.
    """

    parts: tuple[DesignColumn, ...]
    forests: tuple[Any, ...]
    design: Design

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the forest."""
        return tuple(dict.fromkeys(part.column for part in self.parts))

    def leaves(self, table: Table, n_trees: int) -> Rows:
        """Return the leaf of each row in the first trees, one of each fold after the other."""
        predictors = np.column_stack([self.design.numbers(table, part) for part in self.parts])
        found = np.empty((len(predictors), n_trees), dtype=np.intp)
        n_folds = len(self.forests)
        for fold, forest in enumerate(self.forests):
            own = range(fold, n_trees, n_folds)
            found[:, own] = forest.leaves(predictors, [at // n_folds for at in own])
        return found

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return _TREES_PER_FOLD * len(self.forests)


@dataclass(frozen=True, eq=False)
class DonorForestFit:
    """Donor forest with held-out scores of the rows."""

    forest: DonorForest
    scores: Floats


def fit_donor_forest(grams: FoldGrams, values: Floats, names: Any, seed: int) -> DonorForestFit | None:
    """Grow a forest without each fold; of several leaf sizes, that with the best CRPS of the first held-out folds."""
    parts = grams.design.allowed(names, log_scales=False)
    n = len(values)
    if not len(parts) or n < _MIN_ROWS:
        return None
    target, predictors = values[grams.order], grams.values[:, parts]
    outputs = location_and_spread(target)

    @cache
    def without(number: int) -> tuple[npt.NDArray[np.bool_], ForestColumns]:
        """Return the rows outside of a fold, and the predictors there."""
        kept = np.ones(n, dtype=np.bool_)
        kept[grams.folds[number]] = False
        return kept, ForestColumns(predictors[kept])

    def grown(size: int, number: int) -> tuple[Any, Floats]:
        """Return the forest without a fold, and the CRPS of the rows of the fold."""
        fold, (kept, training) = grams.folds[number], without(number)
        forest = grow_forest(
            training,
            np.ascontiguousarray(outputs[kept]),
            n_trees=_TREES_PER_FOLD,
            min_node_size=size,
            tried=max(1, (2 * len(parts) + 2) // 3),
            seed=seed + number,
            n_jobs=1,
        )
        rng = stream(seed, f"donors of fold {number}")
        return forest, _held_out_crps(forest, training.values, target[kept], predictors[fold], target[fold], rng)

    trials: dict[int, list[tuple[Any, Floats]]] = {}
    means: dict[int, float] = {}
    for size in _NODE_SIZES:
        if 4 * size <= n and means.get(_NODE_SIZES[1], np.inf) >= means.get(_NODE_SIZES[0], -np.inf):
            trials[size] = [grown(size, number) for number in range(_TRIAL_FOLDS)]
            means[size] = float(np.concatenate([scores for _, scores in trials[size]]).mean())
    best = min(means, key=means.__getitem__)
    found = [*trials[best], *(grown(best, number) for number in range(_TRIAL_FOLDS, len(grams.folds)))]
    in_row_order = np.empty(n)
    for fold, (_, scores) in zip(grams.folds, found, strict=True):
        in_row_order[grams.order[fold]] = scores
    columns = tuple(grams.design.parts[at] for at in parts)
    return DonorForestFit(DonorForest(columns, tuple(forest for forest, _ in found), grams.design), in_row_order)


def _held_out_crps(
    forest: Any, train: Floats, values: Floats, test: Floats, own: Floats, rng: np.random.Generator
) -> Floats:
    """Return the CRPS of held-out rows by an ensemble of donors from each tree."""
    leaves, test_leaves = forest.leaves(train), forest.leaves(test)
    drawn = []
    for tree in range(leaves.shape[1]):
        points = rng.random((_DONORS_PER_TREE, len(test)))
        drawn += list(values[_donors(leaves[:, tree], test_leaves[:, tree], points)])
    return ensemble_crps(np.column_stack(drawn), own)


def ensemble_crps(ensemble: Floats, own: Floats) -> Floats:
    """Return the CRPS of each row by draws from its predictive distribution, without bias for few draws."""
    m = ensemble.shape[1]
    sorted_draws = np.sort(ensemble, axis=1)
    spread = sorted_draws @ np.arange(1 - m, m, 2) / (m * (m - 1))
    return np.asarray(np.abs(ensemble - own[:, None]).mean(axis=1) - spread)


def _donors(leaf: Rows, wanted: Rows, points: Floats) -> Rows:
    """Return for each wanted leaf a row in it, the one at a point between 0 and 1; points may have several rows."""
    order = np.argsort(leaf, kind="stable")
    ordered = leaf[order]
    start, end = np.searchsorted(ordered, wanted, side="left"), np.searchsorted(ordered, wanted, side="right")
    return order[start + (points * (end - start)).astype(np.intp)]


@dataclass(frozen=True, eq=False, kw_only=True)
class ForestDonors(FittedSampler):
    """Resamples one numeric feature: its prediction plus the residual of a training row in the same leaf of a tree.

    Attributes
    ----------
    predictor : object or None
        Prediction of the feature; None if donors pass on their value.
    forest : DonorForest
        The trees; draw m uses tree m, cyclically.
    leaves : int array
        Leaf of each training row in each tree.
    residuals : float array
        Of the training rows.
    values : NewValues
        Range and rounding of new values.
    """

    predictor: Any
    forest: DonorForest
    leaves: Rows
    residuals: Floats
    values: NewValues

    @classmethod
    def of(
        cls, found: DonorForestFit, predictor: Any, residuals: Floats, training: Table, values: NewValues
    ) -> ForestDonors:
        """Build from a fitted forest of residuals, with the training rows as donors."""
        return cls(
            training.columns,
            predictor=predictor,
            forest=found.forest,
            leaves=found.forest.leaves(training, found.forest.n_trees),
            residuals=residuals,
            values=values,
        )

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the feature; new numbers have no exact expectation."""
        (name,) = feature
        own = table.values(name)
        n_trees = min(self.forest.n_trees, max(len(rngs), 1))
        wanted = self.forest.leaves(table, n_trees)
        predicted = 0.0 if self.predictor is None else self.predictor.predict(table)

        def draws() -> Iterator[Changes]:
            for repeat, rng in enumerate(rngs):
                tree = repeat % n_trees
                donors = _donors(self.leaves[:, tree], wanted[:, tree], rng.random(len(own)))
                yield {name: self.values.fitted_to(predicted + self.residuals[donors], own)}

        groups = RowGroups.single(table.n_rows, self.choice_details()["conditioning"])
        return ResampledFeature(groups, draws)

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe this sampler."""
        return prediction_details(self.predictor, self.forest.columns)
