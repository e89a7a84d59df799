"""Faults that gave wrong numbers without a word: each test is named after what a user would have seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

import subgrove as sg
from subgrove.exceptions import InputError, ModelError, ParameterError, SamplerError

RNG = np.random.default_rng(3)
N = 200
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)})
Y = (X["a"] + 0.5 * RNG.normal(size=N) > 0).astype(int)
CLASSIFIER = LogisticRegression().fit(X, Y)


def run(model: Any, **options: Any) -> sg.ImportanceResult:
    return sg.importance(
        model, X, Y, **{"sampler": "marginal", "features": ["a"], "n_repeats": 3, "random_state": 1, **options}
    )


def test_function_of_probabilities_has_the_zero_one_loss_of_its_classifier() -> None:
    both = ["log_loss", "zero_one"]
    one = run(CLASSIFIER, loss=both)
    for function in (CLASSIFIER.predict_proba, lambda Z: CLASSIFIER.predict_proba(Z)[:, 1]):
        two = run(function, loss=both)
        assert two.baseline == pytest.approx(one.baseline)
        assert two.overall["estimate"].tolist() == pytest.approx(one.overall["estimate"].tolist())


def test_zero_one_loss_of_probabilities_that_were_predicted() -> None:
    assert (
        run(CLASSIFIER, loss="zero_one", response_method="predict_proba").baseline
        == run(CLASSIFIER, loss="zero_one").baseline
    )


@pytest.mark.parametrize("loss", ["log_loss", "brier"])
def test_scores_that_are_no_probabilities_are_rejected(loss: str) -> None:
    with pytest.raises(ModelError, match="where probabilities are needed"):
        run(CLASSIFIER.decision_function, loss=loss)
    with pytest.raises(ParameterError, match="does not serve loss"):
        run(CLASSIFIER, loss=loss, response_method="decision_function")
    with pytest.raises(ParameterError, match="does not serve loss"):
        run(CLASSIFIER, loss=loss, response_method="predict")


def test_own_loss_beside_one_of_probabilities_is_rejected() -> None:
    def wrong(y: Any, label: Any) -> Any:
        return (y != label).astype(float)

    with pytest.raises(ParameterError, match=r"'wrong' needs the output of predict"):
        run(CLASSIFIER, loss=["log_loss", wrong])


@pytest.mark.parametrize("metric", [roc_auc_score, average_precision_score])
def test_metric_of_scikit_learn_gets_probabilities(metric: Any) -> None:
    """The user saw: an AUC of hard labels."""
    expected = metric(Y, CLASSIFIER.predict_proba(X)[:, 1])
    for loss in (metric, sg.losses.from_metric(metric)):
        assert run(CLASSIFIER, loss=loss).baseline[0] == pytest.approx(-expected)


def test_weights_of_one_are_no_weights() -> None:
    for sampler in (sg.samplers.Marginal(fixed_points=True), "marginal"):
        one, two = run(CLASSIFIER, sampler=sampler), run(CLASSIFIER, sampler=sampler, sample_weight=np.ones(N))
        pd.testing.assert_frame_equal(one.overall, two.overall)


def test_fixed_points_count_with_weights_too() -> None:
    """Two rows of weight 2: half of all draws leave a row its value, so the importance is half of (1 - 0)^2 * 2."""
    frame, y = pd.DataFrame({"a": [0.0, 1.0]}), np.array([0.0, 1.0])
    means = [
        sg.importance(
            lambda Z: Z["a"],
            frame,
            y,
            sampler=sg.samplers.Marginal(fixed_points=fixed),
            sample_weight=sg.FrequencyWeights([2, 2]),
            loss="squared_error",
            n_repeats=2000,
            random_state=1,
        ).overall["estimate"][0]
        for fixed in (True, False)
    ]
    # Shares of changed rows are 1/2 and 2/3, each the mean of 4000 draws; 4 standard errors are 0.032.
    assert means == pytest.approx([1 / 2, 2 / 3], abs=0.032)


def test_comparison_of_two_samplers_does_not_depend_on_their_seeds() -> None:
    """The user saw: a standard error nearly doubled because marginal and knockoffs had the same seed."""
    marginal = run(CLASSIFIER, n_repeats=2).with_noise("test rows")  # of two redraws nobody knows the noise
    errors = [
        marginal.compare(run(CLASSIFIER, sampler=sg.samplers.Knockoffs().fit(X), n_repeats=2, random_state=seed))[
            "std_error"
        ][0]
        for seed in (1, 2)
    ]
    assert errors[0] == pytest.approx(errors[1], rel=0.35)


def test_loco_rejects_rows_in_another_order() -> None:
    shuffled = Y.sample(frac=1, random_state=0)
    with pytest.raises(InputError, match="another order"):
        sg.loco(CLASSIFIER, X, shuffled, train=(X, Y))
    with pytest.raises(InputError, match="another order"):
        sg.loco(CLASSIFIER, X, Y, train=(X, shuffled))


def test_loco_rejects_training_rows_that_are_no_table() -> None:
    with pytest.raises(InputError, match="train must be a pandas or polars frame"):
        sg.loco(CLASSIFIER, X, Y, train=("rows/", Y))


def test_loco_rejects_weights_for_a_score() -> None:
    with pytest.raises(ParameterError, match="weights cannot be used with auc"):
        sg.loco(CLASSIFIER, X, Y, train=(X, Y), loss="auc", sample_weight=np.arange(N))


@pytest.mark.parametrize("sampler", ["subgroups", "imputation"])
def test_order_of_levels_changes_no_number(sampler: str) -> None:
    """The user saw: other numbers from a category than from strings."""
    train, test = sg.datasets.bike(split=0.7, random_state=1)
    given = sg.samplers.Imputation(n_trees=20) if sampler == "imputation" else sampler
    results = []
    for one, two in ((train.X, test.X), (train.X.astype({"season": str}), test.X.astype({"season": str}))):
        found = sg.importance(
            lambda Z: 100 * Z["temp"] + Z["hum"],
            two,
            test.y,
            sampler=given,
            train=one,
            features=["temp", "hum"],
            random_state=1,
        )
        results.append(found.overall["estimate"].tolist())
    assert results[0] == pytest.approx(results[1], rel=1e-12)


def test_sampler_fitted_on_the_rows_it_is_evaluated_on_is_warned_of() -> None:
    with pytest.warns(sg.exceptions.SameRowsWarning, match="same rows"):
        run(CLASSIFIER, sampler="knockoffs", train=X)


def test_masked_values_reach_the_model_as_missing() -> None:
    values = np.ones((40, 2))
    values[3, 1] = 1e6
    masked = np.ma.masked_greater(values, 1)
    seen = []

    def model(Z: Any) -> Any:
        seen.append(np.nanmax(Z))
        return np.zeros(len(Z))

    sg.importance(model, masked, np.zeros(40), sampler="marginal", features=["x0"], n_repeats=2, random_state=1)
    assert max(seen) == 1


@pytest.mark.parametrize("loss", ["log_loss", "brier"])
def test_probabilities_that_do_not_sum_to_one_are_rejected(loss: str) -> None:
    with pytest.raises(ModelError, match=r"probabilities that sum to 1.8 in a row .*must sum to 1"):
        run(lambda Z: np.full((len(Z), 2), 0.9), loss=loss)
    assert run(lambda Z: np.full((len(Z), 2), 0.51), loss=loss).baseline[0] > 0  # rounded ones are accepted
    assert run(lambda Z: np.full((len(Z), 2), 0.9), loss="zero_one").baseline[0] > 0


def test_masked_predictions_are_rejected() -> None:
    with pytest.raises(ModelError, match="masked predictions"):
        run(lambda Z: np.ma.masked_greater(Z["a"].to_numpy(), 1), loss="squared_error")


MASKED = np.ma.masked_greater(X["a"].to_numpy(), 1)


class MaskedSampler:
    """Gives masked values, as a computation with masked arrays does."""

    def fit(self, X: Any, features: Any) -> MaskedSampler:
        return self

    def sample(self, X: Any, feature: Any, rngs: Any) -> Any:
        yield from (np.ma.masked_greater(rng.permutation(X[feature]), 1) for rng in rngs)


@pytest.mark.filterwarnings("ignore::subgrove.exceptions.SameRowsWarning")
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"y": MASKED}, InputError, "y must be a column .*; got masked values"),
        ({"sample_weight": np.abs(MASKED)}, InputError, "sample_weight must be finite"),
        ({"sampler": MaskedSampler()}, SamplerError, "masked values for feature 'a'"),
        ({"loss": lambda y, p: np.ma.masked_greater(y - p, 0)}, ModelError, "is nan"),
    ],
)
def test_masked_values_are_not_used_as_if_they_were_not_masked(options: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        sg.importance(
            lambda Z: np.asarray(Z["a"]), **{"X": X, "y": X["b"], "features": ["a"], "random_state": 1, **options}
        )
