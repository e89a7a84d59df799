"""Automatic sampler selection: candidates are compared on held-out rows, the simplest good one is selected.

Requirements this design meets:

- a proper score (CRPS of numbers, log score of levels) of each training row, by a fit without it;
- the simplest candidate within one standard error of the best is selected: fewest terms and splits;
- bounded cost: at most `max_rows` rows are used; a tree is regrown on halves only if the optimism of having selected
  its splits on the same rows could change the selection; smooth functions and forests are tried only if a small forest
  finds that residuals depend on the columns;
- the selection is documented: every score, and the reason in one sentence (`SamplerChoice`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from subgrove._core.execution import Streams, one_blas_thread, parallel_map
from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import quote
from subgrove._data.encode import is_extreme
from subgrove._data.table import Table, TypedColumn
from subgrove._subgroups import Partition
from subgrove._subgroups.partition import grow_partition
from subgrove.exceptions import ParameterError
from subgrove.samplers.auto.candidates import (
    Candidate,
    LevelCandidates,
    predict_parts,
    selected_of,
    training_subgroups,
)
from subgrove.samplers.auto.choice import DESCRIPTIONS, SamplerChoice
from subgrove.samplers.auto.numbers import NumberCandidates
from subgrove.samplers.base import Feature, FittedSampler, Sampler, lookup_feature, title
from subgrove.samplers.chained import ChainedMembers, PartProbabilities, TwoPart, ignoring_own_values, special_codes
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups
from subgrove.samplers.training_donors import SharedTraining, TrainingSettings, has_few_levels, read_shared_training

_MIN_ORDINARY = 20  # with fewer ordinary values there is nothing to select by
_MIN_SPECIAL = 10  # with fewer special values, their probability is the same in all rows
Selected = tuple[FittedSampler, SamplerChoice]
_CANDIDATES = frozenset(DESCRIPTIONS) - {"chained_members", "marginal"}
_END_SHARE = 0.05  # of the rows, from which the smallest or the largest value is special
_SHARE = 0.2  # likewise for any other value
_MIN_OTHERS = 50  # rows with other values
_MIN_DISTINCT = 10  # of their values


@dataclass(eq=False, repr=False)
class Auto(TrainingSettings, Sampler):
    """Selects for each feature the sampler with the best score on held-out training rows.

    Candidates for a number are marginal donors, training rows of the same subgroup of a transformation tree, residuals
    of a linear or smooth prediction (also of logarithms or normal scores), residuals whose distribution changes
    smoothly with the other columns, and donors of the same leaves of a random forest. For levels they are donors, and
    probabilities by a multinomial or cumulative model, by smooth functions or by a forest. Whether a value is missing,
    or one that many rows share, such as 0, is resampled apart from the other values. The members of a group of features
    are resampled from donors of the group's subgroups, or one after the other.

    Parameters
    ----------
    max_depth : int, default 30
        Maximum depth of the trees; usually their tests stop them before.
    min_samples_leaf : int, default 30
        Minimum number of training rows in a subgroup.
    alpha : float, default 0.05
        Significance level of the tests that stop a tree.
    given : list of str, optional
        Columns that new values may depend on.
    report_depth : int, default 2
        Depth of the subgroups by which results are reported. Resampling uses the full tree.
    max_rows : int, default 20000
        Maximum number of training rows; a random subset is used if there are more.
    random_state : int, default 0
        Seed of folds, halves, forests and the random subset of rows.
    n_jobs : int, optional
        Number of features fitted in parallel.
    candidates : list of str, optional
        Names of the samplers that are compared with "marginal", as `SamplerChoice` names them, such as
        "training_subgroups"; all by default. Fewer take less time.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> sampler = sg.samplers.Auto().fit(train.X, ["hum", "weather", "yr"])
    >>> for name, choice in sampler.choices.items():
    ...     print(name, choice.selected)
    hum training_subgroups
    weather smooth_levels
    yr marginal
    """

    name = "auto"
    accepts_groups = True
    accepts_any_column = True

    candidates: Collection[str] | None = None

    def narrowed(self, selected: Collection[str]) -> Auto:
        """Return the selection among some candidates and "marginal".

        Parameters
        ----------
        selected : list of str
            Names of candidates; other names are ignored. Without any, all candidates are compared.
        """
        names = frozenset(selected) & _CANDIDATES
        return replace(self, candidates=sorted(names)) if names else self

    def fit(self, X: Any, features: Any = None) -> FittedAuto:
        """Compare the candidates of each feature on training rows, and fit the selected one.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """
        with one_blas_thread():
            columns, parsed, training = read_shared_training(self, X, features)
            training = replace(training, compared=_read_candidates(self.candidates))
            selected = list(parallel_map(SamplerSelector(training), parsed, self.n_jobs))
        by_name = dict(zip(map(title, parsed), selected, strict=True))
        return FittedAuto(
            columns,
            X,
            learned={name: sampler for name, (sampler, _, _) in by_name.items()},
            choices={name: choice for name, (_, choice, _) in by_name.items()},
            reported={name: groups for name, (_, _, groups) in by_name.items() if groups is not None},
            settings=replace(self, n_jobs=1),
        )


@dataclass(frozen=True, eq=False)
class FittedAuto(FittedSampler):
    """Resamples each feature by the sampler selected for it.

    Attributes
    ----------
    learned : mapping
        Feature -> sampler.
    choices : mapping
        Feature -> `SamplerChoice`: the selected sampler, the scores and the reason.
    reported : mapping
        Feature -> subgroups by which results are reported, for features that are not resampled within subgroups.
    settings : Auto or None
        The sampler before it was fitted.
    """

    row_wise: ClassVar[bool] = True
    learned: Mapping[str, FittedSampler] = field(kw_only=True)
    choices: Mapping[str, SamplerChoice] = field(kw_only=True)
    reported: Mapping[str, Partition] = field(kw_only=True, default_factory=dict)
    settings: Auto | None = field(kw_only=True, default=None)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature, or several jointly."""
        resampled = self._sampler(feature).resample(table, feature, rngs, exact=exact)
        reported = self.reported.get(title(feature))
        if reported is None:
            return resampled
        code = reported._assign_table(table).astype(np.int32)
        return replace(resampled, groups=RowGroups(code, reported.rules, resampled.groups.conditioning))

    @property
    def uses_training_donors(self) -> bool:
        """Whether donors are training rows."""
        return True

    @property
    def unfitted(self) -> Auto | None:
        """The sampler before it was fitted."""
        return self.settings

    def selections(self) -> dict[str, list[Any]]:
        """Return the `SamplerChoice` of each feature."""
        return {name: [choice] for name, choice in self.choices.items()}

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """Return the split columns of the feature's tree, if it is resampled within the subgroups of one only."""
        return self._sampler(feature).split_columns(feature)

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the subgroups by which results of the feature are reported."""
        return self.reported.get(title(feature), self._sampler(feature).reporting_subgroups(feature))

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedAuto:
        """Return the sampler with the feature's tree pruned to splits on some columns."""
        pruned = self._sampler(feature).restricted(feature, columns)
        return replace(self, learned={**self.learned, title(feature): pruned})

    def _sampler(self, feature: Feature) -> FittedSampler:
        return lookup_feature(self.learned, feature, Auto.name)


