"""Interval borders: each row is moved to a border of its interval, as in accumulated local effects (ALE)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove._core.moments import interval_ends, quantile_rows
from subgrove._core.validate import whole_number
from subgrove._data.replace_columns import Changes, Donors, Rows
from subgrove._data.table import Table
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, lookup_feature, read_training_table
from subgrove.samplers.resampled_feature import ExactExpectation, ExpectationTerm, ResampledFeature, RowGroups


@dataclass(eq=False, repr=False)
class Intervals(Sampler):
    """Moves each row to the left or right border of the interval that its value lies in.

    The borders are quantiles of the training rows, so intervals have about the same number of rows. A row is moved to
    either border with probability 1/2, so new values stay close to the old ones, as in accumulated local effects
    (Apley and Zhu 2020).

    Parameters
    ----------
    n_intervals : int, default 30
        Number of intervals; there is one border more. Equal borders are merged, so there are fewer intervals if the
        training rows have few distinct values.

    Notes
    -----
    Borders are values of training rows: the smallest value v such that a share k / `n_intervals` of the rows is at
    most v (quantiles of type 1), for k = 0, 1, ... An interval contains its right border, the first one also its left
    border. A value outside the training range belongs to the nearest interval.

    Missing values have no interval and raise an error.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> sampler = sg.samplers.Intervals(n_intervals=4).fit(X, ["temp"])
    >>> sampler.borders["temp"].tolist()
    [-5.2, 7.8, 15.4, 22.8, 32.5]
    """

    name = "intervals"
    accepts_any_column = True
    conditional = False
    feature_kinds = frozenset({"numeric", "ordered"})
    accepts_missing = False

    n_intervals: int = 30

    def fit(self, X: Any, features: Any = None) -> FittedIntervals:
        """Find the borders of each feature.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """
        n_intervals = whole_number("n_intervals", self.n_intervals, least=1)
        table, read = read_training_table(X, features, self)
        borders: dict[str, Floats] = {}
        representatives: dict[str, Rows] = {}
        for (name,) in read:
            borders[name], representatives[name] = _quantiles(table.values(name), n_intervals)
        return FittedIntervals(table.columns, X, borders=borders, representatives=representatives)


@dataclass(frozen=True, eq=False)
class FittedIntervals(FittedSampler):
    """Moves rows to the borders of their intervals.

    Attributes
    ----------
    borders : mapping
        Feature -> sorted borders; level numbers if the feature is ordered, microseconds if it is a date.
    representatives : mapping
        Feature -> a training row with each border value.
    """

    row_wise: ClassVar[bool] = True
    borders: Mapping[str, Floats] = field(kw_only=True)
    representatives: Mapping[str, Rows] = field(kw_only=True)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature; the expectation is exact with two or more repeats."""
        borders = lookup_feature(self.borders, feature, Intervals.name)
        representatives = self.representatives[feature[0]]
        values = table.values(feature[0])
        _reject_not_finite(values, feature[0])
        left, right = interval_ends(borders, values)

        def draws() -> Iterator[Changes]:
            for rng in rngs:
                ends = np.where(rng.random(len(values)) < 0.5, left, right)
                yield {feature[0]: Donors(representatives[ends], train=True, representatives=True)}

        def terms() -> Iterator[ExpectationTerm]:
            for ends in (left, right):
                moved = np.flatnonzero(borders[ends] != values)
                changes = {feature[0]: Donors(representatives[ends[moved]], train=True, representatives=True)}
                yield ExpectationTerm(moved, changes, np.full(len(moved), 0.5))

        is_exact = exact and len(rngs) >= 2
        expectation = ExactExpectation(np.ones(len(values), dtype=np.bool_), terms) if is_exact else None
        return ResampledFeature(RowGroups.single(len(values)), draws, expectation)


def _quantiles(values: npt.NDArray[Any], n_intervals: int) -> tuple[Floats, Rows]:
    """Return distinct quantiles of type 1 at 0, 1 / n_intervals, ..., 1, and rows with these values."""
    representatives = quantile_rows(values, None, np.linspace(0, 1, n_intervals + 1))
    borders, first = np.unique(values[representatives], return_index=True)
    return borders, representatives[first]


def _reject_not_finite(values: npt.NDArray[Any], name: str) -> None:
    invalid = ~np.isfinite(values)
    if invalid.any():
        row = int(np.flatnonzero(invalid)[0])
        what = "a missing value" if np.isnan(values[row]) else "a level that is absent from training"
        raise ParameterError(
            f"sampler 'intervals' has no interval for {what}: column {name!r} has {int(invalid.sum())} such rows, the "
            f"first is row {row}. Impute them, drop these rows, or use 'subgroups'."
        )
