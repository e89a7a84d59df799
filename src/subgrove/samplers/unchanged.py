"""No redraw at all: the upper bound that other samplers are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.random import Streams
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table
from subgrove.samplers.base import Feature, FittedSampler, Sampler, read_training_table
from subgrove.samplers.redraw import ExactExpectation, ExpectationTerm, ResampledFeature, RowGroups


class Unchanged(Sampler):
    """Leaves every row as it is.

    Nothing is closer to the data than the data, so its fidelity is what other samplers can reach at most. Every
    importance is 0, and the model is not asked for it.

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

    def __init__(self) -> None:
        """There is nothing to set; without a constructor of its own, `get_params` would show that of `object`."""

    def fit(self, X: Any, features: Any = None) -> FittedUnchanged:
        """Note the columns; there is nothing to learn.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be redrawn, or groups of names; all columns if not given.
        """
        table, _ = read_training_table(X, features, self)
        return FittedUnchanged(table.columns)


@dataclass(frozen=True, eq=False)
class FittedUnchanged(FittedSampler):
    """Gives each row its own values."""

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw that changes nothing."""
        own = Donors(np.arange(table.n_rows))

        def draws() -> Iterator[Changes]:
            return (dict.fromkeys(feature, own) for _ in range(len(rngs)))

        def steps() -> Iterator[ExpectationTerm]:
            return iter(())

        found = ExactExpectation(np.ones(table.n_rows, dtype=np.bool_), steps) if exact else None
        # One draw is all that there is.
        return ResampledFeature(RowGroups.single(table.n_rows), draws, found, np.array([1.0]))
