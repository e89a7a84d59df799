"""Dates in text: ISO 8601 and the common ways to write a day, told from the distinct values of a column."""

from __future__ import annotations

import re
import warnings
from typing import Any

_TIME = r"(?P<time>[ T]\d{1,2}:\d{2}(?P<seconds>:\d{2}(?P<part>\.\d{1,9})?)?)?"
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?(?P<zone>Z|[+-]\d{2}:?\d{2})?)?")
_DAYS = (
    # what a cell looks like, how Python's strptime writes it, what a note says; two of a kind are told apart by values
    (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d", ""),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y", "day.month.year"),
    (r"\d{1,2}[ -][A-Za-z]{3}[ -]\d{4}", "%d-%b-%Y", ""),
)
_SLASHES = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-]\d{4}" + _TIME)
_ORDERS = {True: ("%d/%m/%Y", "day/month/year"), False: ("%m/%d/%Y", "month/day/year")}


def read_dates(distinct: list[str], day_first: bool | None) -> tuple[Any, str] | None:
    """Moments (in microseconds, of UTC where a zone is given) and a note; None if one of the texts is no date."""
    if not distinct:
        return None
    iso = [_ISO.fullmatch(text) for text in distinct]
    if all(iso):
        zoned = [bool(found and found["zone"]) for found in iso]
        note = "times in UTC" if any(zoned) else ""
        moments = _parsed(distinct, "ISO8601", utc=True)
        return None if moments is None else (moments, note)
    for look, written, note in _DAYS:
        found = [re.fullmatch(look + _TIME, text) for text in distinct]
        if all(found):
            texts = [re.sub(r"(?<=\d) (?=[A-Za-z])|(?<=[A-Za-z]) (?=\d)", "-", text) for text in distinct]
            moments = _parsed(texts, written + _time_format(found))
            return None if moments is None else (moments, note)
    return _with_slashes(distinct, day_first)


def _with_slashes(distinct: list[str], day_first: bool | None) -> tuple[Any, str] | None:
    """Days written 3/4/2024: which number is the month is told by numbers above 12, or by the user."""
    found = [_SLASHES.fullmatch(text) for text in distinct]
    if not all(found):
        return None
    firsts, seconds = ([int(each[place]) for each in found if each] for place in (1, 2))
    fits = {True: max(seconds) <= 12, False: max(firsts) <= 12}
    order = day_first if day_first is not None else not fits[False]
    if not fits[order]:
        return None
    written, note = _ORDERS[order]
    if day_first is None and all(fits.values()):
        note += ", as far as one can tell (--day-first for the other order)"
    texts = [text[:10].replace("-", "/") + text[10:] for text in distinct]
    moments = _parsed(texts, written + _time_format(found))
    return None if moments is None else (moments, note)


def _time_format(found: list[re.Match[str] | None]) -> str:
    """The format of the time behind the day, if all have the same; else one that no text fits."""
    forms = set()
    for each in found:
        if each is None or not each["time"]:
            forms.add("")
        else:
            part = "" if not each["seconds"] else ":%S.%f" if each["part"] else ":%S"
            forms.add(each["time"][0] + "%H:%M" + part)
    return forms.pop() if len(forms) == 1 else "%%"


def _parsed(texts: list[str], written: str, utc: bool = False) -> Any:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever pandas has to say, a text that is no date is a level
        try:
            index = pd.to_datetime(pd.Index(texts, dtype=object), format=written, utc=utc)
            naive = index.tz_localize(None) if index.tz is not None else index
            return naive.to_numpy().astype("datetime64[us]")
        except (ValueError, TypeError, OverflowError):
            return None
