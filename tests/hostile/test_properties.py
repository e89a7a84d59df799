"""Generated frames, options and models: every function gives numbers, or an error that says what is wrong."""

from __future__ import annotations

import datetime
import decimal
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import subgrove as sg
from subgrove.exceptions import SubgroveError

from .outcome import bounded
from .test_frames import CLEAN, COLUMNS, N, Y

Call = Callable[..., Any]
ROWS = 24
X = CLEAN.assign(g=np.where(np.arange(N) % 3, "u", "v"))


def numbers_of(X: Any) -> Any:
    """A model that reads no column: odd ones may hold anything."""
    return np.arange(len(X), dtype=np.float64) % 7


def first_number(X: Any) -> Any:
    return np.asarray(X["a"], dtype=np.float64)


class Incomparable:
    """Raises an error when it is compared or used as a condition, as some objects of other packages do."""

    __hash__ = None  # type: ignore[assignment]  # it cannot be a key either

    def __bool__(self) -> bool:
        raise ValueError("neither true nor false")

    def __eq__(self, other: object) -> bool:
        raise ValueError("cannot be compared")


def fails_clearly_or_works(call: Call) -> Any:
    """Return what a call returns, or None after an error of subgrove; any other exception is a failure."""
    with bounded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except SubgroveError as error:
            message = str(error)
    assert len(message) > 20, "an error says what is wrong"
    return None


# ---- one odd column, in every function ----


def importance(X: Any, **options: Any) -> Any:
    given = {"train": X, "n_repeats": 2, "random_state": 1, "features": ["odd"], **options}
    return sg.importance(numbers_of, X, Y, **given)


def gap(X: Any) -> Any:
    return importance(X, sampler="subgroups").explain_gap(importance(X, train=None, sampler="marginal"), "odd").steps


VERBS: dict[str, Call] = {
    "find_subgroups": lambda X: sg.find_subgroups(X, features=["odd", "a"])["odd"].rules,
    "find_subgroups of a group": lambda X: sg.find_subgroups(X, features=[["odd", "a"]]),
    "dependence": lambda X: sg.dependence(X, n_trees=3, random_state=1).matrix,
    "find_groups": sg.find_groups,
    "fidelity": lambda X: sg.fidelity(X[:40], X[40:], samplers=["subgroups"], random_state=1).table,
    "fidelity of imputation": lambda X: sg.fidelity(X[:40], X[40:], samplers=["imputation"], random_state=1).table,
    "fidelity of knockoffs": lambda X: sg.fidelity(X[:40], X[40:], samplers=["knockoffs"], random_state=1).table,
    "auto": lambda X: importance(X).overall,
    "knockoffs": lambda X: importance(X, sampler="knockoffs").overall,
    "imputation": lambda X: importance(X, sampler="imputation").overall,
    "a group": lambda X: importance(X, features=[["odd", "a"]]).overall,
    "gap": gap,
    "independence test": lambda X: importance(X, sampler="marginal").independence_test(X),
    "calibrated": lambda X: importance(X, sampler="subgroups").calibrated(X).overall,
    "loco": lambda X: sg.loco(numbers_of, X, Y, train=(X, Y), refit=lambda X, y: numbers_of).overall,
    "pdp": lambda X: sg.effect(numbers_of, X, "odd", grid_resolution=3).curves,
    "ice with interactions": lambda X: sg.effect(numbers_of, X, "odd", kind="ice", interactions=True).curves,
    "ale": lambda X: sg.effect(numbers_of, X, "odd", kind="ale", grid_resolution=3).curves,
    "mplot": lambda X: sg.effect(numbers_of, X, "odd", kind="mplot", grid_resolution=3).curves,
    "surface": lambda X: sg.effect(numbers_of, X, ("odd", "a"), grid_resolution=3).curves,
    "surface of ale": lambda X: sg.effect(numbers_of, X, ("odd", "a"), kind="ale", grid_resolution=3).curves,
    "effects": lambda X: sg.Effects.compute(numbers_of, X, grid_resolution=3),
    "interaction strength": lambda X: sg.InteractionStrength.compute(numbers_of, X, n_points=10),
    "report": lambda X: sg.report(numbers_of, (X[:40], Y[:40]), (X[40:], Y[40:]), n_repeats=2, random_state=1),
}
QUICK = {"find_subgroups", "find_groups", "pdp", "ale", "mplot", "surface", "surface of ale", "interaction strength"}
ODDEST = ["all missing", "unsigned", "half a surrogate", "unique text", "mixed zones", "levels of two types", "largest"]
SLOWER = sorted(set(VERBS) - QUICK)


