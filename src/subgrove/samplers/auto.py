"""The sampler that suits each feature: candidates are compared on rows they have not seen, the simplest good one wins.

Requirements this design meets:

- a proper score (CRPS of numbers, log score of levels) on held-out halves of the training rows, row by row;
- the simplest candidate within one standard error of the best wins: fewest terms and splits to read;
- bounded cost: at most `max_rows` rows are looked at; a tree that does worse even on the rows it was grown on is not
  grown again; a forest is tried only where the best so far is complicated;
- the choice can be told: every score, and the reason in a sentence (`Choice`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from subgrove._kinds import ColumnInfo, Floats, Rows
from subgrove._parallel import one_blas_thread, side_by_side
from subgrove._random import Streams, read_seed, stream
from subgrove._shift import FoundShift, Rivals, find_dense_shift, find_shift
from subgrove._subgroups import Partition
from subgrove._subgroups.growing import Settings, grown_from
from subgrove._subgroups.names import Members, allowed_columns
from subgrove._subgroups.proper_scores import leaf_scores, left_out_scores
from subgrove._subgroups.restriction import restricted
from subgrove._table import Series, Table
from subgrove.samplers.base import Feature, Fitted, Method, Redraw, read_training_table, title
from subgrove.samplers.choice import CandidateScore, Choice
from subgrove.samplers.imputation import FittedImputation, Imputation
from subgrove.samplers.leaf_donors import LeafDonors
from subgrove.samplers.learned import learned_for
from subgrove.samplers.shifted import (
    MAX_ROWS,
    NO_LIMIT,
    SHOWN_DEPTH,
    Residuals,
    rows_of,
    takes_levels,
    used_rows,
)
from subgrove.samplers.sparse_levels import FittedLevels, FoundLevels, find_level_shift
from subgrove.trees.parameters import whole_number
from subgrove.trees.polish import polished
from subgrove.trees.single import single_leaf
from subgrove.trees.training import select_columns, training_of

_CHARGE = 4.0  # rows' worth of score that choosing a split on the same rows gains at the most; more if columns are many
_RESIDUAL_DEPTH = 3
_ROWS_TO_TRUST_TESTS = 1000  # with fewer, a test that finds nothing may have missed something
_FEW_TERMS = 3  # of a shift that needs no tree beside it to be read
_FOREST_TREES = 100
_PROBE_TREES, _PROBE_ROWS = 16, 500
_PROBE_SLACK = 1.05  # a forest of few trees on few rows is as much worse than a whole one
_FOREST_FROM = 4  # splits of the best candidate from which on a forest is tried
_DENSE_FROM = 5  # terms of a sparse shift from which on one of all columns is tried
_FOREST_PARTS = 10_000  # a forest has no parts that anyone reads
_NORMAL_POOL = 2001  # quantiles that stand for a normal distribution

Drawer = LeafDonors | Residuals | FittedLevels | FittedImputation


class Auto(Method):
    """Chooses for each feature the sampler that foretells it best on training rows that the sampler has not seen.

    Candidates are marginal donors, subgroups of a transformation tree, shifted subgroups, a normal distribution about
    a sum of all columns, and imputation by a forest. A group of features is redrawn within the subgroups of its tree.

    Parameters
    ----------
    max_depth : int, default 30
        Most splits above a subgroup; mostly the tests of the trees stop them before.
    min_leaf : int, default 30
        Least number of training rows in a subgroup.
    alpha : float, default 0.05
        Level of the tests that stop a tree.
    given : list of str, optional
        The columns that values may depend on.
    shown_depth : int, default 2
        Depth of the subgroups that results are told by. Redrawing uses all of the tree.
    max_rows : int, default 20000
        Training rows that are used, at random if there are more.
    seed : int, default 0
        Of folds, halves, forests and the rows that are used.
    n_jobs : int, optional
        Number of features fitted at once.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, seed=1)
    >>> sampler = sg.samplers.Auto().fit(train.X, ["hum", "weekday", "yr"])
    >>> for name, choice in sampler.choices.items():
    ...     print(name, choice.chosen)
    hum shifted_subgroups
    weekday subgroups
    yr marginal
    """

    name = "auto"
    takes_groups = True
    takes_any_column = True

    def __init__(
        self,
        max_depth: int = NO_LIMIT,
        min_leaf: int = 30,
        alpha: float = 0.05,
        given: Any = None,
        shown_depth: int = SHOWN_DEPTH,
        max_rows: int = MAX_ROWS,
        seed: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.min_leaf = min_leaf
        self.alpha = alpha
        self.given = given
        self.shown_depth = shown_depth
        self.max_rows = max_rows
        self.seed = seed
        self.n_jobs = n_jobs

    def fit(self, X: Any, features: Any = None) -> FittedAuto:
        """Compare the candidates for each feature on training rows, and fit the one that is chosen."""
        settings = Settings.checked("transformation", self.max_depth, self.min_leaf, self.alpha)
        shown = whole_number("shown_depth", self.shown_depth, least=0)
        seed = read_seed(self.seed)
        table, asked = read_training_table(X, features, self)
        rows = used_rows(table.n_rows, self.max_rows, seed)
        used = rows_of(table, rows)
        allowed = allowed_columns(self.given, table.names)
        with one_blas_thread():
            rivals = Rivals.of(used, seed)
            task = _Choosing(used, rows, rivals, allowed, settings, shown, seed, X)
            found = list(side_by_side(task, asked, self.n_jobs))
        names = [title(feature) for feature in asked]
        learned = {name: drawer for name, (drawer, _) in zip(names, found, strict=True)}
        choices = {name: choice for name, (_, choice) in zip(names, found, strict=True)}
        return FittedAuto(table.columns, X, learned=learned, choices=choices)


@dataclass(frozen=True, eq=False)
class FittedAuto(Fitted):
    """Redraws each feature by the sampler that was chosen for it.

    Attributes
    ----------
    learned : mapping
        Feature -> what redraws it.
    choices : mapping
        Feature -> `Choice`: what was chosen, the scores and the reason.
    """

    learned: Mapping[str, Drawer] = field(kw_only=True)
    choices: Mapping[str, Choice] = field(kw_only=True)

    def draw(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> Redraw:
        """The redraw of one feature."""
        return learned_for(self.learned, feature, Auto.name).draw(table, feature, rngs, exact=exact)

    @property
    def gives_training_rows(self) -> bool:
        """Whether donors are training rows."""
        return True

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """The columns that the feature's tree splits on, if it is redrawn within the subgroups of one alone."""
        drawer = learned_for(self.learned, feature, Auto.name)
        return drawer.conditioning if isinstance(drawer, LeafDonors) else None

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedAuto:
        """The same, the feature's tree cut back to its splits on some columns."""
        drawer = learned_for(self.learned, feature, Auto.name)
        assert isinstance(drawer, LeafDonors)
        smaller = restricted(drawer.partition, columns)
        cut = LeafDonors.of(smaller, drawer.table, drawer.rows, drawer.shown_depth)
        return replace(self, learned={**self.learned, title(feature): cut})


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A way to redraw a feature: its scores on held-out rows, how many parts it has, and how it is made."""

    name: str
    scores: Floats
    parts: int
    make: Callable[[], Drawer]
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


@dataclass(frozen=True, eq=False)
class _Choosing:
    """The choice for one feature."""

    table: Table
    rows: Rows
    rivals: Rivals
    allowed: Members
    settings: Settings
    shown: int
    seed: int
    X: Any

    def __call__(self, feature: Feature) -> tuple[Drawer, Choice]:
        others = select_columns(self.table, [name for name in self.allowed if name not in feature])
        series = tuple(self.table.series(name) for name in feature)
        if len(feature) > 1:
            tree = grown_from(others, feature, series, None, self.settings)
            donors = self._donors(tree)
            return donors, _told(Choice.of_group(title(feature), len(tree)), donors)
        (one,) = series
        if one.missing.any():
            return self._among_known(one, others)
        compared = _Comparison(self, one, others)
        candidates = compared.levels() if takes_levels(one) else compared.numbers()
        return self._settled(one, candidates)

    @property
    def of_residuals(self) -> Settings:
        """Of trees on what a shift leaves: shallow, for if much is left the shift was not the way."""
        rules = self.settings.rules
        return replace(self.settings, rules=replace(rules, max_depth=min(rules.max_depth, _RESIDUAL_DEPTH)))

    def polished(self, tree: Partition, series: Series, others: Table) -> Partition:
        """The subgroups of a number with their cuts in better places."""
        if len(tree) == 1 or series.info.kind != "numeric":
            return tree
        training = training_of(others, (series,), None)
        return replace(tree, tree=polished(tree.tree, training, self.settings.rules.min_leaf // 3 + 1))

    def _settled(self, series: Series, candidates: list[_Candidate]) -> tuple[Drawer, Choice]:
        measure = "log score" if takes_levels(series) else "CRPS"
        scores = [_summary(candidate, candidates) for candidate in candidates]
        choice = Choice.between(series.info.name, measure, tuple(scores), len(self.rows))
        drawer = next(candidate for candidate in candidates if candidate.name == choice.chosen).make()
        return drawer, _told(choice, drawer)

    def _among_known(self, series: Series, others: Table) -> tuple[Drawer, Choice]:
        """A feature with missing values: donors give them on, which numbers about a shift cannot."""
        tree = grown_from(others, (series.info.name,), (series,), None, self.settings)
        known = np.flatnonzero(~series.missing)
        if len(known) < 4 or len(tree) == 1:
            single = self._donors(tree.at_depth(0))
            return single, Choice.only(series.info.name, "marginal", "no column tells its values apart")
        part = replace(self, table=rows_of(self.table, known), rows=self.rows[known])
        compared = _Comparison(part, Series(series.info, series.values[known]), rows_of(others, known))
        candidates = compared._judged_again([compared.marginal(), *compared.subgroups()])
        candidates = [replace(one, make=self._maker(one.name, tree)) for one in candidates]
        return self._settled(series, candidates)

    def _maker(self, name: str, tree: Partition) -> Any:
        return lambda: self._donors(tree if name == "subgroups" else tree.at_depth(0))

    def _donors(self, partition: Partition) -> LeafDonors:
        return LeafDonors.of(partition, self.table, self.rows, self.shown)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Candidates for one feature, scored on halves of the rows by what was learned on the other half."""

    work: _Choosing
    series: Series
    others: Table

    @cached_property
    def tree(self) -> Partition:
        """The subgroups of the feature itself."""
        return grown_from(self.others, (self.series.info.name,), (self.series,), None, self.work.settings)

    @cached_property
    def single(self) -> Partition:
        """All rows in one subgroup."""
        training = training_of(self.others, (self.series,), None)
        grower = self.work.settings.grower(training)
        leaf = single_leaf(training, grower._method, {**grower.plain_params(), "max_depth": 0}, "depth")
        return Partition((self.series.info.name,), leaf)

    @property
    def halves(self) -> list[tuple[Rows, Rows]]:
        n = len(self.series.values)
        order = stream(self.work.seed, "halves").permutation(n)
        one, two = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        return [(one, two), (two, one)]

    def numbers(self) -> list[_Candidate]:
        """Candidates for a numeric feature."""
        names, name = self.others.names, self.series.info.name
        sparse = find_shift(self.work.rivals, name, self.series.values, names)
        if sparse is None and len(self.tree) == 1:
            return [replace(self.marginal_alone, scores=np.full(1, np.nan))]
        candidates = [self.marginal()]
        if sparse is not None:
            candidates.append(self._shifted(sparse))
            if candidates[-1].parts <= _FEW_TERMS and self._leaves_nothing(*candidates):
                return candidates
            dense = None
            if len(sparse.shift.terms) >= _DENSE_FROM:
                dense = find_dense_shift(self.work.rivals, name, self.series.values, names)
            if dense is not None and _is_better(dense, sparse):
                candidates.append(self._normal(dense))
        candidates = self._judged_again([*candidates, *self.subgroups()])
        best = _best(candidates)
        if best.splits >= _FOREST_FROM and self._forest_may_help(best):
            candidates.append(self._forest())
        return candidates

    def levels(self) -> list[_Candidate]:
        """Candidates for a feature of few values."""
        candidates = [self.marginal(), *self.subgroups()]
        found = find_level_shift(self.work.rivals, self.series, self.others.names)
        if found.shift.parts:
            candidates.append(self._shifted_levels(found))
        return self._judged_again(candidates)

    def marginal(self) -> _Candidate:
        """No column."""
        return replace(self.marginal_alone, scores=left_out_scores(self.series, self._nowhere))

    @property
    def marginal_alone(self) -> _Candidate:
        """The same without a score, which nothing is compared with."""
        return _Candidate("marginal", np.zeros(1), 0, lambda: self.work._donors(self.single))

    def subgroups(self) -> list[_Candidate]:
        """The subgroups of the feature's tree, unless it has none."""
        if len(self.tree) == 1:
            return []

        def make() -> LeafDonors:
            return self.work._donors(self.work.polished(self.tree, self.series, self.others))

        scores = left_out_scores(self.series, self.tree._assign_table(self.others))
        splits = len(self.tree) - 1
        again = partial(self._regrown, self.series, self.work.settings)
        return [_Candidate("subgroups", scores, splits, make, splits, again, len(self.others.names))]

    def _shifted(self, found: FoundShift) -> _Candidate:
        name = self.series.info.name
        left = Series(ColumnInfo(f"residual of {name}", "numeric"), found.residuals)
        settings = self.work.of_residuals
        tree = grown_from(self.others, (name,), (left,), None, settings)
        scores = left_out_scores(left, tree._assign_table(self.others))
        splits = len(tree) - 1

        def make() -> Residuals:
            return Residuals.of(found, tree, self.work.table, self.series, self.work.rows, self.work.shown)

        again = partial(self._regrown, left, settings) if splits else None
        parts = len(found.shift.terms) + splits
        return _Candidate("shifted_subgroups", scores, parts, make, splits, again, len(self.others.names))

    def _normal(self, found: FoundShift) -> _Candidate:
        from scipy.special import ndtr, ndtri

        scale = float(np.sqrt((found.residuals**2).mean()))
        z = found.residuals / scale
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        scores = scale * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))

        def make() -> Residuals:
            made = Residuals.of(found, self.single, self.work.table, self.series, self.work.rows, 0)
            pool = scale * ndtri((np.arange(_NORMAL_POOL) + 0.5) / _NORMAL_POOL)
            return replace(made, residuals=pool, code=np.zeros(_NORMAL_POOL, dtype=np.int32), centre=np.zeros(1))

        return _Candidate("gaussian", scores, len(found.shift.terms), make)

    def _shifted_levels(self, found: FoundLevels) -> _Candidate:
        scores = found.held_out(self.halves)

        def make() -> FittedLevels:
            return FittedLevels.of(found, self.series, self.work.rows)

        return _Candidate("shifted_subgroups", scores, len(found.shift.parts), make)

    @staticmethod
    def _leaves_nothing(marginal: _Candidate, shifted: _Candidate) -> bool:
        """Whether a shift is clearly better than no column, and what it leaves depends on none: a tree cannot add."""
        better = marginal.scores - shifted.scores
        clear = bool(better.mean() > 2 * better.std() / np.sqrt(len(better)))
        return clear and shifted.splits == 0 and len(better) >= _ROWS_TO_TRUST_TESTS

    def _forest(self) -> _Candidate:
        name = self.series.info.name
        columns, grown, scores = self._grown(np.arange(len(self.series.values)), _FOREST_TREES)

        def make() -> FittedImputation:
            return FittedImputation(columns, None, forests={name: grown}, given=self.others.names)

        return _Candidate("imputation", scores, _FOREST_PARTS, make)

    def _forest_may_help(self, best: _Candidate) -> bool:
        """Whether a small forest on few rows does not do much worse than the best candidate on these rows."""
        order = stream(self.work.seed, "rows of a small forest").permutation(len(self.series.values))
        rows = np.sort(order[:_PROBE_ROWS])
        _, _, scores = self._grown(rows, _PROBE_TREES)
        return bool(scores.mean() <= _PROBE_SLACK * best.scores[rows].mean())

    def _grown(self, rows: Rows, n_trees: int) -> tuple[tuple[ColumnInfo, ...], Any, Floats]:
        """A forest on some rows, the columns it knows, and its scores out of bag."""
        name = self.series.info.name
        table = rows_of(select_columns(self.work.table, [*self.others.names, name]), rows)
        grown = Imputation(n_trees=n_trees)._grown(table, name, self.others.names, stream(self.work.seed, name))
        foretold, values = np.asarray(grown.forest.out_of_bag)[:, 0], self.series.values[rows]
        left = values - np.where(np.isnan(foretold), values.mean(), foretold)
        return table.columns, grown, left_out_scores(Series(ColumnInfo(name, "numeric"), left), self._nowhere[rows])

    @property
    def _nowhere(self) -> Rows:
        """All rows in one subgroup."""
        return np.zeros(len(self.series.values), dtype=np.intp)

    def _judged_again(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Where it could change the choice, trees are grown again on halves of the rows and judged on the other half.

        A tree's score may be too good by its charge. Against the best, a candidate with fewer parts wins if it is
        within one standard error, and one with more parts if it is better by more than that; mostly either is clear
        whatever the charges are.
        """
        best = min(candidates, key=lambda one: float(one.scores.mean()) + one.charge)
        unsure = []
        for one in candidates:
            behind = one.scores - best.scores
            low, high = float(behind.mean()) - best.charge, float(behind.mean()) + one.charge
            error = float(behind.std()) / np.sqrt(len(behind))
            limit = error if one.parts < best.parts else -error
            if one is not best and low <= limit < high:
                unsure.append(one)
        if not unsure:
            return candidates
        asked = [best, *unsure]
        return [
            replace(one, scores=one.again(), again=None) if one.again is not None and one in asked else one
            for one in candidates
        ]

    def _regrown(self, series: Series, settings: Settings) -> Floats:
        """Scores of each half by a tree that was grown on the other half."""
        scores = np.empty(len(series.values))
        for rows, asked in self.halves:
            part = rows_of(self.others, rows)
            own = (Series(series.info, series.values[rows]),)
            tree = grown_from(part, (self.series.info.name,), own, None, settings)
            leaves = tree._assign_table(part), tree._assign_table(rows_of(self.others, asked))
            scores[asked] = leaf_scores(series, None, rows, leaves[0], asked, leaves[1])
        return scores


def _told(choice: Choice, drawer: Drawer) -> Choice:
    """The choice, with what can be said of the sampler that was fitted."""
    if isinstance(drawer, LeafDonors):
        return replace(choice, n_subgroups=len(drawer.partition), conditioning=drawer.conditioning)
    if isinstance(drawer, Residuals):
        return replace(
            choice,
            shift=drawer.shift.text(),
            kept=drawer.kept,
            n_subgroups=len(drawer.partition),
            conditioning=drawer.conditioning,
        )
    if isinstance(drawer, FittedLevels):
        return replace(choice, shift=drawer.shift.text(), conditioning=drawer.shift.columns)
    return choice


def _is_better(one: FoundShift, two: FoundShift) -> bool:
    """Whether its squared errors on held-out rows are clearly less."""
    less = two.residuals**2 - one.residuals**2
    return bool(less.mean() > less.std() / np.sqrt(len(less)))


def _best(candidates: list[_Candidate]) -> _Candidate:
    return min(candidates, key=lambda candidate: float(candidate.scores.mean()))


def _summary(candidate: _Candidate, candidates: list[_Candidate]) -> CandidateScore:
    worse = candidate.scores - _best(candidates).scores
    error = float(worse.std() / np.sqrt(len(worse)))
    return CandidateScore(candidate.name, float(candidate.scores.mean()), float(worse.mean()), error, candidate.parts)
