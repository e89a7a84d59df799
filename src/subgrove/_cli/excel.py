"""Read a sheet of an Excel workbook: it is written as CSV to a temporary file, which is read like any other."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from subgrove._cli.columns import RawTable, SelectColumns
from subgrove._cli.csv_records import read_csv
from subgrove._cli.options import DataOptions
from subgrove._cli.terminal import quoted
from subgrove._core.files import TemporaryFolder
from subgrove.exceptions import InputError, ParameterError, SubgroveError

_N_FIRST = 200  # rows that the number of columns is taken from
_MOST_ROWS = 1 << 20  # of a sheet of Excel


def read_excel(path: Path, select: SelectColumns, options: DataOptions) -> RawTable:
    """Read the selected columns of a sample of the rows of a sheet; line numbers in errors are rows of the sheet."""
    if not find_spec("openpyxl"):
        raise InputError(f"{path} is an Excel workbook, which needs openpyxl. Run: pip install 'subgrove[xlsx]'")
    import openpyxl

    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # of the zip archive, its XML or its content
        raise InputError(f"{path} is damaged, or not an Excel workbook that can be read: {error}") from error
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    tables = [name for name, sheet in sheets.items() if sheet.sheet_state == "visible" and sheet.max_column != 1]
    name = options.sheet or next(iter((*tables, *sheets)), "")
    if name not in sheets:
        raise ParameterError(f"--sheet: {path} has no sheet {name!r}. Its sheets are {quoted(sheets)}.")
    with TemporaryFolder() as folder:
        copy = folder / path.name
        try:
            with copy.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(_rows(sheets[name]))
            raw = read_csv(copy, False, select, replace(options, encoding="utf-8", delimiter=","))
        except SubgroveError as error:
            raise type(error)(str(error).replace(str(copy), str(path))) from error
        except (
            ValueError,
            KeyError,
            IndexError,
            SyntaxError,
            BadZipFile,
            zlib.error,
        ) as error:  # in the XML of the sheet
            raise InputError(f"{path} is damaged in sheet {name!r}: {error}. Save it again.") from error
        finally:
            book.close()
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
