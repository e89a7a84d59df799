"""What the features of one table have in common, for samplers that learn each of them from the same training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import ColumnInfo, Rows
from subgrove._core.random import read_seed, stream
from subgrove._core.validate import whole_number
from subgrove._data.features import Members, allowed_columns
from subgrove._data.table import Table
from subgrove._regress import FoldGrams
from subgrove._subgroups.grow import TreeSettings
from subgrove.samplers.base import Feature, read_training_table
from subgrove.trees.candidates import SortedTable
from subgrove.trees.training import select_columns

MAX_ROWS = 20_000
NO_LIMIT = 30  # depth of a tree that its tests stop
REPORT_DEPTH = 2


@dataclass(frozen=True, eq=False)
class SharedTraining:
    """What the features of one table have in common.

    Attributes
    ----------
    table : Table
        The training rows that are used.
    rows : int array
        Their places in the user's table.
    rivals : FoldGrams
        Numbers for all columns, for shifts.
    allowed : tuple of str
        The columns that values may depend on.
    settings : Settings
        Of the trees.
    shown : int
        Depth of the subgroups that results are told by.
    seed : int
    prepared : Prepared or None
        What trees on the allowed columns of all these rows share; None where only some of the rows are used.
    """

    table: Table
    rows: Rows
    rivals: FoldGrams
    allowed: Members
    settings: TreeSettings
    shown: int
    seed: int
    prepared: SortedTable | None = None

    def others(self, feature: Feature) -> Table:
        """The columns that values of a feature may depend on."""
        if self.prepared is None:
            return select_columns(self.table, [name for name in self.allowed if name not in feature])
        return self.prepared.table.without(feature)


def read_shared_training(
    sampler: Any, X: Any, features: Any
) -> tuple[tuple[ColumnInfo, ...], tuple[Feature, ...], SharedTraining]:
    """The columns of training rows, the features that are asked for, and what these have in common.

    `sampler` is one with the parameters of `Auto`.
    """
    settings = TreeSettings.checked("transformation", sampler.max_depth, sampler.min_samples_leaf, sampler.alpha)
    shown = whole_number("report_depth", sampler.report_depth, least=0)
    seed = read_seed(sampler.random_state)
    table, asked = read_training_table(X, features, sampler)
    rows = _used_rows(table.n_rows, sampler.max_rows, seed)
    used = table.rows(rows)
    allowed = allowed_columns(sampler.given, table.names)
    prepared = SortedTable.of(select_columns(used, allowed), shared=True)
    return (
        table.columns,
        asked,
        SharedTraining(used, rows, FoldGrams.of(used, seed), allowed, settings, shown, seed, prepared),
    )


def _used_rows(n_rows: int, most: Any, seed: int) -> Rows:
    """All rows, or as many as may be used, at random."""
    most = whole_number("max_rows", most, least=10)
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(stream(seed, "rows that are used").choice(n_rows, most, replace=False))
