"""Models of all sorts: pipelines on raw strings, native categories, LightGBM, functions, several outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import subgrove as sg
from tests.large_data_options import importance

Floats = npt.NDArray[np.float64]
N = 160
CITIES = ["Bonn", "Köln", "Ulm"]


def frame_of(n: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    rng = np.random.default_rng(seed)
    city = rng.choice(CITIES, n)
    size = rng.normal(size=n) + (city == "Ulm")
    frame = pd.DataFrame({"city": city, "size": size, "rooms": rng.integers(1, 5, n), "noise": rng.normal(size=n)})
    return frame, 2.0 * size + 3.0 * (city == "Bonn") + 0.1 * rng.normal(size=n)


X, Y = frame_of(N, 0)
TRAIN, TRAIN_Y = frame_of(300, 1)
LABEL, TRAIN_LABEL = np.where(Y > 1, "high", "low"), np.where(TRAIN_Y > 1, "high", "low")


class Rolled:
    """A sampler without chance: repeat m gives the values m + 1 rows further on."""

    learns = False

    def fit(self, X: Any, features: Any) -> Rolled:
        return self

    def sample(self, X: Any, feature: Any, rngs: Any) -> Iterator[Any]:
        values = X[feature] if hasattr(X, "columns") else X[:, int(feature[1:])]
        for m in range(len(rngs)):
            yield np.roll(np.asarray(values), -(m + 1))


def by_hand(call_model: Any, loss: Any, X: Any, y: Any, feature: str, n_repeats: int = 3) -> float:
    """Mean over repeats of the loss with the column rolled, less the loss of the unchanged rows."""
    values = []
    for m in range(n_repeats):
        changed = X.copy()
        if isinstance(X, pd.DataFrame):
            rolled = X[feature].iloc[np.roll(np.arange(len(X)), -(m + 1))]
            changed[feature] = rolled.array
        else:
            changed[:, int(feature[1:])] = np.roll(X[:, int(feature[1:])], -(m + 1))
        values.append(float(np.mean(loss(y, call_model(changed)))))
    return float(np.mean(values)) - float(np.mean(loss(y, call_model(X))))


def check(model: Any, X: Any, y: Any, features: list[str], call_model: Any, own_loss: Any, **options: Any) -> None:
    """Importances are those computed by hand."""
    options = {"loss": "squared_error", **options} if own_loss is squared else options
    result = importance(model, X, y, sampler=Rolled(), n_repeats=3, random_state=0, features=features, **options)
    for line in result.overall.itertuples():
        assert line.estimate == pytest.approx(by_hand(call_model, own_loss, X, y, line.feature), rel=1e-9, abs=1e-12)
    assert result.overall["estimate"].abs().max() > 0
    for sampler in ("marginal", "subgroups"):
        found = importance(model, X, y, sampler=sampler, n_repeats=2, random_state=0, features=features, **options)
        assert np.isfinite(found.overall["estimate"]).all()


def squared(y: Any, prediction: Any) -> Floats:
    return np.asarray((np.asarray(y) - np.asarray(prediction)) ** 2)


def one_hot(final: Any) -> Any:
    return make_pipeline(ColumnTransformer([("city", OneHotEncoder(), ["city"])], remainder="passthrough"), final)


def test_pipeline_on_raw_strings_regression() -> None:
    model = one_hot(LinearRegression()).fit(TRAIN, TRAIN_Y)
    check(model, X, Y, list(X.columns), model.predict, squared)


def test_pipeline_on_raw_strings_classifier() -> None:
    model = one_hot(LogisticRegression()).fit(TRAIN, TRAIN_LABEL)
    code = (LABEL == "low").astype(int)  # classes are sorted: high, low

    def loss(_: Any, probability: Any) -> Any:
        return -np.log(probability[np.arange(N), code])

    check(model, X, LABEL, list(X.columns), model.predict_proba, loss)


def test_pipeline_that_scales_in_place_changes_neither_the_table_nor_other_results() -> None:
    """The user saw: nonsense, and X scaled over and over, with StandardScaler(copy=False) in the pipeline."""
    array = X[["size", "rooms", "noise"]].to_numpy(dtype=float)
    before = array.copy()
    for table in (array, pd.DataFrame(array, columns=["x0", "x1", "x2"])):
        safe, unsafe = (
            make_pipeline(StandardScaler(copy=copy), LinearRegression()).fit(table.copy(), Y) for copy in (True, False)
        )
        options: dict[str, Any] = {
            "sampler": "marginal",
            "n_repeats": 20,
            "random_state": 0,
            "memory": 1e-9,
        }  # many batches
        one = importance(unsafe, table, Y, **options).overall
        two = importance(safe, table.copy(), Y, **options).overall
        np.testing.assert_allclose(one["estimate"], two["estimate"], rtol=1e-9)
        assert np.array_equal(np.asarray(table), before)


def test_native_categories_of_hist_gradient_boosting() -> None:
    train, test = (
        table.assign(city=pd.Categorical(table["city"], CITIES), rooms=pd.Categorical(table["rooms"], ordered=True))
        for table in (TRAIN, X)
    )
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=30, random_state=0)
    model.fit(train, TRAIN_Y)
    check(model, test, Y, ["city", "size", "rooms"], model.predict, squared)


def test_native_categories_of_polars() -> None:
    pl = pytest.importorskip("polars")
    train, test = (pl.from_pandas(table).with_columns(pl.col("city").cast(pl.Enum(CITIES))) for table in (TRAIN, X))
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=30, random_state=0)
    model.fit(train, TRAIN_Y)
    found = importance(model, test, Y, sampler="marginal", features=["city"], n_repeats=5, random_state=0)
    frame = X.assign(city=pd.Categorical(X["city"], CITIES))
    again = importance(lambda X: model.predict(pl.from_pandas(X).cast({"city": pl.Enum(CITIES)})), frame, Y,
                          sampler="marginal", features=["city"], n_repeats=5, random_state=0)  # fmt: skip
    assert found.overall["estimate"][0] == pytest.approx(again.overall["estimate"][0], rel=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning:lightgbm")
@pytest.mark.parametrize("categories", [False, True])
def test_lightgbm(categories: bool) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    train, test = TRAIN.drop(columns="city"), X.drop(columns="city")
    if categories:
        train, test = (table.assign(city=pd.Categorical(table["city"], CITIES)) for table in (TRAIN, X))
    model = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1).fit(train, TRAIN_Y)
    check(model, test, Y, list(test.columns), model.predict, squared)
    classifier = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1).fit(train, TRAIN_LABEL)

    def loss(y: Any, probability: Any) -> Any:
        return -np.log(np.clip(probability[np.arange(N), (y == "low").astype(int)], 1e-15, 1))

    check(classifier, test, LABEL, ["size"], classifier.predict_proba, loss)
    booster = model.booster_  # has predict and nothing else that we call_model for
    check(booster, test, Y, ["size"], booster.predict, squared)


def test_function_of_a_table() -> None:
    check(lambda X: X["size"] * 2.0, X, Y, ["size", "noise"], lambda X: X["size"] * 2.0, squared)


@pytest.mark.parametrize("kind", ["column vector", "list", "Series", "frame", "float32", "whole numbers"])
def test_predictions_come_in_any_form(kind: str) -> None:
    makers: dict[str, Any] = {
        "column vector": lambda values: values[:, None],
        "list": lambda values: values.tolist(),
        "Series": lambda values: pd.Series(values, index=np.arange(len(values)) + 5),
        "frame": lambda values: pd.DataFrame({"prediction": values}),
        "float32": lambda values: values.astype(np.float32),
        "whole numbers": lambda values: values.astype(int),
    }
    make = makers[kind]

    def plain(X: Any) -> Floats:
        values: Floats = np.round(X["size"].to_numpy() * 8) / 8 if kind != "whole numbers" else X["rooms"].to_numpy()
        return values

    one = importance(lambda X: make(plain(X)), X, Y, sampler="marginal", n_repeats=2, random_state=0)
    two = importance(plain, X, Y, sampler="marginal", n_repeats=2, random_state=0)
    np.testing.assert_allclose(one.overall["estimate"], two.overall["estimate"], rtol=1e-12)


def test_y_comes_in_any_form() -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    numbers = [
        Y,
        Y.tolist(),
        pd.Series(Y),
        pd.DataFrame({"y": Y}),
        Y[:, None],
        pd.Series(Y, dtype="Float64"),
        pl.Series(Y),
    ]
    numbers += [pa.array(Y), pa.chunked_array([Y[:50], Y[50:]])]
    found = {
        importance(lambda X: X["size"], X, y, sampler="marginal", features=["size"], random_state=0).overall[
            "estimate"
        ][0]
        for y in numbers
    }
    assert len(found) == 1
    model = one_hot(LogisticRegression()).fit(TRAIN, TRAIN_LABEL)
    labels: list[Any] = [LABEL, LABEL.tolist(), pd.Series(LABEL), pd.Series(LABEL, dtype="category"), pl.Series(LABEL)]
    labels += [pl.Series(LABEL, dtype=pl.Categorical), pa.array(LABEL.tolist()), LABEL.astype(object)]
    found = {
        importance(model, X, y, sampler="marginal", features=["size"], random_state=0).overall["estimate"][0]
        for y in labels
    }
    assert len(found) == 1


def test_several_outputs_of_a_regression_count_by_their_mean() -> None:
    array = X[["size", "rooms", "noise"]].to_numpy(dtype=float)
    both = np.column_stack([Y, -3 * Y + array[:, 2]])
    model = LinearRegression().fit(array, both)

    def loss(y: Any, prediction: Any) -> Floats:
        return np.asarray(((y - prediction) ** 2).mean(axis=1))

    check(model, array, both, ["x0", "x1", "x2"], model.predict, loss, loss="squared_error")
    outputs = [
        importance(lambda X, k=k: model.predict(X)[:, k], array, both[:, k], sampler="marginal", random_state=0).overall
        for k in range(2)
    ]
    together = importance(model, array, pd.DataFrame(both), sampler="marginal", random_state=0).overall["estimate"]
    np.testing.assert_allclose(together, (outputs[0]["estimate"] + outputs[1]["estimate"]) / 2, rtol=1e-9)


def several_labels() -> tuple[Any, Any, Any]:
    array, first = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    both = np.column_stack([first, (array[:, 0] > 0).astype(int)])
    return array, both, RandomForestClassifier(15, min_samples_leaf=15, random_state=0).fit(array, both)


@pytest.mark.parametrize("name", ["log_loss", "brier"])
def test_several_outputs_of_a_classifier_count_by_their_mean(name: str) -> None:
    """The user saw: ValueError of NumPy about indices and dimensions."""
    array, both, model = several_labels()
    together = importance(model, array, both, sampler="marginal", loss=name, random_state=0).overall["estimate"]
    outputs = [
        importance(
            lambda X, k=k: model.predict_proba(X)[k], array, both[:, k], sampler="marginal", loss=name, random_state=0
        ).overall["estimate"]
        for k in range(2)
    ]
    np.testing.assert_allclose(together, (outputs[0] + outputs[1]) / 2, rtol=1e-9, atol=1e-12)


def test_labels_of_several_outputs_are_wrong_by_their_share() -> None:
    array, both, model = several_labels()
    check(model, array, both, ["x0", "x1"], model.predict, lambda y, label: (y != label).mean(axis=1), loss="zero_one")


def test_function_that_gives_probabilities_of_several_outputs_is_a_classifier_too() -> None:
    array, both, model = several_labels()
    one = importance(model.predict_proba, array, both, sampler="marginal", loss="log_loss", random_state=0).overall
    two = importance(model, array, both, sampler="marginal", loss="log_loss", random_state=0).overall
    pd.testing.assert_frame_equal(one, two)


def test_loss_that_is_not_named_suits_the_model() -> None:
    array = X[["size", "noise"]].to_numpy()
    cases = [
        (RandomForestRegressor(3, random_state=0).fit(array, Y), Y, "absolute_error"),
        (LogisticRegression().fit(array, LABEL), LABEL, "log_loss"),
        (RidgeClassifier().fit(array, LABEL), LABEL, "zero_one"),
        (lambda X: X[:, 0], Y, "absolute_error"),
        (lambda X: np.full((len(X), len(set(LABEL))), 1 / len(set(LABEL))), LABEL, "log_loss"),
    ]
    for model, y, loss in cases:
        assert importance(model, array, y, sampler="marginal", n_repeats=2, random_state=0).losses == (loss,)


def test_metrics_of_scikit_learn_are_losses() -> None:
    array = X[["size", "noise"]].to_numpy()
    model = LinearRegression().fit(array, Y)
    check(model, array, Y, ["x0"], model.predict, mean_squared_error, loss=mean_squared_error)
    classifier = LogisticRegression().fit(array, LABEL)
    check(classifier, array, LABEL, ["x0"], classifier.predict, lambda y, p: -accuracy_score(y, p), loss=accuracy_score)
    whole = sg.losses.from_metric(log_loss, greater_is_better=False, response_method="probability")
    check(classifier, array, LABEL, ["x0"], classifier.predict_proba, log_loss, loss=whole)
