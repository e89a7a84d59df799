"""Columns by name, and typed columns.

The `features` and `given` arguments name columns, or give their positions. Names come first: an integer is a position
only if no column is labelled with an integer.

A column is described by its `ColumnInfo`. Typed from an untyped one, it holds numbers, ranks of ordered levels, or
codes of nominal levels. One with heavy tails has a `LogScale`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import KINDS, MAX_LEVELS, MISSING, UNSEEN, Codes, Floats, Kind
from subgrove._core.text import TOGETHER, quote
from subgrove._data.from_containers import BOOLEANS, UntypedColumn, encoded
from subgrove.exceptions import ColumnError, ParameterError

_HEAVY_TAILS = 6.0  # kurtosis from which there is a logarithmic scale; that of a normal distribution is 3
_MIN_SCALED_ROWS, _MIN_SCALED_VALUES = 50, 20  # rows, and different values, for it
NORMAL_IQR = 1.349
"""Interquartile range of a normal distribution, in standard deviations."""


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """Name, kind and levels of a column."""

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    has_missing: bool = False
    is_date: bool = False
    is_integer: bool = False
    is_duration: bool = False
    zone: str | None = None  # time zone of dates in results

    @property
    def is_nominal(self) -> bool:
        """Whether the column is in the codes of a table, not in its numbers."""
        return self.kind == "nominal"


@dataclass(frozen=True)
class LogScale:
    """Scale on which curves of a column with heavy tails, such as an income, have an even slope.

    The logarithm of positive values; of others, the inverse hyperbolic sine, a logarithm of both tails.

    Attributes
    ----------
    least : float or None
        Smallest training value; new ones below it are set to it. None for the inverse hyperbolic sine.
    centre, spread : float
        Median and scaled interquartile range, between which the inverse hyperbolic sine is nearly linear.
    """

    least: float | None
    centre: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, values: Floats) -> LogScale | None:
        """Return the scale of a column with heavy tails; None for others, and for those with few different values."""
        if len(values) < _MIN_SCALED_ROWS or len(np.unique(values)) < _MIN_SCALED_VALUES:
            return None
        centred = values - values.mean()
        if not (centred**4).mean() > _HEAVY_TAILS * (centred**2).mean() ** 2:
            return None
        if values.min() > 0:
            return cls(float(values.min()))
        low, centre, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
        spread = (high - low) / NORMAL_IQR
        return cls(None, centre, spread) if spread > 0 else None

    def of_values(self, values: Floats) -> Floats:
        """Return values on the scale."""
        if self.least is not None:
            return np.log(np.maximum(values, self.least))
        return np.arcsinh((values - self.centre) / self.spread)

    def label(self, column: str) -> str:
        """Return the label of a column on the scale."""
        return f"log({column})" if self.least is not None else f"arsinh({column})"


Members = tuple[str, ...]
OTHER = "(other)"
"""Level into which rare levels are merged."""


class NamedGroup(tuple[str, ...]):
    """Columns that are resampled together, with the name that results show."""

    name: str

    def __new__(cls, name: str, members: Iterable[str]) -> NamedGroup:
        group = super().__new__(cls, tuple(members))
        group.name = name
        return group

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.name, tuple(self)

    def __repr__(self) -> str:
        return f"NamedGroup({self.name!r}, {tuple(self)!r})"


def feature_label(feature: Members) -> str:
    """Return the name of a feature or group in results: its own name, or those of its columns."""
    return feature.name if isinstance(feature, NamedGroup) else TOGETHER.join(feature)


def as_argument(feature: Members) -> str | Members | list[str]:
    """Return a feature as `features` of a sampler's `fit` has it: a name, or a group."""
    if isinstance(feature, NamedGroup):
        return feature
    return feature[0] if len(feature) == 1 else list(feature)


