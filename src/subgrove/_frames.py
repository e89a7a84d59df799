"""Tables for the model: the user's own rows, in the user's own container, with some columns replaced.

Requirements this design meets:

- the model is given what it was trained on: the same container, column names, dtypes and categories;
- only the columns that change are written: a table that is predicted many times is copied once;
- the user's table is never changed;
- a column is replaced by values of other rows (`Donors`), which keep their type whatever it is, or by new values.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from subgrove._containers import is_missing, names_and_rows
from subgrove._kinds import ColumnInfo
from subgrove.exceptions import ColumnError, InputError

Rows = npt.NDArray[np.intp]
Backend = str  # "pandas", "polars", "pyarrow": whose tables a result is given in


@dataclass(frozen=True, eq=False)
class Donors:
    """For each row the number of the row whose value it is given.

    Attributes
    ----------
    rows : int array
        Row numbers.
    train : bool
        Whether these are rows of the training table instead of the one that is redrawn.
    """

    rows: Rows
    train: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, rows: slice | Rows) -> Donors:
        """The donors of some rows."""
        return Donors(self.rows[rows], self.train)


Column = Donors | npt.NDArray[Any]  # what a column is replaced by: donors, or values
Changes = Mapping[str, Column]  # column name -> what it is replaced by


class Tile(Protocol):
    """Copies of a table below each other, in which columns are replaced."""

    def fill(self, blocks: Sequence[Changes]) -> Any:
        """The table with one copy for each block, its columns replaced as the block says."""


class Frames:
    """A table that can be copied with columns replaced.

    Parameters
    ----------
    X : frame, table or 2-d array
        The rows.
    columns : sequence of ColumnInfo
        What is known of its columns.
    train : frame, table or 2-d array, optional
        Rows that donors may be taken from besides those of `X`.
    """

    def __init__(self, X: Any, columns: Sequence[ColumnInfo], train: Any = None) -> None:
        self.X = X
        self.names, self.n_rows = names_and_rows(X)
        self.infos = {column.name: column for column in columns}
        self.train = train
        self._place = {name: place for place, name in enumerate(self.names)}
        self._container = _container(X)
        self._pools: dict[str, Any] = {}

    @property
    def is_matrix(self) -> bool:
        """Whether the table lies in memory as one array of one dtype."""
        return isinstance(self._container, _Matrix)

    def tile(self, times: int) -> Tile:
        """`times` copies of the table to fill again and again."""
        if isinstance(self._container, _Matrix):
            return _MatrixTile(self, self._container, times)
        return _ColumnTile(self, times)

    def changed(self, rows: slice | Rows, changes: Changes) -> Any:
        """Some rows of the table, with columns replaced; what replaces them has one entry for each of these rows."""
        table = self._container.rows(rows)
        return self._container.replaced(
            table, {self._place[name]: self.native(name, column) for name, column in changes.items()}
        )

    def holds(self, table: Any, rows: slice) -> bool:
        """Whether a table that `changed(rows, {})` gave is still what it was."""
        return self._container.same(table, rows)

    def native(self, name: str, column: Column) -> Any:
        """A column that replaces another, as its container holds it."""
        place = self._place[name]
        if not isinstance(column, Donors):
            return self._container.values(place, column, self.infos.get(name))
        if not column.train:
            return self._container.taken(self._container.column(place), column.rows)
        return self._container.taken(self.train_column(name), column.rows)

    def train_column(self, name: str) -> Any:
        """A column of the training table, in the dtype that the table has."""
        if name not in self._pools:
            place = names_and_rows(self.train)[0].index(name)
            theirs = _container(self.train).column(place)
            self._pools[name] = self._container.like(self._place[name], theirs, name)
        return self._pools[name]

    def mixed(self, name: str, blocks: Sequence[Column | None]) -> Any:
        """A column of several copies of the table, replaced in those that are not None."""
        place, n = self._place[name], self.n_rows
        if all(block is None or (isinstance(block, Donors) and not block.train) for block in blocks):
            index = np.tile(np.arange(n), len(blocks))
            for at, block in enumerate(blocks):
                if isinstance(block, Donors):
                    index[at * n : (at + 1) * n] = block.rows
            return self._container.taken(self._container.column(place), index)
        if all(isinstance(block, np.ndarray) for block in blocks):
            # Together, not one by one: a cast of a short column costs as much as that of a long one.
            return self.native(name, np.concatenate(blocks))  # type: ignore[arg-type]
        own = self._container.column(place)
        return self._container.joined([own if block is None else self.native(name, block) for block in blocks])


class _Container(Protocol):
    """What is asked of a container; columns go by their place."""

    def column(self, place: int) -> Any: ...
    def taken(self, column: Any, rows: Rows) -> Any: ...
    def values(self, place: int, values: Any, info: ColumnInfo | None) -> Any: ...
    def like(self, place: int, column: Any, name: str) -> Any: ...
    def joined(self, columns: Sequence[Any]) -> Any: ...
    def rows(self, rows: slice | Rows) -> Any: ...
    def same(self, table: Any, rows: slice) -> bool: ...
    def replaced(self, table: Any, columns: Mapping[int, Any]) -> Any: ...
    def repeated(self, times: int) -> Any: ...


def _container(X: Any) -> _Container:
    if isinstance(X, np.ndarray):
        return _Matrix(np.asarray(X), lambda array: array)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame):
        if set(X.dtypes.tolist()) == {np.dtype(np.float64)}:
            names = X.columns
            return _Matrix(X.to_numpy(), lambda array: pandas.DataFrame(array, columns=names, copy=False))
        return _Pandas(X, pandas)
    return _Columns(X)


class _Matrix:
    """One array, given to the model as it is or in a frame around it."""

    def __init__(self, array: npt.NDArray[Any], wrap: Callable[[npt.NDArray[Any]], Any]) -> None:
        self.array = array
        self.wrap = wrap
        self._last: tuple[int, npt.NDArray[Any]] | None = None

    def column(self, place: int) -> Any:
        # One column is asked for again and again; taken out of its rows, it is read at several times the speed.
        last = self._last  # held on to, since another thread may ask for another column meanwhile
        if last is None or last[0] != place:
            last = self._last = (place, np.ascontiguousarray(self.array[:, place]))
        return last[1]

    def taken(self, column: Any, rows: Rows) -> Any:
        return column.take(rows)

    def values(self, place: int, values: Any, info: ColumnInfo | None) -> Any:
        return self._cast(_moments(values, info))

    def like(self, place: int, column: Any, name: str) -> Any:
        return self._cast(np.asarray(column))

    def _cast(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A column in the dtype of the array, if that holds it; a whole number may be replaced by one that is not."""
        own = self.array.dtype
        if own.kind == "f":
            return column.astype(own, copy=False)
        if own.kind in "iub" and column.dtype.kind == "f":
            whole = bool((column == np.round(column)).all()) and bool(np.isfinite(column).all())
            return column.astype(own) if whole else column
        return column

    def joined(self, columns: Sequence[Any]) -> Any:
        return np.concatenate(columns)

    def rows(self, rows: slice | Rows) -> Any:
        # A fresh array, also of a slice: columns of it are written.
        return self.array[rows].copy() if isinstance(rows, slice) else self.array[rows]

    def same(self, table: Any, rows: slice) -> bool:
        now, before = np.asarray(table), self.array[rows]
        if now.dtype != before.dtype or now.shape != before.shape:
            return False
        if now.dtype.kind in "iufb" and (now == before).all():
            return True
        # Bit by bit, since missing values do not equal themselves; of objects that is whether they are the same ones.
        return now.tobytes() == before.tobytes()

    def replaced(self, table: Any, columns: Mapping[int, Any]) -> Any:
        dtype = common_dtype(table.dtype, columns.values())
        table = table.astype(dtype, copy=False)
        for place, column in columns.items():
            table[:, place] = column
        return self.wrap(table)

    def repeated(self, times: int) -> Any:
        return np.tile(self.array, (times, 1))


