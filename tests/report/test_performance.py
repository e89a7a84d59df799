"""Performance of the model, against numbers computed by hand and by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from subgrove._report import performance as performance_module
from subgrove._report.inputs import read_inputs
from subgrove._report.performance import Performance, performance

N = 400


def performance_of(model: Any, y: Any, y_train: Any = None, loss: Any = None) -> Performance:
    X = pd.DataFrame({"a": np.linspace(-1, 1, N), "b": np.tile([0.0, 1.0], N // 2)})
    trained = y if y_train is None else y_train
    return performance(read_inputs(model, (X, trained), (X, y), None, loss, "auto", 0.01, 3, 1, None, None))


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
    assert found["accuracy"].value == pytest.approx(np.mean((second > 0.5) == truth))
    assert found["balanced accuracy"].value == pytest.approx(metrics.balanced_accuracy_score(truth, second > 0.5))
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
    assert found.judgement.verdict == verdict
    assert ("does not predict" in " ".join(found.sentences)) == (verdict == "useless")
    words = {"good": "is better", "weak": "is weak, but better", "useless": "worse" if slope else "not significantly"}
    assert words[verdict] in found.judgement.sentence


A = np.linspace(-1, 1, N)
MEANS = {
    "zero-inflated counts": lambda a: 0.15 * np.exp(2 * a),
    "zero-inflated amounts": lambda a: 0.05 + 0.2 * (a + 1),
    "lognormal": lambda a: np.exp(2 * a + 1.2**2 / 2),
}
SKEWED = {
    "zero-inflated counts": RNG.poisson(MEANS["zero-inflated counts"](A)).astype(float),
    "zero-inflated amounts": np.where(RNG.random(N) < MEANS["zero-inflated amounts"](A), RNG.gamma(4, 0.25, N), 0.0),
    "lognormal": np.exp(2 * A + 1.2 * RNG.normal(size=N)),
}


@pytest.mark.parametrize("name", SKEWED)
def test_a_model_of_means_of_a_skewed_target_is_not_called_useless(name: str) -> None:
    """The true means are worse than the median in absolute error, or hardly better, and better in squared error."""
    found = performance_of(lambda X: MEANS[name](X["a"]), SKEWED[name])
    absolute = next(one for one in found.scores if one.name == "mean absolute error")
    assert absolute.skill is not None
    assert absolute.skill < 0.1
    assert found.judgement.verdict in ("good", "weak")
    why = {"R squared": "It is better in squared error", "rank correlation": "have the order of the target"}
    assert why[found.judgement.score.name] in " ".join(found.sentences)


@pytest.mark.parametrize("name", SKEWED)
def test_a_model_without_information_on_a_skewed_target_is_not_called_better(name: str) -> None:
    found = performance_of(lambda X: np.full(len(X), SKEWED[name].mean()) + 0.1 * X["b"], SKEWED[name])
    assert found.judgement.verdict in ("uncertain", "useless")


@pytest.mark.parametrize(("outlier", "judged_by"), [(130.0, "mean absolute error"), (1e5, performance_module.USUAL)])
def test_one_outlier_does_not_hide_a_good_model(outlier: float, judged_by: str) -> None:
    y = Y.copy()
    y[7] = outlier
    found = performance_of(lambda X: 2 * X["a"], y)
    r_squared = next(one for one in found.scores if one.name == "R squared")
    assert abs(r_squared.value) < 0.03
    assert (found.judgement.verdict, found.judgement.score.name) == ("good", judged_by)
    assert ("most extreme target" in " ".join(found.sentences)) == (outlier == 1e5)
    constant = performance_of(lambda X: 0.1 * X["b"], y)
    assert constant.judgement.verdict in ("uncertain", "useless")


def test_predictions_on_another_scale_are_weak_and_their_order_is_reported() -> None:
    found = performance_of(lambda X: 1000 + 2 * X["a"], Y)
    assert (found.judgement.verdict, found.judgement.score.name) == ("weak", "rank correlation")
    assert found.judgement.sentence.startswith("The model is weak: it orders the rows better than chance, with a rank")
    assert "their scale may be wrong" in " ".join(found.sentences)


def test_badly_calibrated_probabilities_are_judged_by_the_brier_score() -> None:
    found = performance_of(lambda X: np.where(X["a"] > 0, 1 - 1e-9, 1e-9), LABELS)
    log_loss = found.scores[0]
    assert log_loss.skill is not None
    assert log_loss.skill < 0
    assert (found.judgement.verdict, found.judgement.score.name) == ("good", "Brier score")
    assert "worse than a constant by the log loss, but better by the Brier score" in " ".join(found.sentences)


def test_few_rows_leave_the_verdict_uncertain() -> None:
    X, y = pd.DataFrame({"a": np.linspace(-1, 1, 5), "b": 0.0}), np.array([-1.0, 1.5, -0.5, 0.2, 2.5])
    inputs = read_inputs(lambda X: 2 * X["a"], (X, y), (X, y), None, None, "auto", 0.01, 3, 1, None, None)
    found = performance(inputs)
    assert found.judgement.verdict == "uncertain"
    assert "More test rows are needed" in " ".join(found.sentences)


def test_chance_alone_rarely_makes_a_model_better() -> None:
    """A constant with noise: 2.5 % a score at most, of three; of 100 runs, 3 * 2.5 + 3 standard errors are below 16."""
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(100):
        noise = 0.05 * rng.normal(size=N)
        model = lambda X, noise=noise: noise  # noqa: E731
        found += performance_of(model, rng.normal(size=N)).judgement.verdict in ("good", "weak")
    assert found < 16


def test_the_constant_prediction_is_that_of_the_training_rows() -> None:
    assert performance_of(lambda X: 2 * X["a"], Y, Y + 1).scores[0].constant == pytest.approx(
        np.abs(Y - np.median(Y + 1)).mean()
    )
    shares = performance_of(sigmoid, LABELS, np.array(["yes"] * 100 + ["no"] * 300)).scores[0]
    assert shares.constant == pytest.approx(-np.log(np.where(LABELS == "yes", 0.25, 0.75)).mean())


def test_a_custom_loss_has_no_known_constant() -> None:
    found = performance_of(lambda X: 2 * X["a"], Y, loss=lambda y, prediction: np.abs(y - prediction) ** 3)
    assert found.scores[0].constant is None
    assert "is unknown" in found.sentences[1]
    assert found.judgement.verdict == "good"  # by absolute error
    quantile = performance_of(lambda X: 2 * X["a"], Y, loss="quantile").scores[0]
    assert quantile.skill == pytest.approx(performance_of(lambda X: 2 * X["a"], Y).scores[0].skill)
