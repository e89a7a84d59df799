"""Untyped columns from the containers of pandas, polars, pyarrow and numpy.

A column of any container becomes numbers, or codes of levels. Other columns raise an error that names them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, Codes, Floats, Kind
from subgrove._core.text import quote
from subgrove.exceptions import ColumnError, InputError

BOOLEANS = ("False", "True")


@dataclass(frozen=True, eq=False)
class UntypedColumn:
    """A column as numbers (NaN where missing) or as codes of levels (-1 where missing).

    Attributes
    ----------
    kind : {"numeric", "ordered", "nominal"}
        Kind of its dtype.
    values : float or int array
        Numbers if numeric, codes otherwise. Dates and durations are in microseconds.
    levels : tuple of str
        Empty if numeric.
    zone : str or None
        Time zone of dates, whose numbers are in UTC.
    """

    kind: Kind
    values: npt.NDArray[Any]
    levels: tuple[str, ...] = ()
    is_date: bool = False
    is_integer: bool = False
    is_duration: bool = False
    zone: str | None = None

    def __len__(self) -> int:
        return len(self.values)


def untyped_column(x: Any, argument: str) -> tuple[UntypedColumn, str | None]:
    """Return one column that is not in a table, and its name if it has one."""
    if isinstance(x, np.ndarray | list | tuple | range):
        array = unmasked(x) if isinstance(x, np.ndarray) else np.asarray(x)
        if array.dtype.kind == "U" and not isinstance(x, np.ndarray):
            # NumPy would have converted numbers to strings; mixed values stay mixed.
            array = np.asarray(x, dtype=object)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise InputError(f"{argument} must be one column; got an array of shape {array.shape}.")
        return _of_array(array, argument, argument), None
    pandas, pyarrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None and isinstance(x, pandas.DataFrame) and x.shape[1] == 1:
        x = x.iloc[:, 0]
    if pandas is not None and isinstance(x, pandas.Index | pandas.api.extensions.ExtensionArray):
        x = pandas.Series(x)
    if pandas is not None and isinstance(x, pandas.Series):
        name = None if x.name is None else str(x.name)
        return _of_pandas(x, pandas, name or argument, argument), name
    if pyarrow is not None and isinstance(x, pyarrow.Array):
        x = pyarrow.chunked_array([x])
    import narwhals.stable.v2 as nw

    try:
        series = nw.from_native(x, series_only=True)
    except TypeError:
        raise InputError(
            f"{argument} must be a pandas, polars or pyarrow column, a list or a 1-d array; got {type(x).__name__}. "
            f"Take one column, as in table['name']."
        ) from None
    name = str(series.name) if series.name else None
    return _of_series(series, name or argument, argument), name


def float_matrix(X: Any, argument: str) -> tuple[Floats | None, tuple[str, ...]]:
    """Return the array of a table without a copy if all columns are float64, else None; and the names."""
    if isinstance(X, np.ndarray):
        X = _two_dimensional(X, argument)
        return (X if X.dtype == np.float64 else None), names_and_rows(X)[0]
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame) and set(X.dtypes.tolist()) == {np.dtype(np.float64)}:
        names, _ = names_and_rows(X)
        _check_names(names, argument)
        return X.to_numpy(), names
    return None, ()


def untyped_columns(X: Any, argument: str, only: Sequence[str] | None = None) -> dict[str, UntypedColumn]:
    """Return the columns of a table by name; those of `only` that exist, if given."""
    if isinstance(X, np.ndarray):
        X = _two_dimensional(X, argument)
        return {name: _of_array(X[:, place], name, argument) for place, name in _wanted(X, only)}
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame):
        _check_names(names_and_rows(X)[0], argument)
        return {name: _of_pandas(X.iloc[:, place], pandas, name, argument) for place, name in _wanted(X, only)}
    # Before narwhals, which has its own message for duplicates.
    _check_names([str(name) for name in getattr(X, "column_names", ())], argument)
    frame = narwhals_frame(X, argument)
    return {name: _of_series(frame[:, place], name, argument) for place, name in _wanted(frame, only)}


def narwhals_frame(X: Any, argument: str) -> Any:
    """Return a table in memory of any library that narwhals knows, as a frame of narwhals."""
    import narwhals.stable.v2 as nw

    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise InputError(
            f"{argument} must be a pandas or polars frame, a pyarrow table or a 2-d array; got {type(X).__name__}."
            f"{_how_to_read(X)}"
        ) from None


def _wanted(X: Any, only: Sequence[str] | None) -> list[tuple[int, str]]:
    """Return position and name of the columns of a table; of those of `only` that exist, if given."""
    return [(place, name) for place, name in enumerate(names_and_rows(X)[0]) if only is None or name in only]


def _how_to_read(X: Any) -> str:
    """Return how to read data that are not in memory."""
    ways = {"collect": ".collect()", "to_table": ".to_table()", "compute": ".compute()"}  # polars, pyarrow and Dask
    way = next((call for name, call in ways.items() if hasattr(X, name)), None)
    if isinstance(X, str | os.PathLike):
        way = "pandas.read_parquet(path)"
    if way is None:
        return ""
    return f" Only importance and effect take large data; read the rows first ({way}), or some of them if many."


def names_and_rows(X: Any) -> tuple[tuple[str, ...], int]:
    """Return column names and number of rows of a table that `untyped_columns` accepts."""
    if isinstance(X, np.ndarray):
        return tuple(f"x{index}" for index in range(X.shape[1])), X.shape[0]
    names = X.column_names if hasattr(X, "column_names") else X.columns
    return tuple(str(name) for name in names), int(X.shape[0])


def _of_pandas(series: Any, pandas: Any, name: str, argument: str) -> UntypedColumn:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return _of_array(series.to_numpy(), name, argument)
    if isinstance(dtype, pandas.CategoricalDtype):
        values = series.array
        levels = [str(level) for level in values.categories.tolist()]
        return _of_codes(values.codes, levels, bool(dtype.ordered), name, argument)
    if isinstance(dtype, pandas.StringDtype):
        codes, levels = pandas.factorize(series, sort=True)
        return _of_codes(codes, levels.tolist(), False, name, argument)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        # Not by narwhals, which parses the zone from the text of the dtype and knows only some.
        moments = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        return replace(_of_moments(moments, is_date=True), zone=_zone_text(dtype.tz))
    import narwhals.stable.v2 as nw

    return _of_series(nw.from_native(series, series_only=True), name, argument)


def _zone_text(zone: Any) -> str:
    """Return the name of a time zone, or its offset from UTC if it has none."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if name:
        return str(name)
    minutes = (zone.utcoffset(None) or timedelta(0)) // timedelta(minutes=1)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" if minutes else "UTC"


