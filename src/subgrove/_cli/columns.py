"""Columns of a file: as they are stored, and as typed values of an inferred kind (numeric, nominal or date).

Decisions depend on the distinct values only, so they are cheap and the same for every reader. Decisions that a user may
want to override are stated in `InferredColumn.note` or `InferredColumn.left_out`.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from subgrove._data.columns import format_number
from subgrove.exceptions import InputError

MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "#N/A", "?", "<NA>", "NaT"})
OTHER = "(other)"
MOST_LEVELS = 100
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"[+-]?\d+(,\d+)?")
_PADDED = re.compile(r"0\d+")
_IDENTIFIER_SHARE = 0.9  # share of distinct values from which on text is an identifier
_MIN_ROWS = 20  # of the checks for identifiers and row numbers
_MAX_OTHER_SHARE = 0.5  # of the rows
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?(?P<zone>Z|[+-]\d{2}:?\d{2})?)?")
_DATE = r"\d{1,4}[/-]\d{1,2}[/-]\d{1,4}|\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}[ -][A-Za-z]{3}[ -]\d{4}"
_DATE_AND_TIME = re.compile(rf"({_DATE})(?:[ T](\d{{1,2}}:\d{{2}}(:\d{{2}}(\.\d{{1,9}})?)?))?")
_MONTH_FIRST, _DAY_FIRST = "%m/%d/%Y", "%d/%m/%Y"
_DATE_FORMATS = {  # with notes
    "%Y/%m/%d": "",
    "%d/%b/%Y": "",
    "%d.%m.%Y": "day.month.year",
    _MONTH_FIRST: "month/day/year",
    _DAY_FIRST: "day/month/year",
}

DeclaredType = Literal["any", "number", "text", "boolean", "date", "duration", "other"]
_DECLARED_TYPES: dict[str, DeclaredType] = {  # by the type of Python values that pandas infers
    "boolean": "boolean",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "empty": "number",
    "string": "text",
    "date": "date",
    "datetime": "date",
    "timedelta": "duration",
}
SelectColumns = Callable[[Sequence[str]], Sequence[str]]  # from the column names of a file to those that are read


@dataclass(frozen=True)
class RawColumn:
    """A column as stored in a file. `declared` "any" is text of undeclared type; `type` is the type by pandas."""

    name: str
    declared: DeclaredType
    values: Sequence[Any]
    type: str = ""


def raw_column(name: str, values: Sequence[Any]) -> RawColumn:
    """Return a column of Python values, whose type is that of the values."""
    from pandas.api.types import infer_dtype

    inferred = infer_dtype(values, skipna=True)
    return RawColumn(name, _DECLARED_TYPES.get(inferred, "other"), values, inferred)


@dataclass(frozen=True)
class RawTable:
    """Rows of a file. `row_numbers` are their positions in the file, from 0, of `total` rows.

    `decimal_comma` is whether a comma may be the decimal separator.
    """

    columns: tuple[RawColumn, ...]
    row_numbers: tuple[int, ...]
    total: int
    notes: tuple[str, ...] = ()
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
    nominal, numeric : frozenset of str
        Columns of known kind.
    numeric_reason : str
        Why columns are numeric, for errors; the option --numeric if "".
    missing : frozenset of str
        Additional texts for missing values.
    day_first : bool or None
    decimal_comma : bool
    keep : frozenset of str
        Columns that are used whatever they hold.
    keep_levels : frozenset of str
        Columns whose rare levels are not merged.
    """

    nominal: frozenset[str] = frozenset()
    numeric: frozenset[str] = frozenset()
    numeric_reason: str = ""
    missing: frozenset[str] = frozenset()
    day_first: bool | None = None
    decimal_comma: bool = False
    keep: frozenset[str] = frozenset()
    keep_levels: frozenset[str] = frozenset()


def infer(raw: RawColumn, row_numbers: Sequence[int], overrides: ColumnOverrides) -> tuple[Any, InferredColumn]:
    """Return a pandas column of a definite kind, and its description."""
    import pandas as pd

    codes, distinct = pd.factorize(np.array(_with_missing(raw, overrides), dtype=object))
    values, note = _typed_values(raw, distinct, codes, overrides)
    series = pd.Series(values, name=raw.name)
    kind = "other" if raw.declared == "other" else {"O": "nominal", "M": "date"}.get(series.dtype.kind, "numeric")
    keep = raw.name in overrides.keep
    left_out = "" if keep else note if kind == "other" else _reason_to_leave_out(series, row_numbers)
    if not left_out and kind == "nominal" and raw.name not in overrides.keep_levels:
        series, merged = _merge_rare_levels(series)
        note = "; ".join(text for text in (note, merged) if text)
        left_out = "" if keep else _too_many_rare(series)
    missing = int(series.isna().sum())
    return series, InferredColumn(raw.name, kind, missing, _summary(series, kind), note, left_out)


def _with_missing(raw: RawColumn, overrides: ColumnOverrides) -> list[Any]:
    """Return the values with None where missing, or of a type that is not supported."""
    if raw.declared == "other":
        return [None] * len(raw.values)
    if raw.declared not in ("any", "text"):
        return [None if value is None or value != value else value for value in raw.values]
    texts = overrides.missing | (MISSING if raw.declared == "any" else {""})
    return [None if value in texts else value for value in raw.values]


