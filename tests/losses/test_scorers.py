"""Losses from scikit-learn scorers: the importance is the decrease of the score."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    fbeta_score,
    get_scorer,
    get_scorer_names,
    make_scorer,
    mean_squared_error,
    median_absolute_error,
    r2_score,
)

import subgrove as sg
from subgrove.exceptions import ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X @ [2.0, 1.0, 0.0] + RNG.normal(size=120)
LABELS = np.where(Y > 0, "yes", "no")
REGRESSOR = LinearRegression().fit(X, Y)
CLASSIFIER = LogisticRegression().fit(X, LABELS)
OPTIONS: dict[str, Any] = {"sampler": "marginal", "n_repeats": 2, "random_state": 1, "check_fidelity": False}


@pytest.mark.parametrize(
    ("scorer", "loss"),
    [
        ("neg_mean_squared_error", "squared_error"),
        ("neg_mean_absolute_error", "absolute_error"),
        ("neg_mean_poisson_deviance", "poisson"),
        ("neg_mean_gamma_deviance", "gamma"),
        ("neg_root_mean_squared_error", "root_mean_squared_error"),
        ("neg_log_loss", "log_loss"),
        ("neg_brier_score", "brier"),
        ("accuracy", "zero_one"),
        ("roc_auc", "auc"),
    ],
)
def test_scorer_that_is_a_loss_here_is_that_loss(scorer: str, loss: str) -> None:
    assert sg.losses.get(scorer) is sg.losses.get(loss)
    assert sg.losses.get(get_scorer(scorer)) is sg.losses.get(loss)


@pytest.mark.parametrize("name", get_scorer_names())
def test_every_scorer_name_is_a_loss_that_can_be_pickled(name: str) -> None:
    loss = sg.losses.get(name)
    assert pickle.loads(pickle.dumps(loss)) == loss


def test_scorer_with_options_or_another_sign_is_a_metric() -> None:
    assert not sg.losses.get(make_scorer(mean_squared_error, greater_is_better=True)).per_row
    weighted = make_scorer(mean_squared_error, greater_is_better=False, multioutput="raw_values")
    assert not sg.losses.get(weighted).per_row


def test_loss_per_row_agrees_with_the_mean_score() -> None:
    result = sg.importance(REGRESSOR, X, Y, loss="neg_mean_squared_error", **OPTIONS)
    assert result.baseline[0] == pytest.approx(-get_scorer("neg_mean_squared_error")(REGRESSOR, X, Y))
    assert result.per_row.shape == (120, 3)


def largest_error(y: Any, prediction: Any) -> float:
    return float(np.abs(y - prediction).max())


@pytest.mark.parametrize(
    ("loss", "score"),
    [
        ("r2", r2_score(Y, REGRESSOR.predict(X))),
        (make_scorer(median_absolute_error, greater_is_better=False), -median_absolute_error(Y, REGRESSOR.predict(X))),
        (make_scorer(largest_error, greater_is_better=False), -largest_error(Y, REGRESSOR.predict(X))),
    ],
)
def test_score_of_a_regression(loss: Any, score: float) -> None:
    result = sg.importance(REGRESSOR, X, Y, loss=loss, **OPTIONS)
    assert result.baseline[0] == pytest.approx(-score)
    assert result.overall["estimate"].iloc[0] > 0


@pytest.mark.parametrize(
    ("loss", "score"),
    [
        ("balanced_accuracy", balanced_accuracy_score(LABELS, CLASSIFIER.predict(X))),
        ("average_precision", average_precision_score(LABELS == "yes", CLASSIFIER.predict_proba(X)[:, 1])),
        (
            make_scorer(fbeta_score, beta=2, pos_label="yes"),
            fbeta_score(LABELS, CLASSIFIER.predict(X), beta=2, pos_label="yes"),
        ),
        ("roc_auc_ovr", get_scorer("roc_auc")(CLASSIFIER, X, LABELS)),
    ],
)
def test_score_of_a_classification(loss: Any, score: float) -> None:
    result = sg.importance(CLASSIFIER, X, LABELS, loss=loss, **OPTIONS)
    assert result.baseline[0] == pytest.approx(-score)
    assert result.overall["estimate"].iloc[0] > 0


def test_scorers_of_labels_and_of_probabilities_are_computed_together() -> None:
    result = sg.importance(CLASSIFIER, X, LABELS, loss=["accuracy", "neg_log_loss", "balanced_accuracy"], **OPTIONS)
    assert list(dict.fromkeys(result.overall["loss"])) == ["zero_one", "log_loss", "balanced_accuracy"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("neg_mean_square_error", "'neg_mean_squared_error'"),
        ("rocauc", "'roc_auc'"),
        ("squared_eror", "'squared_error'"),
    ],
)
def test_unknown_name_lists_near_matches(name: str, near: str) -> None:
    with pytest.raises(ParameterError, match=rf"loss='{name}' is not a loss. Did you mean .*{near}") as caught:
        sg.losses.get(name)
    assert "get_scorer_names" in str(caught.value)


def test_unknown_name_without_a_near_match_lists_the_losses() -> None:
    with pytest.raises(ParameterError, match=r"is not a loss. Losses are absolute_error, auc"):
        sg.losses.get("zzzzzz")
