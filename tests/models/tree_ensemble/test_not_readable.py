from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from subgrove._models.tree_ensemble.ensemble import NotReadable
from subgrove._models.tree_ensemble.reading import read_ensemble
from tests.models.tree_ensemble.fitted import CAT, EXTREME, LIGHT, frame, frame_target, library, table, target

X = table(0)
Y = target(X, 0, "positive")
TWO = target(X, 0, "two")
THREE = target(X, 0, "three")


def is_rejected(model: Any, reason: str, method: str = "predict") -> None:
    with pytest.raises(NotReadable, match=reason):
        read_ensemble(model, method)


class OwnPredict(RandomForestRegressor):  # type: ignore[misc]
    def predict(self, X: Any) -> Any:
        return 2 * super().predict(X)


class OwnRawPredict(HistGradientBoostingRegressor):  # type: ignore[misc]
    def _raw_predict(self, X: Any, n_threads: Any = None) -> Any:
        return 2 * super()._raw_predict(X, n_threads)


class OwnAttributes(RandomForestRegressor):  # type: ignore[misc]
    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


def replaced() -> Any:
    model = RandomForestRegressor(2).fit(X, Y)
    model.predict = lambda X: np.zeros(len(X))
    return model


SKLEARN: dict[str, tuple[Callable[[], Any], str]] = {
    "an init estimator": (lambda: GradientBoostingRegressor(init=DummyRegressor(), n_estimators=2), "init estimator"),
    "a linear model": (LinearRegression, "not a supported tree ensemble"),
    "AdaBoost": (lambda: AdaBoostRegressor(n_estimators=2), "not a supported tree ensemble"),
    "bagging": (lambda: BaggingRegressor(n_estimators=2), "not a supported tree ensemble"),
    "a transformed target": (lambda: TransformedTargetRegressor(DecisionTreeRegressor()), "not a supported"),
    "a subclass with its own predict": (lambda: OwnPredict(2), "OwnPredict defines its own predict"),
    "a subclass with its own private method": (lambda: OwnRawPredict(max_iter=2), "defines its own _raw_predict"),
    "a subclass with its own look-up": (lambda: OwnAttributes(2), "hooks"),
}


@pytest.mark.parametrize("name", SKLEARN)
def test_models_of_scikit_learn_that_are_not_known_are_rejected(name: str) -> None:
    make, reason = SKLEARN[name]
    is_rejected(make().fit(X, Y), reason)


@pytest.mark.parametrize("make", [lambda: RandomForestRegressor(2), DecisionTreeRegressor])
def test_several_outputs_are_rejected(make: Callable[[], Any]) -> None:
    is_rejected(make().fit(X, np.column_stack([Y, -Y])), "several outputs")


def test_labels_and_methods_that_do_not_exist_are_rejected() -> None:
    is_rejected(RandomForestClassifier(2).fit(X, TWO), "labels")
    is_rejected(RandomForestClassifier(2).fit(X, TWO), "no decision_function", "decision_function")
    is_rejected(RandomForestClassifier(2).fit(X, np.zeros(len(X))), "one class", "predict_proba")
    is_rejected(RandomForestRegressor(2).fit(X, Y), "no predict_proba", "predict_proba")
    is_rejected(RandomForestRegressor(2).fit(X, Y), "not supported", "score")
    is_rejected(RandomForestRegressor(2).fit(X, Y), "function", "function")


def test_a_replaced_method_is_rejected() -> None:
    is_rejected(replaced(), "replaced")
    is_rejected(replaced().predict, "function", "function")


@pytest.mark.parametrize(
    "model", [None, 3, "model", lambda X: X, RandomForestRegressor, RandomForestRegressor(), np.zeros(3), object()]
)
def test_other_objects_are_rejected(model: Any) -> None:
    for method in ("predict", "function"):
        with pytest.raises(NotReadable):
            read_ensemble(model, method)


def test_objects_that_raise_errors_are_rejected() -> None:
    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    class Broken(HistGradientBoostingRegressor):  # type: ignore[misc]
        @property
        def _predictors(self) -> Any:
            raise OSError("gone")

    for method in ("predict", "function"):
        with pytest.raises(NotReadable):
            read_ensemble(Hostile(), method)
    is_rejected(Broken(), "OSError")


Change = Callable[[Any], None]


def of_nodes(field: str, value: Any) -> Change:
    def change(model: Any) -> None:
        nodes = model._predictors[0][0].nodes
        nodes[field][np.flatnonzero(nodes["is_leaf"] == (field == "value"))[-1]] = value

    return change


def with_another_field(model: Any) -> None:
    nodes = model._predictors[0][0].nodes
    wider = np.zeros(len(nodes), dtype=[*nodes.dtype.descr, ("oblique", "<f8")])
    for iteration in model._predictors:
        iteration[0].nodes = wider


