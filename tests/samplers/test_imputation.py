"""Imputation draws around a forest's predictions, with residuals of the rows that were requested for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Donors
from subgrove.exceptions import ParameterError
from subgrove.samplers.imputation import FittedImputation, Imputation, ResidualSource

RESIDUALS: list[ResidualSource] = ["oob", "train", "test"]
SIZES = pd.CategoricalDtype(["s", "m", "l"], ordered=True)
NOISE = 0.5


def table(n: int, seed: int) -> pd.DataFrame:
    """x is a step in z plus noise; label follows z three times out of four."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, n)
    follows = rng.random(n) < 0.75
    high = np.where(follows, z > 0, z <= 0)
    return pd.DataFrame(
        {
            "x": 3 * (z > 0) + NOISE * rng.normal(size=n),
            "z": z,
            "label": np.where(high, "high", "low"),
            "size": pd.Series(np.where(high, "l", "s")).astype(SIZES),
            "noise": rng.normal(size=n),
        }
    )


TRAIN, TEST = table(600, 0), table(400, 1)


def new_columns(fitted: FittedImputation, X: pd.DataFrame, feature: str, n_repeats: int = 1) -> list[Any]:
    return [np.asarray(column) for column in fitted.sample(X, feature, Streams(0, feature, n_repeats))]


def forest(**settings: Any) -> Imputation:
    return Imputation(**{"n_trees": 60, **settings})


@pytest.mark.parametrize("residuals", RESIDUALS)
def test_resampled_values_are_around_what_the_others_predicts(residuals: ResidualSource) -> None:
    (values,) = new_columns(forest(residuals=residuals).fit(TRAIN, ["x"]), TEST, "x")
    high = TEST["z"].to_numpy() > 0
    # About 200 values with a standard deviation below 1 on each side, and a forest that is off by less than 0.2.
    assert values[high].mean() == pytest.approx(3.0, abs=0.2 + 4 * 0.07)
    assert values[~high].mean() == pytest.approx(0.0, abs=0.2 + 4 * 0.07)


def spread(values: Floats) -> float:
    return float((values - 3 * (TEST["z"].to_numpy() > 0)).std())


def test_out_of_bag_residuals_spread_as_the_noise_does_and_those_of_training_less() -> None:
    found = {
        residuals: np.mean(
            [spread(v) for v in new_columns(forest(residuals=residuals).fit(TRAIN, ["x"]), TEST, "x", 20)]
        )
        for residuals in RESIDUALS
    }
    assert NOISE < found["oob"] < 1.5 * NOISE
    assert NOISE < found["test"] < 1.5 * NOISE
    assert found["train"] < 0.85 * found["oob"]


def test_test_residuals_give_no_row_its_own_value() -> None:
    fitted = forest(residuals="test").fit(TRAIN, ["x"])
    for values in new_columns(fitted, TEST, "x", 5):
        assert not np.isclose(values, TEST["x"], rtol=0, atol=1e-12).any()


def test_test_residuals_of_all_rows_are_used_once() -> None:
    fitted = forest(residuals="test").fit(TRAIN, ["x"])
    residuals = TEST["x"].to_numpy() - fitted.forests["x"].forest.predict(_predictors(fitted, TEST, "x"))[:, 0]
    (values,) = new_columns(fitted, TEST, "x")
    shuffled = values - fitted.forests["x"].forest.predict(_predictors(fitted, TEST, "x"))[:, 0]
    assert np.sort(shuffled) == pytest.approx(np.sort(residuals), abs=1e-12)


def _predictors(fitted: FittedImputation, X: pd.DataFrame, feature: str) -> Floats:
    from subgrove._data.encode import one_hot

    return one_hot(fitted.read(X), feature)


