"""The rows and columns of a report, in a few words each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from subgrove._core.text import quote
from subgrove._data.columns import number_text
from subgrove._data.fingerprint import fingerprint
from subgrove._data.table import TypedColumn
from subgrove._report.inputs import Asked
from subgrove._report.numbers import counted, listed, tidy
from subgrove._report.summary import ColumnSummary, DataSummary
from subgrove.exceptions import ParameterError

_LEVELS = 6  # that are named


def data_summary(asked: Asked, notes: Mapping[str, str] | None) -> DataSummary:
    """The rows and their columns; `notes` says what was inferred of a column."""
    given = notes or {}
    unknown = [name for name in given if name not in asked.test.table.names]
    if unknown:
        raise ParameterError(
            f"column_notes names {quote(unknown)}, but the columns are {quote(asked.test.table.names)}. "
            f"Its keys are names of columns."
        )
    columns = tuple(_column(asked.test.table.series(name), given.get(name, "")) for name in asked.test.table.names)
    return DataSummary(asked.train.n, asked.test.n, columns, _sentences(asked, columns))


def _column(series: TypedColumn, note: str) -> ColumnSummary:
    missing = int(series.missing.sum())
    kind = "date" if series.info.is_date else "duration" if series.info.is_duration else series.info.kind
    return ColumnSummary(series.info.name, kind, missing, _values(series), note)


def _values(series: TypedColumn) -> str:
    """The range of numbers, or the levels."""
    if series.missing.all():
        return "no value"
    if series.info.kind == "numeric":
        known = series.values[~series.missing]
        low, high = (_value(float(value), series) for value in (known.min(), known.max()))
        return low if low == high else f"{low} to {high}"
    codes = np.asarray(series.values, dtype=np.float64) - (series.info.kind == "ordered")
    present = np.unique(codes[np.isfinite(codes) & (codes >= 0)]).astype(int).tolist()
    names = [series.info.levels[at] for at in present]
    if len(names) <= _LEVELS:
        return tidy(", ".join(names))
    return tidy(f"{len(names)} levels: {', '.join(names[:_LEVELS])}, ...")


def _value(value: float, series: TypedColumn) -> str:
    info = series.info
    exact = info.is_date or info.is_duration or float(value).is_integer()
    return number_text(value, info) if exact else f"{value:.5g}"


def _sentences(asked: Asked, columns: tuple[ColumnSummary, ...]) -> tuple[str, ...]:
    told = [f"The model was trained on {counted(asked.train.n, 'row')} and is explained on {_tested(asked)}."]
    kinds = [(sum(one.kind == kind for one in columns), kind) for kind in ("numeric", "ordered", "nominal", "date")]
    there = [f"{n} {kind}" for n, kind in kinds if n]
    told.append(f"There {'is' if len(columns) == 1 else 'are'} {counted(len(columns), 'column')}: {listed(there)}.")
    gaps = [one.name for one in columns if one.n_missing]
    if gaps:
        verb = "has" if len(gaps) == 1 else "have"
        told.append(tidy(f"{listed(gaps)} {verb} missing values in test rows, which are redrawn like values."))
    still = [name for name in asked.test.table.names if _constant(asked.train.table.series(name))]
    if still:
        told.append(tidy(f"{listed(still)} {'has' if len(still) == 1 else 'have'} one value only in training rows."))
    return tuple(told)


def _tested(asked: Asked) -> str:
    if fingerprint(asked.train.table) == fingerprint(asked.test.table):
        return "the same rows, so that it looks better than it is"
    return f"{counted(asked.test.n, 'other row')}"


def _constant(series: TypedColumn) -> bool:
    known = series.values[~series.missing]
    return len(known) == 0 or bool((known == known[0]).all())
