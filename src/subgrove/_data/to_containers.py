"""Tables in the container of the user: columns read and replaced with their dtypes, and tables of results.

`replace_columns.py` decides which columns of a table change; this file changes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.from_containers import is_missing, names_and_rows, narwhals_frame, unmasked
from subgrove.exceptions import ColumnError

Backend = str  # container of the tables of a result: "pandas", "polars", "pyarrow"

_ROUNDING = 1e-12  # relative error of sums of weights that are integers


def container_of(X: Any) -> Container:
    """Return the container of a table."""
    if isinstance(X, np.ndarray):
        return ArrayContainer(unmasked(X), lambda array: array)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame):
        if set(X.dtypes.tolist()) == {np.dtype(np.float64)}:
            names = X.columns
            return ArrayContainer(X.to_numpy(), lambda array: pandas.DataFrame(array, columns=names, copy=False))
        return PandasContainer(X, pandas)
    return NarwhalsContainer(X)


class ArrayContainer:
    """One array, passed to the model as an array or wrapped in a frame."""

    def __init__(self, array: npt.NDArray[Any], wrap: Callable[[npt.NDArray[Any]], Any]) -> None:
        self.array = array
        self.wrap = wrap
        self._last: tuple[int, npt.NDArray[Any]] | None = None

    def column(self, place: int) -> Any:
        # The same column is read repeatedly, several times faster from contiguous memory.
        last = self._last  # a local reference, since another thread may replace it
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
        """Return a column in the dtype of the array if possible; integers may be replaced by floats."""
        own = self.array.dtype
        if own.kind == "f":
            return column.astype(own, copy=False)
        if own.kind in "iub" and column.dtype.kind == "f":
            integers = bool((column == np.round(column)).all()) and bool(np.isfinite(column).all())
            return column.astype(own) if integers else column
        return column

    def joined(self, columns: Sequence[Any]) -> Any:
        return np.concatenate(columns)

    def rows(self, rows: slice | Rows) -> Any:
        # A new array, for a slice too: its columns are written.
        return self.array[rows].copy() if isinstance(rows, slice) else self.array[rows]

    def same(self, table: Any, rows: slice) -> bool:
        now, original = np.asarray(table), self.array[rows]
        if now.dtype != original.dtype or now.shape != original.shape:
            return False
        if now.dtype.kind in "iufb" and (now == original).all():
            return True
        # Bitwise, since missing values do not equal themselves; objects are compared by identity.
        return now.tobytes() == original.tobytes()

    def replaced(self, table: Any, columns: Mapping[int, Any]) -> Any:
        dtype = common_dtype(table.dtype, columns.values())
        table = table.astype(dtype, copy=False)
        for place, column in columns.items():
            table[:, place] = column
        return self.wrap(table)

    def repeated(self, times: int) -> Any:
        n_rows, n_columns = self.array.shape
        copies = np.empty((times, n_rows, n_columns), dtype=self.array.dtype)
        copies[:] = self.array
        return copies.reshape(times * n_rows, n_columns)


def common_dtype(dtype: np.dtype[Any], columns: Any) -> np.dtype[Any]:
    """Return the dtype of a table and the columns written into it: integers become floats if necessary."""
    return np.result_type(dtype, *(np.asarray(column).dtype for column in columns)) if dtype.kind != "O" else dtype


class PandasContainer:
    """A pandas frame of several dtypes."""

    def __init__(self, frame: Any, pandas: Any) -> None:
        # pandas cannot take rows of columns in the byte order of other machines, as old binary files have them.
        dtypes = {name: dtype for name, dtype in frame.dtypes.items() if isinstance(dtype, np.dtype)}
        foreign = {name: dtype.newbyteorder("=") for name, dtype in dtypes.items() if not dtype.isnative}
        self.frame = frame.astype(foreign) if foreign else frame
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
            return series.astype(np.float64).array  # integers may be replaced by floats
        held = series.isna() | series.isin(own.categories) if hasattr(own, "categories") else None
        try:
            cast = series.astype(own) if held is None or held.all() else None
        except ValueError:
            if own.kind not in "iu" or series.dtype.kind != "f":
                raise
            cast = series.astype(np.float64)  # they are beyond the range of these integers
        if cast is None or (cast.isna() != series.isna()).any():
            raise ColumnError(
                f"{what} do not all fit the dtype {own} of X. "
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
            # pandas would look for a narrower dtype of objects, and fail for text that is not valid Unicode.
            objects = str(getattr(column, "dtype", "")) == "object"  # other dtypes are of kind "O", too
            table.isetitem(place, self.pandas.Series(column, table.index, object) if objects else column)
        return table

    def repeated(self, times: int) -> Any:
        return self.pandas.concat([self.frame] * times, ignore_index=True)


class NarwhalsContainer:
    """A polars frame, a pyarrow table, or another container of narwhals."""

    def __init__(self, X: Any) -> None:
        import narwhals.stable.v2 as nw

        self.nw = nw
        self.frame = narwhals_frame(X, "X")

    def column(self, place: int) -> Any:
        return self.frame[:, place]

    def taken(self, column: Any, rows: Rows) -> Any:
        return column[rows]

    def values(self, place: int, values: Any, info: ColumnInfo | None) -> Any:
        own = self.column(place)
        try:
            series = self.nw.from_native(values, series_only=True)
        except TypeError:
            array = _moments(values, info)
            series = self.nw.new_series("", array.tolist() if array.dtype == object else array, backend=self.backend)
        return self._cast(series, own)

    def _cast(self, series: Any, own: Any) -> Any:
        """Return a column in the dtype of another if possible; integers may be replaced by floats."""
        if own.dtype.is_integer() and series.dtype.is_float():
            numbers = np.asarray(series.drop_nulls().to_numpy())
            return series.cast(own.dtype) if (numbers == np.round(numbers)).all() else series
        cast = series if series.dtype == own.dtype else series.cast(own.dtype)
        native, wanted = cast.to_native(), getattr(own.to_native(), "type", None)
        if getattr(native, "type", None) == wanted:
            return cast
        return self.nw.from_native(native.cast(wanted), series_only=True)  # pyarrow has more types than narwhals

    @property
    def backend(self) -> Any:
        return self.frame.implementation

    def like(self, place: int, column: Any, name: str) -> Any:
        if getattr(column, "implementation", None) != self.backend:  # from another container
            items = column.tolist() if hasattr(column, "tolist") else column.to_list()
            plain = [None if is_missing(value) else value for value in items]
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
        return True  # such tables are immutable

    def replaced(self, table: Any, columns: Mapping[int, Any]) -> Any:
        names = table.columns
        return table.with_columns(*(column.alias(names[place]) for place, column in columns.items())).to_native()

    def repeated(self, times: int) -> Any:
        # Contiguous, since a model reads these copies many times; narwhals has no method for that.
        native = self.nw.concat([self.frame] * times).to_native()
        combine = getattr(native, "rechunk", None) or getattr(native, "combine_chunks", None)
        return self.nw.from_native(native if combine is None else combine(), eager_only=True)


Container = ArrayContainer | PandasContainer | NarwhalsContainer
"""Operations on a container; columns are identified by position."""


def _moments(values: Any, info: ColumnInfo | None) -> npt.NDArray[Any]:
    """Return microseconds as dates or durations, if the column holds these."""
    array = np.asarray(values)
    if info is None or array.dtype.kind != "f" or not (info.is_date or info.is_duration):
        return array
    unit = "datetime64[us]" if info.is_date else "timedelta64[us]"
    integers = np.where(np.isnan(array), np.iinfo(np.int64).min, np.round(array)).astype(np.int64)
    return integers.view(unit)


def copied(table: Any) -> Any:
    """Return a copy that can be written to without changing the table."""
    return table.copy() if hasattr(table, "copy") else table


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """Return the table without some columns."""
    present, _ = names_and_rows(X)
    others = [place for place, name in enumerate(present) if name not in set(names)]
    if isinstance(X, np.ndarray):
        return X[:, others]
    if hasattr(X, "iloc"):
        return X.iloc[:, others]
    return narwhals_frame(X, "X")[:, others].to_native()


def backend_of(X: Any) -> Backend:
    """Return the container of the tables of a result: that of X, or pandas for arrays."""
    if isinstance(X, np.ndarray) or "pandas" in type(X).__module__:
        return "pandas"
    return str(narwhals_frame(X, "X").implementation.value)


def make_table(backend: Any, columns: Mapping[str, Any], index: Any = None) -> Any:
    """Return a table in a container; only pandas has an `index`."""
    if backend == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(columns), index=index)
    import narwhals.stable.v2 as nw

    plain = {name: list(values) for name, values in columns.items()}
    return nw.from_dict(plain, backend=backend).to_native()


def table_of_lines(backend: Any, lines: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Any:
    """Return a table of lines, which may have different columns; without a line, an empty table of these columns."""
    present = dict.fromkeys(name for line in lines for name in line) or dict.fromkeys(names)
    columns: dict[str, list[Any]] = {name: [line.get(name) for line in lines] for name in present}
    if any(isinstance(n, float) for n in columns.get("n", ())):
        columns["n"] = [float(n) for n in columns["n"]]  # a column has one type
    return make_table(backend, columns)


def as_count(n: float) -> float | int:
    """Return a number of rows as an int if it is an integer; sums of weights may not be."""
    nearest = round(n)
    return nearest if abs(n - nearest) <= _ROUNDING * abs(n) else float(n)
