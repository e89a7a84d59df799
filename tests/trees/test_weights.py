"""A row of frequency 3 is three rows, a row of weight 0 is none; relative weights have no scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from subgrove._core.weights import FrequencyWeights
from subgrove.trees import CartTree, ConditionalInferenceTree, TransformationTree, Tree

N = 240
TARGETS = ["transformation of numbers", "transformation of counts", "inference of numbers", "inference of levels"]
TARGETS += ["inference of ordered levels", "cart of numbers", "cart of levels"]
each_target = pytest.mark.parametrize("target", TARGETS)
each_tested_target = pytest.mark.parametrize("target", [name for name in TARGETS if not name.startswith("cart")])
maybe_missing = pytest.mark.parametrize("missing", [False, True])


def sample(target: str, missing: bool = False, seed: int = 3) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Columns of every kind and an x that depends on them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "fine": rng.normal(size=N),
            "coarse": rng.integers(0, 5, N).astype(float),
            "colour": rng.choice(["blue", "green", "red", "white"], N).astype(object),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], N), ["s", "m", "l"], ordered=True),
        }
    )
    y = 1.5 * (X["fine"] > 0) + X["colour"].isin(["blue", "red"]) + X["coarse"] / 3 + rng.normal(size=N)
    if missing:
        for name in X:
            X.loc[rng.random(N) < 0.12, name] = np.nan
    if target.endswith("counts"):
        return X, np.floor(2 * y).astype(np.int64)
    if target.endswith("levels"):
        codes = np.searchsorted(np.quantile(y, [0.3, 0.7]), y)
        labels = np.array(["p", "q", "r"])[codes]
        return X, pd.Series(pd.Categorical(labels, ["p", "q", "r"], ordered="ordered" in target))
    return X, y


def grow(target: str, X: pd.DataFrame, x: pd.Series[Any], weights: Any = None, **parameters: Any) -> Tree:
    if target.startswith("cart"):
        return CartTree(**{"min_samples_leaf": 12, "cp": 0.003} | parameters).fit(X, x, weights)
    if target.startswith("inference"):
        return ConditionalInferenceTree(**{"min_samples_leaf": 12, "alpha": 0.3} | parameters).fit(X, x, weights)
    return TransformationTree(**{"min_samples_leaf": 12, "alpha": 0.3} | parameters).fit(X, x, weights)


def structure(tree: Tree) -> list[tuple[Any, ...]]:
    """All of a tree that is no statistic."""
    return [(node.id, node.parent, node.n, node.children, node.split, node.stop) for node in tree.nodes]


def counts(seed: int = 1) -> npt.NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, 4, N)


def weighted_and_repeated(target: str, missing: bool) -> tuple[Tree, Tree]:
    X, x = sample(target, missing)
    rows = np.repeat(np.arange(N), counts())
    return grow(target, X, x, FrequencyWeights(counts())), grow(target, X.iloc[rows], x.iloc[rows])


@each_target
@maybe_missing
def test_integer_weights_give_the_splits_and_counts_of_duplicated_rows(target: str, missing: bool) -> None:
    weighted, repeated = weighted_and_repeated(target, missing)
    assert len(weighted.leaves) > 3
    assert structure(weighted) == structure(repeated)


@each_target
@maybe_missing
def test_integer_weights_give_the_rules_of_duplicated_rows(target: str, missing: bool) -> None:
    weighted, repeated = weighted_and_repeated(target, missing)
    assert weighted.rules == repeated.rules


@each_tested_target
@maybe_missing
def test_integer_weights_give_the_tests_of_duplicated_rows(target: str, missing: bool) -> None:
    weighted, repeated = weighted_and_repeated(target, missing)
    for one, other in zip(weighted.nodes, repeated.nodes, strict=True):
        if one.tests is None or other.tests is None:
            assert one.tests is other.tests
            continue
        # Scores of a small node may vary 1.5e-8 times less in one direction than in another: 8 of 16 digits go.
        rtol = 1e-9 if one.id == 1 or target.startswith("inference") else 1e-7
        np.testing.assert_array_equal(one.tests.df, other.tests.df)
        np.testing.assert_allclose(one.tests.statistic, other.tests.statistic, rtol=rtol, atol=1e-12)
        np.testing.assert_allclose(one.tests.log_p, other.tests.log_p, rtol=rtol, atol=1e-12)


@each_target
def test_integer_weights_give_the_distribution_of_duplicated_rows(target: str) -> None:
    weighted, repeated = weighted_and_repeated(target, missing=True)
    assert weighted.edges == repeated.edges
    for one, other in zip(weighted.nodes, repeated.nodes, strict=True):
        np.testing.assert_array_equal(one.counts, other.counts)


@pytest.mark.parametrize("target", TARGETS[:2])
@maybe_missing
def test_integer_weights_give_the_likelihood_of_duplicated_rows(target: str, missing: bool) -> None:
    weighted, repeated = weighted_and_repeated(target, missing)
    one, other = ([node.log_likelihood for node in tree.nodes if node.tests] for tree in (weighted, repeated))
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("target", TARGETS[:2])
def test_weight_of_a_row_counts_once_in_its_score(target: str) -> None:
    # R multiplies scores by weights and then weights them again; doubling all rows would then not double n alone.
    X, x = sample(target)
    once, twice = (
        grow(target, X, x, weights, max_depth=1).nodes[0].tests for weights in (None, FrequencyWeights(np.full(N, 2)))
    )
    assert once is not None
    assert twice is not None
    np.testing.assert_allclose(twice.statistic, once.statistic * (2 * N - 1) / (N - 1), rtol=1e-7)


@each_target
@maybe_missing
def test_weight_0_leaves_the_row_out(target: str, missing: bool) -> None:
    X, x = sample(target, missing)
    kept = counts() > 0
    left_out, dropped = grow(target, X, x, kept.astype(float)), grow(target, X[kept], x[kept])
    assert structure(left_out) == structure(dropped)
    assert left_out.rules == dropped.rules


@each_target
def test_row_of_weight_0_is_assigned_a_leaf(target: str) -> None:
    X, x = sample(target)
    kept = counts() > 0
    leaves = grow(target, X, x, kept.astype(float)).apply(X)
    np.testing.assert_array_equal(leaves, grow(target, X[kept], x[kept]).apply(X))


@each_target
def test_extreme_value_of_x_without_weight_does_not_widen_its_range(target: str) -> None:
    if target.endswith("levels"):
        pytest.skip("levels have no range")
    X, x = sample(target)
    weights = np.ones(N)
    weights[0] = 0
    far = x.copy()
    far.iloc[0] = 10**6
    assert grow(target, X, far, weights).to_dict() == grow(target, X, x, weights).to_dict()


@each_target
@maybe_missing
@pytest.mark.parametrize("weights", [np.ones(N), np.ones(N, dtype=int), [1] * N, pd.Series(1, index=range(5, N + 5))])
def test_weights_of_1_are_no_weights(target: str, missing: bool, weights: Any) -> None:
    X, x = sample(target, missing)
    assert grow(target, X, x, weights) == grow(target, X, x)


@each_tested_target
def test_frequencies_are_counts_so_their_scale_matters(target: str) -> None:
    X, x = sample(target)
    once, often = (grow(target, X, x, FrequencyWeights(np.full(N, n)), max_depth=1).nodes[0] for n in (1, 5))
    assert 5 * once.n == often.n == 5 * N
    assert once.p_value is not None
    assert often.p_value is not None
    assert often.p_value < once.p_value


@each_target
def test_scale_of_relative_weights_does_not_matter(target: str) -> None:
    """The user saw: with survey weights of mean 1000 every split is significant."""
    X, x = sample(target)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, N)
    one, two = (grow(target, X, x, factor * weights) for factor in (1.0, 1024.0))
    assert one == two


@each_target
def test_leaves_share_the_effective_number_of_rows(target: str) -> None:
    X, x = sample(target)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, N)
    tree = grow(target, X, x, weights)
    leaves, kish = tree.apply(X), weights.sum() ** 2 / (weights**2).sum()
    assert tree.nodes[0].n == pytest.approx(kish)
    for leaf in tree.leaves:
        assert leaf.n == pytest.approx(kish * weights[leaves == leaf.id].sum() / weights.sum())


@each_target
def test_pruned_weighted_tree_is_the_tree_of_that_depth(target: str) -> None:
    X, x = sample(target, missing=True)
    tree = grow(target, X, x, FrequencyWeights(counts()))
    for depth in range(tree.depth + 1):
        grown, pruned = grow(target, X, x, FrequencyWeights(counts()), max_depth=depth), tree.prune(depth)
        assert replace(grown, parameters={}) == replace(pruned, parameters={})
