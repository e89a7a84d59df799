"""Memory of `importance` in a table of many rows and columns: what is kept is little beside the table."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from sklearn import config_context

import subgrove as sg
from subgrove._core.execution import working_memory
from subgrove._core.kinds import Floats

N, P = 40_000, 25
RESULT = 21  # bytes for each row and feature: 8 + 4 of the losses, 4 + 4 of the predictions, 1 of the subgroup
OPTIONS: dict[str, Any] = {"check_fidelity": False, "n_repeats": 2, "random_state": 1}


def sample(n: int = N, p: int = P) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] + X[:, 1] + rng.normal(size=n)


def of_two(X: Floats) -> Floats:
    return np.asarray(X[:, 0] + X[:, 1])


def of_all(X: Floats) -> Floats:
    return np.asarray(X.sum(axis=1))


def peak_above_data(model: Any, X: Any, y: Floats, sampler: Any = None) -> float:
    """Return the peak of memory above the rows, in multiples of their size, with small batches."""
    sampler = sg.samplers.SubgroupSampler(max_depth=1) if sampler is None else sampler
    with config_context(working_memory=16):
        tracemalloc.start()
        sg.importance(model, X, y, sampler=sampler, **OPTIONS)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak / (8 * N * P)


def test_irrelevant_features_cost_no_memory() -> None:
    """About 2.2: half of the rows and their ranks, to grow trees, and batches. It was 6.5."""
    assert peak_above_data(of_two, *sample()) < 3.2


def test_relevant_features_cost_what_their_results_take() -> None:
    """About 4.0, of which results are 2.6. It was 6.5, with sums over repeats and copies of the rows."""
    assert peak_above_data(of_all, *sample()) < 2.4 + RESULT / 8


def test_frame_of_mixed_columns_is_read_once() -> None:
    """About 3.1, where the numbers that are read are one more. It was 7.5."""
    import pandas as pd

    X, y = sample()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
    frame["x9"] = pd.Categorical(np.array(list("abcd"))[np.arange(N) % 4])
    assert peak_above_data(lambda rows: rows["x0"].to_numpy() + rows["x1"].to_numpy(), frame, y) < 4.5


def test_pickled_result_of_irrelevant_features_is_small() -> None:
    X, y = sample(2_000, 10)
    imp = sg.importance(of_two, X, y, sampler="marginal", **OPTIONS)
    stored = pickle.dumps(imp)
    assert len(stored) < 2_000 * (RESULT * 10 / 2 + 40)
    again = pickle.loads(stored)
    for one, other in zip(imp.scores, again.scores, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_array_equal(one.influence, other.influence)
        np.testing.assert_array_equal(one.code, other.code)
    assert again.overall.equals(imp.overall)


@pytest.mark.compiled
def test_function_is_explained_without_importing_scikit_learn() -> None:
    """It takes 100 MB with what it imports in turn."""
    script = """
import sys
import numpy as np
import pytest
import subgrove as sg
X = np.random.default_rng(0).normal(size=(300, 2))
sg.importance(lambda rows: rows[:, 0], X, X[:, 0], random_state=1)
assert "sklearn" not in sys.modules
from subgrove._core.execution import working_memory
assert working_memory() == 7.0
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "SKLEARN_WORKING_MEMORY": "7"})


def test_working_memory_is_that_of_scikit_learn() -> None:
    with config_context(working_memory=5):
        assert working_memory() == 5.0
