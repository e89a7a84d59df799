"""The forest predicts as well as scikit-learn's, takes missing values and classes, and is the same for any jobs."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from experiments.conditional_forest import one_tree, times_drawn
from subgrove._core.kinds import Floats
from subgrove._native import loader
from subgrove._regress.forest import grow_forest
from subgrove.exceptions import FallbackWarning

needs_compiler = pytest.mark.skipif(loader.forest is None, reason="the package was installed without a compiler")


def signal(X: Floats) -> Floats:
    return np.asarray(X[:, 0] + 2 * (X[:, 1] > 0) * X[:, 2])


def sample(n: int, p: int, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, signal(X) + rng.normal(size=n)


def error(predicted: Floats, X: Floats) -> float:
    return float(np.mean((predicted - signal(X)) ** 2))


@pytest.mark.parametrize(("n", "p"), [(150, 6), (600, 20)])
def test_error_is_that_of_scikit_learns_forest(n: int, p: int) -> None:
    ratios = []
    for seed in range(8):
        X, y = sample(n, p, seed)
        new = np.random.default_rng(100 + seed).normal(size=(2000, p))
        ours = error(grow_forest(X, y[:, None], n_trees=100, seed=seed).predict(new)[:, 0], new)
        # Rows that the bootstrap drew twice count twice here: about 5 rows here are 4 different ones there.
        other = RandomForestRegressor(100, max_features="sqrt", min_samples_split=5, random_state=seed)
        ratios.append(ours / error(other.fit(X, y).predict(new), new))
    # The ratios of single pairs differ by about 3 %; their mean over 8 by about 1 %.
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.05)


def test_out_of_bag_error_is_that_of_new_rows_and_training_error_is_smaller() -> None:
    X, y = sample(800, 6, 0)
    new, target = sample(4000, 6, 1)
    forest = grow_forest(X, y[:, None], n_trees=200)
    unseen = np.mean((forest.out_of_bag[:, 0] - y) ** 2)
    fresh = np.mean((forest.predict(new)[:, 0] - target) ** 2)
    # Squared errors have a standard deviation of about 2; 800 of them give a mean with one of 0.07.
    assert unseen == pytest.approx(fresh, abs=4 * 2 / np.sqrt(800))
    assert np.mean((forest.predict(X)[:, 0] - y) ** 2) < 0.6 * unseen


def test_one_tree_that_tries_all_columns_and_splits_to_the_end_repeats_its_bag() -> None:
    X, y = sample(60, 3, 0)
    forest = grow_forest(X, y[:, None], n_trees=1, min_node_size=1, tried=3)
    predicted, unseen = forest.predict(X)[:, 0], ~np.isnan(forest.out_of_bag[:, 0])
    np.testing.assert_allclose(predicted[~unseen], y[~unseen])
    np.testing.assert_allclose(predicted[unseen], forest.out_of_bag[unseen, 0])
    assert 0.2 < unseen.mean() < 0.55  # 37 % of the rows on average


def test_first_cut_is_the_one_of_the_greatest_drop() -> None:
    X = np.array([[1.0, 5.0], [2.0, 1.0], [3.0, 4.0], [4.0, 2.0], [5.0, 3.0]] * 40)
    y = np.where(X[:, 0] > 3.5, 10.0, 0.0) + X[:, 1] / 100
    forest = grow_forest(X, y[:, None], n_trees=5, tried=2)
    assert (forest_part(forest, "feature") == 0).all()
    np.testing.assert_allclose(forest_part(forest, "threshold"), 3.5)


def forest_part(forest: object, name: str) -> Floats:
    if not hasattr(forest, "roots"):
        pytest.skip("scikit-learn's forest has other arrays")
    return np.asarray(getattr(forest, name)[forest.roots])


def test_indicators_give_the_shares_of_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 3))
    label = (rng.uniform(size=2000) < 0.2 + 0.6 * (X[:, 0] > 0.5)).astype(int)
    outputs = np.eye(2)[label]
    shares = grow_forest(X, outputs, n_trees=100, min_node_size=200).predict(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    high = X[:, 0] > 0.5
    # 1000 rows on each side: the share has a standard deviation of 0.013; leaves near the cut mix both sides.
    assert shares[high, 1].mean() == pytest.approx(0.8, abs=0.05)
    assert shares[~high, 1].mean() == pytest.approx(0.2, abs=0.05)


@needs_compiler
@pytest.mark.parametrize(
    ("n", "n_classes", "share_missing", "distinct"),
    [(60, 2, 0.0, 3), (500, 3, 0.0, 2), (500, 12, 0.1, 40), (2000, 5, 0.2, 1000), (3000, 30, 0.0, 3000)],
)
def test_forest_of_classes_equals_that_of_their_indicators(
    n: int, n_classes: int, share_missing: float, distinct: int
) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4))
    X[:, :2] = np.floor(rng.uniform(size=(n, 2)) * distinct)  # all kinds of sorting: few and many ranks
    codes = np.where(rng.uniform(size=n) < 0.5, rng.integers(n_classes, size=n), X[:, 0] > 1)
    X[rng.uniform(size=X.shape) < share_missing] = np.nan
    outputs = np.eye(n_classes)[codes]
    settings: dict[str, Any] = {"n_trees": 5, "tried": 3, "seed": 2}
    usual, classes = grow_forest(X, outputs, **settings), grow_forest(X, outputs, codes=codes, **settings)
    # Cuts of equal quality may be ordered otherwise by the last digit, in small nodes.
    assert np.mean(usual.predict(X) != pytest.approx(classes.predict(X), abs=1e-9)) < 0.02
    same = usual.feature[: len(classes.feature)] == classes.feature[: len(usual.feature)]
    assert len(usual.feature) == len(classes.feature)
    assert same.mean() > 0.99


@needs_compiler
def test_trees_of_fewer_rows_leave_more_rows_out_of_the_bag() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    forest = grow_forest(X, X[:, :1], n_trees=4, max_samples=40)
    assert np.isnan(forest.out_of_bag).sum() <= 2  # a row is in all four samples with probability 0.095^4
    assert len(forest.feature) < 4 * 40
    assert np.isnan(grow_forest(X, X[:, :1], n_trees=4).out_of_bag).sum() > 20  # 0.63^4


def test_missing_values_go_to_the_side_where_they_do_best() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 1))
    y = np.where(X[:, 0] > 0.5, 1.0, 0.0)
    gone = rng.uniform(size=600) < 0.3
    for outcome in (0.0, 1.0, 5.0):
        target = np.where(gone, outcome, y)
        forest = grow_forest(np.where(gone[:, None], np.nan, X), target[:, None], n_trees=50)
        predicted = forest.predict(np.array([[np.nan], [0.1], [0.9]]))[:, 0]
        np.testing.assert_allclose(predicted, [outcome, 0.0, 1.0], atol=0.05)


def test_missing_value_where_training_had_none_is_predicted_too() -> None:
    X, y = sample(200, 3, 0)
    predicted = grow_forest(X, y[:, None], n_trees=20).predict(np.full((2, 3), np.nan))
    assert np.isfinite(predicted).all()


@pytest.mark.parametrize("tried", [1, 3])
def test_constant_columns_and_outputs_are_no_trouble(tried: int) -> None:
    X, y = sample(80, 3, 0)
    y = X[:, 0] + 0.3 * y
    wide = np.column_stack([np.ones(80), np.full(80, np.nan), X[:, 0]])
    ours = grow_forest(wide, y[:, None], n_trees=30, tried=tried)
    assert np.corrcoef(ours.predict(wide)[:, 0], y)[0, 1] > 0.5  # the only column that varies is found
    np.testing.assert_allclose(grow_forest(wide, np.full((80, 1), 3.0), n_trees=3).predict(wide), 3.0)


def test_one_row_is_predicted_by_itself() -> None:
    forest = grow_forest(np.zeros((1, 2)), np.array([[4.0]]), n_trees=3)
    np.testing.assert_allclose(forest.predict(np.ones((2, 2))), 4.0)
    assert np.isnan(forest.out_of_bag).all()


@needs_compiler
def test_neighbouring_floats_are_distinguished() -> None:
    low = 1.0
    X = np.repeat([[low], [np.nextafter(low, 2)]], 50, axis=0)
    y = np.repeat([0.0, 1.0], 50)
    np.testing.assert_allclose(grow_forest(X, y[:, None], n_trees=5).predict(X)[:, 0], y)


@pytest.mark.parametrize("distinct", [2, 40, None])
def test_columns_of_few_and_of_many_values_are_split_in_the_same_way(distinct: int | None) -> None:
    """Rows are put in order in three ways; a tree that fits exactly shows that each is right."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2)) if distinct is None else rng.integers(distinct, size=(3000, 2)).astype(float)
    y = (X[:, 0] > np.median(X[:, 0])).astype(float)
    predicted = grow_forest(X, y[:, None], n_trees=3, tried=2, min_node_size=1).predict(X)[:, 0]
    assert np.mean(np.abs(predicted - y) > 1e-9) < 0.002  # rows beside the cut that no bag held


