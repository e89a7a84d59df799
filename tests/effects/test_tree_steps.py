"""Effects of tree ensembles from step functions are those of the model's own predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import subgrove as sg
from subgrove._effects import plan, tree_steps
from subgrove._models.predictor import Predictor
from subgrove._models.tree_ensemble.reading import CHECK_ROWS, TREE_STEPS
from subgrove._native import loader
from tests.models.tree_ensemble.fitted import EXTREME, LIGHT, frame, frame_target, library, table, target

from .models import AGAIN

pytestmark = pytest.mark.skipif(loader.tree_steps is None, reason="the compiled part is not installed")
KINDS: list[Any] = ["pdp", "ice", "ale", "mplot"]


@pytest.fixture(autouse=True)
def also_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MIN_ROWS", 0)


def numbers() -> pd.DataFrame:
    return pd.DataFrame(table(0, missing=True), columns=list("abcde"))


def forest() -> tuple[Any, Any]:
    X = numbers().fillna(0.0)
    return RandomForestRegressor(5, random_state=0).fit(X, target(X.to_numpy(), 0, "value")), X


def boosting() -> tuple[Any, Any]:
    X = numbers()
    return HistGradientBoostingRegressor(max_iter=10).fit(X, target(X.to_numpy(), 0, "value")), X


def two_classes() -> tuple[Any, Any]:
    X = numbers()
    return HistGradientBoostingClassifier(max_iter=8).fit(X, target(X.to_numpy(), 0, "two")), X


def three_classes() -> tuple[Any, Any]:
    X = numbers().fillna(0.0)
    return GradientBoostingClassifier(n_estimators=4).fit(X, target(X.to_numpy(), 0, "three")), X


def classes_of_a_forest() -> tuple[Any, Any]:
    X = numbers().fillna(0.0)
    return RandomForestClassifier(5, min_samples_leaf=2, random_state=0).fit(X, target(X.to_numpy(), 0, "three")), X


def categories() -> tuple[Any, Any]:
    X = frame(1, missing=True)
    model = HistGradientBoostingRegressor(max_iter=10, categorical_features="from_dtype", max_bins=64)
    return model.fit(X, frame_target(X)), X


def light() -> tuple[Any, Any]:
    X = frame(1, missing=True)
    return library("lightgbm").LGBMRegressor(**LIGHT).fit(X, frame_target(X)), X


def extreme() -> tuple[Any, Any]:
    X = numbers()
    return library("xgboost").XGBRegressor(**EXTREME).fit(X, target(X.to_numpy(), 0, "value")), X


def scaled_array() -> tuple[Any, Any]:
    X = table(3)
    return make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=5)).fit(X, target(X, 0, "value")), X


MODELS = [forest, boosting, two_classes, three_classes, classes_of_a_forest, categories, light, extreme, scaled_array]


def both(monkeypatch: pytest.MonkeyPatch, model: Any, X: Any, feature: Any, **options: Any) -> tuple[Any, Any]:
    """An effect by step functions, and by predictions of the model."""
    from_trees = sg.effect(model, X, feature, **options)
    assert from_trees.settings["evaluation"] == TREE_STEPS
    monkeypatch.setenv("SUBGROVE_TREE_STEPS", "0")
    from_model = sg.effect(model, X, feature, **options)
    assert from_model.settings["evaluation"].startswith("model predictions: ")
    return from_trees, from_model


def assert_same_table(found: Any, expected: Any, rtol: float) -> None:
    assert list(found.columns) == list(expected.columns)
    for name in expected:
        if expected[name].dtype.kind == "f":
            size = np.nanmax(np.abs(expected[name].to_numpy()), initial=1e-300)
            np.testing.assert_allclose(found[name], expected[name], rtol=rtol, atol=rtol * size)
        else:
            assert found[name].tolist() == expected[name].tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_curves_equal_those_of_the_model(make: Any, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = make()
    feature = "c" if isinstance(X, pd.DataFrame) else "x2"
    found, expected = both(monkeypatch, model, X, feature, kind=kind, subgroups=None)
    rtol = 1e-6 if make is extreme else 1e-10
    assert_same_table(found.curves, expected.curves, rtol)
    if kind == "ice":
        assert_same_table(found.ice, expected.ice, rtol)


@pytest.mark.parametrize("make", [boosting, classes_of_a_forest, categories, extreme], ids=lambda make: make.__name__)
def test_curves_in_subgroups_and_surfaces_equal_those_of_the_model(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = make()
    rtol = 1e-6 if make is extreme else 1e-10
    X = X.assign(a=X["a"] + X["b"].fillna(0))
    groups = sg.find_subgroups(X.iloc[::2], features="a", max_depth=2)
    assert len(groups["a"]) > 1
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    for options in ({"feature": "a", "subgroups": groups}, {"feature": ["a", "c"]}):
        with monkeypatch.context() as context:
            found, expected = both(context, model, X, grid_resolution=7, sample_weight=weights, **options)
            assert_same_table(found.curves, expected.curves, rtol)


def test_interaction_splits_and_passes_of_few_points_equal_those_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = boosting()
    monkeypatch.setattr(tree_steps, "_PASS_NUMBERS", 3 * len(X))
    found, expected = both(monkeypatch, model, X, "a", subgroups=None, interactions=True)
    assert_same_table(found.curves, expected.curves, 1e-10)
    assert found.subgroups is not None
    assert found.subgroups.rules == expected.subgroups.rules


def test_integers_coded_as_categories_are_evaluated_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    X = numbers()[["a", "c"]].assign(c=np.arange(400) % 5)
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features=["c"])
    model.fit(X, np.sin(3 * X["c"]) + X["a"].fillna(0))
    found, expected = both(monkeypatch, model, X, "c", subgroups=None, grid=[0, 2, 4])
    assert_same_table(found.curves, expected.curves, 1e-10)


def test_only_the_check_rows_are_predicted() -> None:
    model, X = boosting()
    found = sg.effect(model, X, "a", subgroups=None)
    assert found.n_rows_predicted == CHECK_ROWS
    assert found.n_calls == 1


def test_large_data_in_chunks_equals_the_model(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = boosting()
    X.to_parquet(tmp_path / "rows.parquet")
    large = sg.LargeData(tmp_path / "rows.parquet", chunk_rows=150)
    found, expected = both(monkeypatch, model, large, "a", subgroups=None)
    assert_same_table(found.curves, expected.curves, 1e-10)
    assert found.n_rows_predicted == 3 * CHECK_ROWS


def test_few_predictions_are_made_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = boosting()
    monkeypatch.setattr(plan, "MIN_ROWS", 401)
    found = sg.effect(model, X, "b", kind="mplot")
    n = int(X["b"].notna().sum())
    assert found.settings["evaluation"] == f"model predictions: {n} predictions are few"
    assert found.n_rows_predicted == n + AGAIN


@pytest.mark.parametrize("wrong", ["leaf", "shape"])
def test_trees_that_do_not_reproduce_the_model_are_not_used(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = boosting()
    expected = sg.effect(model, X, "a", subgroups=None, grid_resolution=7)
    original = Predictor.predict

    def other(self: Any, rows: Any, n: int, about: Any) -> Any:
        predictions = original(self, rows, n, about)
        return 1.001 * predictions if wrong == "leaf" else np.column_stack([predictions] * 2)

    monkeypatch.setattr(Predictor, "predict", other)
    found = sg.effect(model, X, "a", subgroups=None, grid_resolution=7)
    reason = "do not reproduce" if wrong == "leaf" else "another shape"
    assert found.settings["evaluation"].startswith("model predictions: ")
    assert reason in found.settings["evaluation"]
    first = found.curves["estimate"].to_numpy()[:7]
    np.testing.assert_allclose(first, (1.001 if wrong == "leaf" else 1) * expected.curves["estimate"], rtol=1e-10)


def test_other_models_predict_themselves() -> None:
    X = numbers().fillna(0.0)
    found = sg.effect(lambda rows: rows["a"] * 2, X, "a", subgroups=None)
    assert found.settings["evaluation"] == "model predictions: the model is a function"


@pytest.mark.parametrize("kind", KINDS)
def test_all_features_together_equal_one_at_a_time(kind: Any) -> None:
    model, X = categories()
    together = sg.Effects.compute(model, X, kind=kind, subgroups=None)
    assert list(together) == list(X)
    predicted = sum(each.n_rows_predicted for each in together.values())
    assert CHECK_ROWS <= predicted < CHECK_ROWS + 2 * len(X.columns)
    for name, found in together.items():
        assert found.settings["evaluation"] == TREE_STEPS
        assert_same_table(found.curves, sg.effect(model, X, name, kind=kind, subgroups=None).curves, 1e-12)


def test_all_features_of_other_models_equal_one_at_a_time() -> None:
    X = numbers().fillna(0.0)
    together = sg.Effects.compute(lambda rows: rows["a"] * rows["b"], X, features=["a", "b"])
    a, b = (sg.effect(lambda rows: rows["a"] * rows["b"], X, name) for name in ("a", "b"))
    assert together["a"] == a
    assert b.settings["n_rows_again"] == AGAIN  # the check of the first effect serves the others
    counts: dict[str, Any] = {"n_rows_predicted": b.n_rows_predicted - AGAIN, "n_calls": b.n_calls - 1}
    assert together["b"] == replace(b, settings={**b.settings, "n_rows_again": 0}, **counts)
    with pytest.raises(sg.exceptions.ParameterError, match="features has 'x'"):
        sg.Effects.compute(lambda rows: rows["a"], X, features=["x"])
