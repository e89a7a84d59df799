"""Infer the kind of a column (numeric, nominal or date), and which columns are useless for a model.

Decisions depend on the distinct values only, so they are cheap and the same for every reader. Decisions that a user may
want to override are stated in `InferredColumn.note` or `InferredColumn.left_out`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subgrove._cli.columns import RawColumn
from subgrove._cli.dates import parse_dates
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


@dataclass
class _TypedValues:
    """Values of a column, their kind, and notes."""

    values: Any
    kind: str
    notes: list[str] = field(default_factory=list)


def infer(raw: RawColumn, overrides: ColumnOverrides, row_numbers: Sequence[int]) -> tuple[Any, InferredColumn]:
    """Return a pandas column of a definite kind, and its description."""
    import pandas as pd

    codes, distinct = pd.factorize(np.array(_with_missing(raw, overrides), dtype=object))
    texts = [str(value) for value in distinct] if raw.declared in ("any", "text") else distinct
    typed = _typed_values(raw, texts, codes, overrides)
    series = pd.Series(typed.values, name=raw.name)
    keep = raw.name in overrides.keep
    left_out = "" if keep else _reason_to_leave_out(series, typed, row_numbers)
    if not left_out and typed.kind == "nominal" and raw.name not in overrides.keep_levels:
        series = _merge_rare_levels(series, typed)
        left_out = "" if keep else _too_many_rare(series)
    missing, values = int(series.isna().sum()), _summary(series, typed.kind)
    return series, InferredColumn(raw.name, typed.kind, missing, values, "; ".join(typed.notes), left_out)


def _with_missing(raw: RawColumn, overrides: ColumnOverrides) -> list[Any]:
    """Return the values with None where missing."""
    if raw.declared == "any":
        texts = MISSING | overrides.missing
    elif raw.declared == "text":
        texts = frozenset({""}) | overrides.missing
    else:
        return [None if value is None or value != value else value for value in raw.values]
    return [None if value in texts else value for value in raw.values]


def _typed_values(raw: RawColumn, distinct: Any, codes: Any, overrides: ColumnOverrides) -> _TypedValues:
    if raw.declared == "other":
        return _TypedValues(np.full(len(codes), np.nan), "other", [f"columns of type {raw.type} are not supported"])
    if raw.declared == "boolean":
        return _levels([str(value) for value in distinct], codes)
    if raw.declared in ("number", "none"):
        typed = _TypedValues(_expand(np.array([float(value) for value in distinct]), codes), "numeric")
        return _numbers_as_levels(typed) if raw.name in overrides.nominal else _finite(typed)
    if raw.declared == "duration":
        seconds = np.array([value.total_seconds() for value in distinct])
        return _TypedValues(_expand(seconds, codes), "numeric", ["in seconds"])
    if raw.declared == "date":
        return _TypedValues(_times(distinct, codes), "date")
    return _typed_text(raw, distinct, codes, overrides)


def _typed_text(raw: RawColumn, distinct: list[str], codes: Any, overrides: ColumnOverrides) -> _TypedValues:
    if raw.name not in overrides.nominal:
        if raw.declared == "any" or raw.name in overrides.numeric:
            typed = _numbers(raw.name, distinct, codes, overrides)
            if typed is not None:
                return typed
        dates = parse_dates(distinct, overrides.day_first)
        if dates is not None:
            times, note = dates
            return _TypedValues(_expand(times, codes), "date", [note] if note else [])
    return _levels(distinct, codes)


def _numbers(name: str, distinct: list[str], codes: Any, overrides: ColumnOverrides) -> _TypedValues | None:
    """Return text as numbers, or as levels if they are codes with leading zeros; None if it is not numeric."""
    required = name in overrides.numeric
    wrong = next((text for text in distinct if not _NUMBER.fullmatch(text)), None)
    if wrong is None:
        if not required and any(_PADDED.fullmatch(text) for text in distinct) and all(map(str.isdigit, distinct)):
            typed = _levels(distinct, codes)
            typed.notes.append("codes with leading zeros")
            return typed
        return _finite(_TypedValues(_expand(np.array([float(text) for text in distinct]), codes), "numeric"))
    if overrides.decimal_comma and all(_COMMA_NUMBER.fullmatch(text) for text in distinct):
        values = np.array([float(text.replace(",", ".")) for text in distinct])
        return _TypedValues(_expand(values, codes), "numeric", ["decimal commas"])
    if required:
        raise InputError(
            f"Column {name!r} holds {wrong!r}, which is not a number "
            f"({overrides.numeric_reason or f'--numeric {name}'}). Add --na {wrong!r} if it means missing."
        )
    return None


def _finite(typed: _TypedValues) -> _TypedValues:
    """Replace infinite numbers by missing values; keep integers as integers."""
    infinite = int(np.isinf(typed.values).sum())
    if infinite:
        typed.values = np.where(np.isinf(typed.values), np.nan, typed.values)
        typed.notes.append(f"{infinite} infinite values read as missing")
    values = typed.values
    whole = len(values) and not np.isnan(values).any() and (values == np.round(values)).all()
    if whole and np.abs(values).max() < 2**53:
        typed.values = values.astype(np.int64)
    return typed


def _numbers_as_levels(typed: _TypedValues) -> _TypedValues:
    import pandas as pd

    codes, distinct = pd.factorize(np.asarray(typed.values, dtype=np.float64))  # NaN has code -1
    return _levels([format_number(value) for value in distinct], codes)


def _levels(distinct: list[str], codes: Any) -> _TypedValues:
    import pandas as pd

    order = sorted(distinct, key=_level_order)
    place = {level: rank for rank, level in enumerate(order)}
    new_codes = np.array([*(place[level] for level in distinct), -1])
    return _TypedValues(pd.Categorical.from_codes(new_codes[codes], pd.Index(order, dtype=object)), "nominal")


def _level_order(level: str) -> tuple[float, str]:
    """Sort levels that are numbers by their value, before other levels."""
    return (float(level), level) if re.fullmatch(r"-?\d+(\.\d+)?", level) else (math.inf, level)


def _expand(distinct: Any, codes: Any) -> Any:
    """Return the value of each row from the distinct values; code -1 is missing."""
    missing = np.datetime64("NaT", "us") if distinct.dtype.kind == "M" else np.nan
    return np.append(distinct, np.array([missing], dtype=distinct.dtype if distinct.dtype.kind == "M" else float))[
        codes
    ]


def _times(distinct: Any, codes: Any) -> Any:
    import pandas as pd

    index = pd.to_datetime(pd.Series(list(distinct), dtype=object), utc=True).dt.tz_localize(None)
    return _expand(index.to_numpy().astype("datetime64[us]"), codes)


def _reason_to_leave_out(series: Any, typed: _TypedValues, row_numbers: Sequence[int]) -> str:
    """Return why a column is useless for a model; "" if it may be useful."""
    known = series.dropna()
    distinct = known.nunique()
    if typed.kind == "other":
        return typed.notes[0]
    if not distinct:
        return "all values missing"
    if distinct == 1:
        return "constant" if len(known) == len(series) else ""
    if typed.kind == "nominal" and len(known) >= _MIN_ROWS and distinct >= _IDENTIFIER_SHARE * len(known):
        return f"text with {distinct} distinct values in {len(known)} rows: names or identifiers"
    is_long = series.dtype.kind == "i" and len(series) >= _MIN_ROWS
    if is_long and len(set((series - np.array(row_numbers)).tolist())) == 1:
        return "row number"
    return ""


def _merge_rare_levels(series: Any, typed: _TypedValues) -> Any:
    """Merge all levels but the most frequent ones."""
    if len(series.cat.categories) <= MOST_LEVELS:
        return series
    frequent = set(series.value_counts(sort=True).index[: MOST_LEVELS - 1]) - {OTHER}
    n = len(series.cat.categories) - len(frequent)
    typed.notes.append(f"{n} rare levels merged into {OTHER!r}")
    return merge_levels(series, tuple(level for level in series.cat.categories if level in frequent))


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
    if kind == "date":
        return f"{_date(low)} to {_date(high)}"
    return f"{low:.6g} to {high:.6g}"


def _date(time: Any) -> str:
    """Format a time, as a date if it is midnight."""
    return str(time).removesuffix(" 00:00:00")