def _of_series(series: Any, name: str, argument: str) -> UntypedColumn:
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    if dtype == nw.Boolean:
        return _of_booleans(series.to_list())
    if dtype == nw.Date or dtype == nw.Datetime or dtype == nw.Duration:
        moments = _of_moments(np.asarray(series.to_numpy()), is_date=dtype != nw.Duration)
        return replace(moments, zone=getattr(dtype, "time_zone", None))
    if dtype.is_numeric():
        series = series.cast(nw.Float64) if dtype in (nw.Int128, nw.UInt128) else series  # NumPy has no such integers
        values = _floats(series.to_list(), name, argument) if series.null_count() else series.to_numpy()
        numbers = np.asarray(values, dtype=np.float64)
        return UntypedColumn("numeric", numbers, is_integer=dtype.is_integer())
    if dtype == nw.Enum or dtype == nw.Categorical:
        ordered = dtype == nw.Enum or bool(getattr(getattr(series.to_native(), "type", None), "ordered", False))
        return _of_labels(series.to_list(), _declared_levels(series), ordered, name, argument)
    if dtype == nw.String and str(getattr(series.to_native(), "type", "")) != "string_view":  # rows cannot be taken
        return _of_labels(series.to_list(), (), False, name, argument)
    values = series.to_list()
    if dtype == nw.Object or all(is_missing(value) for value in values):
        return _of_objects(values, name, argument)
    named = next(getattr(series.to_native(), kind) for kind in ("dtype", "type") if hasattr(series.to_native(), kind))
    raise ColumnError(
        f"Column {name!r} of {argument} has dtype {named}, which is not supported. "
        f"Convert it to numbers, strings, categories, booleans or dates, or drop it."
    )


def _declared_levels(series: Any) -> tuple[str, ...]:
    """Return the levels in the order that the container declares; empty if it declares none (polars Categorical)."""
    native = series.to_native()
    if hasattr(native, "unify_dictionaries"):
        chunks = native.unify_dictionaries().chunks
        return tuple(str(level) for level in chunks[0].dictionary.to_pylist()) if chunks else ()
    return tuple(str(level) for level in getattr(series.dtype, "categories", ()) or ())


def _of_array(array: npt.NDArray[Any], name: str, argument: str) -> UntypedColumn:
    code = array.dtype.kind
    if code == "b":
        return UntypedColumn("nominal", array.astype(np.int32), BOOLEANS)
    if code in "iuf":
        return UntypedColumn("numeric", array.astype(np.float64, copy=False), is_integer=code != "f")
    if code in "mM":
        return _of_moments(array, is_date=code == "M")
    if code in "UT":
        return _of_labels(array.tolist(), (), False, name, argument)
    if code == "O":
        return _of_objects(array.tolist(), name, argument)
    raise ColumnError(
        f"Column {name!r} of {argument} has dtype {array.dtype}, which is not supported. "
        f"Convert it to numbers, strings, booleans or dates, or drop it."
    )


