"""From columns of any kind to points that have distances."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._data.table import Table
from subgrove._scoring.fidelity_check.pairs import Points


@dataclass(frozen=True, eq=False)
class PointEncoding:
    """Makes points of rows, by what training rows say about the scale of each column.

    Numbers (and numbers of ordered levels, and dates) have mean 0 and standard deviation 1 in the training rows; a
    column that is constant there is only centred. Labels are equal or not: two different ones are as far apart as two
    numbers that differ by a standard deviation. A missing value is a label of its own; a missing number lies at the
    mean, and a further column says that it is missing, by 1 or 0. An ordered level that training did not have counts
    as missing; labels that it did not have count as one label.

    Attributes
    ----------
    columns : tuple of ColumnInfo
        The columns of training.
    centre, spread : float array
        Of the columns of numbers, in the order of `Table.numbers`.
    """

    columns: tuple[ColumnInfo, ...]
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, train: Table) -> PointEncoding:
        """The scales that training rows have."""
        numbers = _known(train.numbers)
        count = np.maximum((~np.isnan(numbers)).sum(axis=0), 1)
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is told of with the distances
            centre = np.nansum(numbers, axis=0) / count
            spread = np.sqrt(np.nansum((numbers - centre) ** 2, axis=0) / np.maximum(count - 1, 1))
        return cls(train.columns, centre, np.where((spread > 0) & np.isfinite(spread), spread, 1.0))

    def points(self, table: Table, names: Collection[str], gaps: Collection[str]) -> Points:
        """Rows as points, by some of their columns; `gaps` are the columns of numbers that may be missing."""
        chosen = [at for column, at in zip(self.columns, table.positions(), strict=True) if column.name in names]
        kept = [column for column in self.columns if column.name in names]
        numeric = [at for column, at in zip(kept, chosen, strict=True) if not column.is_nominal]
        nominal = [at for column, at in zip(kept, chosen, strict=True) if column.is_nominal]
        open_to = [column.name in gaps for column in kept if not column.is_nominal]
        numbers = _known(table.numbers[:, numeric])
        missing = np.isnan(numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(missing, 0.0, (numbers - self.centre[numeric]) / self.spread[numeric])
        labels = table.codes[:, nominal].astype(np.float64)
        return Points(np.hstack([scaled, missing[:, np.array(open_to, dtype=np.bool_)].astype(np.float64)]), labels)


def columns_with_missing(tables: Sequence[Table]) -> frozenset[str]:
    """Columns of numbers in which a value is missing somewhere."""
    found: set[str] = set()
    for table in tables:
        names = [column.name for column in table.columns if not column.is_nominal]
        missing = np.isnan(_known(table.numbers))
        found |= {name for at, name in enumerate(names) if missing[:, at].any()}
    return frozenset(found)


def _known(numbers: Floats) -> Floats:
    return np.where(np.isinf(numbers), np.nan, numbers)
