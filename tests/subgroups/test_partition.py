"""The subgroups of one feature: rules, sizes, rows, pruning, saving."""

from __future__ import annotations

import dataclasses
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data.table import Table, read_like, read_table
from subgrove._subgroups import Partition, Subgroups, find_subgroups
from subgrove.exceptions import FormatError, InputError, ParameterError, UnseenValueWarning
from subgrove.trees import TransformationTree
from subgrove.trees.nodes import matches

BIKE = sg.datasets.bike().X
TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)
FOUND = {tree: find_subgroups(TRAIN.X, tree=tree, max_depth=4) for tree in ("transformation", "cart")}
each_tree = pytest.mark.parametrize("found", FOUND.values(), ids=list(FOUND))
NAMES = [str(name) for name in BIKE]
each_feature = pytest.mark.parametrize("feature", NAMES)


def by_rules(partition: Partition, table: Table) -> npt.NDArray[Any]:
    """Position of the one rule that each row satisfies."""
    satisfied = np.array([matches(conditions, table) for conditions in partition.tree.conditions.values()])
    assert (satisfied.sum(axis=0) == 1).all()
    positions: npt.NDArray[Any] = satisfied.argmax(axis=0)
    return positions


@each_tree
@each_feature
def test_printed_rule_is_the_rule_applied(found: Subgroups, feature: str) -> None:
    partition = found[feature]
    assert partition.rules == tuple(partition.tree.rules.values())
    for X in (TRAIN.X, TEST.X):
        np.testing.assert_array_equal(by_rules(partition, read_table(X)), partition.assign(X))


@each_tree
@each_feature
def test_printed_rule_can_be_evaluated_by_hand(found: Subgroups, feature: str) -> None:
    """Select the rows of a subgroup by evaluating the text of its rule as Python."""
    partition, X = found[feature], TEST.X
    assigned = partition.assign(X)
    for position, rule in enumerate(partition.rules):
        inside = [rule == "all rows" or _holds(rule, row) for _, row in X.iterrows()]
        np.testing.assert_array_equal(np.array(inside), assigned == position)


def _holds(rule: str, row: pd.Series[Any]) -> bool:
    values = dict(row)
    for part in rule.split(" and "):
        if " in {" in part:
            name, levels = part.removesuffix("}").split(" in {")
            if values[name] not in levels.split(", "):
                return False
        elif not eval(part, {}, values):
            return False
    return True


@each_tree
@each_feature
def test_sizes_count_the_training_rows(found: Subgroups, feature: str) -> None:
    partition = found[feature]
    assert partition.sizes == tuple(np.bincount(partition.assign(TRAIN.X), minlength=len(partition)).tolist())
    assert all(type(size) is int for size in partition.sizes)


def test_sizes_are_fractions_where_weights_are() -> None:
    weights = 1.0 + np.arange(len(BIKE)) % 2
    partition = find_subgroups(BIKE, features="temp", sample_weight=weights)["temp"]
    assert sum(partition.sizes) == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert float in {type(size) for size in partition.sizes}


@each_tree
@each_feature
def test_rows_read_before_are_assigned_equally(found: Subgroups, feature: str) -> None:
    table = read_like(TEST.X, found.columns)
    assigned = found[feature]._assign_table(table)
    np.testing.assert_array_equal(assigned, found[feature].assign(TEST.X))
    assert np.issubdtype(assigned.dtype, np.integer)


def test_feature_itself_is_not_needed_to_assign() -> None:
    partition = FOUND["transformation"]["temp"]
    without = TEST.X.drop(columns="temp")
    np.testing.assert_array_equal(partition.assign(without), partition.assign(TEST.X))


def test_column_that_is_lacking_is_named() -> None:
    with pytest.raises(InputError, match="X lacks 'season', which training had"):
        FOUND["transformation"]["temp"].assign(TEST.X.drop(columns="season"))


def test_unseen_level_is_warned_of_where_it_was_handed_over() -> None:
    partition = FOUND["transformation"]["temp"]
    strange = TEST.X.assign(season="MONSOON")
    with pytest.warns(UnseenValueWarning, match="MONSOON") as caught:
        partition.assign(strange)
    assert Path(caught[0].filename).name == Path(__file__).name
    with pytest.warns(UnseenValueWarning, match="MONSOON") as caught:
        partition._assign_table(read_like(strange, FOUND["transformation"].columns))
    assert Path(caught[0].filename).name == Path(__file__).name


def test_no_row_has_no_subgroup() -> None:
    assert FOUND["transformation"]["temp"].assign(TEST.X[:0]).shape == (0,)


def test_columns_of_the_rules_stand_in_order_of_their_use() -> None:
    partition = FOUND["transformation"]["hum"]
    splits = sorted((node.depth, node.id, node.split.column) for node in partition.tree.nodes if node.split is not None)
    assert partition.conditioning[0] == splits[0][2]
    assert list(partition.conditioning) == list(dict.fromkeys(column for _, _, column in splits))
    assert set(partition.conditioning) == {name for name in NAMES if any(name in rule for rule in partition.rules)}


@each_tree
@each_feature
def test_pruned_subgroups_are_those_found_at_that_depth(found: Subgroups, feature: str) -> None:
    tree: Any = "cart" if found is FOUND["cart"] else "transformation"
    for depth in range(4):
        less = find_subgroups(TRAIN.X, features=feature, tree=tree, max_depth=depth)[feature]
        assert found[feature].at_depth(depth) == less
    assert found[feature].at_depth(9) == found[feature]


def test_pruning_to_no_depth_is_rejected() -> None:
    with pytest.raises(ParameterError, match="depth must be a whole number >= 0; got -1"):
        FOUND["cart"]["temp"].at_depth(-1)


def test_shown_with_number_of_subgroups_and_columns() -> None:
    partition = find_subgroups(BIKE, features="temp")["temp"]
    assert repr(partition) == "<Partition of 'temp': 4 subgroups by season, hum>"
    assert repr(partition.at_depth(0)) == "<Partition of 'temp': 1 subgroup>"
    assert len(partition) == 4
    assert partition.text() == partition.tree.text()


def test_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        FOUND["cart"]["temp"].members = ("hum",)  # type: ignore[misc]


def test_partitions_of_the_same_rows_are_equal_and_have_equal_hashes() -> None:
    one, other = (find_subgroups(BIKE, features="temp")["temp"] for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != one.at_depth(1)
    assert one != one.tree


@each_tree
@each_feature
def test_saved_partition_is_read_back(found: Subgroups, feature: str) -> None:
    partition = found[feature]
    assert pickle.loads(pickle.dumps(partition)) == partition
    again = Partition.from_dict(json.loads(json.dumps(partition.to_dict(), allow_nan=False)))
    assert again == partition
    assert again.rules == partition.rules
    np.testing.assert_array_equal(again.assign(TEST.X), partition.assign(TEST.X))


@pytest.mark.parametrize("values", [None, 3, [], "text", {}, {"members": ["a"]}, {"members": None, "tree": None}])
def test_anything_but_a_saved_dictionary_is_rejected(values: Any) -> None:
    with pytest.raises(FormatError):
        Partition.from_dict(values)


def test_is_made_of_any_tree() -> None:
    """A tree that was grown by hand is a partition too."""
    tree = TransformationTree(max_depth=1).fit(BIKE.drop(columns="temp"), BIKE["temp"])
    assert Partition(("temp",), tree) == find_subgroups(BIKE, features="temp", max_depth=1)["temp"]


def test_nothing_is_warned_of_in_training_rows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for partition in FOUND["transformation"].values():
            partition.assign(TRAIN.X)
