"""Identity sampler: the upper bound of fidelity that other samplers are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table
from subgrove.samplers.base import Feature, FittedSampler, Sampler, read_training_table
from subgrove.samplers.resampled_feature import ExactExpectation, ExpectationTerm, ResampledFeature, RowGroups


@dataclass(eq=False, repr=False)
class Unchanged(Sampler):
    """Leaves all values unchanged.

    No sample is closer to the data than the data, so its fidelity is an upper bound for other samplers. Every
    importance is 0, and the model is not evaluated for it.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> sampler = sg.samplers.Unchanged().fit(X)
    >>> for column in sampler.sample(X.head(3), "season", 1):
    ...     print(list(column))
    ['WINTER', 'WINTER', 'WINTER']
    """

    name = "unchanged"
    accepts_any_column = True
    accepts_groups = True
    conditional = False
    learns = False
    is_bound = True

    def fit(self, X: Any, features: Any = None) -> FittedUnchanged:
        """Record the columns; nothing is learned.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """
        table, _ = read_training_table(X, features, self)
        return FittedUnchanged(table.columns)


@dataclass(frozen=True, eq=False)
class FittedUnchanged(FittedSampler):
    """Gives each row its own values."""

    row_wise: ClassVar[bool] = True

    @property
    def learned_from_rows(self) -> bool:
        """Whether the fitted state depends on the training rows."""
        return False

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Return the feature unchanged."""
        own = Donors(np.arange(table.n_rows))

        def draws() -> Iterator[Changes]:
            return (dict.fromkeys(feature, own) for _ in range(len(rngs)))

        def terms() -> Iterator[ExpectationTerm]:
            return iter(())

        expectation = ExactExpectation(np.ones(table.n_rows, dtype=np.bool_), terms) if exact else None
        # There is only one possible draw.
        return ResampledFeature(RowGroups.single(table.n_rows), draws, expectation, np.array([1.0]))
