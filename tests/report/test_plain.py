"""A summary survives the way to JSON and back; what is no summary is refused with the place that is wrong."""

from __future__ import annotations

import json
import typing
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from subgrove._report.summary import FeatureSummary, Summary
from subgrove.exceptions import FormatError


def example(kind: Any) -> Any:
    """Some value of a type: every field filled, every tuple with one or two members."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        make: Any = kind
        return make(**{one.name: example(hints[one.name]) for one in fields(kind)})
    if origin is tuple:
        return (example(inner[0]),) * 2 if inner[-1] is Ellipsis else tuple(example(one) for one in inner)
    if origin is not None:
        return example(inner[0])
    return {float: 0.5, int: 3, str: "<script>", bool: True}[kind]


def test_a_summary_survives_the_way_to_json_and_back() -> None:
    summary = example(Summary)
    assert Summary.from_dict(json.loads(json.dumps(summary.to_dict(), allow_nan=False))) == summary


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda values: values.pop("title"), "report lacks title"),
        (lambda values: values.update(extra=1), "report has unknown extra"),
        (lambda values: values.update(features={}), "report.features must be a list"),
        (lambda values: values["features"][1].update(rank="first"), r"report.features\[1\].rank must be int"),
        (lambda values: values["features"][0]["conditional"].update(estimate=None), "conditional.estimate must be"),
        (
            lambda values: values["features"][0]["conditional"].update(conf_low=float("nan")),
            "conf_low must be a finite",
        ),
        (lambda values: values.update(baseline=10**400), "report.baseline must be a finite number"),
        (lambda values: values["data"].update(n_test=10**30), "report.data.n_test must be a finite number"),
        (lambda values: values["methods"]["settings"][0].update(value="\ud800"), "half of a character"),
        (lambda values: values.update(version=99), "version 99"),
        (lambda values: values.update(schema="other"), "no report of subgrove"),
    ],
)
def test_what_is_no_summary_is_refused_with_the_place_that_is_wrong(change: Any, place: str) -> None:
    values = example(Summary).to_dict()
    change(values)
    with pytest.raises(FormatError, match=place):
        Summary.from_dict(values)


def test_numbers_that_are_not_finite_become_null() -> None:
    summary = example(Summary)
    feature: FeatureSummary = summary.features[0]
    object.__setattr__(feature.conditional, "std_error", float("nan"))
    assert json.dumps(summary.to_dict(), allow_nan=False)