@pytest.mark.parametrize("verb", sorted(QUICK))
def test_an_odd_column_is_taken_or_rejected_clearly_by_every_function(verb: str) -> None:
    for values in COLUMNS.values():
        fails_clearly_or_works(lambda values=values: VERBS[verb](CLEAN.assign(odd=values)))


@pytest.mark.parametrize("name", ODDEST)
@pytest.mark.parametrize("verb", SLOWER)
def test_the_oddest_columns_are_taken_or_rejected_clearly_by_slower_functions(verb: str, name: str) -> None:
    fails_clearly_or_works(lambda: VERBS[verb](CLEAN.assign(odd=COLUMNS[name])))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(COLUMNS) - set(ODDEST)))
@pytest.mark.parametrize("verb", SLOWER)
def test_an_odd_column_is_taken_or_rejected_clearly_by_slower_functions(verb: str, name: str) -> None:
    fails_clearly_or_works(lambda: VERBS[verb](CLEAN.assign(odd=COLUMNS[name])))


def test_integers_beyond_those_of_the_column_become_floats() -> None:
    """Knockoffs of 2^64 - 1 and small numbers: `Cannot losslessly cast from float64 to uint64`."""
    table = CLEAN.assign(odd=COLUMNS["unsigned"])
    found = fails_clearly_or_works(lambda: VERBS["fidelity of knockoffs"](table))
    assert found is not None


def test_text_that_is_not_unicode_is_handed_to_the_model_as_it_is() -> None:
    """`InteractionStrength` raised a UnicodeEncodeError of another package."""
    table, seen = CLEAN.assign(odd=COLUMNS["half a surrogate"]), []

    def model(X: Any) -> Any:
        seen.append(X["odd"].dtype)
        return numbers_of(X)

    sg.InteractionStrength.compute(model, table, n_points=10)
    assert set(seen) == {table["odd"].dtype}


# ---- every parameter of every function, with values that it cannot mean ----

