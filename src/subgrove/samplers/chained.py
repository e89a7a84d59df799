"""Features that are resampled one part after the other, each by the sampler that suits it.

- Groups of features by the chain rule: each member given the other columns and the members before it.
- Features with special values (missing ones, and values that many rows share, such as 0 or a limit of censoring): first
  which rows have a special value, then the ordinary values of the others.
- Numbers with several modes: first near which mode, then the value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table, TypedColumn
from subgrove._subgroups import Partition
from subgrove.samplers.base import Feature, FittedSampler
from subgrove.samplers.location_shift import NewValues
from subgrove.samplers.predicted_probabilities import nearest_mode
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainedMembers(FittedSampler):
    """Resamples several features jointly, one after the other.

    Attributes
    ----------
    names : tuple of str
        The members.
    samplers : tuple of FittedSampler
        Sampler of each member; those after the first may depend on the members before them.
    shown : Partition
        Subgroups by which results are reported.
    table : Table
        Training rows.
    rows : int array
        Their positions in the user's table.
    conditioning : tuple of str
        Columns outside the group that new values depend on.
    """

    names: tuple[str, ...]
    samplers: tuple[FittedSampler, ...]
    shown: Partition
    table: Table
    rows: Rows
    conditioning: tuple[str, ...] = ()

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the members; their combinations have no exact expectation."""
        names = self.names

        def draws() -> Iterator[Changes]:
            first = self.samplers[0].resample(table, names[:1], rngs, exact=False)
            for repeat, changes in enumerate(first.draws()):
                drawn, changed = dict(changes), table
                for previous, name, sampler in zip(names, names[1:], self.samplers[1:], strict=False):
                    changed = with_values(changed, previous, self._values(previous, drawn[previous]))
                    streams = rngs.apart(f"{name} in repeat {repeat}")
                    drawn |= next(iter(sampler.resample(changed, (name,), streams, exact=False).draws()))
                yield drawn

        code = self.shown._assign_table(table).astype(np.int32)
        return ResampledFeature(RowGroups(code, self.shown.rules, self.conditioning), draws)

    def _values(self, name: str, column: Any) -> Any:
        """Return new values as they are in a table."""
        if not isinstance(column, Donors):
            return column
        return self.table.values(name)[np.searchsorted(self.rows, column.rows)]

    @property
    def has_subgroups(self) -> bool:
        """Whether results can be reported by subgroups."""
        return True

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the subgroups by which results are reported."""
        return self.shown

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe this sampler."""
        return {"conditioning": self.conditioning}


def with_values(table: Table, name: str, values: Any) -> Table:
    """Return the table with other values of one column."""
    place = table.names.index(name)
    at, numbers, codes = table.positions()[place], table.numbers, table.codes
    if table.columns[place].is_nominal:
        codes = codes.copy()
        codes[:, at] = values
    else:
        numbers = numbers.copy()
        numbers[:, at] = values
    return Table(table.columns, numbers, codes, table.unseen, table.places, table.clusters)


def ignoring_own_values(sampler: Any) -> Any:
    """Return the sampler without the share of their own values, or residuals, that rows keep.

    A member that is drawn after others has another distribution than in its row, if these have changed.
    """
    shares = {field.name for field in fields(sampler)} & {"retention", "kept"}
    parts = {field.name for field in fields(sampler)} & {"ordinary", "probabilities"}
    changes = {name: ignoring_own_values(getattr(sampler, name)) for name in parts} | dict.fromkeys(shares, 0.0)
    if isinstance(sampler, SeparateModes):
        changes["modes"] = tuple(map(ignoring_own_values, sampler.modes))
    return replace(sampler, **changes) if changes else sampler


