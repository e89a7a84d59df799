"""Columns out of containers: the one file that knows pandas from polars from pyarrow from numpy.

Whatever cannot be used is refused here, by name, with the remedy.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from subgrove._kinds import KINDS, MAX_LEVELS, MISSING, UNSEEN, Codes, ColumnInfo, Floats, Kind
from subgrove.exceptions import ColumnError, InputError, ParameterError


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column that came as codes (-1 where missing) into levels."""

    codes: npt.NDArray[np.integer[Any]]
    levels: tuple[str, ...]
    ordered: bool

    def __len__(self) -> int:
        return len(self.codes)

    def tolist(self) -> list[str | None]:
        return [None if code < 0 else self.levels[code] for code in self.codes.tolist()]


@dataclass(frozen=True, eq=False)
class RawColumn:
    """One column as it came: an array, codes, or a narwhals Series."""

    data: Any
    name: str | None

    @classmethod
    def of(cls, x: Any, argument: str) -> RawColumn:
        if isinstance(x, np.ndarray | list | tuple | range):
            array = np.asarray(x)
            if array.dtype.kind == "U" and not isinstance(x, np.ndarray):
                # NumPy would have made strings of numbers; what was mixed stays mixed.
                array = np.asarray(x, dtype=object)
            if array.ndim == 2 and array.shape[1] == 1:
                array = array[:, 0]
            if array.ndim != 1:
                raise InputError(f"{argument} must be one column; got an array of shape {array.shape}.")
            return cls(array, None)
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(x, pandas.Series):
            return cls(_pandas_values(x, pandas), None if x.name is None else str(x.name))
        import narwhals as nw

        try:
            series = nw.from_native(x, series_only=True)
        except TypeError:
            raise InputError(
                f"{argument} must be a pandas, polars or pyarrow column, a list or a 1-d array; got {type(x).__name__}."
            ) from None
        return cls(series, str(series.name) if series.name is not None else None)

    def __len__(self) -> int:
        return len(self.data)


def _pandas_values(series: Any, pandas: Any) -> Any:
    """A pandas column as an array or as codes where that is all there is to it, else as narwhals sees it."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return series.to_numpy()
    if isinstance(dtype, pandas.CategoricalDtype):
        values = series.array
        return _Coded(values.codes, tuple(map(str, values.categories.tolist())), bool(dtype.ordered))
    if isinstance(dtype, pandas.StringDtype):
        codes, found = pandas.factorize(series, sort=True)
        return _Coded(codes, tuple(map(str, found.tolist())), False)
    import narwhals as nw

    return nw.from_native(series, series_only=True)


def float_matrix(X: Any, argument: str) -> tuple[Floats | None, tuple[str, ...]]:
    """The table as it lies in memory, if it is float64 throughout; else None."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise InputError(f"{argument} must have two dimensions; got an array of shape {X.shape}.")
        names = tuple(f"x{index}" for index in range(X.shape[1]))
        return (X if X.dtype == np.float64 else None), names
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame) and set(X.dtypes.tolist()) == {np.dtype(np.float64)}:
        names = tuple(map(str, X.columns.tolist()))
        _refuse_duplicates(names, argument)
        return X.to_numpy(), names
    return None, ()


def named_columns(X: Any, argument: str) -> list[tuple[str, RawColumn]]:
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise InputError(f"{argument} must have two dimensions; got an array of shape {X.shape}.")
        columns = [(f"x{index}", RawColumn(X[:, index], f"x{index}")) for index in range(X.shape[1])]
        refuse_empty(X.shape[0], len(columns), argument)
        return columns
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame):
        names = tuple(map(str, X.columns.tolist()))
        _refuse_duplicates(names, argument)
        refuse_empty(X.shape[0], X.shape[1], argument)
        series = (column for _, column in X.items())
        return [
            (name, RawColumn(_pandas_values(column, pandas), name)) for name, column in zip(names, series, strict=True)
        ]
    import narwhals as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise InputError(
            f"{argument} must be a pandas or polars frame, a pyarrow table or a 2-d array; got {type(X).__name__}."
        ) from None
    _refuse_duplicates(tuple(str(name) for name in frame.columns), argument)
    refuse_empty(frame.shape[0], frame.shape[1], argument)
    return [(str(name), RawColumn(frame[name], str(name))) for name in frame.columns]


