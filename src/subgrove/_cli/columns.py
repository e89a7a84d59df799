"""Columns of a file: as they are stored, and as typed values of an inferred kind (numeric, nominal or date).

Decisions depend on the distinct values only, so they are cheap and the same for every reader. Decisions that a user may
want to override are stated in `InferredColumn.note` or `InferredColumn.left_out`.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._cli.options import DataOptions
from subgrove._data.columns import format_number
from subgrove.exceptions import InputError

MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "#N/A", "?", "<NA>", "NaT"})
OTHER = "(other)"
RARE_VALUES = "text with rare values"
MOST_LEVELS = 100
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"[+-]?\d+(,\d+)?")
_PADDED = re.compile(r"0\d+")
_IDENTIFIER_SHARE = 0.9  # share of distinct values from which on text is an identifier
_MIN_ROWS = 20  # of the checks for identifiers and row numbers
_MAX_OTHER_SHARE = 0.5  # of the rows
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?")
_ISO_ZONE = re.compile(r":\d{2}.*[Z+-]")
_DATE = r"\d{1,4}[/-]\d{1,2}[/-]\d{1,4}|\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}[ -][A-Za-z]{3}[ -]\d{4}"
_DATE_AND_TIME = re.compile(rf"({_DATE})(?:[ T](\d{{1,2}}:\d{{2}}(:\d{{2}}(\.\d{{1,9}})?)?))?")
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")  # types of values that pandas infers
_UNSUPPORTED = "columns of type"
_MONTH_FIRST, _DAY_FIRST = "%m/%d/%Y", "%d/%m/%Y"
_DATE_FORMATS = {  # with notes
    "%Y/%m/%d": "",
    "%d/%b/%Y": "",
    "%d.%m.%Y": "day.month.year",
    _MONTH_FIRST: "month/day/year",
    _DAY_FIRST: "day/month/year",
}

SelectColumns = Callable[[Sequence[str]], Sequence[str]]  # from the column names of a file to those that are read


@dataclass(frozen=True)
class RawTable:
    """Rows of a file.

    Attributes
    ----------
    columns : mapping
        Name -> values of the column: texts, or Python values of the type that the file declares.
    row_numbers : sequence of int
        Positions of the rows in the file, from 0.
    total : int
        Rows of the file.
    notes : tuple of str
    untyped : bool
        Whether all values are texts of undeclared types.
    decimal_comma : bool
        Whether a comma may be the decimal separator.
    """

    columns: Mapping[str, Sequence[Any]]
    row_numbers: Sequence[int]
    total: int
    notes: tuple[str, ...] = ()
    untyped: bool = False
    decimal_comma: bool = False


@dataclass(frozen=True)
class InferredColumn:
    """Kind and summary of a column. `left_out` is the reason why it is not used, "" if it is used."""

    name: str
    kind: str
    n_missing: int
    values: str
    note: str = ""
    left_out: str = ""


@dataclass(frozen=True)
class ColumnOverrides:
    """What is known about columns before inference.

    Attributes
    ----------
    options : DataOptions
        Texts for missing values, and the order of dates.
    nominal, numeric : sequence of str
        Columns of known kind.
    numeric_reason : str
        Why columns are numeric, for errors; the option --numeric if "".
    keep : sequence of str
        Columns that are used whatever they hold.
    keep_levels : sequence of str
        Columns whose rare levels are not merged.
    """

    options: DataOptions
    nominal: Sequence[str]
    numeric: Sequence[str]
    numeric_reason: str
    keep: Sequence[str]
    keep_levels: Sequence[str]


def infer(name: str, raw: RawTable, overrides: ColumnOverrides) -> tuple[Any, InferredColumn]:
    """Return a pandas column of a definite kind, and its description."""
    series, note = _typed_values(name, raw, overrides)
    unsupported = note.startswith(_UNSUPPORTED)
    kind = "other" if unsupported else {"O": "nominal", "M": "date"}.get(series.dtype.kind, "numeric")
    keep = name in overrides.keep
    left_out = "" if keep else note if unsupported else _reason_to_leave_out(series, raw.row_numbers)
    if not left_out and kind == "nominal" and name not in overrides.keep_levels:
        series, merged = _merge_rare_levels(series)
        note = "; ".join(text for text in (note, merged) if text)
        left_out = "" if keep else _too_many_rare(series)
    missing = int(series.isna().sum())
    return series, InferredColumn(name, kind, missing, _summary(series, kind), note, left_out)


def _typed_values(name: str, raw: RawTable, overrides: ColumnOverrides) -> tuple[Any, str]:
    """Return the values of the declared type or the inferred one, and a note."""
    import pandas as pd

    values = pd.Series(raw.columns[name], dtype=object, name=name)
    declared = "" if raw.untyped else pd.api.types.infer_dtype(values, skipna=True)
    if declared in ("", "string"):
        missing = {*overrides.options.na, *(MISSING if raw.untyped else ("",))}
        return _typed_text(values.mask(values.isin(missing)), raw, overrides)
    if declared == "boolean":
        return _levels(values.map(str, na_action="ignore")), ""
    if declared in _NUMBERS:
        numbers = values.astype(float)
        is_nominal = name in overrides.nominal
        return (_levels(numbers.map(format_number, na_action="ignore")), "") if is_nominal else _finite(numbers)
    if declared == "timedelta":
        return pd.to_timedelta(values).dt.total_seconds(), "in seconds"
    if declared in ("date", "datetime"):
        return _as_utc(values), ""
    return pd.Series(np.nan, values.index, name=name), f"{_UNSUPPORTED} {declared} are not supported"


def _typed_text(values: Any, raw: RawTable, overrides: ColumnOverrides) -> tuple[Any, str]:
    """Return text as numbers, dates or levels, and a note."""
    found, distinct = None, values.dropna().unique().tolist()
    if values.name not in overrides.nominal:
        if raw.untyped or values.name in overrides.numeric:
            found = _parse_numbers(values, distinct, raw.decimal_comma, overrides)
        found = found or _parse_dates(values, distinct, overrides.options.day_first)
    return found or (_levels(values), "")


def _parse_numbers(
    values: Any, distinct: list[str], decimal_comma: bool, overrides: ColumnOverrides
) -> tuple[Any, str] | None:
    """Return text as numbers, or as levels if they are codes with leading zeros; None if it is not numeric."""
    name, required = values.name, values.name in overrides.numeric
    wrong = next((text for text in distinct if not _NUMBER.fullmatch(text)), None)
    if wrong is None:
        if not required and any(map(_PADDED.fullmatch, distinct)) and all(map(str.isdigit, distinct)):
            return _levels(values), "codes with leading zeros"
        return _finite(values.astype(float))
    if decimal_comma and all(map(_COMMA_NUMBER.fullmatch, distinct)):
        return values.str.replace(",", ".").astype(float), "decimal commas"
    if required:
        raise InputError(
            f"Column {name!r} holds {wrong!r}, which is not a number "
            f"({overrides.numeric_reason or f'--numeric {name}'}). Add --na {wrong!r} if it means missing."
        )
    return None


def _finite(values: Any) -> tuple[Any, str]:
    """Replace infinite numbers by missing values; return integers as integers."""
    infinite = np.isinf(values)
    if infinite.any():
        return values.mask(infinite), f"{infinite.sum()} infinite values read as missing"
    whole = len(values) and (values == values.round()).all()  # not if one is NaN
    return values.astype(np.int64) if whole and values.abs().max() < 2**53 else values, ""


def _parse_dates(values: Any, distinct: list[str], day_first: bool | None) -> tuple[Any, str] | None:
    """Return times in microseconds, in UTC where a zone is given, and a note; None if a text is not a date."""
    if distinct and all(map(_ISO_DATE.fullmatch, distinct)):
        times = _times(values, "ISO8601")
        zones = any(_ISO_ZONE.search(text) for text in distinct)
        return None if times is None else (times, "times in UTC" if zones else "")
    matches = {text: match for text in distinct if (match := _DATE_AND_TIME.fullmatch(text))}
    if not distinct or len(matches) < len(distinct):
        return None
    texts = {
        text: re.sub("[ -]", "/", match[1]) + (f" {match[2]}" if match[2] else "") for text, match in matches.items()
    }
    time = matches[distinct[0]]
    time_format = f"{' %H:%M' if time[2] else ''}{':%S' if time[3] else ''}{'.%f' if time[4] else ''}"
    excluded = {None: "", True: _MONTH_FIRST, False: _DAY_FIRST}[day_first]
    tried = {form: _times(values.map(texts), form + time_format) for form in _DATE_FORMATS if form != excluded}
    fitting = [form for form, times in tried.items() if times is not None]
    if not fitting:
        return None
    assumed = " assumed (--day-first for the other order)" if len(fitting) > 1 else ""
    return tried[fitting[0]], _DATE_FORMATS[fitting[0]] + assumed


def _times(texts: Any, form: str) -> Any:
    """Return times in microseconds; None if a text is not of this format."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas; a text that is not a date becomes a level
        try:
            return _as_utc(texts, form)
        except (ValueError, TypeError, OverflowError):
            return None


