"""Columns that order or group dependent rows: dates of a time series, identifiers of what was measured repeatedly.

A random split then puts rows of the same person, or of neighbouring days, on both sides, and standard errors of
independent rows are too small. There is a warning only with evidence:

- time: a column of dates, or of numbers named like a year, or evenly spaced and named like a time, in whose order the
  rows are; or any column of dates, or by which rows are sorted, along which the errors of the model are correlated;
- groups: a nominal column, or integers that are named like an identifier or by which the rows are sorted, with many
  levels that recur, whose rows share the values of several other columns, or have similar errors; for identifiers, or
  similar targets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import listed
from subgrove._data.clusters import SAME, column_numbers, intraclass_correlation
from subgrove._data.columns import OTHER
from subgrove._data.table import TypedColumn
from subgrove._report.inputs import LabelledRows

_DATES = frozenset(("date", "datetime", "epoch", "timestamp", "year", "yr"))
_TIMES = frozenset(("period", "time"))  # also names of durations, which are not evenly spaced
_IDENTIFIERS = frozenset(
    ("client", "customer", "household", "id", "ids", "participant", "patient", "person", "pupil", "subject", "user")
)
_MIN_TIMES, _MIN_CHANGES, _RISING, _OCCUPIED = 10, 30, 0.75, 0.6
_MIN_CORRELATION, _Z = 0.1, 4.0
_MIN_GROUPS, _MIN_SIZE = 20, 2.0  # levels, and mean number of rows of each
_MIN_SHARED = 2  # columns that are nearly the same in all rows of a group
_MIN_ROWS, _MOST_ROWS, _MOST_COLUMNS = 50, 5_000, 20  # that are looked at
_TOO_SHORT = "intervals of independent rows are too short"
_SPLIT = f"A random split then overstates the performance of a model, and {_TOO_SHORT}."


def dependence_warnings(train: LabelledRows, test: LabelledRows, residuals: Floats | None) -> list[str]:
    """Return warnings of columns that order or group dependent rows; `residuals` (rows, outputs) are of test rows."""
    if train.n < _MIN_ROWS:
        return []
    found = []
    if time := next(_times(train, test, residuals), None):
        name, reason = time
        remedy = (
            f"{_SPLIT} Split the rows by time: --time {name} in the command; in Python, pass later rows as test, and "
            f"blocks of time such as months as groups=."
        )
        if _is_later(train, test, name):
            remedy = f"Then {_TOO_SHORT}. Pass blocks of time such as months as groups=."
        found.append(f"{reason} {remedy}")
    if group := max(_groups(train, test, residuals), default=None):
        _, name, reason = group
        remedy = (
            f"{_SPLIT} Split the rows by {name}: --group {name} in the command; in Python, pass other groups as test, "
            f"and groups={name!r}."
        )
        if not set(_labels(train.table.series(name))) & set(_labels(test.table.series(name))):
            remedy = f"Then {_TOO_SHORT}. Pass groups={name!r}."
        found.append(f"{reason} {remedy}")
    return found


def _is_later(train: LabelledRows, test: LabelledRows, name: str) -> bool:
    """Return whether all test rows are later than the training rows: by a column, or by an index of dates."""
    if name not in train.table.names:
        first, last = np.asarray(train.X.index), np.asarray(test.X.index)
    elif train.table.series(name).info.is_nominal:
        return False
    else:
        first, last = train.table.series(name).values, test.table.series(name).values
    return first.dtype == last.dtype and bool(np.max(first) <= np.min(last))


def _labels(series: TypedColumn) -> list[Any]:
    distinct = np.unique(series.values[~series.missing]).tolist()
    return [series.info.levels[at] for at in distinct] if series.info.is_nominal else distinct


def _times(train: LabelledRows, test: LabelledRows, residuals: Floats | None) -> Iterator[tuple[str, str]]:
    """Yield columns that order dependent rows, and the reason; dates and years first."""
    index: Any = getattr(train.X, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") == "M":
        yield str(index.name or "date"), "The index of the rows is a time, so that neighbours are probably dependent."
    train = train.some(_file_order(train)[np.linspace(0, train.n - 1, min(train.n, _MOST_ROWS)).astype(np.intp)])
    order = _file_order(train)
    named = sorted(train.table, key=lambda one: (not one.info.is_date, not _words(one) & _DATES))
    for series in named:
        if series.info.is_nominal and _words(series) & _DATES and len(series.info.levels) >= _MIN_TIMES:
            yield series.info.name, f"{series.info.name} seems to be a time but holds text, so its order is not known."
        distinct = len(np.unique(series.values))
        if series.info.is_nominal or distinct < _MIN_TIMES:
            continue
        is_time = series.info.is_date or bool(_words(series) & _DATES)
        is_time = is_time or bool(_words(series) & _TIMES and _evenly_spaced(series.values))
        name, values = series.info.name, series.values[order]
        if is_time and _in_order(values):
            yield name, f"The rows are in the order of {name}, so that neighbours are probably dependent."
        elif residuals is not None and (series.info.is_date or (distinct > train.n / 2 and _is_sorted(values))):
            if _words(series) & _IDENTIFIERS:
                continue
            correlation = _along(test.table.series(name), residuals)
            if correlation > max(_MIN_CORRELATION, _Z / np.sqrt(len(residuals))):
                yield name, f"Errors of the model are correlated along {name} ({correlation:.2f} between neighbours)."


def _groups(train: LabelledRows, test: LabelledRows, residuals: Floats | None) -> Iterator[tuple[float, str, str]]:
    """Yield the strength of evidence, the columns that group dependent rows, and the reason."""
    train = train.some(_file_order(train)[:_MOST_ROWS])
    order = _file_order(train)
    for series in train.table:
        words = _words(series)
        identifier = bool(words & _IDENTIFIERS)
        is_code = not series.info.is_nominal and not np.any(series.values % 1)  # NaN are other than 0
        is_code = is_code and (identifier or (not words & (_DATES | _TIMES) and _is_sorted(series.values[order])))
        if series.info.is_date or not (series.info.is_nominal or is_code):
            continue
        name, rows = series.info.name, _known(series)
        n_groups = len(np.unique(series.values[rows]))
        if n_groups < _MIN_GROUPS or len(rows) < _MIN_SIZE * n_groups:
            continue
        others = [one for one in train.table if one.info.name != name and not one.missing.any()]
        shared = [
            one.info.name for one in others[:_MOST_COLUMNS] if _similarity(series, column_numbers(one), rows)[0] > SAME
        ]
        if len(shared) >= _MIN_SHARED:
            yield len(shared), name, f"Rows of the same {name} have nearly the same {listed(shared[:3])}."
            continue
        tested = test.table.series(name)
        evidence, y = [], np.asarray(train.y)
        if residuals is not None:
            evidence.append(("errors of the model", _similarity(tested, residuals, _known(tested))))
        if identifier and y.dtype.kind in "iufb":
            evidence.append(("values of the target", _similarity(series, y[:, None], rows)))
        for what, (correlation, z) in evidence:
            if correlation > _MIN_CORRELATION and z > _Z:
                yield correlation, name, f"Rows of the same {name} have similar {what} (correlation {correlation:.2f})."


def _file_order(rows: LabelledRows) -> Rows:
    """Return the rows in the order of the file: by a pandas index of integers or dates, which a random split keeps."""
    index: Any = getattr(rows.X, "index", None)
    kind = getattr(getattr(index, "dtype", None), "kind", "")
    if kind and kind in "iuM" and index.is_unique:
        return np.argsort(np.asarray(index), kind="stable")
    return np.arange(rows.n)


def _words(series: TypedColumn) -> set[str]:
    """Return the words of the name of a column, in lower case: patientId, patient_id and "Patient ID" have two."""
    return set(re.findall("[a-z]+", re.sub("([a-z0-9])([A-Z])", r"\1 \2", series.info.name).lower()))


def _known(series: TypedColumn) -> Rows:
    """Return the rows with a known level of their own."""
    known = ~series.missing
    if series.info.is_nominal and OTHER in series.info.levels:
        known &= series.values != series.info.levels.index(OTHER)
    return np.flatnonzero(known)


def _is_sorted(values: Floats) -> bool:
    changes = np.diff(values)
    return bool((changes >= 0).all() or (changes <= 0).all())


def _evenly_spaced(values: Floats) -> bool:
    """Return whether most points of a regular grid occur; some are missing where rows were split at random."""
    steps = np.diff(np.unique(values[~np.isnan(values)]))
    return bool((len(steps) + 1) * steps.min() >= _OCCUPIED * steps.sum())


def _in_order(values: Floats) -> bool:
    """Return whether values rise (or fall) from row to row, or start again, as the years of countries do."""
    changes = np.diff(values[~np.isnan(values)])
    changes = changes[changes != 0]
    rising = float(np.mean(changes > 0)) if len(changes) else 0.5
    return _is_sorted(values) or (len(changes) >= _MIN_CHANGES and max(rising, 1 - rising) >= _RISING)


def _along(series: TypedColumn, residuals: Floats) -> float:
    """Return the correlation of the residuals of neighbours in the order of a column, the largest over outputs."""
    known = np.flatnonzero(~series.missing)
    ordered = residuals[known[np.argsort(series.values[known], kind="stable")]]
    ordered = ordered - ordered.mean(axis=0)
    total = (ordered**2).sum(axis=0)
    products = (ordered[1:] * ordered[:-1]).sum(axis=0)
    return float(np.max(products / np.where(total > 0, total, 1.0), initial=0.0))


def _similarity(series: TypedColumn, values: Floats, rows: Rows) -> tuple[float, float]:
    """Return the correlation of values (rows, parts) of rows of the same level, and its z-score."""
    return intraclass_correlation(series.values[rows], values[rows])