@needs_compiler
def test_scale_and_level_of_the_output_change_nothing() -> None:
    X, y = sample(300, 4, 0)
    small, large = grow_forest(X, y[:, None], n_trees=20), grow_forest(X, 100 + 0.5 * y[:, None], n_trees=20)
    np.testing.assert_allclose((large.predict(X) - 100) * 2, small.predict(X), atol=1e-9)


def test_number_of_jobs_changes_nothing() -> None:
    X, y = sample(300, 5, 0)
    one, two = grow_forest(X, y[:, None], n_trees=50, n_jobs=1), grow_forest(X, y[:, None], n_trees=50, n_jobs=2)
    new = np.random.default_rng(1).normal(size=(9000, 5))
    np.testing.assert_array_equal(one.predict(new), two.predict(new))
    np.testing.assert_array_equal(one.out_of_bag, two.out_of_bag)


def test_seed_decides() -> None:
    X, y = sample(100, 5, 0)
    first, again, other = (grow_forest(X, y[:, None], n_trees=5, seed=seed).predict(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_forest_can_be_pickled() -> None:
    X, y = sample(100, 3, 0)
    forest = grow_forest(X, y[:, None], n_trees=5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(forest)).predict(X), forest.predict(X))


@needs_compiler
def test_trees_one_by_one_are_the_forest() -> None:
    X, y = sample(200, 4, 0)
    forest = grow_forest(X, y[:, None], n_trees=7)
    apart = np.mean([one_tree(forest, t).predict(X) for t in range(7)], axis=0)
    np.testing.assert_allclose(apart, forest.predict(X), rtol=1e-12)


@needs_compiler
def test_rows_out_of_the_bag_are_those_that_no_draw_hit() -> None:
    X, y = sample(200, 4, 0)
    forest = grow_forest(X, y[:, None], n_trees=40)
    drawn = np.array([times_drawn(forest, t) for t in range(40)])
    assert (drawn.sum(axis=1) == 200).all()
    apart = np.array([one_tree(forest, t).predict(X)[:, 0] for t in range(40)])
    expected = np.where(drawn == 0, apart, 0).sum(axis=0) / (drawn == 0).sum(axis=0)
    np.testing.assert_allclose(forest.out_of_bag[:, 0], expected, rtol=1e-10)


@needs_compiler
def test_without_a_compiler_scikit_learn_grows_a_forest_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sample(400, 5, 0)
    new = np.random.default_rng(1).normal(size=(2000, 5))
    fast = grow_forest(X, y[:, None], n_trees=100)
    predicted = fast.predict(new)[:, 0]
    monkeypatch.setattr(loader, "forest", None)
    monkeypatch.setattr(loader, "warn_forest_fallback", lambda: None)
    slow = grow_forest(X, y[:, None], n_trees=100)
    assert type(slow) is not type(fast)
    assert error(slow.predict(new)[:, 0], new) == pytest.approx(error(predicted, new), rel=0.15)
    assert np.nanmean((slow.out_of_bag - y[:, None]) ** 2) == pytest.approx(
        np.nanmean((fast.out_of_bag - y[:, None]) ** 2), rel=0.1
    )


@needs_compiler
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_forest_predicts_the_same_without_the_compiled_part(monkeypatch: pytest.MonkeyPatch, n_outputs: int) -> None:
    X, y = sample(200, 4, seed=3)
    X[::7, 1] = np.nan
    outputs = np.column_stack([y**power for power in range(1, n_outputs + 1)])
    stored = pickle.dumps(grow_forest(X, outputs, n_trees=30))
    new = sample(150, 4, seed=4)[0]
    new[::5, 2] = np.nan
    compiled = pickle.loads(stored).predict(new)
    monkeypatch.setattr(loader, "forest", None)
    np.testing.assert_array_equal(pickle.loads(stored).predict(new), compiled)


def first_output(predicted: Floats) -> Floats:
    return np.asarray(predicted[..., 0])


@pytest.mark.parametrize(("n_outputs", "p", "n_jobs"), [(1, 4, None), (1, 90, 2), (3, 40, None)])
@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_compiler), False])
def test_replaced_columns_are_predicted_as_in_replaced_rows(
    monkeypatch: pytest.MonkeyPatch, n_outputs: int, p: int, n_jobs: int | None, compiled: bool
) -> None:
    X, y = sample(150, p, seed=3)
    X[::7, 1] = np.nan
    X[:, 2] = np.round(X[:, 2])
    if not compiled:
        monkeypatch.setattr(loader, "forest", None)
        monkeypatch.setattr(loader, "warn_forest_fallback", lambda: None)
    outputs = np.column_stack([y**power for power in range(1, n_outputs + 1)])
    forest = grow_forest(X, outputs, n_trees=20, n_jobs=n_jobs)
    rows, others = sample(70, p, seed=4)[0], sample(70, p, seed=5)[0]
    rows[::5, 2] = others[::3, 0] = np.nan
    found = forest.predict_replaced(rows, others, first_output)
    assert found.shape == (p, 70)
    for column in range(p):
        replaced = rows.copy()
        replaced[:, column] = others[:, column]
        np.testing.assert_array_equal(found[column], forest.predict(replaced)[:, 0])


