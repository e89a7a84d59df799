"""A summary survives JSON; anything else is rejected with the place that is wrong."""

from __future__ import annotations

import json
import typing
from typing import Any

import msgspec
import pytest

from subgrove._report.summary import Summary
from subgrove.exceptions import FormatError

SPECIAL = {"support": (2, 2), "parent": None, "tree": (), "level": 0.5, "subgroup": 0, "edges": (0.5, 0.5, 0.5)}


def example(kind: Any) -> Any:
    """Return a value of a type: every field filled, every tuple with two members."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return kind(**{name: SPECIAL.get(name, example(hints[name])) for name in kind.__struct_fields__})
    if origin is tuple:
        return (example(inner[0]),) * 2 if inner[-1] is Ellipsis else tuple(example(one) for one in inner)
    if origin is typing.Literal:
        return inner[0]
    if origin is not None:
        return example(inner[0])
    return {float: 0.5, int: 3, str: "<script>", bool: True}[kind]


def test_a_summary_survives_json() -> None:
    summary = example(Summary)
    assert Summary.from_json(json.dumps(summary.to_dict(), allow_nan=False)) == summary


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda values: values.pop("title"), "missing required field `title`"),
        (lambda values: values.update(extra=1), "unknown field `extra`"),
        (lambda values: values.update(features={}), r"Expected `array`, got `object` - at `\$.features`"),
        (lambda values: values["features"][1].update(rank="first"), r"`int`, got `str` - at `\$.features\[1\].rank`"),
        (lambda values: values["features"][0]["conditional"].update(estimate=None), "conditional.estimate`"),
        (lambda values: values["features"][0]["conditional"].update(conf_low=float("nan")), "not a JSON object"),
        (lambda values: values.update(baseline=10**400), r"baseline|malformed|range"),
        (lambda values: values.update(baseline=1e306), r"`float` <= 1e\+?305 - at `\$.baseline`"),
        (lambda values: values["data"].update(n_test=10**30), r"at `\$.data.n_test`"),
        (lambda values: values["methods"]["settings"][0].update(value="\ud800"), "not a JSON object|schema"),
        (lambda values: values.update(version=99), "version 99"),
        (lambda values: values.update(schema="other"), "not a report of subgrove"),
    ],
)
def test_other_values_are_rejected_with_the_place_that_is_wrong(change: Any, place: str) -> None:
    values = example(Summary).to_dict()
    change(values)
    with pytest.raises(FormatError, match=place):
        Summary.from_json(json.dumps(values))


def test_numbers_that_are_not_finite_become_null() -> None:
    summary = example(Summary)
    msgspec.structs.force_setattr(summary.features[0].conditional, "std_error", float("nan"))
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False))["features"][0]["conditional"]["std_error"] is None
