"""Columns of a file before their kinds are inferred, and the selection of columns by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from subgrove._cli.options import DataOptions
from subgrove._cli.output import count, quoted
from subgrove.exceptions import InputError, ParameterError

MOST_COLUMNS = 500
DeclaredType = Literal["any", "number", "text", "boolean", "date", "duration", "none", "other", "nested"]
SelectColumns = Callable[[Sequence[str]], Sequence[str]]  # from the column names of a file to those that are read


@dataclass(frozen=True)
class RawColumn:
    """A column as stored in a file. `declared` "any" is text of undeclared type; `type` is the file's own name."""

    name: str
    declared: DeclaredType
    values: Sequence[Any]
    type: str = ""


@dataclass(frozen=True)
class RawTable:
    """Rows of a file. `row_numbers` are their positions in the file, from 0, of `total` rows.

    `decimal_comma` is whether a comma may be the decimal separator.
    """

    columns: tuple[RawColumn, ...]
    row_numbers: tuple[int, ...]
    total: int
    notes: tuple[str, ...] = ()
    decimal_comma: bool = False


def reject_duplicates(names: Sequence[str], where: str) -> None:
    """Reject column names that occur more than once."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(
            f"{where} has several columns named {quoted(repeated)}. Rename them, so that names are unique."
        )


def selected_columns(selected: Sequence[str], names: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the columns that an option names, one by one or separated by commas."""
    columns: list[str] = []
    for text in selected:
        parts = [text] if text in names else [part.strip() for part in text.split(",") if part.strip()]
        for part in parts:
            if part not in names:
                raise ParameterError(f"{option}: there is no column {part!r}. {suggest(part, names)}")
            columns.append(part)
    return tuple(dict.fromkeys(columns))


def feature_names(selected: Sequence[str], names: Sequence[str], option: str, target: str | None) -> tuple[str, ...]:
    """Return the features that an option names; the target must not be among them."""
    if target is not None and target in selected and target not in names:
        raise ParameterError(f"{option}: {target!r} is the target and cannot be a feature. Leave it out.")
    return selected_columns(selected, names, option)


def columns_to_read(options: DataOptions, required: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the columns to read of a file with these column names.

    `required` maps columns that must be in the file to the reason, which is shown if they are not.
    """
    for name, reason in required.items():
        if name not in names:
            raise InputError(f"{options.data} has no column {name!r} ({reason}). {suggest(name, names)}")
    dropped = selected_columns(options.drop, names, "--drop")
    selected = [*selected_columns(options.columns, names, "--columns"), *required] if options.columns else names
    columns = [name for name in dict.fromkeys(selected) if name not in dropped or name in required]
    if len(columns) > MOST_COLUMNS:
        raise InputError(
            f"{options.data} has {len(columns):,} columns; at most {MOST_COLUMNS} can be explained at once. "
            f"Select some, as in --columns {','.join(columns[:2])}"
        )
    if len(columns) < 2:
        raise InputError(f"Only {count(len(columns), 'column')} of {options.data} selected; at least two are needed.")
    return columns


def suggest(name: str, names: Sequence[str]) -> str:
    """Suggest columns with similar names, else list the columns."""
    close = get_close_matches(name, names, n=3, cutoff=0.6) or [one for one in names if one.lower() == name.lower()]
    if close:
        return f"Did you mean {' or '.join(repr(one) for one in close)}?"
    shown = ", ".join(repr(one) for one in names[:8])
    return f"The columns are {shown}{f' and {len(names) - 8} more' if len(names) > 8 else ''}."