def without(name: str) -> Change:
    return lambda model: delattr(model, name)


CORRUPTED: dict[str, tuple[Change, str]] = {
    "a child outside the tree": (of_nodes("left", 10_000), "invalid child"),
    "a cycle": (of_nodes("left", 0), "invalid child"),
    "a shared child": (of_nodes("left", 1), "not trees|invalid child"),
    "an unknown feature": (of_nodes("feature_idx", 99), "unknown feature"),
    "a value that is not finite": (of_nodes("value", np.nan), "not finite"),
    "a threshold that is missing": (of_nodes("num_threshold", np.nan), "threshold is missing"),
    "an unknown field": (with_another_field, "other nodes"),
    "no trees": (lambda model: model._predictors.clear(), "no trees"),
    "an incomplete iteration": (lambda model: model._predictors[0].clear(), "lacks a tree"),
    "no baseline": (without("_baseline_prediction"), "AttributeError"),
    "no preprocessor": (without("_preprocessor"), "AttributeError"),
    "another loss": (lambda model: setattr(model, "_loss", object()), "AttributeError"),
}


@pytest.mark.parametrize("name", CORRUPTED)
def test_corrupted_models_are_rejected(name: str) -> None:
    change, reason = CORRUPTED[name]
    model = HistGradientBoostingRegressor(max_iter=3).fit(X, Y)
    read_ensemble(model, "predict")
    change(model)
    is_rejected(model, reason)


def test_classes_that_do_not_fit_are_rejected() -> None:
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, THREE)
    model.classes_ = model.classes_[:2]
    is_rejected(model, "classes", "predict_proba")


def test_forests_without_trees_are_rejected() -> None:
    model = RandomForestRegressor(2).fit(X, Y)
    model.estimators_ = []
    is_rejected(model, "ZeroDivisionError|IndexError|no trees")


LIGHTGBM: dict[str, tuple[dict[str, Any], str]] = {
    "linear trees": ({"linear_tree": True}, "linear trees"),
    "the root of the target": ({"reg_sqrt": True}, "root of the target"),
    "an own objective": ({"objective": lambda y, f: (f - y, np.ones_like(y))}, "objective is"),
    "parameters of predictions": ({"pred_early_stop": True}, "parameters of its predictions"),
}


@pytest.mark.parametrize("name", LIGHTGBM)
def test_unusual_models_of_lightgbm_are_rejected(name: str) -> None:
    options, reason = LIGHTGBM[name]
    is_rejected(library("lightgbm").LGBMRegressor(**LIGHT, **options).fit(X, Y), reason)


def test_classes_of_lightgbm_one_against_all_are_rejected() -> None:
    model = library("lightgbm").LGBMClassifier(**LIGHT, objective="multiclassova").fit(X, THREE)
    is_rejected(model, "objective is multiclassova", "predict_proba")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("leaf_value=", "leaf_value=1 ", "incomplete"),
        ("threshold=", "thresholds=", "incomplete"),
        (r"left_child=-?\d+", "left_child=99", "invalid child"),
        ("decision_type=2", "decision_type=64", "unknown kind"),
        ("split_feature=", "split_feature=77 ", "incomplete"),
        ("max_feature_idx=4", "max_feature_idx=0", "unknown feature"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=3", "no trees"),
        ("objective=regression", "objective=other", "objective is other"),
    ],
)
def test_corrupted_texts_of_lightgbm_are_rejected(old: str, new: str, reason: str) -> None:
    model = library("lightgbm").LGBMRegressor(**LIGHT).fit(X, Y)
    text = model.booster_.model_to_string()
    assert re.search(old, text)
    model.booster_.model_to_string = lambda: re.sub(old, new, text, count=1)
    is_rejected(model, reason)


