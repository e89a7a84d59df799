"""A grown tree: numbering, rules, text, freezing, saving, pruning, comparing."""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._data.table import read_like
from subgrove.exceptions import FormatError, ParameterError, UnseenValueWarning
from subgrove.trees import CartTree, ConditionalInferenceTree, Node, TransformationTree, Tree
from subgrove.trees import ColumnTests as NodeTests  # pytest would collect it by its own name

Grower = TransformationTree | ConditionalInferenceTree | CartTree
GROWERS: list[type[Grower]] = [TransformationTree, ConditionalInferenceTree, CartTree]
each_tree = pytest.mark.parametrize("grower", GROWERS)
each_tester = pytest.mark.parametrize("grower", [TransformationTree, ConditionalInferenceTree])


def steps(values: list[Any], means: list[float], rows: int = 60, name: str = "temp") -> tuple[pd.DataFrame, Any]:
    """A column with few values, and x whose mean depends on them."""
    noise = np.random.default_rng(0).normal(size=rows * len(values))
    return pd.DataFrame({name: pd.Series(values).repeat(rows).to_numpy()}), np.repeat(means, rows) + 0.3 * noise


def bush(n: int = 800) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Rows that grow a tree of some depth."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["u", "v", "w"], n)})
    y = 2.0 * (X["a"] > 0) + (X["a"] > 1) + (X["b"] > 0) * (X["c"] == "u") + 0.5 * rng.normal(size=n)
    return X, y.rename("y")


def root_tests(tree: Tree) -> NodeTests:
    tests = tree.nodes[0].tests
    assert tests is not None
    return tests


def grown(grower: type[Grower] = TransformationTree) -> Tree:
    return grower(max_depth=4).fit(*bush())


# Nodes.


@each_tree
def test_nodes_are_numbered_in_pre_order(grower: type[Grower]) -> None:
    tree = grown(grower)

    def visited(id_: int) -> list[int]:
        children = tree.nodes[id_ - 1].children
        return [id_] + [below for child in children or () for below in visited(child)]

    assert tree.depth > 2
    assert visited(1) == [node.id for node in tree.nodes] == list(range(1, len(tree.nodes) + 1))


@each_tree
def test_parents_and_depths_agree_with_children(grower: type[Grower]) -> None:
    tree = grown(grower)
    assert (tree.nodes[0].parent, tree.nodes[0].depth) == (None, 0)
    for node in tree.nodes:
        for child in node.children or ():
            assert (tree.nodes[child - 1].parent, tree.nodes[child - 1].depth) == (node.id, node.depth + 1)


@each_tree
def test_leaves_have_a_reason_and_other_nodes_a_split(grower: type[Grower]) -> None:
    for node in grown(grower).nodes:
        assert node.is_leaf == (node.split is None) == (node.stop is not None)


@each_tree
def test_nodes_and_splits_and_trees_are_frozen(grower: type[Grower]) -> None:
    tree = grown(grower)
    for thing, name in [(tree, "nodes"), (tree.nodes[0], "n"), (tree.nodes[0].split, "threshold")]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, None)


