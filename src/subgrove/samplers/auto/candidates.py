"""Candidate samplers of a feature with their scores on held-out rows: what numbers and levels share, and levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import Table, TypedColumn
from subgrove._regress.gram import mean_and_std_error
from subgrove._regress.levels import fit_forest_levels, fit_kernel_levels, fit_ordered_levels
from subgrove._regress.multinomial import fit_sparse_multinomial
from subgrove._subgroups import Partition
from subgrove._subgroups.depth import leaf_scores, leave_one_out_scores
from subgrove._subgroups.partition import TreeSettings, grow_partition
from subgrove.samplers.auto.choice import SMOOTH_TERMS, UNREADABLE, CandidateScore, SamplerChoice
from subgrove.samplers.base import FittedSampler
from subgrove.samplers.chained import PartProbabilities
from subgrove.samplers.predicted_probabilities import LevelSampler
from subgrove.samplers.training_donors import SharedTraining, TrainingSubgroups
from subgrove.trees.split_points import refine_split_points, shorten_split_points
from subgrove.trees.training import training_rows

_OPTIMISM = 4.0  # upper bound, in rows' worth of score, of the gain from selecting a split on the scored rows
_SETTLED = 0.005  # log score over that of the overall shares, below which there is nothing left to gain
_ENOUGH_SCORED = 1000  # rows on which regrown trees are scored; more would cost more than they add


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
        tree = refine_split_points(self.tree.tree, training, min_rows)
        return replace(self.tree, tree=shorten_split_points(tree, training))

    @cached_property
    def _scored(self) -> TypedColumn:
        """The feature as it is scored."""
        return self.series

    @property
    def halves(self) -> list[tuple[Rows, Rows]]:
        """Training and test rows of the two halves."""
        n = len(self.series.values)
        order = stream(self.training.seed, "halves").permutation(n)
        one, two = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        return [(one, two), (two, one)]

    def marginal(self) -> Candidate:
        """Return the candidate without conditioning."""
        return replace(self._unscored_marginal, scores=leave_one_out_scores(self._scored, self._one_group))

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
                scores=leave_one_out_scores(self._scored, self.tree._assign_table(self.predictors)),
                complexity=splits,
                make=lambda: training_subgroups(self.training, self._refined_tree),
                splits=splits,
                rescore=partial(self._scores_by_halves, self.series, self.training.settings, self._scored),
                columns=len(self.predictors.names),
            )
        ]

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

    def _scores_by_halves(
        self, series: TypedColumn, settings: TreeSettings, scored: TypedColumn | None = None
    ) -> Floats:
        """Return scores of one half by a tree grown on the other half; of both halves if they are small."""
        scores = np.full(len(series.values), np.nan)
        for train, test, leaf, test_leaf in self._trees_of_halves(series, settings):
            scores[test] = leaf_scores(scored or series, train, leaf, test, test_leaf)
        return scores

    def _trees_of_halves(self, series: TypedColumn, settings: TreeSettings) -> Iterator[tuple[Rows, Rows, Rows, Rows]]:
        """Yield rows that a tree is grown on, rows to score, and the leaves of both; of one half if there are many."""
        for train, test in self.halves[: 1 if len(series.values) >= 2 * _ENOUGH_SCORED else 2]:
            train_table = self.predictors.rows(train)
            target = (TypedColumn(series.info, series.values[train]),)
            tree = grow_partition(train_table, (self.series.info.name,), target, None, settings)
            yield train, test, tree._assign_table(train_table), tree._assign_table(self.predictors.rows(test))


def best_candidate(candidates: list[Candidate]) -> Candidate:
    """Return the candidate with the lowest score."""
    return min(candidates, key=lambda candidate: candidate.score)


def selected_of(feature: str, measure: str, candidates: list[Candidate], n_rows: int = 0) -> SamplerChoice:
    """Return the simplest candidate that is as good as the best, with the scores of all."""
    best = best_candidate(candidates)
    scores = []
    for one in candidates:
        gap, error = mean_and_std_error(present(one.scores - best.scores))
        scores.append(CandidateScore(one.name, one.score, gap, error, one.complexity))
    return SamplerChoice.between(feature, measure, tuple(scores), n_rows)


def present(scores: Floats) -> Floats:
    """Return the scores that are not NaN; all, if all are NaN."""
    missing = np.isnan(scores)
    return scores[~missing] if missing.any() and not missing.all() else scores


class LevelCandidates(CandidateSet):
    """Candidates of a feature with few levels, compared by their log score."""

    def candidates(self) -> list[Candidate]:
        """Return the candidates for a feature with few levels, all with log scores."""
        models = [candidate for candidate, _ in self.probability_models()]
        subgroups = self.subgroups() if self.training.compares("training_subgroups") else []
        return self.rescored([self.marginal(), *subgroups, *models])

    @cached_property
    def _scored(self) -> TypedColumn:
        """The feature by codes of its levels, also if they are ordered or few numbers."""
        if self.series.info.is_nominal:
            return self.series
        values, code = np.unique(self.series.values, return_inverse=True)
        info = ColumnInfo(self.series.info.name, "nominal", tuple(map(str, range(len(values)))))
        return TypedColumn(info, code.astype(np.int32))

    def probability_models(self) -> list[tuple[Candidate, Any]]:
        """Return models of the probabilities of levels: candidates, and the fits with their predictors."""
        grams, names, series, seed = self.training.grams, self.predictors.names, self.series, self.training.seed
        of_levels, compares = (grams, series.info.name, series.values, names, seed), self.training.compares
        made = partial(LevelSampler.of, series=series, rows=self.training.rows, columns=self.training.table.columns)
        models: list[tuple[Candidate, Any]] = []

        def add(name: str, fit: Any, scores: Floats, complexity: int) -> None:
            models.append((Candidate(name, scores, complexity, partial(made, fit)), fit))

        def lowest() -> float:
            return min((candidate.score for candidate, _ in models), default=np.inf)

        _, counts = np.unique(series.values, return_counts=True)
        shares = counts / counts.sum()
        settled = _SETTLED * -float(shares @ np.log(shares))
        if compares("shifted_subgroups"):
            multinomial = fit_sparse_multinomial(grams, series, names)
            if complexity := len(multinomial.predictor.parts):
                add("shifted_subgroups", multinomial, multinomial.held_out_log_scores(self.halves), complexity)
        if compares("ordered_levels") and not series.info.is_nominal and lowest() > settled:
            ordered = fit_ordered_levels(*of_levels)
            if ordered is not None:
                add("ordered_levels", ordered, ordered.scores, 1 + len(ordered.predictor.location.terms))
        smooth = fit_kernel_levels(*of_levels) if compares("smooth_levels") and lowest() > settled else None
        if smooth is not None:
            add("smooth_levels", smooth, smooth.scores, SMOOTH_TERMS)
        forest = None
        if compares("forest_levels") and lowest() > settled:
            forest = fit_forest_levels(*of_levels, lowest())
        if forest is not None:
            add("forest_levels", forest, forest.scores, UNREADABLE)
        return models


def predict_parts(
    training: SharedTraining, name: str, codes: Rows, predictors: Table
) -> tuple[PartProbabilities, Floats]:
    """Return the probabilities of parts, and the held-out log score of each row's part."""
    shares = np.bincount(codes) / len(codes)
    info = ColumnInfo(name, "nominal", tuple(map(str, range(len(shares)))))
    series = TypedColumn(info, codes.astype(np.int32))
    candidates = LevelCandidates(replace(training, compared=None), series, predictors)
    models: list[tuple[Candidate, Any]] = [(candidates.marginal(), None), *candidates.probability_models()]
    models += [(one, LeafShares.of(candidates.tree, predictors, codes)) for one in candidates.subgroups()]
    choice = selected_of(name, "log score", candidates.rescored([candidate for candidate, _ in models]))
    candidate, fit = next(pair for pair in models if pair[0].name == choice.selected)
    return PartProbabilities(shares, getattr(fit, "predictor", fit), getattr(fit, "kept", 0.0)), candidate.scores


@dataclass(frozen=True, eq=False)
class LeafShares:
    """Shares of levels in each subgroup of a tree."""

    tree: Partition
    shares: Floats

    @classmethod
    def of(cls, tree: Partition, predictors: Table, codes: Rows) -> LeafShares:
        """Count in training rows; each subgroup gets one more row with the overall shares."""
        leaf, n_levels = tree._assign_table(predictors), int(codes.max()) + 1
        counts = np.bincount(leaf * n_levels + codes, minlength=len(tree) * n_levels).reshape(-1, n_levels)
        filled = counts + np.bincount(codes) / len(codes)
        return cls(tree, filled / filled.sum(axis=1, keepdims=True))

    @property
    def columns(self) -> tuple[str, ...]:
        """Split columns of the tree."""
        return self.tree.conditioning

    def predict(self, table: Table) -> Floats:
        """Return the probability of each level in each row."""
        return self.shares[self.tree._assign_table(table)]
