"""Losses of labels with functions that give probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import subgrove as sg
from subgrove.exceptions import ModelError, SubgroveWarning

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(400, 3)), columns=["x1", "x2", "x3"])
Y = (RNG.random(400) < 1 / (1 + np.exp(-(1.5 * X["x1"] + X["x3"])))).astype(int)
MODEL = LogisticRegression().fit(X, Y)
OPTIONS: dict[str, Any] = {"sampler": "marginal", "loss": "zero_one", "random_state": 1}


@pytest.mark.parametrize("labels", [[0, 1], [1, 2], ["no", "yes"], [False, True]])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_function_of_probabilities_is_judged_by_the_likelier_class(labels: list[Any], columns: int) -> None:
    y = np.array(labels)[Y]

    def function(rows: pd.DataFrame) -> Any:
        probabilities = MODEL.predict_proba(rows)
        return probabilities if columns == 2 else probabilities[:, 1]

    expected = sg.importance(MODEL, X, Y, **OPTIONS)
    found = sg.importance(function, X, y, **OPTIONS)
    assert 0.1 < found.baseline[0] < 0.4
    assert found.baseline[0] == pytest.approx(expected.baseline[0])
    np.testing.assert_allclose(found.overall["estimate"], expected.overall["estimate"], atol=1e-12)


def test_labels_of_a_function_are_compared_as_they_are() -> None:
    found = sg.importance(lambda rows: MODEL.predict(rows).astype(float), X, Y, **OPTIONS)
    assert found.baseline[0] == pytest.approx((MODEL.predict(X) != Y).mean())


def test_numbers_that_are_neither_labels_nor_probabilities_are_rejected() -> None:
    with pytest.raises(ModelError, match="labels are 0, 1, but the model gave"):
        sg.importance(lambda rows: 3 + rows["x1"] ** 2, X, Y, **OPTIONS)


def test_probabilities_of_the_other_class_are_noticed() -> None:
    y = np.array(["no", "yes"])[Y]
    options = {**OPTIONS, "loss": "log_loss"}
    with pytest.warns(SubgroveWarning, match=r"probability of 'yes', the second class .* If it is that of 'no', pass"):
        sg.importance(lambda rows: MODEL.predict_proba(rows)[:, 0], X, y, **options)
    sg.importance(lambda rows: MODEL.predict_proba(rows)[:, 1], X, y, **options)  # warnings are errors here
    sg.importance(lambda rows: np.full(len(rows), 0.4), X, y, **options)