VALUES: list[Any] = [
    *(None, True, 0, -1, 2, 1.5, float("nan"), float("inf"), 2**64, 10**400, "", "x", "a", b"a", "\ud800", 1j, ...),
    *([], (), {}, set(), ["a", "a"], [["a", "g"]], {"p": ["a"]}, {"a": 1}, [None], [[]], [1], ("a", "g"), range(3)),
    *(np.int64(2), np.float32(0.5), np.array(3), np.array("a"), np.array([1, 2]), np.ones(N), -np.ones(N), np.zeros(N)),
    *(np.ones(N - 1), np.full(N, np.nan), ["x"] * N, pd.Series(["u", "v"] * (N // 2)), X, pd.NA, pd.NaT),
    *(len, object(), int, Incomparable(), datetime.date(2020, 1, 1), decimal.Decimal(1), slice(3)),
    *(np.random.default_rng(1), np.random.RandomState(1), np.datetime64("2020")),
]
DATA = {"model", "X", "y", "train", "test", "self"}
USERS = {"loss"}  # a function of the user may raise its own error
WORK = {"n_repeats", "n_trees"}  # a large number is much work, not an error


def of_importance(**options: Any) -> Any:
    return sg.importance(
        first_number, X, Y, **{"sampler": "marginal", "n_repeats": 2, "check_fidelity": False, **options}
    )


FUNCTIONS: dict[str, tuple[Call, Call]] = {
    "importance": (of_importance, sg.importance),
    "effect": (
        lambda **o: sg.effect(first_number, X, **{"feature": "a", "grid_resolution": 3, "subgroups": None, **o}),
        sg.effect,
    ),
    "find_subgroups": (lambda **o: sg.find_subgroups(X, **{"max_depth": 1, **o}), sg.find_subgroups),
    "dependence": (lambda **o: sg.dependence(X, **{"n_trees": 2, **o}), sg.dependence),
    "fidelity": (lambda **o: sg.fidelity(X[:40], X[40:], **{"samplers": ["marginal"], **o}), sg.fidelity),
    "find_groups": (lambda **o: sg.find_groups(X, **o), sg.find_groups),
    "loco": (
        lambda **o: sg.loco(first_number, X, Y, **{"train": (X, Y), "refit": lambda X, y: numbers_of, **o}),
        sg.loco,
    ),
    "Effects": (
        lambda **o: sg.Effects.compute(first_number, X, **{"grid_resolution": 3, "subgroups": None, **o}),
        sg.Effects.compute,
    ),
    "InteractionStrength": (
        lambda **o: sg.InteractionStrength.compute(first_number, X, **{"n_points": 10, **o}),
        sg.InteractionStrength.compute,
    ),
}
PARAMETERS = [
    (name, parameter)
    for name, (_, function) in FUNCTIONS.items()
    for parameter in inspect.signature(function).parameters
    if parameter not in DATA
]


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_a_value_that_a_parameter_cannot_mean_is_rejected_clearly(name: str, parameter: str) -> None:
    call = FUNCTIONS[name][0]
    for value in VALUES:
        if parameter in USERS and callable(value):
            continue
        if parameter in WORK and isinstance(value, int) and not isinstance(value, bool) and 10**3 < value < 2**63:
            continue
        fails_clearly_or_works(lambda value=value: call(**{parameter: value}))


def test_parameters_of_nine_functions_are_tried() -> None:
    assert len(PARAMETERS) > 60
    assert {name for name, _ in PARAMETERS} == set(FUNCTIONS)


@pytest.mark.parametrize("value", [2**64, 10**400])
@pytest.mark.parametrize("parameter", ["n_trees", "n_repeats", "max_rows"])
def test_a_number_beyond_the_machine_is_named(parameter: str, value: int) -> None:
    with pytest.raises(SubgroveError, match=rf"{parameter} must be a whole number <= "):
        FUNCTIONS["dependence"][0](**{parameter: value})


@pytest.mark.parametrize("n_jobs", [2**31, -(2**31), 10_001])
def test_more_jobs_than_any_machine_has_are_rejected(n_jobs: int) -> None:
    with pytest.raises(SubgroveError, match="n_jobs must be at most 10,000"):
        of_importance(n_jobs=n_jobs)


# ---- methods of results ----

RESULT = of_importance(random_state=1)
METHODS: dict[str, Call] = {
    "for_loss": lambda value: RESULT.for_loss(value),
    "over_repeats": lambda value: RESULT.over_repeats(quantiles=value),
    "over_repeats by_subgroup": lambda value: RESULT.over_repeats(by_subgroup=value),
    "independence_test": lambda value: RESULT.independence_test(value),
    "independence_test by_subgroup": lambda value: RESULT.independence_test(X, by_subgroup=value),
    "explain_gap": lambda value: RESULT.explain_gap(RESULT, value),
    "explain_gap of": lambda value: RESULT.explain_gap(value, "a"),
    "calibrated": lambda value: RESULT.calibrated(value),
    "relative": lambda value: RESULT.relative(value),
    "effect predict": lambda value: sg.effect(first_number, X, "a", subgroups=None, grid_resolution=3).predict(value),
    "partition": lambda value: sg.Partition.from_dict(value),
    "subgroups": lambda value: sg.Subgroups.from_dict(value),
    "frequencies": lambda value: of_importance(sample_weight=sg.FrequencyWeights(value)),
    "repeats": lambda value: of_importance(n_repeats=sg.AdaptiveRepeats(value)),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_value_that_a_method_cannot_mean_is_rejected_clearly(method: str) -> None:
    for value in VALUES:
        fails_clearly_or_works(lambda value=value: METHODS[method](value))


# ---- generated frames ----

FLOATS = st.floats(width=64, allow_nan=True, allow_infinity=False)
CELLS: list[st.SearchStrategy[Any]] = [
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2),
    FLOATS,
    st.floats(-1, 1, width=16),
    st.booleans(),
    st.sampled_from(["u", "v", "", None]),
    st.text(max_size=3),
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),
    st.timedeltas(datetime.timedelta(-9999), datetime.timedelta(9999)),
    st.one_of(st.none(), st.integers(-5, 5)),
    st.one_of(st.text(max_size=1), st.integers(0, 3), FLOATS),
    st.decimals(allow_nan=True, allow_infinity=False, places=2, min_value=-99, max_value=99),
]


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Draw a table of two to four columns of any kinds; column a is numeric, so that a model can read it."""
    kinds = draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3))
    columns = {f"c{at}": draw(st.lists(kind, min_size=ROWS, max_size=ROWS)) for at, kind in enumerate(kinds)}
    return pd.DataFrame({"a": np.arange(ROWS) % 5, **columns})


@given(table=tables(), sampler=st.sampled_from(["marginal", "subgroups", "imputation", "knockoffs"]))
@settings(max_examples=40)
def test_importance_of_a_generated_table_is_finite(table: pd.DataFrame, sampler: str) -> None:
    y = np.arange(ROWS) % 4
    options: dict[str, Any] = {"train": table, "sampler": sampler, "n_repeats": 2, "random_state": 1}
    found = fails_clearly_or_works(lambda: sg.importance(first_number, table, y, **options).overall)
    if found is not None:
        assert np.isfinite(found["estimate"].to_numpy()).all()
        assert (found["estimate"].to_numpy()[1:] == 0).all()  # the model reads column a alone


@given(table=tables(), kind=st.sampled_from(["pdp", "ice", "ale", "mplot"]))
@settings(max_examples=40)
def test_effects_of_a_generated_table_are_finite_and_those_of_unused_columns_flat(
    table: pd.DataFrame, kind: Any
) -> None:
    for name in table.columns:
        found = fails_clearly_or_works(
            lambda name=name: sg.effect(first_number, table, name, kind=kind, subgroups=None, grid_resolution=3)
        )
        if found is None:
            continue
        curve = found.curves["estimate"].to_numpy()
        assert np.isfinite(curve).all()
        if name != "a" and kind != "mplot":
            np.testing.assert_allclose(curve, curve[0], atol=1e-9)


@given(table=tables())
@settings(max_examples=30)
def test_dependence_and_subgroups_of_a_generated_table_are_finite_or_explained(table: pd.DataFrame) -> None:
    found = fails_clearly_or_works(lambda: sg.dependence(table, n_trees=3, random_state=1).table)
    if found is not None:
        unknown = found["explained"].isna()
        assert (found["note"][unknown] != "").all()
        assert (found["explained"][~unknown] <= 1).all()
    groups = fails_clearly_or_works(lambda: sg.find_subgroups(table, min_samples_leaf=5))
    if groups is not None:
        for name in groups:
            assert sum(groups[name].sizes) == table[name].notna().sum()


@given(table=tables())
@settings(max_examples=25)
def test_pandas_and_polars_agree_on_a_generated_table(table: pd.DataFrame) -> None:
    try:
        other = pl.from_pandas(table)
    except Exception:  # pandas holds what polars does not
        return
    y = np.arange(ROWS) % 4
    options: dict[str, Any] = {"sampler": "marginal", "n_repeats": 2, "random_state": 1, "features": ["a"]}
    one, two = (
        fails_clearly_or_works(lambda rows=rows: sg.importance(first_number, rows, y, **options).overall)
        for rows in (table, other)
    )
    if one is not None and two is not None:
        assert one["estimate"].tolist() == two["estimate"].to_list()


# ---- generated predictions ----

PREDICTIONS: list[st.SearchStrategy[Any]] = [
    st.lists(FLOATS, min_size=ROWS, max_size=ROWS),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=ROWS, max_size=ROWS),
    st.lists(st.text(max_size=2), min_size=ROWS, max_size=ROWS),
    st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
    st.lists(st.one_of(st.none(), FLOATS), min_size=ROWS, max_size=ROWS),
    st.lists(st.tuples(FLOATS, FLOATS), min_size=ROWS, max_size=ROWS),
    st.lists(FLOATS, max_size=ROWS),
]


@given(predicted=st.one_of(PREDICTIONS), loss=st.sampled_from(["absolute_error", "squared_error", "zero_one"]))
@settings(max_examples=60)
def test_predictions_of_any_kind_give_finite_numbers_or_a_clear_error(predicted: list[Any], loss: str) -> None:
    table = pd.DataFrame({"a": np.arange(ROWS) % 5, "b": np.arange(ROWS) % 3})
    y = np.arange(ROWS) % 4

    def model(X: Any) -> Any:
        return (predicted * (len(X) // max(len(predicted), 1) + 1))[: len(X)] if len(predicted) == ROWS else predicted

    options: dict[str, Any] = {"sampler": "marginal", "n_repeats": 2, "random_state": 1, "loss": loss}
    found = fails_clearly_or_works(lambda: sg.importance(model, table, y, **options).overall)
    if found is not None:
        assert np.isfinite(found["estimate"].to_numpy()).all()
    curves = fails_clearly_or_works(lambda: sg.effect(model, table, "a", subgroups=None, grid_resolution=3).curves)
    if curves is not None:
        assert np.isfinite(curves["estimate"].to_numpy(dtype=float)).all()


# ---- generated weights ----


@given(weights=st.lists(st.floats(0, 1e300), min_size=ROWS, max_size=ROWS))
@settings(max_examples=40)
def test_weights_of_any_size_give_finite_numbers_or_a_clear_error(weights: list[float]) -> None:
    table = pd.DataFrame({"a": np.arange(ROWS) % 5, "b": np.arange(ROWS) % 3})
    options: dict[str, Any] = {"sampler": "marginal", "n_repeats": 2, "random_state": 1, "sample_weight": weights}
    found = fails_clearly_or_works(lambda: sg.importance(first_number, table, np.arange(ROWS) % 4, **options).overall)
    if found is not None:
        assert np.isfinite(found["estimate"].to_numpy()).all()
