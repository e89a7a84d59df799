"""Cuts that are moved: to better places, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._data.table import read_table
from subgrove._subgroups.partition import TreeSettings, grow_partition
from subgrove.trees.split_points import refine_split_points
from subgrove.trees.training import Training, training_rows
from subgrove.trees.tree import Tree


def grown(X: pd.DataFrame, x: Any, *, max_depth: int = 2, min_samples_leaf: int = 20) -> tuple[Tree, Training]:
    settings = TreeSettings.checked("transformation", max_depth, min_samples_leaf, 0.05)
    series = read_table(pd.DataFrame({"x": x})).series("x")
    table = read_table(X)
    return grow_partition(table, ("x",), (series,), None, settings).tree, training_rows(table, (series,), None)


def steps(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Levels on either side of 0.3, and below it of -0.4 in another column."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n, 3)), columns=["a", "b", "c"])
    x = np.where(X["a"] > 0.3, 6.0, np.where(X["b"] > -0.4, 3.0, 0.0)) + rng.normal(size=n)
    return X, x


def cuts(tree: Tree) -> dict[str, float]:
    return {node.split.column: float(node.split.threshold or 0) for node in tree.nodes if node.split is not None}


def log_likelihood(tree: Tree, training: Training) -> float:
    """Of normal distributions in the leaves."""
    leaf = tree._leaf_numbers(training.table)
    x = training.values
    total = 0.0
    for k in np.unique(leaf):
        own = x[leaf == k]
        total += -0.5 * len(own) * np.log(own.var())
    return total


def test_cuts_come_closer_to_the_truth() -> None:
    before: list[float] = []
    after: list[float] = []
    for seed in range(20):
        tree, training = grown(*steps(300, seed))
        if set(cuts(tree)) != {"a", "b"}:
            continue
        for errors, one in ((before, tree), (after, refine_split_points(tree, training, 5))):
            errors.append(abs(cuts(one)["a"] - 0.3) + abs(cuts(one)["b"] + 0.4))
    assert len(after) >= 15
    assert np.mean(after) <= np.mean(before)
    assert np.mean(after) < 0.05


@pytest.mark.parametrize("seed", range(5))
def test_rows_become_no_less_likely(seed: int) -> None:
    tree, training = grown(*steps(300, seed))
    assert log_likelihood(refine_split_points(tree, training, 5), training) >= log_likelihood(tree, training) - 1.0


def test_columns_leaves_and_order_stay() -> None:
    tree, training = grown(*steps(300, 1))
    better = refine_split_points(tree, training, 5)
    assert [node.id for node in better.nodes] == [node.id for node in tree.nodes]
    assert [node.split.column if node.split else None for node in better.nodes] == [
        node.split.column if node.split else None for node in tree.nodes
    ]
    assert len(better.leaves) == len(tree.leaves)


def test_numbers_of_rows_are_counted_anew() -> None:
    tree, training = grown(*steps(300, 1))
    better = refine_split_points(tree, training, 5)
    leaf = better._leaf_numbers(training.table)
    assert [node.n for node in better.leaves] == np.bincount(leaf).tolist()
    for node in better.nodes:
        assert np.sum(node.counts) == node.n
        if node.children is not None:
            one, two = (next(each for each in better.nodes if each.id == child) for child in node.children)
            assert one.n + two.n == node.n


def test_the_tree_that_was_given_is_left_as_it_was() -> None:
    tree, training = grown(*steps(300, 2))
    before = tree.to_dict()
    refine_split_points(tree, training, 5)
    assert tree.to_dict() == before


def test_nominal_splits_stay() -> None:
    rng = np.random.default_rng(3)
    kind = np.array(["u", "v", "w"])[rng.integers(0, 3, 300)]
    tree, training = grown(pd.DataFrame({"kind": kind}), 4.0 * (kind == "v") + rng.normal(size=300))
    assert refine_split_points(tree, training, 5) is tree


def test_a_leaf_never_gets_fewer_rows_than_the_minimum() -> None:
    X, x = steps(120, 4)
    tree, training = grown(X, x, min_samples_leaf=10)
    for least in (5, 30, 60):
        better = refine_split_points(tree, training, least)
        assert better is tree or min(node.n for node in better.leaves) >= least


def test_a_tree_without_a_split_stays() -> None:
    rng = np.random.default_rng(5)
    tree, training = grown(pd.DataFrame({"a": rng.normal(size=100)}), rng.normal(size=100))
    assert refine_split_points(tree, training, 5) is tree


def test_missing_values_go_where_they_went() -> None:
    X, x = steps(300, 6)
    X.loc[::9, "a"] = np.nan
    tree, training = grown(X, x)
    better = refine_split_points(tree, training, 5)
    sides = [(node.split.missing, node.split.below) for node in tree.nodes if node.split is not None]
    assert sides == [(node.split.missing, node.split.below) for node in better.nodes if node.split is not None]
    assert sum(node.n for node in better.leaves) == 300


def test_cuts_lie_between_values_that_differ() -> None:
    X, x = steps(300, 7)
    X = X.round(1)
    tree, training = grown(X, x)
    for name, cut in cuts(refine_split_points(tree, training, 5)).items():
        values = np.unique(X[name])
        assert values.min() <= cut < values.max()


def test_a_feature_without_spread_in_a_leaf_does_no_harm() -> None:
    rng = np.random.default_rng(8)
    X = pd.DataFrame({"a": rng.uniform(size=200)})
    x = np.where(X["a"] > 0.5, rng.normal(size=200), 0.0)
    tree, training = grown(X, x)
    assert cuts(refine_split_points(tree, training, 5))["a"] == pytest.approx(0.5, abs=0.05)


def test_training_rows_are_not_changed() -> None:
    X, x = steps(200, 9)
    tree, training = grown(X, x)
    before = training.values.copy()
    refine_split_points(tree, training, 5)
    np.testing.assert_array_equal(training.values, before)
