"""ForestNodes permutes within the cells of trees, tree after tree, and no row keeps its own value."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from subgrove._core.execution import Streams
from subgrove._data.replace_columns import Donors, Rows
from subgrove.exceptions import LengthError, ParameterError
from subgrove.samplers.base import FittedSampler
from subgrove.samplers.donors import shuffle_within
from subgrove.samplers.forest_nodes import FittedForestNodes, FittedTargetLeaves, ForestNodes
from subgrove.samplers.forest_reading import associated_columns, grid_cells, node_cells
from subgrove.trees import ConditionalInferenceTree

N_TREES = 3


def table(n: int, seed: int) -> pd.DataFrame:
    """b depends on a, c on nothing."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": a + 0.3 * rng.normal(size=n), "c": rng.normal(size=n)})


TRAIN, TEST = table(600, 0), table(400, 1)
Y = TRAIN.sum(axis=1)
FOREST = RandomForestRegressor(N_TREES, min_samples_leaf=40, max_features=1, random_state=0).fit(TRAIN, Y)


def donors_of(fitted: FittedSampler, X: pd.DataFrame, feature: str, n_repeats: int, **settings: Any) -> list[Rows]:
    resampled = fitted.resample(fitted.read(X), (feature,), Streams(0, feature, n_repeats), exact=False, **settings)
    found = []
    for changes in resampled.draws():
        column = changes[feature]
        assert isinstance(column, Donors)
        assert not column.train
        found.append(column.rows)
    return found


def forest_nodes(**settings: Any) -> FittedForestNodes:
    fitted = ForestNodes(FOREST, **settings).fit(TRAIN)
    assert isinstance(fitted, FittedForestNodes)
    return fitted


@pytest.mark.parametrize(("partition", "cells_of"), [("grid", grid_cells), ("nodes", node_cells)])
def test_donors_are_in_the_cell_of_the_tree_whose_turn_it_is(
    partition: Literal["grid", "nodes"], cells_of: Any
) -> None:
    fitted = forest_nodes(partition=partition)
    seen = fitted.forest.encode(fitted.read(TEST))
    for repeat, rows in enumerate(donors_of(fitted, TEST, "a", 2 * N_TREES)):
        splits = fitted.forest.trees[repeat % N_TREES]
        columns = associated_columns(splits, seen, 0, 0.95)
        assert 1 in columns
        cells = cells_of(splits, seen, columns)
        np.testing.assert_array_equal(cells[rows], cells)
        assert (rows != np.arange(len(rows))).mean() > 0.9
        assert sorted(rows) == list(range(len(rows)))


def test_threshold_of_one_is_the_marginal_permutation() -> None:
    fitted = forest_nodes(threshold=1)
    (rows,) = donors_of(fitted, TEST, "a", 1)
    np.testing.assert_array_equal(rows, shuffle_within(np.zeros(len(TEST), dtype=int), Streams(0, "a", 1)[0]))


def test_resampled_column_keeps_the_dependence_that_the_trees_know() -> None:
    (within,) = donors_of(forest_nodes(), TEST, "a", 1)
    (anywhere,) = donors_of(forest_nodes(threshold=1), TEST, "a", 1)
    a, b = TEST["a"].to_numpy(), TEST["b"].to_numpy()
    assert np.corrcoef(a[within], b)[0, 1] > 0.6
    assert abs(np.corrcoef(a[anywhere], b)[0, 1]) < 0.2


def test_association_of_training_rows_serves_few_rows_to_resample() -> None:
    few = TEST.head(12)
    seen = forest_nodes().forest.encode(forest_nodes().read(few))
    assert associated_columns(forest_nodes().forest.trees[0], seen, 0, 0.95) == ()
    fitted = forest_nodes(association="train")
    assert fitted.used is not None
    assert 1 in fitted.used["a"][0]
    cells = grid_cells(fitted.forest.trees[0], seen, fitted.used["a"][0])
    (rows,) = donors_of(fitted, few, "a", 1)
    np.testing.assert_array_equal(cells[rows], cells)


def test_column_that_the_forest_does_not_know_is_resampled_from_all_rows() -> None:
    for association in ("test", "train"):
        fitted = ForestNodes(FOREST, association=association).fit(TRAIN.assign(other="text"))
        (rows,) = donors_of(fitted, TEST.assign(other="text"), "other", 1)
        assert (rows != np.arange(len(rows))).all()


def test_model_of_the_question_is_the_forest_if_none_was_given() -> None:
    requested = ForestNodes(threshold=0.5)
    assert requested.for_model(FOREST).forest is FOREST
    assert requested.for_model(FOREST).threshold == 0.5
    assert requested.forest is None
    other = RandomForestRegressor(1)
    assert ForestNodes(FOREST).for_model(other).forest is FOREST
    assert ForestNodes(target=Y).for_model(other).forest is None