@pytest.mark.parametrize("feature", ["label", "size"])
def test_levels_are_drawn_with_the_probabilities_of_the_forest(feature: str) -> None:
    fitted = forest(min_node_size=100).fit(TRAIN, [feature])
    draws = np.array(new_columns(fitted, TEST, feature, 50))
    high = TEST["z"].to_numpy() > 0
    top = draws == ("high" if feature == "label" else "l")
    assert top[:, high].mean() > 0.6
    assert top[:, ~high].mean() < 0.4
    shares = fitted.forests[feature].forest.predict(_predictors(fitted, TEST, feature))
    # Levels come in sorted order: "high" before "low", but the number of "s" before that of "l".
    expected = shares[:, 0 if feature == "label" else 1]
    # 50 draws for each of 400 rows: the mean over all of them has a standard deviation below 0.5 / sqrt(20,000).
    assert (top.mean(axis=0) - expected).mean() == pytest.approx(0.0, abs=4 * 0.5 / np.sqrt(20_000))


def test_level_is_the_one_that_the_donor_holds() -> None:
    fitted = forest().fit(TRAIN, ["size"])
    resampled = fitted.resample(fitted.read(TEST), ("size",), Streams(0, "size", 1), exact=False)
    (changes,) = resampled.draws()
    column = changes["size"]
    assert isinstance(column, Donors)
    assert column.train
    (values,) = fitted.sample(TEST, "size", Streams(0, "size", 1))
    assert list(values) == TRAIN["size"].iloc[column.rows].tolist()


def test_expectation_over_levels_is_exact_if_repeats_cost_as_much() -> None:
    fitted = forest().fit(TRAIN.assign(three=np.resize(["a", "b", "c"], len(TRAIN))), ["three"])
    rows = fitted.read(TEST.assign(three=np.resize(["a", "b", "c"], len(TEST))))
    assert fitted.resample(rows, ("three",), Streams(0, "three", 1)).exact is None
    exact = fitted.resample(rows, ("three",), Streams(0, "three", 2)).exact
    assert exact is not None
    assert exact.rows.all()
    given = np.zeros(len(TEST))
    for step in exact.terms():
        given[step.rows] += step.weights
    shares = fitted.forests["three"].forest.predict(
        _predictors(fitted, TEST.assign(three=np.resize(["a", "b", "c"], len(TEST))), "three")
    )
    own = shares[np.arange(len(TEST)), np.resize([0, 1, 2], len(TEST))]
    # What is not given is the probability of the row's own level.
    assert given == pytest.approx(1 - own, abs=1e-12)


def test_forest_of_a_feature_does_not_depend_on_other_features() -> None:
    alone, among = forest().fit(TRAIN, ["x"]), forest().fit(TRAIN, ["label", "x"])
    np.testing.assert_array_equal(new_columns(alone, TEST, "x"), new_columns(among, TEST, "x"))


def test_number_of_jobs_changes_nothing() -> None:
    one, two = forest(n_jobs=1).fit(TRAIN, ["x", "label"]), forest(n_jobs=2).fit(TRAIN, ["x", "label"])
    for feature in ("x", "label"):
        np.testing.assert_array_equal(new_columns(one, TEST, feature), new_columns(two, TEST, feature))


def test_another_seed_gives_another_forest() -> None:
    one, two = forest(random_state=0).fit(TRAIN, ["x"]), forest(random_state=1).fit(TRAIN, ["x"])
    assert (new_columns(one, TEST, "x")[0] != new_columns(two, TEST, "x")[0]).any()


