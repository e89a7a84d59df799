"""Read a file into a table of typed columns, with notes on everything that was inferred.

The format is detected from the content, not from the name: a Parquet file called .csv is read as Parquet, and an image
called .csv is rejected. Rows of a sheet of Excel become lines of CSV, and values of Parquet become text, so that cells
of all formats are read in the same way.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any

from subgrove._cli.columns import InferredColumn, KnownColumns, RawTable, SelectColumns, infer_columns, require
from subgrove._cli.csv_records import read_csv, read_lines
from subgrove._cli.options import DataOptions
from subgrove._cli.terminal import Output, quoted
from subgrove._core.files import check_unpacked_size
from subgrove._core.text import count_of, first_of
from subgrove.exceptions import InputError, ParameterError, SubgroveError

MOST_COLUMNS = 500
_N_FIRST = 200  # rows of a sheet that the number of columns is taken from
_MOST_ROWS = 1 << 20  # of a sheet
Reader = Callable[[DataOptions, SelectColumns], RawTable]


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table read from a file.

    Attributes
    ----------
    path : Path
    frame : pandas DataFrame
        The columns that are used.
    columns : tuple of InferredColumn
        All columns of the file, also those left out.
    total : int
        Rows of the file.
    notes : tuple of str
    sampling : str
        The sentence on the sample of rows; "" if all rows are used.
    """

    path: Path
    frame: Any
    columns: tuple[InferredColumn, ...]
    total: int
    notes: tuple[str, ...]
    sampling: str


def read_table_file(options: DataOptions, known: KnownColumns | None = None) -> FileTable:
    """Read the table of a file.

    Parameters
    ----------
    options : DataOptions
    known : KnownColumns, optional
        What is known about its columns; nothing by default.
    """
    import pandas as pd

    known, path = known or KnownColumns(), options.data
    raw = read_file(options, lambda names: _columns_to_read(options, known.required, names))
    names: dict[str, Any] = {
        option: selected_columns(getattr(options, option), list(raw.rows), f"--{option}")
        for option in ("columns", "nominal", "numeric")
    }
    inferred = infer_columns(raw, replace(options, **names), known)
    columns = tuple(column for _, column in inferred)
    frame = pd.DataFrame({column.name: values for values, column in inferred if not column.left_out})
    left_out = first_of([f"{column.name!r}: {column.left_out}" for column in columns if column.left_out], 3)
    usable = f"{path} has {count_of(frame.shape[1], 'usable column')}; at least two are needed."
    require(frame.shape[1] > 1, f"{usable} Left out: {left_out or 'none'}.")
    rows = f"{len(frame):,} of the {raw.total:,} rows of {path.name} (random state {options.random_state})"
    sampling = f"Based on a random sample of {rows}." if len(frame) < raw.total else ""
    notes = (*raw.notes, f"{sampling} Use more with --sample-size.") if sampling else raw.notes
    return FileTable(path, frame.reset_index(drop=True), columns, raw.total, notes, sampling)


def read_like(options: DataOptions, like: FileTable, *, keep_all: bool = False) -> FileTable:
    """Read more rows with the columns of another table; kinds and merged levels are those of that table."""
    used = {column.name: column for column in like.columns if column.name in like.frame}
    required = {name: f"{like.path} has {column.kind} values there" for name, column in used.items()}
    selected = replace(options, columns=list(used), drop=[], nominal=[], numeric=[])
    table = read_table_file(selected, KnownColumns(required, used, keep_all))
    return replace(table, frame=table.frame[list(used)].copy())


def print_columns(table: FileTable, output: Output, target: str | None = None) -> None:
    """Print how each column was read."""
    rows = []
    for column in table.columns:
        role = "target" if column.name == target else "left out" if column.left_out else column.kind
        note = "; ".join(dict.fromkeys(filter(None, (column.left_out, column.note))))
        rows.append((column.name, role, column.n_missing or "", column.values, note))
    title = f"{len(table.frame):,} rows of {table.path.name}"
    output.table(title, ("column", "read as", "missing", "values", "note"), rows, right=(2,))


