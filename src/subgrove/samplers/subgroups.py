"""Conditional subgroups: the donor is a row of the same leaf of the feature's tree.

`SubgroupSampler` is the method of the paper: a tree of depth 2, donors among the rows of X, cyclic shifts.
`TrainingSubgroups`, a candidate of `auto`, uses the full tree and takes donors from training rows at quasi-random
quantiles.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from subgrove._core.execution import Streams
from subgrove._core.kinds import Codes, Floats
from subgrove._core.validate import warn
from subgrove._data.columns import as_argument, parse_features
from subgrove._data.table import Table, read_like
from subgrove._subgroups import Partition, find_subgroups
from subgrove._subgroups import Subgroups as FoundSubgroups
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, title
from subgrove.samplers.marginal import (
    Marginal,
    check_donors,
    resample_from_training,
    resample_within,
    with_training_donors,
)
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups


@dataclass(eq=False, repr=False)
class SubgroupSampler(Sampler):
    """Gives each row the value of another row of its subgroup; a tree for each feature defines the subgroups.

    Parameters
    ----------
    tree : {"transformation", "cart"}, default "transformation"
        Which tree finds the subgroups of a numeric feature; see `subgrove.find_subgroups`.
    max_depth : int or "auto", default 2
        Maximum depth of the tree. Deeper trees approximate the conditional distribution better, shallow ones are
        easier to read. "auto" selects the smallest sufficient depth for each feature; see `subgrove.find_subgroups`.
    min_samples_leaf : int, default 30
        Minimum number of training rows in a subgroup.
    alpha : float, default 0.05
        Significance level of the tests that stop a tree.
    given : list of str, optional
        Columns that the tree may split on.
    donors : {"test", "train"}, default "test"
        Source of values: other rows of X (the paper), or training rows of the same subgroup, which also provides
        donors for singleton subgroups.
    fixed_points : bool, default False
        Whether a row may receive its own value, as in a plain permutation; this biases the importance towards 0, by
        the factor (n - 1) / n in a subgroup of n rows.
    groups : Subgroups, optional
        Return value of `subgrove.find_subgroups`, used instead of growing trees in `fit`.
    n_jobs : int, optional
        Number of trees grown in parallel.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> sampler = sg.samplers.SubgroupSampler(max_depth=1).fit(train.X, ["temp"])
    >>> sampler.groups["temp"].rules
    ('season in {WINTER, SPRING, FALL}', 'season in {SUMMER}')
    """

    name = "subgroups"
    accepts_groups = True

    tree: Literal["transformation", "cart"] = "transformation"
    max_depth: int | Literal["auto"] = 2
    min_samples_leaf: int = 30
    alpha: float = 0.05
    given: Any = None
    donors: Literal["test", "train"] = "test"
    fixed_points: bool = False
    groups: FoundSubgroups | None = None
    n_jobs: int | None = None

    @property
    def accepts_given(self) -> bool:
        """Whether the conditioning columns can be set: not if the subgroups were found before."""
        return self.groups is None

    @property
    def prefitted(self) -> bool:
        """Whether the subgroups were found before."""
        return self.groups is not None

    @property
    def ignores_train(self) -> bool:
        """Whether training rows have no effect."""
        return self.groups is not None and self.donors != "train"

    @property
    def default_features(self) -> list[Any] | None:
        """Features that have subgroups, if these were found before."""
        return None if self.groups is None else features_with_subgroups(self.groups)

    def reject_given(self, given: Sequence[str]) -> None:
        """Raise if the subgroups were found before.

        Parameters
        ----------
        given : sequence of str
            Names of the conditioning columns.
        """
        if self.groups is not None:
            raise ParameterError(
                "given cannot change subgroups that were found before. Pass given to find_subgroups, or a sampler "
                "without groups."
            )

    def for_chunks(self) -> SubgroupSampler:
        """Return the sampler with donors from training."""
        sampler: SubgroupSampler = with_training_donors(self)
        return sampler

    def warn_about_few_rows(self, n_rows: int, n_folds: int) -> None:
        """Warn if a tree grown on one fold cannot split.

        Parameters
        ----------
        n_rows : int
            Number of rows.
        n_folds : int
            Number of folds.
        """
        if n_rows < 2 * n_folds * self.min_samples_leaf:
            warn(
                f"X has {n_rows} rows. A tree grown on half of them cannot split with "
                f"min_samples_leaf={self.min_samples_leaf}, so there is one subgroup, and "
                f"the importance is the marginal one. Pass training rows as train, or a smaller min_samples_leaf."
            )

    def unconditional(self) -> Sampler:
        """Return the marginal sampler with the same donors and fixed points."""
        if self.donors == "train":
            return replace(self, given=[])
        return Marginal(self.fixed_points)

    def fit(self, X: Any, features: Any = None) -> FittedSubgroups:
        """Grow a tree for each feature on training rows, or use the trees of `groups`.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """
        check_donors(self.donors, self.fixed_points)
        groups = self.groups
        if groups is None:
            if X is None:
                raise ParameterError(
                    "sampler 'subgroups' needs training rows to grow its trees. Pass train, or groups."
                )
            groups = find_subgroups(
                X,
                features=features,
                tree=self.tree,
                max_depth=self.max_depth,
                min_samples_leaf=self.min_samples_leaf,
                alpha=self.alpha,
                given=self.given,
                n_jobs=self.n_jobs,
            )
        names = tuple(column.name for column in groups.columns)
        for feature in parse_features(features, names) if features is not None else ():
            _partition(groups, feature)
        if self.donors == "test":
            return FittedSubgroups(groups.columns, groups=groups, fixed_points=self.fixed_points)
        if X is None:
            raise ParameterError("donors='train' takes values from training rows. Pass them as train.")
        table = read_like(X, groups.columns, argument="train")
        codes = {name: partition._assign_table(table).astype(np.int32) for name, partition in groups.items()}
        return FittedSubgroups(groups.columns, X, groups=groups, table=table, codes=codes)


@dataclass(frozen=True, eq=False)
class FittedSubgroups(FittedSampler):
    """Resamples within subgroups; `groups` is the return value of `find_subgroups`."""

    groups: FoundSubgroups = field(kw_only=True)
    fixed_points: bool = False
    table: Table | None = None  # training rows, if they are the donors
    codes: Mapping[str, Codes] = field(default_factory=dict)  # their subgroup, by feature

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature, or several jointly."""
        partition = _partition(self.groups, feature)
        code = partition._assign_table(table).astype(np.int32)
        groups = RowGroups(code, partition.rules, partition.conditioning)
        if self.table is None:
            return resample_within(groups, table, feature, rngs, weights, exact=exact, fixed_points=self.fixed_points)
        code = self.codes[partition.feature]
        return resample_from_training(groups, table, self.table, code, feature, rngs, exact)

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """Return the split columns of the feature's tree, those nearest to the root first."""
        return _partition(self.groups, feature).conditioning

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the feature's subgroups."""
        return _partition(self.groups, feature)

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedSubgroups:
        """Return the sampler with the feature's tree pruned to splits on some columns."""
        partition = _partition(self.groups, feature)
        smaller = partition.restricted_to(columns)
        groups = replace(self.groups, partitions=(smaller,))
        codes = self.codes
        if self.table is not None:
            codes = {smaller.feature: smaller._assign_table(self.table).astype(np.int32)}
        return replace(self, groups=groups, codes=codes)

    @property
    def uses_training_donors(self) -> bool:
        """Whether donors are training rows."""
        return self.table is not None

    @property
    def training_fingerprint(self) -> str | None:
        """Fingerprint of the rows on which the subgroups were found."""
        return self.groups.fingerprint

    @property
    def default_features(self) -> list[Any] | None:
        """Features that have subgroups."""
        return features_with_subgroups(self.groups)

    @property
    def has_user_kinds(self) -> bool:
        """Whether the user set the kind of a column in `find_subgroups`, which changes the fingerprint."""
        return bool(self.groups.parameters.get("kinds"))

    def user_kinds(self) -> Collection[str]:
        """Return the columns whose kind the user set; all columns if this is not known."""
        parameters = self.groups.parameters
        return (parameters["kinds"] or ()) if "kinds" in parameters else [column.name for column in self.columns]

    def for_chunks(self) -> Any:
        """Return the sampler itself if donors are training rows, else one to be fitted on training rows."""
        return self if self.uses_training_donors else SubgroupSampler(groups=self.groups, donors="train")


def features_with_subgroups(groups: FoundSubgroups) -> list[Any]:
    """Return the names of features, and lists of names for groups of features, that have subgroups."""
    return [as_argument(partition.members) for partition in groups.values()]


def _partition(groups: FoundSubgroups, feature: Feature) -> Partition:
    try:
        return groups[feature]  # by its members, in any order
    except KeyError:
        raise ParameterError(
            f"There are no subgroups of {title(feature)!r}, only of {', '.join(groups)}. "
            f"Include it in find_subgroups(..., features=[...])."
        ) from None