@dataclass(frozen=True, eq=False)
class PartProbabilities:
    """Probabilities of the parts of a feature: an ordinary value and each special one, or each mode.

    Attributes
    ----------
    shares : float array
        Shares in the training rows.
    predictor : object or None
        Predicts the probabilities; None if they are the same in all rows.
    kept : float
        Share of rows that keep what they have, because predicted probabilities are estimates.
    """

    shares: Floats
    predictor: Any = None
    kept: float = 0.0

    def predict(self, table: Table, own: Rows) -> Floats:
        """Return the probabilities in each row; `own` is what the row has."""
        if self.predictor is None:
            return np.tile(self.shares, (table.n_rows, 1))
        has = own[:, None] == np.arange(len(self.shares))
        return np.asarray((1 - self.kept) * self.predictor.predict(table) + self.kept * has)

    def held_out(self, table: Table, own: Rows, log_scores: Floats) -> Floats:
        """Return the probabilities of training rows, given held-out log scores of what they have."""
        predicted = self.shares if self.predictor is None else self.predictor.predict(table)
        has = own[:, None] == np.arange(len(self.shares))
        others, known = np.where(has, 0.0, predicted), np.exp(-log_scores)[:, None]
        total = np.maximum(others.sum(axis=1, keepdims=True), 1e-300)  # 0 where the others are impossible
        return np.where(has, known, (1 - known) * others / total)

    def draws(self, table: Table, own: Rows, rngs: Streams) -> Callable[[], Iterator[Rows]]:
        """Return the parts that rows are in, anew at each repeat."""
        ends = np.cumsum(self.predict(table, own), axis=1)

        def drawn() -> Iterator[Rows]:
            for rng in rngs:
                points = rng.random(table.n_rows) * ends[:, -1]
                yield np.minimum((points[:, None] >= ends).sum(axis=1), len(self.shares) - 1)

        return drawn


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoPart(FittedSampler):
    """Resamples the ordinary values of a feature, and then which rows have a special value.

    Attributes
    ----------
    ordinary : FittedSampler
        Sampler of the ordinary values.
    probabilities : PartProbabilities
        Probabilities of an ordinary value, and of each special one.
    values : float array
        The special values; NaN stands for missing.
    representatives : int array
        A training row with each special value.
    low, high : float
        Range of the training values, if an end of it is a special value.
    """

    ordinary: FittedSampler
    probabilities: PartProbabilities
    values: Floats
    representatives: Rows
    low: float = -np.inf
    high: float = np.inf

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the feature."""
        (name,) = feature
        own = special_codes(table.series(name), self.values)
        base = self.ordinary.resample(_hidden(table, name, own), feature, rngs, weights=weights, exact=False)
        drawn = self.probabilities.draws(table, own, rngs.apart("special values"))

        def draws() -> Iterator[Changes]:
            return ({name: self._joined(new[name], part)} for part, new in zip(drawn(), base.draws(), strict=False))

        return ResampledFeature(base.groups, draws)

    def _joined(self, column: Any, part: Rows) -> Any:
        """Return ordinary values, and special ones in the rows that have one."""
        if isinstance(column, Donors):
            rows = np.where(part > 0, self.representatives[np.maximum(part - 1, 0)], column.rows)
            return Donors(rows, train=True, representatives=column.representatives)
        return np.where(part > 0, self.values[np.maximum(part - 1, 0)], np.clip(column, self.low, self.high))

    @property
    def has_subgroups(self) -> bool:
        """Whether ordinary values are drawn within subgroups by which results can be reported."""
        return self.ordinary.has_subgroups

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """Return the split columns of the tree of the ordinary values."""
        return self.ordinary.split_columns(feature)

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the subgroups by which results are reported."""
        return self.ordinary.reporting_subgroups(feature)

    def restricted(self, feature: Feature, columns: Collection[str]) -> TwoPart:
        """Return the sampler with the tree of the ordinary values pruned to splits on some columns."""
        return replace(self, ordinary=self.ordinary.restricted(feature, columns))

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe the sampler of the ordinary values."""
        return self.ordinary.choice_details()


@dataclass(frozen=True, eq=False, kw_only=True)
class SeparateModes(FittedSampler):
    """Draws near which mode a new value is, and then a value around the prediction of this mode.

    Attributes
    ----------
    modes : tuple of ResidualSampler
        Sampler of the values around each mode.
    spreads : float array
        Standard deviations around the modes.
    probabilities : PartProbabilities
        Probability of each mode.
    values : NewValues
        Rounding of new values.
    """

    modes: tuple[Any, ...]
    spreads: Floats
    probabilities: PartProbabilities
    values: NewValues

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the feature; new numbers have no exact expectation."""
        (name,) = feature
        values = table.values(name)
        predicted = np.column_stack([mode.predictor.predict(table) for mode in self.modes])
        own = np.where(np.isnan(values), -1, nearest_mode(values, predicted, self.spreads))
        bases = []
        for number, mode in enumerate(self.modes):  # a row near another mode has no residual to keep
            hidden = with_values(table, name, np.where(own == number, values, np.nan))
            bases.append(
                replace(mode, values=mode.values.unrounded).resample(hidden, feature, rngs.apart(f"mode {number}"))
            )
        drawn = self.probabilities.draws(table, own, rngs.apart("modes"))

        def draws() -> Iterator[Changes]:
            for part, *changes in zip(drawn(), *(base.draws() for base in bases), strict=False):
                yield {name: self.values.rounded(np.choose(part, [new[name] for new in changes]))}

        return ResampledFeature(RowGroups.single(table.n_rows, self.conditioning), draws)

    @property
    def conditioning(self) -> tuple[str, ...]:
        """Columns that probabilities and values depend on."""
        predictor = self.probabilities.predictor
        first = () if predictor is None else predictor.columns
        details = (mode.choice_details()["conditioning"] for mode in self.modes)
        return tuple(dict.fromkeys(chain(first, *details)))

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe this sampler."""
        return {"conditioning": self.conditioning}


def special_codes(series: TypedColumn, values: Floats) -> Rows:
    """Return for each row 0, or the number of its special value, from 1."""
    codes = np.zeros(len(series.values), dtype=np.intp)
    for number, value in enumerate(values, start=1):
        codes[series.missing if np.isnan(value) else series.values == value] = number
    return codes


def _hidden(table: Table, name: str, own: Rows) -> Table:
    """Return the table with special values of a number as missing, for a sampler of ordinary values."""
    series = table.series(name)
    if series.info.is_nominal or not (own > 0).any():
        return table
    return with_values(table, name, np.where(own > 0, np.nan, series.values))
