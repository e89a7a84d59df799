"""What holds for every tree, whatever the data: leaves and rules, invariances, pruning, round trips."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgrove._data.table import read_like
from subgrove.exceptions import UnseenValueWarning
from subgrove.trees import CartTree, ConditionalInferenceTree, TransformationTree, Tree
from subgrove.trees.nodes import matches

Grower = TransformationTree | ConditionalInferenceTree | CartTree
LEVELS = ["ash", "birch", "elm", "fir", "oak"]
SIZES = ["s", "m", "l", "xl"]

examples = settings(max_examples=12, derandomize=True, deadline=None, database=None)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to grow on, and what to grow with."""

    X: pd.DataFrame
    y: npt.NDArray[np.float64]
    min_samples_leaf: int
    alpha: float
    seed: int

    def grow(self, method: str, X: Any = None, rows: Any = None, max_depth: int = 30) -> Tree:
        """A tree of these rows, or of the same rows in another form or order."""
        x = self.x(method)
        return self.grower(method, max_depth).fit(self.X if X is None else X, x if rows is None else x[rows])

    def grower(self, method: str, max_depth: int = 30) -> Grower:
        if method.startswith("cart"):
            return CartTree(max_depth, self.min_samples_leaf, cp=0.0 if self.alpha > 0.5 else 0.01)
        if method.startswith("inference"):
            return ConditionalInferenceTree(max_depth, self.min_samples_leaf, self.alpha)
        return TransformationTree(max_depth, self.min_samples_leaf, self.alpha, order=5 if self.seed % 2 else 3)

    def x(self, method: str) -> npt.NDArray[Any]:
        """x as the method needs it: numbers, whole numbers, or levels."""
        if method.endswith("levels"):
            return np.array(["p", "q", "r"])[np.searchsorted(np.quantile(self.y, [0.4, 0.8]), self.y)]
        return np.floor(3 * self.y).astype(np.int64) if method.endswith("counts") else self.y


