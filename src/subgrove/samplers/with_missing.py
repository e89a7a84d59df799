"""Features with missing values: whether a value is missing, and the known values, are resampled one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table
from subgrove._subgroups import Partition
from subgrove.samplers.base import Feature, FittedSampler
from subgrove.samplers.resampled_feature import ResampledFeature


@dataclass(frozen=True, eq=False)
class MissingProbability:
    """Probability that the value of a feature is missing.

    Attributes
    ----------
    share : float
        Share of missing values in the training rows.
    predictor : object or None
        Predicts the probabilities of a known and of a missing value; None if they are the same in all rows.
    """

    share: float
    predictor: Any = None

    def predict(self, table: Table) -> Floats:
        """Return the probability in each row."""
        if self.predictor is None:
            return np.full(table.n_rows, self.share)
        return np.asarray(self.predictor.predict(table)[:, 1])


@dataclass(frozen=True, eq=False, kw_only=True)
class WithMissing(FittedSampler):
    """Resamples the known values of a feature, and then whether the value is missing.

    Attributes
    ----------
    known : FittedSampler
        Sampler of the known values.
    missing : MissingProbability
        Probability that a value is missing.
    representative : int
        A training row in which the value is missing.
    """

    known: FittedSampler
    missing: MissingProbability
    representative: int

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the feature."""
        (name,) = feature
        base = self.known.resample(table, feature, rngs, weights=weights, exact=False)
        probability = self.missing.predict(table)

        def draws() -> Iterator[Changes]:
            for rng, changes in zip(rngs.apart("missing values"), base.draws(), strict=False):
                yield {name: self._with_missing(changes[name], rng.random(table.n_rows) < probability)}

        return ResampledFeature(base.groups, draws)

    def _with_missing(self, column: Any, missing: Any) -> Any:
        if isinstance(column, Donors):
            rows = np.where(missing, self.representative, column.rows)
            return Donors(rows, train=True, representatives=column.representatives)
        return np.where(missing, np.nan, column)

    @property
    def has_subgroups(self) -> bool:
        """Whether values are drawn within subgroups by which results can be reported."""
        return self.known.has_subgroups

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """Return the split columns of the tree of the known values."""
        return self.known.split_columns(feature)

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the subgroups by which results are reported."""
        return self.known.reporting_subgroups(feature)

    def restricted(self, feature: Feature, columns: Collection[str]) -> WithMissing:
        """Return the sampler with the tree of the known values pruned to splits on some columns."""
        return replace(self, known=self.known.restricted(feature, columns))

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe the sampler of the known values."""
        return self.known.choice_details()
