"""Selection of the sampler of one feature among its candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from subgrove._data.encode import is_extreme
from subgrove._data.table import Table, TypedColumn
from subgrove._regress import mean_and_std_error
from subgrove._subgroups import Partition
from subgrove._subgroups.partition import grow_partition
from subgrove.samplers.auto.candidates import (
    Candidate,
    CandidateSet,
    ConditionalSampler,
    best_candidate,
    present,
    training_subgroups,
)
from subgrove.samplers.auto.choice import CandidateScore, SamplerChoice
from subgrove.samplers.base import Feature, title
from subgrove.samplers.location_shift import SharedTraining, has_few_levels

Selected = tuple[ConditionalSampler, SamplerChoice]


@dataclass(frozen=True, eq=False)
class SamplerSelector:
    """Selects the sampler of one feature."""

    training: SharedTraining

    def __call__(self, feature: Feature) -> tuple[ConditionalSampler, SamplerChoice, Partition | None]:
        """Return the sampler, its choice, and subgroups for reporting if it does not resample within subgroups."""
        predictors = self.training.predictors(feature)
        if len(feature) > 1:
            return *self._group(feature, predictors), None
        series = self.training.table.series(feature[0])
        if series.info.kind == "numeric" and is_extreme(series.values):
            return *self._without_scores(series, predictors), None
        if series.missing.any():
            return *self._with_missing_values(series, predictors), None
        candidates = CandidateSet(self.training, series, predictors)
        by_level = has_few_levels(series)
        sampler, choice = self._select(series, candidates.levels() if by_level else candidates.numbers(), by_level)
        return sampler, choice, None if sampler.has_subgroups else candidates.reporting_subgroups

    def _select(self, series: TypedColumn, candidates: list[Candidate], by_level: bool) -> Selected:
        best = best_candidate(candidates)
        scores = tuple(_summary(candidate, best) for candidate in candidates)
        measure = "log score" if by_level else "CRPS"
        choice = SamplerChoice.between(series.info.name, measure, scores, len(self.training.rows))
        sampler = next(candidate for candidate in candidates if candidate.name == choice.selected).make()
        return sampler, _with_details(choice, sampler)

    def _group(self, feature: Feature, predictors: Table) -> Selected:
        series = tuple(self.training.table.series(name) for name in feature)
        tree = self._grow(feature, series, predictors)
        sampler = training_subgroups(self.training, tree)
        return sampler, _with_details(SamplerChoice.of_group(title(feature), len(tree)), sampler)

    def _without_scores(self, series: TypedColumn, predictors: Table) -> Selected:
        """Select by the tests of a tree, for numbers whose squared differences over- or underflow."""
        tree = self._grow((series.info.name,), (series,), predictors)
        sampler = training_subgroups(self.training, tree)
        name = "marginal" if len(tree) == 1 else "training_subgroups"
        why = "its numbers are too large, or too close to each other, for scores"
        return sampler, _with_details(SamplerChoice.only(series.info.name, name, why), sampler)

    def _with_missing_values(self, series: TypedColumn, predictors: Table) -> Selected:
        """Select among donors, which can pass on missing values; a linear prediction cannot."""
        tree = self._grow((series.info.name,), (series,), predictors)
        known = np.flatnonzero(~series.missing)
        if len(known) < 4 or len(tree) == 1:
            single = training_subgroups(self.training, tree.at_depth(0))
            why = "no column is significantly associated with it"
            return single, SamplerChoice.only(series.info.name, "marginal", why)
        training = replace(
            self.training,
            table=self.training.table.rows(known),
            rows=self.training.rows[known],
            sorted_table=None,
        )
        complete = TypedColumn(series.info, series.values[known])
        candidates = CandidateSet(training, complete, predictors.rows(known))
        scored = candidates.rescored([candidates.marginal(), *candidates.subgroups()])
        scored = [replace(one, make=self._maker(one.name, tree)) for one in scored]
        return self._select(series, scored, has_few_levels(series))

    def _maker(self, name: str, tree: Partition) -> Callable[[], ConditionalSampler]:
        return lambda: training_subgroups(self.training, tree if name == "training_subgroups" else tree.at_depth(0))

    def _grow(self, feature: Feature, series: tuple[TypedColumn, ...], predictors: Table) -> Partition:
        return grow_partition(predictors, feature, series, None, self.training.settings, self.training.sorted_table)


def _with_details(choice: SamplerChoice, sampler: ConditionalSampler) -> SamplerChoice:
    """Return the choice with a description of the fitted sampler."""
    return replace(choice, **sampler.choice_details())


def _summary(candidate: Candidate, best: Candidate) -> CandidateScore:
    gap, error = mean_and_std_error(present(candidate.scores - best.scores))
    return CandidateScore(candidate.name, candidate.score, gap, error, candidate.complexity)