def selected_columns(selected: Sequence[str], names: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the columns that an option names, one by one or separated by commas."""
    columns: list[str] = []
    for text in selected:
        columns += [text] if text in names else filter(None, map(str.strip, text.split(",")))
    for name in columns:
        if name not in names:
            raise ParameterError(f"{option}: there is no column {name!r}. {_suggest(name, names)}")
    return tuple(dict.fromkeys(columns))


def feature_names(selected: Sequence[str], X: Any, option: str, target: str | None) -> list[str]:
    """Return the features that an option names; the target must not be among them."""
    is_target = target is not None and target in selected and target not in X
    require(not is_target, f"{option}: {target!r} is the target and cannot be a feature. Leave it out.", ParameterError)
    return list(selected_columns(selected, [str(name) for name in X.columns], option))


def _columns_to_read(options: DataOptions, required: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the columns to read of a file with these column names.

    `required` maps columns that must be in the file to the reason, which is shown if they are not.
    """
    dropped = selected_columns(options.drop, names, "--drop")
    for name, reason in required.items():
        if name not in names:
            raise InputError(f"There is no column {name!r} ({reason}). {_suggest(name, names)}")
        require(name not in dropped, f"--drop: {name!r} cannot be left out ({reason}). Name others.", ParameterError)
    selected = {*selected_columns(options.columns, names, "--columns"), *required} if options.columns else {*names}
    columns = [name for name in names if name in selected and name not in dropped]
    limit = f"There are {len(columns):,} columns; at most {MOST_COLUMNS} can be explained at once"
    require(len(columns) <= MOST_COLUMNS, f"{limit}. Select some with --columns.")
    return columns


def _suggest(name: str, names: Sequence[str]) -> str:
    """Suggest columns with similar names, else list the columns."""
    close = get_close_matches(name, names, n=3, cutoff=0.6) or [one for one in names if one.lower() == name.lower()]
    return f"Did you mean {' or '.join(map(repr, close))}?" if close else f"The columns are {quoted(names, 8)}."


def read_file(options: DataOptions, select: SelectColumns) -> RawTable:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `options.sample_size`."""
    path, reader = options.data, _reader(options.data)
    try:
        return reader(options, select)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:  # libraries that read files have no common class of errors
        is_ours = reader is read_csv and not isinstance(error, EOFError | OSError | zlib.error)
        if is_ours or isinstance(error, SubgroveError | MemoryError):
            raise
        text = str(error).partition("\n")[0].split("': ")[-1].rstrip(".") or type(error).__name__
        raise InputError(f"{path} is damaged, or not of a format that can be read: {text}.") from error


def _reader(path: Path) -> Reader:
    """Return the function that reads the format of a file, a folder or a pattern."""
    if path.is_dir() or (any(sign in str(path) for sign in "*?[") and not path.exists()):
        return read_parquet
    check_readable(path)
    with path.open("rb") as file:
        head = file.read(4)
    old = "an Excel workbook of the format before 2007 (.xls), or protected by a password"
    require(head != b"\xd0\xcf\x11\xe0", f"{path} is {old}. Save it as CSV, Excel (.xlsx) or Parquet.")
    return {b"PAR1": read_parquet, b"PK\x03\x04": read_excel}.get(head, read_csv)


def check_readable(path: Path) -> None:
    """Reject a path that is not a readable file."""
    what = "There is no file" if not path.exists() else "This is not a file, but a folder or a device:"
    require(path.is_file(), f"{what} {path}. Check the name and the folder (current folder: {Path.cwd()}).")
    require(os.access(path, os.R_OK), f"{path}: permission to read denied. Change its permissions, or copy it.")


def read_excel(options: DataOptions, select: SelectColumns) -> RawTable:
    """Read the selected columns of a sample of the rows of a sheet; line numbers in errors are rows of the sheet."""
    require(find_spec("openpyxl"), "An Excel workbook needs openpyxl. Run: pip install 'subgrove[xlsx]'")
    import openpyxl

    check_unpacked_size(options.data)
    with options.data.open("rb") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        tables = [name for name, sheet in sheets.items() if sheet.sheet_state == "visible" and sheet.max_column != 1]
        name = options.sheet or next(iter((*tables, *sheets)), "")
        require(name in sheets, f"--sheet: no sheet {name!r}. The sheets are {quoted(sheets)}.", ParameterError)
        note = f"Sheet {name!r} of {quoted(sheets)} (--sheet for another)." if len(sheets) > 1 else ""
        return read_lines(_lines(sheets[name]), replace(options, delimiter=","), select, note)


def _lines(sheet: Any) -> Iterator[str]:
    """Yield the rows of a sheet as lines of CSV, none shorter than the first ones, which end with a filled column."""
    sheet.reset_dimensions()  # which some programs write wrongly
    rows = sheet.iter_rows(max_row=_MOST_ROWS, values_only=True)
    first = list(islice(rows, _N_FIRST))
    width = max((at for row in first for at, cell in enumerate(row, start=1) if cell is not None), default=0)
    for row in chain((row[:width] for row in first), rows):
        cells = [*map(_text, row), *[""] * (width - len(row))]
        yield ",".join('"{}"'.format(cell.replace('"', '""')) for cell in cells) + "\n"


def _text(value: Any) -> str:
    """Return a value as text; durations in seconds."""
    return "" if value is None else str(value.total_seconds() if isinstance(value, timedelta) else value).strip()


def read_parquet(options: DataOptions, select: SelectColumns) -> RawTable:
    """Read the selected columns of a sample of the rows of a file, or of the files of a folder or pattern."""
    import narwhals.stable.v2 as nw
    import pandas as pd

    from subgrove._scale.large_data import read_chunks
    from subgrove._scale.readers import sample_rows

    path, source = options.data, str(options.data)
    if path.is_file() and find_spec("pyarrow"):  # whatever its name is
        source = import_module("pyarrow.dataset").dataset(source, format="parquet")
    elif path.is_file() and find_spec("polars"):
        source = import_module("polars").scan_parquet(path, glob=False)
    data = read_chunks(source, argument="DATA")
    names = select(data.columns)
    sample = sample_rows(data, names, options.sample_size, options.random_state)
    table = nw.from_native(sample.table, eager_only=True)
    rows = pd.DataFrame(table.rows(), sample.rows, table.columns, dtype=object).sort_index()[names]
    return RawTable(rows.map(_text), data.n_rows)
