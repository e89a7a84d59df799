"""The schema in the docs is that of the summary, and reports conform to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from subgrove._report.summary import schema

from .reports import bike_report, odd_report

DOCS = Path(__file__).parents[2] / "docs"
KINDS: dict[str, Any] = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}


def fits(value: Any, rule: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Whether a value conforms to a rule: as much of JSON Schema as the schema uses."""
    if "$ref" in rule:
        return fits(value, whole["$defs"][rule["$ref"].rsplit("/")[-1]], whole)
    if "anyOf" in rule:
        return any(fits(value, one, whole) for one in rule["anyOf"])
    if "enum" in rule:
        return value in rule["enum"]
    if "const" in rule:
        return bool(value == rule["const"])
    if rule["type"] in ("number", "integer"):
        allowed = int if rule["type"] == "integer" else (int, float)
        return isinstance(value, allowed) and not isinstance(value, bool)
    if not isinstance(value, KINDS[rule["type"]]):
        return False
    if rule["type"] == "object":
        return set(rule["required"]) <= set(value) == set(rule["properties"]) and all(
            fits(one, rule["properties"][name], whole) for name, one in value.items()
        )
    if rule["type"] == "array" and "prefixItems" in rule:
        pairs = zip(value, rule["prefixItems"], strict=False)
        return len(value) == rule["minItems"] and all(fits(one, own, whole) for one, own in pairs)
    return rule["type"] != "array" or all(fits(one, rule["items"], whole) for one in value)


def test_the_schema_in_the_docs_is_up_to_date() -> None:
    written = (DOCS / "report.schema.json").read_text(encoding="utf-8")
    command = "import json; from subgrove._report.summary import schema; print(json.dumps(schema(), indent=2))"
    assert json.loads(written) == schema(), f'run: python -c "{command}" > docs/report.schema.json'


def test_reports_conform_to_the_schema() -> None:
    for report in (bike_report(), odd_report()):
        assert fits(json.loads(report.to_json()), schema(), schema())


@pytest.mark.parametrize(
    ("place", "value"), [("title", 3), ("version", 2), ("features", {}), ("level", "0.95"), ("extra", 1)]
)
def test_the_schema_rejects_other_values(place: str, value: Any) -> None:
    values = json.loads(bike_report().to_json())
    assert not fits({**values, place: value}, schema(), schema())


def test_every_field_is_described_in_the_docs() -> None:
    page = (DOCS / "report.md").read_text(encoding="utf-8")
    parts = {"Summary": schema(), **schema()["$defs"]}
    fields = {name for part in parts.values() for name in part["properties"]}
    assert [name for name in sorted(fields) if f"`{name}`" not in page] == []
    assert [name for name in sorted(parts) if f"`{name}`" not in page] == []
