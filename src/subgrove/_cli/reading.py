"""A file in, a table of typed columns out, with all that was inferred on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from subgrove._cli.columns import Raw, RawTable
from subgrove._cli.csv_records import DELIMITERS, read_records
from subgrove._cli.inference import OTHER, Column, Wishes, infer, merged_like
from subgrove._cli.open_file import find_source
from subgrove._cli.parquet import read_parquet
from subgrove.exceptions import InputError, ParameterError

MOST_COLUMNS = 500
LARGE = 1_000_000  # rows of a file from which on a user is told how to ask about all of them


@dataclass(frozen=True)
class Request:
    """Which rows and columns of which file are wanted, in the words of the user.

    `needed` are columns that must be there and are kept whatever is in them, with the reason; `only` are the others to
    use, all if None. `known_model` says that a model is given, which knows itself what to do with its columns: none is
    left out, and no levels are merged.
    """

    path: Path
    most: int = 10_000
    seed: int = 1
    delimiter: str | None = None
    needed: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    nominal: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    why_numeric: str = ""
    missing: tuple[str, ...] = ()
    day_first: bool | None = None
    known_model: bool = False


@dataclass(frozen=True, eq=False)
class Data:
    """A table that was read: `frame` has the columns that are used, `columns` tells of all of them."""

    path: Path
    frame: Any
    columns: tuple[Column, ...]
    total: int
    notes: tuple[str, ...]


def read_data(request: Request) -> Data:
    """The table of a file; a file that is no table is refused."""
    raw = _raw(request)
    return typed(raw, request, (*raw.notes, *_sampled(raw, request)))


def typed(raw: RawTable, request: Request, notes: tuple[str, ...]) -> Data:
    """Rows as a table of columns of definite kinds, with what was found out about each."""
    wishes = _wishes(request, [column.name for column in raw.columns], raw.decimal_comma)
    series: dict[str, Any] = {}
    told: list[Column] = []
    for column in raw.columns:
        values, found = infer(column, wishes, raw.numbers)
        told.append(found)
        if not found.left_out:
            series[column.name] = values
    if len(series) < 2:
        raise InputError(f"{request.path} has {_count(len(series))} that can be used. Left out: {_reasons(told)}.")
    import pandas as pd

    return Data(request.path, pd.DataFrame(series), tuple(told), raw.total, notes)


def read_like(request: Request, like: Data) -> Data:
    """More rows of the same columns as another table: kinds and merged levels are those of that table."""
    kinds = {column.name: column.kind for column in like.columns}
    used = tuple(str(name) for name in like.frame.columns)
    same = replace(
        request,
        needed=dict.fromkeys(used, f"{like.path} has it"),
        only=(),
        drop=(),
        nominal=tuple(name for name in used if kinds[name] == "nominal"),
        numeric=tuple(name for name in used if kinds[name] == "numeric"),
        why_numeric=f"{like.path} has numbers there",
    )
    data = read_data(same)
    frame = data.frame[list(used)].copy()
    for name in used:
        if (frame[name].dtype.kind == "M") != (kinds[name] == "date") and frame[name].notna().any():
            raise InputError(
                f"Column {name!r} holds dates in one of {request.path} and {like.path}, but not in the other."
            )
        if kinds[name] == "nominal":
            frame[name] = _with_levels_of(frame[name], like.frame[name])
    return replace(data, frame=frame)


def column_names(given: Sequence[str], names: Sequence[str], option: str) -> tuple[str, ...]:
    """Columns that a user named, one by one or with commas between them."""
    found: list[str] = []
    for text in given:
        parts = [text] if text in names else [part.strip() for part in text.split(",") if part.strip()]
        for part in parts:
            if part not in names:
                raise ParameterError(f"{option} {part!r} is no column. {_alternatives(part, names)}")
            found.append(part)
    return tuple(dict.fromkeys(found))


def feature_names(given: Sequence[str], names: Sequence[str], option: str, target: str | None) -> tuple[str, ...]:
    """Features that a user named; the target is none."""
    if target is not None and target in given and target not in names:
        raise ParameterError(f"{option} {target!r} is the target, which is no feature. Leave it out.")
    return column_names(given, names, option)


def _raw(request: Request) -> RawTable:
    source = find_source(request.path)
    wanted = partial(wanted_columns, request)
    if source.format == "parquet":
        return read_parquet(source, wanted, most=request.most, seed=request.seed)
    records = read_records(source, wanted, most=request.most, seed=request.seed, delimiter=request.delimiter)
    cells = list(zip(*records.rows, strict=True))
    columns = tuple(Raw(name, "any", values) for name, values in zip(records.names, cells, strict=True))
    notes = [f"Encoding: {records.encoding.note}."] if records.encoding.note else []
    if records.delimiter != ",":
        notes.append(f"Cells are separated by {DELIMITERS.get(records.delimiter, repr(records.delimiter))}.")
    return RawTable(columns, records.numbers, records.total, tuple(notes), decimal_comma=records.delimiter != ",")


def wanted_columns(request: Request, names: Sequence[str]) -> list[str]:
    """Names of the columns to read; what the user named must be among those of the file."""
    for name, why in request.needed.items():
        if name not in names:
            raise InputError(f"{request.path} has no column {name!r} ({why}). {_alternatives(name, names)}")
    dropped = column_names(request.drop, names, "--drop")
    chosen = names if request.only is None else [*column_names(request.only, names, "--columns"), *request.needed]
    wanted = [name for name in dict.fromkeys(chosen) if name not in dropped or name in request.needed]
    if len(wanted) > MOST_COLUMNS:
        raise InputError(
            f"{request.path} has {len(wanted):,} columns; at most {MOST_COLUMNS} are explained at once. "
            f"Name those to use, as in --columns {','.join(wanted[:2])}"
        )
    if len(wanted) < 2:
        raise InputError(f"{_count(len(wanted))} of {request.path} is left to use; at least two are needed.")
    return wanted


def _wishes(request: Request, names: Sequence[str], decimal_comma: bool) -> Wishes:
    needed = frozenset(request.needed)
    keep = None if request.known_model else needed | frozenset(column_names(request.only or (), names, "--columns"))
    return Wishes(
        nominal=frozenset(column_names(request.nominal, names, "--nominal")),
        numeric=frozenset(column_names(request.numeric, names, "--numeric")),
        why_numeric=request.why_numeric,
        missing=frozenset(request.missing),
        day_first=request.day_first,
        decimal_comma=decimal_comma,
        keep=keep,
        whole=needed,
        merge=not request.known_model,
    )


def _count(n: int) -> str:
    return f"{n} column{'s' * (n != 1)}"


def _alternatives(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name, names, n=3, cutoff=0.6) or [one for one in names if one.lower() == name.lower()]
    if close:
        return f"Did you mean {' or '.join(repr(one) for one in close)}?"
    shown = ", ".join(repr(one) for one in names[:8])
    return f"The columns are {shown}{f' and {len(names) - 8} more' if len(names) > 8 else ''}."


def _sampled(raw: RawTable, request: Request) -> list[str]:
    if len(raw.numbers) == raw.total:
        return []
    drawn = (
        f"{len(raw.numbers):,} of {raw.total:,} rows were drawn at random (seed {request.seed}; --max-rows for more)."
    )
    return [drawn + (" Of Parquet, --sample 100000 asks about all rows." if raw.total >= LARGE else "")]


def _reasons(told: list[Column]) -> str:
    listed = [f"{column.name!r}: {column.left_out}" for column in told if column.left_out]
    return "; ".join(listed[:3]) + (f"; and {len(listed) - 3} more" if len(listed) > 3 else "")


def _with_levels_of(values: Any, known: Any) -> Any:
    """A nominal column with the levels of another first; what that one merged is merged."""
    levels = [str(level) for level in known.cat.categories]
    if OTHER in levels:
        return merged_like(values, tuple(level for level in levels if level != OTHER))
    new = [level for level in values.cat.categories if level not in levels]
    return values.cat.set_categories([*levels, *new])