def _typed_values(raw: RawColumn, distinct: Any, codes: Any, overrides: ColumnOverrides) -> tuple[Any, str]:
    """Return the values of the rows, of the declared type or the inferred one, and a note."""
    import pandas as pd

    if raw.declared == "other":
        return np.full(len(codes), np.nan), f"columns of type {raw.type} are not supported"
    if raw.declared == "boolean":
        return _levels([str(value) for value in distinct], codes), ""
    if raw.declared == "number":
        numbers = _expand(np.array([float(value) for value in distinct]), codes)
        return (_numbers_as_levels(numbers), "") if raw.name in overrides.nominal else _finite(numbers)
    if raw.declared == "duration":
        return _expand(np.array([value.total_seconds() for value in distinct]), codes), "in seconds"
    if raw.declared == "date":
        times = pd.to_datetime(pd.Index(distinct, dtype=object), utc=True).tz_localize(None)
        return _expand(times.to_numpy().astype("datetime64[us]"), codes), ""
    return _typed_text(raw, [str(value) for value in distinct], codes, overrides)


def _typed_text(raw: RawColumn, distinct: list[str], codes: Any, overrides: ColumnOverrides) -> tuple[Any, str]:
    if raw.name not in overrides.nominal:
        if raw.declared == "any" or raw.name in overrides.numeric:
            numbers = _parse_numbers(raw.name, distinct, codes, overrides)
            if numbers is not None:
                return numbers
        dates = _parse_dates(distinct, overrides.day_first)
        if dates is not None:
            times, note = dates
            return _expand(times, codes), note
    return _levels(distinct, codes), ""


def _parse_numbers(name: str, distinct: list[str], codes: Any, overrides: ColumnOverrides) -> tuple[Any, str] | None:
    """Return text as numbers, or as levels if they are codes with leading zeros; None if it is not numeric."""
    required = name in overrides.numeric
    wrong = next((text for text in distinct if not _NUMBER.fullmatch(text)), None)
    if wrong is None:
        if not required and any(_PADDED.fullmatch(text) for text in distinct) and all(map(str.isdigit, distinct)):
            return _levels(distinct, codes), "codes with leading zeros"
        return _finite(_expand(np.array([float(text) for text in distinct]), codes))
    if overrides.decimal_comma and all(_COMMA_NUMBER.fullmatch(text) for text in distinct):
        return _expand(np.array([float(text.replace(",", ".")) for text in distinct]), codes), "decimal commas"
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
        return np.where(infinite, np.nan, values), f"{infinite.sum()} infinite values read as missing"
    whole = len(values) and (values == np.round(values)).all()  # not if one is NaN
    return values.astype(np.int64) if whole and np.abs(values).max() < 2**53 else values, ""


def _parse_dates(distinct: list[str], day_first: bool | None) -> tuple[Any, str] | None:
    """Return times in microseconds, in UTC where a zone is given, and a note; None if a text is not a date."""
    if not distinct:
        return None
    matches = [match for text in distinct if (match := _ISO_DATE.fullmatch(text))]
    if len(matches) == len(distinct):
        times = _times(distinct, "ISO8601")
        return None if times is None else (times, "times in UTC" if any(match["zone"] for match in matches) else "")
    matches = [match for text in distinct if (match := _DATE_AND_TIME.fullmatch(text))]
    if len(matches) < len(distinct):
        return None
    texts = [re.sub("[ -]", "/", match[1]) + (f" {match[2]}" if match[2] else "") for match in matches]
    time = matches[0]
    time_format = f"{' %H:%M' if time[2] else ''}{':%S' if time[3] else ''}{'.%f' if time[4] else ''}"
    excluded = {None: "", True: _MONTH_FIRST, False: _DAY_FIRST}[day_first]
    fits = {form: _times(texts, form + time_format) for form in _DATE_FORMATS if form != excluded}
    fitting = [form for form, times in fits.items() if times is not None]
    if not fitting:
        return None
    assumed = " assumed (--day-first for the other order)" if len(fitting) > 1 else ""
    return fits[fitting[0]], _DATE_FORMATS[fitting[0]] + assumed


def _times(texts: list[str], form: str) -> Any:
    """Return times in microseconds; None if a text is not of this format."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas; a text that is not a date becomes a level
        try:
            index = pd.to_datetime(pd.Index(texts, dtype=object), format=form, utc=True)
        except (ValueError, TypeError, OverflowError):
            return None
    return index.tz_localize(None).to_numpy().astype("datetime64[us]")


def _numbers_as_levels(values: Any) -> Any:
    import pandas as pd

    codes, distinct = pd.factorize(np.asarray(values, dtype=np.float64))  # NaN has code -1
    return _levels([format_number(value) for value in distinct], codes)


def _levels(distinct: list[str], codes: Any) -> Any:
    import pandas as pd

    order = pd.Index(sorted(distinct, key=_level_order), dtype=object)
    return pd.Categorical.from_codes(np.append(order.get_indexer(pd.Index(distinct, dtype=object)), -1)[codes], order)


def _level_order(level: str) -> tuple[float, str]:
    """Sort levels that are numbers by their value, before other levels."""
    return (float(level), level) if re.fullmatch(r"-?\d+(\.\d+)?", level) else (math.inf, level)


def _expand(distinct: Any, codes: Any) -> Any:
    """Return the value of each row from the distinct values; code -1 is missing."""
    import pandas as pd

    return pd.api.extensions.take(distinct, codes, allow_fill=True)


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
    return f"text with rare values: {share:.0%} of the rows would be {OTHER!r}" if share > _MAX_OTHER_SHARE else ""


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
