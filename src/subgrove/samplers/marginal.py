"""Marginal redraw: any other row may be the donor. What permutation importance does."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from subgrove._core.kinds import Codes, Floats
from subgrove._core.random import Streams, cached
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, read_training_table, title
from subgrove.samplers.exact_expectation import exact_among, exact_from
from subgrove.samplers.permutations import outside_donors, shifted_rings, weighted_donors
from subgrove.samplers.redraw import ResampledFeature, RowGroups


class Marginal(Sampler):
    """Gives each row the value of any other row.

    The redrawn column has the distribution of the feature, whatever the other columns are: with dependent features
    this makes rows that cannot exist. It is the sampler of permutation importance.

    Parameters
    ----------
    fixed_points : bool, default False
        Whether a row may be given its own value, as a plain shuffle does. That makes the importance too small by
        the factor (n - 1) / n.
    donors : {"test", "train"}, default "test"
        Where values are taken from: other rows that are redrawn, or training rows. The latter is what data in
        partitions need, whose rows are never all at hand.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> sampler = sg.samplers.Marginal().fit(X)
    >>> for column in sampler.sample(X.head(4), "season", 2):
    ...     print(len(column))
    4
    4
    """

    name = "marginal"
    accepts_any_column = True
    accepts_groups = True
    conditional = False

    def __init__(self, fixed_points: bool = False, donors: Literal["test", "train"] = "test") -> None:
        self.fixed_points = fixed_points
        self.donors = donors

    @property
    def learns(self) -> bool:  # type: ignore[override]  # training rows must not be those that are judged
        """Whether fit looks at the rows."""
        return self.donors == "train"

    def fit(self, X: Any, features: Any = None) -> FittedMarginal:
        """Note the columns; there is nothing to learn.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be redrawn, or groups of names; all columns if not given.
        """
        reject_strange_donors(self.donors, self.fixed_points)
        table, _ = read_training_table(X, features, self)
        if self.donors == "test":
            return FittedMarginal(table.columns, fixed_points=self.fixed_points)
        return FittedMarginal(table.columns, X, table=table)


def reject_strange_donors(donors: Any, fixed_points: bool) -> None:
    """Donors are "test" or "train"; the latter have no fixed points."""
    if donors not in ("test", "train"):
        raise ParameterError(f"donors must be 'test' or 'train'; got {donors!r}.")
    if donors == "train" and fixed_points:
        raise ParameterError("fixed_points=True has no meaning with donors='train': no row is its own donor there.")


@dataclass(frozen=True, eq=False)
class FittedMarginal(FittedSampler):
    """Redraws from all rows."""

    fixed_points: bool = False
    table: Table | None = None  # training rows, if they are the donors

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw of one feature."""
        groups = RowGroups.single(table.n_rows)
        if self.table is not None:
            return draw_outside(groups, table, self.table, np.zeros(self.table.n_rows, np.int32), feature, rngs, exact)
        return draw_within(groups, table, feature, rngs, weights, exact=exact, fixed_points=self.fixed_points)

    @property
    def uses_training_donors(self) -> bool:
        """Whether donors are training rows."""
        return self.table is not None

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """None are split on."""
        return ()

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedMarginal:
        """There is nothing to cut back."""
        return self


def draw_within(
    groups: RowGroups,
    table: Table,
    feature: Feature,
    rngs: Streams,
    weights: Floats | None,
    *,
    exact: bool,
    fixed_points: bool,
) -> ResampledFeature:
    """The redraw from other rows of the same subgroup."""
    n_groups = len(groups)
    found = None
    if exact and not fixed_points:
        found = exact_among(groups.code, n_groups, table, feature, len(rngs), weights)

    def draws() -> Iterator[Changes]:
        if weights is None:
            rings = shifted_rings(groups.code, n_groups, rngs, fixed_points=fixed_points)
            return (dict.fromkeys(feature, donors) for donors in rings)
        drawn = weighted_donors(groups.code, n_groups, weights, rngs, fixed_points=fixed_points)
        return (dict.fromkeys(feature, Donors(rows)) for rows in drawn)

    sizes = np.bincount(groups.code, weights=weights, minlength=n_groups)
    population = np.maximum(sizes - (0 if fixed_points else 1), 0)
    if weights is not None:  # draws are independent; only a row that counts once and is alone has no other draw
        rows = np.bincount(groups.code, minlength=n_groups)
        population = np.where((rows == 1) & (sizes <= 1), 0.0, np.inf)
    return ResampledFeature(groups, draws, found, population)


def draw_outside(
    groups: RowGroups, table: Table, train: Table, train_code: Codes, feature: Feature, rngs: Streams, exact: bool
) -> ResampledFeature:
    """The redraw from training rows of the same subgroup."""
    n_groups = len(groups)
    pools = cached(rngs, "members", lambda: [np.flatnonzero(train_code == k) for k in range(n_groups)])
    for k in np.flatnonzero(np.bincount(groups.code, minlength=n_groups)).tolist():
        if not len(pools[k]):
            raise ParameterError(
                f"No training row is in the subgroup {groups.rules[k]!r} of {title(feature)!r}, so there is no "
                f"donor for its rows. Pass the training rows that the subgroups were found on, or donors='test'."
            )
    found = exact_from(groups.code, n_groups, table, train, train_code, feature, rngs) if exact else None

    def draws() -> Iterator[Changes]:
        donors = outside_donors(groups.code, pools, rngs)
        return (dict.fromkeys(feature, Donors(rows, train=True)) for rows in donors)

    return ResampledFeature(groups, draws, found, np.array([float(len(pool)) for pool in pools]))