def typed(column: RawColumn, name: str, kind: Kind | None, argument: str) -> tuple[ColumnInfo, npt.NDArray[Any]]:
    """Kind, levels and values of a column that is seen for the first time."""
    if kind is not None and kind not in KINDS:
        raise ParameterError(f"The kind of {name!r} must be one of {', '.join(KINDS)}; got {kind!r}.")
    native = _native_kind(column, name, argument)
    wanted = kind or native.kind
    if wanted == "numeric":
        values = _numbers(column, native, name, argument)
        missing = check_numbers(values, name, argument)
        return ColumnInfo(name, "numeric", (), missing, native.is_date, native.is_integer), values
    levels = native.levels or _levels_of(_labels(column, native), native)
    if len(levels) > MAX_LEVELS:
        raise ColumnError(
            f"Column {name!r} of {argument} has {len(levels)} levels; at most {MAX_LEVELS} can be told apart usefully. "
            f"Drop it, merge rare levels, or pass it as numeric if it holds numbers."
        )
    codes = _encode(column, native, levels)
    missing = bool((codes == MISSING).any())
    if missing and (codes == MISSING).all():
        raise ColumnError(_all_missing(name, argument))
    info = ColumnInfo(name, wanted, levels, missing)
    return info, codes if wanted == "nominal" else _codes_as_numbers(codes)


@dataclass(frozen=True, slots=True)
class _Native:
    """What a dtype says: the kind, the declared levels, and how to read numbers."""

    kind: Kind
    levels: tuple[str, ...] = ()
    is_date: bool = False
    is_integer: bool = False
    is_boolean: bool = False


def _native_kind(column: RawColumn, name: str, argument: str) -> _Native:
    data = column.data
    if isinstance(data, _Coded):
        return _Native("ordered" if data.ordered else "nominal", data.levels)
    if isinstance(data, np.ndarray):
        return _kind_of_array(data, name, argument)
    import narwhals as nw

    dtype = data.dtype
    if dtype == nw.Boolean:
        return _Native("nominal", is_boolean=True)
    if dtype == nw.Date or dtype == nw.Datetime or dtype == nw.Duration:
        return _Native("numeric", is_date=dtype != nw.Duration)
    if dtype.is_numeric():
        return _Native("numeric", is_integer=dtype.is_integer())
    if dtype == nw.Enum or dtype == nw.Categorical:
        return _Native("ordered" if dtype == nw.Enum or _pyarrow_ordered(data) else "nominal", _declared_levels(data))
    if dtype == nw.String:
        return _Native("nominal")
    if dtype == nw.Object:
        return _kind_of_array(np.asarray(data.to_list(), dtype=object), name, argument)
    raise ColumnError(
        f"Column {name!r} of {argument} has dtype {dtype}, which has no kind here. "
        f"Convert it to numbers, strings, categories, booleans or dates, or drop it."
    )


def _declared_levels(series: Any) -> tuple[str, ...]:
    """Levels in the order the container declares; empty where it declares none (polars' Categorical)."""
    native = series.to_native()
    if hasattr(native, "unify_dictionaries"):
        chunks = native.unify_dictionaries().chunks
        return tuple(str(level) for level in chunks[0].dictionary.to_pylist()) if chunks else ()
    return tuple(str(level) for level in getattr(series.dtype, "categories", ()) or ())


def _pyarrow_ordered(series: Any) -> bool:
    return bool(getattr(getattr(series.to_native(), "type", None), "ordered", False))


def _kind_of_array(array: npt.NDArray[Any], name: str, argument: str) -> _Native:
    code = array.dtype.kind
    if code == "b":
        return _Native("nominal", is_boolean=True)
    if code in "iu":
        return _Native("numeric", is_integer=True)
    if code == "f":
        return _Native("numeric")
    if code in "mM":
        return _Native("numeric", is_date=code == "M")
    if code in "UT":
        return _Native("nominal")
    if code == "O":
        types = {type(value) for value in array if not _is_missing(value)}
        if not types:
            raise ColumnError(_all_missing(name, argument))
        if types <= {bool, np.bool_}:
            return _Native("nominal", is_boolean=True)
        if all(issubclass(kind, str) for kind in types):
            return _Native("nominal")
        if all(issubclass(kind, int | float | np.integer | np.floating) and kind is not bool for kind in types):
            return _Native("numeric")
        found = ", ".join(sorted(kind.__name__ for kind in types))
        raise ColumnError(
            f"Column {name!r} of {argument} is an object column that mixes types ({found}). "
            f"Convert it to numbers, or to strings with astype(str)."
        )
    raise ColumnError(
        f"Column {name!r} of {argument} has dtype {array.dtype}, which has no kind here. "
        f"Convert it to numbers, strings, booleans or dates, or drop it."
    )


def _numbers(column: RawColumn, native: _Native, name: str, argument: str) -> Floats:
    data = column.data
    if isinstance(data, np.ndarray):
        array = data
        if array.dtype.kind in "mM":
            return _microseconds(array, native)
    elif isinstance(data, _Coded):
        array = np.asarray(data.tolist(), dtype=object)
    elif native.is_date or str(data.dtype).startswith("Duration"):
        return _microseconds(np.asarray(data.to_numpy()), native)
    elif data.dtype.is_numeric():
        return _series_numbers(data)
    elif native.kind != "numeric":
        array = np.asarray(_labels(column, native), dtype=object)
    else:
        array = np.asarray(data.to_list(), dtype=object)
    if array.dtype != object:
        return cast("Floats", array.astype(np.float64))
    try:
        return np.array([np.nan if _is_missing(value) else float(value) for value in array])
    except (TypeError, ValueError) as error:
        raise ColumnError(
            f"Column {name!r} of {argument} is to be numeric but holds values that are no numbers: {error}."
        ) from error


