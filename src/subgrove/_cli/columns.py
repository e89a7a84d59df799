"""Rows of a file before anything is inferred: what reading text and reading Parquet have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from subgrove.exceptions import InputError

Declared = Literal["any", "number", "text", "boolean", "date", "duration", "none", "other", "nested"]
Wanted = Callable[[Sequence[str]], Sequence[str]]  # from the names of a file's columns to those that are to be read


@dataclass(frozen=True)
class Raw:
    """A column as it stands in a file: "any" is text of which nothing is declared; `type` is the file's word."""

    name: str
    declared: Declared
    values: Sequence[Any]
    type: str = ""


@dataclass(frozen=True)
class RawTable:
    """Some rows of a file: `numbers` are their places in it, from 0, of `total`.

    `decimal_comma` says whether a comma may stand for the decimal point.
    """

    columns: tuple[Raw, ...]
    numbers: tuple[int, ...]
    total: int
    notes: tuple[str, ...] = ()
    decimal_comma: bool = False


def reject_twice(names: Sequence[str], where: str) -> None:
    """Refuse column names that occur more than once."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        listed = ", ".join(repr(name) for name in twice[:5]) + (" and others" if len(twice) > 5 else "")
        raise InputError(f"{where} has several columns named {listed}. Rename them, so that they can be told apart.")