def _as_utc(values: Any, form: str | None = None) -> Any:
    """Return times in microseconds, in UTC where a zone is given."""
    import pandas as pd

    return pd.to_datetime(values, format=form, utc=True).dt.tz_localize(None).astype("datetime64[us]")


def _levels(values: Any) -> Any:
    import pandas as pd

    levels = sorted(values.dropna().unique(), key=_level_order)
    return values.astype(pd.CategoricalDtype(pd.Index(levels, dtype=object)))


def _level_order(level: str) -> tuple[float, str]:
    """Sort levels that are numbers by their value, before other levels."""
    return (float(level), level) if re.fullmatch(r"-?\d+(\.\d+)?", level) else (math.inf, level)


def _reason_to_leave_out(series: Any, row_numbers: Sequence[int]) -> str:
    """Return why a column is useless for a model; "" if it may be useful."""
    known = series.dropna()
    distinct = known.nunique()
    if not distinct:
        return "all values missing"
    if distinct == 1:
        return "constant" if len(known) == len(series) else ""
    if series.dtype == "category" and len(known) >= _MIN_ROWS and distinct >= _IDENTIFIER_SHARE * len(known):
        return f"text with {distinct} distinct values in {len(known)} rows: names or identifiers"
    is_long = series.dtype.kind == "i" and len(series) >= _MIN_ROWS
    return "row number" if is_long and (series - np.array(row_numbers)).nunique() == 1 else ""


