"""Marginal redraw: any other row may be the donor. What permutation importance does."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._frames import Changes, Donors
from subgrove._kinds import Floats
from subgrove._random import Streams
from subgrove._table import Table
from subgrove.samplers.base import Feature, Fitted, Method, read_training_table
from subgrove.samplers.expectation import exact_among
from subgrove.samplers.redraw import Groups, Redraw
from subgrove.samplers.shifts import shifted_rings, weighted_donors


class Marginal(Method):
    """Gives each row the value of any other row.

    The redrawn column has the distribution of the feature, whatever the other columns are: with dependent features
    this makes rows that cannot exist. It is the sampler of permutation importance.

    Parameters
    ----------
    fixed_points : bool, default False
        Whether a row may be given its own value, as a plain shuffle does. That makes the importance too small by
        the factor (n - 1) / n.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> sampler = sg.samplers.Marginal().fit(X)
    >>> for column in sampler.redraw(X.head(4), "season", 2):
    ...     print(len(column))
    4
    4
    """

    name = "marginal"
    takes_any_column = True
    takes_groups = True
    conditional = False
    learns = False

    def __init__(self, fixed_points: bool = False) -> None:
        self.fixed_points = fixed_points

    def fit(self, X: Any, features: Any = None) -> FittedMarginal:
        """Note the columns; there is nothing to learn.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be redrawn, or groups of names; all columns if not given.
        """
        table, _ = read_training_table(X, features, self)
        return FittedMarginal(table.columns, fixed_points=self.fixed_points)


@dataclass(frozen=True, eq=False)
class FittedMarginal(Fitted):
    """Redraws from all rows."""

    fixed_points: bool = False

    def draw(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> Redraw:
        """The redraw of one feature."""
        groups = Groups.single(table.n_rows)
        return draw_within(groups, table, feature, rngs, weights, exact=exact, fixed_points=self.fixed_points)

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """None are split on."""
        return ()

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedMarginal:
        """There is nothing to cut back."""
        return self


def draw_within(
    groups: Groups,
    table: Table,
    feature: Feature,
    rngs: Streams,
    weights: Floats | None,
    *,
    exact: bool,
    fixed_points: bool,
) -> Redraw:
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
    return Redraw(groups, draws, found, population)
