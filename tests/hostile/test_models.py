"""Models that return predictions in another form give the same numbers; those that misbehave give a clear error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ModelError, SubgroveWarning

from .outcome import outcome
from .test_frames import CLEAN, N, Y, importance, model

pytestmark = pytest.mark.filterwarnings("ignore::subgrove.exceptions.SubgroveWarning")
VERBS: dict[str, Callable[[Any], Any]] = {
    "importance": lambda predict: importance(CLEAN, predict, features=["a"]),
    "marginal": lambda predict: importance(CLEAN, predict, features=["a", "b"], sampler="marginal"),
    "effect": lambda predict: sg.effect(predict, CLEAN, "a", subgroups=None, grid_resolution=4).curves,
    "ale": lambda predict: sg.effect(predict, CLEAN, "a", kind="ale", grid_resolution=4).curves,
}
SAME: dict[str, Callable[[Any], Any]] = {
    "list": lambda p: p.tolist(),
    "tuple": lambda p: tuple(p),
    "column": lambda p: p[:, None],
    "series": pd.Series,
    "shuffled series": lambda p: pd.Series(p, index=np.arange(len(p))[::-1]),
    "frame": lambda p: pd.DataFrame({"prediction": p}),
    "objects": lambda p: p.astype(object),
    "big endian": lambda p: p.astype(">f8"),
    "strided": lambda p: np.repeat(p, 2)[::2],
    "read only": lambda p: np.frombuffer(p.tobytes()),
    "whole numbers": lambda p: p.astype(np.int64),
    "matrix": lambda p: np.asmatrix(p).T,
}
WRONG: dict[str, Callable[[Any], Any]] = {
    "too short": lambda p: p[:-1],
    "too long": lambda p: np.r_[p, 0],
    "none": lambda p: None,
    "one number": lambda p: 1.0,
    "text": lambda p: "prediction",
    "texts": lambda p: np.array(["x"] * len(p)),
    "missing": lambda p: np.r_[np.nan, p[1:]],
    "infinite": lambda p: np.r_[np.inf, p[1:]],
    "largest": lambda p: np.r_[1e308, p[1:]],
    "complex": lambda p: p * 1j,
    "3-d": lambda p: p[:, None, None],
    "dict": lambda p: {"prediction": p},
    "ragged": lambda p: [[1], [1, 2], *([[1]] * (len(p) - 2))],
    "objects": lambda p: np.array([object()] * len(p)),
    "masked": lambda p: np.ma.masked_array(p, mask=np.arange(len(p)) == 0),
    "generator": lambda p: (one for one in p),
    "empty": lambda p: [],
    "transposed": lambda p: p[None, :],
    "function": lambda p: len,
    "missing objects": lambda p: [None, *p[1:]],
}
RAISED = [
    KeyError("a"),
    ZeroDivisionError(),
    RecursionError(),
    StopIteration(),
    OSError(28, "full"),
    AssertionError(),
    BufferError("x"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    Warning("w"),
    ExceptionGroup("several", [ValueError()]),
]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("form", SAME)
def test_predictions_in_another_form_give_the_same_numbers(form: str, verb: str) -> None:
    expected = VERBS[verb](model)["estimate"]
    table = outcome(lambda: VERBS[verb](lambda X: SAME[form](model(X))))
    if table is not None:
        np.testing.assert_allclose(table["estimate"], expected, rtol=1e-12)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("form", WRONG)
def test_wrong_predictions_give_a_clear_error_and_no_number(form: str, verb: str) -> None:
    table = outcome(lambda: VERBS[verb](lambda X: WRONG[form](model(X))))
    assert table is None or form in ("one number", "largest", "generator")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_an_error_of_the_model_is_named(error: Exception, verb: str) -> None:
    def broken(X: Any) -> Any:
        raise error

    assert outcome(lambda: VERBS[verb](broken)) is None


@pytest.mark.parametrize("verb", VERBS)
def test_a_model_that_writes_to_its_table_changes_nothing_of_the_user(verb: str) -> None:
    def writing(X: Any) -> Any:
        predictions = model(X)
        X.iloc[:, :] = 0
        return predictions

    before = CLEAN.copy()
    table = outcome(lambda: VERBS[verb](writing))
    np.testing.assert_allclose(table["estimate"], VERBS[verb](model)["estimate"], rtol=1e-12)
    pd.testing.assert_frame_equal(CLEAN, before)


TARGETS: dict[str, Any] = {
    "missing": np.r_[np.nan, Y[1:]],
    "infinite": np.r_[np.inf, Y[1:]],
    "too short": Y[1:],
    "text": ["x"] * len(Y),
    "objects": [object()] * len(Y),
    "none": None,
    "name": "y",
    "complex": Y * 1j,
    "two columns": np.column_stack([Y, Y]),
    "times": pd.date_range("2020", periods=len(Y)),
    "masked": np.ma.masked_array(Y, mask=Y > 0),
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_wrong_target_gives_a_clear_error_and_no_number(target: str) -> None:
    table = outcome(
        lambda: sg.importance(model, CLEAN, TARGETS[target], sampler="marginal", n_repeats=2, random_state=1).overall
    )
    assert table is None


def random_values(X: Any) -> Any:
    return model(X) + RANDOM.normal(size=len(X))


def standardized(X: Any) -> Any:
    values = model(X)
    return (values - values.mean()) / values.std()


RANDOM = np.random.default_rng(9)
NOT_REPEATABLE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "random": (random_values, "at each call"),
    "random labels": (lambda X: RANDOM.choice(["yes", "no"], len(X)), "at each call"),
    "depends on other rows": (standardized, "depending on the other rows of a call"),
    "random classes": (lambda X: RANDOM.dirichlet([1, 1], len(X)), "at each call"),
}


@pytest.mark.parametrize("name", NOT_REPEATABLE)
def test_a_model_that_predicts_other_values_for_the_same_rows_is_warned_of(name: str) -> None:
    predict, when = NOT_REPEATABLE[name]
    y: Any = np.where(Y > 0, "yes", "no") if name.startswith("random ") else Y
    loss = {"random labels": "zero_one", "random classes": "log_loss"}.get(name, "squared_error")
    options: dict[str, Any] = {"sampler": "marginal", "n_repeats": 2, "random_state": 1, "check_fidelity": False}
    with pytest.warns(SubgroveWarning, match=f"for the same rows, {when}"):
        sg.importance(predict, CLEAN, y, loss=loss, **options)


@pytest.mark.parametrize("kind", ["pdp", "ice", "ale", "mplot"])
@pytest.mark.parametrize("name", ["random", "random classes", "depends on other rows"])
def test_an_effect_warns_of_a_model_that_predicts_other_values_for_the_same_rows(name: str, kind: Any) -> None:
    predict, when = NOT_REPEATABLE[name]
    with pytest.warns(SubgroveWarning, match=f"for the same rows, {when}.*The effect includes these changes"):
        found = sg.effect(predict, CLEAN, CLEAN.columns[0], kind=kind, subgroups=None, grid_resolution=4)
    assert found.settings["n_rows_again"] == 10


def test_effects_of_several_features_warn_once_of_a_random_model() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sg.Effects.compute(random_values, CLEAN, features=list(CLEAN.columns[:3]), subgroups=None)
    assert len([one for one in caught if "same rows" in str(one.message)]) == 1


@pytest.mark.parametrize("name", ["random", "depends on other rows"])
def test_the_effect_of_large_data_warns_of_such_a_model(name: str, tmp_path: Path) -> None:
    predict, when = NOT_REPEATABLE[name]
    CLEAN.to_parquet(tmp_path / "rows.parquet")
    with pytest.warns(SubgroveWarning, match=f"for the same rows, {when}"):
        found = sg.effect(predict, tmp_path / "rows.parquet", CLEAN.columns[0], subgroups=None, grid_resolution=4)
    assert found.settings["n_rows_again"] == 30  # 20 sampled rows, half of them twice


def test_leaving_columns_out_warns_of_a_random_model() -> None:
    with pytest.warns(SubgroveWarning, match="for the same rows, at each call"):
        found = sg.loco(random_values, CLEAN, Y, train=(CLEAN, Y), refit=lambda X, y: lambda rows: np.zeros(len(rows)))
    assert found.settings["n_rows_predicted"] == N * (1 + len(CLEAN.columns)) + 20  # once more, and again to see why


def test_a_report_of_a_random_model_is_an_error_that_says_so() -> None:
    half = N // 2
    train, test = (CLEAN[:half], Y[:half]), (CLEAN[half:], Y[half:])
    with pytest.raises(ModelError, match="The model predicts other values for the same rows at each call"):
        sg.report(random_values, train, test, n_repeats=2, random_state=1)


@pytest.mark.parametrize("kind", ["pdp", "ale", "mplot"])
def test_rounding_of_batches_is_not_reported_by_effects(kind: Any) -> None:
    """Predictions at one point of the feature hardly vary, so their rounding is compared with that of all points."""

    def rounded(X: Any) -> Any:
        return X[CLEAN.columns[0]].to_numpy() * (1 + 1e-7 * len(X) / N)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sg.effect(rounded, CLEAN, CLEAN.columns[0], kind=kind, subgroups=None)
    assert not [one for one in caught if "same rows" in str(one.message)]


def test_rounding_of_batches_is_not_reported() -> None:
    def rounded(X: Any) -> Any:
        return model(X) * (1 + 1e-7 * len(X) / N)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        importance(CLEAN, rounded, sampler="marginal")
    assert not [one for one in caught if "same rows" in str(one.message)]
