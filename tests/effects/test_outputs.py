"""Outputs of a model with a curve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from subgrove._effects import effect
from subgrove.exceptions import ModelError, ParameterError

RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(90, 3)), columns=["a", "b", "c"])
TWO = np.where(X["a"] + RNG.normal(size=90) > 0, "yes", "no")
THREE = np.digitize(X["a"] + 0.3 * RNG.normal(size=90), [-0.5, 0.5]) + 5


def probabilities(model: Any, column: int, x: float) -> float:
    return float(model.predict_proba(X.assign(a=x))[:, column].mean())


def test_two_classes_have_the_probability_of_the_second() -> None:
    model = LogisticRegression().fit(X, TWO)
    found = effect(model, X, "a", grid=[0.0, 1.0], subgroups=None)
    assert found.outputs == ("yes",)
    assert "output" not in found.curves
    assert found.curves["estimate"].tolist() == pytest.approx([probabilities(model, 1, x) for x in (0.0, 1.0)])


def test_output_picks_a_class_by_label() -> None:
    model = LogisticRegression().fit(X, TWO)
    estimate = effect(model, X, "a", grid=[0.0], output="no", subgroups=None).curves["estimate"].item()
    assert estimate == pytest.approx(probabilities(model, 0, 0.0))


def test_several_classes_have_a_curve_each() -> None:
    model = LogisticRegression().fit(X, THREE)
    curves = effect(model, X, "a", grid=[0.0, 1.0], subgroups=None).curves
    assert curves["output"].tolist() == [5, 5, 6, 6, 7, 7]
    assert curves.groupby("x")["estimate"].sum().tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("output", [7, 2])
def test_output_is_a_label_or_else_a_number(output: int) -> None:
    model = LogisticRegression().fit(X, THREE)
    found = effect(model, X, "a", grid=[0.0], output=output, subgroups=None)
    assert found.outputs == (7,)
    assert found.curves["estimate"].item() == pytest.approx(probabilities(model, 2, 0.0))


@pytest.mark.parametrize("kind", ["pdp", "ice", "ale", "mplot"])
def test_several_outputs_of_a_regression_have_a_curve_each(kind: Any) -> None:
    model = LinearRegression().fit(X, np.column_stack([X["a"], 2 * X["a"] + X["b"]]))
    found = effect(model, X, "a", kind=kind, grid_resolution=4, subgroups=None)
    assert found.outputs == (0, 1)
    for output, curve in found.curves.groupby("output"):
        alone = effect(model, X, "a", kind=kind, grid_resolution=4, output=output, subgroups=None).curves
        pd.testing.assert_frame_equal(curve.drop(columns="output").reset_index(drop=True), alone, rtol=1e-12)
    assert found.predict(X).shape == (90, 2)


def test_several_outputs_of_levels_have_a_curve_each() -> None:
    some = X.assign(level=np.array(["p", "q", "r"])[RNG.integers(0, 3, 90)])

    def model(X: pd.DataFrame) -> Any:
        return np.column_stack([X["level"].map({"p": 0, "q": 1, "r": 5}) * X["a"], X["b"]])

    for kind in ("pdp", "ice", "ale", "mplot"):
        found = effect(model, some, "level", kind=kind, subgroups=None)
        for output in (0, 1):
            alone = effect(model, some, "level", kind=kind, output=output, subgroups=None)
            mine = found.curves.query("output == @output").drop(columns="output").reset_index(drop=True)
            pd.testing.assert_frame_equal(mine, alone.curves, rtol=1e-12)


def test_several_classifications_at_once() -> None:
    model = RandomForestClassifier(5, random_state=0).fit(X, np.column_stack([THREE, THREE > 5]))
    found = effect(model, X, "a", grid=[0.0], subgroups=None)
    assert found.outputs == ("0: 5", "0: 6", "0: 7", "1: 0", "1: 1")
    assert found.curves["estimate"].sum() == pytest.approx(2.0)


def test_function_can_return_probabilities() -> None:
    model = LogisticRegression().fit(X, THREE)
    curves = effect(model.predict_proba, X, "a", grid=[0.0], output=2, subgroups=None).curves
    assert curves["estimate"].item() == pytest.approx(probabilities(model, 2, 0.0))


def test_decision_function_is_a_response() -> None:
    model = LinearSVC().fit(X, THREE)
    found = effect(model, X, "a", grid=[0.0, 1.0], response_method="decision_function", subgroups=None)
    assert found.outputs == (5, 6, 7)


def test_predicted_labels_raise_with_a_remedy() -> None:
    with pytest.raises(ModelError, match="decision_function"):
        effect(LinearSVC().fit(X, TWO), X, "a", subgroups=None)


def test_numeric_labels_have_a_mean() -> None:
    model = LogisticRegression().fit(X, THREE)
    curves = effect(model, X, "a", grid=[0.0], response_method="predict", subgroups=None).curves
    assert curves["estimate"].item() == pytest.approx(model.predict(X.assign(a=0.0)).mean())


@pytest.mark.parametrize("output", ["maybe", 2, -1, 1.5])
def test_unknown_output_raises(output: Any) -> None:
    with pytest.raises(ParameterError, match="'no', 'yes'"):
        effect(LogisticRegression().fit(X, TWO), X, "a", output=output, subgroups=None)


def test_unknown_output_of_a_function_raises() -> None:
    with pytest.raises(ParameterError, match="output=3"):
        effect(lambda X: X["a"], X, "a", output=3, subgroups=None)