def _microseconds(array: npt.NDArray[Any], native: _Native) -> Floats:
    moments = array.astype("datetime64[us]" if native.is_date else "timedelta64[us]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64)).astype(np.float64)


def _series_numbers(series: Any) -> Floats:
    import narwhals as nw

    if series.null_count():
        return np.array(
            [np.nan if value is None else value for value in series.cast(nw.Float64).to_list()], dtype=float
        )
    return np.asarray(series.to_numpy(), dtype=np.float64)


def check_numbers(values: Floats, name: str, argument: str) -> bool:
    """Whether the column has missing values; infinite and all-missing columns are refused."""
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.flatnonzero(infinite)[0])
        raise ColumnError(
            f"Column {name!r} of {argument} has {int(infinite.sum())} infinite values (the first in row {row}). "
            f"Replace them by missing values or by a finite bound."
        )
    missing = np.isnan(values)
    if missing.all():
        raise ColumnError(_all_missing(name, argument))
    return bool(missing.any())


def _labels(column: RawColumn, native: _Native) -> list[str | None]:
    """Values as text, None where missing; the same text for the same value in every container."""
    data = column.data
    values = data.to_list() if hasattr(data, "to_list") else data.tolist()
    if native.is_integer:
        return [None if _is_missing(value) else str(int(value)) for value in values]
    if native.is_boolean:
        return [None if _is_missing(value) else str(bool(value)) for value in values]
    return [None if _is_missing(value) else str(value) for value in values]


def _levels_of(labels: list[str | None], native: _Native) -> tuple[str, ...]:
    if native.is_boolean:
        return ("False", "True")
    distinct = {label for label in labels if label is not None}
    if native.kind == "numeric":
        return tuple(sorted(distinct, key=float))
    return tuple(sorted(distinct))


def _encode(column: RawColumn, native: _Native, levels: Sequence[str]) -> Codes:
    """Positions of a column's values among levels."""
    place: dict[str | None, int] = {level: index for index, level in enumerate(levels)}
    place[None] = MISSING
    data = column.data
    if isinstance(data, _Coded):
        own = np.array([*(place.get(level, UNSEEN) for level in data.levels), MISSING], dtype=np.int32)
        codes: Codes = own[data.codes]
        return codes
    labels = _labels(column, native)
    return np.fromiter((place.get(label, UNSEEN) for label in labels), dtype=np.int32, count=len(labels))


def _codes_as_numbers(codes: Codes) -> Floats:
    numbers = np.where(codes == MISSING, np.nan, codes + 1.0)
    numbers[codes == UNSEEN] = np.inf
    return numbers


def values_like(column: RawColumn, info: ColumnInfo, argument: str) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Values of a new column, and its levels that training did not have."""
    native = _native_kind_or_missing(column, info, argument)
    if info.kind == "numeric":
        values = _numbers(column, native, info.name, argument)
        if np.isinf(values).any():
            check_numbers(values, info.name, argument)
        return values, ()
    codes = _encode(column, native, info.levels)
    strange: tuple[str, ...] = ()
    if (codes == UNSEEN).any():
        labels = {label for label in _labels(column, native) if label is not None}
        strange = tuple(sorted(labels - set(info.levels)))
    return (codes if info.is_nominal else _codes_as_numbers(codes)), strange


def _native_kind_or_missing(column: RawColumn, info: ColumnInfo, argument: str) -> _Native:
    """New rows may be missing throughout, which no dtype tells; then the training column decides."""
    try:
        return _native_kind(column, info.name, argument)
    except ColumnError:
        if all(label is None for label in _labels(column, _Native("nominal"))):
            return _Native("numeric" if info.kind == "numeric" else "nominal")
        raise


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be a truth value
        return True
    except ValueError:  # an array, which is no missing value
        return False


def checked_kinds(kinds: Mapping[str, Kind] | None, argument: str) -> Mapping[str, Kind]:
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise ParameterError(
            f"kinds must map column names of {argument} to {', '.join(KINDS)}; got {type(kinds).__name__}."
        )
    return kinds


def _refuse_duplicates(names: tuple[str, ...], argument: str) -> None:
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(
            f"{argument} has several columns named {quote(twice)}. Rename them, so that a rule can tell them apart."
        )


def refuse_empty(n_rows: int, n_columns: int, argument: str) -> None:
    if n_rows == 0 or n_columns == 0:
        raise InputError(f"{argument} has {n_rows} rows and {n_columns} columns; at least one of each is needed.")


def _all_missing(name: str, argument: str) -> str:
    return f"Column {name!r} of {argument} has no value at all: every row is missing. Drop the column."


def quote(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
