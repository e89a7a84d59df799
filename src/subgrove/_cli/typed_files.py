"""Read files that declare the types of values: Excel workbooks by way of CSV, Parquet as plain Python values.

A workbook is written as CSV to a temporary file, which is read like any other. Of Parquet, pyarrow and polars give the
same values.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from subgrove._cli.columns import RawTable, SelectColumns
from subgrove._cli.csv_records import read_csv
from subgrove._cli.options import DataOptions
from subgrove._cli.terminal import quoted
from subgrove._core.files import TemporaryFolder
from subgrove.exceptions import InputError, ParameterError, SubgroveError

_N_FIRST = 200  # rows that the number of columns is taken from
_MOST_ROWS = 1 << 20  # of a sheet of Excel
_DAMAGED = (ValueError, KeyError, IndexError, SyntaxError, BadZipFile, zlib.error)  # in the XML of a sheet


def read_excel(path: Path, select: SelectColumns, options: DataOptions) -> RawTable:
    """Read the selected columns of a sample of the rows of a sheet; line numbers in errors are rows of the sheet."""
    if not find_spec("openpyxl"):
        raise InputError(f"{path} is an Excel workbook, which needs openpyxl. Run: pip install 'subgrove[xlsx]'")
    import openpyxl

    with path.open("rb") as file, TemporaryFolder() as folder:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except Exception as error:  # of the zip archive, its XML or its content
            raise InputError(f"{path} is damaged, or not an Excel workbook that can be read: {error}") from error
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        tables = [name for name, sheet in sheets.items() if sheet.sheet_state == "visible" and sheet.max_column != 1]
        name = options.sheet or next(iter((*tables, *sheets)), "")
        if name not in sheets:
            raise ParameterError(f"--sheet: {path} has no sheet {name!r}. Its sheets are {quoted(sheets)}.")
        copy = folder / path.name
        try:
            with copy.open("w", newline="", encoding="utf-8") as text:
                csv.writer(text).writerows(_rows(sheets[name]))
            raw = read_csv(copy, False, select, replace(options, encoding="utf-8", delimiter=","))
        except SubgroveError as error:
            raise type(error)(str(error).replace(str(copy), str(path))) from error
        except _DAMAGED as error:
            raise InputError(f"{path} is damaged in sheet {name!r}: {error}. Save it again.") from error
    note = f"Sheet {name!r} of {quoted(sheets)} (--sheet for another)."
    return replace(raw, notes=(note, *raw.notes)) if len(sheets) > 1 else raw


def _rows(sheet: Any) -> Iterator[list[Any]]:
    """Yield the rows up to the last cell with a value, those of the first rows being equally long."""
    sheet.reset_dimensions()  # which some programs write wrongly
    rows = map(_without_end, islice(sheet.iter_rows(values_only=True), _MOST_ROWS + 1))
    first = list(islice(rows, _N_FIRST))
    width = max(map(len, first), default=0)
    for number, row in enumerate(chain(first, rows)):
        if number == _MOST_ROWS:
            raise InputError(f"Sheet {sheet.title!r} has a row beyond the {_MOST_ROWS:,} of Excel: it is damaged.")
        yield row + [None] * (width - len(row)) if row else row


def _without_end(row: Any) -> list[Any]:
    cells = [cell.total_seconds() if isinstance(cell, timedelta) else cell for cell in row]
    while cells and cells[-1] is None:
        cells.pop()
    return cells


def read_parquet(path: Path, select: SelectColumns, options: DataOptions) -> RawTable:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `options.sample_size`."""
    if find_spec("pyarrow"):
        import pyarrow.dataset as ds

        return read_sample(lambda: ds.dataset(str(path), format="parquet"), select, options)
    if find_spec("polars"):
        import polars as pl

        return read_sample(lambda: pl.scan_parquet(path, glob=False), select, options)
    raise InputError(f"{path} is Parquet, which needs pyarrow or polars. Run: pip install 'subgrove[pyarrow]'")


def read_sample(source: Callable[[], Any], select: SelectColumns, options: DataOptions) -> RawTable:
    """Read a sample of the rows of a source of `LargeData`, in their order."""
    try:
        return _read_sample(source(), select, options)
    except (SubgroveError, MemoryError):
        raise
    except Exception as error:  # the libraries' errors have no common class
        text = str(error).partition("\n")[0].split(": ")[-1].rstrip(".") or type(error).__name__
        raise InputError(f"{options.data} is damaged, or not Parquet that can be read: {text}.") from error


def _read_sample(source: Any, select: SelectColumns, options: DataOptions) -> RawTable:
    import narwhals.stable.v2 as nw

    from subgrove._scale.large_data import read_chunks
    from subgrove._scale.readers import sample_rows

    data = read_chunks(source, argument="DATA")
    selected = set(select(data.columns))
    names = [name for name in data.columns if name in selected]
    schema = nw.from_native(data.empty, eager_only=True).schema
    nested = [name for name in names if schema[name].is_nested()]
    if nested:
        listed = ", ".join(f"{name!r} ({str(schema[name])[:40]})" for name in nested[:5])
        raise InputError(
            f"{options.data} has nested columns: {listed}. A feature must have one value per row; "
            f"leave them out (--drop {nested[0]!r}), or unnest them into separate columns."
        )
    sample = sample_rows(data, names, options.sample_size, options.random_state)
    order = np.argsort(sample.rows)
    table = nw.from_native(sample.table, eager_only=True)[order.tolist()]
    return RawTable({name: table[name].to_list() for name in names}, sample.rows[order].tolist(), data.n_rows)
