"""Small fitted models of every supported library, and rows that hit their thresholds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from subgrove._models.tree_ensemble.ensemble import TreeEnsemble
from subgrove._models.tree_ensemble.reading import read_ensemble
from tests.models.tree_ensemble.reference import margins as margins_of

Matrix = npt.NDArray[np.float64]
Make = Callable[[int], Any]
Case = tuple[str, str, bool, Make]

LIGHT = {"n_estimators": 8, "num_leaves": 15, "n_jobs": 1, "verbose": -1}
EXTREME = {"n_estimators": 8, "max_depth": 4, "n_jobs": 1}
CAT = {"iterations": 10, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}


def library(name: str) -> Any:
    """A library, or the test is skipped."""
    return pytest.importorskip(name)


def table(seed: int, n: int = 400, missing: bool = False) -> Matrix:
    """Five columns: two continuous, one on a grid, one of small integers with zeros, one of large numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = rng.integers(-1, 4, n)
    X[:, 4] = 1e6 * X[:, 4] + rng.random(n)  # float32 rounds these
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


def target(X: Matrix, seed: int, kind: str) -> npt.NDArray[Any]:
    """A target of the columns: "value", "positive", or labels of 2 or 3 classes."""
    filled = np.nan_to_num(X)
    noise = np.random.default_rng(seed).normal(size=len(X))
    y = filled[:, 0] * filled[:, 1] + np.sin(2 * filled[:, 2]) + np.isnan(X[:, 0]) + filled[:, 4] / 1e6 + 0.3 * noise
    if kind == "value":
        return np.asarray(y)
    if kind == "positive":
        return np.asarray(np.exp(y / 3))
    return np.asarray(np.digitize(y, np.quantile(y, [0.4] if kind == "two" else [0.3, 0.7])))


def seeded(model: Callable[..., Any], **options: Any) -> Make:
    """The unfitted model by seed."""
    return lambda seed: model(**options, random_state=seed)


def cases() -> dict[str, Case]:
    """Name -> target, method, whether missing values are supported, and the unfitted model by seed."""
    found: dict[str, Case] = {}
    for loss in ("squared_error", "absolute_error", "poisson", "gamma"):
        hist = seeded(HistGradientBoostingRegressor, loss=loss, max_iter=10)
        found[f"hist {loss}"] = ("positive", "predict", True, hist)
    for method in ("predict_proba", "decision_function"):
        for kind in ("two", "three"):
            hist = seeded(HistGradientBoostingClassifier, max_iter=8)
            found[f"hist {kind} {method}"] = (kind, method, True, hist)
            boosting = seeded(GradientBoostingClassifier, n_estimators=8)
            found[f"boosting {kind} {method}"] = (kind, method, False, boosting)
        boosting = seeded(GradientBoostingClassifier, loss="exponential", init="zero", n_estimators=8)
        found[f"boosting exponential {method}"] = ("two", method, False, boosting)
    for loss in ("squared_error", "huber"):
        boosting = seeded(GradientBoostingRegressor, loss=loss, n_estimators=9)
        found[f"boosting {loss}"] = ("value", "predict", False, boosting)
    forests = {"n_estimators": 7}
    found["random forest"] = ("value", "predict", True, seeded(RandomForestRegressor, **forests))
    found["extra trees"] = ("value", "predict", False, seeded(ExtraTreesRegressor, **forests))
    found["tree"] = ("value", "predict", True, seeded(DecisionTreeRegressor))
    found["extra tree"] = ("value", "predict", False, seeded(ExtraTreeRegressor))
    for kind in ("two", "three"):
        found[f"random forest {kind}"] = (kind, "predict_proba", True, seeded(RandomForestClassifier, **forests))
        found[f"extra trees {kind}"] = (kind, "predict_proba", False, seeded(ExtraTreesClassifier, **forests))
        found[f"tree {kind}"] = (kind, "predict_proba", True, seeded(DecisionTreeClassifier, min_samples_leaf=3))
        found[f"extra tree {kind}"] = (kind, "predict_proba", False, seeded(ExtraTreeClassifier, min_samples_leaf=3))
    return found | _light() | _extreme() | _cat()