@needs_compiler
def test_decreases_of_columns_sum_to_the_variance_of_the_predictions_in_the_bag() -> None:
    X, y = sample(200, 6, seed=1)
    forest = grow_forest(X, np.column_stack([y, y**2]), n_trees=6)
    for tree in range(6):
        alone, drawn = one_tree(forest, tree), times_drawn(forest, tree)
        predicted = np.repeat(alone.predict(X), drawn, axis=0)
        np.testing.assert_allclose(alone.decreases().sum(), predicted.var(axis=0).sum(), rtol=1e-10)
    each = sum(one_tree(forest, tree).decreases() for tree in range(6))
    np.testing.assert_allclose(forest.decreases(), each, rtol=1e-12)


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_compiler), False])
def test_decreases_are_largest_for_the_columns_of_the_signal(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    X, y = sample(400, 30, seed=2)
    X[:, 29] = 1.0
    if not compiled:
        monkeypatch.setattr(loader, "forest", None)
        monkeypatch.setattr(loader, "warn_forest_fallback", lambda: None)
    found = grow_forest(X, y[:, None], n_trees=50).decreases()
    assert set(np.argsort(-found)[:3]) == {0, 1, 2}  # the columns of `signal`
    assert found[29] == 0


def test_scikit_learn_forest_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "forest", None)
    loader.warn_forest_fallback.cache_clear()
    X, y = sample(40, 3, seed=1)
    with pytest.warns(FallbackWarning, match="other draws.*Install a wheel"):
        grow_forest(X, y[:, None], n_trees=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grow_forest(X, y[:, None], n_trees=2)


@needs_compiler
def test_rows_with_another_number_of_columns_raise_an_error() -> None:
    X, y = sample(50, 3, seed=1)
    forest = grow_forest(X, y[:, None], n_trees=3)
    for rows in (X[:, :2], np.hstack([X, X]), X[0]):
        with pytest.raises(ValueError, match="grown on 3 columns"):
            forest.predict(rows)


def test_the_forest_of_scikit_learn_takes_numbers_beyond_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "forest", None)
    monkeypatch.setattr(loader, "warn_forest_fallback", lambda: None)
    X, y = sample(60, 3, seed=1)
    X[:, 1] *= 1e200
    forest = grow_forest(X, y[:, None], n_trees=5)
    assert np.isfinite(forest.predict(X)).all()


@needs_compiler
def test_nodes_with_one_level_are_not_split_by_rounding() -> None:
    """A rare level that nothing predicts: trees are about as deep as scikit-learn's, without chains of nodes."""
    rng = np.random.default_rng(0)
    predictors = rng.normal(size=(2000, 8))
    level = (rng.random(2000) < 0.02).astype(np.float64)
    forest = grow_forest(predictors, np.column_stack([level, 1 - level]), n_trees=5, tried=6, seed=1)
    depth = np.zeros(len(forest.feature), dtype=int)
    for node in np.flatnonzero(forest.feature >= 0):
        depth[forest.child[node] : forest.child[node] + 2] = depth[node] + 1
    assert depth.max() < 60
    assert len(forest.feature) < 5 * 500