def common_dtype(dtype: np.dtype[Any], columns: Any) -> np.dtype[Any]:
    """The dtype that holds a table and the columns written into it: whole numbers become floats if need be."""
    return np.result_type(dtype, *(np.asarray(column).dtype for column in columns)) if dtype.kind != "O" else dtype


class _Pandas:
    """A pandas frame of several dtypes."""

    def __init__(self, frame: Any, pandas: Any) -> None:
        self.frame = frame
        self.pandas = pandas

    def column(self, place: int) -> Any:
        return self.frame.iloc[:, place].array

    def taken(self, column: Any, rows: Rows) -> Any:
        return column.take(rows)

    def values(self, place: int, values: Any, info: ColumnInfo | None) -> Any:
        own = self.frame.iloc[:, place].dtype
        series = self.pandas.Series(_moments(values, info))
        if info is not None and info.is_date and getattr(own, "tz", None) is not None and series.dt.tz is None:
            series = series.dt.tz_localize("UTC")
        return self._cast(series, own, f"Values for column {self.frame.columns[place]!r}")

    def like(self, place: int, column: Any, name: str) -> Any:
        return self._cast(self.pandas.Series(column), self.frame.iloc[:, place].dtype, f"Column {name!r} of train")

    def _cast(self, series: Any, own: Any, what: str) -> Any:
        if series.dtype == own:
            return series.array
        if own.kind in "iu" and series.dtype.kind == "f" and not (series == series.round()).all():
            return series.astype(np.float64).array  # a whole number may be replaced by one that is not
        held = series.isna() | series.isin(own.categories) if hasattr(own, "categories") else None
        cast = series.astype(own) if held is None or held.all() else None
        if cast is None or (cast.isna() != series.isna()).any():
            raise ColumnError(
                f"{what} cannot all be held by X's dtype {own}. "
                f"Give both the same dtype (for categories: the same list of categories)."
            )
        return cast.array

    def joined(self, columns: Sequence[Any]) -> Any:
        return self.pandas.concat([self.pandas.Series(column) for column in columns], ignore_index=True).array

    def rows(self, rows: slice | Rows) -> Any:
        return self.frame.iloc[rows].reset_index(drop=True)

    def same(self, table: Any, rows: slice) -> bool:
        return bool(self.rows(rows).equals(table))

    def replaced(self, table: Any, columns: Mapping[int, Any]) -> Any:
        table = table.copy(deep=False)
        for place, column in columns.items():
            table.isetitem(place, column)
        return table

    def repeated(self, times: int) -> Any:
        return self.pandas.concat([self.frame] * times, ignore_index=True)


