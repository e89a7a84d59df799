from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from subgrove._models.tree_ensemble.ensemble import NotReadable
from subgrove._models.tree_ensemble.reading import read_ensemble
from tests.models.tree_ensemble.fitted import CAT, EXTREME, LIGHT, difference, library, table, target
from tests.models.tree_ensemble.reference import margins as margins_of


def mixed(seed: int, n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "c": rng.choice(list("abcdef"), n),
            "b": np.round(rng.normal(size=n), 1),
            "k": rng.choice(["u", "v", "w"], n),
        }
    )
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    return X


def mixed_target(X: pd.DataFrame) -> Any:
    return X["a"] + X["b"].fillna(0) * X["c"].isin(["a", "e"]) + (X["k"] == "v")


def last_steps() -> dict[str, Any]:
    return {
        "hist": HistGradientBoostingRegressor(max_iter=8),
        "forest": RandomForestRegressor(5),
        "lightgbm": library("lightgbm").LGBMRegressor(**LIGHT),
        "xgboost": library("xgboost").XGBRegressor(**EXTREME),
        "catboost": library("catboost").CatBoostRegressor(**CAT),
    }


def encoder(**options: Any) -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("levels", OneHotEncoder(handle_unknown="ignore", **options), ["c", "k"]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler(copy=False)), ["b"]),
        ],
        remainder="passthrough",
    )


@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize("name", ["hist", "forest", "lightgbm", "xgboost", "catboost"])
def test_one_hot_columns_are_inputs_of_one_column(name: str, output: str) -> None:
    X, rows = mixed(0), mixed(1)
    rows.loc[::7, "c"] = "unknown"
    model = make_pipeline(encoder(sparse_output=False).set_output(transform=output), last_steps()[name])
    model.fit(X, mixed_target(X))
    kept = rows.copy()
    assert difference(model, "predict", rows)[0] <= 1
    pd.testing.assert_frame_equal(rows, kept)
    _, inputs = read_ensemble(model, "predict")
    assert inputs.columns == ((10,), (0, 1, 2, 3, 4, 5), (9,), (6, 7, 8))


@pytest.mark.parametrize(
    "options", [{"drop": "first"}, {"drop": "if_binary"}, {"max_categories": 3}, {"min_frequency": 60}]
)
def test_dropped_and_merged_levels_are_known(options: dict[str, Any]) -> None:
    X = mixed(0)
    model = make_pipeline(encoder(sparse_output=False, **options), RandomForestRegressor(5)).fit(X, mixed_target(X))
    assert difference(model, "predict", mixed(1))[0] <= 1
    _, inputs = read_ensemble(model, "predict")
    Z, changed = inputs.encode(X), X.copy()
    changed["c"] = X["c"].to_numpy()[::-1]
    moved = (inputs.encode(changed) != Z).any(axis=0)
    assert set(np.flatnonzero(moved)) <= set(inputs.columns[1])
    assert moved.any()


def test_each_input_depends_on_its_column_alone() -> None:
    X = mixed(0)
    steps = ColumnTransformer([("codes", OrdinalEncoder(), ["k", "c"])], remainder=MinMaxScaler())
    model = make_pipeline(steps, "passthrough", HistGradientBoostingRegressor(categorical_features=[1], max_iter=5))
    model.fit(X, mixed_target(X))
    _, inputs = read_ensemble(model, "predict")
    Z = inputs.encode(X)
    assert sorted(one for found in inputs.columns for one in found) == list(range(4))
    for column, name in enumerate(X):
        changed = X.copy()
        changed[name] = X[name].to_numpy()[::-1]
        moved = ~((inputs.encode(changed) == Z) | (np.isnan(inputs.encode(changed)) & np.isnan(Z))).all(axis=0)
        assert tuple(np.flatnonzero(moved)) == inputs.columns[column]
    assert difference(model, "predict", mixed(1))[0] <= 1


