"""Importance of tree models equals the mean over all donors, each predicted by the model itself."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import subgrove as sg
from subgrove._effects import plan
from tests.models.tree_ensemble.fitted import CAT, EXTREME, LIGHT, cases, frame, frame_target, library, table, target

pytestmark = pytest.mark.compiled

CASES = {name: case for name, case in cases().items() if case[1] != "decision_function"}
ROWS = 30


def losses_of(method: str) -> tuple[str, ...]:
    return ("absolute_error", "squared_error") if method == "predict" else ("log_loss", "brier")


def row_losses(loss: str, y: Any, predictions: Any) -> Any:
    codes = y.astype(int) if loss in ("log_loss", "brier") else y
    return sg.losses.get(loss).function(codes, np.asarray(predictions, dtype=np.float64))


def by_brute_force(model: Any, method: str, X: Any, y: Any, loss: str, name: Any, weights: Any, code: Any) -> float:
    """Importance of a column: the model predicts every row with the value of every other row of its subgroup."""
    n = len(X)
    predict, frame_of = getattr(model, method), isinstance(X, pd.DataFrame)
    receiver, donor = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
    changed: Any = X.iloc[receiver].reset_index(drop=True) if frame_of else X[receiver]
    if frame_of:
        changed[name] = X[name].iloc[donor].to_numpy() if X[name].dtype.kind == "f" else X[name].iloc[donor].array
    else:
        changed[:, name] = X[donor, name]
    increase = row_losses(loss, y[receiver], predict(changed)) - row_losses(loss, y, predict(X))[receiver]
    allowed = (code[receiver] == code[donor]) & (receiver != donor)
    share = weights[donor] * allowed
    means = np.bincount(receiver, share * increase) / np.maximum(np.bincount(receiver, share), 1e-300)
    return float(means @ weights / weights.sum())


def compared(model: Any, method: str, X: Any, y: Any, loss: str, weights: Any, tolerance: float) -> None:
    names = list(X.columns) if isinstance(X, pd.DataFrame) else list(range(X.shape[1]))
    one = np.ones(len(X)) if weights is None else weights
    imp = sg.importance(
        model,
        X,
        y,
        sampler="marginal",
        loss=loss,
        n_repeats=40,
        sample_weight=weights,
        check_fidelity=False,
        random_state=1,
    )
    assert imp.settings["evaluation"] == "tree steps"
    assert imp.settings["n_rows_predicted"] == len(X) + 256
    assert (imp.overall["mc_error"] == 0).all()
    code = np.zeros(len(X), dtype=int)
    scale = float(np.mean(np.abs(row_losses(loss, y, getattr(model, method)(X)))))
    for name, estimate in zip(names, imp.overall["estimate"], strict=True):
        expected = by_brute_force(model, method, X, y, loss, name, one, code)
        assert estimate == pytest.approx(expected, rel=tolerance, abs=tolerance * scale)


def compare_curves(model: Any, method: str, X: Any, names: list[str], weights: Any, tolerance: float) -> None:
    """Curves from the trees are those of predictions of the model: PDP of one feature, ALE of another.

    Absolutely to a share of the largest prediction: ALE adds differences of predictions, which may nearly cancel.
    """
    kinds: tuple[Literal["pdp", "ale"], ...] = ("pdp", "ale")
    largest = float(np.abs(getattr(model, method)(X)).max())
    options: dict[str, Any] = {"subgroups": None, "grid_resolution": 12, "sample_weight": weights}
    for kind, feature in zip(kinds, names, strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plan, "MIN_ROWS", 0)
            found = sg.effect(model, X, feature, kind=kind, **options)
            patch.setenv("SUBGROVE_TREE_STEPS", "0")
            predicted = sg.effect(model, X, feature, kind=kind, **options)
        assert found.settings["evaluation"] == "tree steps"
        assert predicted.settings["evaluation"].startswith("model predictions")
        expected = predicted.curves["estimate"].to_numpy()
        scale = max(largest, float(np.abs(expected).max()))
        assert found.curves["estimate"].to_numpy() == pytest.approx(expected, rel=tolerance, abs=tolerance * scale)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_importance_is_the_mean_over_all_donors(name: str, missing: bool, weighted: bool) -> None:
    kind, method, supports_missing, make = CASES[name]
    if missing and not supports_missing:
        return
    seed = 3 + weighted
    X = table(seed, missing=missing)
    model = make(seed).fit(X, target(X, seed, kind))
    rows = table(seed + 50, n=ROWS, missing=missing)
    y = target(rows, seed, kind) + (0.0 if method == "predict" else 0)
    if method == "predict_proba":
        y[:3] = np.arange(3) % (2 if kind == "two" else 3)  # every class
    weights = np.random.default_rng(seed).exponential(size=ROWS) if weighted else None
    for loss in losses_of(method):
        compared(model, method, rows, y, loss, weights, 1e-6 if "xgboost" in name else 1e-10)
    compare_curves(model, method, rows, ["x0", "x2"], weights, 1e-6 if "xgboost" in name else 1e-10)


@pytest.mark.parametrize("n_leaves", [31, 100, 300])
@pytest.mark.parametrize("missing", [False, True])
def test_categories_take_part(n_leaves: int, missing: bool) -> None:
    X, rows = frame(1, missing=missing), frame(2, missing=missing).iloc[:ROWS].reset_index(drop=True)
    options: dict[str, Any] = {"max_leaf_nodes": n_leaves, "min_samples_leaf": 2, "max_iter": 10}
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", **options).fit(X, frame_target(X))
    compared(model, "predict", rows, frame_target(rows), "squared_error", None, 1e-10)


def with_categories(library_name: str, kind: str) -> Any:
    """An unfitted model that takes categorical columns of a data frame."""
    ending = "Regressor" if kind == "value" else "Classifier"
    if library_name == "hist":
        hist = HistGradientBoostingRegressor if kind == "value" else HistGradientBoostingClassifier
        return hist(categorical_features="from_dtype", max_iter=8, min_samples_leaf=3)
    if library_name == "lightgbm":
        return getattr(library("lightgbm"), f"LGBM{ending}")(**LIGHT, min_data_per_group=2, cat_smooth=1)
    return getattr(library("xgboost"), f"XGB{ending}")(**EXTREME, enable_categorical=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["value", "two", "three"])
@pytest.mark.parametrize("name", ["hist", "lightgbm", "xgboost"])
def test_categories_take_part_in_every_library(name: str, kind: str, missing: bool, weighted: bool) -> None:
    for seed in range(2 + weighted, 4 + weighted):
        X, rows = frame(seed, missing=missing), frame(seed + 50, missing=missing).iloc[:ROWS].reset_index(drop=True)
        y, own = frame_target(X), frame_target(rows)
        if kind != "value":
            cuts = np.quantile(y, [0.4] if kind == "two" else [0.3, 0.7])
            y, own = (np.digitize(numbers, cuts).astype(np.float64) for numbers in (y, own))
            own[:3] = np.arange(3) % (len(cuts) + 1)  # every class
        model = with_categories(name, kind).fit(X, y)
        method = "predict" if kind == "value" else "predict_proba"
        weights = np.random.default_rng(seed).exponential(size=ROWS) if weighted else None
        tolerance = 1e-6 if name == "xgboost" else 1e-10
        for loss in losses_of(method):
            compared(model, method, rows, own, loss, weights, tolerance)
        compare_curves(model, method, rows, ["c", "a"], weights, tolerance)


REJECTED: dict[str, Any] = {
    "an init estimator": lambda: GradientBoostingRegressor(init=LinearRegression(), n_estimators=20),
    "linear trees": lambda: library("lightgbm").LGBMRegressor(linear_tree=True, **LIGHT),
    "an own objective": lambda: library("lightgbm").LGBMRegressor(objective=squared, **LIGHT),
    "gblinear": lambda: library("xgboost").XGBRegressor(booster="gblinear"),
    "trees that are not symmetric": lambda: library("catboost").CatBoostRegressor(
        **{**CAT, "grow_policy": "Depthwise"}
    ),
    "an unknown step": lambda: make_pipeline(PolynomialFeatures(2), HistGradientBoostingRegressor(max_iter=10)),
}


def squared(y: Any, margins: Any) -> Any:
    return margins - y, np.ones_like(y)


@pytest.mark.parametrize("name", REJECTED)
def test_rejected_models_predict_as_any_other_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = table(1)
    model = REJECTED[name]().fit(X, target(X, 1, "value"))
    rows = table(2, n=ROWS)
    options: dict[str, Any] = {"sampler": "marginal", "check_fidelity": False, "random_state": 1, "n_repeats": 40}
    rejected = sg.importance(model, rows, target(rows, 2, "value"), **options)
    assert rejected.settings["evaluation"].startswith("model predictions: ")
    monkeypatch.setenv("SUBGROVE_TREE_STEPS", "0")
    predicted = sg.importance(model, rows, target(rows, 2, "value"), **options)
    assert "SUBGROVE_TREE_STEPS" not in rejected.settings["evaluation"]
    pd.testing.assert_frame_equal(rejected.overall, predicted.overall, check_exact=True)


def test_one_hot_codes_and_scaled_numbers_of_a_pipeline_take_part() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.choice(list("uvw"), 300), "c": rng.normal(size=300)})
    y = X["a"].to_numpy() * (X["b"] == "u") + X["c"].to_numpy() ** 2
    codes = ColumnTransformer([("b", OneHotEncoder(), ["b"])], remainder=StandardScaler())
    model = make_pipeline(codes, RandomForestRegressor(5, random_state=0)).fit(X, y)
    rows = X.iloc[:ROWS].reset_index(drop=True)
    compared(model, "predict", rows, y[:ROWS], "absolute_error", None, 1e-10)


@pytest.mark.parametrize("sampler", ["subgroups", "auto"])
@pytest.mark.parametrize("with_training_rows", [False, True])
def test_many_draws_of_the_model_approach_the_exact_importance(
    sampler: str, with_training_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(500, 3)), columns=list("abc"))
    X["b"] += X["a"]
    X["d"] = (X["c"] + rng.normal(size=500) > 0).map({True: "yes", False: "no"}).astype("category")
    y = (X["a"] * X["b"] + (X["d"] == "yes") + 0.1 * rng.normal(size=500)).to_numpy()
    train, test = X.iloc[:300], X.iloc[300:].reset_index(drop=True)
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=30).fit(train, y[:300])
    options: dict[str, Any] = {"sampler": sampler, "check_fidelity": False, "random_state": 1, "loss": "squared_error"}
    options["train"] = train if with_training_rows else None
    exact = sg.importance(model, test, y[300:], **options).overall
    monkeypatch.setenv("SUBGROVE_TREE_STEPS", "0")
    drawn = sg.importance(model, test, y[300:], n_repeats=150, **options).overall
    # 150 draws: their Monte-Carlo error is reported, and five of them are a wide margin for eight comparisons.
    difference = (exact["estimate"] - drawn["estimate"]).abs()
    assert (difference <= 5 * drawn["mc_error"] + 1e-9).all()
    assert exact["std_error"].to_numpy() == pytest.approx(drawn["std_error"].to_numpy(), rel=0.1)


def test_estimates_do_not_vary_with_the_seed_or_the_number_of_threads() -> None:
    X = table(1)
    model = HistGradientBoostingRegressor(max_iter=20).fit(X, target(X, 1, "value"))
    rows = table(2)
    found = [
        sg.importance(model, rows, target(rows, 2, "value"), sampler="marginal", random_state=seed, n_jobs=n_jobs)
        for seed, n_jobs in ((1, 1), (2, 1), (1, 2))
    ]
    for other in found[1:]:
        pd.testing.assert_series_equal(found[0].overall["estimate"], other.overall["estimate"], check_exact=True)
        pd.testing.assert_series_equal(found[0].overall["std_error"], other.overall["std_error"], check_exact=True)


@pytest.mark.parametrize("sampler", ["marginal", "auto"])
@pytest.mark.parametrize("n_leaves", [15, 300])  # both kernels
def test_all_numbers_are_the_same_for_any_number_of_threads(n_leaves: int, sampler: str) -> None:
    X, rows = table(1, n=900, missing=True), table(2, n=900, missing=True)
    options: dict[str, Any] = {"max_leaf_nodes": n_leaves, "min_samples_leaf": 1, "max_iter": 10}
    model = HistGradientBoostingRegressor(**options).fit(X, target(X, 1, "value"))
    options = {"sampler": sampler, "check_fidelity": False, "random_state": 1, "loss": "squared_error"}
    options["train"] = X if sampler == "auto" else None
    one, *others = (sg.importance(model, rows, target(rows, 2, "value"), n_jobs=k, **options) for k in (1, 2, 3, 5))
    assert one.settings["evaluation"] == "tree steps"
    for other in others:
        for name in ("overall", "by_subgroup", "repeats"):
            pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)
        for mine, theirs in zip(one.scores, other.scores, strict=True):
            assert np.array_equal(mine.influence, theirs.influence)
            assert mine.moved is not None
            assert theirs.moved is not None
            assert np.array_equal(mine.rows, theirs.rows)
            assert np.array_equal(mine.moved, theirs.moved)


def test_other_models_predict_and_the_settings_say_why() -> None:
    X = table(1)
    y = target(X, 1, "value")
    options: dict[str, Any] = {"sampler": "marginal", "check_fidelity": False, "random_state": 1}
    linear = sg.importance(LinearRegression().fit(X, y), X, y, **options)
    assert linear.settings["evaluation"].startswith("model predictions: LinearRegression")
    model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    function = sg.importance(lambda rows: model.predict(rows), X, y, loss="squared_error", **options)
    assert function.settings["evaluation"].startswith("model predictions")
    method = sg.importance(model.predict, X, y, loss="squared_error", **options)
    assert method.settings["evaluation"] == "tree steps"


def test_a_model_that_differs_from_its_trees_predicts() -> None:
    X = table(1)
    y = target(X, 1, "value")
    model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    honest = sg.importance(model, X, y, sampler="marginal", check_fidelity=False, random_state=1)
    nodes = model._predictors[0][0].nodes
    nodes["value"][nodes["is_leaf"] == 1] += 5  # predictions and trees still agree
    changed = sg.importance(model, X, y, sampler="marginal", check_fidelity=False, random_state=1)
    assert changed.settings["evaluation"] == honest.settings["evaluation"] == "tree steps"

    def shifted(raw: Any) -> Any:
        return raw + 1

    model._loss.link.inverse = shifted
    other = sg.importance(model, X, y, sampler="marginal", check_fidelity=False, random_state=1)
    assert other.settings["evaluation"].startswith("model predictions")


class NewLevels:
    """Draws a level that no row has."""

    def fit(self, X: Any, features: Any) -> NewLevels:
        return self

    def sample(self, X: Any, feature: str, rngs: Any) -> Any:
        for _ in rngs:
            yield np.full(len(X), 7.0)


def test_a_level_that_no_row_has_is_predicted_by_the_model() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "level": rng.integers(0, 4, 300).astype(float)})
    y = (X["a"] + X["level"]).to_numpy()
    model = HistGradientBoostingRegressor(categorical_features=["level"], max_iter=20).fit(X, y)
    options: dict[str, Any] = {"sampler": NewLevels(), "features": ["level"], "train": X[:100], "n_repeats": 5}
    imp = sg.importance(model, X[100:], y[100:], check_fidelity=False, random_state=1, **options)
    assert imp.settings["evaluation"].startswith("model predictions: a column has a level")
    assert np.isfinite(imp.overall["estimate"]).all()


def test_forests_of_two_classes_and_groups_of_features_are_served() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 4)), columns=list("abcd"))
    y = (X["a"] * X["b"] > 0).to_numpy()
    model = RandomForestClassifier(10, min_samples_leaf=5, random_state=0).fit(X[:200], y[:200])
    options: dict[str, Any] = {"sampler": "marginal", "features": [["a", "b"], "c"], "random_state": 1}
    options |= {"n_repeats": 20, "check_fidelity": False, "loss": ["log_loss", "brier", "auc"]}
    imp = sg.importance(model, X[200:], y[200:], **options)
    assert imp.settings["evaluation"] == "tree steps"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBGROVE_TREE_STEPS", "0")
        predicted = sg.importance(model, X[200:], y[200:], **options)
    # A score of all rows together is computed from the same draws, and so are groups of features; probabilities that
    # are equal may differ by rounding in one of the two, which moves the AUC by half a pair of rows.
    both = [one.overall.set_index(["loss", "feature"])["estimate"] for one in (imp, predicted)]
    assert both[0]["auc"].to_numpy() == pytest.approx(both[1]["auc"].to_numpy(), abs=1e-4)
    both = [one.drop("auc", level="loss") for one in both]
    group = [one[one.index.get_level_values("feature") != "c"].to_numpy() for one in both]
    assert len(group[0]) == 2
    assert group[0] == pytest.approx(group[1], abs=1e-12)


def test_groups_of_dependent_rows_have_cluster_robust_errors() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 2)), columns=list("ab"))
    groups = np.repeat(np.arange(100), 6)
    y = (X["a"] + 2 * rng.normal(size=100)[groups]).to_numpy()
    model = HistGradientBoostingRegressor(max_iter=20).fit(X[:300], y[:300])
    options: dict[str, Any] = {"train": X[:300], "loss": "squared_error", "check_fidelity": False, "random_state": 1}
    found = {}
    for switch in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SUBGROVE_TREE_STEPS", switch)
            found[switch] = sg.importance(model, X[300:], y[300:], groups=groups[300:], n_repeats=60, **options)
    assert found["1"].settings["evaluation"] == "tree steps"
    assert found["1"].settings["n_groups"] == 50
    errors = [one.overall["std_error"].to_numpy() for one in found.values()]
    assert errors[0] == pytest.approx(errors[1], rel=0.1)
