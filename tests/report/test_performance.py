"""Performance of the model, against numbers computed by hand and by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from subgrove._report.inputs import read_inputs
from subgrove._report.performance import Performance, performance

N = 400


def performance_of(model: Any, y: Any, y_train: Any = None, loss: Any = None) -> Performance:
    X = pd.DataFrame({"a": np.linspace(-1, 1, N), "b": np.tile([0.0, 1.0], N // 2)})
    trained = y if y_train is None else y_train
    return performance(read_inputs(model, (X, trained), (X, y), None, loss, "auto", 2, 3, 1, None, None))


RNG = np.random.default_rng(5)
NOISE = RNG.normal(size=N)
Y = np.linspace(-1, 1, N) * 2 + NOISE
LABELS = np.where(np.linspace(-1, 1, N) + 0.5 * NOISE > 0, "yes", "no")


def sigmoid(X: pd.DataFrame) -> Any:
    return 1 / (1 + np.exp(-3 * X["a"]))


def test_scores_of_numbers_are_those_of_scikit_learn() -> None:
    found = {one.name: one for one in performance_of(lambda X: 2 * X["a"], Y).scores}
    predicted = np.linspace(-2, 2, N)
    assert found["mean absolute error"].value == pytest.approx(metrics.mean_absolute_error(Y, predicted))
    assert found["mean absolute error"].constant == pytest.approx(np.abs(Y - np.median(Y)).mean())
    assert found["root mean squared error"].value == pytest.approx(metrics.root_mean_squared_error(Y, predicted))
    assert found["R squared"].value == pytest.approx(metrics.r2_score(Y, predicted))
    assert found["mean absolute error"].std_error == pytest.approx(np.abs(Y - predicted).std(ddof=1) / np.sqrt(N))


def test_scores_of_classes_are_those_of_scikit_learn() -> None:
    found = {one.name: one for one in performance_of(sigmoid, LABELS).scores}
    second = np.asarray(sigmoid(pd.DataFrame({"a": np.linspace(-1, 1, N)})))
    truth = LABELS == "yes"
    assert found["log loss"].value == pytest.approx(metrics.log_loss(truth, second))
    assert found["Brier score"].value == pytest.approx(metrics.brier_score_loss(truth, second))
    assert found["share of rows misclassified"].value == pytest.approx(np.mean((second > 0.5) != truth))
    assert found["area under the ROC curve"].value == pytest.approx(metrics.roc_auc_score(truth, second))


def test_the_error_of_the_area_is_that_of_a_bootstrap() -> None:
    score = performance_of(sigmoid, LABELS).scores[-1]
    second, truth = np.asarray(sigmoid(pd.DataFrame({"a": np.linspace(-1, 1, N)}))), LABELS == "yes"
    rng = np.random.default_rng(1)
    drawn = [rng.integers(0, N, N) for _ in range(400)]
    again = [metrics.roc_auc_score(truth[rows], second[rows]) for rows in drawn]
    # a standard deviation of 400 values has a relative error of 1 / sqrt(800) = 3.5 %; 4 of these
    assert score.std_error == pytest.approx(np.std(again), rel=0.15)


@pytest.mark.parametrize(("slope", "verdict"), [(2.0, "good"), (0.1, "weak"), (0.0, "useless"), (-2.0, "useless")])
def test_the_verdict_depends_on_the_skill_over_a_constant_prediction(slope: float, verdict: str) -> None:
    found = performance_of(lambda X: slope * X["a"] + float(np.median(Y)) * (slope == 0), Y)
    assert found.verdict == verdict
    assert ("does not predict" in " ".join(found.sentences)) == (verdict == "useless")


def test_the_constant_prediction_is_that_of_the_training_rows() -> None:
    assert performance_of(lambda X: 2 * X["a"], Y, Y + 1).scores[0].constant == pytest.approx(
        np.abs(Y - np.median(Y + 1)).mean()
    )
    shares = performance_of(sigmoid, LABELS, np.array(["yes"] * 100 + ["no"] * 300)).scores[0]
    assert shares.constant == pytest.approx(-np.log(np.where(LABELS == "yes", 0.25, 0.75)).mean())


def test_a_custom_loss_has_no_known_constant() -> None:
    found = performance_of(lambda X: 2 * X["a"], Y, loss=lambda y, prediction: np.abs(y - prediction) ** 3)
    assert found.scores[0].constant is None
    assert "is unknown" in found.sentences[-1]
    quantile = performance_of(lambda X: 2 * X["a"], Y, loss="quantile").scores[0]
    assert quantile.skill == pytest.approx(performance_of(lambda X: 2 * X["a"], Y).scores[0].skill)
