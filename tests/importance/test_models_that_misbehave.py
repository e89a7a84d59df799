"""Models that raise half-way, or write to the table they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context

import subgrove as sg
from subgrove.exceptions import ModelError
from tests.large_data_options import importance

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(0)
ARRAY = RNG.normal(size=(50, 4))
ARRAY[:, 2] = np.round(ARRAY[:, 2])
ARRAY[:, 3] = np.arange(50)
Y = RNG.normal(size=50)
FRAME = pd.DataFrame(ARRAY, columns=["a", "b", "c", "row"])
MIXED = FRAME.assign(c=FRAME["c"].astype(int))


class FailsOn:
    """Fails once the second column is not what it was; the last column holds the number of the row."""

    def __init__(self, kind: str) -> None:
        self.expected = ARRAY[:, 1]
        self.kind = kind

    def predict(self, X: Any) -> Floats:
        values = np.asarray(X, dtype=float)
        wrong = values[:, 1] != self.expected[values[:, -1].astype(int)]
        if wrong.any() and self.kind == "raises":
            raise RuntimeError("no such row")
        values = values[:, 0].copy()
        values[wrong] = {"nan": np.nan, "infinite": np.inf}.get(self.kind, 0.0)
        return values


@pytest.mark.parametrize(
    ("table", "n_jobs"),
    [(ARRAY, 1), (FRAME, 1), (MIXED, 1), (MIXED, 2)],
    ids=["array", "frame", "mixed frame", "mixed frame, two jobs"],
)
def test_error_of_the_model_names_feature_and_repeat(
    table: Any, n_jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table.copy()
    monkeypatch.chdir(tmp_path)
    names = ["x0", "x1", "x2"] if table is ARRAY else ["a", "b", "c"]
    options: dict[str, Any] = {
        "sampler": "marginal",
        "features": names,
        "n_repeats": 4,
        "random_state": 0,
        "n_jobs": n_jobs,
    }
    with pytest.raises(ModelError, match=rf"RuntimeError on 50 rows \(feature '{names[1]}', repeat 0\): no such row"):
        importance(FailsOn("raises"), table, Y, **options)
    assert np.array_equal(np.asarray(table), np.asarray(before))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "shown"), [("nan", "nan"), ("infinite", "inf")])
@pytest.mark.parametrize("memory", [512, 1e-9])
def test_prediction_that_is_not_finite_names_feature_repeat_and_row(kind: str, shown: str, memory: float) -> None:
    words = rf"not finite, the first {shown} \(feature 'x1', repeat 0, row 0\)"
    with config_context(working_memory=memory), pytest.raises(ModelError, match=words):
        importance(FailsOn(kind), ARRAY, Y, sampler="marginal", n_repeats=4, random_state=0)


def test_prediction_that_is_not_finite_in_an_exact_expectation_is_reported() -> None:
    def model(X: Floats) -> Floats:
        return np.where(X[:, 2] != ARRAY[X[:, -1].astype(int), 2], np.nan, X[:, 0])

    with pytest.raises(ModelError, match="feature 'x2', exact expectation"):
        importance(
            model, ARRAY, Y, sampler="marginal", features=["x2"], n_repeats=10, random_state=0, loss="squared_error"
        )


def test_row_of_a_bad_prediction_is_weighted_from_the_first_row_also_in_batches() -> None:
    """The user saw: `original row 200` for a missing prediction in row 2200."""
    array = np.zeros((3000, 1))
    array[2200] = 1.0

    def model(X: Floats) -> Floats:
        return np.where(X[:, 0] == 1.0, np.nan, 0.0)

    with config_context(working_memory=1e-9), pytest.raises(ModelError, match="original row 2200"):
        importance(model, array, np.zeros(3000), sampler="marginal", loss="squared_error")


def test_model_that_fails_on_the_rows_unchanged_says_so() -> None:
    def model(X: Any) -> Any:
        raise KeyError("colour")

    with pytest.raises(ModelError, match=r"KeyError on 50 rows \(original rows\): 'colour'") as caught:
        importance(model, ARRAY, Y, sampler="marginal")
    assert isinstance(caught.value.__cause__, KeyError)


def in_place(X: Any) -> Floats:
    """Scales its first column in place, as a careless function does."""
    if isinstance(X, np.ndarray):
        X[:, 0] *= 2
        return X[:, 0] + X[:, 1]
    X.iloc[:, 0] = X.iloc[:, 0] * 2
    return np.asarray(X.iloc[:, 0] + X.iloc[:, 1])


def with_a_new_column(X: Any) -> Floats:
    """Adds a column to the table, as people do."""
    if isinstance(X, np.ndarray):
        X += 0.0
        return 2 * X[:, 0] + X[:, 1]
    X["sum"] = 2 * X.iloc[:, 0] + X.iloc[:, 1]
    return np.asarray(X["sum"])


def filled(X: Any) -> Any:
    """Fills missing values in place, and raises if there are none left to fill."""
    values = X if isinstance(X, np.ndarray) else X.to_numpy()
    assert np.isnan(values[:, 0]).any()
    if isinstance(X, np.ndarray):
        np.nan_to_num(X, copy=False)
    else:
        X.fillna(0.0, inplace=True)
    return 2 * np.asarray(X)[:, 0] + np.asarray(X)[:, 1]


def careful(X: Any) -> Any:
    values = np.nan_to_num(np.asarray(X, dtype=float))
    return 2 * values[:, 0] + values[:, 1]


class Estimator:
    def __init__(self, function: Any) -> None:
        self.function = function

    def predict(self, X: Any) -> Any:
        return self.function(X)


@pytest.mark.parametrize("as_estimator", [False, True], ids=["function", "estimator"])
@pytest.mark.parametrize("table", [ARRAY, FRAME, MIXED], ids=["array", "frame", "mixed frame"])
@pytest.mark.parametrize("model", [in_place, with_a_new_column])
def test_model_that_writes_to_its_table_corrupts_nothing(model: Any, table: Any, as_estimator: bool) -> None:
    """The user saw: other numbers than those of the same model without the in-place step, and a changed X."""
    given = table.copy()
    # Batches of 1000 rows hold 20 of 120 passes, so that what one call spoils would show in the next.
    options: dict[str, Any] = {"sampler": "marginal", "n_repeats": 40, "random_state": 0}
    for more in ({}, {"memory": 1e-9}, {"n_jobs": 2} if model is in_place and table is ARRAY else {"n_jobs": 1}):
        found = importance(Estimator(model) if as_estimator else model, given, Y, **options, **more).overall
        pd.testing.assert_frame_equal(found, importance(careful, table.copy(), Y, **options).overall)
    pd.testing.assert_frame_equal(pd.DataFrame(given), pd.DataFrame(table), check_exact=True)


@pytest.mark.parametrize("as_frame", [False, True])
def test_model_that_fills_missing_values_in_place_corrupts_nothing(as_frame: bool) -> None:
    array = ARRAY.copy()
    array[::7, 0] = np.nan
    table: Any = pd.DataFrame(array, columns=["x0", "x1", "x2", "x3"]) if as_frame else array
    before = table.copy()
    options: dict[str, Any] = {"sampler": "marginal", "n_repeats": 40, "random_state": 0, "memory": 1e-9}
    found = importance(filled, table, Y, **options).overall
    pd.testing.assert_frame_equal(found, importance(careful, before, Y, **options).overall)
    assert np.array_equal(np.asarray(table), np.asarray(before), equal_nan=True)


def test_model_that_adds_a_column_to_a_polars_frame_corrupts_nothing() -> None:
    table = pl.from_pandas(FRAME)

    def model(X: pl.DataFrame) -> Any:
        X.insert_column(0, pl.Series("new", np.zeros(len(X))))
        return X["a"].to_numpy() * 2 + X["b"].to_numpy()

    found = importance(model, table, Y, sampler="marginal", n_repeats=3, random_state=0).overall
    assert table.columns == ["a", "b", "c", "row"]
    expected = importance(careful, FRAME, Y, sampler="marginal", n_repeats=3, random_state=0).overall
    assert found["estimate"].to_list() == expected["estimate"].tolist()


def test_model_that_gives_a_part_of_its_table_as_prediction_corrupts_nothing() -> None:
    one = importance(lambda X: X[:, 0], ARRAY, Y, sampler="marginal", n_repeats=4, random_state=0).overall
    two = importance(lambda X: X[:, 0].copy(), ARRAY, Y, sampler="marginal", n_repeats=4, random_state=0).overall
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_loco_leaves_the_table_of_a_model_that_writes_to_it() -> None:
    given = ARRAY.copy()

    class Careless:
        def fit(self, X: Any, y: Any) -> Any:
            return self

        def predict(self, X: Any) -> Any:
            X[:, 0] *= 2
            return X[:, 0]

    result = sg.loco(Careless(), given, Y, train=(ARRAY.copy(), Y), features=["x1"])
    assert np.array_equal(given, ARRAY)
    assert result.overall["estimate"][0] == 0
