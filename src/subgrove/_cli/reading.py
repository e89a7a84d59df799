"""Read a file into a table of typed columns, with notes on everything that was inferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from subgrove._cli.columns import RawColumn, RawTable, SelectColumns, columns_to_read, selected_columns
from subgrove._cli.csv_records import DELIMITERS, read_records
from subgrove._cli.inference import OTHER, ColumnOverrides, InferredColumn, infer, merge_levels
from subgrove._cli.open_file import open_data_file
from subgrove._cli.options import DataOptions
from subgrove._cli.output import Output, count
from subgrove._cli.parquet import raw_columns, read_parquet
from subgrove.exceptions import InputError


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
    random_state : int
        Seed of the sample of rows, if the file has more rows than the frame.
    """

    path: Path
    frame: Any
    columns: tuple[InferredColumn, ...]
    total: int
    notes: tuple[str, ...]
    random_state: int = 1

    @property
    def sampling(self) -> str:
        """The sentence on the sample of rows; "" if all rows are used."""
        n = len(self.frame)
        if n == self.total:
            return ""
        rows = f"{n:,} of the {self.total:,} rows of {self.path.name}"
        return f"Based on a random sample of {rows} (random state {self.random_state})."


@dataclass(frozen=True)
class _Kinds:
    """Kinds of columns that are known from another table, and where from."""

    nominal: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    source: str = ""


def read_table_file(
    options: DataOptions, *, required: Mapping[str, str] | None = None, keep_all: bool = False
) -> FileTable:
    """Read the table of a file.

    Parameters
    ----------
    options : DataOptions
    required : mapping, optional
        Columns that must be in the file and are kept whatever they hold, with the reason.
    keep_all : bool, default False
        Whether all columns and levels are kept, for a fitted model that was trained on them.
    """
    return _read(options, dict(required or {}), keep_all, _Kinds(tuple(options.nominal), tuple(options.numeric)))


def read_like(options: DataOptions, like: FileTable, *, keep_all: bool = False) -> FileTable:
    """Read more rows with the columns of another table; kinds and merged levels are those of that table."""
    kinds = {column.name: column.kind for column in like.columns}
    used = [str(name) for name in like.frame.columns]
    known = _Kinds(
        nominal=tuple(name for name in used if kinds[name] == "nominal"),
        numeric=tuple(name for name in used if kinds[name] == "numeric"),
        source=f"{like.path} has numbers there",
    )
    required = dict.fromkeys(used, f"{like.path} has it")
    table = _read(replace(options, columns=used, drop=[]), required, keep_all, known)
    frame = table.frame[used].copy()
    for name in used:
        if (frame[name].dtype.kind == "M") != (kinds[name] == "date") and frame[name].notna().any():
            raise InputError(f"Column {name!r} holds dates in only one of {options.data} and {like.path}.")
        if kinds[name] == "nominal":
            frame[name] = _with_levels_of(frame[name], like.frame[name])
    return replace(table, frame=frame)


def print_columns(table: FileTable, output: Output, target: str | None = None) -> None:
    """Print how each column was read."""
    rows = []
    for column in table.columns:
        role = "target" if column.name == target else "left out" if column.left_out else column.kind
        rows.append((column.name, role, column.n_missing or "", column.values, column.left_out or column.note))
    title = f"{len(table.frame):,} rows of {table.path}"
    output.table(title, ("column", "read as", "missing", "values", "note"), rows, right=(2,))


def _read(options: DataOptions, required: dict[str, str], keep_all: bool, kinds: _Kinds) -> FileTable:
    import pandas as pd

    raw = _read_raw(options, partial(columns_to_read, options, required))
    names = [column.name for column in raw.columns]
    kept_columns = frozenset(required) | frozenset(selected_columns(options.columns, names, "--columns"))
    overrides = ColumnOverrides(
        nominal=frozenset(selected_columns(kinds.nominal, names, "--nominal")),
        numeric=frozenset(selected_columns(kinds.numeric, names, "--numeric")),
        numeric_reason=kinds.source,
        missing=frozenset(options.na),
        day_first=options.day_first,
        decimal_comma=raw.decimal_comma,
        keep=frozenset(names) if keep_all else kept_columns,
        keep_levels=frozenset(names if keep_all else required),
    )
    inferred = [infer(column, overrides, raw.row_numbers) for column in raw.columns]
    columns = tuple(column for _, column in inferred)
    frame = pd.DataFrame({column.name: values for values, column in inferred if not column.left_out})
    if frame.shape[1] < 2:
        raise InputError(f"{options.data} has {count(frame.shape[1], 'usable column')}. Left out: {_reasons(columns)}.")
    table = FileTable(options.data, frame, columns, raw.total, raw.notes, options.random_state)
    return (
        replace(table, notes=(*raw.notes, f"{table.sampling} Use more with --sample-size."))
        if table.sampling
        else table
    )


def _read_raw(options: DataOptions, select: SelectColumns) -> RawTable:
    pattern = any(sign in str(options.data) for sign in "*?[") and not options.data.exists()
    if options.data.is_dir() or pattern:
        return _read_folder(options, select)
    file = open_data_file(options.data)
    if file.format == "parquet":
        return read_parquet(file, select, sample_size=options.sample_size, seed=options.random_state)
    records = read_records(
        file, select, sample_size=options.sample_size, seed=options.random_state, delimiter=options.delimiter
    )
    cells = list(zip(*records.rows, strict=True))
    columns = tuple(RawColumn(name, "any", values) for name, values in zip(records.names, cells, strict=True))
    notes = [f"Encoding: {records.encoding.note}."] if records.encoding.note else []
    if records.delimiter != ",":
        notes.append(f"Delimiter: {DELIMITERS.get(records.delimiter, repr(records.delimiter))}.")
    return RawTable(columns, records.row_numbers, records.total, tuple(notes), decimal_comma=records.delimiter != ",")


def _read_folder(options: DataOptions, select: SelectColumns) -> RawTable:
    """Read a sample of the rows of several Parquet files."""
    import pyarrow as pa

    from subgrove._scale.large_data import read_chunks
    from subgrove._scale.readers import sample_rows

    data = read_chunks(str(options.data), argument="DATA")
    sample = sample_rows(data, select(data.columns), options.sample_size, options.random_state)
    table = pa.Table.from_pandas(sample.table, preserve_index=False)
    return RawTable(raw_columns(table), tuple(range(sample.n)), sample.of)


def _reasons(columns: tuple[InferredColumn, ...]) -> str:
    listed = [f"{column.name!r}: {column.left_out}" for column in columns if column.left_out]
    return "; ".join(listed[:3]) + (f"; and {len(listed) - 3} more" if len(listed) > 3 else "")


def _with_levels_of(values: Any, known: Any) -> Any:
    """Return a nominal column with the levels of another one first, merged as there."""
    levels = [str(level) for level in known.cat.categories]
    if OTHER in levels:
        return merge_levels(values, tuple(level for level in levels if level != OTHER))
    new = [level for level in values.cat.categories if level not in levels]
    return values.cat.set_categories([*levels, *new])
