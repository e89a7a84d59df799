"""Unchanged leaves every row unchanged, without evaluating the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._data.replace_columns import Donors
from subgrove.samplers.unchanged import Unchanged

X = pd.DataFrame({"number": [1.5, None, 3.0], "label": ["a", "b", None]})


def test_expectation_is_exact_without_a_step() -> None:
    fitted = Unchanged().fit(X)
    resampled = fitted.resample(fitted.read(X), ("number",), Streams(0, "number", 5))
    assert resampled.exact is not None
    assert resampled.exact.rows.all()
    assert list(resampled.exact.terms()) == []


def test_draws_give_each_row_its_own_values() -> None:
    fitted = Unchanged().fit(X)
    resampled = fitted.resample(fitted.read(X), ("number", "label"), Streams(0, "both", 2), exact=False)
    assert resampled.exact is None
    for changes in resampled.draws():
        assert set(changes) == {"number", "label"}
        for column in changes.values():
            assert isinstance(column, Donors)
            assert not column.train
            assert column.rows.tolist() == [0, 1, 2]


def test_resampling_gives_the_column_back() -> None:
    for column in Unchanged().fit(X).sample(X, "number", 2):
        np.testing.assert_array_equal(column, X["number"])


def test_importance_is_zero_and_the_model_predicts_the_baseline_only() -> None:
    train, test = sg.datasets.bike(split=0.7, random_state=1)
    requested = []

    def model(X: pd.DataFrame) -> Any:
        requested.append(len(X))
        return X["temp"]

    result = sg.importance(model, test.X, test.y, sampler=Unchanged(), train=train.X, random_state=0)
    assert (result.overall["estimate"] == 0).all()
    assert requested == [len(test.X), 10]  # the second: ten rows once more, to see whether predictions change