@dataclass(frozen=True, eq=False)
class SamplerSelector:
    """Selects the sampler of one feature.

    Attributes
    ----------
    training : SharedTraining
        The training rows.
    selected : dict
        Column -> what was selected for it given all others, which the last member of a group is too.
    """

    training: SharedTraining
    selected: dict[str, tuple[FittedSampler, SamplerChoice, Partition | None]] = field(default_factory=dict)

    def __call__(self, feature: Feature) -> tuple[FittedSampler, SamplerChoice, Partition | None]:
        """Return the sampler, its choice, and subgroups for reporting if it does not resample within subgroups."""
        return self.of_group(feature) if len(feature) > 1 else self.of_column(feature[0], feature)

    def of_column(self, name: str, excluded: Feature) -> tuple[FittedSampler, SamplerChoice, Partition | None]:
        """Return the same for one column, given all others but the excluded ones."""
        if excluded != (name,):
            return self._select_column(name, excluded)
        if name not in self.selected:
            self.selected[name] = self._select_column(name, excluded)
        return self.selected[name]

    def _select_column(self, name: str, excluded: Feature) -> tuple[FittedSampler, SamplerChoice, Partition | None]:
        feature, predictors = (name,), self.training.predictors(excluded)
        series = self.training.table.series(name)
        if series.info.kind == "numeric" and is_extreme(series.values):
            return *self._by_tests(feature, predictors), None
        special = special_values(series)
        if series.missing.any():
            special = np.append(special, np.nan)
        if len(special):
            return self._two_part(series, special, predictors)
        return self.of_values(series, predictors)

    def of_group(self, feature: Feature) -> tuple[FittedSampler, SamplerChoice, Partition | None]:
        """Return the sampler of a group, which may be resampled from donors or by the chain rule.

        Donors have combinations of values that occur, so they are preferred if none of the members alone needs more.
        """
        first = self.of_column(feature[0], feature)
        alone = chain([first], (self.of_column(name, feature) for name in feature[1:]))
        if all(choice.selected in ("marginal", "training_subgroups") for _, choice, _ in alone):
            return *self._by_tests(feature, self.training.predictors(feature)), None
        training, selector = self.training, self
        if not set(feature) <= set(training.allowed):
            training = replace(training, allowed=(*training.allowed, *feature), sorted_table=None)
            selector = SamplerSelector(training)
        later = [selector.of_column(name, feature[at:]) for at, name in enumerate(feature[1:], start=1)]
        tree = self._grow(feature, tuple(map(training.table.series, feature)), self.training.predictors(feature))
        used = [name for _, choice, _ in (first, *later) for name in choice.conditioning if name not in feature]
        sampler = ChainedMembers(
            training.table.columns,
            names=feature,
            samplers=(first[0], *(ignoring_own_values(one) for one, _, _ in later)),
            shown=tree.at_depth(training.report_depth),
            table=training.table,
            rows=training.rows,
            conditioning=tuple(dict.fromkeys(used)),
        )
        choice = SamplerChoice.only(
            title(feature), "chained_members", "members depend on other columns in ways that donors miss"
        )
        return sampler, _with_details(choice, sampler), None

    def of_values(
        self, series: TypedColumn, predictors: Table
    ) -> tuple[FittedSampler, SamplerChoice, Partition | None]:
        """Return the sampler of a feature without missing values, its choice, and subgroups for reporting."""
        by_level = has_few_levels(series)
        candidates = (LevelCandidates if by_level else NumberCandidates)(self.training, series, predictors)
        sampler, choice = self._select(series, candidates.candidates(), by_level)
        return sampler, choice, None if sampler.has_subgroups else candidates.reporting_subgroups

    def _select(self, series: TypedColumn, candidates: list[Candidate], by_level: bool) -> Selected:
        candidates = [one for one in candidates if one.name == "marginal" or self.training.compares(one.name)]
        measure = "log score" if by_level else "CRPS"
        choice = selected_of(series.info.name, measure, candidates, len(self.training.rows))
        sampler = next(candidate for candidate in candidates if candidate.name == choice.selected).make()
        return sampler, _with_details(choice, sampler)

    def _by_tests(self, feature: Feature, predictors: Table) -> Selected:
        """Select by the tests of a tree: for a group, or numbers whose squared differences over- or underflow."""
        series = tuple(self.training.table.series(name) for name in feature)
        tree = self._grow(feature, series, predictors)
        sampler = training_subgroups(self.training, tree)
        if len(feature) == 1:
            why = "its numbers are too large, or too close to each other, for scores"
        elif len(tree) == 1:
            why = "no column is significantly associated with them"
        else:
            why = f"a group of features has one tree, here with {len(tree)} subgroups"
        name = "marginal" if len(tree) == 1 else "training_subgroups"
        return sampler, _with_details(SamplerChoice.only(title(feature), name, why), sampler)

    def _two_part(
        self, series: TypedColumn, values: Floats, predictors: Table
    ) -> tuple[FittedSampler, SamplerChoice, Partition | None]:
        """Select a sampler of the ordinary values as if there were no others, and predict which rows have others."""
        codes, name = special_codes(series, values), series.info.name
        ordinary = np.flatnonzero(codes == 0)
        if len(ordinary) < _MIN_ORDINARY:
            tree = self._grow((name,), (series,), predictors).at_depth(0)
            why = f"only {len(ordinary)} training rows have a value"
            return training_subgroups(self.training, tree), SamplerChoice.only(name, "marginal", why), None
        complete = TypedColumn(series.info, series.values[ordinary])
        selector = SamplerSelector(self.training.some_rows(ordinary))
        sampler, choice, reported = selector.of_values(complete, predictors.rows(ordinary))
        low, high = -np.inf, np.inf
        if not series.info.is_nominal:
            known = series.values[~series.missing]
            low = float(known.min()) if known.min() in values else low
            high = float(known.max()) if known.max() in values else high
        first = np.array([np.flatnonzero(codes == number)[0] for number in range(1, len(values) + 1)])
        both = TwoPart(
            self.training.table.columns,
            ordinary=sampler,
            probabilities=self._special_probabilities(name, codes, predictors),
            values=values,
            representatives=self.training.rows[first],
            low=low,
            high=high,
        )
        return both, choice, reported

    def _special_probabilities(self, name: str, codes: Rows, predictors: Table) -> PartProbabilities:
        """Return the probabilities of special values: by other columns, if these predict them."""
        counts = np.bincount(codes)
        if np.sort(counts)[-2] < _MIN_SPECIAL:
            return PartProbabilities(counts / counts.sum())
        return predict_parts(self.training, name, codes, predictors)[0]

    def _grow(self, feature: Feature, series: tuple[TypedColumn, ...], predictors: Table) -> Partition:
        return grow_partition(predictors, feature, series, None, self.training.settings, self.training.sorted_table)


