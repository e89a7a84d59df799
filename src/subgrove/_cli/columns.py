"""Columns of a file: as texts, and as typed values of an inferred kind (numeric, nominal or date).

Decisions depend on the distinct values only, so they are cheap and the same for every format. Decisions that a user may
want to override are stated in `InferredColumn.note` or `InferredColumn.left_out`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subgrove._cli.numeric_text import NUMERIC_SHARE, NumericText, odd_cells
from subgrove._cli.options import DataOptions
from subgrove._cli.terminal import quoted
from subgrove._core.text import count_of, first_of, percent
from subgrove._data.columns import OTHER
from subgrove.exceptions import InputError, SubgroveError

_ERRORS = {"#N/A", "#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!"}  # of spreadsheets
MISSING = {"", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?", "<NA>", "NaT"} | _ERRORS
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
    r"(?i:rownames?|index|(.*[^a-z])?(id|nr|no|number|key|uuid|phone|tel)s?)|.*[a-z](ID|Id|Nr|No|Number|Key)"
)
_DENSE = 1.2  # range of identifiers, as a multiple of the number of rows
_YEARS = (1500, 2100)  # numbers that are not taken for identifiers
_MORE_DATES = (  # that pandas does not guess
    *("%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d %b %y", "%b %Y", "%B %Y", "%b %y", "%m/%Y"),
    *("%m/%d/%Y %I:%M %p", "%d/%m/%Y %I:%M %p"),
)
_KINDS = {"O": "nominal", "M": "date"}  # by kind of dtype; else numeric

SelectColumns = Callable[[Sequence[str]], Sequence[str]]  # from the column names of a file to those that are read
Typed = tuple[Any, list[str], str | None]  # values, notes, and the decimal separator or the date format


@dataclass(frozen=True)
class RawTable:
    """Rows of a file.

    Attributes
    ----------
    rows : pandas DataFrame
        Texts. The index has the positions of the rows in the file, from 0.
    total : int
        Rows of the file.
    notes : tuple of str
    delimiter : str
    """

    rows: Any
    total: int
    notes: tuple[str, ...] = ()
    delimiter: str = ","


@dataclass(frozen=True)
class InferredColumn:
    """Kind and summary of a column.

    `left_out` is the reason why it is not used, "" if it is used. `format` says how texts are read: the decimal
    separator of numbers, the format of dates, or the levels.
    """

    name: str
    kind: str
    n_missing: int
    values: str
    note: str = ""
    left_out: str = ""
    format: Any = None


@dataclass(frozen=True)
class KnownColumns:
    """What is known about columns before they are read, besides the options.

    Attributes
    ----------
    required : mapping
        Columns that must be in the file, are kept whatever they hold, and whose rare levels are not merged; with the
        reason.
    like : mapping
        Columns of other rows, whose kinds and formats these have, too. Their levels come first, and other spellings of
        them are merged into them.
    keep_all : bool
        Whether all columns and levels are kept as they are, for a fitted model that was trained on them.
    """

    required: Mapping[str, str] = field(default_factory=dict)
    like: Mapping[str, InferredColumn] = field(default_factory=dict)
    keep_all: bool = False


def require(holds: object, message: str, error: type[SubgroveError] = InputError) -> None:
    """Raise an error, about a file by default, unless a condition holds."""
    if not holds:
        raise error(message)


def infer_columns(raw: RawTable, options: DataOptions, known: KnownColumns) -> list[tuple[Any, InferredColumn]]:
    """Return pandas columns of a definite kind, and their descriptions."""
    texts = raw.rows.mask(raw.rows.isin({*MISSING, *options.na}))
    numbers = {name: NumericText(column.value_counts(sort=False).to_dict()) for name, column in texts.items()}
    clear = {one.decimals[0] for one in numbers.values() if len(one.decimals) == 1 and one.share >= NUMERIC_SHARE}
    usual = "," if clear == {","} or (not clear and raw.delimiter == ";") else "."
    typed = [_typed(column, numbers[name], usual, options, known) for name, column in texts.items()]
    return [_describe(column, raw.total, options, known) for column in typed]


def _typed(texts: Any, numbers: NumericText, decimal: str, options: DataOptions, known: KnownColumns) -> Typed:
    """Return text as numbers, dates or levels."""
    name, share, odd = texts.name, numbers.share, quoted(numbers.odd, 3, 24)
    like, reason = known.like.get(name), known.required.get(name, f"--numeric {name}")
    kind = like.kind if like else "nominal" if name in options.nominal else "numeric" if name in options.numeric else ""
    form = like.format if like else None
    if kind == "nominal" or not numbers.counts:
        return _levels(texts, (kind == "nominal" and form) or (), known.keep_all)
    if kind != "numeric" and (dates := _dates(texts, numbers, form, options.day_first)):
        return dates
    cells = f"{share:.0%} of its cells are numbers; not a number: {odd}. Mark cells without a value with --na"
    require(kind != "date", f"Column {name!r} does not hold dates ({reason}), but {next(iter(numbers.counts))!r}.")
    require(not kind or share >= _MIN_SHARE, f"Column {name!r} is not numeric ({reason}): {cells}.")
    if kind or (share >= NUMERIC_SHARE and not numbers.are_codes):
        found, notes, decimal = numbers.read(options.decimal, form or decimal)
        values = texts.map(found).astype(float)
        is_whole = (values % 1 == 0).all() and values.abs().max() < _EXACT  # not if one is missing
        return values.astype(np.int64) if is_whole else values, notes, decimal
    values, notes, _ = _levels(texts, (), known.keep_all)
    because = "leading zeros" if numbers.are_codes else odd
    note = f"{share:.0%} numbers, read as levels because of {because} (override with --numeric {name!r})"
    return values, [note, *notes] if share >= _MIN_SHARE else notes, None


def _dates(texts: Any, numbers: NumericText, known: str | None, day_first: bool | None) -> Typed | None:
    """Return times in microseconds, in UTC where a zone is given; None if fewer than 90 % of the cells are dates."""
    import pandas as pd

    counts = pd.Series(numbers.counts)
    plain = counts.index.to_series()
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
    notes += ["times in UTC"] if plain.str.contains(r":\d\d.*(?:Z|[+-]\d\d:?\d\d)$").any() else []
    notes += odd_cells(counts[found.isna()].to_dict(), "date")
    return texts.map(found).astype("datetime64[us]"), notes, form


def _date_formats(texts: Any, day_first: bool | None) -> list[str]:
    """Return the formats of dates that some of the first texts may have, the preferred one first."""
    from pandas.tseries.api import guess_datetime_format

    first = texts.iloc[:: max(1, len(texts) // 5)].str[:40].tolist()  # no date is longer
    with warnings.catch_warnings(action="ignore"):  # of pandas, on texts that are not dates
        guessed = [guess_datetime_format(text, dayfirst=order) for order in (False, True) for text in first]
    forms = dict.fromkeys("ISO8601" if form.startswith("%Y-%m-%d") else form for form in guessed if form)
    excluded = {None: (), True: ("%m/%d", "%m-%d"), False: ("%d/%m", "%d-%m")}[day_first]
    return [form for form in (*forms, *_MORE_DATES) if not form.startswith((*excluded, "%m.%d"))]


def _levels(texts: Any, levels: Sequence[str], keep_all: bool) -> Typed:
    """Return text as levels; spellings are merged into these levels of other rows, else into the most frequent one."""
    import pandas as pd

    counts, spelling = texts.value_counts(), str if keep_all else _spelling
    ranked = [*levels, *sorted(counts.index, key=lambda text: (-counts[text], text))]
    first = {spelling(text): text for text in reversed(ranked)}
    new = {text: first[spelling(text)] for text in counts.index}
    merged = [f"{text!r} is {kept!r}" for text, kept in new.items() if text != kept]
    if OTHER in levels:
        new = {text: kept if kept in levels else OTHER for text, kept in new.items()}
    others = sorted({*new.values()} - {*levels}, key=_level_order)
    values = texts.map(new).astype(pd.CategoricalDtype(pd.Index([*levels, *others], dtype=object)))
    return values, [f"spellings merged: {first_of(merged, 3)}"] if merged else [], None


def _spelling(text: str) -> str:
    """Return text without differences in case and spaces; single letters are different in another case."""
    key = " ".join(text.split())
    return key if len(key) == 1 else key.casefold()


def _level_order(level: str) -> tuple[float, str]:
    """Sort levels that are numbers by their value, before other levels."""
    return (float(level), level) if re.fullmatch(r"-?\d+(\.\d+)?", level) else (np.inf, level)


def _describe(typed: Typed, total: int, options: DataOptions, known: KnownColumns) -> tuple[Any, InferredColumn]:
    """Return the column that is used, with rare levels merged, and its description."""
    values, notes, form = typed
    name, kind = str(values.name), _KINDS.get(values.dtype.kind, "numeric")
    keep_levels = known.keep_all or name in known.required
    keep = keep_levels or name in {*options.columns, *options.nominal, *options.numeric}
    left_out = "" if keep else _reason_to_leave_out(values, total)
    if kind == "nominal" and not (left_out or keep_levels):
        values, merged = _merge_rare_levels(values)
        notes, share = [*notes, *merged], float((values == OTHER).mean())
        if share > _MAX_OTHER_SHARE and not keep:
            left_out = f"{RARE_VALUES}: {percent(share)} of the rows would be {OTHER!r}"
    n_missing, levels = int(values.isna().sum()), tuple(values.cat.categories) if kind == "nominal" else ()
    summary, note = _summary(values, levels), "; ".join(notes)
    return values, InferredColumn(name, kind, n_missing, summary, note, left_out, levels or form)


def _reason_to_leave_out(values: Any, total: int) -> str:
    """Return why a column is useless for a model; "" if it may be useful."""
    known, name, kind = values.dropna(), str(values.name), values.dtype.kind
    distinct = known.nunique()
    is_unique = len(known) >= _MIN_ROWS and distinct >= _IDENTIFIER_SHARE * len(known)
    is_key = kind == "i" and is_unique and distinct == len(known) and _identifies_rows(known, total)
    reasons = {
        "all values missing": not distinct,
        "constant" if kind != "f" else "constant to 15 digits": distinct == 1 and len(known) == len(values),
        "numbers in a first column without a name: row numbers": kind == "i" and _UNNAMED.fullmatch(name),
        f"text with {distinct} distinct values in {len(known)} rows: names or identifiers": kind == "O" and is_unique,
        f"identifier, a different integer in each row (keep it with --numeric {name!r})": is_key,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _identifies_rows(values: Any, total: int) -> bool:
    """Whether integers that are all different are row numbers or keys, rather than years or measurements."""
    low, high = values.min(), values.max()
    is_dense = high - low <= _DENSE * total and not _YEARS[0] <= low <= high <= _YEARS[1]
    return bool(is_dense or _IDENTIFIER.fullmatch(str(values.name)))


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


def _summary(values: Any, levels: Sequence[str]) -> str:
    """Return the first levels, or the range."""
    if levels:
        return f"{count_of(len(levels), 'level')}: {first_of([level[:24] for level in levels], 3)}"
    bounds = values.dropna().sort_values().iloc[[0, -1] if values.notna().any() else []]
    shown = "{}" if values.dtype.kind == "M" else "{:.6g}"
    return " to ".join(shown.format(one).removesuffix(" 00:00:00") for one in bounds)
