"""Candidate samplers of one feature, each with its scores on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import Table, TypedColumn
from subgrove._regress import LinearFit, exceeds_standard_error, fit_dense_linear, fit_sparse_linear, mean_and_std_error
from subgrove._regress.multinomial import MultinomialFit, fit_sparse_multinomial
from subgrove._subgroups import Partition
from subgrove._subgroups.depth import leaf_scores, leave_one_out_scores
from subgrove._subgroups.partition import TreeSettings, grow_partition
from subgrove.samplers.base import FittedSampler
from subgrove.samplers.choice import UNREADABLE
from subgrove.samplers.imputation import FittedImputation, Imputation
from subgrove.samplers.location_shift import LevelSampler, ResidualSampler, SharedTraining, residual_column
from subgrove.samplers.subgroups import TrainingSubgroups
from subgrove.trees.split_points import refine_split_points
from subgrove.trees.training import select_columns, training_rows

_OPTIMISM = 4.0  # upper bound, in rows' worth of score, of the gain from selecting a split on the scored rows
_RESIDUAL_DEPTH = 3
_ROWS_TO_TRUST_TESTS = 1000  # with fewer, a test may have missed a dependence
_FEW_TERMS = 3  # of a linear predictor that is readable without a tree
_FOREST_TREES = 100
_PILOT_TREES, _PILOT_ROWS = 12, 500
_PILOT_SLACK = 1.1  # a forest of few trees on few rows is worse than the full forest by at least this factor
_FOREST_FROM = {"training_subgroups": 6, "shifted_subgroups": 4}  # splits of the best from which a forest is tried
_DENSE_FROM = 5  # terms of a sparse predictor from which one of all columns is tried
_ENOUGH_SCORED = 1000  # rows on which regrown trees are scored; more would cost more than they add
_NORMAL_POOL = 2001  # quantiles that represent a normal distribution


def training_subgroups(training: SharedTraining, partition: Partition) -> TrainingSubgroups:
    """Return the sampler with training donors of the same subgroup."""
    return TrainingSubgroups.of(partition, training.table, training.rows, training.report_depth)


@dataclass(frozen=True, eq=False)
class Candidate:
    """Candidate sampler of a feature.

    Attributes
    ----------
    name : str
        Name of the sampler.
    scores : float array
        Held-out score of each row; NaN for rows that were not scored.
    complexity : int
        Number of terms and splits.
    make : callable
        Returns the fitted sampler.
    splits : int
        Number of splits that were selected on the scored rows.
    rescore : callable or None
        Returns the scores of trees that are regrown on halves of the rows.
    columns : int
        Number of columns that competed for each split.
    """

    name: str
    scores: Floats
    complexity: int
    make: Callable[[], FittedSampler]
    splits: int = 0
    rescore: Callable[[], Floats] | None = None
    columns: int = 1

    @property
    def optimism(self) -> float:
        """Upper bound of the gain from selecting splits on the scored rows."""
        if self.rescore is None:
            return 0.0
        rows = _OPTIMISM * self.splits * (1 + np.log10(max(self.columns, 1)))
        return float(rows * abs(self.scores.mean()) / len(self.scores))

    @cached_property
    def score(self) -> float:
        """Mean over the scored rows."""
        return float(present(self.scores).mean())


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """Candidates for one feature, fitted on training rows and scored on held-out rows."""

    training: SharedTraining
    series: TypedColumn
    predictors: Table

    @cached_property
    def tree(self) -> Partition:
        """Subgroups of the feature itself."""
        return self._grow(self.series, self.training.settings)

    def _grow(self, series: TypedColumn, settings: TreeSettings) -> Partition:
        """Grow the tree of the feature, or of its residuals, on all rows."""
        feature = (self.series.info.name,)
        return grow_partition(self.predictors, feature, (series,), None, settings, self.training.sorted_table)

    @property
    def reporting_subgroups(self) -> Partition | None:
        """Subgroups of a shallow tree, by which results may be reported; None if there is only one."""
        if "tree" in self.__dict__:
            tree = self.tree.at_depth(self.training.report_depth)
        else:
            tree = self._grow(self.series, self._with_depth(self.training.report_depth))
        return tree if len(tree) > 1 else None

    def _with_depth(self, depth: int) -> TreeSettings:
        """Return the settings of trees with a smaller maximum depth."""
        settings = self.training.settings
        return replace(settings, rules=replace(settings.rules, max_depth=min(settings.rules.max_depth, depth)))

    @cached_property
    def single(self) -> Partition:
        """One subgroup of all rows."""
        if "tree" in self.__dict__:
            return self.tree.at_depth(0)
        training = training_rows(self.predictors, (self.series,), None)
        grower = self.training.settings.grower(training).set_params(max_depth=0)
        leaf = grower._single_leaf(training, "depth")
        return Partition((self.series.info.name,), leaf)

    @property
    def _refined_tree(self) -> Partition:
        """Subgroups of the feature, with refined split points if it is numeric."""
        if self.series.info.kind != "numeric":
            return self.tree
        training = training_rows(self.predictors, (self.series,), None, self.training.sorted_table)
        min_rows = self.training.settings.rules.min_samples_leaf // 3 + 1
        return replace(self.tree, tree=refine_split_points(self.tree.tree, training, min_rows))

    @property
    def halves(self) -> list[tuple[Rows, Rows]]:
        """Training and test rows of the two halves."""
        n = len(self.series.values)
        order = stream(self.training.seed, "halves").permutation(n)
        one, two = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        return [(one, two), (two, one)]

    def numbers(self) -> list[Candidate]:
        """Return the candidates for a numeric feature."""
        names, name, grams = self.predictors.names, self.series.info.name, self.training.grams
        sparse = fit_sparse_linear(grams, name, self.series.values, names)
        if sparse is None and len(self.tree) == 1:
            return [replace(self._unscored_marginal, scores=np.full(1, np.nan))]
        candidates = [self.marginal()]
        if sparse is not None:
            candidates.append(self._shifted(sparse))
            if candidates[-1].complexity <= _FEW_TERMS and self._tree_cannot_help(*candidates):
                return candidates
            dense = None
            if len(sparse.predictor.terms) >= _DENSE_FROM:
                dense = fit_dense_linear(grams, name, self.series.values, names)
            if dense is not None and exceeds_standard_error(sparse.residuals**2 - dense.residuals**2):
                candidates.append(self._gaussian(dense))
        candidates = self.rescored([*candidates, *self.subgroups()])
        best = best_candidate(candidates)
        if best.splits >= _FOREST_FROM.get(best.name, np.inf) and self._forest_may_help(best):
            candidates.append(self._forest())
        return candidates

    def levels(self) -> list[Candidate]:
        """Return the candidates for a feature with few levels."""
        candidates = [self.marginal(), *self.subgroups()]
        fit = fit_sparse_multinomial(self.training.grams, self.series, self.predictors.names)
        if fit.predictor.parts:
            candidates.append(self._multinomial(fit))
        return self.rescored(candidates)

    def marginal(self) -> Candidate:
        """Return the candidate without conditioning."""
        return replace(self._unscored_marginal, scores=leave_one_out_scores(self.series, self._one_group))

    @property
    def _unscored_marginal(self) -> Candidate:
        return Candidate("marginal", np.zeros(1), 0, lambda: training_subgroups(self.training, self.single))

    def subgroups(self) -> list[Candidate]:
        """Return the subgroups of the feature's tree as a candidate, if there is more than one."""
        if len(self.tree) == 1:
            return []
        splits = len(self.tree) - 1
        return [
            Candidate(
                name="training_subgroups",
                scores=leave_one_out_scores(self.series, self.tree._assign_table(self.predictors)),
                complexity=splits,
                make=lambda: training_subgroups(self.training, self._refined_tree),
                splits=splits,
                rescore=partial(self._scores_by_halves, self.series, self.training.settings),
                columns=len(self.predictors.names),
            )
        ]

    def _shifted(self, fit: LinearFit) -> Candidate:
        residuals, settings = residual_column(fit), self._with_depth(_RESIDUAL_DEPTH)
        # No tree on the residuals if neither single columns nor the linear model predict the feature significantly.
        x = self.series.values
        predicts = exceeds_standard_error((x - x.mean()) ** 2 - fit.residuals**2)
        tree = self.single if not predicts and len(self.tree) == 1 else self._grow(residuals, settings)
        splits = len(tree) - 1
        return Candidate(
            name="shifted_subgroups",
            scores=leave_one_out_scores(residuals, tree._assign_table(self.predictors)),
            complexity=len(fit.predictor.terms) + splits,
            make=lambda: ResidualSampler.of(fit, tree, self.training, self.series, self.training.report_depth),
            splits=splits,
            rescore=partial(self._scores_by_halves, residuals, settings) if splits else None,
            columns=len(self.predictors.names),
        )

    def _gaussian(self, fit: LinearFit) -> Candidate:
        """Return the normal distribution around a ridge prediction, with its closed-form CRPS."""
        from scipy.special import ndtr, ndtri

        scale = float(np.sqrt((fit.residuals**2).mean()))
        z = fit.residuals / scale
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        scores = scale * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))

        def make() -> ResidualSampler:
            sampler = ResidualSampler.of(fit, self.single, self.training, self.series, 0)
            pool = scale * ndtri((np.arange(_NORMAL_POOL) + 0.5) / _NORMAL_POOL)
            return replace(sampler, residuals=pool, code=np.zeros(_NORMAL_POOL, dtype=np.int32), centre=np.zeros(1))

        return Candidate("gaussian", scores, len(fit.predictor.terms), make)

    def _multinomial(self, fit: MultinomialFit) -> Candidate:
        scores = fit.held_out_log_scores(self.halves)
        return Candidate(
            "shifted_subgroups",
            scores,
            len(fit.predictor.parts),
            lambda: LevelSampler.of(fit, self.series, self.training.rows, self.training.table.columns),
        )

    @staticmethod
    def _tree_cannot_help(marginal: Candidate, shifted: Candidate) -> bool:
        """Return whether a linear model improves on the marginal sampler and its residuals depend on no column."""
        gain = marginal.scores - shifted.scores
        return shifted.splits == 0 and len(gain) >= _ROWS_TO_TRUST_TESTS and exceeds_standard_error(gain, errors=2)

    def _forest(self) -> Candidate:
        name = self.series.info.name
        columns, forest, scores = self._fit_forest(np.arange(len(self.series.values)), _FOREST_TREES)
        return Candidate(
            "imputation",
            scores,
            UNREADABLE,
            lambda: FittedImputation(columns, None, forests={name: forest}, given=self.predictors.names),
        )

    def _forest_may_help(self, best: Candidate) -> bool:
        """Return whether a small forest on few rows is not much worse than the best candidate on these rows."""
        order = stream(self.training.seed, "rows of a small forest").permutation(len(self.series.values))
        rows = np.sort(order[:_PILOT_ROWS])
        _, _, scores = self._fit_forest(rows, _PILOT_TREES)
        scored = ~np.isnan(best.scores[rows])
        return bool(scores[scored].mean() <= _PILOT_SLACK * best.scores[rows][scored].mean())

    def _fit_forest(self, rows: Rows, n_trees: int) -> tuple[tuple[ColumnInfo, ...], Any, Floats]:
        """Return the columns of a forest on some rows, the forest, and its out-of-bag scores."""
        name = self.series.info.name
        table = select_columns(self.training.table.rows(rows), [*self.predictors.names, name])
        imputation = Imputation(n_trees=n_trees)
        forest = imputation._fit_feature(table, name, self.predictors.names, stream(self.training.seed, name))
        predicted, values = np.asarray(forest.forest.out_of_bag)[:, 0], self.series.values[rows]
        residuals = TypedColumn(
            ColumnInfo(name, "numeric"), values - np.where(np.isnan(predicted), values.mean(), predicted)
        )
        return table.columns, forest, leave_one_out_scores(residuals, self._one_group[rows])

    @property
    def _one_group(self) -> Rows:
        return np.zeros(len(self.series.values), dtype=np.intp)

    def rescored(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the candidates with held-out scores of regrown trees, if these could change the selection.

        The score of a tree may be optimistic, since its splits were selected on the scored rows. Against the best, a
        simpler candidate wins if it is within one standard error, and a more complex one if it is better by more than
        that; usually either holds whatever the optimism is. Otherwise trees are regrown on halves of the rows and
        scored on the other half.
        """
        if all(one.rescore is None for one in candidates):
            return candidates
        best = min(candidates, key=lambda one: float(one.scores.mean()) + one.optimism)
        uncertain = [best]
        for one in candidates:
            mean, error = mean_and_std_error(one.scores - best.scores)
            limit = error if one.complexity < best.complexity else -error
            if one is not best and mean - best.optimism <= limit < mean + one.optimism:
                uncertain.append(one)
        if len(uncertain) == 1:
            return candidates
        scored = [
            replace(one, scores=one.rescore(), rescore=None) if one.rescore is not None and one in uncertain else one
            for one in candidates
        ]
        unscored = np.logical_or.reduce([np.isnan(one.scores) for one in scored])
        return [replace(one, scores=np.where(unscored, np.nan, one.scores)) for one in scored]

    def _scores_by_halves(self, series: TypedColumn, settings: TreeSettings) -> Floats:
        """Return scores of one half by a tree grown on the other half; of both halves if they are small."""
        scores = np.full(len(series.values), np.nan)
        for train, test in self.halves[: 1 if len(scores) >= 2 * _ENOUGH_SCORED else 2]:
            train_table = self.predictors.rows(train)
            target = (TypedColumn(series.info, series.values[train]),)
            tree = grow_partition(train_table, (self.series.info.name,), target, None, settings)
            leaves = tree._assign_table(train_table), tree._assign_table(self.predictors.rows(test))
            scores[test] = leaf_scores(series, train, leaves[0], test, leaves[1])
        return scores


def best_candidate(candidates: list[Candidate]) -> Candidate:
    """Return the candidate with the lowest score."""
    return min(candidates, key=lambda candidate: candidate.score)


def present(scores: Floats) -> Floats:
    """Return the scores that are not NaN; all, if all are NaN."""
    missing = np.isnan(scores)
    return scores[~missing] if missing.any() and not missing.all() else scores
