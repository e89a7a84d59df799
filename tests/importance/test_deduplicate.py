"""Redrawn rows that repeat each other are predicted once, and the numbers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import subgrove as sg
from subgrove._scoring import deduplicate as repeated
from subgrove.exceptions import ModelError
from tests.large_data_options import importance

RNG = np.random.default_rng(0)
N, M = 600, 5
MOSTLY_ZERO = np.where(RNG.random(N) < 0.9, 0.0, RNG.integers(1, 60, N) / 4)
ZEROS = pd.DataFrame({"zero": MOSTLY_ZERO, "b": RNG.normal(size=N), "c": RNG.normal(size=N)})
LEVELS = pd.DataFrame({"u": RNG.integers(0, 3, N), "v": RNG.choice(["p", "q", "r"], N), "w": RNG.random(N) < 0.3})
Y = RNG.normal(size=N)
AGAIN = 10  # rows that are predicted once more, on their own


class Counting:
    """A model that counts what it is call_options, and predicts each row on its own."""

    def __init__(self) -> None:
        self.rows = 0

    def predict(self, X: Any) -> Any:
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X.to_dict(as_series=False))
        self.rows += len(frame)
        total = np.zeros(len(frame))
        for place, name in enumerate(frame.columns):
            values = frame[name]
            total += (place + 1) * (values.map(ord) if name == "v" else values).to_numpy(dtype=np.float64) ** 2
        return total


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Look for duplicated rows in small tables too."""
    monkeypatch.setattr(repeated, "MIN_ROWS", 0)
    return monkeypatch


def both(monkeypatch: pytest.MonkeyPatch, X: Any, **options: Any) -> tuple[Any, int, int]:
    """The result, and how many rows are predicted with and without looking; both give the same numbers."""
    few, all_rows = Counting(), Counting()
    options = {"random_state": 1, "n_repeats": M, "check_fidelity": False} | options
    found = importance(few, X, Y, **options)
    monkeypatch.setattr(repeated, "MIN_ROWS", 10**9)
    expected = importance(all_rows, X, Y, **options)
    assert found.settings["n_rows_predicted"] == few.rows
    for table in ("overall", "by_subgroup", "per_row", "repeats"):
        pd.testing.assert_frame_equal(getattr(found, table), getattr(expected, table), check_exact=True)
    return found, few.rows, all_rows.rows


SAMPLERS: dict[str, dict[str, Any]] = {
    "marginal": {"sampler": "marginal"},
    "from training rows": {
        "sampler": sg.samplers.SubgroupSampler(max_depth=1, donors="train"),
        "train": (ZEROS.iloc[: N // 2] * 1.0).assign(b=ZEROS["b"] + 0.125),
    },
    "subgroups": {"sampler": "subgroups"},
    "small batches": {"sampler": "marginal", "memory": 1e-9},
    "weights": {"sampler": "marginal", "sample_weight": RNG.integers(1, 3, N)},
    "two jobs": {"sampler": "marginal", "n_jobs": 2},
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_rows_that_are_given_a_value_again_are_predicted_once(always: Any, name: str) -> None:
    options = dict(SAMPLERS[name])
    if name == "two jobs":
        import joblib

        with joblib.parallel_config(backend="threading"):
            found, few, all_rows = both(always, ZEROS, **options)
    else:
        found, few, all_rows = both(always, ZEROS, **options)
    assert found.scores[0].n_exact < N
    drawn = all_rows - N - 2 * M * N  # for the column that is mostly zero
    assert few - N - 2 * M * N < 0.5 * drawn


@pytest.mark.parametrize("sampler", ["marginal", "subgroups", "auto"])
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_in_a_table_of_few_different_rows_none_is_predicted_twice(always: Any, container: str, sampler: str) -> None:
    different = len(LEVELS.drop_duplicates())
    X = LEVELS if container == "pandas" else pl.from_pandas(LEVELS)
    few = Counting()
    found = importance(few, X, Y, random_state=1, n_repeats=M, check_fidelity=False, sampler=sampler)
    assert (
        few.rows <= N + AGAIN + 3 * 3 * 3 * 2 * 3
    )  # the unchanged rows, and at most every combination for each feature
    assert few.rows == found.settings["n_rows_predicted"]
    assert different == 18  # all combinations are there, so that nothing is left to predict_with
    assert few.rows == N + AGAIN
    always.setattr(repeated, "MIN_ROWS", 10**9)
    expected = importance(Counting(), X, Y, random_state=1, n_repeats=M, check_fidelity=False, sampler=sampler)
    assert pd.DataFrame(found.overall).equals(pd.DataFrame(expected.overall))


def test_labels_and_probabilities_are_kept_unchanged(always: Any) -> None:
    y = np.where(Y > 0, "yes", "no")

    class Classifier:
        classes_ = np.array(["no", "yes"])

        def predict(self, X: Any) -> Any:
            return np.where(X["zero"] + X["b"] > 0, "yes", "no")

        def predict_proba(self, X: Any) -> Any:
            p = 1 / (1 + np.exp(-X["zero"].to_numpy() - X["b"].to_numpy()))
            return np.column_stack([1 - p, p])

    for loss in ("zero_one", "log_loss"):
        options: dict[str, Any] = {
            "loss": loss,
            "sampler": "marginal",
            "n_repeats": M,
            "random_state": 2,
            "check_fidelity": False,
        }
        found = importance(Classifier(), ZEROS, y, **options)
        always.setattr(repeated, "MIN_ROWS", 10**9)
        expected = importance(Classifier(), ZEROS, y, **options)
        always.setattr(repeated, "MIN_ROWS", 0)
        pd.testing.assert_frame_equal(found.overall, expected.overall, check_exact=True)
        assert found.settings["n_rows_predicted"] < expected.settings["n_rows_predicted"]


def test_continuous_and_small_tables_are_predicted_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting()
    importance(counting, ZEROS, Y, sampler="marginal", n_repeats=M, random_state=1, check_fidelity=False)
    assert counting.rows == N * (1 + 3 * M) + AGAIN  # below the least number of rows
    monkeypatch.setattr(repeated, "MIN_ROWS", 0)
    other = Counting()
    importance(other, ZEROS[["b", "c"]], Y, sampler="marginal", n_repeats=M, random_state=1, check_fidelity=False)
    assert other.rows == N * (1 + 2 * M) + AGAIN


def test_whole_numbers_that_floats_cannot_report_apart_are_not_taken_for_equal(always: Any) -> None:
    X = pd.DataFrame({"id": np.tile([2**53, 2**53 + 1], N // 2), "u": LEVELS["u"]})

    def model(table: Any) -> Any:
        return (table["id"] % 2).to_numpy() + table["u"].to_numpy()

    options: dict[str, Any] = {
        "features": ["u"],
        "sampler": "marginal",
        "n_repeats": M,
        "random_state": 1,
        "check_fidelity": False,
    }
    found = importance(model, X, Y, **options).overall
    always.setattr(repeated, "MIN_ROWS", 10**9)
    pd.testing.assert_frame_equal(found, importance(model, X, Y, **options).overall, check_exact=True)


def test_error_names_the_repeat(always: Any) -> None:
    def model(table: Any) -> Any:
        if len(table) != N:
            raise RuntimeError("only these rows")
        return np.zeros(N)

    with pytest.raises(ModelError, match=r"RuntimeError on \d+ rows \(feature 'zero', repeat 0\): only these rows"):
        importance(
            model, ZEROS, Y, features=["zero"], sampler="marginal", n_repeats=M, random_state=1, check_fidelity=False
        )