class _Columns:
    """A polars frame, a pyarrow table, or what else narwhals knows."""

    def __init__(self, X: Any) -> None:
        import narwhals as nw

        self.nw = nw
        try:
            self.frame = nw.from_native(X, eager_only=True)
        except TypeError:
            raise InputError(
                f"X must be a pandas or polars frame, a pyarrow table or a 2-d array; got {type(X).__name__}."
            ) from None

    def column(self, place: int) -> Any:
        return self.frame[:, place]

    def taken(self, column: Any, rows: Rows) -> Any:
        return column[rows]

    def values(self, place: int, values: Any, info: ColumnInfo | None) -> Any:
        own = self.column(place)
        try:
            given = self.nw.from_native(values, series_only=True)
        except TypeError:
            array = _moments(values, info)
            given = self.nw.new_series("", array.tolist() if array.dtype == object else array, backend=self.backend)
        return self._cast(given, own)

    def _cast(self, given: Any, own: Any) -> Any:
        """A column in the dtype of another, if that holds it; a whole number may be replaced by one that is not."""
        if own.dtype.is_integer() and given.dtype.is_float():
            whole = np.asarray(given.drop_nulls().to_numpy())
            return given.cast(own.dtype) if (whole == np.round(whole)).all() else given
        cast = given if given.dtype == own.dtype else given.cast(own.dtype)
        native, wanted = cast.to_native(), getattr(own.to_native(), "type", None)
        if getattr(native, "type", None) == wanted:
            return cast
        return self.nw.from_native(native.cast(wanted), series_only=True)  # pyarrow has more types than narwhals

    @property
    def backend(self) -> Any:
        return self.frame.implementation

    def like(self, place: int, column: Any, name: str) -> Any:
        if getattr(column, "implementation", None) != self.backend:  # of another container
            given = column.to_list() if hasattr(column, "to_list") else column.tolist()
            plain = [None if is_missing(value) else value for value in given]
            column = self.nw.new_series("", plain, backend=self.backend)
        return self._cast(column, self.column(place))

    def joined(self, columns: Sequence[Any]) -> Any:
        frames = [column.alias("").to_frame() for column in columns]
        widest = next((frame for frame in frames if frame[""].dtype.is_float()), frames[0])[""].dtype
        if widest.is_float():
            frames = [frame[""].cast(widest).to_frame() for frame in frames]
        return self.nw.concat(frames)[""]

    def rows(self, rows: slice | Rows) -> Any:
        return self.frame[rows]

    def same(self, table: Any, rows: slice) -> bool:
        return True  # such tables cannot be written to

    def replaced(self, table: Any, columns: Mapping[int, Any]) -> Any:
        names = table.columns
        return table.with_columns(*(column.alias(names[place]) for place, column in columns.items())).to_native()

    def repeated(self, times: int) -> Any:
        native = self.nw.concat([self.frame] * times)
        return native if not hasattr(native, "rechunk") else native.rechunk()