@pytest.mark.parametrize(
    "step",
    [
        *(StandardScaler(copy=False), MinMaxScaler(), RobustScaler(), MaxAbsScaler(), "passthrough"),
        *(FunctionTransformer(), SimpleImputer(strategy="median"), SimpleImputer(strategy="constant", fill_value=-1.0)),
        make_pipeline(SimpleImputer(), "passthrough", StandardScaler()),
    ],
)
def test_columnwise_steps_are_read(step: Any) -> None:
    X = table(0, missing=not isinstance(step, str))
    model = make_pipeline(step, HistGradientBoostingRegressor(max_iter=6)).fit(X.copy(), target(X, 0, "value"))
    rows = table(1, missing=True)
    kept = rows.copy()
    ensemble, inputs = read_ensemble(model, "predict")
    found = ensemble.response(margins_of(ensemble, inputs.encode(rows)))
    np.testing.assert_array_equal(rows, kept)
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-9)


@pytest.mark.parametrize("name", ["forest", "lightgbm"])
def test_a_sparse_matrix_has_zeros(name: str) -> None:
    X = mixed(0)
    steps = encoder().set_params(sparse_threshold=1.0)
    model = make_pipeline(steps, last_steps()[name]).fit(X, mixed_target(X))
    assert hasattr(steps.transform(X), "toarray")
    assert difference(model, "predict", mixed(1))[0] <= 1


def test_a_sparse_matrix_is_rejected_where_zeros_left_out_are_missing() -> None:
    X = mixed(0)
    model = make_pipeline(encoder().set_params(sparse_threshold=1.0), last_steps()["xgboost"]).fit(X, mixed_target(X))
    _, inputs = read_ensemble(model, "predict")
    with pytest.raises(NotReadable, match="sparse"):
        inputs.encode(X)


class Doubled(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, X: Any, y: Any = None) -> Doubled:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        return 2 * X


class OwnScaler(StandardScaler):  # type: ignore[misc]
    def transform(self, X: Any, copy: Any = None) -> Any:
        return X[:, ::-1]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (PCA(2), "PCA"),
        (PolynomialFeatures(2), "PolynomialFeatures"),
        (FunctionTransformer(np.cbrt), "FunctionTransformer"),
        (FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())]), "FeatureUnion"),
        (Doubled(), "Doubled"),
        (OwnScaler(), "OwnScaler"),
        (SimpleImputer(add_indicator=True), "indicators"),
        (Pipeline([("scale", StandardScaler()), ("pca", PCA(2))]), "PCA"),
        (ColumnTransformer([("pca", PCA(2), [0, 1, 2])], remainder="passthrough"), "PCA"),
    ],
)
def test_other_steps_are_rejected(step: Any, reason: str) -> None:
    X = table(0)
    X[::9, 0] = np.nan if isinstance(step, SimpleImputer) else 0.0
    model = make_pipeline(step, RandomForestRegressor(2)).fit(X, target(X, 0, "value"))
    with pytest.raises(NotReadable, match=reason):
        read_ensemble(model, "predict")


def test_an_imputer_that_drops_a_column_is_rejected() -> None:
    X = table(0)
    X[:, 2] = np.nan
    with pytest.warns(UserWarning, match="Skipping features"):
        model = make_pipeline(SimpleImputer(), RandomForestRegressor(2)).fit(X, target(X, 0, "value"))
    with pytest.raises(NotReadable, match="drops columns"):
        read_ensemble(model, "predict")


def test_a_table_with_another_order_of_columns_is_rejected() -> None:
    X = mixed(0)
    model = make_pipeline(encoder(), RandomForestRegressor(2)).fit(X, mixed_target(X))
    _, inputs = read_ensemble(model, "predict")
    for rows in (X[["c", "a", "b", "k"]], X.assign(more=1)):
        with pytest.raises(NotReadable, match="another order"):
            inputs.encode(rows)
