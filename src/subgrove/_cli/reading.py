"""Read a file into a table of typed columns, with notes on everything that was inferred."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from subgrove._cli.columns import InferredColumn, KnownColumns, infer_columns, merge_levels, spelling
from subgrove._cli.file_formats import read_file
from subgrove._cli.options import DataOptions
from subgrove._cli.terminal import Output, quoted
from subgrove._core.text import count_of, first_of
from subgrove._data.columns import OTHER
from subgrove.exceptions import InputError, ParameterError

MOST_COLUMNS = 500


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
    """Read the table of a file."""
    import pandas as pd

    known = known or KnownColumns()
    raw = read_file(options, partial(_columns_to_read, options, known.required))
    names: dict[str, Any] = {
        option: selected_columns(getattr(options, option), list(raw.rows), f"--{option}")
        for option in ("columns", "nominal", "numeric")
    }
    inferred = infer_columns(raw, replace(options, **names), known)
    columns = tuple(column for _, column in inferred)
    frame = pd.DataFrame({column.name: values for values, column in inferred if not column.left_out})
    if frame.shape[1] < 2:
        reasons = first_of([f"{column.name!r}: {column.left_out}" for column in columns if column.left_out], 3)
        raise InputError(f"{options.data} has {count_of(frame.shape[1], 'usable column')}. Left out: {reasons}.")
    sampling, notes = "", raw.notes
    if len(frame) < raw.total:
        rows = f"{len(frame):,} of the {raw.total:,} rows of {options.data.name}"
        sampling = f"Based on a random sample of {rows} (random state {options.random_state})."
        notes = (*raw.notes, f"{sampling} Use more with --sample-size.")
    return FileTable(options.data, frame.reset_index(drop=True), columns, raw.total, notes, sampling)


def read_like(options: DataOptions, like: FileTable, *, keep_all: bool = False) -> FileTable:
    """Read more rows with the columns of another table; kinds and merged levels are those of that table."""
    kinds = {column.name: column.kind for column in like.columns if column.name in like.frame}
    nominal, numeric = ([name for name in kinds if kinds[name] == kind] for kind in ("nominal", "numeric"))
    required = {name: f"{like.path} has {'numbers there' if name in numeric else 'it'}" for name in kinds}
    known = KnownColumns(required, {column.name: column.format for column in like.columns}, keep_all)
    options = replace(options, columns=list(kinds), drop=[], nominal=nominal, numeric=numeric)
    table = read_table_file(options, known)
    frame = table.frame[list(kinds)].copy()
    for name, kind in kinds.items():
        if (frame[name].dtype.kind == "M") != (kind == "date") and frame[name].notna().any():
            raise InputError(f"Column {name!r} holds dates in only one of {options.data} and {like.path}.")
        if kind == "nominal":
            frame[name] = _with_levels_of(frame[name], like.frame[name], spelling if not keep_all else str)
    return replace(table, frame=frame)


def _with_levels_of(values: Any, known: Any, key: Callable[[str], str]) -> Any:
    """Return a nominal column with the levels of another one first, spelled and merged as there."""
    levels = {key(level): level for level in known.cat.categories}
    values = values.cat.rename_categories({level: levels.get(key(level), level) for level in values.cat.categories})
    if OTHER in known.cat.categories:
        return merge_levels(values, known.cat.categories.drop(OTHER))
    return values.cat.set_categories(known.cat.categories.append(values.cat.categories).unique())


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
    if target is not None and target in selected and target not in X:
        raise ParameterError(f"{option}: {target!r} is the target and cannot be a feature. Leave it out.")
    return list(selected_columns(selected, [str(name) for name in X.columns], option))


def _columns_to_read(options: DataOptions, required: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the columns to read of a file with these column names.

    `required` maps columns that must be in the file to the reason, which is shown if they are not.
    """
    dropped = selected_columns(options.drop, names, "--drop")
    for name, reason in required.items():
        if name not in names:
            raise InputError(f"{options.data} has no column {name!r} ({reason}). {_suggest(name, names)}")
        if name in dropped:
            raise ParameterError(f"--drop: {name!r} cannot be left out ({reason}). Name other columns.")
    selected = {*selected_columns(options.columns, names, "--columns"), *required} if options.columns else {*names}
    columns = [name for name in names if name in selected and name not in dropped]
    if len(columns) > MOST_COLUMNS:
        limit = f"{len(columns):,} columns; at most {MOST_COLUMNS} can be explained at once"
        raise InputError(f"{options.data} has {limit}. Select some, as in --columns {','.join(columns[:2])}")
    if len(columns) < 2:
        raise InputError(f"{count_of(len(columns), 'column')} of {options.data} selected; at least two are needed.")
    return columns


def _suggest(name: str, names: Sequence[str]) -> str:
    """Suggest columns with similar names, else list the columns."""
    close = get_close_matches(name, names, n=3, cutoff=0.6) or [one for one in names if one.lower() == name.lower()]
    return f"Did you mean {' or '.join(map(repr, close))}?" if close else f"The columns are {quoted(names, 8)}."