@each_tree
def test_counts_of_a_node_cannot_be_written_to(grower: type[Grower]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        grown(grower).nodes[0].counts[0] = 99


@each_tester
def test_tests_cannot_be_written_to(grower: type[Grower]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        root_tests(grown(grower)).statistic[0] = 99


@each_tester
def test_tests_are_found_by_column_name(grower: type[Grower]) -> None:
    tests = root_tests(grown(grower))
    assert list(tests) == ["a", "b", "c"]
    for at, column in enumerate(tests):
        test = tests[column]
        assert test.column == column
        assert (test.statistic, test.df) == (tests.statistic[at], tests.df[at])
        assert test.p_value == pytest.approx(tests.p_value[at])


@each_tester
def test_unknown_column_of_tests_is_a_key_error(grower: type[Grower]) -> None:
    tests = root_tests(grown(grower))
    assert "z" not in tests
    with pytest.raises(KeyError, match="z"):
        tests["z"]


@each_tester
def test_p_value_is_adjusted_for_the_columns_that_vary(grower: type[Grower]) -> None:
    X, y = bush()
    tests = root_tests(grower(max_depth=1).fit(X.assign(same=1.0), y))
    assert (tests["same"].df, np.isnan(tests["same"].statistic)) == (0, True)
    assert tests["b"].p_value == pytest.approx(1 - (1 - np.exp(tests["b"].log_p_unadjusted)) ** 3)


@each_tester
def test_p_value_of_a_node_is_that_of_the_column_it_is_split_in(grower: type[Grower]) -> None:
    for node in grown(grower).nodes:
        if node.split is not None and node.tests is not None:
            assert node.p_value == node.tests[node.split.column].p_value


# Rules and text.


@each_tester
def test_conditions_on_the_same_column_are_merged(grower: type[Grower]) -> None:
    X, x = steps([1.0, 5.2, 10.0, 21.5, 30.0], [0.0, 0.0, 4.0, 4.0, 9.0])
    tree = grower(max_depth=2).fit(X, x)
    assert sorted(tree.rules.values()) == ["5.2 < temp <= 21.5", "temp <= 5.2", "temp > 21.5"]


def test_conditions_of_cart_are_merged_with_their_own_signs() -> None:
    X, x = steps([1.0, 2.0, 3.0], [0.0, 4.0, 9.0])
    assert sorted(CartTree().fit(X, x).rules.values()) == ["1.5 <= temp < 2.5", "temp < 1.5", "temp >= 2.5"]


@each_tree
def test_levels_are_listed_in_the_order_of_the_column(grower: type[Grower]) -> None:
    X, x = steps(["SPRING", "SUMMER", "FALL", "WINTER"], [4.0, 9.0, 4.0, 0.0], name="season")
    X["season"] = pd.Categorical(X["season"], ["WINTER", "SPRING", "SUMMER", "FALL"])
    rules = grower(max_depth=2).fit(X, x).rules
    assert sorted(rules.values()) == ["season in {SPRING, FALL}", "season in {SUMMER}", "season in {WINTER}"]


@each_tree
def test_levels_that_cannot_get_to_a_node_are_not_in_its_rule(grower: type[Grower]) -> None:
    X, x = steps(["u", "v", "w", "z"], [0.0, 3.0, 20.0, 23.0], name="c")
    rules = grower(max_depth=2).fit(X, x).rules
    assert sorted(rules.values()) == ["c in {u}", "c in {v}", "c in {w}", "c in {z}"]


@each_tester
def test_ordered_levels_are_printed_by_name(grower: type[Grower]) -> None:
    X, x = steps(["s", "m", "l", "xl"], [0.0, 4.0, 4.0, 9.0], name="size")
    X["size"] = pd.Categorical(X["size"], ["s", "m", "l", "xl"], ordered=True)
    assert sorted(grower(max_depth=2).fit(X, x).rules.values()) == ["s < size <= l", "size <= s", "size > l"]


@each_tester
def test_dates_are_printed_as_dates(grower: type[Grower]) -> None:
    X, x = steps(list(pd.to_datetime(["2020-02-29", "2020-03-01", "2021-01-01"])), [0.0, 4.0, 9.0], name="day")
    expected = ["2020-02-29 < day <= 2020-03-01", "day <= 2020-02-29", "day > 2020-03-01"]
    assert sorted(grower(max_depth=2).fit(X, x).rules.values()) == expected


@each_tester
def test_times_are_printed_with_their_hour(grower: type[Grower]) -> None:
    X, x = steps(list(pd.to_datetime(["2020-02-29 10:30:00", "2020-03-01 08:00:00"])), [0.0, 4.0], name="time")
    expected = ["time <= 2020-02-29T10:30:00", "time > 2020-02-29T10:30:00"]
    assert sorted(grower().fit(X, x).rules.values()) == expected


@each_tree
def test_thresholds_are_printed_to_the_last_digit(grower: type[Grower]) -> None:
    X, y = bush()
    tree = grower(max_depth=1).fit(X[["a"]], y)
    split = tree.nodes[0].split
    assert split is not None
    assert [float(rule.split()[-1]) for rule in tree.rules.values()] == [split.threshold] * 2


@each_tree
def test_single_leaf_has_all_rows(grower: type[Grower]) -> None:
    tree = grown(grower).prune(0)
    assert tree.rules == {1: "all rows"}
    assert tree.conditions == {1: ()}
    assert tree.depth == 0


@each_tree
def test_rules_belong_to_leaves(grower: type[Grower]) -> None:
    tree = grown(grower)
    assert list(tree.rules) == list(tree.conditions) == [leaf.id for leaf in tree.leaves]


@each_tester
def test_text_shows_every_node_indented_by_its_depth(grower: type[Grower]) -> None:
    X, x = steps([1.0, 5.0, 30.0], [0.0, 4.0, 90.0])
    method = "transformation" if grower is TransformationTree else "conditional inference"
    assert grower(max_depth=2).fit(X, pd.Series(x, name="y")).text().splitlines() == [
        f"y: {method} tree, 180 rows, 3 leaves",
        "[1] all rows (n = 180)",
        "  [2] temp <= 5 (n = 120)",
        "    [3] temp <= 1 (n = 60) *",
        "    [4] temp > 1 (n = 60) *",
        "  [5] temp > 5 (n = 60) *",
    ]


def test_text_of_a_single_leaf_says_leaf() -> None:
    lines = TransformationTree(max_depth=0).fit(*bush()).text().splitlines()
    assert lines == ["y: transformation tree, 800 rows, 1 leaf", "[1] all rows (n = 800) *"]


def test_text_shows_fractional_weights() -> None:
    X, y = bush()  # (1 + 2 + 799)^2 / (9 + 799) effective rows
    assert "(n = 796.045)" in TransformationTree(max_depth=0).fit(X, y, np.r_[3.0, np.ones(799)]).text()


@each_tree
def test_branches_are_the_condition_of_the_split_above(grower: type[Grower]) -> None:
    X, x = steps([1.0, 5.0, 30.0], [0.0, 4.0, 90.0])
    tree = grower(max_depth=2).fit(X, x)
    assert set(tree.branches) == {node.id for node in tree.nodes} - {1}
    children = tree.nodes[0].children
    assert children is not None
    sides = {str(tree.branches[child]) for child in children}
    assert sides in ({"temp <= 5", "temp > 5"}, {"temp < 17.5", "temp >= 17.5"})


def test_repr_says_what_the_tree_is_of() -> None:
    tree = grown()
    assert repr(tree) == f"<Tree of 'y': {len(tree.leaves)} leaves, depth {tree.depth}>"


def test_repr_of_a_single_leaf_says_leaf() -> None:
    assert repr(grown().prune(0)) == "<Tree of 'y': 1 leaf, depth 0>"


# Comparing, saving, pruning.


@each_tree
def test_trees_of_the_same_rows_are_equal_and_have_equal_hashes(grower: type[Grower]) -> None:
    one, other = grown(grower), grown(grower)
    assert one == other
    assert hash(one) == hash(other)


@each_tree
def test_trees_that_differ_are_not_equal(grower: type[Grower]) -> None:
    tree = grown(grower)
    assert tree != tree.prune(1)
    assert tree != tree.rules


def test_trees_of_different_methods_are_not_equal() -> None:
    assert len({grown(grower) for grower in GROWERS}) == 3


@each_tree
def test_dictionary_is_json_by_the_letter(grower: type[Grower]) -> None:
    # A constant column is not tested: NaN and infinities must not get into the file.
    X, y = bush()
    tree = grower(max_depth=2).fit(X.assign(same=1.0), y)
    assert Tree.from_dict(json.loads(json.dumps(tree.to_dict(), allow_nan=False))) == tree


@each_tree
def test_parameters_from_numpy_are_saved(grower: type[Grower]) -> None:
    depth: Any = np.int64(2)
    tree = grower(max_depth=depth, min_samples_leaf=np.int32(40)).fit(*bush())  # type: ignore[arg-type]
    assert Tree.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree


@each_tree
def test_dictionary_is_not_shared_with_the_tree(grower: type[Grower]) -> None:
    tree = grown(grower)
    values = tree.to_dict()
    values["parameters"]["max_depth"] = 99
    values["nodes"].clear()
    assert tree == grown(grower)


@pytest.mark.parametrize("values", [None, "tree.json", 3, [], {}, {"format": 0}, {"format": "1"}, {"format": 99}])
def test_anything_but_a_dictionary_of_this_format_is_rejected(values: Any) -> None:
    with pytest.raises(FormatError, match=r"Expected a dictionary of Tree.to_dict\(\) in format 1; got"):
        Tree.from_dict(values)


@pytest.mark.parametrize("key", ["method", "parameters", "target", "columns", "edges", "nodes"])
def test_dictionary_without_a_part_is_rejected_by_its_name(key: str) -> None:
    values = grown().to_dict()
    del values[key]
    with pytest.raises(FormatError, match=f"not one of Tree.to_dict.*{key}"):
        Tree.from_dict(values)


@pytest.mark.parametrize("key", ["parameters", "target", "columns", "nodes"])
@pytest.mark.parametrize("value", [None, 3, "text", [None], [{}]])
def test_dictionary_with_a_wrong_part_is_rejected(key: str, value: Any) -> None:
    with pytest.raises(FormatError):
        Tree.from_dict(grown().to_dict() | {key: value})


def test_dictionary_without_nodes_is_rejected() -> None:
    with pytest.raises(FormatError):
        Tree.from_dict(grown().to_dict() | {"nodes": []})


def test_dictionary_with_children_that_are_not_there_is_rejected() -> None:
    values = grown().to_dict()
    values["nodes"] = values["nodes"][:2]
    with pytest.raises(FormatError):
        Tree.from_dict(values)


def test_dictionary_that_splits_a_column_it_lacks_is_rejected() -> None:
    values = grown().to_dict()
    values["nodes"][0]["split"]["column"] = "z"
    with pytest.raises(FormatError):
        Tree.from_dict(values)


@each_tree
@pytest.mark.parametrize("depth", [-1, 1.0, True, "1", None, np.nan])
def test_depth_that_is_not_a_count_is_rejected(grower: type[Grower], depth: Any) -> None:
    with pytest.raises(ParameterError, match="depth must be a whole number >= 0; got"):
        grown(grower).prune(depth)


@each_tree
def test_pruned_tree_knows_its_depth(grower: type[Grower]) -> None:
    assert grown(grower).prune(np.int64(2)).parameters["max_depth"] == 2  # type: ignore[arg-type]


@each_tree
def test_pruning_deeper_than_the_tree_was_grown_claims_no_greater_depth(grower: type[Grower]) -> None:
    # Grown with max_depth=2, it does not contain the tree of max_depth=7.
    tree = grown(grower).prune(2)
    assert tree.prune(7).parameters["max_depth"] == 2


@each_tree
def test_pruning_leaves_the_tree_as_it_was(grower: type[Grower]) -> None:
    tree = grown(grower)
    tree.prune(1)
    assert tree == grown(grower)


@each_tree
def test_pruning_twice_is_pruning_to_the_smaller_depth(grower: type[Grower]) -> None:
    tree = grown(grower)
    assert tree.prune(3).prune(1) == tree.prune(1)


@each_tree
def test_pickled_tree_has_the_same_nodes(grower: type[Grower]) -> None:
    tree = grown(grower)
    again = pickle.loads(pickle.dumps(tree))
    assert all(isinstance(node, Node) for node in again.nodes)
    assert again == tree


@pytest.mark.parametrize("n", [64, 128])
def test_tests_of_a_small_node_are_those_of_its_own_rows(n: int) -> None:
    """Also where the power of two that holds the node is the number of all rows."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 3))
    x = 3.0 * (X[:, 0] > np.sort(X[:, 0])[n // 2 - 4]) + rng.normal(size=n)
    tree = ConditionalInferenceTree(max_depth=2, min_samples_leaf=n // 2 - 5).fit(X, x)
    leaves = tree.apply(X)
    assert len(tree.leaves) == 2
    for leaf in tree.leaves:
        own = leaves == leaf.id
        alone = ConditionalInferenceTree(max_depth=1, min_samples_leaf=n).fit(X[own], x[own]).nodes[0]
        assert leaf.tests is not None
        assert alone.tests is not None
        np.testing.assert_allclose(leaf.tests.statistic, alone.tests.statistic, rtol=1e-9)


@each_tree
@pytest.mark.parametrize("depth", [0, 1, 2, 3, 6])
def test_directions_at_all_splits_lead_to_the_routed_leaf(grower: type[Grower], depth: int) -> None:
    X, y = bush()
    X.loc[::7, "a"] = np.nan
    X.loc[::11, "c"] = None
    tree = grower(max_depth=depth).fit(X, y)
    table = read_like(X, tree.columns)
    routed = tree._routed(table)
    np.testing.assert_array_equal(tree._leaf_numbers(table), routed)
    np.testing.assert_array_equal(tree.apply(X), np.array([leaf.id for leaf in tree.leaves])[routed])
    if len(tree.leaves) <= 9:
        np.testing.assert_array_equal(tree._leaf_by_directions(table), routed)


def test_value_that_training_lacked_is_no_matter_where_no_row_gets_to_its_split() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=600), "b": rng.normal(size=600)})
    y = 5.0 * (X["a"] > 0) + 2.0 * (X["a"] > 0) * (X["b"] > 0) + 0.1 * rng.normal(size=600)
    tree = CartTree(max_depth=2).fit(X, y)
    assert [node.split.column for node in tree.nodes if node.split is not None] == ["a", "b"]
    new = pd.DataFrame({"a": [-1.0, 1.0], "b": [np.nan, 1.0]})
    assert tree.apply(new).tolist() == [2, 5]  # a warning would be an error here
    with pytest.warns(UnseenValueWarning, match="'b'"):
        tree.apply(pd.DataFrame({"a": [1.0], "b": [np.nan]}))