def holed(X: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    X = X.copy()
    for at, name in enumerate(names):
        X.loc[at::7, name] = None
    return X


@pytest.mark.parametrize("feature", ["x", "label", "size"])
@pytest.mark.parametrize("residuals", RESIDUALS)
def test_every_row_gets_a_value_also_where_some_were_missing(feature: str, residuals: ResidualSource) -> None:
    names = list(TRAIN.columns)
    fitted = forest(residuals=residuals).fit(holed(TRAIN, names), [feature])
    for column in new_columns(fitted, holed(TEST, names), feature, 3):
        assert not pd.isna(column).any()


def test_rows_without_a_value_are_left_out_of_growing() -> None:
    X = TRAIN.copy()
    X.loc[100:, "x"] = np.nan
    with_rows, without = forest().fit(X, ["x"]), forest().fit(X.iloc[:100], ["x"])
    np.testing.assert_array_equal(new_columns(with_rows, TEST, "x"), new_columns(without, TEST, "x"))


def test_missing_values_and_new_levels_that_training_did_not_have_are_taken() -> None:
    fitted = forest().fit(TRAIN, ["x"])
    new = TEST.assign(label="never seen", z=np.nan)
    assert np.isfinite(new_columns(fitted, new, "x")[0]).all()


def test_single_column_is_drawn_from_its_distribution() -> None:
    X = TRAIN[["x"]]
    (values,) = new_columns(forest().fit(X), X, "x")
    assert values.mean() == pytest.approx(X["x"].mean(), abs=0.2)
    assert values.std() == pytest.approx(X["x"].std(), rel=0.1)


def test_constant_features_stay_constant() -> None:
    X = TRAIN.assign(x=2.0, label="high")
    fitted = forest().fit(X, ["x", "label"])
    assert new_columns(fitted, X, "x")[0] == pytest.approx(np.full(len(X), 2.0))
    assert set(new_columns(fitted, X, "label")[0]) == {"high"}


def test_all_test_rows_missing_has_no_residual_to_take() -> None:
    fitted = forest(residuals="test").fit(TRAIN, ["x"])
    with pytest.raises(ParameterError, match="has no residual of 'x'"):
        next(fitted.sample(TEST.assign(x=np.nan), "x", 1))


def test_no_out_of_bag_row_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ParameterError, match=r"no out-of-bag residual of 'x'.*Increase n_trees"):
        Imputation(n_trees=1).fit(TRAIN.head(1), ["x"])


def test_weights_count_residuals_of_test_rows() -> None:
    fitted = forest(residuals="test").fit(TRAIN, ["x"])
    X = TEST.head(50)
    weights = np.r_[np.full(2, 100.0), np.full(48, 1e-9)]
    resampled = fitted.resample(fitted.read(X), ("x",), Streams(0, "x", 1), weights=weights)
    (changes,) = resampled.draws()
    predicted = fitted.forests["x"].forest.predict(_predictors(fitted, X, "x"))[:, 0]
    residuals = np.asarray(changes["x"]) - predicted
    assert len(np.unique(residuals.round(9))) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"residuals": "all"}, "residuals must be 'oob', 'train' or 'test'"),
        ({"n_trees": 0}, "n_trees must be a whole number >= 1"),
        ({"min_node_size": 0}, "min_node_size must be a whole number >= 1"),
        ({"random_state": -1}, "random_state must be an integer"),
    ],
)
def test_parameters_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Imputation(**settings).fit(TRAIN, ["x"])


def test_groups_raise_an_error() -> None:
    with pytest.raises(ParameterError, match="'imputation' resamples one feature at a time"):
        forest().fit(TRAIN, [["x", "z"]])


def test_levels_that_no_tree_predicts_are_not_evaluated() -> None:
    """Also if a mean of indicators misses 0 by rounding."""
    three = np.resize(["a", "b", "c"], 90)
    train = pd.DataFrame({"level": three, "reported": np.resize([1.0, 2.0, 3.0], 90)})
    fitted = forest().fit(train, ["level"])
    resampled = fitted.resample(fitted.read(train), ("level",), Streams(0, "level", 5))
    assert resampled.exact is not None
    assert [len(step.rows) for step in resampled.exact.terms()] == [0, 0, 0]


def test_a_feature_with_so_many_levels_that_memory_would_run_out_is_rejected() -> None:
    table = pd.DataFrame({"a": np.arange(4_000.0), "g": [f"level {i % 1_000}" for i in range(4_000)]})
    with pytest.raises(ParameterError, match=r"too much memory for 'g', which has 1,000 levels in 4,000 rows\. Merge"):
        Imputation().fit(table, ["g"])
    assert Imputation(n_trees=2).fit(table, ["g"]) is not None


@pytest.mark.compiled
def test_the_forest_of_a_feature_with_many_levels_has_fewer_trees() -> None:
    table = pd.DataFrame({"a": np.arange(600.0), "g": [f"level {i % 300}" for i in range(600)], "h": ["u", "v"] * 300})
    fitted = Imputation(n_trees=400).fit(table, ["g", "h"])
    trees = {name: len(one.forest.roots) for name, one in fitted.forests.items()}
    assert trees == {"g": 50_000_000 // (600 * 300), "h": 400}
