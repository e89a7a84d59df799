"""Marginal sampler: any other row can be the donor, as in permutation importance."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from subgrove._core.execution import Streams, cached
from subgrove._core.kinds import Codes, Floats
from subgrove._core.weights import independent_units, own_weights
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, read_training_table, title
from subgrove.samplers.donors import OtherRows, TrainingRows, cyclic_shifts, training_donors, weighted_donors
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups, exact_among, exact_from


@dataclass(eq=False, repr=False)
class Marginal(Sampler):
    """Gives each row the value of any other row.

    The resampled column has the marginal distribution of the feature, whatever the other columns are: with dependent
    features this creates unrealistic rows. It is the sampler of permutation importance.

    Parameters
    ----------
    fixed_points : bool, default False
        Whether a row may receive its own value, as in a plain permutation. This biases the importance towards 0 by
        the factor (n - 1) / n.
    donors : {"test", "train"}, default "test"
        Source of values: other rows of X, or training rows. Data in chunks need the latter, since their rows are never
        all in memory.

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

    fixed_points: bool = False
    donors: Literal["test", "train"] = "test"

    @property
    def learns(self) -> bool:  # type: ignore[override]  # donors from training must not be the rows of X
        """Whether fit uses the rows."""
        return self.donors == "train"

    @property
    def ignores_train(self) -> bool:
        """Whether training rows have no effect."""
        return not self.learns

    @property
    def is_bound(self) -> bool:  # type: ignore[override]  # a plain permutation has fixed points
        """Whether it is a bound of fidelity."""
        return not self.fixed_points

    def reject_given(self, given: Sequence[str]) -> None:
        """Raise unless there are no conditioning columns.

        Parameters
        ----------
        given : sequence of str
            Names of the conditioning columns.
        """
        if given:
            super().reject_given(given)

    def for_chunks(self) -> Marginal:
        """Return the sampler with donors from training."""
        sampler: Marginal = with_training_donors(self)
        return sampler

    def fit(self, X: Any, features: Any = None) -> FittedMarginal:
        """Record the columns; nothing is learned.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """
        check_donors(self.donors, self.fixed_points)
        table, _ = read_training_table(X, features, self)
        if self.donors == "test":
            return FittedMarginal(table.columns, fixed_points=self.fixed_points)
        return FittedMarginal(table.columns, X, table=table)


def check_donors(donors: Any, fixed_points: bool) -> None:
    """Raise unless donors are "test" or "train"; the latter have no fixed points."""
    if donors not in ("test", "train"):
        raise ParameterError(f"donors must be 'test' or 'train'; got {donors!r}.")
    if donors == "train" and fixed_points:
        raise ParameterError("fixed_points=True has no meaning with donors='train': no row is its own donor there.")


def with_training_donors(sampler: Any) -> Any:
    """Return a copy of a sampler with `donors="train"`."""
    if sampler.fixed_points:
        raise ParameterError(
            "fixed_points=True has no meaning for data in chunks: values come from training rows, and no row is its "
            "own donor. Omit it."
        )
    return replace(sampler, donors="train")


@dataclass(frozen=True, eq=False)
class FittedMarginal(FittedSampler):
    """Resamples from all rows."""

    keeps_marginal: ClassVar[bool] = True
    fixed_points: bool = False
    table: Table | None = None  # training rows, if they are the donors

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature, or several jointly."""
        groups = RowGroups.single(table.n_rows)
        if self.table is None:
            return resample_within(groups, table, feature, rngs, weights, exact=exact, fixed_points=self.fixed_points)
        code = np.zeros(self.table.n_rows, np.int32)
        return resample_from_training(groups, table, self.table, code, feature, rngs, exact)

    @property
    def uses_training_donors(self) -> bool:
        """Whether donors are training rows."""
        return self.table is not None

    @property
    def learned_from_rows(self) -> bool:
        """Whether the fitted state depends on the training rows."""
        return self.table is not None

    def for_chunks(self) -> Any:
        """Return the sampler itself if donors are training rows, else one to be fitted on training rows."""
        return self if self.uses_training_donors else Marginal(donors="train")

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """Return an empty tuple: there are no splits."""
        return ()

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedMarginal:
        """Return the sampler itself: there is nothing to prune."""
        return self


def resample_within(
    groups: RowGroups,
    table: Table,
    feature: Feature,
    rngs: Streams,
    weights: Floats | None,
    *,
    exact: bool,
    fixed_points: bool,
) -> ResampledFeature:
    """Resample from other rows of the same subgroup."""
    n_groups, clusters = len(groups), None if fixed_points else table.clusters
    expectation = None
    if exact and not fixed_points and clusters is None:
        expectation = exact_among(groups.code, n_groups, table, feature, len(rngs), weights)

    def draws() -> Iterator[Changes]:
        if weights is None and clusters is None:
            shifts = cyclic_shifts(groups.code, n_groups, rngs, fixed_points=fixed_points)
            return (dict.fromkeys(feature, donors) for donors in shifts)
        drawn = weighted_donors(groups.code, n_groups, weights, rngs, fixed_points=fixed_points, clusters=clusters)
        return (dict.fromkeys(feature, Donors(rows)) for rows in drawn)

    sizes = np.bincount(groups.code, weights=weights, minlength=n_groups)
    population = np.maximum(sizes - (0 if fixed_points else 1), 0)
    if weights is not None:  # draws are independent, except for a singleton, which has no other draw
        rows, own = (np.bincount(groups.code, each, n_groups) for each in (None, own_weights(weights)))
        population = np.where((rows == 1) & (sizes <= own), 0.0, np.inf)
    if clusters is not None:
        population = np.where(independent_units(population, groups.code, clusters) <= 1, 0.0, np.inf)
    known = OtherRows(groups.code, n_groups, fixed_points) if clusters is None else None
    return ResampledFeature(groups, draws, expectation, population, distribution=known)


def resample_from_training(
    groups: RowGroups, table: Table, train: Table, train_code: Codes, feature: Feature, rngs: Streams, exact: bool
) -> ResampledFeature:
    """Resample from training rows of the same subgroup."""
    n_groups = len(groups)
    pools = cached(rngs, "members", lambda: [np.flatnonzero(train_code == k) for k in range(n_groups)])
    for k in np.flatnonzero(np.bincount(groups.code, minlength=n_groups)).tolist():
        if not len(pools[k]):
            raise ParameterError(
                f"No training row is in the subgroup {groups.rules[k]!r} of {title(feature)!r}, so there is no "
                f"donor for its rows. Pass the training rows that the subgroups were found on, or donors='test'."
            )
    expectation = exact_from(groups.code, n_groups, table, train, train_code, feature, rngs) if exact else None

    def draws() -> Iterator[Changes]:
        donors = training_donors(groups.code, pools, rngs)
        return (dict.fromkeys(feature, Donors(rows, train=True)) for rows in donors)

    known = TrainingRows(groups.code, train_code, np.arange(len(train_code)))
    sizes = np.array([float(len(pool)) for pool in pools])
    return ResampledFeature(groups, draws, expectation, sizes, distribution=known)
