"""Finding subgroups: the tree class of each feature, the columns of its rules, and its growth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._subgroups import find_subgroups
from subgrove.exceptions import ColumnError, InputError, LengthError, ParameterError
from subgrove.trees import CartTree, ConditionalInferenceTree, TransformationTree

BIKE = sg.datasets.bike().X
NUMERIC = ["temp", "hum", "wind"]
TREES: list[Any] = ["transformation", "cart"]


def mixed(n: int = 400) -> pd.DataFrame:
    """A column of each kind; each depends on the first."""
    rng = np.random.default_rng(4)
    a = rng.normal(size=n)
    return pd.DataFrame(
        {
            "a": a,
            "b": a + rng.normal(size=n),
            "count": rng.poisson(np.exp(1 + 0.5 * (a > 0))),
            "binary": (a + rng.normal(size=n) > 0).astype(float),
            "flag": a + rng.normal(size=n) > 0,
            "level": np.array(["p", "q", "r"])[np.digitize(a + rng.normal(size=n), [-0.5, 0.5])],
            "rank": pd.Categorical(
                np.array(["low", "mid", "high"])[np.digitize(a + rng.normal(size=n), [-0.5, 0.5])],
                ["low", "mid", "high"],
                ordered=True,
            ),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta((30 * a).round(), unit="D"),
        }
    )


# Which tree.


@pytest.mark.parametrize("name", list(BIKE))
def test_feature_has_the_tree_that_fit_grows(name: str) -> None:
    grower = TransformationTree if name in NUMERIC else ConditionalInferenceTree
    expected = grower(max_depth=3, min_samples_leaf=20, alpha=0.2).fit(BIKE.drop(columns=name), BIKE[name])
    assert find_subgroups(BIKE, features=name, max_depth=3, min_samples_leaf=20, alpha=0.2)[name].tree == expected


@pytest.mark.parametrize("name", list(BIKE))
def test_cart_is_that_of_the_papers_code(name: str) -> None:
    expected = CartTree(max_depth=3, min_samples_leaf=20, min_samples_split=60, cp=0.01).fit(
        BIKE.drop(columns=name), BIKE[name]
    )
    found = find_subgroups(BIKE, features=name, tree="cart", max_depth=3, min_samples_leaf=20)[name].tree
    splits = [[node.split and node.split.column for node in tree.nodes] for tree in (found, expected)]
    assert splits[0] == splits[1]
    np.testing.assert_array_equal(found.apply(BIKE), expected.apply(BIKE))  # split points may have fewer digits
    assert found.method == "cart"


def test_tree_suits_the_kind_of_the_feature() -> None:
    methods = {name: partition.tree.method for name, partition in find_subgroups(mixed()).items()}
    transformed = {name for name, method in methods.items() if method == "transformation"}
    assert transformed == {"a", "b", "count", "day"}
    assert set(methods.values()) == {"transformation", "conditional_inference"}


def test_kind_is_what_the_user_says() -> None:
    found = find_subgroups(mixed(), features="count", kinds={"count": "ordered"})
    assert found["count"].tree.method == "conditional_inference"
    assert next(column for column in found.columns if column.name == "count").kind == "ordered"


def test_two_values_are_counted_among_the_rows_that_take_part() -> None:
    X = mixed()
    X.loc[0, "binary"] = 7.0
    weights = np.ones(len(X))
    assert find_subgroups(X, features="binary")["binary"].tree.method == "transformation"
    weights[0] = 0
    assert find_subgroups(X, features="binary", sample_weight=weights)["binary"].tree.method == "conditional_inference"


# Features and columns.


def test_every_column_is_a_feature_by_default() -> None:
    assert list(find_subgroups(BIKE)) == list(BIKE)


@pytest.mark.parametrize("container", [list, tuple, pd.Index, np.array])
def test_features_are_those_requested_in_their_order(container: Any) -> None:
    assert list(find_subgroups(BIKE, features=container(["wind", "temp"]))) == ["wind", "temp"]


def test_name_alone_is_one_feature() -> None:
    assert list(find_subgroups(BIKE, features="hum")) == ["hum"]


def test_subset_and_order_of_features_change_no_tree() -> None:
    whole, some = find_subgroups(BIKE), find_subgroups(BIKE, features=["wind", "season"])
    assert all(some[name] == whole[name] for name in some)


def test_feature_is_not_among_its_own_columns() -> None:
    for name, partition in find_subgroups(BIKE).items():
        assert [column.name for column in partition.tree.columns] == [other for other in BIKE if other != name]


@pytest.mark.parametrize("given", ["season", ["season"], ["season", "temp"], ("temp", "season", "season")])
def test_rules_use_the_given_columns_only(given: Any) -> None:
    found = find_subgroups(BIKE, features=["temp", "hum"], given=given)
    names = {"season"} if given in ("season", ["season"]) else {"season", "temp"}
    assert {column.name for column in found["hum"].tree.columns} == names
    assert [column.name for column in found["temp"].tree.columns] == ["season"]
    assert found["temp"].conditioning == ("season",)


def test_numbers_as_labels_of_columns_are_names() -> None:
    X = pd.DataFrame(mixed()[["a", "b"]].to_numpy())
    assert list(find_subgroups(X, features=[1], given=0)) == ["1"]


def test_depth_0_leaves_one_subgroup() -> None:
    for partition in find_subgroups(BIKE, max_depth=0).values():
        assert partition.rules == ("all rows",)
        assert partition.sizes == (731,)
        assert partition.tree.nodes[0].stop == "depth"


REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "no features": ({"features": []}, "features is empty. Name some columns, or omit features"),
    "unknown feature": (
        {"features": ["temp", "rain"]},
        "features names 'rain', but X has the columns 'season', 'yr', ",
    ),
    "unknown member": ({"features": [("temp", "rain")]}, "features names 'rain', but X has the columns 'season'"),
    "unknown given": ({"given": ["rain", "snow"]}, "given names 'rain', 'snow', but X has the columns 'season', 'yr'"),
    "feature twice": ({"features": ["temp", "temp"]}, "features names 'temp' more than once. Name each feature once"),
    "group twice": (
        {"features": [("temp", "hum"), ("hum", "temp")]},
        "features names 'temp [+] hum', 'hum [+] temp' more",
    ),
    "group of one and itself": ({"features": ["temp", ["temp"]]}, "features names 'temp' more than once"),
    "member twice": ({"features": [("temp", "temp")]}, "names a column twice: 'temp', 'temp'. Name it once"),
    "empty group": ({"features": ["temp", ()]}, "features has a group without columns"),
    "number of features": ({"features": 2.5}, "features must be a name, a position or a list of them; got 2.5"),
    "true given": ({"given": True}, "given must be a name, a position or a list of them; got True"),
    "other tree": ({"tree": "forest"}, "tree must be one of 'transformation', 'cart'; got 'forest'"),
    "no depth": ({"max_depth": None}, "max_depth must be a whole number >= 0; got None"),
    "depth below 0": ({"max_depth": -1}, "max_depth must be a whole number >= 0; got -1"),
    "no rows": ({"min_samples_leaf": 0}, "min_samples_leaf must be a whole number >= 1; got 0"),
    "level above 1": ({"alpha": 1.5}, "alpha must be a number from 0 to 1; got 1.5"),
    "group for cart": (
        {"features": [("temp", "hum")], "tree": "cart"},
        "'temp [+] hum', but .* Use tree='transformation'",
    ),
    "no jobs": ({"n_jobs": 0}, "n_jobs must be a whole number other than 0, or None; got 0"),
    "half a job": ({"n_jobs": 1.5}, "n_jobs must be a whole number other than 0, or None; got 1.5"),
    "other kind": ({"kinds": {"temp": "colour"}}, "kind of 'temp' must be one of numeric, ordered, nominal"),
    "unknown kind": ({"kinds": {"rain": "numeric"}}, "kinds names 'rain'"),
}


@pytest.mark.parametrize(("arguments", "message"), REJECTED.values(), ids=list(REJECTED))
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        find_subgroups(BIKE, **arguments)


def test_group_named_like_a_column_is_rejected() -> None:
    X = mixed()[["a", "b"]].assign(**{"a + b": 1.0, "c": 2.0})
    with pytest.raises(ParameterError, match=r"'a [+] b' more than once"):
        find_subgroups(X, features=["a + b", ("a", "b")])


def test_invalid_table_is_rejected() -> None:
    with pytest.raises(InputError, match="X must be a pandas or polars frame"):
        find_subgroups("X.csv")


def test_weights_of_other_rows_are_rejected() -> None:
    with pytest.raises(LengthError, match="sample_weight has shape"):
        find_subgroups(BIKE, sample_weight=np.ones(3))
    with pytest.raises(InputError, match="sample_weight has the index labels of X in another order"):
        find_subgroups(BIKE, sample_weight=pd.Series(1.0, index=BIKE.index[::-1]))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_error_of_one_feature_names_it(n_jobs: int | None) -> None:
    X = mixed()[["a", "b"]].assign(tiny=np.linspace(0, 1e-305, 400))
    with pytest.raises(InputError, match=r"^Feature 'tiny': tiny has a range of 1e-305, too small for floats"):
        find_subgroups(X, n_jobs=n_jobs)


def test_error_of_a_broken_column_names_it() -> None:
    with pytest.raises(ColumnError, match=r"'b' of X has .* infinite"):
        find_subgroups(mixed().assign(b=np.inf))


# Features that no tree can grow on.


def test_constant_feature_has_one_subgroup() -> None:
    X = mixed().assign(same=1.5, word="only")
    for tree in TREES:
        found = find_subgroups(X, features=["same", "word"], tree=tree)
        for partition in found.values():
            assert partition.rules == ("all rows",)
            assert partition.sizes == (400,)
            assert partition.conditioning == ()
            assert partition.tree.nodes[0].stop == "constant"
            assert set(partition.assign(X)) == {0}


def test_constant_column_is_no_harm_to_others() -> None:
    X = mixed()
    assert find_subgroups(X.assign(same=1.0), features="b")["b"].rules == find_subgroups(X, features="b")["b"].rules


@pytest.mark.parametrize("tree", TREES)
def test_table_of_one_column_has_one_subgroup(tree: Any) -> None:
    X = BIKE[["temp"]]
    partition = find_subgroups(X, tree=tree)["temp"]
    assert partition.rules == ("all rows",)
    assert partition.tree.nodes[0].stop == "no columns"
    assert partition.tree.nodes[0].counts.sum() == 731
    assert partition.assign(X).tolist() == [0] * 731


@pytest.mark.parametrize("given", [[], ["temp"]])
def test_nothing_given_leaves_one_subgroup(given: list[str]) -> None:
    partition = find_subgroups(BIKE, features="temp", given=given)["temp"]
    assert (partition.rules, partition.tree.nodes[0].stop) == (("all rows",), "no columns")
    assert set(partition.assign(BIKE)) == {0}


@pytest.mark.parametrize("column", [[3.0] + [np.nan] * 399, ["p"] + [None] * 399])
def test_feature_with_one_value_has_one_subgroup(column: list[Any]) -> None:
    X = mixed().assign(rare=column)
    partition = find_subgroups(X, features="rare")["rare"]
    assert (partition.rules, partition.sizes, partition.tree.nodes[0].stop) == (("all rows",), (1,), "few rows")
    assert set(partition.assign(X)) == {0}


@pytest.mark.parametrize("column", [[3.0] * 2 + [np.nan] * 398, ["p"] * 2 + [None] * 398])
def test_feature_whose_rows_do_not_count_has_one_subgroup(column: list[Any]) -> None:
    X, weights = mixed().assign(rare=column), np.ones(400)
    weights[:2] = 0
    partition = find_subgroups(X, features="rare", sample_weight=weights)["rare"]
    assert (partition.rules, partition.sizes, partition.tree.nodes[0].stop) == (("all rows",), (0,), "few rows")


def test_table_of_one_row_has_one_subgroup() -> None:
    for partition in find_subgroups(BIKE[:1]).values():
        assert (partition.rules, partition.sizes) == (("all rows",), (1,))


@pytest.mark.parametrize("reason", ["constant", "no columns", "few rows"])
@pytest.mark.parametrize("tree", TREES)
def test_lack_of_a_tree_is_pruned_and_saved_as_a_tree(reason: str, tree: Any) -> None:
    columns: dict[str, Any] = {"constant": 1.0, "no columns": mixed()["a"], "few rows": [1.0] + [np.nan] * 399}
    given: Any = [] if reason == "no columns" else None
    X = mixed()[["b"]].assign(x=columns[reason])
    partition = find_subgroups(X, features="x", tree=tree, given=given)["x"]
    shallow = find_subgroups(X, features="x", tree=tree, given=given, max_depth=0)["x"]
    assert partition.tree.nodes[0].stop == reason
    assert partition.at_depth(0) == shallow
    assert type(partition).from_dict(partition.to_dict()) == partition
    assert "1 leaf" in partition.text()


# Missing values.


def test_rows_without_a_value_are_left_out_but_have_a_subgroup() -> None:
    X = BIKE.copy()
    gone = np.random.default_rng(0).random(len(X)) < 0.2
    X.loc[gone, "temp"] = np.nan
    partition = find_subgroups(X, features="temp")["temp"]
    expected = TransformationTree(max_depth=2).fit(X[~gone].drop(columns="temp"), X.loc[~gone, "temp"])
    assert partition.rules == tuple(expected.rules.values())
    assert sum(partition.sizes) == (~gone).sum()
    assigned = partition.assign(X)
    assert assigned.shape == (731,)
    assert set(assigned[gone]) <= set(range(len(partition)))


def test_missing_values_of_other_columns_have_a_place_in_the_rules() -> None:
    X = BIKE.copy()
    X.loc[X["temp"] > 25, "hum"] = np.nan
    partition = find_subgroups(X, features="temp")["temp"]
    assert any("missing" in rule for rule in partition.rules)
    assert np.bincount(partition.assign(X)).tolist() == list(partition.sizes)
