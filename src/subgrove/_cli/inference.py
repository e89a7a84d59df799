"""What a column of a file holds: numbers, dates or levels; and which columns are of no use to a model.

Everything is decided from the distinct values of a column, so it costs little, and the outcome does not depend on who
read the file. Each decision that a user may want to overrule stands in `Column.note` or `Column.left_out`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subgrove._cli.columns import Raw
from subgrove._cli.dates import read_dates
from subgrove._data.columns import format_number
from subgrove.exceptions import InputError

MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "#N/A", "?", "<NA>", "NaT"})
OTHER = "(other)"
MOST_LEVELS = 100
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"[+-]?\d+(,\d+)?")
_PADDED = re.compile(r"0\d+")
_DISTINCT = 0.9  # share of distinct values from which on text is held for an identifier
_FEW_ROWS = 20
_SCATTERED = 0.5  # share of the rows that may go into `OTHER`


@dataclass(frozen=True)
class Column:
    """What was found out about a column. `left_out` says why it is not used; it is "" if it is."""

    name: str
    kind: str
    n_missing: int
    values: str
    note: str = ""
    left_out: str = ""


@dataclass(frozen=True)
class Wishes:
    """What a user says about columns: kinds by name, more words for missing, how dates are written."""

    nominal: frozenset[str] = frozenset()
    numeric: frozenset[str] = frozenset()
    why_numeric: str = ""  # if the user did not say so
    missing: frozenset[str] = frozenset()
    day_first: bool | None = None
    decimal_comma: bool = False
    keep: frozenset[str] | None = frozenset()  # whatever is in them; None keeps all
    whole: frozenset[str] = frozenset()  # with all their levels
    merge: bool = True


@dataclass
class _Found:
    """Values of a column on their way, with notes."""

    values: Any
    kind: str
    notes: list[str] = field(default_factory=list)


def infer(raw: Raw, wishes: Wishes, numbers: Sequence[int]) -> tuple[Any, Column]:
    """A pandas column of a definite kind, and what was found out about it."""
    import pandas as pd

    codes, distinct = pd.factorize(np.array(_cleaned(raw, wishes), dtype=object))
    found = _typed(
        raw, [str(value) for value in distinct] if raw.declared in ("any", "text") else distinct, codes, wishes
    )
    series = pd.Series(found.values, name=raw.name)
    kept = wishes.keep is None or raw.name in wishes.keep
    useless = "" if kept else _useless(series, found, numbers)
    if not useless and found.kind == "nominal" and wishes.merge and raw.name not in wishes.whole:
        series = _merged(series, found)
        useless = "" if kept else _scattered(series)
    missing = int(series.isna().sum())
    return series, Column(raw.name, found.kind, missing, _told(series, found.kind), "; ".join(found.notes), useless)


def _cleaned(raw: Raw, wishes: Wishes) -> list[Any]:
    """Values with None where missing."""
    if raw.declared == "any":
        words = MISSING | wishes.missing
    elif raw.declared == "text":
        words = frozenset({""}) | wishes.missing
    else:
        return [None if value is None or value != value else value for value in raw.values]
    return [None if value in words else value for value in raw.values]


def _typed(raw: Raw, distinct: Any, codes: Any, wishes: Wishes) -> _Found:
    if raw.declared == "other":
        return _Found(np.full(len(codes), np.nan), "other", [f"{raw.type} has no use here"])
    if raw.declared == "boolean":
        return _levels([str(value) for value in distinct], codes)
    if raw.declared in ("number", "none"):
        found = _Found(_spread(np.array([float(value) for value in distinct]), codes), "numeric")
        return _as_levels(found) if raw.name in wishes.nominal else _finite(found)
    if raw.declared == "duration":
        return _Found(
            _spread(np.array([value.total_seconds() for value in distinct]), codes), "numeric", ["in seconds"]
        )
    if raw.declared == "date":
        return _Found(_moments(distinct, codes), "date")
    return _of_text(raw, distinct, codes, wishes)


def _of_text(raw: Raw, distinct: list[str], codes: Any, wishes: Wishes) -> _Found:
    """Text, of which nothing or only that it is text is declared."""
    asked = raw.name in wishes.numeric
    if raw.name not in wishes.nominal:
        if raw.declared == "any" or asked:
            found = _numbers(raw.name, distinct, codes, wishes, asked)
            if found is not None:
                return found
        dates = read_dates(distinct, wishes.day_first)
        if dates is not None:
            moments, note = dates
            return _Found(_spread(moments, codes), "date", [note] if note else [])
    return _levels(distinct, codes)


def _numbers(name: str, distinct: list[str], codes: Any, wishes: Wishes, asked: bool) -> _Found | None:
    wrong = next((text for text in distinct if not _NUMBER.fullmatch(text)), None)
    if wrong is None:
        if not asked and any(_PADDED.fullmatch(text) for text in distinct) and all(map(str.isdigit, distinct)):
            found = _levels(distinct, codes)
            found.notes.append("codes with leading zeros")
            return found
        return _finite(_Found(_spread(np.array([float(text) for text in distinct]), codes), "numeric"))
    if wishes.decimal_comma and all(_COMMA_NUMBER.fullmatch(text) for text in distinct):
        values = np.array([float(text.replace(",", ".")) for text in distinct])
        return _Found(_spread(values, codes), "numeric", ["decimal commas"])
    if asked:
        raise InputError(
            f"Column {name!r} holds {wrong!r}, which is no number ({wishes.why_numeric or f'--numeric {name}'}). "
            f"Add it with --na if it is missing."
        )
    return None


def _finite(found: _Found) -> _Found:
    """Infinite numbers are no values; whole numbers stay whole."""
    infinite = int(np.isinf(found.values).sum())
    if infinite:
        found.values = np.where(np.isinf(found.values), np.nan, found.values)
        found.notes.append(f"{infinite} infinite values read as missing")
    values = found.values
    if (
        len(values)
        and not np.isnan(values).any()
        and (values == np.round(values)).all()
        and np.abs(values).max() < 2**53
    ):
        found.values = values.astype(np.int64)
    return found


def _as_levels(found: _Found) -> _Found:
    """Numbers that a user calls levels."""
    import pandas as pd

    codes, distinct = pd.factorize(np.asarray(found.values, dtype=np.float64))  # NaN has code -1
    return _levels([format_number(value) for value in distinct], codes)


def _levels(distinct: list[str], codes: Any) -> _Found:
    import pandas as pd

    order = sorted(distinct, key=_key)
    place = {level: rank for rank, level in enumerate(order)}
    of_code = np.array([*(place[level] for level in distinct), -1])
    return _Found(pd.Categorical.from_codes(of_code[codes], pd.Index(order, dtype=object)), "nominal")


def _key(level: str) -> tuple[float, str]:
    """Levels that are numbers are in the order of numbers, and before others."""
    return (float(level), level) if re.fullmatch(r"-?\d+(\.\d+)?", level) else (math.inf, level)


def _spread(values: Any, codes: Any) -> Any:
    """Values of the rows from those of the distinct cells; code -1 is missing."""
    gap = np.datetime64("NaT", "us") if values.dtype.kind == "M" else np.nan
    return np.append(values, np.array([gap], dtype=values.dtype if values.dtype.kind == "M" else float))[codes]


def _moments(distinct: Any, codes: Any) -> Any:
    import pandas as pd

    index = pd.to_datetime(pd.Series(list(distinct), dtype=object), utc=True).dt.tz_localize(None)
    return _spread(index.to_numpy().astype("datetime64[us]"), codes)


def _useless(series: Any, found: _Found, numbers: Sequence[int]) -> str:
    """Why a column is of no use; "" if it may be."""
    known = series.dropna()
    distinct = known.nunique()
    if found.kind == "other":
        return found.notes[0]
    if not distinct:
        return "no value in any row"
    if distinct == 1:
        return "the same value in all rows" if len(known) == len(series) else ""
    if found.kind == "nominal" and len(known) >= _FEW_ROWS and distinct >= _DISTINCT * len(known):
        return f"text with {distinct} distinct values in {len(known)} rows, as names or identifiers have"
    if series.dtype.kind == "i" and len(series) >= _FEW_ROWS and len(set((series - np.array(numbers)).tolist())) == 1:
        return "the number of the row"
    return ""


def _merged(series: Any, found: _Found) -> Any:
    """Levels beyond the most frequent hundred become one."""
    if len(series.cat.categories) <= MOST_LEVELS:
        return series
    frequent = set(series.value_counts(sort=True).index[: MOST_LEVELS - 1]) - {OTHER}
    n = len(series.cat.categories) - len(frequent)
    found.notes.append(f"{n} rare levels are one, {OTHER!r}")
    return merged_like(series, tuple(level for level in series.cat.categories if level in frequent))


def merged_like(series: Any, kept: tuple[str, ...]) -> Any:
    """The column with all but some levels made one."""
    import pandas as pd

    text = series.astype(object)
    joined = text.where(text.isna() | text.isin(list(kept)), OTHER)
    return pd.Series(pd.Categorical(joined, [*kept, OTHER]), index=series.index, name=series.name)


def _scattered(series: Any) -> str:
    share = float((series == OTHER).mean())
    return f"text whose values are rare: {share:.0%} of the rows would be {OTHER!r}" if share > _SCATTERED else ""


def _told(series: Any, kind: str) -> str:
    """Range or levels in a few words."""
    known = series.dropna()
    if not len(known) or kind == "other":
        return ""
    if kind == "nominal":
        levels = [str(level) for level in series.cat.categories]
        shown = ", ".join(level if len(level) <= 24 else level[:23] + "…" for level in levels[:3])
        return f"{len(levels)} levels: {shown}{', …' if len(levels) > 3 else ''}" if len(levels) > 1 else shown
    low, high = known.min(), known.max()
    if kind == "date":
        return f"{date_word(low)} to {date_word(high)}"
    return f"{low:.6g} to {high:.6g}"


def date_word(moment: Any) -> str:
    """A moment as text, without a time where it is midnight."""
    text = str(moment)
    return text.removesuffix(" 00:00:00")
