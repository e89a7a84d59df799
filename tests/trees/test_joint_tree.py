"""Trees of several features at once."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest

from subgrove._core.weights import FrequencyWeights
from subgrove._native import loader
from subgrove.exceptions import InputError, LengthError, ParameterError
from subgrove.trees import ConditionalInferenceTree, JointTree, TransformationTree, Tree

N = 600


def sample(n: int = N) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Columns of every kind, and features of every kind that depend on some of them."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.integers(0, 6, n).astype(float),
            "c": rng.choice(["u", "v", "w"], n),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n), ["s", "m", "l"], ordered=True),
        }
    )
    mean = 1.5 * (X["a"] > 0) + 0.5 * (X["b"] > 2)
    xs = pd.DataFrame(
        {
            "fine": mean + rng.normal(size=n),
            "spread": np.where(X["c"] == "u", 3.0, 1.0) * rng.normal(size=n),
            "count": rng.poisson(2 + 3 * (X["b"] > 2)),
            "binary": (mean + rng.normal(size=n) > 1).astype(float),
            "level": np.array(["p", "q", "r"])[np.digitize(mean + rng.normal(size=n), [0, 1])],
            "rank": pd.Categorical(
                np.array(["low", "mid", "high"])[np.digitize(mean + rng.normal(size=n), [0, 1])],
                ["low", "mid", "high"],
                ordered=True,
            ),
        }
    )
    return X, xs


def same_growth(one: Tree, other: Tree) -> None:
    """Both trees have the same splits, tests and counts."""
    assert [(node.id, node.n, node.children, node.split, node.stop, node.p_value) for node in one.nodes] == [
        (node.id, node.n, node.children, node.split, node.stop, node.p_value) for node in other.nodes
    ]
    for mine, theirs in zip(one.nodes, other.nodes, strict=True):
        np.testing.assert_array_equal(mine.counts, theirs.counts)
        assert (mine.tests is None) == (theirs.tests is None)
        if mine.tests is not None and theirs.tests is not None:
            np.testing.assert_array_equal(mine.tests.statistic, theirs.tests.statistic)


# One member: the tree of that feature.


@pytest.mark.parametrize("name", ["fine", "spread", "count"])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_numeric_feature_has_its_transformation_tree(name: str, weighted: bool) -> None:
    X, xs = sample()
    weights = np.random.default_rng(0).integers(0, 4, N) if weighted else None
    alone = TransformationTree(min_samples_leaf=20).fit(X, xs[name], weights)
    assert len(alone.leaves) > 1
    same_growth(JointTree(min_samples_leaf=20).fit(X, xs[[name]], weights), alone)


@pytest.mark.parametrize("name", ["binary", "level", "rank"])
def test_one_other_feature_has_its_conditional_inference_tree(name: str) -> None:
    X, xs = sample()
    alone = ConditionalInferenceTree(min_samples_leaf=20).fit(X, xs[name])
    assert len(alone.leaves) > 1
    same_growth(JointTree(min_samples_leaf=20).fit(X, xs[[name]]), alone)


def test_target_of_one_feature_is_that_feature() -> None:
    X, xs = sample()
    assert (
        JointTree(max_depth=1).fit(X, xs[["fine"]]).target == TransformationTree(max_depth=1).fit(X, xs["fine"]).target
    )


# Several members.


def test_tree_sees_what_each_feature_depends_on() -> None:
    X, xs = sample()
    tree = JointTree(max_depth=3).fit(X, xs[["fine", "spread"]])
    used = {node.split.column for node in tree.nodes if node.split is not None}
    assert {"a", "c"} <= used


def test_features_of_every_kind_share_a_tree() -> None:
    X, xs = sample()
    tree = JointTree(max_depth=2).fit(X, xs)
    tests = tree.nodes[0].tests
    assert tests is not None
    # 6 scores of each numeric feature, 1 of two values, 2 free ones of three levels, 1 of ordered levels.
    assert tests["a"].df == 6 + 6 + 6 + 1 + 2 + 1
    assert tests["c"].df == 2 * tests["a"].df
    assert (tree.method, tree.target.name) == ("joint", "fine + spread + count + binary + level + rank")


def test_statistic_is_that_of_all_scores_together() -> None:
    """Of two features with one score each, by the formula of the test."""
    X, xs = sample()
    scores = np.column_stack([xs["binary"], xs["rank"].cat.codes]).astype(float)
    scores -= scores.mean(axis=0)
    g = X["a"] - X["a"].mean()
    linear = g.to_numpy() @ scores
    covariance = scores.T @ scores / N * (g**2).sum() * N / (N - 1)
    tests = JointTree(max_depth=1).fit(X, xs[["binary", "rank"]]).nodes[0].tests
    assert tests is not None
    assert tests["a"].statistic == pytest.approx(linear @ np.linalg.solve(covariance, linear))


def test_order_of_features_does_not_matter() -> None:
    X, xs = sample()
    one, other = (JointTree().fit(X, xs[names]) for names in (["fine", "level", "spread"], ["spread", "fine", "level"]))
    assert one.rules == other.rules


def test_constant_feature_has_no_say() -> None:
    X, xs = sample()
    one, other = (JointTree().fit(X, table) for table in (xs[["fine", "rank"]], xs[["fine", "rank"]].assign(same=1.0)))
    assert other.target.name == "fine + rank + same"
    assert one.rules == other.rules
    same_growth(one, other)


def test_feature_that_is_constant_in_a_part_has_no_say_there() -> None:
    X, xs = sample()
    some = np.where(X["a"] > 0, xs["spread"] + 9, 0.0)
    tree = JointTree(max_depth=2).fit(X, xs[["fine"]].assign(some=some))
    split, left = tree.nodes[0].split, tree.nodes[1]
    assert split is not None
    assert (split.column, split.threshold) == ("a", X["a"][X["a"] <= 0].max())
    assert left.tests is not None
    assert left.tests["b"].df == 6


def test_scale_and_origin_of_a_feature_do_not_matter() -> None:
    """Neither to itself nor to those beside it: scores that vary little are not lost beside larger ones."""
    X, xs = sample()
    pair = xs[["fine", "binary"]]
    plain = JointTree().fit(X, pair)
    scaled = JointTree().fit(X, pair.assign(binary=2.0**30 + pair["binary"], fine=pair["fine"] * 1e-6))
    for one, other in zip(plain.nodes, scaled.nodes, strict=True):
        assert (one.split, one.stop) == (other.split, other.stop)
        if one.tests is not None and other.tests is not None:
            np.testing.assert_array_equal(one.tests.df, other.tests.df)


def test_heavy_tails_of_one_feature_hide_no_other() -> None:
    X, xs = sample()
    wild = np.random.default_rng(1).standard_t(0.4, N)
    tests = JointTree(max_depth=1).fit(X, xs[["fine"]].assign(wild=wild)).nodes[0].tests
    alone = TransformationTree(max_depth=1).fit(X, wild).nodes[0].tests
    assert tests is not None
    assert alone is not None
    assert tests["a"].df == 6 + alone["a"].df
    assert tests["a"].p_value < 1e-20


@pytest.mark.parametrize("members", [3, 7])
@pytest.mark.parametrize("loops", ["compiled", "numpy"])
def test_any_number_of_scores_is_taken(members: int, loops: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """18 scores are within what the compiled scan takes, 42 are beyond."""
    assert 18 <= loader.MAX_COEFFICIENTS < 42
    rng = np.random.default_rng(2)
    X = rng.normal(size=(900, 3))
    xs = rng.normal(size=(900, members)) + 2.0 * (X[:, :1] > 0.3)
    if loops == "numpy":
        monkeypatch.setattr(loader, "tree_fit", None)
    tree = JointTree(max_depth=1).fit(X, xs)
    tests, split = tree.nodes[0].tests, tree.nodes[0].split
    assert tests is not None
    assert split is not None
    assert tests["x0"].df == 6 * members
    assert (split.column, split.threshold) == ("x0", X[X[:, 0] <= 0.3, 0].max())


@pytest.mark.parametrize("n", [60, 400])
def test_level_holds_if_nothing_depends_on_anything(n: int) -> None:
    """18 scores, 1 column: of 200 samples, 5 % are expected and 10 % are 3.2 standard errors above."""
    rng = np.random.default_rng(7)
    split = 0
    for _ in range(200):
        xs = np.column_stack([rng.normal(size=n), rng.gamma(2.0, size=n), rng.uniform(size=n)])
        split += JointTree(max_depth=1, min_samples_leaf=5).fit(rng.normal(size=(n, 1)), xs).depth
    assert split <= 20


# What the tree holds.


@pytest.fixture(scope="module")
def grown() -> Tree:
    X, xs = sample()
    return JointTree(max_depth=3).fit(X, xs)


def test_text_has_the_names_of_all_features(grown: Tree) -> None:
    lines = grown.text().splitlines()
    assert lines[0] == f"{grown.target.name}: joint tree, 600 rows, {len(grown.leaves)} leaves"
    assert len(lines) == len(grown.nodes) + 1


def test_nodes_hold_no_numbers_that_mean_nothing(grown: Tree) -> None:
    for node in grown.nodes:
        assert (node.theta, node.log_likelihood, node.risk) == (None, None, None)
        assert node.counts.shape == (0,)
    assert grown.edges == ()
    assert (grown.target.kind, grown.target.levels) == ("nominal", ())


def test_rows_are_in_the_leaf_of_their_rule(grown: Tree) -> None:
    X, _ = sample()
    leaves = grown.apply(X)
    assert {leaf.id: leaf.n for leaf in grown.leaves} == dict(zip(*np.unique(leaves, return_counts=True), strict=True))


def test_pruning_is_growing_less(grown: Tree) -> None:
    X, xs = sample()
    for depth in range(4):
        less = JointTree(max_depth=depth).fit(X, xs)
        assert grown.prune(depth).rules == less.rules
        if loader.tree_fit is not None:  # in NumPy the last digit of a fit may depend on the nodes beside it
            assert grown.prune(depth) == less


def test_tree_is_saved_and_read_back(grown: Tree) -> None:
    assert Tree.from_dict(json.loads(json.dumps(grown.to_dict(), allow_nan=False))) == grown
    assert pickle.loads(pickle.dumps(grown)) == grown


# Rows and input.


def test_rows_where_any_feature_is_missing_are_left_out() -> None:
    X, xs = sample()
    xs = xs[["fine", "level"]].copy()
    xs.loc[::7, "fine"] = np.nan
    xs.loc[::5, "level"] = None
    complete = xs.notna().all(axis=1).to_numpy()
    assert JointTree().fit(X, xs).rules == JointTree().fit(X[complete], xs[complete]).rules


def test_integer_weights_are_duplicated_rows() -> None:
    X, xs = sample()
    weights = np.random.default_rng(3).integers(0, 3, N)
    rows = np.repeat(np.arange(N), weights)
    weighted, repeated = JointTree().fit(X, xs, FrequencyWeights(weights)), JointTree().fit(X.iloc[rows], xs.iloc[rows])
    assert weighted.rules == repeated.rules
    assert [node.n for node in weighted.nodes] == [node.n for node in repeated.nodes]


def test_kinds_are_what_the_user_says() -> None:
    X, xs = sample()
    pair = xs[["fine", "binary"]]
    tree = JointTree(max_depth=1).fit(X, pair, kinds={"b": "nominal"}, xs_kinds={"binary": "nominal"})
    assert tree.columns[1].levels == ("0", "1", "2", "3", "4", "5")
    as_text = JointTree(max_depth=1).fit(X, pair.assign(binary=pair["binary"].astype(str)), kinds={"b": "nominal"})
    assert tree.rules == as_text.rules


def test_containers_may_differ() -> None:
    X, xs = sample()
    expected = JointTree().fit(X, xs[["fine", "level"]]).rules
    frame = pl.DataFrame({"fine": xs["fine"].to_numpy(), "level": xs["level"].to_list()})
    assert JointTree().fit(X, frame).rules == expected


Y, YS = sample(60)
REJECTED: dict[str, tuple[Any, Any, Any, type[Exception], str]] = {
    "fewer rows": (Y, YS[1:], None, LengthError, "xs has 59 rows, but X has 60. Pass one row of xs for each row of X"),
    "a column": (Y, YS["fine"], None, InputError, "xs must be a pandas or polars frame"),
    "no columns": (Y, YS[[]], None, InputError, "xs has 60 rows and 0 columns"),
    "constant": (Y, YS[[]].assign(p=1.0, q=2.0), None, InputError, r"every x \('p \+ q'\) is constant"),
    "one row": (Y[:1], YS[:1], None, InputError, "1 row has a value of every x"),
    "x in X": (Y.assign(fine=YS["fine"]), YS[["fine", "rank"]], None, InputError, "column 'fine' that equals x"),
    "another order": (Y, YS[::-1], None, InputError, "xs has the index labels of X in another order"),
    "weights": (Y, YS, np.ones(3), LengthError, r"sample_weight has shape \(3,\)"),
}


@pytest.mark.parametrize(("X", "xs", "weights", "error", "message"), REJECTED.values(), ids=list(REJECTED))
def test_unusable_input_is_rejected(X: Any, xs: Any, weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        JointTree().fit(X, xs, weights)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"max_depth": -1}, "max_depth"),
        ({"min_samples_leaf": 0}, "min_samples_leaf"),
        ({"alpha": 2}, "alpha"),
        ({"order": 0}, "order"),
    ],
)
def test_parameters_are_checked_before_anything_is_read(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be"):
        JointTree(**parameters).fit("no table", "no table")


def test_parameters_follow_scikit_learn() -> None:
    from sklearn.base import clone

    tree = JointTree(max_depth=3, order=4)
    assert clone(tree) == tree
    with pytest.raises(AttributeError, match="fit returns the fitted object"):
        tree.rules  # noqa: B018  # the access is the claim


def test_order_is_that_of_the_polynomials() -> None:
    X, xs = sample()
    tests = JointTree(max_depth=1, order=3).fit(X, xs[["fine", "spread"]]).nodes[0].tests
    assert tests is not None
    assert tests["a"].df == 8


def test_input_stays_as_it_was() -> None:
    X, xs = sample()
    before: list[npt.NDArray[Any]] = [X.to_numpy().copy(), xs.to_numpy().copy()]
    JointTree(max_depth=2).fit(X, xs)
    np.testing.assert_array_equal(before[0], X.to_numpy())
    np.testing.assert_array_equal(before[1], xs.to_numpy())
