"""Missing values and levels that training did not have: where they go, what the rule says, what is warned of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from subgrove.exceptions import UnseenValueWarning
from subgrove.trees import CartTree, ConditionalInferenceTree, Split, TransformationModel, TransformationTree, Tree

Grower = TransformationTree | ConditionalInferenceTree | CartTree
Tester = TransformationTree | ConditionalInferenceTree
GROWERS: list[type[Grower]] = [TransformationTree, ConditionalInferenceTree, CartTree]
TESTERS: list[type[Tester]] = [TransformationTree, ConditionalInferenceTree]
each_tree = pytest.mark.parametrize("grower", GROWERS)
each_tester = pytest.mark.parametrize("grower", TESTERS)
# CART looks at 3 * min_samples_leaf rows at least; x of these samples has three groups of 60.
KINDS = ["numeric", "ordered", "nominal"]

Floats = npt.NDArray[np.float64]


def noise(n: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=n)


def three_groups(kind: str, means: tuple[float, float, float]) -> tuple[pd.DataFrame, Floats]:
    """A column with values 1 and 2 (or levels u and v) and missing ones, 60 rows each, and x by these groups."""
    numbers = np.repeat([1.0, 2.0, np.nan], 60)
    if kind == "numeric":
        column: Any = numbers
    else:
        labels = np.repeat(np.array(["u", "v", None], dtype=object), 60)
        column = pd.Categorical(labels, ["u", "v"], ordered=kind == "ordered")
    return pd.DataFrame({"a": column}), np.repeat(means, 60) + 0.5 * noise(180)


def root_split(tree: Tree) -> Split:
    split = tree.nodes[0].split
    assert split is not None
    return split


def statistic(scores: Floats, left: npt.NDArray[np.bool_]) -> float:
    """Quadratic statistic of two groups of rows, by its definition."""
    n, m = len(scores), left.sum()
    centred = scores - scores.mean(axis=0)
    covariance = centred.T @ centred / n * (m * (n - m) / (n - 1))
    d = centred[left].sum(axis=0)
    return float(d @ np.linalg.pinv(covariance, rcond=1.5e-8, hermitian=True) @ d)


# Where missing values go.


@each_tester
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("levels", [4, 1000])
def test_split_with_missing_values_has_the_largest_statistic_of_all(
    grower: type[Tester], seed: int, levels: int
) -> None:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random(90) < 0.25, np.nan, rng.integers(0, levels, 90))
    missing = np.isnan(a)
    x = rng.normal(size=90) + np.where(missing, 2 * rng.normal(), a > levels / 2)
    X = pd.DataFrame({"a": a})
    tree = grower(max_depth=1, min_samples_leaf=12, alpha=1.0).fit(X, x)
    scores = x[:, None] if grower is ConditionalInferenceTree else TransformationModel().fit(x).scores(x)
    below = [a <= cut for cut in np.unique(a[~missing])]
    sides = [side for first in below for side in (first, first | missing) if 12 <= side.sum() <= 78]
    best = max(statistic(scores, side) for side in sides)
    assert statistic(scores, tree.apply(X) == 2) == pytest.approx(best, rel=1e-6)


@each_tree
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mean", "with_first"), [(0.0, True), (5.0, False)])
def test_missing_values_go_to_the_side_they_resemble(
    grower: type[Grower], kind: str, mean: float, with_first: bool
) -> None:
    X, x = three_groups(kind, (0.0, 5.0, mean))
    leaves = grower(max_depth=1).fit(X, x).apply(X)
    assert (leaves[120:] == leaves[0 if with_first else 60]).all()
    assert leaves[0] != leaves[60]


@each_tree
@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_stand_alone_where_only_missingness_matters(grower: type[Grower], kind: str) -> None:
    X, x = three_groups(kind, (0.0, 0.0, 5.0))
    tree = grower(max_depth=1).fit(X, x)
    assert sorted(tree.rules.values()) == ["a is missing", "a is not missing"]
    assert [len(set(tree.apply(X)[rows])) for rows in (slice(120), slice(120, None))] == [1, 1]


@each_tester
def test_missingness_alone_is_significant(grower: type[Tester]) -> None:
    X, x = three_groups("numeric", (0.0, 0.0, 1.0))
    p_value = grower(max_depth=1).fit(X, x).nodes[0].p_value
    assert p_value is not None
    assert p_value < 1e-6


@each_tester
def test_column_with_missing_values_has_twice_the_degrees_of_freedom(grower: type[Tester]) -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["full", "partial"])
    X.loc[:20, "partial"] = np.nan
    tests = grower(max_depth=1).fit(X, rng.normal(size=200)).nodes[0].tests
    assert tests is not None
    assert tests["partial"].df == 2 * tests["full"].df


@each_tester
def test_missing_values_of_a_nominal_column_are_one_more_level(grower: type[Tester]) -> None:
    rng = np.random.default_rng(1)
    labels = rng.choice(["u", "v", "w"], 200)
    X = pd.DataFrame({"named": labels, "missing": pd.Series(labels).where(labels != "v")})
    tests = grower(max_depth=1).fit(X, rng.normal(size=200)).nodes[0].tests
    assert tests is not None
    assert tests["missing"].df == tests["named"].df
    assert tests["missing"].statistic == pytest.approx(tests["named"].statistic, rel=1e-12)


@each_tree
def test_missing_values_are_grouped_as_a_level_would_be(grower: type[Grower]) -> None:
    rng = np.random.default_rng(1)
    labels = rng.choice(["u", "v", "w", "z"], 400)
    x = np.where(np.isin(labels, ["v", "z"]), 1.0, 0.0) + 0.5 * rng.normal(size=400)
    named = pd.DataFrame({"a": labels})
    missing = named.where(named != "v")
    leaves = grower().fit(missing, x).apply(missing)
    assert (pd.crosstab(leaves, grower().fit(named, x).apply(named)) > 0).to_numpy().sum() == len(set(leaves))


@each_tree
def test_rows_without_missing_values_do_not_depend_on_how_the_column_was_stored(grower: type[Grower]) -> None:
    # A frame of floats is read as a block; with a nominal column beside them, each on its own.
    X = pd.DataFrame({"a": noise(200, 1), "b": noise(200, 2)})
    x = 2.0 * (X["a"] > 0) + noise(200, 3)
    wider = X.assign(c="same")
    assert grower().fit(X, x).rules == grower().fit(wider, x).rules


# What the rule says.


@each_tree
@pytest.mark.parametrize("kind", KINDS)
def test_rule_says_where_missing_values_are(grower: type[Grower], kind: str) -> None:
    X, x = three_groups(kind, (0.0, 5.0, 5.0))
    tree = grower(max_depth=1).fit(X, x)
    with_missing, without = (tree.rules[int(leaf)] for leaf in tree.apply(X)[[60, 0]])
    assert with_missing.endswith(" or missing")
    assert "missing" not in without


@each_tree
def test_rule_with_several_conditions_is_unambiguous(grower: type[Grower]) -> None:
    X, x = three_groups("numeric", (0.0, 5.0, 5.0))
    X["b"] = np.tile([0.0, 1.0], 90)
    X, x = pd.concat([X, X], ignore_index=True), np.r_[x, x + 2.0] + 2.0 * np.tile(X["b"], 2)
    rules = grower(max_depth=2, min_samples_leaf=20).fit(X, x).rules.values()
    joined = [rule for rule in rules if " and " in rule and "missing" in rule]
    assert joined
    assert all("or missing)" in rule for rule in joined)


@each_tree
def test_nominal_rule_of_missing_values_alone_says_so_below_another_split(grower: type[Grower]) -> None:
    # The root parts b from a and missing; below, missing values are the larger child and get the absent level b.
    labels = np.repeat(np.array(["a", "b", None], dtype=object), [60, 200, 120])
    x = np.repeat([0.0, 20.0, 4.0], [60, 200, 120]) + 0.5 * noise(380)
    tree = grower(max_depth=2).fit(pd.DataFrame({"c": labels}), x)
    assert sorted(tree.rules.values()) == ["c in {a}", "c in {b}", "c is missing"]


@each_tree
def test_numeric_rule_of_missing_values_alone_says_so_below_another_split(grower: type[Grower]) -> None:
    values = np.repeat([1.0, 2.0, np.nan], [60, 200, 120])
    x = np.repeat([0.0, 20.0, 4.0], [60, 200, 120]) + 0.5 * noise(380)
    rules = grower(max_depth=2).fit(pd.DataFrame({"c": values}), x).rules.values()
    assert sum(rule == "c is missing" for rule in rules) == 1
    assert not any("or missing" in rule for rule in rules)


@each_tree
def test_column_without_missing_values_has_no_word_of_them_in_its_rule(grower: type[Grower]) -> None:
    X = pd.DataFrame({"a": np.repeat([1.0, 2.0], 90)})
    rules = grower().fit(X, np.repeat([0.0, 5.0], 90) + noise(180)).rules
    assert len(rules) == 2
    assert not any("missing" in rule for rule in rules.values())


# x itself.


@each_tree
def test_rows_without_x_are_excluded_from_growth(grower: type[Grower]) -> None:
    X, x = three_groups("numeric", (0.0, 5.0, 2.0))
    x[::7] = np.nan
    seen = ~np.isnan(x)
    assert grower().fit(X, x).nodes[0].n == seen.sum()
    assert grower().fit(X, x).rules == grower().fit(X[seen], x[seen]).rules


@each_tree
def test_rows_without_x_are_assigned_a_leaf(grower: type[Grower]) -> None:
    X, x = three_groups("numeric", (0.0, 5.0, 2.0))
    full = grower().fit(X, x).apply(X)
    x[::7] = np.nan
    np.testing.assert_array_equal(grower().fit(X, x).apply(X), full)


@pytest.mark.parametrize("grower", [ConditionalInferenceTree, CartTree])
@pytest.mark.parametrize("as_list", [True, False])
def test_missing_levels_of_x_are_left_out(grower: type[ConditionalInferenceTree | CartTree], as_list: bool) -> None:
    X, _ = three_groups("numeric", (0.0, 0.0, 0.0))
    x: list[Any] = ["p", "q", float("nan")] * 60
    tree = grower().fit(X, x if as_list else pd.Series(x, dtype=object))
    assert tree.target.levels == ("p", "q")
    assert tree.nodes[0].n == 120


@each_tree
def test_column_that_is_missing_wherever_x_is_known_is_not_split(grower: type[Grower]) -> None:
    X, x = three_groups("numeric", (0.0, 5.0, 2.0))
    X["b"] = np.where(np.arange(180) < 10, 1.0, np.nan)
    x[:10] = np.nan
    columns = {node.split.column for node in grower().fit(X, x).nodes if node.split is not None}
    assert columns == {"a"}


# New rows.


def two_groups(kind: str, sizes: tuple[int, int] = (60, 120)) -> tuple[pd.DataFrame, Floats]:
    """A column without missing values, whose second value has more rows."""
    labels = np.repeat(["u", "v"], sizes)
    column: Any = np.repeat([1.0, 2.0], sizes)
    if kind != "numeric":
        column = pd.Categorical(labels, ["u", "v"], ordered=True) if kind == "ordered" else labels
    return pd.DataFrame({"a": column}), np.repeat([0.0, 5.0], sizes) + 0.5 * noise(sum(sizes))


def frame_of(kind: str, values: list[Any]) -> pd.DataFrame:
    """New rows of `two_groups`: None is missing."""
    if kind == "numeric":
        return pd.DataFrame({"a": np.array(values, dtype=float)})
    if kind == "ordered":
        return pd.DataFrame({"a": pd.Categorical(values, ["u", "v", "new"], ordered=True)})
    return pd.DataFrame({"a": np.array(values, dtype=object)})


@each_tree
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(60, 120), (120, 60)])
def test_missing_values_that_training_did_not_have_go_with_the_larger_child(
    grower: type[Grower], kind: str, sizes: tuple[int, int]
) -> None:
    X, x = two_groups(kind, sizes)
    tree = grower().fit(X, x)
    first, second = (2.0 if kind == "numeric" else "v"), (1.0 if kind == "numeric" else "u")
    with pytest.warns(UnseenValueWarning):
        leaves = tree.apply(frame_of(kind, [None, first, second]))
    assert leaves[0] == (leaves[1] if sizes == (60, 120) else leaves[2])


@each_tree
@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_that_training_did_not_have_are_warned_of_once(grower: type[Grower], kind: str) -> None:
    tree = grower().fit(*two_groups(kind))
    with pytest.warns(UnseenValueWarning, match="missing values in column 'a', which had none in training") as caught:
        tree.apply(frame_of(kind, [None, None]))
    assert len(caught) == 1


@each_tree
@pytest.mark.parametrize("kind", ["ordered", "nominal"])
@pytest.mark.parametrize("sizes", [(60, 120), (120, 60)])
def test_unseen_level_goes_with_the_larger_child(grower: type[Grower], kind: str, sizes: tuple[int, int]) -> None:
    X, x = two_groups(kind, sizes)
    tree = grower().fit(X, x)
    with pytest.warns(UnseenValueWarning):
        leaves = tree.apply(frame_of(kind, ["new", "v", "u"]))
    assert leaves[0] == (leaves[1] if sizes == (60, 120) else leaves[2])


@each_tree
@pytest.mark.parametrize("kind", ["ordered", "nominal"])
def test_unseen_level_is_warned_of_once_by_column_and_level(grower: type[Grower], kind: str) -> None:
    tree = grower().fit(*two_groups(kind))
    with pytest.warns(UnseenValueWarning, match="levels of column 'a' that did not occur in training: 'new'") as caught:
        tree.apply(frame_of(kind, ["new", "u", "new"]))
    assert len(caught) == 1


@each_tree
@pytest.mark.parametrize("kind", ["ordered", "nominal"])
def test_unseen_level_is_not_taken_for_a_missing_value(grower: type[Grower], kind: str) -> None:
    # Missing values go left with u; the larger child is that of v.
    labels = np.repeat(np.array(["u", None, "v"], dtype=object), [50, 50, 150])
    X = pd.DataFrame({"a": pd.Categorical(labels, ["u", "v"], ordered=True) if kind == "ordered" else labels})
    tree = grower(max_depth=1).fit(X, np.repeat([0.0, 0.0, 5.0], [50, 50, 150]) + 0.5 * noise(250))
    with pytest.warns(UnseenValueWarning, match=r"'a'.*'new'"):
        leaves = tree.apply(frame_of(kind, ["new", None, "v"]))
    assert leaves[0] == leaves[2] != leaves[1]


@each_tree
def test_one_warning_names_every_column_and_what_is_new_in_it(grower: type[Grower]) -> None:
    X, x = two_groups("nominal")
    X, x = pd.concat([X, X], ignore_index=True), np.r_[x, x + 2.0]
    X["b"] = np.repeat([1.0, 2.0], 180)
    tree = grower(max_depth=2).fit(X, x)
    with pytest.warns(UnseenValueWarning) as caught:
        tree.apply(pd.DataFrame({"a": np.array([None, "new", "u"], dtype=object), "b": [1.0, 1.0, np.nan]}))
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "missing values in column 'a'" in message
    assert "'new'" in message
    assert "missing values in column 'b'" in message


@each_tree
def test_level_and_missing_value_that_meet_different_splits_are_both_named(grower: type[Grower]) -> None:
    # b parts the rows; each side is split in a, one meets a missing value, the other a new level.
    X = pd.DataFrame({"a": np.tile(np.repeat(["u", "v"], 60), 2), "b": np.repeat([1.0, 2.0], 120)})
    x = np.repeat([0.0, 3.0, 20.0, 23.0], 60) + 0.5 * noise(240)
    tree = grower(max_depth=2).fit(X, x)
    assert [node.split.column for node in tree.nodes if node.split is not None] == ["b", "a", "a"]
    with pytest.warns(UnseenValueWarning) as caught:
        tree.apply(pd.DataFrame({"a": np.array([None, "new"], dtype=object), "b": [1.0, 2.0]}))
    message = str(caught[0].message)
    assert "missing values in column 'a'" in message
    assert "'new'" in message


@each_tree
def test_warning_points_to_the_line_that_called_apply(grower: type[Grower]) -> None:
    tree = grower().fit(*two_groups("nominal"))
    with pytest.warns(UnseenValueWarning) as caught:
        tree.apply(frame_of("nominal", ["new"]))
    assert caught[0].filename == __file__


@each_tree
def test_column_that_is_not_split_on_is_not_warned_of(grower: type[Grower]) -> None:
    X, x = two_groups("numeric")
    X["b"] = np.tile([0.0, 1.0], 90)
    tree = grower(max_depth=1).fit(X, x)
    assert tree.apply(pd.DataFrame({"a": [1.0], "b": [np.nan]})).tolist() == [2]


@each_tree
@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_that_training_had_are_not_warned_of(grower: type[Grower], kind: str) -> None:
    X, x = three_groups(kind, (0.0, 5.0, 5.0))
    tree = grower().fit(X, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(tree.apply(X)) == 180


@each_tree
@pytest.mark.parametrize("kind", KINDS)
def test_row_on_its_own_gets_the_leaf_it_has_among_others(grower: type[Grower], kind: str) -> None:
    X, x = three_groups(kind, (0.0, 5.0, 2.0))
    tree = grower().fit(X, x)
    together = tree.apply(X)
    assert [int(tree.apply(X.iloc[[row]])[0]) for row in (0, 60, 120)] == together[[0, 60, 120]].tolist()


@each_tree
def test_column_missing_throughout_in_new_rows_is_assigned(grower: type[Grower]) -> None:
    X, x = three_groups("nominal", (0.0, 5.0, 2.0))
    tree = grower().fit(X, x)
    missing = pd.DataFrame({"a": np.array([None, None], dtype=object)})
    assert tree.apply(missing).tolist() == [tree.apply(X)[120]] * 2


@each_tree
@pytest.mark.parametrize("kind", KINDS)
def test_apply_gives_the_same_leaves_again(grower: type[Grower], kind: str) -> None:
    X, x = three_groups(kind, (0.0, 5.0, 2.0))
    tree = grower().fit(X, x)
    np.testing.assert_array_equal(tree.apply(X), tree.apply(X))
