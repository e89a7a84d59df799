"""Tables for the model: the user's rows, in the user's container, with some columns replaced.

Requirements this design meets:

- the model gets what it was trained on: the same container, column names, dtypes and categories;
- only the columns that change are written: a table that is predicted many times is copied once;
- the user's table is never changed;
- a column is replaced by values of other rows (`Donors`), which keep their type, or by new values.

`SelectedRows` are some rows of a typed table, whose columns are copied only when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.from_containers import names_and_rows
from subgrove._data.table import Table, TypedColumn
from subgrove._data.to_containers import ArrayContainer, common_dtype, container_of

__all__ = ["Changes", "Column", "CyclicShift", "Donors", "Frames", "Rows", "Tile", "changes_of", "concatenate_changes"]


@dataclass(frozen=True, eq=False)
class CyclicShift:
    """Donors by a cyclic shift within subgroups: each row gets the value of the row `step` positions on.

    Each subgroup that has rows is one segment of `order`, and segments are in the order of the subgroups: sums by
    subgroup are sums over slices.

    Attributes
    ----------
    order : int array
        Rows, segment after segment.
    place : int array
        Position of each row in `order`.
    segments : tuple of (start, end, step)
        Slice of each segment, and the length of its shift.
    """

    order: Rows
    place: Rows
    segments: tuple[tuple[int, int, int], ...]

    def slices(self, *, back: bool = False) -> list[slice]:
        """Return slices of values whose concatenation is what each position receives; or, `back`, the inverse."""
        cuts = [(start, end - step if back else start + step, end) for start, end, step in self.segments]
        return [part for start, cut, end in cuts for part in (slice(cut, end), slice(start, cut))]

    def taken(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values that each position receives; like `values`, in the order of the segments."""
        return np.concatenate([values[part] for part in self.slices()])

    def returned(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Inverse of `taken`: map values back from receivers to donors."""
        return np.concatenate([values[part] for part in self.slices(back=True)])


class Donors:
    """For each row the number of the row whose value it receives.

    Attributes
    ----------
    rows : int array
        Row numbers.
    train : bool
        Whether these are rows of the training table, not of the table that is resampled.
    representatives : bool
        Whether these rows only represent a value that was drawn in another way, and are not its donors.
    cyclic_shift : CyclicShift or None
        The same as a cyclic shift, if it is one of all rows: receiving values, and sums over donors, are faster.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> donors = sg.samplers.Donors(np.array([2, 0, 1]))
    >>> len(donors), donors.part(np.array([0])).rows.tolist(), donors.train
    (3, [2], False)
    """

    __slots__ = ("_rows", "cyclic_shift", "representatives", "train")

    def __init__(self, rows: Rows, train: bool = False, representatives: bool = False) -> None:
        self._rows: Rows | None = rows
        self.train = train
        self.representatives = representatives
        self.cyclic_shift: CyclicShift | None = None

    @classmethod
    def from_cyclic_shift(cls, cyclic_shift: CyclicShift) -> Donors:
        """Return the donors of a cyclic shift; row numbers are computed on access, which arrays of one dtype avoid.

        Parameters
        ----------
        cyclic_shift : CyclicShift
            Segments, and the length of the shift of each.
        """
        donors = cls(cyclic_shift.order)
        donors.cyclic_shift, donors._rows = cyclic_shift, None
        return donors

    @property
    def rows(self) -> Rows:
        """Row numbers."""
        if self._rows is None:
            assert self.cyclic_shift is not None
            self._rows = self.cyclic_shift.taken(self.cyclic_shift.order).take(self.cyclic_shift.place)
        return self._rows

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, rows: slice | Rows) -> Donors:
        """Return the donors of some rows.

        Parameters
        ----------
        rows : slice or int array
            Positions of rows.
        """
        return Donors(self.rows[rows], self.train, self.representatives)


Column = Donors | npt.NDArray[Any]  # replacement of a column: donors, or values
Changes = Mapping[str, Column]  # column name -> its replacement


def changes_of(changes: Changes, rows: slice | Rows) -> dict[str, Column]:
    """Return the replacements of columns for some of the rows."""
    return {name: column.part(rows) if isinstance(column, Donors) else column[rows] for name, column in changes.items()}


def concatenate_changes(parts: Sequence[Changes]) -> dict[str, Column]:
    """Return the replacements of columns for the rows of each part, one after the other."""
    columns: dict[str, Column] = {}
    for name, first in parts[0].items():
        together: list[Any] = [part[name] for part in parts]
        if isinstance(first, Donors):
            rows = np.concatenate([column.rows for column in together])
            columns[name] = Donors(rows, first.train, first.representatives)
        else:
            columns[name] = np.concatenate(together)
    return columns


class Frames:
    """A table for the model, with columns that can be replaced.

    Parameters
    ----------
    X : frame, table or 2-d array
        The rows.
    columns : sequence of ColumnInfo
        Kinds and levels of its columns.
    train : frame, table or 2-d array, optional
        Rows that may be donors besides those of `X`.
    pools : dict, optional
        Cache of columns of `train`; tables of the same dtypes may share it.
    """

    def __init__(
        self, X: Any, columns: Sequence[ColumnInfo], train: Any = None, pools: dict[str, Any] | None = None
    ) -> None:
        self.X = X
        self.names, self.n_rows = names_and_rows(X)
        self.infos = {column.name: column for column in columns}
        self.train = train
        self._place = {name: place for place, name in enumerate(self.names)}
        self._container = container_of(X)
        self._pools: dict[str, Any] = {} if pools is None else pools
        self._in_shift_order: tuple[int, Rows, npt.NDArray[Any]] | None = None

    @property
    def is_matrix(self) -> bool:
        """Whether the table is one array of one dtype in memory."""
        return isinstance(self._container, ArrayContainer)

    def tile(self, times: int) -> Tile:
        """Return `times` copies of the table, to be filled repeatedly."""
        if isinstance(self._container, ArrayContainer):
            return _MatrixTile(self, self._container, times)
        return _ColumnTile(self, times)

    def changed(self, rows: slice | Rows, changes: Changes) -> Any:
        """Return some rows of the table, with columns replaced; replacements have one entry per such row."""
        return next(self.changed_each(rows, [changes]))

    def changed_each(self, rows: slice | Rows, blocks: Iterable[Changes]) -> Iterator[Any]:
        """Yield the same for each of several replacements of the same columns; each table may overwrite the last."""
        table = self._container.rows(rows)
        for changes in blocks:
            columns = {self._place[name]: self.native(name, column) for name, column in changes.items()}
            yield self._container.replaced(table, columns)

    def holds(self, table: Any, rows: slice) -> bool:
        """Return whether a table that `changed(rows, {})` returned has not been modified."""
        return self._container.same(table, rows)

    def native(self, name: str, column: Column) -> Any:
        """Return the replacement of a column, as a column of the container."""
        place = self._place[name]
        if not isinstance(column, Donors):
            return self._container.values(place, column, self.infos.get(name))
        if column.cyclic_shift is not None and self.is_matrix:
            return self._shifted(place, column.cyclic_shift)
        if not column.train:
            return self._container.taken(self._container.column(place), column.rows)
        return self._container.taken(self.train_column(name), column.rows)

    def _shifted(self, place: int, cyclic_shift: CyclicShift) -> npt.NDArray[Any]:
        """Return a column after a cyclic shift, which moves slices of the column in the order of the segments."""
        last = self._in_shift_order  # a local reference, since another thread may replace it
        if last is None or last[0] != place or last[1] is not cyclic_shift.order:
            order = cyclic_shift.order
            last = self._in_shift_order = (place, order, self._container.column(place).take(order))
        return cyclic_shift.taken(last[2]).take(cyclic_shift.place)

    def train_column(self, name: str) -> Any:
        """Return a column of the training table, in the dtype of the table."""
        if name not in self._pools:
            place = names_and_rows(self.train)[0].index(name)
            theirs = container_of(self.train).column(place)
            self._pools[name] = self._container.like(self._place[name], theirs, name)
        return self._pools[name]

    def plain(self, name: str, train: bool = False) -> npt.NDArray[Any]:
        """Return a column of the table, or of the training table in the dtype of the table, as an array."""
        column = self.train_column(name) if train else self._container.column(self._place[name])
        return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)

    def mixed(self, name: str, blocks: Sequence[Column | None]) -> Any:
        """Return a column of several copies of the table, replaced in those that are not None."""
        place, n = self._place[name], self.n_rows
        if all(block is None or (isinstance(block, Donors) and not block.train) for block in blocks):
            index = np.tile(np.arange(n), len(blocks))
            for at, block in enumerate(blocks):
                if isinstance(block, Donors):
                    index[at * n : (at + 1) * n] = block.rows
            return self._container.taken(self._container.column(place), index)
        values = [block for block in blocks if isinstance(block, np.ndarray)]
        if len(values) == len(blocks):
            # In one cast, since casting a short column costs as much as a long one.
            return self.native(name, np.concatenate(values))
        own = self._container.column(place)
        return self._container.joined([own if block is None else self.native(name, block) for block in blocks])


class _ColumnTile:
    """Copies of a table of columns; `fill` replaces columns of the same copies."""

    def __init__(self, frames: Frames, times: int) -> None:
        self.frames = frames
        self.container = frames._container
        self.times = times
        self.table = self.container.repeated(times)

    def fill(self, blocks: Sequence[Changes]) -> Any:
        """Return the table with one copy per block, with the replacements of the block."""
        changed = dict.fromkeys(name for block in blocks for name in block)
        columns = {
            self.frames._place[name]: self.frames.mixed(name, [block.get(name) for block in blocks]) for name in changed
        }
        return self.container.replaced(self._copies(len(blocks)), columns)

    def fill_numbers(self, columns: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Return the table with one copy per number, which is constant in the column of the copy."""
        native = {
            self.frames._place[name]: self.frames.native(name, np.repeat(numbers, self.frames.n_rows))
            for name, numbers in columns.items()
        }
        return self.container.replaced(self._copies(len(next(iter(columns.values())))), native)

    def _copies(self, times: int) -> Any:
        if times == self.times:
            return self.table
        n = self.frames.n_rows * times
        return self.table.iloc[:n] if hasattr(self.table, "iloc") else self.table[:n]


class _MatrixTile:
    """Copies of an array, written in place: `fill` first restores what the last call changed."""

    def __init__(self, frames: Frames, container: ArrayContainer, times: int) -> None:
        self.frames = frames
        self.container = container
        self.times = times
        self.buffer = container.repeated(times)
        self.written: list[set[int]] = []

    def fill(self, blocks: Sequence[Changes]) -> Any:
        """Return the table with one copy per block, with the replacements of the block."""
        n = self.frames.n_rows
        if self.buffer.dtype != self.container.array.dtype:  # the last call had to widen it
            self.buffer, self.written = self.container.repeated(self.times), []
        previous, self.written = self.written, []
        old = {place: self.container.column(place) for place in set().union(*previous)}
        # Block by block, so that what is restored and what is written share cache lines.
        for at in range(max(len(blocks), len(previous))):
            rows = slice(at * n, (at + 1) * n)
            block = blocks[at] if at < len(blocks) else {}
            places = {self.frames._place[name] for name in block}
            for place in (previous[at] if at < len(previous) else set()) - places:
                self.buffer[rows, place] = old[place]
            for name, column in block.items():
                self._write(rows, self.frames._place[name], self.frames.native(name, column))
            self.written.append(places)
        return self.container.wrap(self.buffer[: len(blocks) * n])

    def fill_numbers(self, columns: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Return the table with one copy per number, which is constant in the column of the copy."""
        n, n_blocks = self.frames.n_rows, len(next(iter(columns.values())))
        native = {self.frames._place[name]: self.frames.native(name, numbers) for name, numbers in columns.items()}
        if self.buffer.dtype != self.container.array.dtype or any(places - native.keys() for places in self.written):
            self.buffer, self.written = self.container.repeated(self.times), []
        self.buffer = self.buffer.astype(common_dtype(self.buffer.dtype, native.values()), copy=False)
        copies = self.buffer.reshape(self.times, n, -1)
        for place, numbers in native.items():
            copies[:n_blocks, :, place] = numbers[:, None]
        self.written = [set(native)] * max(n_blocks, len(self.written))
        return self.container.wrap(self.buffer[: n_blocks * n])

    def _write(self, rows: slice, place: int, column: npt.NDArray[Any]) -> None:
        if column.dtype != self.buffer.dtype:
            self.buffer = self.buffer.astype(common_dtype(self.buffer.dtype, (column,)), copy=False)
        self.buffer[rows, place] = column


Tile = _ColumnTile | _MatrixTile
"""Stacked copies of a table, in which columns are replaced."""


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
