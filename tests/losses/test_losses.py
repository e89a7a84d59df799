"""Values of the losses against hand computations, and their errors. In use: importance/."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove.exceptions import InputError, ParameterError
from subgrove.losses import Loss
from subgrove.losses.named import get_all

Y = np.array([0.0, 1.0, 4.0])
P = np.array([1.0, 1.0, 2.0])


def value(loss: Any, y: Any = Y, prediction: Any = P) -> Any:
    return sg.losses.get(loss).function(np.array(y), np.array(prediction))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("squared_error", [1.0, 0.0, 4.0]),
        ("absolute_error", [1.0, 0.0, 2.0]),
        ("quantile", [0.5, 0.0, 1.0]),
        (sg.losses.quantile(0.9), [0.1, 0.0, 1.8]),
        ("poisson", [2.0, 0.0, 2 * (4 * np.log(2) - 2)]),
        (sg.losses.tweedie(1.5), [4.0, 0.0, 4 * (2 - np.sqrt(2)) ** 2 / np.sqrt(2)]),
    ],
    ids=str,
)
def test_value_of_each_row(loss: Any, expected: list[float]) -> None:
    np.testing.assert_allclose(value(loss), expected, rtol=1e-12, atol=1e-15)


def test_gamma_of_each_row() -> None:
    expected = [2 * (np.log(2) + 0.5 - 1), 0.0, 2 * (np.log(0.5) + 2 - 1)]
    np.testing.assert_allclose(value("gamma", [1.0, 3.0, 4.0], [2.0, 3.0, 2.0]), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", ["poisson", "gamma", sg.losses.tweedie(1.5)], ids=str)
def test_deviance_of_a_prediction_at_or_below_zero_has_no_value(loss: Any) -> None:
    assert np.isnan(value(loss, [1.0, 1.0], [0.0, -1.0])).all()


def test_losses_of_classes() -> None:
    code, probability = [0, 1, 1], [[0.9, 0.1], [0.4, 0.6], [1.0, 0.0]]
    np.testing.assert_allclose(value("log_loss", code, probability)[:2], -np.log([0.9, 0.6]))
    assert np.isfinite(value("log_loss", code, probability)[2])  # a probability of 0 counts as the least above it
    np.testing.assert_allclose(value("brier", code, probability), [0.01, 0.16, 1.0])
    np.testing.assert_allclose(value("brier", [2], [[0.2, 0.3, 0.5]]), [0.04 + 0.09 + 0.25])
    assert value("zero_one", ["a", "b"], ["a", "c"]).tolist() == [0.0, 1.0]
    assert value("zero_one", [[1, 2], [1, 3]], [[1, 2], [0, 3]]).tolist() == [0.0, 0.5]
    assert value("auc", [0, 0, 1, 1], [[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]]) == pytest.approx(0.25)


def test_several_outputs_are_averaged() -> None:
    y, prediction = [[1.0, 2.0], [3.0, 4.0]], [[1.0, 4.0], [0.0, 4.0]]
    assert value("squared_error", y, prediction).tolist() == [2.0, 4.5]
    assert value("absolute_error", y, prediction).tolist() == [1.0, 1.5]
    assert value("quantile", y, prediction).tolist() == [0.5, 0.75]


@pytest.mark.parametrize("name", sg.losses.names())
def test_loss_does_not_change_its_arguments_and_can_be_pickled(name: str) -> None:
    loss = sg.losses.get(name)
    classes = loss.response_method == "probability"
    y = np.array([0, 1, 1, 0]) if classes else np.array([1.0, 2.0, 3.0, 4.0])
    prediction = (
        np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5], [0.8, 0.2]]) if classes else np.array([1.5, 2.0, 1.0, 4.5])
    )
    before = y.copy(), prediction.copy()
    one = loss.function(y, prediction)
    assert np.array_equal(y, before[0])
    assert np.array_equal(prediction, before[1])
    again = pickle.loads(pickle.dumps(loss))
    assert np.array_equal(again.function(y, prediction), one)
    assert again.name == name
    assert np.shape(one) == ((4,) if loss.per_row else ())


def test_metric_with_greater_is_better_changes_its_sign() -> None:
    def share(y: Any, prediction: Any) -> float:
        return float(np.mean(y == prediction))

    y, prediction = np.array([1, 2]), np.array([1, 3])
    assert sg.losses.from_metric(share).function(y, prediction) == -0.5
    assert sg.losses.from_metric(share, greater_is_better=False).function(y, prediction) == 0.5
    assert sg.losses.from_metric(share).name == "share"
    assert sg.losses.from_metric(share, name="accuracy").name == "accuracy"
    assert not sg.losses.from_metric(share).per_row


def test_metric_of_two_classes_gets_the_probability_of_the_second() -> None:
    shapes: list[tuple[int, ...]] = []

    def metric(y: Any, prediction: Any) -> float:
        shapes.append(prediction.shape)
        return 0.0

    loss = sg.losses.from_metric(metric, response_method="probability")
    loss.function(np.array([0, 1]), np.array([[0.1, 0.9], [0.2, 0.8]]))
    loss.function(np.array([0, 1]), np.array([[0.1, 0.8, 0.1], [0.2, 0.7, 0.1]]))
    assert shapes == [(2,), (2, 3)]


def test_get_accepts_names_functions_and_losses() -> None:
    def mine(y: Any, prediction: Any) -> Any:
        return y

    loss = sg.losses.get("poisson")
    assert sg.losses.get(loss) is loss
    assert sg.losses.get(mine) == Loss("mine", mine, "any")
    assert [one.name for one in get_all(["brier", mine])] == ["brier", "mine"]
    assert sorted(sg.losses.names()) == list(sg.losses.names())
    assert repr(sg.losses.tweedie(1.5)) == "<Loss tweedie(1.5)>"


@pytest.mark.parametrize("level", [0, 1, -0.1, "0.5", True, None])
def test_level_of_a_quantile(level: Any) -> None:
    with pytest.raises(ParameterError, match="level must be a number between 0 and 1"):
        sg.losses.quantile(level)


@pytest.mark.parametrize("power", [1, 2, 0, "1.5", True])
def test_power_of_tweedie(power: Any) -> None:
    with pytest.raises(ParameterError, match="power must be a number between 1 and 2"):
        sg.losses.tweedie(power)


def test_object_that_is_not_a_function_raises() -> None:
    for make in (sg.losses.custom, sg.losses.from_metric):
        with pytest.raises(ParameterError, match="function must be a function of"):
            make("accuracy")  # type: ignore[arg-type]


def test_y_outside_the_domain_of_a_loss_raises() -> None:
    with pytest.raises(InputError, match="needs y >= 0; y has -1"):
        sg.losses.get("poisson").check_y(np.array([1.0, -1.0]))
    with pytest.raises(InputError, match="needs y > 0; y has 0"):
        sg.losses.get("gamma").check_y(np.array([1.0, 0.0]))
    sg.losses.get("poisson").check_y(np.array([0.0, 1.0]))
