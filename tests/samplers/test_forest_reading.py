"""Forests of scikit-learn are read as they split; pipelines only if their steps keep the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from subgrove._data.table import read_table
from subgrove.exceptions import ParameterError
from subgrove.samplers.forest_reading import UserForest, node_cells, read_forest

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(200, 3)), columns=["a", "b", "c"])
Y = X["a"] + X["b"] * X["c"]
MIXED = X.assign(label=RNG.choice(["u", "v", "w"], 200), flag=RNG.random(200) < 0.5)


def small(model: type, **settings: Any) -> Any:
    return model(5, max_depth=4, random_state=0, **settings)


def read(forest: Any, table: Any = X) -> UserForest:
    return read_forest(forest, read_table(table).columns)


def leaves(forest: Any, table: Any) -> Any:
    return np.column_stack([tree.apply(np.asarray(table, dtype=np.float32)) for tree in forest.estimators_])


@pytest.mark.parametrize("model", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("missing", [False, True])
def test_splits_part_rows_as_the_trees_do(model: type, missing: bool) -> None:
    table = X.copy()
    if missing:
        if model is ExtraTreesRegressor and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 6):
            pytest.skip("extra trees take missing values from scikit-learn 1.6 on")
        table = table.mask(np.random.default_rng(1).random(table.shape) < 0.1)
    forest = small(model).fit(table, Y)
    found = read(forest, table)
    seen = found.encode(read_table(table))
    for splits, expected in zip(found.trees, leaves(forest, table).T, strict=True):
        cells = node_cells(splits, seen, range(3))
        assert len(set(zip(cells, expected, strict=True))) == len(set(cells)) == len(set(expected))


@pytest.mark.parametrize("model", [RandomForestClassifier, ExtraTreesClassifier])
def test_classifiers_are_forests_too(model: type) -> None:
    assert len(read(small(model).fit(X, Y > 0)).trees) == 5


def test_columns_are_found_by_name_or_by_place() -> None:
    named = read(small(RandomForestRegressor).fit(X[["c", "a"]], Y))
    assert named.names == ("c", "a")
    np.testing.assert_allclose(named.encode(read_table(X)), X[["c", "a"]], rtol=1e-6)
    assert read(small(RandomForestRegressor).fit(X.to_numpy(), Y)).names == ("a", "b", "c")


def test_booleans_and_number_categories_are_the_numbers_that_scikit_learn_makes_of_them() -> None:
    table = pd.DataFrame({"flag": MIXED["flag"], "year": pd.Categorical(RNG.choice([2011, 2012], 200))})
    forest = small(RandomForestRegressor).fit(table, Y)
    found = read(forest, table)
    np.testing.assert_array_equal(found.encode(read_table(table)), table.astype(float))


def test_steps_that_keep_the_columns_are_applied() -> None:
    pipeline = make_pipeline(StandardScaler(), small(RandomForestRegressor)).fit(X, Y)
    found = read(pipeline)
    assert found.names == ("a", "b", "c")
    np.testing.assert_allclose(found.encode(read_table(X)), pipeline[0].transform(X), rtol=1e-6)


def test_steps_without_names_are_applied_by_place() -> None:
    pipeline = make_pipeline(StandardScaler(), small(RandomForestRegressor)).fit(X.to_numpy(), Y)
    found = read(pipeline)
    np.testing.assert_allclose(found.encode(read_table(X)), pipeline[0].transform(X.to_numpy()), rtol=1e-6)


def test_columns_may_be_reordered_encoded_and_dropped() -> None:
    steps = ColumnTransformer([("o", OrdinalEncoder(), ["label", "flag"]), ("keep", "passthrough", ["b"])])
    pipeline = make_pipeline(steps, small(RandomForestRegressor)).fit(MIXED, Y)
    found = read(pipeline, MIXED)
    assert found.names == ("label", "flag", "b")
    np.testing.assert_allclose(found.encode(read_table(MIXED)), pipeline[0].transform(MIXED), rtol=1e-6)
    chosen = make_pipeline(SelectKBest(k=2), small(RandomForestClassifier)).fit(X, Y > 0)
    assert len(read(chosen).names) == 2


def test_pipeline_of_a_forest_alone_is_the_forest() -> None:
    assert read(make_pipeline(small(RandomForestRegressor)).fit(X, Y)).steps is None


@pytest.mark.parametrize(
    ("steps", "table", "message"),
    [
        (PCA(2), X, "columns of their own making ('pca0', 'pca1')"),
        (OneHotEncoder(), MIXED[["label"]], "columns of their own making ('label_u', 'label_v', 'label_w')"),
        (FunctionTransformer(lambda table: table * 2), X, "do not report their output columns"),
        (
            ColumnTransformer([("p", "passthrough", ["a"]), ("q", "passthrough", ["a"])]),
            X,
            "some columns several times",
        ),
    ],
)
def test_steps_that_make_other_columns_raise_an_error(steps: Any, table: Any, message: str) -> None:
    pipeline = make_pipeline(steps, small(RandomForestRegressor)).fit(table, Y)
    with pytest.raises(ParameterError) as error:
        read(pipeline, table)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "model", [LinearRegression().fit(X, Y), GradientBoostingRegressor(n_estimators=2).fit(X, Y), 3]
)
def test_other_models_raise_an_error(model: Any) -> None:
    with pytest.raises(ParameterError, match=f"forest must be a random forest.*got {type(model).__name__}"):
        read(model)


def test_forest_that_is_not_fitted_raises_an_error() -> None:
    with pytest.raises(ParameterError, match="has not been fitted"):
        read(RandomForestRegressor())


def test_forest_of_other_columns_raises_an_error() -> None:
    forest = small(RandomForestRegressor).fit(X, Y)
    with pytest.raises(ParameterError, match="fitted on 'c', which train lacks"):
        read(forest, X[["a", "b"]])
    with pytest.raises(ParameterError, match="fitted on 3 columns without names, but train has 2"):
        read(small(RandomForestRegressor).fit(X.to_numpy(), Y), X[["a", "b"]])


def test_labels_cannot_be_what_a_forest_alone_was_fitted_on() -> None:
    forest = small(RandomForestRegressor).fit(X.assign(label=1.0), Y)
    with pytest.raises(ParameterError, match="'label' is nominal, but the forest takes numbers"):
        read(forest, MIXED)
