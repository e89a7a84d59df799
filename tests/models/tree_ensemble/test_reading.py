from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import GridSearchCV

from subgrove._models.tree_ensemble.reading import read_ensemble
from tests.models.tree_ensemble.fitted import (
    CAT,
    EXTREME,
    LIGHT,
    cases,
    difference,
    frame,
    frame_target,
    library,
    on_thresholds,
    table,
    target,
)
from tests.models.tree_ensemble.reference import margins as margins_of

CASES = cases()


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_reading_reproduces_the_model(name: str, missing: bool) -> None:
    kind, method, supports_missing, make = CASES[name]
    if missing and not supports_missing:
        return
    for seed in range(2):
        X = table(seed, missing=missing)
        model = make(seed).fit(X, target(X, seed, kind))
        ensemble, _ = read_ensemble(model, method)
        assert (ensemble.feature >= 0).any() or "huge" in name
        rows = on_thresholds(table(seed + 50, missing=missing), ensemble, seed)
        assert difference(model, method, rows)[0] <= 1


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", ["hist", "hist classes", "lightgbm", "xgboost", "xgboost one level"])
def test_categories_are_read(name: str, missing: bool) -> None:
    X, rows = frame(1, missing=missing), frame(2, missing=missing)
    y: Any = frame_target(X)
    model: Any
    method = "predict"
    if name == "hist":
        model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=15)
    elif name == "hist classes":
        model, method = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=9), "predict_proba"
        y = np.digitize(y, [-0.3, 0.5])
    elif name == "lightgbm":
        model = library("lightgbm").LGBMRegressor(**LIGHT, min_data_per_group=5)
    else:
        onehot = 100 if "one" in name else 4
        model = library("xgboost").XGBRegressor(**EXTREME, enable_categorical=True, max_cat_to_onehot=onehot)
    model.fit(X, y)
    gap, ensemble = difference(model, method, rows)
    assert gap <= 1
    assert len(ensemble.sets) > 3
    other_order = rows.assign(c=rows["c"].cat.set_categories(list("hgfedcba")))
    assert difference(model, method, other_order)[0] <= 1
    if not name.startswith("xgboost"):  # which rejects unknown levels
        unknown = rows.assign(
            c=pd.Categorical(np.where(np.arange(len(rows)) % 5 == 0, "new", rows["c"].astype(object)))
        )
        assert difference(model, method, unknown)[0] <= 1


def test_integer_levels_of_lightgbm_may_be_negative_broken_or_unknown() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=500), rng.integers(0, 50, 500)])
    y = np.sin(X[:, 1]) + X[:, 0]
    model = library("lightgbm").LGBMRegressor(**LIGHT, min_data_per_group=5, cat_smooth=1.0)
    model.fit(X, y, categorical_feature=[1])
    rows = X.copy()
    rows[:, 1] = rng.choice([-3, -0.5, 0, 0.7, 7.9, 49, 50, 1000, 1e10, np.nan, np.inf], 500)
    gap, ensemble = difference(model, "predict", rows)
    assert gap <= 1
    assert len(ensemble.sets) > 3


def test_integer_levels_of_xgboost_may_be_negative_or_unknown() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=500), rng.integers(0, 50, 500)])
    y = np.sin(X[:, 1]) + X[:, 0]
    kinds = {"feature_types": ["q", "c"], "enable_categorical": True}
    model = library("xgboost").XGBRegressor(**EXTREME, **kinds).fit(X, y)
    rows = X.copy()
    rows[:, 1] = rng.choice([-3, 0, 7.9, 49, 50, 1000, np.nan], 500)
    gap, ensemble = difference(model, "predict", rows)
    assert gap <= 1
    assert len(ensemble.sets) > 3


def test_categorical_columns_of_hist_gradient_boosting_come_first() -> None:
    X = frame(1)
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=3).fit(X, frame_target(X))
    _, inputs = read_ensemble(model, "predict")
    assert inputs.columns == ((2,), (0,), (3,), (1,))
    Z = inputs.encode(X)
    for column, name in enumerate(X):
        expected = X[name].cat.codes if X[name].dtype == "category" else X[name]
        np.testing.assert_array_equal(Z[:, inputs.columns[column][0]], expected)


