"""Recognize the format of a file by its content, and read its rows.

The name of a file does not matter: a Parquet file called .csv is read as Parquet, and an image called .csv is rejected.
Rows of a sheet of Excel become lines of CSV, which are read like those of a text file. Of Parquet, pyarrow and polars
give the same values.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

from subgrove._cli.columns import RawTable, SelectColumns
from subgrove._cli.csv_records import open_bytes, read_csv, read_lines
from subgrove._cli.options import DataOptions
from subgrove._cli.terminal import quoted
from subgrove.exceptions import InputError, ParameterError, SubgroveError

_N_FIRST = 200  # rows that the number of columns is taken from
_MOST_ROWS = 1 << 20  # of a sheet of Excel
_OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive",
    b"\xd0\xcf\x11\xe0": "an Excel workbook of the format before 2007 (.xls), or protected by a password",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"ARROW1": "an Arrow (Feather) file",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF document",
}


def read_file(options: DataOptions, select: SelectColumns) -> RawTable:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `options.sample_size`."""
    path = options.data
    if path.is_dir() or (any(sign in str(path) for sign in "*?[") and not path.exists()):
        return read_parquet(path, select, options)
    check_readable(path)
    if is_zipfile(path) and any(name.startswith("xl/") for name in ZipFile(path).namelist()):
        return read_excel(path, select, options)
    with open_bytes(path) as file:
        head = file.read(16)
    if not head:
        raise InputError(f"{path} is empty. Expected a header line with column names, then lines of values.")
    for mark, what in _OTHER_FORMATS.items():
        if head.startswith(mark):
            raise InputError(f"{path} is {what}. Save it as CSV, Excel (.xlsx) or Parquet, and pass that file.")
    return (read_parquet if head.startswith(b"PAR1") else read_csv)(path, select, options)


def check_readable(path: Path) -> None:
    """Reject a path that is not a readable file."""
    try:
        if not path.exists():
            raise InputError(f"There is no file {path}. Check the name and the folder (current folder: {Path.cwd()}).")
    except OSError as error:
        raise InputError(f"{str(path)[:80]!r} is not a valid path: {error.strerror}.") from error
    if not path.is_file():
        what = "a folder. Pass a file in it" if path.is_dir() else "not a regular file. Pass it to standard input (-)"
        raise InputError(f"{path} is {what}.")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: permission to read denied. Change its permissions, or copy it.")


@contextmanager
def _damage_as_error(path: Path, what: str) -> Iterator[None]:
    """Name the file in errors of the libraries that read it, which have no common class."""
    try:
        yield
    except (SubgroveError, MemoryError):
        raise
    except Exception as error:
        text = str(error).partition("\n")[0].split("': ")[-1].rstrip(".") or type(error).__name__
        raise InputError(f"{path} is damaged, or not {what} that can be read: {text}.") from error


class _ReturnedLine:
    """A file for `csv.writer` that returns each line instead of storing it."""

    def write(self, line: str) -> str:
        return line


def read_excel(path: Path, select: SelectColumns, options: DataOptions) -> RawTable:
    """Read the selected columns of a sample of the rows of a sheet; line numbers in errors are rows of the sheet."""
    if not find_spec("openpyxl"):
        raise InputError(f"{path} is an Excel workbook, which needs openpyxl. Run: pip install 'subgrove[xlsx]'")
    import openpyxl

    with path.open("rb") as file, _damage_as_error(path, "an Excel workbook"):
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        tables = [name for name, sheet in sheets.items() if sheet.sheet_state == "visible" and sheet.max_column != 1]
        name = options.sheet or next(iter((*tables, *sheets)), "")
        if name not in sheets:
            raise ParameterError(f"--sheet: {path} has no sheet {name!r}. Its sheets are {quoted(sheets)}.")
        note = f"Sheet {name!r} of {quoted(sheets)} (--sheet for another)." if len(sheets) > 1 else ""
        lines = map(csv.writer(_ReturnedLine()).writerow, _rows(sheets[name]))
        return read_lines(lines, path, select, replace(options, delimiter=","), note)


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
    """Read the selected columns of a sample of the rows of a file, or of the files of a folder or pattern."""
    import narwhals.stable.v2 as nw
    import pandas as pd

    from subgrove._scale.large_data import read_chunks
    from subgrove._scale.readers import sample_rows

    with _damage_as_error(path, "Parquet"):
        data = read_chunks(_source(path), argument="DATA")
        selected = set(select(data.columns))
        names = [name for name in data.columns if name in selected]
        schema = nw.from_native(data.empty, eager_only=True).schema
        nested = [f"{name!r} ({str(schema[name])[:40]})" for name in names if schema[name].is_nested()]
        if nested:
            raise InputError(
                f"{path} has nested columns: {', '.join(nested[:5])}. A feature must have one value per row; "
                f"leave them out (--drop), or unnest them into separate columns."
            )
        sample = sample_rows(data, names, options.sample_size, options.random_state)
        order = sample.rows.argsort()
        table = nw.from_native(sample.table, eager_only=True)[order.tolist()]
        columns = {name: pd.Series(table[name].to_list(), sample.rows[order], dtype=object) for name in names}
        return RawTable(pd.DataFrame(columns), data.n_rows)


def _source(path: Path) -> Any:
    """Return a source of `LargeData`: of a file, whatever its name is, by the library that is installed."""
    if path.is_file() and find_spec("pyarrow"):
        import pyarrow.dataset as ds

        return ds.dataset(str(path), format="parquet")
    if path.is_file() and find_spec("polars"):
        import polars as pl

        return pl.scan_parquet(path, glob=False)
    return str(path)
