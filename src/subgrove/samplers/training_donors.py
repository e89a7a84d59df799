"""Training rows that all features of a table share, and donors among them.

`SharedTraining` has the training rows, and what is computed once for all features. `TrainingSubgroups` gives a row the
value of a training row of its subgroup: donors, or residuals, are taken at quasi-random quantiles of a sorted pool
(`balanced_points`, `SortedPools`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.execution import IndependentStreams, KeyedStreams, Streams, cached, read_seed, stream
from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._core.validate import whole_number
from subgrove._data.columns import ColumnInfo, Members, allowed_columns
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table, TypedColumn
from subgrove._regress.gram import FoldGrams
from subgrove._subgroups import Partition
from subgrove._subgroups.partition import TreeSettings
from subgrove.samplers.base import Feature, FittedSampler, read_training_table
from subgrove.samplers.donors import TrainingRows
from subgrove.samplers.resampled_feature import DonorPool, ResampledFeature, RowGroups, exact_from
from subgrove.trees.split_points import READABLE
from subgrove.trees.training import SortedTable, select_columns

MAX_ROWS = 20_000
NO_LIMIT = 30  # maximum depth of a tree that is stopped by its tests
REPORT_DEPTH = 2
FEW_VALUES = 10  # numeric features with at most this many distinct values are treated as levels
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, eq=False)
class SharedTraining:
    """Training data and settings shared by all features of one table.

    Attributes
    ----------
    table : Table
        Training rows (a random subset if there are many).
    rows : int array
        Their positions in the user's table.
    grams : FoldGrams
        Gram matrices of all columns by fold, for linear predictions.
    allowed : tuple of str
        Columns that new values may depend on.
    settings : TreeSettings
        Settings of the trees.
    report_depth : int
        Depth of the subgroups by which results are reported.
    seed : int
        Seed of folds, halves and forests.
    sorted_table : SortedTable or None
        Sorted columns that trees on all these rows share; None if only some of the rows are used.
    compared : frozenset of str or None
        Names of the samplers that are compared; None for all.
    """

    table: Table
    rows: Rows
    grams: FoldGrams
    allowed: Members
    settings: TreeSettings
    report_depth: int
    seed: int
    sorted_table: SortedTable | None = None
    compared: frozenset[str] | None = None

    def compares(self, *names: str) -> bool:
        """Return whether one of some samplers is compared."""
        return self.compared is None or not self.compared.isdisjoint(names)

    def predictors(self, feature: Feature) -> Table:
        """Return the columns that values of a feature may depend on."""
        if self.sorted_table is None:
            return select_columns(self.table, [name for name in self.allowed if name not in feature])
        return self.sorted_table.table.without(feature)

    def some_rows(self, at: Rows) -> SharedTraining:
        """Return some of the training rows."""
        table = self.table.rows(at)
        grams = FoldGrams.of(table, self.seed)
        return replace(self, table=table, rows=self.rows[at], grams=grams, sorted_table=None)


@dataclass(eq=False, repr=False)
class TrainingSettings:
    """Parameters that `Auto` and `ShiftedSubgroups` share."""

    max_depth: int = NO_LIMIT
    min_samples_leaf: int = 30
    alpha: float = 0.05
    given: Any = None
    report_depth: int = REPORT_DEPTH
    max_rows: int = MAX_ROWS
    random_state: int | None = 0
    n_jobs: int | None = None


def read_shared_training(
    sampler: Any, X: Any, features: Any
) -> tuple[tuple[ColumnInfo, ...], tuple[Feature, ...], SharedTraining]:
    """Return the columns of training rows, the features to resample, and the shared training data.

    `sampler` has `TrainingSettings`.
    """
    settings = TreeSettings.checked("transformation", sampler.max_depth, sampler.min_samples_leaf, sampler.alpha)
    settings = replace(settings, readable=READABLE)
    report_depth = whole_number("report_depth", sampler.report_depth, least=0)
    seed = read_seed(sampler.random_state)
    table, parsed = read_training_table(X, features, sampler)
    rows, most = np.arange(table.n_rows), whole_number("max_rows", sampler.max_rows, least=10)
    if len(rows) > most:
        rows = np.sort(stream(seed, "rows that are used").choice(len(rows), most, replace=False))
    subset = table.rows(rows)
    allowed = allowed_columns(sampler.given, table.names)
    shared = SharedTraining(
        table=subset,
        rows=rows,
        grams=FoldGrams.of(subset, seed),
        allowed=allowed,
        settings=settings,
        report_depth=report_depth,
        seed=seed,
        sorted_table=SortedTable.of(select_columns(subset, allowed), shared=True),
    )
    return table.columns, parsed, shared


def has_few_levels(series: TypedColumn) -> bool:
    """Return whether a feature is resampled by level: nominal, ordered, or numeric with few distinct values."""
    if series.info.kind != "numeric":
        return True
    first = series.values[: 5 * FEW_VALUES]  # usually enough to see that there are more
    return len(np.unique(first)) <= FEW_VALUES and len(np.unique(series.values)) <= FEW_VALUES


def balanced_points(code: Codes, n_groups: int, own: Floats, rngs: Streams) -> Iterator[Floats]:
    """Yield, for each repeat, a quasi-random point in [0, 1) for each row.

    Within a repeat the rows of a subgroup, sorted by their own values, have the points of the van der Corput sequence
    with a common random shift: points are spread evenly over the subgroup, and over rows with similar values. Over
    repeats each row moves on by the golden section, which spreads any number of points well. A value at such a
    quantile of a sorted pool is an unbiased draw, and the mean over rows and repeats varies less than that of
    independent draws.

    Parameters
    ----------
    code : int array
        Subgroup of each row.
    n_groups : int
        Number of subgroups.
    own : float array
        Values by which the rows of a subgroup are sorted; equal and missing ones come in random order.
    rngs : Streams
        One stream for each repeat; only their shared part is used. With keyed streams rows are independent of each
        other: each starts at a random point.
    """
    if isinstance(rngs, IndependentStreams):
        yield from (rng.random(len(code)) for rng in rngs)
        return
    if isinstance(rngs, KeyedStreams):
        start = rngs.of_rows.random(len(code))
    else:
        start = _van_der_corput_start(code, n_groups, own, rngs.shared)
    for repeat in range(len(rngs)):
        yield (start + repeat * _GOLDEN) % 1.0


def _van_der_corput_start(code: Codes, n_groups: int, own: Floats, rng: np.random.Generator) -> Floats:
    order = rng.permutation(len(code))
    order = order[np.argsort(own[order], kind="stable")]
    offset = rng.random(len(code))
    if n_groups > 1:
        order = order[np.argsort(code[order], kind="stable")]
    sizes = np.bincount(code, minlength=n_groups)
    starts = np.cumsum(sizes) - sizes
    within = np.arange(len(code)) - np.repeat(starts, sizes)
    # The offset of a subgroup is that of its first row, so that it does not depend on the subgroup's number.
    first = np.minimum.reduceat(order, starts[sizes > 0]) if len(order) else order
    start = np.empty(len(code))
    start[order] = _reversed_bits(within) + np.repeat(offset[first], sizes[sizes > 0])
    return start


def _reversed_bits(numbers: Rows) -> Floats:
    """Return the van der Corput sequence: the binary digits of each number, mirrored at the point."""
    points, half = np.zeros(len(numbers)), 0.5
    digits = numbers.copy()
    while digits.any():
        points += half * (digits & 1)
        digits >>= 1
        half /= 2
    return points


class SortedPools:
    """Members of subgroups, sorted by their values, so that quantiles of a subgroup can be taken.

    Parameters
    ----------
    code : int array
        Subgroup of each member.
    values : array
        Values by which members are sorted.
    n_groups : int
        Number of subgroups.
    """

    def __init__(self, code: Codes, values: Floats, n_groups: int) -> None:
        order = np.argsort(values, kind="stable")
        self.order: Rows = order[np.argsort(code[order], kind="stable")]
        self.sizes = np.bincount(code, minlength=n_groups)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def at(self, code: Codes, points: Floats) -> Rows:
        """Return, for each row, the member of its subgroup at its quantile."""
        size = self.sizes[code]
        places: Rows = self.starts[code] + np.minimum((points * size).astype(np.intp), size - 1)
        return self.order[places]


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingSubgroups(FittedSampler):
    """Resamples one feature, or several jointly, from training rows of the same leaf; a candidate of `auto`.

    Attributes
    ----------
    partition : Partition
        Subgroups that donors are taken from.
    shown : Partition
        Subgroups by which results are reported.
    table : Table
        Training rows.
    rows : int array
        Their positions in the user's table.
    code : int array
        Their subgroups.
    report_depth : int
        Depth of the subgroups by which results are reported.
    """

    partition: Partition
    shown: Partition
    table: Table
    rows: Rows
    code: Codes
    report_depth: int

    @classmethod
    def of(cls, partition: Partition, table: Table, rows: Rows, report_depth: int) -> TrainingSubgroups:
        """Build from subgroups and training rows; `rows` are the positions of the rows in X."""
        code = partition._assign_table(table).astype(np.int32)
        return cls(
            table.columns,
            partition=partition,
            shown=partition.at_depth(report_depth),
            table=table,
            rows=rows,
            code=code,
            report_depth=report_depth,
        )

    @property
    def has_subgroups(self) -> bool:
        """Whether values are drawn within subgroups: always."""
        return True

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the feature."""
        code = self.partition._assign_table(table).astype(np.int32)
        shown = self.shown._assign_table(table).astype(np.int32)
        n_groups = len(self.partition)
        values = ranks(self.table.series(feature[0]))
        pools = cached(rngs, "pools", lambda: SortedPools(self.code, values, n_groups))
        own = ranks(table.series(feature[0]))
        expectation = None
        if exact:
            expectation = exact_from(code, n_groups, table, self.table, self.code, feature, rngs, self.rows)

        def members() -> Iterator[Rows]:
            return (pools.at(code, points) for points in balanced_points(code, n_groups, own, rngs))

        def draws() -> Iterator[Changes]:
            return (dict.fromkeys(feature, Donors(self.rows[drawn], train=True)) for drawn in members())

        groups = RowGroups(shown, self.shown.rules, self.partition.conditioning)
        pool, known = DonorPool(self.code, members, values), TrainingRows(code, self.code, self.rows)
        return ResampledFeature(groups, draws, expectation, np.array([np.inf]), pool, known)

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """Return the split columns of the tree, those nearest to the root first."""
        return self.partition.conditioning

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the subgroups by which results are reported."""
        return self.shown

    def restricted(self, feature: Feature, columns: Collection[str]) -> TrainingSubgroups:
        """Return the sampler with the tree pruned to splits on some columns."""
        smaller = self.partition.restricted_to(columns)
        return TrainingSubgroups.of(smaller, self.table, self.rows, self.report_depth)

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe this sampler."""
        return {"n_subgroups": len(self.partition), "conditioning": self.partition.conditioning}


def ranks(series: TypedColumn) -> Floats:
    """Return sort keys of a feature; levels are sorted by name, because containers differ in their order."""
    if not series.info.is_nominal:
        return series.values
    levels = series.info.levels
    place = np.empty(len(levels) + 2)
    place[sorted(range(len(levels)), key=lambda code: levels[code])] = np.arange(len(levels))
    place[-2:] = len(levels)  # unseen and missing ones
    return np.asarray(place[series.values])