def _moments(values: Any, info: ColumnInfo | None) -> npt.NDArray[Any]:
    """Microseconds as dates or durations, if that is what the column holds."""
    array = np.asarray(values)
    if info is None or array.dtype.kind != "f" or not (info.is_date or info.is_duration):
        return array
    unit = "datetime64[us]" if info.is_date else "timedelta64[us]"
    whole = np.where(np.isnan(array), np.iinfo(np.int64).min, np.round(array)).astype(np.int64)
    return whole.view(unit)


class _ColumnTile:
    """Copies of a table of columns; each filling replaces columns of the same copies."""

    def __init__(self, frames: Frames, times: int) -> None:
        self.frames = frames
        self.container = frames._container
        self.times = times
        self.table = self.container.repeated(times)

    def fill(self, blocks: Sequence[Changes]) -> Any:
        table = self.table
        if len(blocks) < self.times:
            n = self.frames.n_rows * len(blocks)
            table = table.iloc[:n] if hasattr(table, "iloc") else table[:n]
        changed = dict.fromkeys(name for block in blocks for name in block)
        columns = {
            self.frames._place[name]: self.frames.mixed(name, [block.get(name) for block in blocks]) for name in changed
        }
        return self.container.replaced(table, columns)


class _MatrixTile:
    """Copies of an array, written in place: what the last filling changed is put back first."""

    def __init__(self, frames: Frames, container: _Matrix, times: int) -> None:
        self.frames = frames
        self.container = container
        self.times = times
        self.buffer = container.repeated(times)
        self.written: list[set[int]] = []

    def fill(self, blocks: Sequence[Changes]) -> Any:
        n = self.frames.n_rows
        if self.buffer.dtype != self.container.array.dtype:  # the last filling had to widen it
            self.buffer, self.written = self.container.repeated(self.times), []
        before, self.written = self.written, []
        old = {place: np.ascontiguousarray(self.container.array[:, place]) for place in set().union(*before)}
        # Block by block, so that what is put back and what is written share the same lines of the cache.
        for at in range(max(len(blocks), len(before))):
            rows = slice(at * n, (at + 1) * n)
            block = blocks[at] if at < len(blocks) else {}
            places = {self.frames._place[name] for name in block}
            for place in (before[at] if at < len(before) else set()) - places:
                self.buffer[rows, place] = old[place]
            for name, column in block.items():
                self._write(rows, self.frames._place[name], self.frames.native(name, column))
            self.written.append(places)
        return self.container.wrap(self.buffer[: len(blocks) * n])

    def _write(self, rows: slice, place: int, column: npt.NDArray[Any]) -> None:
        if column.dtype != self.buffer.dtype:
            self.buffer = self.buffer.astype(common_dtype(self.buffer.dtype, (column,)), copy=False)
        self.buffer[rows, place] = column


def copied(table: Any) -> Any:
    """A copy that can be written to without changing the table."""
    return table.copy() if hasattr(table, "copy") else table


def backend_of(X: Any) -> Backend:
    """Whose tables results are given in: the container of X, or pandas for arrays."""
    if isinstance(X, np.ndarray) or "pandas" in type(X).__module__:
        return "pandas"
    import narwhals as nw

    return str(nw.from_native(X, eager_only=True).implementation.value)


def make_table(backend: Any, columns: Mapping[str, Any], index: Any = None) -> Any:
    """A table in the container of the user; `index` goes with pandas alone."""
    if backend == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(columns), index=index)
    import narwhals as nw

    plain = {name: list(values) for name, values in columns.items()}
    return nw.from_dict(plain, backend=backend).to_native()


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """The table without some columns."""
    present, _ = names_and_rows(X)
    kept = [place for place, name in enumerate(present) if name not in set(names)]
    if isinstance(X, np.ndarray):
        return X[:, kept]
    if hasattr(X, "iloc"):
        return X.iloc[:, kept]
    import narwhals as nw

    return nw.from_native(X, eager_only=True)[:, kept].to_native()