def _merge_rare_levels(series: Any) -> tuple[Any, str]:
    """Merge all levels but the most frequent ones; return the column and a note."""
    if len(series.cat.categories) <= MOST_LEVELS:
        return series, ""
    frequent = set(series.value_counts(sort=True).index[: MOST_LEVELS - 1]) - {OTHER}
    merged = merge_levels(series, tuple(level for level in series.cat.categories if level in frequent))
    return merged, f"{len(series.cat.categories) - len(frequent)} rare levels merged into {OTHER!r}"


def merge_levels(series: Any, frequent: tuple[str, ...]) -> Any:
    """Return the column with all but the given levels merged into one."""
    import pandas as pd

    text = series.astype(object)
    merged = text.where(text.isna() | text.isin(list(frequent)), OTHER)
    return pd.Series(pd.Categorical(merged, [*frequent, OTHER]), index=series.index, name=series.name)


def _too_many_rare(series: Any) -> str:
    share = float((series == OTHER).mean())
    return f"{RARE_VALUES}: {share:.0%} of the rows would be {OTHER!r}" if share > _MAX_OTHER_SHARE else ""


def _summary(series: Any, kind: str) -> str:
    """Return the range or the first levels."""
    known = series.dropna()
    if not len(known) or kind == "other":
        return ""
    if kind == "nominal":
        levels = [str(level) for level in series.cat.categories]
        shown = ", ".join(level if len(level) <= 24 else level[:23] + "…" for level in levels[:3])
        return f"{len(levels)} levels: {shown}{', …' if len(levels) > 3 else ''}" if len(levels) > 1 else shown
    low, high = known.min(), known.max()
    if kind == "date":  # as a day if it is midnight
        return " to ".join(str(time).removesuffix(" 00:00:00") for time in (low, high))
    return f"{low:.6g} to {high:.6g}"