def parse_features(features: Any, columns: Sequence[str]) -> tuple[Members, ...]:
    """Return the columns of each feature or group; None stands for every column.

    Parameters
    ----------
    features : str, int, list, dict or None
        Names or positions of columns, groups of them as lists, or a dict from the names of groups to their columns.
    columns : sequence of str
        Names of the columns of the table.
    """
    if features is None:
        return tuple((name,) for name in columns)
    if isinstance(features, Mapping):
        groups: tuple[Members, ...] = tuple(_named_group(name, each, columns) for name, each in features.items())
    else:
        groups = tuple(_members(each, columns) for each in as_list("features", features))
    if not groups:
        raise ParameterError("features is empty. Name some columns, or omit features for all of them.")
    _reject_duplicates(groups)
    return groups


def allowed_columns(given: Any, columns: Sequence[str]) -> Members:
    """Return the columns of `given` in the order of the table; None stands for every column."""
    if given is None:
        return tuple(columns)
    names = _names("given", as_list("given", given), columns)
    return tuple(name for name in columns if name in names)


def _members(feature: Any, columns: Sequence[str]) -> Members:
    if isinstance(feature, NamedGroup):
        return NamedGroup(feature.name, _names("features", feature, columns))
    members = _names("features", as_list("A group in features", feature), columns)
    if not members:
        raise ParameterError("features has a group without columns. Name its columns, or leave it out.")
    if len(set(members)) < len(members):
        raise ParameterError(f"features has a group that names a column twice: {quote(members)}. Name it once.")
    return members


def _named_group(name: Any, feature: Any, columns: Sequence[str]) -> Members:
    members = _members(feature, columns)
    if not isinstance(name, str):
        raise ParameterError(f"features is a dict, whose keys are names of groups; got the key {name!r}.")
    if name in columns and members != (name,):
        raise ParameterError(
            f"features has a group named {name!r}, which is the name of a column. Choose another name for the group."
        )
    return NamedGroup(name, members)


def _names(argument: str, values: Iterable[Any], columns: Sequence[str]) -> Members:
    """Names of columns that are given by name or position."""
    names = []
    for value in values:
        is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if is_number and not any(name.removeprefix("-").isdecimal() for name in columns):  # not names that are numbers
            if not 0 <= value < len(columns):
                raise ParameterError(
                    f"{argument} has the position {value}, but positions are from 0 to {len(columns) - 1}: "
                    f"X has {len(columns)} columns. Negative positions are not supported."
                )
            names.append(columns[int(value)])
        else:
            names.append(str(value))
    unknown = [name for name in dict.fromkeys(names) if name not in columns]
    if unknown:
        raise ParameterError(f"{argument} names {quote(unknown)}, but X has the columns {quote(columns)}.")
    return tuple(names)


def as_list(argument: str, values: Any) -> list[Any]:
    """Return names or positions of columns as a list, also a single one; an array without axes cannot be iterated."""
    if isinstance(values, str | int | np.integer) and not isinstance(values, bool):
        return [values]
    if not isinstance(values, Iterable) or getattr(values, "shape", None) == ():
        raise ParameterError(f"{argument} must be a name, a position or a list of them; got {values!r}.")
    return list(values)


def _reject_duplicates(groups: Sequence[Members]) -> None:
    """Reject groups with the same columns, in whatever order, and features with the same label."""
    sets = [frozenset(members) for members in groups]
    labels = [feature_label(members) for members in groups]
    twice = [label for label, members in zip(labels, sets, strict=True) if sets.count(members) > 1]
    twice += [label for label in labels if labels.count(label) > 1]
    if twice:
        raise ParameterError(f"features names {quote(dict.fromkeys(twice))} more than once. Name each feature once.")


def typed(column: UntypedColumn, name: str, kind: Kind | None, argument: str) -> tuple[ColumnInfo, npt.NDArray[Any]]:
    """Return the kind, levels and values of a column of a table that is read for the first time."""
    if kind is not None and kind not in KINDS:
        raise ParameterError(f"The kind of {name!r} must be one of {', '.join(KINDS)}; got {kind!r}.")
    wanted = kind or column.kind
    if wanted == "numeric":
        values = untyped_numbers(column, name, argument)
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
        values = untyped_numbers(column, info.name, argument)
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


def untyped_numbers(column: UntypedColumn, name: str, argument: str) -> Floats:
    """Return a column as numbers, booleans as 0 and 1; levels that are not numbers raise an error."""
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
    return np.asarray(of_level[column.values])


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
    return np.asarray(own[column.values])


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
