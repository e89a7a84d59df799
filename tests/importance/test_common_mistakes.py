"""Common mistakes in calls: the message of each says what to do instead."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import subgrove as sg
from subgrove.exceptions import (
    ArgumentNameError,
    FewRowsWarning,
    InputError,
    ModelError,
    ParameterError,
    SameRowsWarning,
    SubgroveWarning,
)

N = 120


def rows(seed: int, n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "level": rng.choice(["u", "v"], n)})


TRAIN, X = rows(0), rows(1)
Y: npt.NDArray[np.float64] = X["a"].to_numpy() + 1.0
NUMBERS = ["a", "b"]
POSITIVE = np.where(TRAIN["a"] > 0, 1, 0)
CLASSIFIER = LogisticRegression().fit(TRAIN[NUMBERS], POSITIVE)
OPTIONS: dict[str, Any] = {"n_repeats": 2, "random_state": 1, "check_fidelity": False}


def model(table: Any) -> Any:
    return table["a"].to_numpy()


@pytest.mark.parametrize("train", [TRAIN, (TRAIN, Y), [TRAIN, Y], sg.datasets.Dataset(TRAIN, pd.Series(Y), "", "")])
def test_train_is_a_table_a_pair_or_a_data_set(train: Any) -> None:
    expected = sg.importance(model, X, Y, train=TRAIN, **OPTIONS).overall
    pd.testing.assert_frame_equal(sg.importance(model, X, Y, train=train, **OPTIONS).overall, expected)


def test_report_and_loco_name_the_target_that_train_lacks() -> None:
    with pytest.raises(ParameterError, match=r"train must be a pair \(X, y\).* got DataFrame.*train=\(X, y\)"):
        sg.report(model, TRAIN, (X, Y))
    with pytest.raises(ParameterError, match=r"train must be a pair \(X, y\).*refitted"):
        sg.loco(model, X, Y, train=TRAIN)


def test_importance_and_report_have_the_same_default_loss() -> None:
    options: dict[str, Any] = {"n_repeats": 2, "random_state": 1}
    for one, y in ((model, Y), (CLASSIFIER, np.where(X["a"] > 0, 1, 0))):
        table, train = (X, TRAIN) if one is model else (X[NUMBERS], TRAIN[NUMBERS])
        y_train = TRAIN["a"] if one is model else POSITIVE
        loss = sg.importance(one, table, y, sampler="marginal", **options).losses[0]
        assert sg.report(one, (train, y_train), (table, y), features=["a"], **options).summary.loss == loss


def test_zero_and_one_without_a_classifier_are_compared_by_the_brier_score() -> None:
    y = np.where(X["a"] > 0, 1, 0)
    with pytest.warns(SubgroveWarning, match="only the values 0 and 1, but model is not a classifier") as caught:
        result = sg.importance(CLASSIFIER.predict, X[NUMBERS], y, sampler="marginal", **OPTIONS)
    assert result.losses == ("squared_error",)
    assert caught[0].filename == __file__


def test_predict_proba_as_a_model() -> None:
    y = np.where(X["a"] > 0, 1, 0)
    with pytest.raises(ParameterError, match=r"predict_proba of LogisticRegression. Pass the classifier itself"):
        sg.importance(CLASSIFIER.predict_proba, X[NUMBERS], y)
    with pytest.raises(ModelError, match="Pass the classifier itself, or loss='log_loss'"):
        sg.importance(lambda table: CLASSIFIER.predict_proba(table), X[NUMBERS], Y, sampler="marginal")
    named = sg.importance(CLASSIFIER.predict_proba, X[NUMBERS], y, loss="log_loss", sampler="marginal", **OPTIONS)
    assert named.losses == ("log_loss",)


def test_predict_of_a_classifier_of_labels_is_compared_by_labels() -> None:
    """The user saw: the resolved dtypes are not compatible with add.reduce."""
    labels, y = np.where(POSITIVE, "yes", "no"), np.where(X["a"] > 0, "yes", "no")
    classifier = LogisticRegression().fit(TRAIN[NUMBERS], labels)
    assert sg.importance(classifier.predict, X[NUMBERS], y, sampler="marginal", **OPTIONS).losses == ("zero_one",)
    with pytest.raises(
        ModelError, match=r"predicts '(yes|no)' where probabilities are needed .* Pass the classifier itself"
    ):
        sg.importance(lambda table: classifier.predict(table), X[NUMBERS], y, sampler="marginal")


def test_target_in_another_coding_than_in_training() -> None:
    y = np.where(X["a"] > 0, "yes", "no")
    with pytest.raises(InputError, match=r"'no', 'yes'\. It knows 0, 1. Pass y in the coding that the model"):
        sg.importance(CLASSIFIER, X[NUMBERS], y)


@pytest.mark.parametrize(
    ("call", "given", "expected"),
    [
        (sg.importance, {"scoring": "r2"}, "importance has no argument 'scoring'; use loss="),
        (sg.importance, {"seed": 1}, "use random_state="),
        (sg.importance, {"n_repeat": 1}, "use n_repeats="),
        (sg.effect, {"features": "a"}, "effect has no argument 'features'; use feature="),
        (sg.fidelity, {"method": "auto"}, "fidelity has no argument 'method'; it has train, test, samplers"),
    ],
)
def test_names_of_arguments_in_other_packages(call: Any, given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ArgumentNameError, match=expected):
        call(model, X, Y, **given)
    with pytest.raises(TypeError):
        call(model, X, Y, **given)


def test_report_with_rows_and_targets_one_by_one() -> None:
    with pytest.raises(TypeError, match=r"3 positional arguments.* got 5.*\(X_train, y_train\), \(X_test, y_test\)"):
        sg.report(model, TRAIN, Y, X, Y)  # type: ignore[call-arg]


@pytest.mark.parametrize(("name", "expected"), [("conditional", "Use 'auto'"), ("permutation", "sampler='marginal'")])
def test_names_of_samplers_in_other_packages(name: str, expected: str) -> None:
    with pytest.raises(ParameterError, match=expected):
        sg.importance(model, X, Y, sampler=name)


@pytest.mark.parametrize("sampler", ["auto", "marginal"])
def test_training_rows_as_test_rows(sampler: str) -> None:
    with pytest.warns(SameRowsWarning, match="same rows. Importance on training rows is optimistic") as caught:
        sg.importance(model, TRAIN, TRAIN["a"] + 1, train=TRAIN, sampler=sampler, **OPTIONS)
    assert "leave train out" not in str(caught[0].message)
    assert caught[0].filename == __file__


def test_some_training_rows_among_the_test_rows() -> None:
    mixed = pd.concat([X.iloc[:90], TRAIN.iloc[:30]], ignore_index=True).sample(frac=1, random_state=1)
    shuffled = mixed[["level", "b", "a"]].reset_index(drop=True)
    with pytest.warns(SameRowsWarning, match="25 % of the rows of X are also in train"):
        sg.importance(model, shuffled, shuffled["a"] + 1, train=TRAIN, **OPTIONS)


def test_rows_that_are_equal_by_chance_are_not_taken_for_training_rows() -> None:
    rng = np.random.default_rng(3)
    train, test = (pd.DataFrame({"a": rng.integers(0, 3, n), "b": rng.choice(["u", "v"], n)}) for n in (400, 200))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sg.importance(lambda table: table["a"] * 1.0, test, test["a"] * 2.0, train=train, **OPTIONS)


def test_the_same_table_of_few_distinct_rows_is_found() -> None:
    train = pd.DataFrame({"a": [0.0, 1.0] * 60, "b": ["u", "v"] * 60})
    with pytest.warns(SameRowsWarning, match="X and train have the same rows"):
        sg.importance(lambda table: table["a"], train, train["a"] * 2, train=train.copy(), **OPTIONS)


def test_fewer_than_fifty_rows() -> None:
    with pytest.warns(FewRowsWarning, match="X has 49 rows; with fewer than 50"):
        sg.importance(model, X.iloc[:49], Y[:49], sampler="marginal", **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sg.importance(model, X.iloc[:50], Y[:50], sampler="marginal", **OPTIONS)


def test_columns_in_another_order_than_the_array_of_the_model() -> None:
    fitted = LinearRegression().fit(TRAIN[NUMBERS].to_numpy(), TRAIN["a"])
    with pytest.raises(InputError, match="columns of train in another order, and model was fitted on an array"):
        sg.importance(fitted, X[["b", "a"]], Y, train=TRAIN[NUMBERS])


def test_booster_of_xgboost() -> None:
    class Booster:
        def predict(self, data: Any) -> Any:
            raise TypeError(("Expecting data to be a DMatrix object, got: ", type(data)))

    Booster.__module__ = "xgboost.core"
    with pytest.raises(ModelError, match=r"lambda X: booster.predict\(xgboost.DMatrix\(X, enable_categorical=True\)\)"):
        sg.importance(Booster(), X, Y, sampler="marginal")
