"""Columns of a file: as they are stored, and as typed values of an inferred kind (numeric, nominal or date).

Decisions depend on the distinct values only, so they are cheap and the same for every reader. Decisions that a user may
want to override are stated in `InferredColumn.note` or `InferredColumn.left_out`.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subgrove._cli.numeric_text import NUMERIC_SHARE, NumericText, odd_cells
from subgrove._cli.options import DataOptions
from subgrove._cli.terminal import quoted
from subgrove._core.text import count_of, first_of, percent
from subgrove._data.columns import OTHER, format_number
from subgrove.exceptions import InputError, SubgroveError

_ERRORS = {"#N/A", "#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!"}  # of spreadsheets
MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?", "<NA>", "NaT"} | _ERRORS)
RARE_VALUES = "text with rare values"
_EXACT = 2**53  # up to here floats hold all whole numbers
MOST_LEVELS, _MOST_FREQUENT_LEVELS = 100, 250  # the latter if all of them are frequent
_FREQUENT = 10  # rows of a level
_MIN_SHARE = 0.5  # of numbers, for a note, or for --numeric
_IDENTIFIER_SHARE = 0.9  # share of distinct values from which on text is an identifier
_MIN_ROWS = 20  # of the checks for identifiers
_MAX_OTHER_SHARE = 0.5  # of the rows
_UNNAMED = re.compile(r"column_1|Unnamed: 0")
_IDENTIFIER = re.compile(
    r"column_\d+|Unnamed: \d+|(?i:rownames?|index|(.*[^a-z])?(id|nr|no|number|key|uuid|phone|tel)s?)|"
    r".*[a-z](ID|Id|Nr|No|Number|Key)"
)
_DENSE = 1.2  # range of identifiers, as a multiple of the number of rows
_YEARS = (1500, 2100)  # numbers that are not taken for identifiers
_MORE_DATES = (  # that pandas does not guess
    *("%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d %b %y", "%b %Y", "%B %Y", "%b %y", "%m/%Y"),
    *("%m/%d/%Y %I:%M %p", "%d/%m/%Y %I:%M %p"),
)
_KINDS = {"category": "nominal", "datetime64[us]": "date", "object": "other"}  # by dtype
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")  # types of values that pandas infers

SelectColumns = Callable[[Sequence[str]], Sequence[str]]  # from the column names of a file to those that are read
Typed = tuple[Any, list[str], str]  # values, notes, and the decimal separator or the date format


@dataclass(frozen=True)
class RawTable:
    """Rows of a file.

    Attributes
    ----------
    rows : pandas DataFrame
        Texts, or Python values of the types that the file declares. The index has the positions of the rows in the
        file, from 0.
    total : int
        Rows of the file.
    notes : tuple of str
    delimiter : str or None
        The delimiter of text, whose columns have no declared types; None if they do.
    """

    rows: Any
    total: int
    notes: tuple[str, ...] = ()
    delimiter: str | None = None


@dataclass(frozen=True)
class InferredColumn:
    """Kind and summary of a column.

    `left_out` is the reason why it is not used, "" if it is used; `format` its decimal separator or date format.
    """

    name: str
    kind: str
    n_missing: int
    values: str
    note: str = ""
    left_out: str = ""
    format: str = ""


@dataclass(frozen=True)
class KnownColumns:
    """What is known about columns before they are read, besides the options.

    Attributes
    ----------
    required : mapping
        Columns that must be in the file, are kept whatever they hold, and whose rare levels are not merged; with the
        reason.
    formats : mapping
        Decimal separators and date formats of columns.
    levels : mapping
        Levels of nominal columns of other rows: they come first, and other spellings of them are merged into them.
    keep_all : bool
        Whether all columns and levels are kept as they are, for a fitted model that was trained on them.
    """

    required: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    keep_all: bool = False


def require(holds: object, message: str, error: type[SubgroveError] = InputError) -> None:
    """Raise an error, about a file by default, unless a condition holds."""
    if not holds:
        raise error(message)


def infer_columns(raw: RawTable, options: DataOptions, known: KnownColumns) -> list[tuple[Any, InferredColumn]]:
    """Return pandas columns of a definite kind, and their descriptions."""
    from pandas.api.types import infer_dtype

    missing = {*options.na, *(MISSING if raw.delimiter else ("",))}
    types = {name: "string" if raw.delimiter else infer_dtype(values) for name, values in raw.rows.items()}
    texts = raw.rows[[name for name, declared in types.items() if declared == "string"]]
    texts = texts.apply(lambda text: text.str.strip()).mask(lambda texts: texts.isin(missing))
    numbers = {name: NumericText(Counter(text.dropna())) for name, text in texts.items()}
    clear = [one.decimals[0] for one in numbers.values() if len(one.decimals) == 1 and one.share >= NUMERIC_SHARE]
    columns = []
    for name, declared in types.items():
        if declared == "string":
            typed = _typed_text(texts[name], numbers[name], clear, raw, options, known)
        else:
            typed = _typed_values(raw.rows[name], declared, options, known)
        columns.append(_describe(typed, raw, options, known))
    return columns


def _describe(typed: Typed, raw: RawTable, options: DataOptions, known: KnownColumns) -> tuple[Any, InferredColumn]:
    """Return the column that is used, with rare levels merged, and its description."""
    series, notes, form = typed
    name, kind = str(series.name), _KINDS.get(str(series.dtype), "numeric")
    keep_levels = known.keep_all or name in known.required
    keep = keep_levels or name in {*options.columns, *options.nominal, *options.numeric}
    left_out = "" if keep else notes[0] if kind == "other" else _reason_to_leave_out(series, raw)
    if kind == "nominal" and not (left_out or keep_levels):
        series, merged = _merge_rare_levels(series)
        notes, share = [*notes, *merged], float((series == OTHER).mean())
        is_rare = share > _MAX_OTHER_SHARE and not keep
        left_out = f"{RARE_VALUES}: {percent(share)} of the rows would be {OTHER!r}" if is_rare else ""
    missing = int(series.isna().sum())
    return series, InferredColumn(name, kind, missing, _summary(series, kind), "; ".join(notes), left_out, form)


def _typed_values(values: Any, declared: str, options: DataOptions, known: KnownColumns) -> Typed:
    """Return values of a declared type."""
    import pandas as pd

    if declared == "boolean":
        return _levels(values.map(str, na_action="ignore"), known)
    if declared in _NUMBERS and values.name in options.nominal:
        return _levels(values.astype(float).map(format_number, na_action="ignore"), known)
    if declared in _NUMBERS:
        return _numbers(values.astype(float), [])
    if declared == "timedelta":
        return pd.to_timedelta(values).dt.total_seconds(), ["in seconds"], ""
    if declared in ("date", "datetime"):
        return pd.to_datetime(values, utc=True).dt.tz_localize(None).astype("datetime64[us]"), [], ""
    return values.where([False] * len(values)), [f"columns of type {declared} are not supported"], ""


def _typed_text(
    texts: Any, numbers: NumericText, clear: list[str], raw: RawTable, options: DataOptions, known: KnownColumns
) -> Typed:
    """Return text as numbers, dates or levels."""
    name, share, odd = texts.name, numbers.share, quoted(numbers.odd, 3, 24)
    required, form = name in options.numeric, known.formats.get(name, "")
    if name in options.nominal or not numbers.counts:
        return _levels(texts, known)
    reason = known.required.get(name, f"--numeric {name}")
    cells = f"{share:.0%} of its cells are numbers; not a number: {odd}. Mark cells without a value with --na"
    require(not required or share >= _MIN_SHARE, f"Column {name!r} is not numeric ({reason}): {cells}.")
    if not required and (dates := _dates(texts, numbers, form, options.day_first)):
        return dates
    if required or (raw.delimiter and share >= NUMERIC_SHARE and not numbers.are_codes):
        found, notes, decimal = numbers.read(options.decimal, form or clear, raw.delimiter not in (None, ","))
        return _numbers(texts.map(found).astype(float), notes, decimal)
    levels, notes, _ = _levels(texts, known)
    if raw.delimiter and numbers.are_codes:
        notes = ["codes of digits, read as levels", *notes]
    elif share >= _MIN_SHARE:
        because = f" because of {odd}" if odd else ""
        notes = [f"{share:.0%} numbers, read as levels{because} (override with --numeric {name!r})", *notes]
    return levels, notes, ""


def _numbers(values: Any, notes: list[str], decimal: str = "") -> Typed:
    """Return finite numbers, as integers if all are."""
    infinite = np.isinf(values)
    if infinite.any():
        return values.mask(infinite), [*notes, f"{infinite.sum()} infinite values read as missing"], decimal
    whole = len(values) and (values == values.round()).all()  # not if one is NaN
    return values.astype(np.int64) if whole and values.abs().max() < _EXACT else values, notes, decimal


def _dates(texts: Any, numbers: NumericText, known: str, day_first: bool | None) -> Typed | None:
    """Return times in microseconds, in UTC where a zone is given; None if fewer than 90 % of the cells are dates."""
    import pandas as pd

    counts = pd.Series(numbers.counts)
    plain = pd.Series(counts.index, counts.index, dtype=object)
    if numbers.share >= NUMERIC_SHARE and not plain.str.fullmatch(r"(19|20)\d{6}").all():
        return None
    plain = plain.str.replace(r"(?<=\d)[ -](?=[A-Za-z]{3})|(?<=[A-Za-z]{3})[ -](?=\d)", " ", regex=True)
    forms = filter(None, (known, *_date_formats(plain, day_first)))
    times = pd.DataFrame({form: pd.to_datetime(plain, format=form, utc=True, errors="coerce") for form in forms})
    n_cells = times.notna().mul(counts, axis=0).sum()
    form = str(n_cells.idxmax())
    if n_cells[form] < NUMERIC_SHARE * counts.sum():
        return None
    found = times[form].dt.tz_localize(None)
    order = {"%m/%d": "month/day/year", "%d/%m": "day/month/year"}.get(form[:5].replace("-", "/"), "")
    assumed = " assumed (--day-first for the other order)" if (n_cells == n_cells.max()).sum() > 1 else ""
    notes = [order + assumed] if order else []
    notes += ["dates such as 20240131 (--numeric if they are numbers)"] if form == "%Y%m%d" else []
    notes += ["times in UTC"] if plain.str.contains(r":\d\d.*(?:Z|[+-]\d\d:?\d\d)$").any() else []
    notes += odd_cells(counts[found.isna()].to_dict(), "date")
    return texts.map(found).astype("datetime64[us]"), notes, form


def _date_formats(texts: Any, day_first: bool | None) -> list[str]:
    """Return the formats of dates that some of the first texts may have, the preferred one first."""
    from pandas.tseries.api import guess_datetime_format

    first = texts.iloc[:: max(1, len(texts) // 5)].str[:40].tolist()  # no date is longer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, on texts that are not dates
        guessed = [guess_datetime_format(text, dayfirst=order) for order in (False, True) for text in first]
    forms = dict.fromkeys("ISO8601" if form.startswith("%Y-%m-%d") else form for form in guessed if form)
    excluded = {None: (), True: ("%m/%d", "%m-%d"), False: ("%d/%m", "%d-%m")}[day_first]
    return [form for form in (*forms, *_MORE_DATES) if not form.startswith((*excluded, "%m.%d"))]


def _levels(texts: Any, known: KnownColumns) -> Typed:
    """Return text as levels; spellings are merged into that of other rows, else into the most frequent one."""
    import pandas as pd

    levels, spelling = known.levels.get(texts.name, ()), str if known.keep_all else _spelling
    counts = texts.value_counts()
    first: dict[str, str] = {}  # of texts with the same spelling
    for text in (*levels, *sorted(counts.index, key=lambda text: (-counts[text], text))):
        first.setdefault(spelling(text), text)
    new = {text: first[spelling(text)] for text in counts.index}
    merged = [f"{text!r} is {kept!r}" for text, kept in new.items() if text != kept]
    if OTHER in levels:
        new = {text: kept if kept in levels else OTHER for text, kept in new.items()}
    others = sorted({*new.values()} - {*levels}, key=_level_order)
    values = texts.map(new).astype(pd.CategoricalDtype(pd.Index([*levels, *others], dtype=object)))
    return values, [f"spellings merged: {first_of(merged, 3)}"] if merged else [], ""


def _spelling(text: str) -> str:
    """Return text without differences in case and spaces; single letters are different in another case."""
    key = " ".join(text.split())
    return key if len(key) == 1 else key.casefold()


def _level_order(level: str) -> tuple[float, str]:
    """Sort levels that are numbers by their value, before other levels."""
    return (float(level), level) if re.fullmatch(r"-?\d+(\.\d+)?", level) else (np.inf, level)


def _reason_to_leave_out(series: Any, raw: RawTable) -> str:
    """Return why a column is useless for a model; "" if it may be useful."""
    known, name = series.dropna(), str(series.name)
    distinct, kind = known.nunique(), series.dtype.kind
    if not distinct:
        return "all values missing"
    if distinct == 1:
        different = kind == "f" and abs(known.iloc[0]) > _EXACT and raw.rows[name].nunique() > 1
        exact = "large numbers that are equal to 15 digits: subtract a constant, or read them with --nominal"
        return "" if len(known) < len(series) else exact if different else "constant"
    if _UNNAMED.fullmatch(name) and kind == "i" and (series.diff() == 1).mean() > 0.5:
        return "row number"  # of several files, one after the other
    if len(known) < _MIN_ROWS or distinct < _IDENTIFIER_SHARE * len(known) or kind in "fM":
        return ""
    if kind == "O":
        return f"text with {distinct} distinct values in {len(known)} rows: names or identifiers"
    if distinct < len(known) or (_YEARS[0] <= known.min() and known.max() <= _YEARS[1]):
        return ""
    if (known - known.index).nunique() == 1:
        return "row number"
    dense = known.max() - known.min() <= _DENSE * raw.total and known.min() > 1  # ranks start at 1
    reason = f"identifier, a different integer in each row (keep it with --numeric {name!r})"
    return reason if dense or _IDENTIFIER.fullmatch(name) else ""


def _merge_rare_levels(series: Any) -> tuple[Any, list[str]]:
    """Merge all levels but the most frequent ones; return the column and a note."""
    counts = series.value_counts()
    if len(counts) <= MOST_LEVELS or (len(counts) <= _MOST_FREQUENT_LEVELS and counts.min() >= _FREQUENT):
        return series, []
    n_rows = counts.iloc[MOST_LEVELS - 1]
    kept = [level for level in series.cat.categories if counts[level] > n_rows and level != OTHER]  # all of equal ones
    merged = series.cat.set_categories([*kept, OTHER]).where(series.isna() | series.isin(kept), OTHER)
    rare = f"{len(counts) - len(kept)} levels with at most {count_of(n_rows, 'row')}"
    return merged, [f"{rare} merged into {OTHER!r}"]


def _summary(series: Any, kind: str) -> str:
    """Return the range or the first levels."""
    if kind == "nominal":
        levels = [level[:24] for level in series.cat.categories]
        return f"{count_of(len(levels), 'level')}: {first_of(levels, 3)}" if levels else ""
    if series.isna().all():
        return ""
    bounds = series.min(), series.max()
    shown = [str(one).removesuffix(" 00:00:00") if kind == "date" else f"{one:.6g}" for one in bounds]
    return " to ".join(shown)
