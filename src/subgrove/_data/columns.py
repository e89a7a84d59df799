"""Typed columns from untyped ones: numbers, ranks of ordered levels, or codes of nominal levels."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import KINDS, MAX_LEVELS, MISSING, UNSEEN, Codes, ColumnInfo, Floats, Kind
from subgrove._data.from_containers import BOOLEANS, UntypedColumn, encoded
from subgrove.exceptions import ColumnError, ParameterError


def typed(column: UntypedColumn, name: str, kind: Kind | None, argument: str) -> tuple[ColumnInfo, npt.NDArray[Any]]:
    """Return the kind, levels and values of a column of a table that is read for the first time."""
    if kind is not None and kind not in KINDS:
        raise ParameterError(f"The kind of {name!r} must be one of {', '.join(KINDS)}; got {kind!r}.")
    wanted = kind or column.kind
    if wanted == "numeric":
        values = _numbers(column, name, argument)
        missing = check_numbers(values, name, argument)
        return ColumnInfo(name, "numeric", (), missing, column.is_date, column.is_integer, column.is_duration), values
    labels, levels = _labels(column), column.levels
    if column.kind == "numeric":
        # In the order of the numbers or dates.
        levels = tuple(dict.fromkeys(labels[at] for at in np.argsort(column.values, kind="stable") if labels[at]))
    codes = _codes(column, labels, levels)
    info = ColumnInfo(name, wanted, levels, bool((codes == MISSING).any()))
    return info, codes if wanted == "nominal" else _codes_as_numbers(codes)


def values_like(column: UntypedColumn, info: ColumnInfo, argument: str) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Return the values of a column of new rows, and its levels that training did not have."""
    if info.kind == "numeric":
        values = _numbers(column, info.name, argument)
        check_numbers(values, info.name, argument)
        if _unit(column) != _unit(info) and not np.isnan(values).all():
            raise ColumnError(
                f"Column {info.name!r} of {argument} holds {_unit(column)}, but in training it held {_unit(info)}. "
                f"Convert it."
            )
        return values, ()
    if info.levels == BOOLEANS and column.kind == "numeric":
        column = _as_booleans(column)
    labels = _labels(column)
    codes = _codes(column, labels, info.levels)
    unseen: set[str] = set()
    if (codes == UNSEEN).any():
        present = {column.levels[code] for code in np.unique(column.values) if code >= 0} if column.levels else labels
        unseen = {label for label in present if label is not None} - set(info.levels)
    return (codes if info.is_nominal else _codes_as_numbers(codes)), tuple(sorted(unseen))


def check_numbers(values: Floats, name: str, argument: str) -> bool:
    """Return whether a column has missing values; infinite values raise an error."""
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.flatnonzero(infinite)[0])
        raise ColumnError(
            f"Column {name!r} of {argument} has {int(infinite.sum())} infinite values (the first in row {row}). "
            f"Replace them by missing values or by a finite bound."
        )
    return bool(np.isnan(values).any())


def reject_unusable(info: ColumnInfo, values: npt.NDArray[Any], argument: str) -> None:
    """Raise an error for columns that no tree can use: without a value, or with very many levels."""
    if len(info.levels) > MAX_LEVELS:
        raise ColumnError(
            f"Column {info.name!r} of {argument} has {len(info.levels)} levels; at most {MAX_LEVELS} are supported. "
            f"Drop it, merge rare levels, or convert it to numbers or dates if that is what it holds."
        )
    if info.has_missing and (values < 0 if info.is_nominal else np.isnan(values)).all():
        raise ColumnError(
            f"Column {info.name!r} of {argument} has no value at all: every row is missing. Drop the column."
        )


def _numbers(column: UntypedColumn, name: str, argument: str) -> Floats:
    if column.kind == "numeric":
        return column.values
    if column.levels == BOOLEANS:
        return np.where(column.values < 0, np.nan, column.values.astype(np.float64))
    try:
        of_level = np.array([float(level) for level in column.levels] + [np.nan])
    except ValueError as error:
        raise ColumnError(
            f"Column {name!r} of {argument} is to be numeric but holds other values: {error}. Convert it to numbers."
        ) from error
    numbers: Floats = of_level[column.values]
    return numbers


def _labels(column: UntypedColumn) -> list[str | None]:
    """Return the values of a numeric column as text, None where missing; empty for a column with levels."""
    if column.kind != "numeric":
        return []
    return [None if value != value else number_text(value, column) for value in column.values.tolist()]


def _unit(column: UntypedColumn | ColumnInfo) -> str:
    return "dates" if column.is_date else "durations" if column.is_duration else "numbers"


def _as_booleans(column: UntypedColumn) -> UntypedColumn:
    """Return 0 and 1 as False and True."""
    known = np.isin(column.values, (0.0, 1.0))
    codes = np.where(np.isnan(column.values), MISSING, np.where(known, column.values == 1.0, UNSEEN))
    return UntypedColumn("nominal", codes.astype(np.int32), BOOLEANS)


def _codes(column: UntypedColumn, labels: list[str | None], levels: tuple[str, ...]) -> Codes:
    if column.kind == "numeric":
        return encoded(labels, levels, other=UNSEEN)
    if column.levels == levels:
        return column.values
    own = np.append(encoded(column.levels, levels, other=UNSEEN), np.int32(MISSING))
    codes: Codes = own[column.values]
    return codes


def _codes_as_numbers(codes: Codes) -> Floats:
    numbers = np.where(codes == MISSING, np.nan, codes + 1.0)
    numbers[codes == UNSEEN] = np.inf
    return numbers


def number_text(value: float, column: UntypedColumn | ColumnInfo) -> str:
    """Return a value of a numeric column as text in a rule."""
    if column.is_date:
        return date_text(value)
    if column.is_duration:
        return str(timedelta(microseconds=value))
    return format_number(value)


def format_number(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def date_text(microseconds: float) -> str:
    """Return a date as text: only the day at midnight, and no trailing zeros."""
    text = str(np.datetime64(int(microseconds), "us"))
    day, _, time = text.partition("T")
    if time.strip("0:.") == "":
        return day
    return text.rstrip("0").rstrip(".") if "." in text else text
