"""The JSON schema of a report, made from the dataclasses of the summary.

`python -m subgrove._report.schema` prints it; `docs/report.schema.json` is what it prints.
"""

from __future__ import annotations

import json
import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any

from subgrove._report.summary import SCHEMA, VERSION, Summary

_PLAIN = {float: "number", int: "integer", str: "string", bool: "boolean", types.NoneType: "null"}


def schema() -> dict[str, Any]:
    """The schema, as JSON Schema of 2020-12."""
    parts: dict[str, Any] = {}
    whole = _object(Summary, parts)
    fixed = {"schema": {"const": SCHEMA}, "version": {"const": VERSION}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **whole,
        "properties": {**fixed, **whole["properties"]},
        "required": [*fixed, *whole["required"]],
        "$defs": dict(sorted(parts.items())),
    }


def _of(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        return {"anyOf": [_of(one, parts) for one in inner]}
    if origin is tuple and inner[-1] is Ellipsis:
        return {"type": "array", "items": _of(inner[0], parts)}
    if origin is tuple:
        each = [_of(one, parts) for one in inner]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
    if is_dataclass(kind):
        name = kind.__name__  # type: ignore[union-attr]  # a class, for hints name classes
        if name not in parts:
            parts[name] = {}
            parts[name] = _object(kind, parts)
        return {"$ref": f"#/$defs/{name}"}
    return {"type": _PLAIN[kind]}


def _object(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    names = [one.name for one in fields(kind)]
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split("\n\n")[0].split()),
        "properties": {name: _of(hints[name], parts) for name in names},
        "required": names,
        "additionalProperties": False,
    }


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
