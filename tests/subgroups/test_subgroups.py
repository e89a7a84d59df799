"""The subgroups of all features: a frozen mapping with a table, that can be pruned and saved."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data.table import fingerprint, read_table
from subgrove._subgroups import Partition, Subgroups, find_subgroups
from subgrove.exceptions import FormatError, ParameterError

BIKE = sg.datasets.bike().X
FOUND = find_subgroups(BIKE, features=["temp", "yr", ("hum", "wind")], max_depth=3)


def test_is_a_mapping_from_feature_to_partition() -> None:
    assert isinstance(FOUND, Mapping)
    assert list(FOUND) == list(FOUND.keys()) == ["temp", "yr", "hum + wind"]
    assert len(FOUND) == 3
    assert all(isinstance(partition, Partition) for partition in FOUND.values())
    assert "temp" in FOUND
    assert "rain" not in FOUND
    assert FOUND.get("rain") is None


def test_group_is_found_by_its_features() -> None:
    assert FOUND["hum", "wind"] is FOUND["wind", "hum"] is FOUND["hum + wind"]
    there, absent = (key in FOUND for key in cast("list[str]", [("hum", "wind"), ("hum",)]))
    assert there
    assert not absent
    assert FOUND[("temp",)] is FOUND["temp"]


@pytest.mark.parametrize("key", ["rain", ("rain", "temp"), "wind + hum"])
def test_unknown_feature_lists_the_existing_ones(key: Any) -> None:
    with pytest.raises(KeyError, match=r"There are no subgroups of .*, only of 'temp', 'yr', 'hum [+] wind'\."):
        FOUND[key]


def test_table_has_a_row_for_each_subgroup() -> None:
    table = FOUND.table
    assert list(table.columns) == ["feature", "subgroup", "rule", "n"]
    assert len(table) == sum(len(partition) for partition in FOUND.values())
    for feature, rows in table.groupby("feature", sort=False):
        partition = FOUND[str(feature)]
        assert rows["subgroup"].tolist() == list(range(len(partition)))
        assert tuple(rows["rule"]) == partition.rules
        assert tuple(rows["n"]) == partition.sizes
    assert pd.api.types.is_integer_dtype(table["n"])
    assert pd.api.types.is_integer_dtype(table["subgroup"])


def test_columns_and_fingerprint_are_those_of_the_whole_table() -> None:
    table = read_table(BIKE)
    assert FOUND.columns == table.columns
    assert FOUND.fingerprint == fingerprint(table) == find_subgroups(BIKE, features="yr", max_depth=0).fingerprint


def test_parameters_are_plain_values() -> None:
    depth: Any = np.int64(1)
    found = find_subgroups(
        BIKE, features=("temp", ["hum", "wind"]), max_depth=depth, given="season", sample_weight=np.ones(731), n_jobs=1
    )
    assert found.parameters == {
        "features": ["temp", ["hum", "wind"]],
        "tree": "transformation",
        "max_depth": 1,
        "min_samples_leaf": 30,
        "alpha": 0.05,
        "given": ["season"],
        "kinds": None,
        "weighted": True,
    }
    assert json.loads(json.dumps(found.parameters)) == found.parameters


def test_shown_with_features_and_their_numbers_of_subgroups() -> None:
    assert repr(FOUND.at_depth(1)).splitlines() == [
        "<Subgroups of 3 features: transformation trees, max_depth 1>",
        "  temp        2 subgroups by season",
        "  yr          2 subgroups by hum",
        "  hum + wind  2 subgroups by weather",
    ]


def test_many_features_are_not_all_shown() -> None:
    lines = repr(find_subgroups(np.random.default_rng(0).normal(size=(50, 30)))).splitlines()
    assert len(lines) == 22
    assert lines[-1] == "  and 10 more"
    one = repr(find_subgroups(BIKE, features="yr", max_depth=0))
    assert one.startswith("<Subgroups of 1 feature: transformation trees, max_depth 0>")


def test_pruned_subgroups_are_those_found_at_that_depth() -> None:
    features: Any = ["temp", "yr", ("hum", "wind")]
    for depth in range(4):
        assert FOUND.at_depth(depth) == find_subgroups(BIKE, features=features, max_depth=depth)
    assert FOUND.at_depth(9) == FOUND


@pytest.mark.parametrize("depth", [-1, 1.5, None, True])
def test_depth_that_is_not_a_count_is_rejected(depth: Any) -> None:
    with pytest.raises(ParameterError, match="depth must be a whole number >= 0"):
        FOUND.at_depth(depth)


def test_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        FOUND.fingerprint = ""  # type: ignore[misc]
    with pytest.raises(TypeError):
        FOUND["temp"] = FOUND["yr"]  # type: ignore[index]


def test_subgroups_of_the_same_table_are_equal_and_have_equal_hashes() -> None:
    one, other = find_subgroups(BIKE), find_subgroups(BIKE)
    assert one == other
    assert hash(one) == hash(other)
    assert one != FOUND
    assert one != find_subgroups(BIKE.assign(temp=BIKE["temp"] + 1))


def test_saved_subgroups_are_read_back() -> None:
    len(FOUND["temp"].rules)
    assert pickle.loads(pickle.dumps(FOUND)) == FOUND
    again = Subgroups.from_dict(json.loads(json.dumps(FOUND.to_dict(), allow_nan=False)))
    assert again == FOUND
    assert again["hum", "wind"].rules == FOUND["hum", "wind"].rules
    pd.testing.assert_frame_equal(again.table, FOUND.table)


def test_dictionary_is_not_shared_with_the_subgroups() -> None:
    found = find_subgroups(BIKE, features=["temp"], max_depth=1)
    values = found.to_dict()
    values["parameters"]["features"].clear()
    values["partitions"].clear()
    assert found == find_subgroups(BIKE, features=["temp"], max_depth=1)


@pytest.mark.parametrize("values", [None, 3, [], {}, {"format": 0}, {"format": 1}, {"format": 1, "columns": None}])
def test_anything_but_a_saved_dictionary_is_rejected(values: Any) -> None:
    with pytest.raises(FormatError, match=r"Subgroups.to_dict\(\)"):
        Subgroups.from_dict(values)


def test_broken_partition_is_rejected() -> None:
    with pytest.raises(FormatError):
        Subgroups.from_dict(FOUND.to_dict() | {"partitions": [{"members": ["temp"]}]})


@pytest.mark.parametrize("damage", ["parameters", "infinite", "deep"])
def test_damaged_dictionaries_are_reported_when_they_are_restored(damage: str) -> None:
    X = pd.DataFrame({"a": np.arange(80.0) % 7, "b": np.arange(80.0)})
    values: Any = sg.find_subgroups(X).to_dict()
    if damage == "parameters":
        del values["parameters"]["tree"]
    elif damage == "infinite":
        values["partitions"][0]["tree"]["nodes"][0]["tests"]["df"][0] = float("inf")
    else:
        for _ in range(100_000):
            values["columns"] = [values["columns"]]
    with pytest.raises(FormatError):
        sg.Subgroups.from_dict(values)
