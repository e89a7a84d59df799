"""Parse dates in text: ISO 8601 and common notations, recognized from the distinct values of a column."""

from __future__ import annotations

import re
import warnings
from typing import Any

_TIME = r"(?P<time>[ T]\d{1,2}:\d{2}(?P<seconds>:\d{2}(?P<fraction>\.\d{1,9})?)?)?"
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?(?P<zone>Z|[+-]\d{2}:?\d{2})?)?")
_NOTATIONS = (
    # pattern of a cell, format of Python's strptime, note
    (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d", ""),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y", "day.month.year"),
    (r"\d{1,2}[ -][A-Za-z]{3}[ -]\d{4}", "%d-%b-%Y", ""),
)
_SLASHES = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-]\d{4}" + _TIME)
_ORDERS = {True: ("%d/%m/%Y", "day/month/year"), False: ("%m/%d/%Y", "month/day/year")}


def parse_dates(distinct: list[str], day_first: bool | None) -> tuple[Any, str] | None:
    """Return times in microseconds, in UTC where a zone is given, and a note; None if a text is not a date."""
    if not distinct:
        return None
    matches = [_ISO.fullmatch(text) for text in distinct]
    if all(matches):
        zoned = any(match and match["zone"] for match in matches)
        return _with_note(_parse(distinct, "ISO8601", utc=True), "times in UTC" if zoned else "")
    for pattern, form, note in _NOTATIONS:
        matches = [re.fullmatch(pattern + _TIME, text) for text in distinct]
        if all(matches):
            texts = [re.sub(r"(?<=\d) (?=[A-Za-z])|(?<=[A-Za-z]) (?=\d)", "-", text) for text in distinct]
            return _with_note(_parse(texts, form + _time_format(matches)), note)
    return _parse_slashes(distinct, day_first)


def _parse_slashes(distinct: list[str], day_first: bool | None) -> tuple[Any, str] | None:
    """Parse dates such as 3/4/2024; numbers above 12, or the user, decide which number is the month."""
    matches = [_SLASHES.fullmatch(text) for text in distinct]
    if not all(matches):
        return None
    firsts, seconds = ([int(match[place]) for match in matches if match] for place in (1, 2))
    fits = {True: max(seconds) <= 12, False: max(firsts) <= 12}
    order = day_first if day_first is not None else not fits[False]
    if not fits[order]:
        return None
    form, note = _ORDERS[order]
    if day_first is None and all(fits.values()):
        note += " assumed (--day-first for the other order)"
    texts = [text[:10].replace("-", "/") + text[10:] for text in distinct]
    return _with_note(_parse(texts, form + _time_format(matches)), note)


def _with_note(times: Any, note: str) -> tuple[Any, str] | None:
    return None if times is None else (times, note)


def _time_format(matches: list[re.Match[str] | None]) -> str:
    """Return the format of the time after the day, if all texts share it; else one that matches no text."""
    forms = set()
    for match in matches:
        if match is None or not match["time"]:
            forms.add("")
        else:
            seconds = "" if not match["seconds"] else ":%S.%f" if match["fraction"] else ":%S"
            forms.add(match["time"][0] + "%H:%M" + seconds)
    return forms.pop() if len(forms) == 1 else "%%"


def _parse(texts: list[str], form: str, utc: bool = False) -> Any:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas; a text that is not a date becomes a level
        try:
            index = pd.to_datetime(pd.Index(texts, dtype=object), format=form, utc=utc)
            naive = index.tz_localize(None) if index.tz is not None else index
            return naive.to_numpy().astype("datetime64[us]")
        except (ValueError, TypeError, OverflowError):
            return None
