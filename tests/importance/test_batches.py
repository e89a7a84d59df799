"""Tables with more rows than a batch: the same numbers, and one copy of the table for all repeats if memory allows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context

import subgrove as sg

RNG = np.random.default_rng(1)
X = RNG.normal(size=(250, 3))
Y = X[:, 0] + RNG.normal(size=250)
CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "array": np.asarray,
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
}


def call_options(make: Callable[[Any], Any], model: Any, **more: Any) -> Any:
    return sg.importance(
        model, make(X), Y, sampler="marginal", n_repeats=4, random_state=1, check_fidelity=False, **more
    )


def first_column(X: Any) -> Any:
    """Predictions that are part of the table itself."""
    return X[:, 0] if isinstance(X, np.ndarray) else X["a"]


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=list(CONTAINERS))
@pytest.mark.parametrize("memory", [512, 0.01], ids=["room for a copy", "no room"])
def test_numbers_do_not_depend_on_batches(make: Any, memory: float, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = call_options(make, first_column)
    monkeypatch.setattr(sys.modules["subgrove._scoring.context"], "_BATCH_ROWS", 100)
    with config_context(working_memory=memory):
        batches = call_options(make, first_column)
    assert batches.settings["n_calls"] == 3 * (1 + 3 * 4) + 1  # and some rows are predicted again
    pd.testing.assert_frame_equal(batches.per_row, whole.per_row, check_exact=True)


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=list(CONTAINERS))
def test_one_copy_serves_all_features_and_repeats(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["subgrove._scoring.context"], "_BATCH_ROWS", 100)
    places: list[int] = []

    def model(X: Any) -> Any:
        places.append(int(np.asarray(X).ctypes.data))
        return np.array(first_column(X))

    call_options(make, model)
    assert len(set(places[3:-1])) == 3  # three batches of one copy, after the baseline rows; the last are some of these
