"""A summary as plain values and back. What comes back is checked field by field, for files may be anyone's."""

from __future__ import annotations

import math
import re
import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any

from subgrove._report.summary import SCHEMA, VERSION, Summary
from subgrove.exceptions import FormatError

_LARGEST = {float: 1e305, int: 2**63 - 1, bool: 1}  # percent of it are finite too
_HALF = re.compile("[\ud800-\udfff]")


def plain(value: Any) -> Any:
    """Frozen values as lists, dictionaries, text and numbers; what is not a finite number becomes None."""
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_summary(values: Any) -> Summary:
    """The summary that `plain` wrote, with its schema and version."""
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        raise FormatError(f"The values are no report of subgrove: schema={SCHEMA!r} is expected at the top.")
    if values.get("version") != VERSION:
        raise FormatError(
            f"The report has version {values.get('version')!r}; this subgrove reads version {VERSION}. "
            "Compute it again, or use the subgrove that wrote it."
        )
    own = {name: value for name, value in values.items() if name not in {"schema", "version"}}
    summary = _read(Summary, own, "report")
    assert isinstance(summary, Summary)
    return summary


def _read(kind: Any, value: Any, place: str) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        return _read_either(inner, value, place)
    if origin is tuple:
        return _read_tuple(inner, value, place)
    if is_dataclass(kind):
        return _read_object(kind, value, place)
    if isinstance(value, int | float) and not abs(value) <= _LARGEST[type(value)]:
        raise FormatError(f"{place} must be a finite number; got {value!r:.60}.")
    if isinstance(value, str) and _HALF.search(value):
        raise FormatError(f"{place} has half of a character, which cannot be written; got {value!r:.60}.")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is types.NoneType and value is None:
        return None
    if isinstance(value, bool) != (kind is bool) or not isinstance(value, kind):
        raise FormatError(f"{place} must be {getattr(kind, '__name__', kind)}; got {value!r:.60}.")
    return value


def _read_either(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    if type(value) in kinds:
        return _read(type(value), value, place)  # 5 stays a whole number where it may be one
    for kind in kinds:
        try:
            return _read(kind, value, place)
        except FormatError as refused:
            last = refused
    raise last


def _read_tuple(kinds: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise FormatError(f"{place} must be a list; got {value!r:.60}.")
    if kinds[-1] is Ellipsis:
        return tuple(_read(kinds[0], one, f"{place}[{at}]") for at, one in enumerate(value))
    if len(value) != len(kinds):
        raise FormatError(f"{place} must have {len(kinds)} values; it has {len(value)}.")
    return tuple(_read(kind, one, f"{place}[{at}]") for at, (kind, one) in enumerate(zip(kinds, value, strict=True)))


def _read_object(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise FormatError(f"{place} must be an object; got {value!r:.60}.")
    hints = typing.get_type_hints(kind)
    names = [one.name for one in fields(kind)]
    missing, unknown = [name for name in names if name not in value], [name for name in value if name not in names]
    if missing or unknown:
        what = f"lacks {', '.join(missing)}" if missing else f"has unknown {', '.join(map(str, unknown))}"
        raise FormatError(f"{place} {what}; it is not a report that this version of subgrove wrote.")
    return kind(**{name: _read(hints[name], value[name], f"{place}.{name}") for name in names})
