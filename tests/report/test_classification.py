"""Predictions by class, against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from subgrove._report.inputs import read_inputs
from subgrove._report.performance import Performance, performance

RNG = np.random.default_rng(8)
X = pd.DataFrame(RNG.normal(size=(3000, 3)), columns=["a", "b", "c"])
RARE = np.where(RNG.random(3000) < 1 / (1 + np.exp(5.5 - 2 * X["a"])), "fraud", "fine")
TWELVE = np.array(list("abcdefghijkl"))[np.digitize(X["a"] + 0.3 * RNG.normal(size=3000), np.linspace(-2, 2, 11))]


def performance_of(model: Any, y: Any, loss: Any = None) -> Performance:
    train, test = slice(None, 1500), slice(1500, None)
    model = model.fit(X[train], y[train])
    pairs = (X[train], y[train]), (X[test], y[test])
    return performance(read_inputs(model, *pairs, None, loss, "auto", 0.01, 3, 1, None, None))


@pytest.mark.parametrize("y", [RARE, TWELVE], ids=["rare", "twelve"])
@pytest.mark.parametrize("model", [LogisticRegression(), RidgeClassifier()], ids=["probabilities", "labels"])
def test_counts_of_classes_are_those_of_scikit_learn(model: Any, y: Any) -> None:
    found, true, predicted = performance_of(model, y), y[1500:], model.predict(X[1500:])
    labels = sorted(set(y))
    assert [one.label for one in found.classes.per_class] == labels
    assert np.array(found.classes.confusion).tolist() == metrics.confusion_matrix(true, predicted).tolist()
    precision, recall, _, n = metrics.precision_recall_fscore_support(true, predicted, zero_division=0)
    assert [one.precision or 0 for one in found.classes.per_class] == pytest.approx(precision)
    assert [one.recall for one in found.classes.per_class] == pytest.approx(recall)
    assert [one.n for one in found.classes.per_class] == n.tolist()
    (balanced,) = found.classes.scores
    assert balanced.value == pytest.approx(metrics.balanced_accuracy_score(true, predicted))
    errors = metrics.confusion_matrix(true, predicted)
    np.fill_diagonal(errors, 0)
    assert found.classes.confusions[0].n == errors.max()


def test_a_rare_class_has_average_precision_a_curve_and_a_sentence() -> None:
    model = LogisticRegression()
    found = performance_of(model, RARE)
    fine, fraud = found.classes.per_class
    assert (fine.rare, fraud.rare) == (False, True)
    assert fraud.n < 0.05 * 1500
    probability = model.predict_proba(X[1500:])[:, 1]
    assert fraud.average_precision == pytest.approx(
        metrics.average_precision_score(RARE[1500:] == "fraud", probability)
    )
    recalls, precisions = zip(*fraud.curve, strict=True)
    assert list(recalls) == sorted(recalls)
    assert recalls[-1] == 1
    assert precisions[-1] >= fraud.n / 1500
    assert fine.curve == ()
    assert any(sentence.startswith("The class fraud is rare (") for sentence in found.sentences)
    assert found.judgement.verdict == "good"


def test_equally_frequent_classes_are_not_rare() -> None:
    y = np.array(list("abcdefghijkl"))[np.digitize(X["a"], np.quantile(X["a"], np.arange(1, 12) / 12))]
    assert not any(one.rare for one in performance_of(LogisticRegression(), y).classes.per_class)


def test_the_error_of_balanced_accuracy_is_that_of_a_bootstrap() -> None:
    model = LogisticRegression()
    (score,) = performance_of(model, TWELVE).classes.scores
    true, predicted, rng = TWELVE[1500:], model.predict(X[1500:]), np.random.default_rng(1)
    drawn = [rng.integers(0, 1500, 1500) for _ in range(400)]
    again = [metrics.balanced_accuracy_score(true[rows], predicted[rows]) for rows in drawn]
    # a standard deviation of 400 values has a relative error of 1 / sqrt(800) = 3.5 %; 4 of these
    assert score.std_error == pytest.approx(np.std(again), rel=0.15)


def test_many_classes_are_counted_and_the_most_frequent_listed() -> None:
    y = np.arange(3000) % 60
    y[y == 59] = 0
    found = performance_of(LogisticRegression(max_iter=20, tol=1.0), y)
    assert len(found.classes.per_class) == 50
    assert found.classes.confusion == ()
    assert "Of 59 classes, the 50 most frequent are listed." in found.sentences


class Thresholds:
    """A classifier without `classes_` and probabilities."""

    _estimator_type = "classifier"

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict(self, X: Any) -> Any:
        return np.where(np.asarray(X)[:, 0] > 1.5, "fraud", "fine")


def test_a_model_without_classes_and_a_loss_of_the_users_own_are_judged_by_accuracy() -> None:
    y = np.where(X["a"] + 0.5 * RNG.normal(size=len(X)) > 1.5, "fraud", "fine")
    found = performance_of(Thresholds(), y, lambda y, label: np.asarray(y != label, dtype=float))
    assert [one.label for one in found.classes.per_class] == ["fine", "fraud"]
    assert (found.judgement.verdict, found.judgement.score.name) == ("good", "accuracy")