def test_unknown_codes_of_hist_gradient_boosting_go_as_missing_values() -> None:
    X = frame(1, missing=True)
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=15).fit(X, frame_target(X))
    ensemble, inputs = read_ensemble(model, "predict")
    rng = np.random.default_rng(0)
    Z = inputs.encode(X)
    for column in (0, 1):
        Z[:, column] = rng.choice([*range(-3, 45), 200, 255, np.nan], len(Z))
    known, position = model._bin_mapper.make_known_categories_bitsets()
    trees = [predictor for iteration in model._predictors for predictor in iteration]
    expected = sum(tree.predict(Z, known, position, 1) for tree in trees) + model._baseline_prediction.ravel()
    np.testing.assert_allclose(margins_of(ensemble, Z)[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost"])
def test_early_stopping_uses_the_best_iteration(name: str) -> None:
    X = table(0)
    y = np.random.default_rng(0).normal(size=len(X)) + X[:, 0]
    held_out = [(X[200:], y[200:])]
    if name == "lightgbm":
        train, valid = (library(name).Dataset(X[rows], y[rows]) for rows in (slice(200), slice(200, None)))
        stop = [library(name).early_stopping(2, verbose=False)]
        options = {"num_leaves": 15, "num_threads": 1, "verbose": -1}
        model = library(name).train(options, train, 200, valid_sets=[valid], callbacks=stop, keep_training_booster=True)
        assert model.num_trees() > model.best_iteration
    elif name == "xgboost":
        model = library(name).XGBRegressor(**{**EXTREME, "n_estimators": 200}, early_stopping_rounds=3)
        model.fit(X[:200], y[:200], eval_set=held_out, verbose=False)
        assert model.get_booster().num_boosted_rounds() > model.best_iteration + 1
    else:
        options = {**CAT, "iterations": 200, "early_stopping_rounds": 3}
        model = library(name).CatBoostRegressor(**options).fit(X[:200], y[:200], eval_set=held_out)
    gap, ensemble = difference(model, "predict", table(1))
    assert gap <= 1
    assert ensemble.n_trees < 200


def test_boosters_of_lightgbm_are_read() -> None:
    X = table(0)
    for kind in ("value", "two", "three"):
        labels = target(X, 0, kind)
        maker = library("lightgbm").LGBMRegressor if kind == "value" else library("lightgbm").LGBMClassifier
        booster = maker(**LIGHT).fit(X, labels).booster_
        assert difference(booster, "predict", table(1))[0] <= 1


def test_containers_give_the_same_inputs() -> None:
    X = table(0, missing=True)
    names = [f"x{j}" for j in range(X.shape[1])]
    models = [
        HistGradientBoostingRegressor(max_iter=3),
        RandomForestRegressor(3),
        library("lightgbm").LGBMRegressor(**LIGHT),
        library("xgboost").XGBRegressor(**EXTREME),
        library("catboost").CatBoostRegressor(**CAT),
    ]
    for model in models:
        model.fit(X, target(X, 0, "value"))
        _, inputs = read_ensemble(model, "predict")
        expected = inputs.encode(X)
        assert expected.flags.c_contiguous
        for other in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names), np.asfortranarray(X)):
            np.testing.assert_array_equal(inputs.encode(other), expected)
        nullable = pd.DataFrame(X, columns=names).convert_dtypes()
        assert nullable.dtypes.iloc[2].name == "Int64"
        np.testing.assert_array_equal(inputs.encode(nullable), expected)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_numbers_of_other_types_are_rounded_as_the_library_does(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(2**24, 2**24 + 9, (400, 3)).astype(np.float64)  # float32 rounds odd ones
    X[:, 2] = rng.integers(0, 2, 400)
    y = X[:, 0] % 5 + X[:, 2]
    models = [
        HistGradientBoostingRegressor(max_iter=5),
        RandomForestRegressor(5),
        library("lightgbm").LGBMRegressor(**LIGHT),
        library("xgboost").XGBRegressor(**EXTREME),
        library("catboost").CatBoostRegressor(**CAT),
    ]
    for model in models:
        model.fit(X, y)
        assert difference(model, "predict", X.astype(dtype))[0] <= 1


def test_searches_and_bound_methods_are_read() -> None:
    X = table(0)
    y = target(X, 0, "value")
    search = GridSearchCV(HistGradientBoostingRegressor(max_iter=3), {"max_depth": [2, 3]}, cv=2).fit(X, y)
    assert difference(search, "predict", X)[0] <= 1
    ensemble, inputs = read_ensemble(search.best_estimator_.predict, "function")
    np.testing.assert_allclose(ensemble.response(margins_of(ensemble, inputs.encode(X))), search.predict(X), rtol=1e-9)


def test_a_subclass_with_the_methods_of_the_library_is_read() -> None:
    class Mine(RandomForestRegressor):  # type: ignore[misc]
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            return super().fit(X, y, sample_weight)

    X = table(0)
    assert difference(Mine(3).fit(X, target(X, 0, "value")), "predict", X)[0] <= 1


def test_what_was_read_can_be_pickled_and_is_frozen() -> None:
    X = frame(0)
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=3).fit(X, frame_target(X))
    ensemble, inputs = pickle.loads(pickle.dumps(read_ensemble(model, "predict")))
    np.testing.assert_allclose(ensemble.response(margins_of(ensemble, inputs.encode(X))), model.predict(X), rtol=1e-9)
    fresh, _ = read_ensemble(model, "predict")
    with pytest.raises(ValueError, match="read-only"):
        fresh.threshold[0] = 1.0