def _of_objects(values: list[Any], name: str, argument: str) -> UntypedColumn:
    types = {type(value) for value in values if not is_missing(value)}
    if not types:
        return UntypedColumn("numeric", np.full(len(values), np.nan))
    if types <= {bool, np.bool_}:
        return _of_booleans(values)
    if all(issubclass(kind, str) for kind in types):
        return _of_labels(values, (), False, name, argument)
    if all(issubclass(kind, date | np.datetime64) for kind in types):
        return _of_moments(np.array(values, dtype=object), is_date=True)
    if all(issubclass(kind, int | float | np.integer | np.floating) and kind is not bool for kind in types):
        return UntypedColumn("numeric", _floats(values, name, argument))
    names = ", ".join(sorted(kind.__name__ for kind in types))
    raise ColumnError(
        f"Column {name!r} of {argument} is an object column that "
        f"{'mixes types' if len(types) > 1 else 'holds values that are not supported'} ({names}). "
        f"Convert it to numbers, or to strings with astype(str)."
    )


def _of_booleans(values: list[Any]) -> UntypedColumn:
    codes = (MISSING if is_missing(value) else int(value) for value in values)
    return UntypedColumn("nominal", np.fromiter(codes, dtype=np.int32, count=len(values)), BOOLEANS)


def _of_labels(values: list[Any], levels: Sequence[str], ordered: bool, name: str, argument: str) -> UntypedColumn:
    labels = [None if is_missing(value) else str(value) for value in values]
    levels = levels or sorted({label for label in labels if label is not None})
    return _of_codes(encoded(labels, levels), levels, ordered, name, argument)


def _of_codes(codes: npt.NDArray[Any], levels: Sequence[str], ordered: bool, name: str, argument: str) -> UntypedColumn:
    _reject_surrogates(levels, f"Column {name!r} of {argument} has a level")
    if len(set(levels)) < len(levels):
        twice = sorted({level for level in levels if list(levels).count(level) > 1})
        raise ColumnError(
            f"Column {name!r} of {argument} has several categories that print as {quote(twice)}. Rename them."
        )
    return UntypedColumn("ordered" if ordered else "nominal", codes.astype(np.int32), tuple(levels))


def _of_moments(array: npt.NDArray[Any], *, is_date: bool) -> UntypedColumn:
    """Return dates, times or durations in microseconds."""
    if array.dtype == object:
        array = np.array([_moment(value) for value in array], dtype="datetime64[us]" if is_date else "timedelta64[us]")
    moments = array.astype("datetime64[us]" if is_date else "timedelta64[us]")
    numbers = np.where(np.isnat(moments), np.nan, moments.astype(np.int64)).astype(np.float64)
    return UntypedColumn("numeric", numbers, is_date=is_date, is_duration=not is_date)


def _moment(value: Any) -> Any:
    if is_missing(value):
        return "NaT"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return np.datetime64(value.astimezone(UTC).replace(tzinfo=None), "us")
    return value


def _floats(values: list[Any], name: str, argument: str) -> Floats:
    try:
        return np.array([np.nan if is_missing(value) else float(value) for value in values], dtype=np.float64)
    except OverflowError:
        raise ColumnError(
            f"Column {name!r} of {argument} has numbers that are larger than a float holds. Divide them."
        ) from None


def unmasked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a plain array, with masked values as missing."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        return np.asarray(np.ma.filled(array.astype(np.float64), np.nan))
    return np.asarray(array)


def encoded(labels: Iterable[str | None], levels: Sequence[str], other: int = MISSING) -> Codes:
    """Return positions of labels among levels: -1 where missing, `other` where not among them."""
    place: dict[str | None, int] = {level: index for index, level in enumerate(levels)}
    place[None] = MISSING
    return np.array([place.get(label, other) for label in labels], dtype=np.int32)


def is_missing(value: Any) -> bool:
    """Return whether a single value is missing: None, NaN, NaT or NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ArithmeticError):  # pandas.NA has no truth value, and a signalling NaN no comparison
        return True
    except ValueError:  # an array
        return False


def _two_dimensional(X: npt.NDArray[Any], argument: str) -> npt.NDArray[Any]:
    if X.ndim != 2:
        raise InputError(f"{argument} must have two dimensions; got an array of shape {X.shape}.")
    return unmasked(X)


def _check_names(names: Sequence[str], argument: str) -> None:
    _reject_surrogates(names, f"{argument} has a column with a name")
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if list(names).count(name) > 1})
        raise InputError(f"{argument} has several columns named {quote(twice)}. Rename them, so that rules are unique.")


def _reject_surrogates(texts: Sequence[str], what: str) -> None:
    """Reject texts with half a surrogate pair, which neither Arrow nor a file can hold."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise ColumnError(f"{what} that is not valid Unicode ({error.object[error.start]!r}). Rename it.") from error
