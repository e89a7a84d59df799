"""`SelectedRows`: some rows of a table, whose columns are copied only when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import Table, TypedColumn

_MOST_KEPT = 8  # columns, which trees and formulas read repeatedly


class SelectedRows(Table):
    """Some rows of a table that is kept anyway.

    Only what reads `numbers` or `codes` as a whole causes a copy of all columns.

    Parameters
    ----------
    table : Table
        The table.
    rows : int array
        The rows.
    columns : tuple of ColumnInfo
        Columns of the table, as training rows describe them.
    """

    _source: Table
    _selected: Rows
    _kept: dict[str, TypedColumn]

    def __init__(self, table: Table, rows: Rows, columns: tuple[ColumnInfo, ...]) -> None:
        clusters = None if table.clusters is None else table.clusters[rows]
        own = {"columns": columns, "unseen": table.unseen, "places": table.places, "clusters": clusters}
        vars(self).update(own, _source=table, _selected=rows, _kept={})

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._selected)

    @cached_property
    def numbers(self) -> Floats:
        """Numbers of all numeric and ordered columns."""
        return self._source.numbers[self._selected]

    @cached_property
    def codes(self) -> Codes:
        """Codes of all nominal columns."""
        return self._source.codes[self._selected]

    def __iter__(self) -> Iterator[TypedColumn]:
        return map(self.series, self.names)

    def series(self, name: str) -> TypedColumn:
        """Return one column."""
        if name not in self._kept:
            if len(self._kept) == _MOST_KEPT:
                self._kept.clear()
            whole = self._source.series(name)
            self._kept[name] = TypedColumn(self.columns[self.names.index(name)], whole.values[self._selected])
        return self._kept[name]


def selected_rows(table: Table, rows: Rows, columns: tuple[ColumnInfo, ...]) -> Table | None:
    """Return some rows of a table as training rows describe its columns; None if they differ in kinds or levels."""
    theirs, ours = ([replace(one, has_missing=False) for one in each] for each in (columns, table.columns))
    return SelectedRows(table, rows, columns) if theirs == ours else None
