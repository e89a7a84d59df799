"""The data section of a report: numbers of rows, and each column in a few words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from subgrove._core.text import count_of, listed, quote
from subgrove._data.columns import number_text
from subgrove._data.fingerprint import fingerprint
from subgrove._data.table import TypedColumn
from subgrove._report.inputs import ReportInputs
from subgrove._report.numbers import tidy
from subgrove._report.summary import ColumnSummary, DataSummary
from subgrove.exceptions import ParameterError

_LEVELS = 6  # that are named


def data_summary(inputs: ReportInputs, notes: Mapping[str, str]) -> DataSummary:
    """Return the rows and their columns; `notes` maps names of columns to notes on them."""
    unknown = [name for name in notes if name not in inputs.test.table.names]
    if unknown:
        raise ParameterError(
            f"labels['columns'] has {quote(unknown)}, but the columns are {quote(inputs.test.table.names)}. "
            "Its keys must be names of columns."
        )
    columns = tuple(_column(inputs.test.table.series(name), notes.get(name, "")) for name in inputs.test.table.names)
    return DataSummary(inputs.train.n, inputs.test.n, columns, _sentences(inputs, columns))


def _column(series: TypedColumn, note: str) -> ColumnSummary:
    missing = int(series.missing.sum())
    kind = "date" if series.info.is_date else "duration" if series.info.is_duration else series.info.kind
    return ColumnSummary(series.info.name, kind, missing, _values(series), note)


def _values(series: TypedColumn) -> str:
    """Return the range of numbers, or the levels."""
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


def _sentences(inputs: ReportInputs, columns: tuple[ColumnSummary, ...]) -> tuple[str, ...]:
    sentences = [f"The model was trained on {count_of(inputs.train.n, 'row')} and is explained on {_tested(inputs)}."]
    sentences += [
        f"The {name} rows are a random sample of {pair.n_total:,} rows."
        for name, pair in (("training", inputs.train), ("test", inputs.test))
        if pair.n_total is not None and pair.n < pair.n_total
    ]
    kinds = [(sum(one.kind == kind for one in columns), kind) for kind in ("numeric", "ordered", "nominal", "date")]
    kinds_present = [f"{n} {kind}" for n, kind in kinds if n]
    sentences.append(
        f"There {'is' if len(columns) == 1 else 'are'} {count_of(len(columns), 'column')}: {listed(kinds_present)}."
    )
    missing = [one.name for one in columns if one.n_missing]
    if missing:
        verb = "has" if len(missing) == 1 else "have"
        sentences.append(tidy(f"{listed(missing)} {verb} missing values in test rows; they are resampled like values."))
    constant = [name for name in inputs.test.table.names if _constant(inputs.train.table.series(name))]
    if constant:
        sentences.append(
            tidy(f"{listed(constant)} {'is' if len(constant) == 1 else 'are'} constant in the training rows.")
        )
    return tuple(sentences)


def _tested(inputs: ReportInputs) -> str:
    if fingerprint(inputs.train.table) == fingerprint(inputs.test.table):
        return "the same rows, so its performance is overstated"
    return f"{count_of(inputs.test.n, 'other row')}"


def _constant(series: TypedColumn) -> bool:
    known = series.values[~series.missing]
    return len(known) == 0 or bool((known == known[0]).all())