def test_only_a_target_or_a_training_test_looks_at_the_rows() -> None:
    assert not ForestNodes(FOREST).learns
    assert ForestNodes(FOREST, association="train").learns
    assert ForestNodes(target=Y).learns


def test_weights_count_donors() -> None:
    weights = np.r_[np.full(200, 5.0), np.full(200, 1e-9)]
    (rows,) = donors_of(forest_nodes(threshold=1), TEST, "a", 1, weights=weights)
    assert (rows < 200).all()
    assert (rows[200:] != np.arange(200, 400)).all()


def test_target_tree_is_grown_from_the_other_columns() -> None:
    fitted = ForestNodes(target=Y).fit(TRAIN)
    assert isinstance(fitted, FittedTargetLeaves)
    expected = ConditionalInferenceTree().fit(TRAIN.drop(columns="a"), Y)
    assert fitted.trees["a"].rules == expected.rules
    resampled = fitted.resample(fitted.read(TEST), ("a",), Streams(0, "a", 3))
    assert resampled.groups.rules == tuple(expected.rules.values())
    assert set(resampled.groups.conditioning) <= {"b", "c"}
    leaves = expected.apply(TEST)
    for rows in donors_of(fitted, TEST, "a", 3):
        np.testing.assert_array_equal(leaves[rows], leaves)
        assert (rows != np.arange(len(rows))).all()


def test_tree_of_the_target_can_be_set_and_is_left_as_it_was() -> None:
    tree = ConditionalInferenceTree(max_depth=1)
    fitted = ForestNodes(target=Y, tree=tree).fit(TRAIN, ["a"])
    assert isinstance(fitted, FittedTargetLeaves)
    assert fitted.trees["a"].depth == 1
    assert tree == ConditionalInferenceTree(max_depth=1)


@pytest.mark.parametrize("case", ["constant target", "one column"])
def test_target_that_no_tree_can_grow_on_gives_one_subgroup(case: str) -> None:
    X = TRAIN[["a"]] if case == "one column" else TRAIN
    y = Y if case == "one column" else pd.Series(1.0, index=TRAIN.index)
    fitted = ForestNodes(target=y).fit(X, ["a"])
    (rows,) = donors_of(fitted, X, "a", 1)
    assert (rows != np.arange(len(rows))).all()


def test_target_may_be_classes() -> None:
    fitted = ForestNodes(target=np.where(Y > 0, "high", "low")).fit(TRAIN, ["a"])
    assert isinstance(fitted, FittedTargetLeaves)
    assert fitted.trees["a"].target.kind == "nominal"


def test_target_of_another_length_raises_an_error() -> None:
    with pytest.raises(LengthError, match="target has 600 values, but X has 10 rows"):
        ForestNodes(target=Y).fit(TRAIN.head(10))


@pytest.mark.parametrize("settings", [{}, {"forest": FOREST, "target": Y}])
def test_either_a_forest_or_a_target_is_needed(settings: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"needs either forest.* or target.*(neither|both)"):
        ForestNodes(**settings).fit(TRAIN)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 1.5}, "threshold must be a number from 0 to 1"),
        ({"partition": "leaves"}, "partition must be 'grid' or 'nodes'"),
        ({"association": "all"}, "association must be 'test' or 'train'"),
    ],
)
def test_parameters_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        forest_nodes(**settings)


def test_every_donor_of_a_cell_is_equally_likely() -> None:
    cells = np.array([0, 0, 0, 0, 1, 2, 2])
    counts = np.zeros((7, 7))
    rng = np.random.default_rng(0)
    for _ in range(3000):
        counts[np.arange(7), shuffle_within(cells, rng)] += 1
    shares = counts / 3000
    # Each of three others one time in three, with a standard deviation of sqrt(2 / 9 / 3000) = 0.0086.
    expected = np.zeros((7, 7))
    expected[:4, :4] = (1 - np.eye(4)) / 3
    expected[4, 4] = 1
    expected[5, 6] = expected[6, 5] = 1
    assert shares == pytest.approx(expected, abs=4 * 0.0086)


def test_plain_shuffle_has_fixed_points_as_often_as_chance_has_it() -> None:
    rng = np.random.default_rng(0)
    cells = np.array([0, 0, 0, 0, 1])
    kept = np.mean([shuffle_within(cells, rng, fixed_points=True) == np.arange(5) for _ in range(3000)], axis=0)
    assert kept == pytest.approx([0.25] * 4 + [1.0], abs=4 * np.sqrt(0.25 * 0.75 / 3000))
