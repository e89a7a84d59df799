"""Errors of `effect` and their messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context

from subgrove._effects import effect
from subgrove._subgroups import find_subgroups
from subgrove.exceptions import InputError, LengthError, ModelError, ParameterError

from .models import model, rows

X = rows(100)
GROUPS = find_subgroups(X, features=["temp"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"feature": "nothing"}, "feature 'nothing' is not a column of X. Its columns: 'temp'"),
        ({"feature": ("temp", "nothing")}, "'nothing'"),
        ({"feature": ("temp", "temp")}, "pair of different column names"),
        ({"feature": ("temp", "hum", "count")}, "pair"),
        ({"feature": None}, "column name"),
        ({"grid_resolution": None}, "grid_resolution must be a whole number >= 2; got None"),
        ({"kind": "shap"}, "'pdp', 'ice', 'ale', 'mplot'; got 'shap'"),
        ({"feature": ("temp", "season"), "kind": "ale"}, "needs numeric ones; 'season' has levels"),
        ({"feature": ("temp", "hum"), "kind": "ice"}, "Only 'pdp' and 'ale' support two features"),
        ({"grid": []}, "grid is empty"),
        ({"grid": "steps"}, "'quantiles'"),
        ({"grid": "uniform", "kind": "ale"}, "Leave grid out"),
        ({"feature": ("temp", "hum"), "grid": [1, 2]}, "mapping"),
        ({"grid": {"hum": [1]}}, "'hum', which is not the feature"),
        ({"grid_resolution": 1}, "grid_resolution must be a whole number >= 2"),
        ({"grid_resolution": 2.5}, "grid_resolution"),
        ({"feature": "hum", "subgroups": GROUPS}, "no partition for 'hum', only for 'temp'"),
        ({"feature": "hum", "subgroups": GROUPS["temp"]}, "no partition for 'hum'"),
        ({"subgroups": "season"}, "find_subgroups"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"response_method": "guess"}, "response"),
        ({"response_method": "predict_proba", "model": type("Model", (), {"predict": model})()}, "predict_proba"),
        ({"model": 3}, "predict"),
    ],
)
def test_invalid_argument_raises_with_a_message(arguments: dict[str, Any], words: str) -> None:
    given = {"model": model, "feature": "temp", **arguments}
    with pytest.raises(ParameterError, match=words.replace("(", r"\(").replace(")", r"\)")):
        effect(given.pop("model"), X, given.pop("feature"), **given)


@pytest.mark.parametrize(
    ("feature", "grid", "words"),
    [
        ("temp", ["warm"], "temp"),
        ("temp", [np.nan], "missing"),
        ("temp", [np.inf], "infinite"),
        ("day", [1.0, 2.0], "numbers, but in training it held dates"),
        ("season", ["MONSOON"], "does not occur in 'season' of X"),
        ("season", [None], "missing"),
    ],
)
def test_grid_of_another_type_raises(feature: str, grid: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        effect(model, X, feature, grid=grid, subgroups=None)


def test_declared_level_without_rows_raises() -> None:
    some = X[X["season"] != "SUMMER"]
    with pytest.raises(InputError, match="'SUMMER'"):
        effect(model, some, "season", grid=["SUMMER"], subgroups=None)


def test_ale_grid_outside_of_all_rows_raises() -> None:
    with pytest.raises(InputError, match="on the grid"):
        effect(model, X, "temp", kind="ale", grid=[500, 600])


def test_prediction_that_is_not_finite_names_feature_and_value() -> None:
    def broken(X: Any) -> Any:
        return np.where(X["temp"] == 12.5, np.nan, 1.0)

    with pytest.raises(ModelError, match=r"temp = 12\.5"):
        effect(broken, X, "temp", grid=[1.0, 12.5, 20.0], subgroups=None)


def test_model_that_raises_names_feature_and_values() -> None:
    def broken(X: Any) -> Any:
        raise KeyError("no such column")

    with pytest.raises(ModelError, match="temp = 1, all rows, to effect of temp, temp = 2"):
        effect(broken, X, "temp", grid=[1.0, 2.0], subgroups=None)


def test_wrong_number_of_predictions_raises() -> None:
    with pytest.raises(ModelError, match="shape"):
        effect(lambda X: np.zeros(3), X, "temp", subgroups=None)


def test_model_that_modifies_a_reused_table_raises() -> None:
    array = np.random.default_rng(0).normal(size=(100, 3))
    before = array.copy()

    def careless(X: Any) -> Any:
        X[:, 1] += 1
        return X[:, 0] * X[:, 1]

    def careful(X: Any) -> Any:
        return X[:, 0] * (X[:, 1] + 1)

    one_batch = effect(careless, array, "x0", subgroups=None).curves
    assert one_batch.equals(effect(careful, array, "x0", subgroups=None).curves)
    with config_context(working_memory=0.05), pytest.raises(ModelError, match="modifies its input"):
        effect(careless, array, "x0", subgroups=None)
    np.testing.assert_array_equal(array, before)


def test_weights_of_another_length_raise() -> None:
    with pytest.raises(LengthError):
        effect(model, X, "temp", sample_weight=[1.0, 2.0], subgroups=None)


def test_table_without_rows_raises() -> None:
    with pytest.raises(InputError, match="rows"):
        effect(model, X.head(0), "temp", subgroups=None)


def test_object_that_is_not_a_table_raises() -> None:
    with pytest.raises(InputError, match="frame"):
        effect(model, [1, 2, 3], "temp", subgroups=None)


def test_ice_needs_kind_ice() -> None:
    found = effect(model, X, "temp", subgroups=None)
    with pytest.raises(ParameterError, match="kind='ice'"):
        _ = found.ice
    with pytest.raises(ParameterError, match="kind='ice'"):
        found.centred()


@pytest.mark.parametrize("level", [0, 1, 95, True, "0.9"])
def test_level_of_an_interval_is_between_0_and_1(level: Any) -> None:
    with pytest.raises(ParameterError, match="level"):
        effect(model, X, "temp", subgroups=None).table(level)


@pytest.mark.parametrize("made", [lambda n: np.full(n, 1j), lambda n: np.array([None] * n), lambda n: ["1.5"] * n])
def test_predictions_that_are_no_real_numbers_are_rejected(made: Any) -> None:
    table = pd.DataFrame({"x": np.arange(20.0), "z": np.arange(20.0)})
    with pytest.raises(ModelError, match="effects need numbers"):
        effect(lambda Z: made(len(Z)), table, "x", subgroups=None)
