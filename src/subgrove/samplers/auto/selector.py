"""The choice for one feature: which candidate redraws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from subgrove._data.table import Table, TypedColumn
from subgrove._regress import is_extreme, mean_and_std_error
from subgrove._subgroups import Partition
from subgrove._subgroups.grow import grow_partition
from subgrove.samplers.auto.candidates import Candidate, CandidateSet, ConditionalSampler, best_of, donors_of, known
from subgrove.samplers.auto.choice import CandidateScore, SamplerChoice
from subgrove.samplers.auto.shared_training import SharedTraining
from subgrove.samplers.base import Feature, title
from subgrove.samplers.leaf_donors import TrainingSubgroups
from subgrove.samplers.location_shift import ResidualSampler, takes_levels
from subgrove.samplers.sparse_levels import LevelSampler


@dataclass(frozen=True, eq=False)
class SamplerSelector:
    """The choice for one feature."""

    setup: SharedTraining

    def __call__(self, feature: Feature) -> tuple[ConditionalSampler, SamplerChoice, Partition | None]:
        """What redraws a feature, why, and the subgroups that results are told by if it is redrawn in none."""
        others = self.setup.others(feature)
        series = tuple(self.setup.table.series(name) for name in feature)
        if len(feature) > 1:
            tree = grow_partition(others, feature, series, None, self.setup.settings, self.setup.prepared)
            donors = donors_of(self.setup, tree)
            return donors, _told(SamplerChoice.of_group(title(feature), len(tree)), donors), None
        (one,) = series
        if one.info.kind == "numeric" and is_extreme(one.values):
            return *self._without_scores(one, others), None
        if one.missing.any():
            return *self._among_known(one, others), None
        compared = CandidateSet(self.setup, one, others)
        levels = takes_levels(one)
        drawer, choice = self._settled(one, compared.levels() if levels else compared.numbers(), levels)
        return drawer, choice, None if _has_subgroups(drawer) else compared.shown

    def _settled(
        self, series: TypedColumn, candidates: list[Candidate], levels: bool
    ) -> tuple[ConditionalSampler, SamplerChoice]:
        measure = "log score" if levels else "CRPS"
        best = best_of(candidates)
        scores = [_summary(candidate, best) for candidate in candidates]
        choice = SamplerChoice.between(series.info.name, measure, tuple(scores), len(self.setup.rows))
        drawer = next(candidate for candidate in candidates if candidate.name == choice.chosen).make()
        return drawer, _told(choice, drawer)

    def _without_scores(self, series: TypedColumn, others: Table) -> tuple[ConditionalSampler, SamplerChoice]:
        """Numbers whose differences cannot be squared: a tree says by its tests whether there are subgroups."""
        setup = self.setup
        tree = grow_partition(others, (series.info.name,), (series,), None, setup.settings, setup.prepared)
        donors = donors_of(setup, tree)
        chosen = "marginal" if len(donors.partition) == 1 else "subgroups"
        why = "its numbers are too large, or too close to each other, for scores"
        return donors, _told(SamplerChoice.only(series.info.name, chosen, why), donors)

    def _among_known(self, series: TypedColumn, others: Table) -> tuple[ConditionalSampler, SamplerChoice]:
        """A feature with missing values: donors give them on, which numbers about a shift cannot."""
        tree = grow_partition(others, (series.info.name,), (series,), None, self.setup.settings, self.setup.prepared)
        known = np.flatnonzero(~series.missing)
        if len(known) < 4 or len(tree) == 1:
            single = donors_of(self.setup, tree.at_depth(0))
            return single, SamplerChoice.only(series.info.name, "marginal", "no column tells its values apart")
        part = replace(self.setup, table=self.setup.table.rows(known), rows=self.setup.rows[known], prepared=None)
        compared = CandidateSet(part, TypedColumn(series.info, series.values[known]), others.rows(known))
        candidates = compared.judged_again([compared.marginal(), *compared.subgroups()])
        candidates = [replace(one, make=self._maker(one.name, tree)) for one in candidates]
        return self._settled(series, candidates, takes_levels(series))

    def _maker(self, name: str, tree: Partition) -> Callable[[], ConditionalSampler]:
        return lambda: donors_of(self.setup, tree if name == "subgroups" else tree.at_depth(0))


def _has_subgroups(drawer: ConditionalSampler) -> bool:
    """Whether results have subgroups to be told by, or no column tells anything, so that there are none."""
    return isinstance(drawer, TrainingSubgroups) or (isinstance(drawer, ResidualSampler) and len(drawer.shown) > 1)


def _told(choice: SamplerChoice, drawer: ConditionalSampler) -> SamplerChoice:
    """The choice, with what can be said of the sampler that was fitted."""
    if isinstance(drawer, TrainingSubgroups):
        return replace(choice, n_subgroups=len(drawer.partition), conditioning=drawer.conditioning)
    if isinstance(drawer, ResidualSampler):
        return replace(
            choice,
            shift=drawer.shift.text(),
            kept=drawer.kept,
            n_subgroups=len(drawer.partition),
            conditioning=drawer.conditioning,
        )
    if isinstance(drawer, LevelSampler):
        return replace(choice, shift=drawer.shift.text(), conditioning=drawer.shift.columns)
    return choice


def _summary(candidate: Candidate, best: Candidate) -> CandidateScore:
    worse, error = mean_and_std_error(known(candidate.scores - best.scores))
    return CandidateScore(candidate.name, candidate.score, worse, error, candidate.complexity)