def _light() -> dict[str, Case]:
    def regressor(**options: Any) -> Make:
        return lambda seed: library("lightgbm").LGBMRegressor(**{**LIGHT, **options}, random_state=seed)

    def classifier(**options: Any) -> Make:
        return lambda seed: library("lightgbm").LGBMClassifier(**{**LIGHT, **options}, random_state=seed)

    options: dict[str, dict[str, Any]] = {
        "lightgbm": {},
        "lightgbm zero as missing": {"zero_as_missing": True},
        "lightgbm without missing": {"use_missing": False},
        "lightgbm dart": {"boosting_type": "dart"},
        "lightgbm rf": {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
        "lightgbm huge leaves": {"min_child_samples": 10_000},
        **{f"lightgbm {loss}": {"objective": loss} for loss in ("quantile", "poisson", "gamma", "tweedie", "mape")},
    }
    found: dict[str, Case] = {name: ("positive", "predict", True, regressor(**one)) for name, one in options.items()}
    found["lightgbm cross entropy"] = ("two", "predict", True, regressor(objective="cross_entropy"))
    found["lightgbm two"] = ("two", "predict_proba", True, classifier())
    found["lightgbm sigmoid"] = ("two", "predict_proba", True, classifier(sigmoid=1.7))
    found["lightgbm three"] = ("three", "predict_proba", True, classifier())
    return found


def _extreme() -> dict[str, Case]:
    def regressor(**options: Any) -> Make:
        return lambda seed: library("xgboost").XGBRegressor(**{**EXTREME, **options}, random_state=seed)

    def classifier(**options: Any) -> Make:
        return lambda seed: library("xgboost").XGBClassifier(**{**EXTREME, **options}, random_state=seed)

    losses = ["reg:squarederror", "reg:absoluteerror", "reg:squaredlogerror", "reg:pseudohubererror"]
    losses += ["count:poisson", "reg:gamma", "reg:tweedie"]
    options: dict[str, dict[str, Any]] = {
        "xgboost dart": {"booster": "dart", "rate_drop": 0.3},
        "xgboost parallel": {"num_parallel_tree": 3, "subsample": 0.7},
        "xgboost pruned": {"tree_method": "exact", "gamma": 0.5},
        "xgboost leafwise": {"grow_policy": "lossguide", "max_leaves": 9},
        "xgboost zero is missing": {"missing": 0.0},
        "xgboost quantile": {"objective": "reg:quantileerror", "quantile_alpha": 0.3},
        **{f"xgboost {loss}": {"objective": loss} for loss in losses},
    }
    found: dict[str, Case] = {name: ("positive", "predict", True, regressor(**one)) for name, one in options.items()}
    found["xgboost logistic"] = ("two", "predict", True, regressor(objective="reg:logistic"))
    found["xgboost forest"] = ("value", "predict", True, lambda seed: library("xgboost").XGBRFRegressor(**EXTREME))
    for kind in ("two", "three"):
        found[f"xgboost {kind}"] = (kind, "predict_proba", True, classifier())
    found["xgboost softmax"] = ("three", "predict_proba", True, classifier(objective="multi:softmax"))
    return found


def _cat() -> dict[str, Case]:
    def regressor(**options: Any) -> Make:
        return lambda seed: library("catboost").CatBoostRegressor(**CAT, **options, random_seed=seed)

    found: dict[str, Case] = {
        "catboost": ("value", "predict", True, regressor()),
        "catboost missing largest": ("value", "predict", True, regressor(nan_mode="Max")),
        "catboost poisson": ("positive", "predict", True, regressor(loss_function="Poisson")),
        "catboost tweedie": ("positive", "predict", True, regressor(loss_function="Tweedie:variance_power=1.5")),
    }
    for kind in ("two", "three"):
        found[f"catboost {kind}"] = (
            *(kind, "predict_proba", True),
            lambda seed: library("catboost").CatBoostClassifier(**CAT, random_seed=seed),
        )
    return found


def on_thresholds(X: Matrix, ensemble: TreeEnsemble, seed: int) -> Matrix:
    """A third of the rows moved to thresholds and to the numbers next to them in single and double precision."""
    rng = np.random.default_rng(seed)
    moved = X.copy()
    for feature in range(X.shape[1]):
        known = ensemble.threshold[(ensemble.feature == feature) & (ensemble.category < 0)]
        known = known[np.abs(known) < 1e30]
        if not len(known):
            continue
        single = known.astype(np.float32)
        near = [known, np.nextafter(known, np.inf), np.nextafter(known, -np.inf), single]
        near += [np.nextafter(single, np.float32(sign * np.inf)) for sign in (-1, 1)]
        values = np.concatenate([one.astype(np.float64) for one in near])
        rows = rng.random(len(X)) < 1 / 3
        moved[rows, feature] = rng.choice(values, int(rows.sum()))
    return moved


def difference(model: Any, method: str, rows: Any) -> tuple[float, TreeEnsemble]:
    """Largest difference to the model's own predictions, in units of the tolerance."""
    ensemble, inputs = read_ensemble(model, method)
    expected = np.asarray(getattr(model, method)(rows), dtype=np.float64)
    found = ensemble.response(margins_of(ensemble, inputs.encode(rows)))
    assert found.shape == expected.shape
    scale = max(float(np.abs(expected).max()), 1e-300)
    return float(np.abs(found - expected).max()) / scale / ensemble.tolerance, ensemble


def frame(seed: int, n: int = 500, missing: bool = False) -> pd.DataFrame:
    """Numbers and two columns of categories, one with many levels."""
    rng = np.random.default_rng(seed)
    letters = list("abcdefgh")
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "c": pd.Categorical(rng.choice(letters, n), categories=letters),
            "b": np.round(rng.normal(size=n), 1),
            "k": pd.Categorical(rng.integers(0, 40, n), categories=range(40)),
        }
    )
    if missing:
        for column in X:
            X.loc[rng.random(n) < 0.1, column] = np.nan
    return X


def frame_target(X: pd.DataFrame) -> npt.NDArray[np.float64]:
    """A target of the columns of `frame`."""
    effect = np.sin(X["k"].cat.codes.to_numpy()) + X["a"].fillna(0) * (X["c"].cat.codes % 3)
    return np.asarray(effect, dtype=np.float64)
