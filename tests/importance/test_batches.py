"""Tables with more rows than a batch: the same numbers, and one copy of a batch for all repeats of a feature."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg

RNG = np.random.default_rng(1)
X = RNG.normal(size=(250, 3))
Y = X[:, 0] + RNG.normal(size=250)
CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "array": np.asarray,
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
}


def call_options(make: Callable[[Any], Any], model: Any, n_repeats: int = 4) -> Any:
    options: dict[str, Any] = {"sampler": "marginal", "random_state": 1, "check_fidelity": False}
    return sg.importance(model, make(X), Y, n_repeats=n_repeats, **options)


def first_column(X: Any) -> Any:
    """Predictions that are part of the table itself."""
    return X[:, 0] if isinstance(X, np.ndarray) else X["a"]


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=list(CONTAINERS))
@pytest.mark.parametrize("n_repeats", [4, 20])
def test_numbers_do_not_depend_on_batches(make: Any, n_repeats: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats share the memory of a batch, in which a column that the model returned is overwritten."""
    whole = call_options(make, first_column, n_repeats)
    monkeypatch.setattr(sys.modules["subgrove._scoring.context"], "_BATCH_ROWS", 100)
    batches = call_options(make, first_column, n_repeats)
    assert batches.settings["n_calls"] == 3 * (1 + 3 * n_repeats) + 1  # and some rows are predicted again
    pd.testing.assert_frame_equal(batches.per_row, whole.per_row, check_exact=True)


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=list(CONTAINERS))
def test_one_copy_of_a_batch_serves_all_repeats(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["subgrove._scoring.context"], "_BATCH_ROWS", 100)
    places: list[int] = []

    def model(X: Any) -> Any:
        places.append(int(np.asarray(X).ctypes.data))
        return np.array(first_column(X))

    call_options(make, model)
    found = np.reshape(places[3:-1], (3 * 3, 4))  # by feature and batch, after the baseline rows; the last are some
    assert (found == found[:, :1]).all()
