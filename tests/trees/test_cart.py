"""What CartTree promises; `tests/reference/test_rpart.py` compares it with R."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from subgrove._core.weights import FrequencyWeights
from subgrove._data.table import Kind
from subgrove.exceptions import InputError, ParameterError
from subgrove.trees.cart import CartTree
from subgrove.trees.nodes import Node, Split, collapse
from subgrove.trees.tree import Tree

SMALL: dict[str, Any] = {"min_samples_leaf": 1, "min_samples_split": 2, "cp": 0.0}
EPS = float(np.finfo(float).eps)
OUT_OF_RANGE = [
    ("max_depth", -1),
    ("max_depth", 2.5),
    ("min_samples_leaf", 0),
    ("min_samples_split", 1),
    ("cp", -0.1),
    ("cp", 2),
]
TARGETS = ["numeric", "ordered", "two classes", "four classes"]


def sample(target: str, n: int = 600, seed: int = 1, missing: bool = False) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Numeric columns with and without ties, an ordered one and a nominal one, and x that depends on all of them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "fine": rng.normal(size=n),
            "coarse": rng.integers(0, 6, n).astype(float),
            "size": pd.Categorical(rng.choice(["s", "m", "l", "xl"], n), ["s", "m", "l", "xl"], ordered=True),
            "colour": pd.Categorical(rng.choice(list("abcdefg"), n)),
        }
    )
    effect = X["colour"].cat.codes % 3 + (X["fine"] > 0.3) * X["coarse"] / 2 + X["size"].cat.codes / 3
    y = effect.to_numpy() + rng.normal(size=n)
    if missing:
        for name in X.columns:
            X.loc[rng.random(n) < 0.15, name] = np.nan
    if target == "numeric":
        return X, pd.Series(y, name="y")
    n_classes = 2 if target == "two classes" else 4
    codes = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    labels = pd.Categorical(np.array(list("pqrs"))[codes], list("pqrs")[:n_classes], ordered=target == "ordered")
    return X, pd.Series(labels, name="y")


def structure(tree: Tree) -> list[tuple[Any, ...]]:
    """All of a tree but its numbers that rounding may touch, and why leaves are leaves."""
    return [(node.id, node.parent, node.depth, node.n, node.children, node.split) for node in tree.nodes]


def groups(leaves: npt.NDArray[np.intp]) -> set[frozenset[int]]:
    """A partition of rows without the names of its parts."""
    return {frozenset(np.flatnonzero(leaves == leaf).tolist()) for leaf in np.unique(leaves)}


def root_split(tree: Tree) -> Split:
    split = tree.nodes[0].split
    assert split is not None
    return split


def sum_of_squares(x: npt.NDArray[Any], side: npt.NDArray[np.bool_]) -> float:
    """Sum of squares of the columns of x around their means, on each side of a cut."""
    return float(sum(((x[rows] - x[rows].mean(axis=0)) ** 2).sum() for rows in (side, ~side)))


def test_cut_of_six_rows_is_the_one_computed_by_hand() -> None:
    # Sum of squares 301 - 31^2 / 6; after the cut between 3 and 5 it is 1 - 1^2 / 3 on one side and 0 on the other.
    X = pd.DataFrame({"a": [1.0, 2, 3, 5, 6, 7]})
    x = [10.0, 10, 10, 0, 0, 1]
    tree = CartTree(max_depth=1, **SMALL).fit(X, x)
    assert root_split(tree) == Split("a", "numeric", threshold=4.0, strict=True, below="right")
    assert [node.n for node in tree.nodes] == [6, 3, 3]
    assert [node.risk for node in tree.nodes] == pytest.approx([301 - 961 / 6, 2 / 3, 0])


def test_gini_prefers_a_pure_child_where_the_error_rate_sees_no_difference() -> None:
    # Elements of Statistical Learning, 9.2.3: 400 + 400 rows into (300, 100), (100, 300) or (200, 400), (200, 0).
    X = pd.DataFrame({"even": [0.0] * 300 + [1] * 100 + [0] * 100 + [1] * 300, "pure": [0.0] * 200 + [1] * 600})
    x = pd.Series(["a"] * 400 + ["b"] * 400)
    tree = CartTree(max_depth=1).fit(X, x)
    assert root_split(tree).column == "pure"
    assert [node.risk for node in tree.nodes] == [400, 0, 200]


@pytest.mark.parametrize("target", TARGETS)
def test_left_child_has_the_smaller_mean_of_x_or_of_the_number_of_its_level(target: str) -> None:
    X, x = sample(target)
    leaves = CartTree(max_depth=1).fit(X, x).apply(X)
    numbers = x if target == "numeric" else x.cat.codes
    assert numbers[leaves == 2].mean() < numbers[leaves == 3].mean()


def test_values_below_go_right_where_both_children_have_the_same_mean_class() -> None:
    X = pd.DataFrame({"a": [0.0] * 50 + [1.0] * 50})
    x = pd.Series(["p"] * 25 + ["r"] * 25 + ["q"] * 50)
    tree = CartTree(max_depth=1, min_samples_split=40, min_samples_leaf=20).fit(X, x)
    assert root_split(tree).below == "right"


def test_first_column_and_lowest_cut_win_ties() -> None:
    X = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [4.0, 3, 2, 1]})
    split = root_split(CartTree(max_depth=1, **SMALL).fit(X, [0.0, 1.0, 1.0, 0.0]))
    assert (split.column, split.threshold) == ("a", 1.5)


@pytest.mark.parametrize("seed", range(20))
def test_split_with_missing_values_is_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random(25) < 0.3, np.nan, rng.integers(0, 8, 25))
    x = rng.normal(size=25) + np.where(np.isnan(a), rng.normal(), 0)
    X = pd.DataFrame({"a": a})
    leaves = CartTree(max_depth=1, min_samples_leaf=3, min_samples_split=2, cp=0).fit(X, x).apply(X)
    missing = np.isnan(a)
    below = [a < cut for cut in np.unique(a[~missing])] + [~missing]
    sides = [side for first in below for side in (first, first | missing) if 3 <= side.sum() <= 22]
    assert sum_of_squares(x, leaves == 2) == pytest.approx(min(sum_of_squares(x, side) for side in sides))


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_split_of_a_nominal_column_is_the_best_of_all_partitions(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 6, 90)
    # Two levels have another frequent class, so that the split reduces the error as well and is not collapsed.
    x = np.where(rng.random(90) < 0.5, a < 2, rng.integers(0, n_classes, 90) if n_classes > 1 else rng.normal(size=90))
    X = pd.DataFrame({"a": a.astype(str)})
    tree = CartTree(max_depth=1, **SMALL).fit(X, x, x_kind="nominal" if n_classes > 1 else "numeric")
    # The weighted Gini impurity is the sum of squares of the indicators of the classes.
    columns = 1.0 * (x[:, np.newaxis] == np.arange(n_classes)) if n_classes > 1 else x
    sides = [np.isin(a, chosen) for size in (1, 2, 3) for chosen in itertools.combinations(range(6), size)]
    best = min(sum_of_squares(columns, side) for side in sides)
    assert sum_of_squares(columns, tree.apply(X) == 2) == pytest.approx(best)


def test_many_levels_and_many_classes_are_separated() -> None:
    # 40 levels in two kinds with different frequencies of three classes: more partitions than can be tried.
    rng = np.random.default_rng(0)
    level = rng.integers(0, 40, 4000)
    kind = level % 2
    x = np.where(rng.random(4000) < 0.8, np.where(kind == 0, 0, rng.integers(1, 3, 4000)), rng.integers(0, 3, 4000))
    X = pd.DataFrame({"level": pd.Categorical([f"v{value:02d}" for value in level])})
    tree = CartTree(max_depth=1).fit(X, x, x_kind="nominal")
    assert groups(tree.apply(X)) == groups(kind)


@pytest.mark.parametrize("values", [(1.0 + EPS, 1.0 + 2 * EPS), (0.0, 5e-324), (1e308, 1.7e308)])
def test_any_two_floats_are_separated(values: tuple[float, float]) -> None:
    X = pd.DataFrame({"a": np.repeat(values, 30)})
    tree = CartTree(min_samples_split=60).fit(X, np.repeat([0.0, 1.0], 30))
    assert tree.apply(X).tolist() == [2] * 30 + [3] * 30


def test_split_of_an_ordered_column_says_how_many_levels_lie_below() -> None:
    sizes = pd.Categorical(["s", "l"] * 50, ["s", "m", "l", "xl"], ordered=True)
    tree = CartTree().fit(pd.DataFrame({"size": sizes}), np.tile([0.0, 1.0], 50))
    assert tree.rules == {2: "size <= s", 3: "size > s"}
    assert root_split(tree).threshold == 1


def test_ordered_x_counts_as_classes() -> None:
    X, x = sample("ordered")
    assert structure(CartTree().fit(X, x)) == structure(CartTree().fit(X, x.cat.as_unordered()))


def test_class_without_rows_changes_no_split() -> None:
    X, x = sample("two classes")
    wider = x.cat.add_categories(["none of them"])
    assert structure(CartTree().fit(X, wider)) == structure(CartTree().fit(X, x))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("missing", [False, True])
def test_every_leaf_has_min_leaf_rows(target: str, missing: bool) -> None:
    X, x = sample(target, missing=missing)
    tree = CartTree(min_samples_leaf=13, cp=0.0).fit(X, x)
    sizes = np.unique(tree.apply(X), return_counts=True)[1]
    assert len(sizes) > 5
    assert sizes.min() >= 13
    assert all(node.n >= 39 for node in tree.nodes if not node.is_leaf)


@pytest.mark.parametrize(("n", "max_depth", "reason"), [(600, 0, "depth"), (89, 30, "few rows")])
def test_node_beyond_a_limit_is_a_leaf(n: int, max_depth: int, reason: str) -> None:
    tree = CartTree(max_depth=max_depth).fit(*sample("numeric", n=n))
    assert [node.stop for node in tree.nodes] == [reason]


def test_constant_leaf_says_so() -> None:
    X = pd.DataFrame({"a": np.arange(200.0)})
    tree = CartTree(cp=0.0).fit(X, np.repeat([0.0, 1.0], 100))
    assert [leaf.stop for leaf in tree.leaves] == ["constant", "constant"]


def test_constant_columns_have_no_cut() -> None:
    X = pd.DataFrame({"a": np.ones(200), "b": ["same"] * 200})
    assert CartTree().fit(X, np.arange(200.0)).nodes[0].stop == "no admissible cut"


def test_constant_x_is_rejected() -> None:
    with pytest.raises(InputError, match="constant"):
        CartTree().fit(pd.DataFrame({"a": np.arange(200.0)}), np.ones(200))


@pytest.mark.parametrize("x_kind", ["numeric", "nominal"])
def test_cut_without_gain_is_not_made(x_kind: Kind) -> None:
    X = pd.DataFrame({"a": [0, 0, 1, 1] * 50, "b": [0, 1, 0, 1] * 50})
    exclusive_or = [0, 1, 1, 0] * 50
    tree = CartTree(cp=0.0).fit(X, exclusive_or, x_kind=x_kind)
    assert (len(tree.nodes), tree.nodes[0].stop) == (1, "complexity")


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_sum_of_squares_beyond_floats_is_rejected(scale: float) -> None:
    X, x = sample("numeric")
    with pytest.raises(InputError, match="Rescale x"):
        CartTree().fit(X, x * scale)


@pytest.mark.parametrize("scale", [1e140, 1e-140])
@pytest.mark.parametrize("shift", [0, 1e6])
def test_scale_and_origin_of_x_do_not_matter(scale: float, shift: float) -> None:
    X, x = sample("numeric")
    assert structure(CartTree().fit(X, (x + shift) * scale)) == structure(CartTree().fit(X, x))


def test_retained_subtree_is_the_cheapest_of_all() -> None:
    X, x = sample("numeric", n=300)
    full = {node.id: node for node in CartTree(max_depth=4, min_samples_leaf=10, cp=0.0).fit(X, x).nodes}

    def subtrees(id_: int) -> list[frozenset[int]]:
        """Sets of split nodes of every subtree with this root."""
        children = full[id_].children
        if children is None:
            return [frozenset()]
        pairs = itertools.product(subtrees(children[0]), subtrees(children[1]))
        return [frozenset(), *(one | other | {id_} for one, other in pairs)]

    def risk(node: Node) -> float:
        assert node.risk is not None
        return node.risk

    def cost(splits: frozenset[int], cp: float) -> float:
        after = sum(risk(full[child]) for id_ in splits for child in full[id_].children or ())
        reduction = sum(risk(full[id_]) for id_ in splits) - after
        return len(splits) * cp * risk(full[1]) - reduction

    candidates = subtrees(1)
    assert len(candidates) > 100
    for cp in (0.001, 0.004, 0.01, 0.02, 0.05):
        cheapest = min(candidates, key=lambda splits: cost(splits, cp))
        assert {id_ for id_, node in collapse(full, cp).items() if not node.is_leaf} == cheapest


def test_split_worth_exactly_cp_is_collapsed() -> None:
    # 100 rows of the smaller class; the split gets 10 of them right: a tenth of the risk.
    X = pd.DataFrame({"a": np.repeat([0.0, 1.0], [190, 40])})
    x = pd.Series(["p"] * 115 + ["q"] * 75 + ["q"] * 25 + ["p"] * 15)
    assert len(CartTree(cp=0.1).fit(X, x).leaves) == 1
    assert len(CartTree(cp=0.0999).fit(X, x).leaves) == 2
    assert CartTree(cp=0.1).fit(X, x).nodes[0].stop == "complexity"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("cp", [0.0, 0.003, 0.01])
def test_pruned_tree_is_the_tree_of_that_depth(target: str, missing: bool, cp: float) -> None:
    X, x = sample(target, missing=missing)
    tree = CartTree(min_samples_leaf=10, cp=cp).fit(X, x)
    assert tree.depth > 3
    for depth in range(tree.depth + 1):
        grown, pruned = CartTree(min_samples_leaf=10, cp=cp, max_depth=depth).fit(X, x), tree.prune(depth)
        assert structure(grown) == structure(pruned)
        for one, other in zip(grown.nodes, pruned.nodes, strict=True):
            assert one.risk == other.risk
            assert one.counts.tolist() == other.counts.tolist()
            assert one.stop == other.stop or one.depth == depth


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("missing", [False, True])
def test_integer_weights_equal_duplicated_rows(target: str, missing: bool) -> None:
    X, x = sample(target, n=400, missing=missing)
    weights = np.random.default_rng(2).integers(0, 4, 400)
    rows = np.repeat(np.arange(400), weights)
    weighted = CartTree(min_samples_leaf=15, cp=0.002).fit(X, x, FrequencyWeights(weights))
    repeated = CartTree(min_samples_leaf=15, cp=0.002).fit(X.iloc[rows], x.iloc[rows])
    assert len(weighted.leaves) > 4
    assert structure(weighted) == structure(repeated)
    for one, other in zip(weighted.nodes, repeated.nodes, strict=True):
        assert one.risk == pytest.approx(other.risk, rel=1e-12)
        assert one.counts.tolist() == other.counts.tolist()
        assert one.stop == other.stop


def test_weights_that_sum_to_min_samples_leaf_up_to_rounding_are_enough() -> None:
    X = pd.DataFrame({"a": np.repeat([0.0, 1.0], 300)})
    tree = CartTree(min_samples_split=60).fit(X, X["a"].to_numpy(), np.full(600, 0.1))
    assert len(tree.leaves) == 2


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_order_of_rows_and_columns_does_not_change_groups(target: str, missing: bool, seed: int) -> None:
    X, x = sample(target, missing=missing)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.columns)
    tree = CartTree(min_samples_leaf=10, cp=0.002).fit(X, x)
    permuted = CartTree(min_samples_leaf=10, cp=0.002).fit(X.iloc[rows][columns], x.iloc[rows])
    assert groups(permuted.apply(X)) == groups(tree.apply(X))
    assert structure(CartTree(min_samples_leaf=10, cp=0.002).fit(X.iloc[rows], x.iloc[rows])) == structure(tree)


@pytest.mark.parametrize(("value", "with_low"), [(0.0, True), (5.0, False)])
def test_missing_values_go_where_they_fit_best(value: float, with_low: bool) -> None:
    a = np.repeat([1.0, 2.0, np.nan], 100)
    x = np.repeat([0.0, 5.0, value], 100) + np.tile([-0.1, 0.1], 150)
    tree = CartTree(max_depth=1).fit(pd.DataFrame({"a": a}), x)
    low, high = (" or missing", "") if with_low else ("", " or missing")
    assert tree.rules == {2: f"a < 1.5{low}", 3: f"a >= 1.5{high}"}


@pytest.mark.parametrize("a", [[1.0, 2.0, np.nan], ["u", "v", None]])
def test_missing_values_may_stand_alone(a: list[Any]) -> None:
    X = pd.DataFrame({"a": np.repeat(np.array(a, dtype=object if a[0] == "u" else float), 100)})
    x = np.repeat([0.0, 0.1, 9.0], 100)
    tree = CartTree(max_depth=1).fit(X, x)
    assert root_split(tree).threshold is None
    assert groups(tree.apply(X)) == groups(np.repeat([1, 1, 2], 100))


def test_missing_values_count_for_min_leaf() -> None:
    # Ten observed rows are too few on their own; with the missing ones they are a leaf.
    a = np.r_[np.zeros(10), np.full(25, np.nan), np.ones(100)]
    tree = CartTree().fit(pd.DataFrame({"a": a}), np.r_[np.zeros(35), np.ones(100)])
    assert [leaf.n for leaf in tree.leaves] == [35, 100]


@pytest.mark.parametrize("kind", ["numeric", "nominal"])
def test_missing_values_that_training_did_not_have_go_with_the_larger_child(kind: Kind) -> None:
    a = np.repeat([0, 1], [40, 160])
    tree = CartTree().fit(pd.DataFrame({"a": a}), 1.0 - a, kinds={"a": kind})
    assert (root_split(tree).missing, root_split(tree).larger) == ("left", "left")
    assert tree.nodes[1].n == 160


def test_absent_levels_stand_with_the_larger_child() -> None:
    a = pd.Categorical(np.repeat(["u", "w"], [40, 160]), ["u", "v", "w", "z"])
    tree = CartTree().fit(pd.DataFrame({"a": a}), np.repeat([0.0, 1.0], [40, 160]))
    assert root_split(tree).levels == (("u",), ("v", "w", "z"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("missing", [False, True])
def test_nodes_count_the_rows_that_apply_sends_to_them(target: str, missing: bool) -> None:
    X, x = sample(target, missing=missing)
    tree = CartTree(min_samples_leaf=10).fit(X, x)
    leaves = tree.apply(X)
    for leaf in tree.leaves:
        assert leaf.n == (leaves == leaf.id).sum() == leaf.counts.sum()
    for node in tree.nodes:
        if node.children is not None:
            left, right = (tree.nodes[id_ - 1].counts for id_ in node.children)
            assert node.counts.tolist() == (left + right).tolist()
    assert bool(tree.edges) == (target == "numeric")


def test_tree_survives_json_with_parameters_from_numpy() -> None:
    X, x = sample("numeric", missing=True)
    tree = CartTree(max_depth=np.int64(3), cp=np.float64(0.01)).fit(X, x)  # type: ignore[arg-type]
    assert Tree.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree
    assert tree.method == "cart"
    assert tree.parameters == {"max_depth": 3, "min_samples_leaf": 30, "min_samples_split": None, "cp": 0.01}


def test_fit_leaves_the_constructor_and_the_data_as_they_were() -> None:
    X, x = sample("numeric", missing=True)
    copies = X.copy(), x.copy()
    cart = CartTree()
    cart.fit(X, x)
    assert cart == CartTree()
    pd.testing.assert_frame_equal(X, copies[0])
    pd.testing.assert_series_equal(x, copies[1])


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_parameter_out_of_range_is_named(name: str, value: Any) -> None:
    X, x = sample("numeric")
    with pytest.raises(ParameterError, match=name):
        CartTree(**{name: value}).fit(X, x)
