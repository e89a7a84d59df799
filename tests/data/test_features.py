"""Features by name, position, group and named group, for every container."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import subgrove as sg
from subgrove._data.columns import NamedGroup, allowed_columns, feature_label, parse_features
from subgrove.exceptions import ParameterError

COLUMNS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (None, [("a",), ("b",), ("c",)]),
        ("b", [("b",)]),
        (1, [("b",)]),
        (np.int64(2), [("c",)]),
        ([0, "c"], [("a",), ("c",)]),
        (np.array([2, 0]), [("c",), ("a",)]),
        (["a", ["b", "c"]], [("a",), ("b", "c")]),
        ([(0, 1), 2], [("a", "b"), ("c",)]),
        ({"rest": ["b", 2], "a": "a"}, [("b", "c"), ("a",)]),
    ],
)
def test_features_are_columns(features: Any, expected: list[tuple[str, ...]]) -> None:
    assert list(parse_features(features, COLUMNS)) == expected


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (-1, r"the position -1, but positions are from 0 to 2.*Negative positions are not supported"),
        (3, r"the position 3, but positions are from 0 to 2: X has 3 columns"),
        ([], r"features is empty"),
        ({}, r"features is empty"),
        ([[]], r"a group without columns"),
        ([["a", 0]], r"names a column twice: 'a', 'a'"),
        (["d"], r"features names 'd', but X has the columns 'a', 'b', 'c'"),
        (True, r"must be a name, a position or a list"),
        ([["a", "b"], ["b", "a"]], r"'a \+ b', 'b \+ a' more than once"),
        ({"x": ["a", "b"], "y": ["b", "a"]}, r"'x', 'y' more than once"),
        ({"a": ["b", "c"]}, r"a group named 'a', which is the name of a column"),
        ({1: ["b", "c"]}, r"keys are names of groups; got the key 1"),
        ({"x": []}, r"a group without columns"),
    ],
)
def test_invalid_features_raise(features: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_features(features, COLUMNS)


def test_integer_labels_of_columns_come_before_positions() -> None:
    assert parse_features([1], ("2", "1", "0")) == (("1",),)
    with pytest.raises(ParameterError, match="features names '0', but X has the columns '10', '20'"):
        parse_features([0], ("10", "20"))


def test_given_takes_positions_in_the_order_of_the_table() -> None:
    assert allowed_columns([2, "a"], COLUMNS) == ("a", "c")
    with pytest.raises(ParameterError, match="given has the position -2"):
        allowed_columns(-2, COLUMNS)


def test_named_group_keeps_its_name() -> None:
    group = parse_features({"weather": ["b", "c"]}, COLUMNS)[0]
    assert feature_label(group) == "weather"
    assert feature_label(pickle.loads(pickle.dumps(group))) == "weather"
    assert feature_label(parse_features([group], COLUMNS)[0]) == "weather"
    assert feature_label(("b", "c")) == "b + c"
    assert repr(group) == "NamedGroup('weather', ('b', 'c'))"


X = np.random.default_rng(0).normal(size=(60, 3))
Y = X @ [1.0, 2.0, 3.0]


def model(table: Any) -> Any:
    return np.asarray(table) @ [1.0, 2.0, 3.0]


CONTAINERS: dict[str, Any] = {
    "array": X,
    "pandas": pd.DataFrame(X, columns=list("abc")),
    "integer labels": pd.DataFrame(X, columns=[5, 6, 7]),
    "polars": pl.DataFrame(X, schema=list("abc")),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_importance_of_positions_and_named_groups(container: str) -> None:
    table = CONTAINERS[container]
    last: Any = 7 if container == "integer labels" else 2
    options: dict[str, Any] = {"sampler": "marginal", "random_state": 1, "check_fidelity": False}
    by_position = sg.importance(model, table, Y, features=[last], **options)
    names = {"array": "x2", "integer labels": "7"}
    assert by_position.features == (names.get(container, "c"),)
    first: Any = 5 if container == "integer labels" else 0
    named = sg.importance(model, table, Y, features={"ends": [first, last]}, **options)
    assert named.features == ("ends",)
    assert list(named.overall["feature"]) == ["ends"]


def test_named_group_with_subgroups_is_saved_and_explained(tmp_path: Path) -> None:
    table = CONTAINERS["pandas"]
    groups = sg.find_subgroups(table[:40], features={"ends": ["a", "c"]}, max_depth=1)
    assert list(groups) == ["ends"]
    assert list(sg.Subgroups.from_dict(groups.to_dict())) == ["ends"]
    imp = sg.importance(model, table[40:], Y[40:], features={"ends": ["a", "c"]}, sampler=groups, random_state=1)
    assert imp.features == ("ends",)
    imp.save(tmp_path / "imp.json")
    assert sg.ImportanceResult.load(tmp_path / "imp.json").features == ("ends",)
    assert "ends" in str(imp.explain("ends"))


@pytest.mark.parametrize("sampler", ["auto", sg.samplers.SubgroupSampler(min_samples_leaf=5), "marginal"])
def test_samplers_take_named_groups(sampler: Any) -> None:
    table = CONTAINERS["pandas"]
    features = {"ends": ["a", "c"], "only b": ["b"]}
    imp = sg.importance(model, table, Y, features=features, sampler=sampler, random_state=1, n_repeats=1)
    assert imp.features == ("ends", "only b")


def test_named_group_equals_the_tuple_of_its_members() -> None:
    assert tuple(NamedGroup("x", ("a", "b"))) == ("a", "b")
    assert NamedGroup("x", ("a", "b")) == ("a", "b")