METHODS = [
    "transformation of numbers",
    "transformation of counts",
    "inference of numbers",
    "inference of levels",
    "cart of numbers",
    "cart of levels",
]
# Exact ties between cuts are broken by order; with continuous x there are none.
UNTIED = [method for method in METHODS if method.endswith("numbers")]
each_method = pytest.mark.parametrize("method", METHODS)
each_untied_method = pytest.mark.parametrize("method", UNTIED)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Frames of 60 to 200 rows: numbers with and without ties, levels, ordered levels, missing values."""
    n, seed = draw(st.integers(60, 200)), draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    n_levels = draw(st.integers(2, len(LEVELS)))
    X = pd.DataFrame(
        {
            "fine": rng.normal(size=n),
            "coarse": rng.integers(0, draw(st.integers(2, 9)), n).astype(float),
            "tree": rng.choice(LEVELS[:n_levels], n).astype(object),
            "size": pd.Categorical(rng.choice(SIZES, n), SIZES, ordered=True),
        }
    )
    effects = draw(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 4))
    codes = np.column_stack(
        [X["fine"] > 0, X["coarse"], X["tree"].map(LEVELS.index).to_numpy(np.int64) % 3, X["size"].cat.codes]
    )
    y = codes @ np.array(effects) + rng.normal(size=n) * np.where(X["coarse"] > 1, 1.0, 0.5)
    for name, share in zip(X, draw(st.tuples(*[st.sampled_from([0.0, 0.0, 0.2])] * 4)), strict=True):
        X.loc[rng.random(n) < share, name] = np.nan
    keep = draw(st.sets(st.sampled_from(list(X)), min_size=1))
    X = X[[name for name in X if name in keep]]
    return Sample(X, y, draw(st.integers(5, 25)), draw(st.sampled_from([0.05, 0.5, 1.0])), seed)


def groups(leaves: npt.NDArray[np.intp]) -> set[frozenset[int]]:
    """A partition of rows without the names of its parts."""
    return {frozenset(np.flatnonzero(leaves == leaf).tolist()) for leaf in np.unique(leaves)}


def new_rows(sample: Sample, n: int = 300) -> pd.DataFrame:
    """Rows of the same levels in new combinations; numbers from a wider range; missing values everywhere."""
    rng = np.random.default_rng(sample.seed + 1)
    X = sample.X.iloc[rng.integers(0, len(sample.X), n)].reset_index(drop=True)
    for name in X:
        X[name] = X[name].to_numpy()[rng.permutation(n)] if name != "size" else X[name].sample(frac=1).array
        if name in ("fine", "coarse"):
            X[name] = X[name] + rng.choice([0.0, 0.3, -7.0, 7.0], n)
        X.loc[rng.random(n) < 0.1, name] = np.nan
    return X


def leaf_by_rules(tree: Tree, X: pd.DataFrame) -> npt.NDArray[np.intp]:
    """The leaf whose rule each row satisfies; fails unless it is exactly one."""
    table = read_like(X, tree.columns)
    conditions = tree.conditions
    satisfied = np.array([matches(conditions[leaf], table) for leaf in conditions])
    assert (satisfied.sum(axis=0) == 1).all()
    leaves: npt.NDArray[np.intp] = np.array(list(conditions), dtype=np.intp)[satisfied.argmax(axis=0)]
    return leaves


@each_method
@given(sample=samples())
@examples
def test_every_row_gets_one_leaf(method: str, sample: Sample) -> None:
    tree = sample.grow(method)
    leaves = tree.apply(sample.X)
    assert leaves.shape == (len(sample.X),)
    assert set(leaves.tolist()) == {leaf.id for leaf in tree.leaves}


@each_method
@given(sample=samples())
@examples
def test_every_row_satisfies_the_rule_of_its_leaf_and_no_other(method: str, sample: Sample) -> None:
    tree = sample.grow(method)
    np.testing.assert_array_equal(leaf_by_rules(tree, sample.X), tree.apply(sample.X))


@each_method
@given(sample=samples())
@examples
def test_new_rows_satisfy_the_rule_of_their_leaf_and_no_other(method: str, sample: Sample) -> None:
    tree, X = sample.grow(method), new_rows(sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenValueWarning)  # columns without missing values in training
        leaves = tree.apply(X)
    np.testing.assert_array_equal(leaf_by_rules(tree, X), leaves)


@each_method
@given(sample=samples())
@examples
def test_rules_differ_between_leaves(method: str, sample: Sample) -> None:
    rules = list(sample.grow(method).rules.values())
    assert len(set(rules)) == len(rules)


@each_method
@given(sample=samples())
@examples
def test_leaves_count_their_rows(method: str, sample: Sample) -> None:
    tree = sample.grow(method)
    ids, counts = np.unique(tree.apply(sample.X), return_counts=True)
    assert {leaf.id: leaf.n for leaf in tree.leaves} == dict(zip(ids.tolist(), counts.tolist(), strict=True))


@each_method
@given(sample=samples())
@examples
def test_nodes_count_the_rows_of_their_children(method: str, sample: Sample) -> None:
    tree = sample.grow(method)
    for node in tree.nodes:
        assert node.n == node.counts.sum()
        if node.children is not None:
            assert node.n == sum(tree.nodes[child - 1].n for child in node.children)


@each_method
@given(sample=samples())
@examples
def test_no_leaf_of_a_split_is_smaller_than_min_leaf(method: str, sample: Sample) -> None:
    tree = sample.grow(method)
    assert all(leaf.n >= sample.min_samples_leaf for leaf in tree.leaves if leaf.parent is not None)


@each_method
@given(sample=samples())
@examples
def test_order_of_rows_does_not_change_the_groups(method: str, sample: Sample) -> None:
    rows = np.random.default_rng(sample.seed).permutation(len(sample.X))
    permuted = sample.grow(method, sample.X.iloc[rows], rows)
    assert groups(permuted.apply(sample.X)) == groups(sample.grow(method).apply(sample.X))


@pytest.mark.parametrize("method", [method for method in METHODS if method != "cart of levels"])  # gains can be equal
@given(sample=samples())
@examples
def test_order_of_columns_does_not_change_the_groups(method: str, sample: Sample) -> None:
    permuted = sample.grow(method, sample.X[sample.X.columns[::-1]])
    assert groups(permuted.apply(sample.X)) == groups(sample.grow(method).apply(sample.X))


@each_untied_method
@given(sample=samples())
@examples
def test_names_of_levels_do_not_change_the_groups(method: str, sample: Sample) -> None:
    X = sample.X.copy()
    if "tree" in X:
        X["tree"] = X["tree"].map({level: f"{9 - at} {level}" for at, level in enumerate(LEVELS)})
    if "size" in X:
        X["size"] = X["size"].cat.rename_categories({level: f"{9 - at}" for at, level in enumerate(SIZES)})
    assert groups(sample.grow(method, X).apply(X)) == groups(sample.grow(method).apply(sample.X))


@each_untied_method
@pytest.mark.parametrize(("scale", "shift"), [(3.0, 0.7), (1e-5, 1e-3), (1e8, -5e8), (-1.0, 0.0), (-0.3, 40.0)])
@given(sample=samples())
@examples
def test_origin_and_scale_and_sign_of_numbers_do_not_change_the_groups(
    method: str, scale: float, shift: float, sample: Sample
) -> None:
    X = sample.X.copy()
    for name in {"fine", "coarse"} & set(X):
        X[name] = scale * X[name] + shift
    assert groups(sample.grow(method, X).apply(X)) == groups(sample.grow(method).apply(sample.X))


@each_untied_method
@pytest.mark.parametrize("increasing", [np.exp, np.cbrt, lambda value: value**3 + value], ids=["exp", "cbrt", "cube"])
@given(sample=samples())
@examples
def test_increasing_map_of_the_only_column_keeps_the_first_cut(
    method: str, increasing: Callable[[Any], Any], sample: Sample
) -> None:
    """What a monotone map keeps, and what it does not.

    The test of a column is linear in its values, so a non-linear map changes statistics and p-values: whether
    a node splits, and in which of several columns, may change (CART has no test; there nothing changes).
    Where a column is cut depends on the order of its values alone: once it is chosen, the groups stay.
    """
    X = pd.DataFrame({"fine": sample.X["fine"] if "fine" in sample.X else sample.y + 1.0})
    mapped = X.apply(increasing)
    one, other = (sample.grow(method, frame, max_depth=1) for frame in (X, mapped))
    if method.startswith("cart") or len(one.leaves) == len(other.leaves) == 2:
        assert groups(one.apply(X)) == groups(other.apply(mapped))


@pytest.mark.parametrize("grower", [TransformationTree, ConditionalInferenceTree, CartTree])
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("missing", [False, True])
def test_scale_of_numbers_does_not_matter_up_to_the_limits_of_floats(
    grower: type[Grower], scale: float, missing: bool
) -> None:
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    x = 2.0 * (X["a"] > 0) + (X["b"] > 0.5) + rng.normal(size=200)
    if missing:
        X.loc[rng.random(200) < 0.1, "a"] = np.nan
    expected = grower(max_depth=2).fit(X, x).apply(X)
    assert len(groups(expected)) > 2
    assert groups(grower(max_depth=2).fit(X * scale, x).apply(X * scale)) == groups(expected)


@pytest.mark.parametrize("grower", [TransformationTree, ConditionalInferenceTree, CartTree])
def test_column_with_a_range_wider_than_a_float_is_cut(grower: type[Grower]) -> None:
    x = np.random.default_rng(4).normal(size=100) + np.repeat([0.0, 3.0], 50)
    X = pd.DataFrame({"a": np.repeat([-1.7e308, 1.7e308], 50)})
    assert groups(grower(min_samples_leaf=20).fit(X, x).apply(X)) == groups(np.repeat([1, 2], 50))


@pytest.mark.parametrize("seed", range(20))
def test_first_of_equally_good_columns_is_split_in_whatever_the_order_of_rows(seed: int) -> None:
    # x is p, q or r; a (nominal) and b (numeric) both part 3, 10, 0 rows from 3, 6, 4 rows of it.
    table = pd.DataFrame(
        [("u", 0.0, "p")] * 1
        + [("u", 1.0, "p")] * 2
        + [("v", 0.0, "p")] * 2
        + [("v", 1.0, "p")] * 1
        + [("u", 0.0, "q")] * 7
        + [("u", 1.0, "q")] * 3
        + [("v", 0.0, "q")] * 3
        + [("v", 1.0, "q")] * 3
        + [("v", 1.0, "r")] * 4,
        columns=["a", "b", "x"],
    )
    shuffled = pd.concat([table] * 3).sample(frac=1, random_state=seed)
    tree = ConditionalInferenceTree(max_depth=1, min_samples_leaf=5, alpha=1.0).fit(shuffled[["b", "a"]], shuffled["x"])
    split = tree.nodes[0].split
    assert split is not None
    assert split.column == "b"


COUNTS = {
    "few ones": lambda rng, z: (rng.random(len(z)) < 0.2 / (1 + np.exp(-3 * z))).astype(np.int64),
    "rare ones": lambda rng, z: (np.arange(len(z)) % 100 == 0).astype(np.int64),
    "poisson": lambda rng, z: rng.poisson(np.exp(z)),
    "outlier": lambda rng, z: np.r_[rng.integers(0, 5, len(z) - 1), 10**9],
    "millions": lambda rng, z: (1e6 * rng.random(len(z))).astype(np.int64),
    "nanoseconds": lambda rng, z: 1_600_000_000_000_000_000 + rng.integers(0, 10**15, len(z)),
    "all integers": lambda rng, z: rng.integers(-(2**62), 2**62, len(z)),
}


@pytest.mark.parametrize("counts", COUNTS.values(), ids=list(COUNTS))
@pytest.mark.parametrize("seed", range(3))
def test_tree_of_any_whole_numbers_is_grown(
    counts: Callable[[np.random.Generator, npt.NDArray[np.float64]], npt.NDArray[np.int64]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 3))
    tree = TransformationTree(min_samples_leaf=20).fit(X, counts(rng, X[:, 0]))
    assert all(node.log_likelihood is None or np.isfinite(node.log_likelihood) for node in tree.nodes)
    assert sum(leaf.n for leaf in tree.leaves) == 400


@each_method
@given(sample=samples())
@examples
def test_pruned_tree_is_the_tree_of_that_depth(method: str, sample: Sample) -> None:
    tree = sample.grow(method)
    for depth in range(tree.depth + 2):
        assert tree.prune(depth).to_dict() == sample.grow(method, max_depth=depth).to_dict()


@each_method
@given(sample=samples())
@examples
def test_fitting_again_gives_the_same_tree(method: str, sample: Sample) -> None:
    assert sample.grow(method).to_dict() == sample.grow(method).to_dict()


@each_method
@given(sample=samples())
@examples
def test_tree_survives_json(method: str, sample: Sample) -> None:
    tree = sample.grow(method)
    again = Tree.from_dict(json.loads(json.dumps(tree.to_dict())))
    assert again == tree
    assert again.rules == tree.rules
    np.testing.assert_array_equal(again.apply(sample.X), tree.apply(sample.X))


@each_method
@given(sample=samples())
@examples
def test_tree_survives_pickle(method: str, sample: Sample) -> None:
    tree = sample.grow(method)
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    np.testing.assert_array_equal(again.apply(sample.X), tree.apply(sample.X))


def upper_part(kind: str, X: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """x that lies in a small upper part of its range in many nodes."""
    x = X[:, 1] + rng.normal(size=len(X))
    if kind == "two far clusters":
        return np.where(X[:, 0] > 0, 10.0, 0.0) + 0.05 * x
    if kind == "a sentinel":
        return np.where(X[:, 0] > 1.5, -999.0, x)
    if kind == "three outliers":
        return np.append([-999.0] * 3, x[3:])
    return np.where(X[:, 0] > 1.8, 1900.0, 2010.0) + x


@pytest.mark.parametrize("kind", ["two far clusters", "a sentinel", "three outliers", "two eras"])
def test_mirrored_x_has_the_same_groups(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    x = upper_part(kind, X, rng)
    one, other = TransformationTree().fit(X, x), TransformationTree().fit(X, -x)
    assert one.rules == other.rules
    assert len(one.leaves) > 5
    assert "not fitted" not in {leaf.stop for leaf in one.leaves}