XGBOOST: dict[str, tuple[dict[str, Any], Any, str]] = {
    "linear": ({"booster": "gblinear", "max_depth": None}, Y, "booster is gblinear"),
    "two outputs": ({}, np.column_stack([Y, -Y]), "several outputs"),
    "vector leaves": ({"multi_strategy": "multi_output_tree"}, np.column_stack([Y, -Y]), "several outputs"),
    "an own objective": ({"objective": lambda y, f: (f - y, np.ones_like(y))}, Y, "objective is a function"),
    "hinge": ({"objective": "binary:hinge"}, TWO, "objective is binary:hinge"),
    "several quantiles": ({"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]}, Y, "several outputs"),
}


@pytest.mark.parametrize("name", XGBOOST)
def test_unusual_models_of_xgboost_are_rejected(name: str) -> None:
    options, y, reason = XGBOOST[name]
    is_rejected(library("xgboost").XGBRegressor(**{**EXTREME, **options}).fit(X, y), reason)


def test_a_booster_of_xgboost_is_rejected() -> None:
    model = library("xgboost").XGBRegressor(**EXTREME).fit(X, Y)
    is_rejected(model.get_booster(), "not a supported tree ensemble")


def test_an_unfitted_model_of_each_library_is_rejected() -> None:
    for model in (library("xgboost").XGBRegressor(), library("lightgbm").LGBMRegressor()):
        is_rejected(model, "could not be read")
    is_rejected(library("catboost").CatBoostRegressor(), "could not be read")


CATBOOST: dict[str, tuple[dict[str, Any], Any, str]] = {
    "trees by depth": ({"grow_policy": "Depthwise"}, Y, "not symmetric"),
    "uncertainty": ({"loss_function": "RMSEWithUncertainty"}, Y, "several outputs"),
    "two outputs": ({"loss_function": "MultiRMSE"}, np.column_stack([Y, -Y]), "several outputs"),
}


@pytest.mark.parametrize("name", CATBOOST)
def test_unusual_models_of_catboost_are_rejected(name: str) -> None:
    options, y, reason = CATBOOST[name]
    is_rejected(library("catboost").CatBoostRegressor(**CAT, **options).fit(X, y), reason)


def test_categories_of_catboost_are_rejected() -> None:
    F = frame(0).assign(c=lambda F: F["c"].astype(str)).drop(columns="k")
    model = library("catboost").CatBoostRegressor(**CAT, cat_features=["c"]).fit(F, frame_target(frame(0)))
    is_rejected(model, "not numeric")


def test_texts_of_catboost_are_rejected() -> None:
    F = pd.DataFrame({"a": X[:, 0], "t": [f"word{row % 7} and thing{row % 3}" for row in range(len(X))]})
    model = library("catboost").CatBoostClassifier(**CAT, text_features=["t"]).fit(F, TWO)
    is_rejected(model, "not numeric", "predict_proba")


def test_another_order_of_columns_is_rejected_for_catboost_which_finds_them_by_name() -> None:
    F = pd.DataFrame(X, columns=list("abcde"))
    model = library("catboost").CatBoostRegressor(**CAT).fit(F, Y)
    encoding_fails(model, F[list("edcba")], "another order of columns")
    assert np.array_equal(model.predict(F), model.predict(F[list("edcba")]))


def test_classes_of_catboost_one_against_all_are_rejected() -> None:
    model = library("catboost").CatBoostClassifier(**CAT, loss_function="MultiClassOneVsAll").fit(X, THREE)
    is_rejected(model, "loss is MultiClassOneVsAll", "predict_proba")


def encoding_fails(model: Any, rows: Any, reason: str, method: str = "predict") -> None:
    _, inputs = read_ensemble(model, method)
    with pytest.raises(NotReadable, match=reason):
        inputs.encode(rows)


def test_tables_that_the_model_rejects_are_rejected() -> None:
    forest = RandomForestRegressor(2).fit(X, Y)
    boosting = GradientBoostingRegressor(n_estimators=2).fit(X, Y)
    infinite, missing = X.copy(), X.copy()
    infinite[3, 1], missing[3, 1] = np.inf, np.nan
    encoding_fails(forest, infinite, "infinite")
    encoding_fails(boosting, missing, "missing values")
    for model in (forest, boosting):
        with pytest.raises(ValueError, match="contains"):
            model.predict(infinite if model is forest else missing)


def test_tables_of_another_shape_or_with_text_are_rejected() -> None:
    models = [
        RandomForestRegressor(2),
        HistGradientBoostingRegressor(max_iter=2),
        library("lightgbm").LGBMRegressor(**LIGHT),
        library("xgboost").XGBRegressor(**EXTREME),
        library("catboost").CatBoostRegressor(**CAT),
    ]
    text = pd.DataFrame(X).assign(a="text")
    encoding_fails(models[0].fit(X, Y), np.zeros((3, 5), dtype="datetime64[s]"), "not numeric")
    for model in models:
        model.fit(X, Y)
        for rows in (X[:, :3], X[:, 0], text, text.iloc[:, 1:], None, "text"):
            encoding_fails(model, rows, "table")


def test_tables_with_other_columns_are_rejected() -> None:
    F = frame(0)
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=2).fit(F, frame_target(F))
    encoding_fails(model, F[["c", "a", "b", "k"]], "another order")
    light = library("lightgbm").LGBMRegressor(**LIGHT).fit(F, frame_target(F))
    encoding_fails(light, F.assign(c=1.0), "categorical columns")
    extreme = library("xgboost").XGBRegressor(**EXTREME, enable_categorical=True).fit(F, frame_target(F))
    encoding_fails(extreme, F.assign(c=1.0), "categorical columns")
    encoding_fails(extreme, F.assign(c=pd.Categorical(["new"] * len(F))), "levels that the model rejects")
    encoding_fails(extreme, np.zeros((3, 4)), "pandas")
