"""Conditional subgroups: the donor is a row of the same leaf of the feature's tree. The paper's method."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from subgrove._core.kinds import Codes, Floats
from subgrove._core.random import Streams
from subgrove._data.features import parse_features
from subgrove._data.table import Table, read_like
from subgrove._subgroups import Partition, find_subgroups
from subgrove._subgroups import Subgroups as FoundSubgroups
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, title
from subgrove.samplers.marginal import Marginal, draw_outside, draw_within, reject_strange_donors
from subgrove.samplers.redraw import ResampledFeature, RowGroups


class SubgroupSampler(Sampler):
    """Gives each row the value of another row of its subgroup, as a tree for the feature finds them.

    Parameters
    ----------
    tree : {"transformation", "cart"}, default "transformation"
        Which tree finds the subgroups of a numeric feature; see `subgrove.find_subgroups`.
    max_depth : int or "auto", default 2
        Most splits above a subgroup. More are closer to the conditional distribution, fewer are easier to read. "auto"
        chooses for each feature the smallest depth that is enough; see `subgrove.find_subgroups`.
    min_samples_leaf : int, default 30
        Least number of training rows in a subgroup.
    alpha : float, default 0.05
        Level of the tests that stop a tree.
    given : list of str, optional
        The columns that subgroups may be made of.
    donors : {"test", "train"}, default "test"
        Where values are taken from: other rows that are redrawn (the paper), or the training rows of the same
        subgroup, which also serves a row that is alone in its subgroup.
    fixed_points : bool, default False
        Whether a row may be given its own value, as a plain shuffle does; importance is then too small, by the factor
        (n - 1) / n in a subgroup of n rows.
    groups : Subgroups, optional
        What `subgrove.find_subgroups` returned, in place of trees grown by `fit`.
    n_jobs : int, optional
        Number of trees grown at once.

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

    def __init__(
        self,
        tree: Literal["transformation", "cart"] = "transformation",
        max_depth: int | Literal["auto"] = 2,
        min_samples_leaf: int = 30,
        alpha: float = 0.05,
        given: Any = None,
        donors: Literal["test", "train"] = "test",
        fixed_points: bool = False,
        groups: FoundSubgroups | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.tree = tree
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.alpha = alpha
        self.given = given
        self.donors = donors
        self.fixed_points = fixed_points
        self.groups = groups
        self.n_jobs = n_jobs

    def without_columns(self) -> Sampler:
        """Marginal, from the same donors and with fixed points as here."""
        if self.donors == "train":
            changed = copy(self)
            changed.given = []
            return changed
        return Marginal(self.fixed_points)

    def fit(self, X: Any, features: Any = None) -> FittedSubgroups:
        """Grow a tree for each feature on training rows (or take the trees that were given).

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be redrawn, or groups of names; all columns if not given.
        """
        reject_strange_donors(self.donors, self.fixed_points)
        groups = self.groups
        if groups is None:
            if X is None:
                raise ParameterError("Subgroups needs training rows to grow its trees on. Pass train, or groups.")
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
    """Redraws within subgroups; `groups` are what `find_subgroups` gives."""

    groups: FoundSubgroups = field(kw_only=True)
    fixed_points: bool = False
    table: Table | None = None  # training rows, if they are the donors
    codes: Mapping[str, Codes] = field(default_factory=dict)  # their subgroup, by feature

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw of one feature."""
        partition = _partition(self.groups, feature)
        code = partition._assign_table(table).astype(np.int32)
        groups = RowGroups(code, partition.rules, partition.conditioning)
        if self.table is None:
            return draw_within(groups, table, feature, rngs, weights, exact=exact, fixed_points=self.fixed_points)
        return draw_outside(groups, table, self.table, self.codes[partition.feature], feature, rngs, exact)

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """The columns that the feature's tree splits on, those nearest to the root first."""
        return _partition(self.groups, feature).conditioning

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """The feature's subgroups."""
        return _partition(self.groups, feature)

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedSubgroups:
        """The same, the feature's tree cut back to its splits on some columns."""
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


def _partition(groups: FoundSubgroups, feature: Feature) -> Partition:
    try:
        return groups[feature]  # by its members, in whatever order
    except KeyError:
        raise ParameterError(
            f"No subgroups were found for {title(feature)!r}; there are subgroups for {', '.join(groups)}. "
            f"Name it in find_subgroups(..., features=[...])."
        ) from None
