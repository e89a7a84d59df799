"""Losses in use: compared with scikit-learn's metrics on the very rows that the model predicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    d2_pinball_score,
    log_loss,
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    mean_tweedie_deviance,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

import subgrove as sg
from subgrove.exceptions import ParameterError

Floats = npt.NDArray[np.float64]
M = 4


class Shifted:
    """Repeat m gives every row the value of the row m + 1 places on."""

    learns = False

    def fit(self, X: Any, features: Any) -> Shifted:
        return self

    def sample(self, X: Floats, feature: str, rngs: Any) -> Iterator[Floats]:
        for m in range(len(rngs)):
            yield np.roll(X[:, int(feature[1:])], -(m + 1))


def by_hand(predict_with: Any, metric: Any, X: Floats, y: Any) -> list[float]:
    """Of the first column: the metric in each repeat, less that of the unchanged rows."""
    values = []
    for m in range(M):
        changed = X.copy()
        changed[:, 0] = np.roll(X[:, 0], -(m + 1))
        values.append(metric(y, predict_with(changed)) - metric(y, predict_with(X)))
    return values


def repeats(model: Any, X: Floats, y: Any, **options: Any) -> list[float]:
    result = sg.importance(model, X, y, sampler=Shifted(), features=["x0"], n_repeats=M, random_state=0, **options)
    found: list[float] = result.repeats["estimate"].tolist()
    return found


RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
POSITIVE = np.exp(0.5 * X[:, 0]) * RNG.gamma(2.0, size=80)


def positive(X: Floats) -> Floats:
    return np.exp(0.4 * X[:, 0] + 0.1 * X[:, 1])


REGRESSION: dict[str, tuple[Any, Any]] = {
    "squared_error": ("squared_error", mean_squared_error),
    "absolute_error": ("absolute_error", mean_absolute_error),
    "root_mean_squared_error": ("root_mean_squared_error", root_mean_squared_error),
    "poisson": ("poisson", mean_poisson_deviance),
    "gamma": ("gamma", mean_gamma_deviance),
    "tweedie": (sg.losses.tweedie(1.3), lambda y, p: mean_tweedie_deviance(y, p, power=1.3)),
    "quantile": ("quantile", mean_pinball_loss),
    "quantile 0.9": (sg.losses.quantile(0.9), lambda y, p: mean_pinball_loss(y, p, alpha=0.9)),
    "function of rows": (lambda y, p: np.abs(y - p) ** 3, lambda y, p: float(np.mean(np.abs(y - p) ** 3))),
    "own": (
        sg.losses.custom(lambda y, p: (y - p).clip(0), response_method="value"),
        lambda y, p: float((y - p).clip(0).mean()),
    ),
    "metric": (mean_squared_error, mean_squared_error),
    "metric where more is better": (r2_score, lambda y, p: -r2_score(y, p)),
    "score": (sg.losses.from_metric(d2_pinball_score), lambda y, p: -d2_pinball_score(y, p)),
    "score where less is better": (
        sg.losses.from_metric(mean_absolute_error, greater_is_better=False),
        mean_absolute_error,
    ),
}


@pytest.mark.parametrize(("loss", "metric"), REGRESSION.values(), ids=list(REGRESSION))
def test_loss_of_a_regression_is_that_of_scikit_learn(loss: Any, metric: Any) -> None:
    assert repeats(positive, X, POSITIVE, loss=loss) == pytest.approx(by_hand(positive, metric, X, POSITIVE), rel=1e-9)


def test_poisson_allows_zero_in_y() -> None:
    y = np.floor(POSITIVE)
    assert (y == 0).any()
    assert repeats(positive, X, y, loss="poisson") == pytest.approx(by_hand(positive, mean_poisson_deviance, X, y))


@pytest.mark.parametrize(
    ("n_classes", "labels"), [(2, "numbers"), (3, "numbers"), (2, "strings"), (3, "strings"), (2, "booleans")]
)
def test_loss_of_a_classifier_is_that_of_scikit_learn(n_classes: int, labels: str) -> None:
    X, code = make_classification(
        150, 4, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=1
    )
    names: dict[str, Any] = {"numbers": [3, 5, 9], "strings": ["c", "a", "b"], "booleans": [False, True]}
    y = np.array(names[labels][:n_classes])[code]
    model = LogisticRegression().fit(X, y)
    known = model.classes_
    place = np.searchsorted(known, y)

    def auc(y: Any, p: Floats) -> float:
        return 1 - float(roc_auc_score(y, p[:, 1]) if n_classes == 2 else roc_auc_score(y, p, multi_class="ovr"))

    def brier(y: Any, p: Floats) -> float:
        if n_classes == 2:
            return float(brier_score_loss(place, p[:, 1]))
        return float(((p - np.eye(n_classes)[place]) ** 2).sum(axis=1).mean())

    proba = model.predict_proba
    assert repeats(model, X, y, loss="log_loss") == pytest.approx(by_hand(proba, log_loss, X, y), rel=1e-9)
    assert repeats(model, X, y, loss="brier") == pytest.approx(by_hand(proba, brier, X, y), rel=1e-9)
    assert repeats(model, X, y, loss="auc") == pytest.approx(by_hand(proba, auc, X, y), rel=1e-9)
    wrong = by_hand(model.predict, lambda y, p: 1 - accuracy_score(y, p), X, y)
    assert repeats(model, X, y, loss="zero_one") == pytest.approx(wrong, abs=1e-12)
    together = sg.importance(
        model, X, y, sampler=Shifted(), features=["x0"], n_repeats=M, random_state=0, loss=["zero_one", "log_loss"]
    )  # fmt: skip
    assert together.for_loss("zero_one").repeats["estimate"].tolist() == pytest.approx(wrong, abs=1e-12)


def test_roc_auc_score_of_scikit_learn_is_the_loss_auc() -> None:
    """The user saw: `y should be a 1d array, got an array of shape (60, 2) instead`."""
    X, y = make_classification(150, 4, random_state=1)
    model = LogisticRegression().fit(X, y)
    own = sg.losses.from_metric(roc_auc_score, response_method="probability")
    assert repeats(model, X, y, loss=own) == pytest.approx(repeats(model, X, y, loss="auc"), rel=1e-9)


def test_function_that_gives_one_probability_is_that_of_the_second_class() -> None:
    X, y = make_classification(150, 4, random_state=1)
    model = LogisticRegression().fit(X, y)
    one = repeats(lambda X: model.predict_proba(X)[:, 1], X, y, loss=["log_loss", "brier", "auc"])
    assert one == repeats(model, X, y, loss=["log_loss", "brier", "auc"])


def test_own_loss_of_probabilities_gets_a_column_for_each_class_and_numbers_of_classes() -> None:
    X, code = make_classification(90, 4, n_informative=3, n_redundant=0, n_classes=3, random_state=1)
    y = np.array(["c", "a", "b"])[code]
    model = LogisticRegression().fit(X, y)

    def spherical(y: Any, p: Floats) -> Any:
        return -p[np.arange(len(y)), y] / np.sqrt((p**2).sum(axis=1))

    found = repeats(model, X, y, loss=sg.losses.custom(spherical, response_method="probability"))
    place = np.searchsorted(model.classes_, y)
    assert found == pytest.approx(by_hand(model.predict_proba, lambda _, p: spherical(place, p).mean(), X, y), rel=1e-9)


def test_several_losses_in_one_pass_are_those_of_separate_calls() -> None:
    names = ["squared_error", "absolute_error", "poisson"]
    few = np.column_stack([X, np.round(X[:, 0])])

    def options(loss: Any) -> dict[str, Any]:
        return {"sampler": "marginal", "loss": loss, "n_repeats": 5, "random_state": 1}

    together = sg.importance(positive, few, POSITIVE, **options(names))
    assert together.overall["loss"].tolist() == [name for name in names for _ in range(4)]
    for name in names:
        alone, part = sg.importance(positive, few, POSITIVE, **options(name)), together.for_loss(name)
        for table in ("overall", "by_subgroup", "per_row", "repeats"):
            pd.testing.assert_frame_equal(getattr(part, table), getattr(alone, table), check_exact=True)
        assert part.baseline == alone.baseline


def test_score_beside_a_loss_leaves_the_estimate_in_its_expectation() -> None:
    """A score needs whole columns, so features of few values are drawn, not exact: the loss is that of a separate call
    within three Monte-Carlo errors, not the same."""
    few = np.column_stack([X, np.round(X[:, 0])])
    both = ["squared_error", "root_mean_squared_error"]
    one = sg.importance(positive, few, POSITIVE, sampler="marginal", loss=both, n_repeats=20, random_state=1)
    two = sg.importance(positive, few, POSITIVE, sampler="marginal", loss=both[0], n_repeats=20, random_state=1)
    drawn, exact = (result.for_loss("squared_error").overall for result in (one, two))
    assert (abs(drawn["estimate"] - exact["estimate"]) <= 3 * drawn["mc_error"] + 1e-12).all()
    assert exact["mc_error"][3] == 0
    assert drawn["mc_error"][0] > 0


def test_score_has_neither_rows_nor_subgroups_nor_an_interval() -> None:
    result = sg.importance(positive, X, POSITIVE, sampler="marginal", loss="root_mean_squared_error", random_state=1)
    table = result.overall
    assert table["std_error"].isna().all()
    assert table["conf_low"].isna().all()
    assert (table["noise"] == "none").all()
    assert (table["mc_error"][:2] > 0).all()
    assert result.baseline[0] == pytest.approx(root_mean_squared_error(POSITIVE, positive(X)))
    for name in ("per_row", "by_subgroup"):
        with pytest.raises(ParameterError, match=r"root_mean_squared_error is a score of all rows"):
            getattr(result, name)
    with pytest.raises(ParameterError, match="for each subgroup"):
        result.over_repeats(by_subgroup=True)


def test_baseline_is_the_loss_of_the_rows_unchanged() -> None:
    result = sg.importance(
        positive, X, POSITIVE, sampler="marginal", loss=["poisson", "absolute_error"], random_state=1
    )
    expected = [mean_poisson_deviance(POSITIVE, positive(X)), mean_absolute_error(POSITIVE, positive(X))]
    assert list(result.baseline) == pytest.approx(expected)


def test_loss_that_writes_to_y_gets_an_error_and_y_stays() -> None:
    """The user saw: importances in the dozens and a y full of residuals, after `y -= prediction` in a loss."""
    y = POSITIVE.copy()

    def loss(y: Floats, prediction: Floats) -> Floats:
        y -= prediction
        return y**2

    for given in (loss, sg.losses.custom(loss, response_method="value")):
        with pytest.raises(ValueError, match="read-only") as caught:
            sg.importance(positive, X, y, sampler="marginal", loss=given, random_state=1)
        assert any("in loss 'loss'" in note for note in caught.value.__notes__)
    assert np.array_equal(y, POSITIVE)


def test_loss_that_returns_what_it_was_given_corrupts_nothing() -> None:
    y = POSITIVE.copy()

    def prediction_itself(y: Floats, prediction: Floats) -> Floats:
        return prediction

    def y_itself(y: Floats, prediction: Floats) -> Floats:
        return y

    result = sg.importance(
        positive,
        X,
        y,
        sampler="marginal",
        loss=[prediction_itself, y_itself, "squared_error"],
        n_repeats=3,
        random_state=1,
    )
    assert np.array_equal(y, POSITIVE)
    alone = sg.importance(positive, X, y, sampler="marginal", loss="squared_error", n_repeats=3, random_state=1)
    pd.testing.assert_frame_equal(result.for_loss("squared_error").overall, alone.overall, check_exact=True)
    assert (result.for_loss("y_itself").overall["estimate"] == 0).all()
    single = sg.importance(positive, X, y, sampler="marginal", loss=prediction_itself, n_repeats=3, random_state=1)
    pd.testing.assert_frame_equal(result.for_loss("prediction_itself").overall, single.overall, check_exact=True)
