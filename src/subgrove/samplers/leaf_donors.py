"""Values of training rows of the same subgroup, taken evenly: what redraws a feature in leaves of a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._core.random import Streams, cached
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table, TypedColumn
from subgrove._subgroups import Partition
from subgrove.samplers.base import Feature
from subgrove.samplers.exact_expectation import exact_from
from subgrove.samplers.quasi_random import Pools, balanced_points
from subgrove.samplers.redraw import ResampledFeature, RowGroups


@dataclass(frozen=True, eq=False)
class TrainingSubgroups:
    """Redraws one feature, or several together, from training rows.

    Attributes
    ----------
    partition : Partition
        Donors are of the same subgroup of it.
    shown : Partition
        The subgroups that results are told by.
    table : Table
        The training rows that are used.
    rows : int array
        Their places in the user's table.
    code : int array
        Their subgroups.
    report_depth : int
        Depth of the subgroups that results are told by.
    """

    partition: Partition
    shown: Partition
    table: Table
    rows: Rows
    code: Codes
    report_depth: int

    @classmethod
    def of(cls, partition: Partition, table: Table, rows: Rows, report_depth: int) -> TrainingSubgroups:
        """From subgroups and the training rows; `rows` are their places in X."""
        code = partition._assign_table(table).astype(np.int32)
        return cls(partition, partition.at_depth(report_depth), table, rows, code, report_depth)

    @property
    def conditioning(self) -> tuple[str, ...]:
        """The columns that subgroups ask for."""
        return self.partition.conditioning

    def resample(self, table: Table, feature: Feature, rngs: Streams, *, exact: bool = True) -> ResampledFeature:
        """The redraw of the feature."""
        code = self.partition._assign_table(table).astype(np.int32)
        shown = self.shown._assign_table(table).astype(np.int32)
        n_groups = len(self.partition)
        pools = cached(rngs, "pools", lambda: Pools(self.code, ranks(self.table.series(feature[0])), n_groups))
        own = ranks(table.series(feature[0]))
        found = None
        if exact:
            found = exact_from(code, n_groups, table, self.table, self.code, feature, rngs, self.rows)

        def draws() -> Iterator[Changes]:
            for points in balanced_points(code, n_groups, own, rngs):
                donors = Donors(self.rows[pools.at(code, points)], train=True)
                yield dict.fromkeys(feature, donors)

        groups = RowGroups(shown, self.shown.rules, self.conditioning)
        return ResampledFeature(groups, draws, found, np.array([np.inf]))


def ranks(series: TypedColumn) -> Floats:
    """Numbers that sort rows by a feature; levels by name, for containers differ in their order."""
    if not series.info.is_nominal:
        return series.values
    levels = series.info.levels
    place = np.empty(len(levels) + 2)
    place[sorted(range(len(levels)), key=lambda code: levels[code])] = np.arange(len(levels))
    place[-2:] = len(levels)  # unseen and missing ones
    return np.asarray(place[series.values])