def _read_candidates(candidates: Any) -> frozenset[str] | None:
    """Return the names of the candidates; raise if one is unknown."""
    if candidates is None:
        return None
    known = [*sorted(_CANDIDATES), "marginal"]
    if (
        isinstance(candidates, str)
        or not isinstance(candidates, Collection)
        or not all(name in known for name in candidates)
    ):
        raise ParameterError(f"candidates must be a list of names out of {quote(known)}; got {candidates!r}.")
    return frozenset(candidates)


def _with_details(choice: SamplerChoice, sampler: FittedSampler) -> SamplerChoice:
    """Return the choice with a description of the fitted sampler."""
    return replace(choice, **sampler.choice_details())


def special_values(series: TypedColumn) -> Floats:
    """Return the values of a numeric column that many rows share, if the others are like ordinary numbers."""
    none = np.empty(0)
    if series.info.kind != "numeric":
        return none
    known = series.values[~series.missing]
    values, counts = np.unique(known, return_counts=True)
    if len(values) <= _MIN_DISTINCT:
        return none
    limits = np.full(len(values), _SHARE)
    limits[[0, -1]] = _END_SHARE
    special = counts >= limits * len(known)
    ordinary = int(counts[~special].sum())
    enough = ordinary >= max(_MIN_OTHERS, _SHARE * len(known)) and (~special).sum() >= _MIN_DISTINCT
    return np.asarray(values[special]) if enough else none
