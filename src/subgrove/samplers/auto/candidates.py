"""Candidates for one feature: ways to redraw it, each with scores on rows that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from subgrove._core.kinds import ColumnInfo, Floats, Rows
from subgrove._core.random import stream
from subgrove._data.table import Table, TypedColumn
from subgrove._regress import LinearFit, exceeds_standard_error, fit_dense_linear, fit_sparse_linear, mean_and_std_error
from subgrove._subgroups import Partition
from subgrove._subgroups.grow import TreeSettings, grow_partition
from subgrove._subgroups.proper_scores import leaf_scores, leave_one_out_scores
from subgrove.samplers.auto.choice import UNREADABLE
from subgrove.samplers.auto.shared_training import SharedTraining
from subgrove.samplers.imputation import FittedImputation, Imputation
from subgrove.samplers.leaf_donors import TrainingSubgroups
from subgrove.samplers.location_shift import ResidualSampler, left_by
from subgrove.samplers.sparse_levels import LevelFit, LevelSampler, fit_sparse_multinomial
from subgrove.trees.split_points import refine_split_points
from subgrove.trees.training import select_columns, training_rows

_CHARGE = 4.0  # rows' worth of score that choosing a split on the same rows gains at the most; more if columns are many
_RESIDUAL_DEPTH = 3
_ROWS_TO_TRUST_TESTS = 1000  # with fewer, a test that finds nothing may have missed something
_FEW_TERMS = 3  # of a shift that needs no tree beside it to be read
_FOREST_TREES = 100
_PROBE_TREES, _PROBE_ROWS = 12, 500
_PROBE_SLACK = 1.1  # a forest of few trees on few rows is at least as much worse than a whole one
_FOREST_FROM = {"subgroups": 6, "shifted_subgroups": 4}  # splits of the best from which on a forest is tried
_DENSE_FROM = 5  # terms of a sparse shift from which on one of all columns is tried
_ENOUGH_JUDGED = 1000  # rows on which trees that are grown again are judged; more would cost more than they tell
_NORMAL_POOL = 2001  # quantiles that stand for a normal distribution

ConditionalSampler = TrainingSubgroups | ResidualSampler | LevelSampler | FittedImputation


def donors_of(setup: SharedTraining, partition: Partition) -> TrainingSubgroups:
    """What gives values of training rows of the same subgroup."""
    return TrainingSubgroups.of(partition, setup.table, setup.rows, setup.shown)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way to redraw a feature: its scores on held-out rows, how many parts it has, and how it is made.

    Scores are NaN of rows that it was not judged on.
    """

    name: str
    scores: Floats
    complexity: int
    make: Callable[[], ConditionalSampler]
    splits: int = 0  # chosen on the rows that it is scored on
    again: Callable[[], Floats] | None = None  # scores by trees that are grown again
    columns: int = 1  # that competed for each split

    @property
    def charge(self) -> float:
        """The most that choosing splits on the same rows is likely to have gained."""
        if self.again is None:
            return 0.0
        rows = _CHARGE * self.splits * (1 + np.log10(max(self.columns, 1)))
        return float(rows * abs(self.scores.mean()) / len(self.scores))

    @cached_property
    def score(self) -> float:
        """Mean over the rows that it was judged on."""
        return float(known(self.scores).mean())


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """Candidates for one feature, scored on halves of the rows by what was learned on the other half."""

    setup: SharedTraining
    series: TypedColumn
    others: Table

    @cached_property
    def tree(self) -> Partition:
        """The subgroups of the feature itself."""
        return self._grown_on(self.series, self.setup.settings)

    def _grown_on(self, series: TypedColumn, settings: TreeSettings) -> Partition:
        """The subgroups of numbers of all rows: the feature, or something of it."""
        return grow_partition(self.others, (self.series.info.name,), (series,), None, settings, self.setup.prepared)

    @property
    def shown(self) -> Partition | None:
        """The feature's own subgroups that results may be told by: those of a shallow tree; None if it has none."""
        if "tree" in self.__dict__:
            tree = self.tree.at_depth(self.setup.shown)
        else:
            rules = self.setup.settings.rules
            shallow = replace(rules, max_depth=min(rules.max_depth, self.setup.shown))
            own = replace(self.setup.settings, rules=shallow)
            tree = self._grown_on(self.series, own)
        return tree if len(tree) > 1 else None

    @cached_property
    def single(self) -> Partition:
        """All rows in one subgroup."""
        if "tree" in self.__dict__:
            return self.tree.at_depth(0)
        training = training_rows(self.others, (self.series,), None)
        grower = self.setup.settings.grower(training).set_params(max_depth=0)
        leaf = grower._single_leaf(training, "depth")
        return Partition((self.series.info.name,), leaf)

    @property
    def _polished(self) -> Partition:
        """The subgroups of a number with their cuts in better places."""
        if self.series.info.kind != "numeric":
            return self.tree
        training = training_rows(self.others, (self.series,), None, self.setup.prepared)
        return replace(
            self.tree,
            tree=refine_split_points(self.tree.tree, training, self.setup.settings.rules.min_samples_leaf // 3 + 1),
        )

    @property
    def _of_residuals(self) -> TreeSettings:
        """Of trees on what a shift leaves: shallow, for if much is left the shift was not the way."""
        rules = self.setup.settings.rules
        return replace(self.setup.settings, rules=replace(rules, max_depth=min(rules.max_depth, _RESIDUAL_DEPTH)))

    def donors(self, partition: Partition) -> TrainingSubgroups:
        """Values of training rows of the same subgroup."""
        return donors_of(self.setup, partition)

    @property
    def halves(self) -> list[tuple[Rows, Rows]]:
        """Rows to learn from and rows to judge on, twice."""
        n = len(self.series.values)
        order = stream(self.setup.seed, "halves").permutation(n)
        one, two = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        return [(one, two), (two, one)]

    def numbers(self) -> list[Candidate]:
        """Candidates for a numeric feature."""
        names, name = self.others.names, self.series.info.name
        sparse = fit_sparse_linear(self.setup.rivals, name, self.series.values, names)
        if sparse is None and len(self.tree) == 1:
            return [replace(self.marginal_alone, scores=np.full(1, np.nan))]
        candidates = [self.marginal()]
        if sparse is not None:
            candidates.append(self._shifted(sparse))
            if candidates[-1].complexity <= _FEW_TERMS and self._leaves_nothing(*candidates):
                return candidates
            dense = None
            if len(sparse.shift.terms) >= _DENSE_FROM:
                dense = fit_dense_linear(self.setup.rivals, name, self.series.values, names)
            if dense is not None and _is_better(dense, sparse):
                candidates.append(self._normal(dense))
        candidates = self.judged_again([*candidates, *self.subgroups()])
        best = best_of(candidates)
        if best.splits >= _FOREST_FROM.get(best.name, np.inf) and self._forest_may_help(best):
            candidates.append(self._forest())
        return candidates

    def levels(self) -> list[Candidate]:
        """Candidates for a feature of few values."""
        candidates = [self.marginal(), *self.subgroups()]
        found = fit_sparse_multinomial(self.setup.rivals, self.series, self.others.names)
        if found.shift.parts:
            candidates.append(self._shifted_levels(found))
        return self.judged_again(candidates)

    def marginal(self) -> Candidate:
        """No column."""
        return replace(self.marginal_alone, scores=leave_one_out_scores(self.series, self._nowhere))

    @property
    def marginal_alone(self) -> Candidate:
        """The same without a score, which nothing is compared with."""
        return Candidate("marginal", np.zeros(1), 0, lambda: self.donors(self.single))

    def subgroups(self) -> list[Candidate]:
        """The subgroups of the feature's tree, unless it has none."""
        if len(self.tree) == 1:
            return []

        def make() -> TrainingSubgroups:
            return self.donors(self._polished)

        scores = leave_one_out_scores(self.series, self.tree._assign_table(self.others))
        splits = len(self.tree) - 1
        again = partial(self._regrown, self.series, self.setup.settings)
        return [Candidate("subgroups", scores, splits, make, splits, again, len(self.others.names))]

    def _shifted(self, found: LinearFit) -> Candidate:
        left, settings = left_by(found), self._of_residuals
        # Neither column by column nor in sum more than chance brings: no tree is grown on what is left.
        chance = not self._is_clear(found) and len(self.tree) == 1
        tree = self.single if chance else self._grown_on(left, settings)
        scores = leave_one_out_scores(left, tree._assign_table(self.others))
        splits = len(tree) - 1

        def make() -> ResidualSampler:
            return ResidualSampler.of(found, tree, self.setup.table, self.series, self.setup.rows, self.setup.shown)

        again = partial(self._regrown, left, settings) if splits else None
        parts = len(found.shift.terms) + splits
        return Candidate("shifted_subgroups", scores, parts, make, splits, again, len(self.others.names))

    def _is_clear(self, found: LinearFit) -> bool:
        """Whether held-out rows are clearly nearer to the shift than to their mean."""
        x = self.series.values
        return exceeds_standard_error((x - x.mean()) ** 2 - found.residuals**2)

    def _normal(self, found: LinearFit) -> Candidate:
        from scipy.special import ndtr, ndtri

        scale = float(np.sqrt((found.residuals**2).mean()))
        z = found.residuals / scale
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        scores = scale * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))

        def make() -> ResidualSampler:
            made = ResidualSampler.of(found, self.single, self.setup.table, self.series, self.setup.rows, 0)
            pool = scale * ndtri((np.arange(_NORMAL_POOL) + 0.5) / _NORMAL_POOL)
            return replace(made, residuals=pool, code=np.zeros(_NORMAL_POOL, dtype=np.int32), centre=np.zeros(1))

        return Candidate("gaussian", scores, len(found.shift.terms), make)

    def _shifted_levels(self, found: LevelFit) -> Candidate:
        scores = found.held_out(self.halves)

        def make() -> LevelSampler:
            return LevelSampler.of(found, self.series, self.setup.rows)

        return Candidate("shifted_subgroups", scores, len(found.shift.parts), make)

    @staticmethod
    def _leaves_nothing(marginal: Candidate, shifted: Candidate) -> bool:
        """Whether a shift is clearly better than no column, and what it leaves depends on none: a tree cannot add."""
        better = marginal.scores - shifted.scores
        return shifted.splits == 0 and len(better) >= _ROWS_TO_TRUST_TESTS and exceeds_standard_error(better, errors=2)

    def _forest(self) -> Candidate:
        name = self.series.info.name
        columns, grown, scores = self._grown(np.arange(len(self.series.values)), _FOREST_TREES)

        def make() -> FittedImputation:
            return FittedImputation(columns, None, forests={name: grown}, given=self.others.names)

        return Candidate("imputation", scores, UNREADABLE, make)

    def _forest_may_help(self, best: Candidate) -> bool:
        """Whether a small forest on few rows does not do much worse than the best candidate on these rows."""
        order = stream(self.setup.seed, "rows of a small forest").permutation(len(self.series.values))
        rows = np.sort(order[:_PROBE_ROWS])
        _, _, scores = self._grown(rows, _PROBE_TREES)
        judged = ~np.isnan(best.scores[rows])
        return bool(scores[judged].mean() <= _PROBE_SLACK * best.scores[rows][judged].mean())

    def _grown(self, rows: Rows, n_trees: int) -> tuple[tuple[ColumnInfo, ...], Any, Floats]:
        """A forest on some rows, the columns it knows, and its scores out of bag."""
        name = self.series.info.name
        table = select_columns(self.setup.table.rows(rows), [*self.others.names, name])
        grown = Imputation(n_trees=n_trees)._grown(table, name, self.others.names, stream(self.setup.seed, name))
        foretold, values = np.asarray(grown.forest.out_of_bag)[:, 0], self.series.values[rows]
        left = values - np.where(np.isnan(foretold), values.mean(), foretold)
        return (
            table.columns,
            grown,
            leave_one_out_scores(TypedColumn(ColumnInfo(name, "numeric"), left), self._nowhere[rows]),
        )

    @property
    def _nowhere(self) -> Rows:
        """All rows in one subgroup."""
        return np.zeros(len(self.series.values), dtype=np.intp)

    def judged_again(self, candidates: list[Candidate]) -> list[Candidate]:
        """Where it could change the choice, trees are grown again on halves of the rows and judged on the other half.

        A tree's score may be too good by its charge. Against the best, a candidate with fewer parts wins if it is
        within one standard error, and one with more parts if it is better by more than that; mostly either is clear
        whatever the charges are.
        """
        if all(one.again is None for one in candidates):  # none is charged
            return candidates
        best = min(candidates, key=lambda one: float(one.scores.mean()) + one.charge)
        unsure = []
        for one in candidates:
            score_gap = one.scores - best.scores
            mean, error = mean_and_std_error(score_gap)
            low, high = mean - best.charge, mean + one.charge
            limit = error if one.complexity < best.complexity else -error
            if one is not best and low <= limit < high:
                unsure.append(one)
        if not unsure:
            return candidates
        asked = [best, *unsure]
        judged = [
            replace(one, scores=one.again(), again=None) if one.again is not None and one in asked else one
            for one in candidates
        ]
        left_out = np.logical_or.reduce([np.isnan(one.scores) for one in judged])
        return [replace(one, scores=np.where(left_out, np.nan, one.scores)) for one in judged]

    def _regrown(self, series: TypedColumn, settings: TreeSettings) -> Floats:
        """Scores of a half by a tree that was grown on the other half; of both halves if they are small."""
        scores = np.full(len(series.values), np.nan)
        for rows, asked in self.halves[: 1 if len(scores) >= 2 * _ENOUGH_JUDGED else 2]:
            part = self.others.rows(rows)
            own = (TypedColumn(series.info, series.values[rows]),)
            tree = grow_partition(part, (self.series.info.name,), own, None, settings)
            leaves = tree._assign_table(part), tree._assign_table(self.others.rows(asked))
            scores[asked] = leaf_scores(series, None, rows, leaves[0], asked, leaves[1])
        return scores


def _is_better(one: LinearFit, two: LinearFit) -> bool:
    """Whether its squared errors on held-out rows are clearly less."""
    return exceeds_standard_error(two.residuals**2 - one.residuals**2)


def best_of(candidates: list[Candidate]) -> Candidate:
    """The one of the least score."""
    return min(candidates, key=lambda candidate: candidate.score)


def known(scores: Floats) -> Floats:
    """Those that are numbers; all, if none is."""
    missing = np.isnan(scores)
    return scores[~missing] if missing.any() and not missing.all() else scores
