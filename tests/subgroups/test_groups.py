"""Groups of features that share a tree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.weights import FrequencyWeights
from subgrove._data.table import read_table
from subgrove._subgroups import find_subgroups
from subgrove.trees import JointTree
from subgrove.trees.nodes import matches

BIKE = sg.datasets.bike().X
GROUPS = [("temp", "hum"), ("temp", "hum", "wind"), ("season", "yr"), ("temp", "weekday", "work")]
each_group = pytest.mark.parametrize("members", GROUPS)


@each_group
def test_group_has_the_joint_tree_of_its_features(members: tuple[str, ...]) -> None:
    partition = find_subgroups(BIKE, features=[members], max_depth=3)[members]
    names = list(members)
    assert partition.tree == JointTree(max_depth=3).fit(BIKE.drop(columns=names), BIKE[names])
    assert (partition.members, partition.feature) == (members, " + ".join(members))


@each_group
def test_rules_of_a_group_use_columns_outside_it(members: tuple[str, ...]) -> None:
    partition = find_subgroups(BIKE, features=[members], max_depth=3)[members]
    assert not {column.name for column in partition.tree.columns} & set(members)
    assert partition.conditioning


@each_group
def test_printed_rule_of_a_group_is_the_rule_applied(members: tuple[str, ...]) -> None:
    partition, table = find_subgroups(BIKE, features=[members], max_depth=3)[members], read_table(BIKE)
    assigned = partition.assign(BIKE)
    for position, conditions in enumerate(partition.tree.conditions.values()):
        np.testing.assert_array_equal(matches(conditions, table), assigned == position)


def test_group_of_one_feature_is_that_feature() -> None:
    assert find_subgroups(BIKE, features=[["temp"]])["temp"] == find_subgroups(BIKE, features="temp")["temp"]


def test_feature_may_also_be_in_a_group() -> None:
    found = find_subgroups(BIKE, features=["temp", ("temp", "hum"), ("hum", "wind")])
    assert list(found) == ["temp", "temp + hum", "hum + wind"]
    assert found["temp"] == find_subgroups(BIKE)["temp"]


def test_given_holds_for_groups_too() -> None:
    found = find_subgroups(BIKE, features=[("temp", "hum")], given=["temp", "yr", "weather"])
    assert [column.name for column in found["temp", "hum"].tree.columns] == ["yr", "weather"]


def test_group_of_all_columns_has_one_subgroup() -> None:
    everything = tuple(str(name) for name in BIKE)
    partition = find_subgroups(BIKE, features=[everything])[everything]
    assert (partition.rules, partition.sizes) == (("all rows",), (731,))
    assert (partition.tree.method, partition.tree.nodes[0].stop) == ("joint", "no columns")


def test_group_of_constant_features_has_one_subgroup() -> None:
    X = BIKE.assign(one=1.0, word="only")
    partition = find_subgroups(X, features=[("one", "word")])["one", "word"]
    assert (partition.rules, partition.tree.nodes[0].stop) == (("all rows",), "constant")
    assert partition.text().startswith("one + word: joint tree, 731 rows, 1 leaf")


def test_group_of_features_that_never_meet_has_one_subgroup() -> None:
    early = np.arange(731) < 400
    X = BIKE.assign(p=np.where(early, BIKE["temp"], np.nan), q=np.where(early, np.nan, BIKE["hum"]))
    partition = find_subgroups(X, features=[("p", "q")])["p", "q"]
    assert (partition.rules, partition.sizes, partition.tree.nodes[0].stop) == (("all rows",), (0,), "few rows")
    assert set(partition.assign(X)) == {0}


def test_rows_where_a_member_is_missing_have_a_subgroup() -> None:
    X = BIKE.copy()
    X.loc[::4, "temp"] = np.nan
    X.loc[::6, "hum"] = np.nan
    partition = find_subgroups(X, features=[("temp", "hum")])["temp", "hum"]
    assert sum(partition.sizes) == X[["temp", "hum"]].notna().all(axis=1).sum()
    assert len(partition.assign(X)) == 731


def test_number_of_jobs_changes_no_group() -> None:
    one, two = (find_subgroups(BIKE, features=GROUPS, max_depth=3, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one == two


def test_integer_weights_of_a_group_are_duplicated_rows() -> None:
    weights = np.random.default_rng(1).integers(0, 4, 731)
    repeated = BIKE.iloc[np.repeat(np.arange(731), weights)]
    one, other = (
        find_subgroups(BIKE, features=GROUPS, sample_weight=FrequencyWeights(weights)),
        find_subgroups(repeated, features=GROUPS),
    )
    pd.testing.assert_frame_equal(one.table, other.table)
