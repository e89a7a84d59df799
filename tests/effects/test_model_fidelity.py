"""model_fidelity: the mean squared difference of predictions and curves."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import subgrove as sg
from subgrove.exceptions import InputError, LengthError, ParameterError, UnseenValueWarning

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=200), "b": RNG.normal(size=200), "c": RNG.choice(["u", "v", "w"], 200)})
NEW = pd.DataFrame({"a": RNG.normal(size=80) * 2, "b": RNG.normal(size=80), "c": RNG.choice(["u", "v", "w"], 80)})

compute = sg.ModelFidelity.compute


def model(X: Any) -> np.ndarray[Any, Any]:
    c = np.asarray(X["c"])
    return np.asarray(2 * X["a"] + X["b"] + 3.0 * (c == "u") - 1.0 * (c == "v"))


class Counting:
    def __init__(self, function: Any) -> None:
        self.function, self.rows = function, 0

    def __call__(self, X: Any) -> Any:
        self.rows += len(X)
        return self.function(X)


def only(found: sg.ModelFidelity, **wanted: Any) -> float:
    table = found.table
    for name, value in wanted.items():
        table = table[table[name] == value]
    (estimate,) = table["estimate"]
    return float(estimate)


def test_estimate_is_the_mean_squared_difference_of_prediction_and_curve() -> None:
    effect = sg.effect(model, X, "a", subgroups=None)
    expected = np.mean((model(NEW) - effect.predict(NEW["a"])) ** 2)
    assert only(compute(model, NEW, effect)) == pytest.approx(expected, rel=1e-12)


def test_exact_curve_has_no_difference() -> None:
    grid = np.linspace(-9, 9, 50)
    found = compute(lambda X: 2 * X["a"], NEW, sg.effect(lambda X: 2 * X["a"], X, "a", grid=grid, subgroups=None))
    assert only(found) == pytest.approx(0, abs=1e-24)


def test_linear_model_has_the_variance_of_the_other_terms() -> None:
    # f = 2a + b with b ~ N(0, 1): the PDP of a is 2a + mean(b), so that (b - mean)^2 is left, here with the PDP's mean.
    effect = sg.effect(lambda X: 2 * X["a"] + X["b"], X, "a", grid=np.linspace(-9, 9, 9), subgroups=None)
    found = only(compute(lambda X: 2 * X["a"] + X["b"], NEW, effect))
    assert found == pytest.approx(np.mean((NEW["b"] - X["b"].mean()) ** 2), rel=1e-9)


def test_standard_error_is_that_of_a_mean_over_rows() -> None:
    effect = sg.effect(model, X, "a", subgroups=None)
    squares = (model(NEW) - effect.predict(NEW["a"])) ** 2
    (error,) = compute(model, NEW, effect).table["std_error"]
    assert error == pytest.approx(squares.std(ddof=1) / np.sqrt(len(NEW)), rel=1e-12)


def test_rows_beyond_the_grid_use_the_end_value() -> None:
    effect = sg.effect(lambda X: X["a"], X, "a", grid=[-1.0, 1.0], subgroups=None)
    rows = pd.DataFrame({"a": [-5.0, 5.0], "b": [0.0, 0.0], "c": ["u", "u"]})
    # The curve is level at -1 and 1: both rows are 4 away.
    assert only(compute(lambda X: X["a"], rows, effect)) == pytest.approx(16)


def test_levels_have_their_own_value() -> None:
    effect = sg.effect(model, X, "c", subgroups=None)
    expected = np.mean((model(NEW) - effect.predict(NEW["c"])) ** 2)
    assert only(compute(model, NEW, effect)) == pytest.approx(expected, rel=1e-12)
    assert expected < np.var(model(NEW))


def test_rows_use_the_curve_of_their_subgroup() -> None:
    z = RNG.normal(size=400)
    table = pd.DataFrame({"a": z + 0.3 * RNG.normal(size=400), "b": z})
    groups = sg.find_subgroups(table[:200], features="a", max_depth=1)

    def step(X: Any) -> Any:
        return X["a"] + 10 * (X["b"] > 0)

    effect = sg.effect(step, table[200:], "a", subgroups=groups)
    by_hand = np.empty(200)
    code = groups["a"].assign(table[200:])
    for k in (0, 1):
        curve = effect.curves[effect.curves["subgroup"] == k]
        rows = code == k
        by_hand[rows] = np.interp(table["a"][200:][rows], curve["x"], curve["estimate"])
    found = compute(step, table[200:], effect)
    assert only(found) == pytest.approx(np.mean((step(table[200:]) - by_hand) ** 2), rel=1e-9)
    assert found.table["subgroups"].tolist() == [2]


def test_mean_prediction_is_added_to_ale() -> None:
    effect = sg.effect(model, X, "a", kind="ale")
    predicted = model(NEW)
    expected = np.mean((predicted - effect.predict(NEW["a"]) - predicted.mean()) ** 2)
    assert only(compute(model, NEW, effect)) == pytest.approx(expected, rel=1e-12)


def test_mean_prediction_of_the_subgroup_is_added_to_ale() -> None:
    z = np.repeat([0.0, 5.0], 150)
    table = pd.DataFrame({"a": z + RNG.normal(size=300), "b": z + 0.01 * RNG.normal(size=300)})
    groups = sg.find_subgroups(table, features="a", max_depth=1)
    assert len(groups["a"]) == 2

    def shifted(X: Any) -> Any:
        return X["a"] + 100 * (X["b"] > 2.5)

    effect = sg.effect(shifted, table, "a", kind="ale", subgroups=groups["a"])
    assert only(compute(shifted, table, effect)) < 0.05  # 2500 with the same mean added to both


@pytest.mark.parametrize("several", [1, 5])
def test_each_row_is_predicted_once_for_any_number_of_curves(several: int) -> None:
    effects = [sg.effect(model, X, "a", grid_resolution=3 + k, subgroups=None) for k in range(several)]
    counting = Counting(model)
    found = compute(counting, NEW, effects, y=model(NEW))
    assert (counting.rows, found.n_rows_predicted, found.n_calls) == (len(NEW), len(NEW), 1)
    found.table, found.overall, repr(found)
    assert counting.rows == len(NEW)


def test_target_replaces_the_prediction() -> None:
    effect = sg.effect(model, X, "a", subgroups=None)
    y = model(NEW) + RNG.normal(size=len(NEW))
    found = compute(model, NEW, effect, y=y)
    assert found.table["against"].tolist() == ["prediction", "target"]
    assert only(found, against="target") == pytest.approx(np.mean((y - effect.predict(NEW["a"])) ** 2), rel=1e-12)


def test_a_class_is_compared_with_its_indicator() -> None:
    y = np.where(X["a"] > 0, "yes", "no")
    fitted = LogisticRegression().fit(X[["a", "b"]], y)
    effect = sg.effect(fitted, X[["a", "b"]], "a", subgroups=None)
    found = compute(fitted, X[["a", "b"]], effect, y=y)
    expected = np.mean(((y == "yes") - effect.predict(X["a"])) ** 2)
    assert only(found, against="target") == pytest.approx(expected, rel=1e-12)


def test_the_output_of_each_effect_is_found_among_those_of_the_model() -> None:
    y = np.where(X["a"] > 0, "yes", "no")
    fitted = LogisticRegression().fit(X[["a", "b"]], y)
    no, yes = (sg.effect(fitted, X[["a", "b"]], "a", output=label, subgroups=None) for label in ("no", "yes"))
    found = compute(fitted, X[["a", "b"]], [no, yes], y=y)
    assert found.table["output"].tolist() == ["no", "yes"] * 2
    one, two = found.table["estimate"][:2]
    assert one == pytest.approx(two, rel=1e-9)  # probabilities sum to 1


def test_each_of_several_classes_has_a_row() -> None:
    fitted = RandomForestClassifier(10, random_state=0).fit(X[["a", "b"]], X["c"])
    found = compute(fitted, X[["a", "b"]], sg.effect(fitted, X[["a", "b"]], "a", subgroups=None), y=X["c"])
    assert found.table["output"].tolist() == ["u", "v", "w"] * 2


def test_several_numeric_outputs_are_compared_column_by_column() -> None:
    Y = np.column_stack([X["a"], X["b"]])
    fitted = LinearRegression().fit(X[["a", "b"]], Y)
    found = compute(fitted, X[["a", "b"]], sg.effect(fitted, X[["a", "b"]], "a", subgroups=None), y=Y)
    target = found.table[found.table["against"] == "target"]["estimate"].tolist()
    assert target[0] == pytest.approx(0, abs=1e-20)
    assert target[1] == pytest.approx(np.var(X["b"]), rel=0.01)


def test_rows_off_the_curve_get_the_mean_prediction_and_are_counted() -> None:
    rows = NEW.copy()
    rows.loc[:9, "a"] = np.nan

    def without(X: Any) -> Any:
        return np.nan_to_num(X["a"]) + X["b"]

    effect = sg.effect(without, X, "a", subgroups=None)
    predicted = without(rows)
    curve = np.where(rows["a"].isna(), predicted.mean(), effect.predict(rows["a"]))
    found = compute(without, rows, effect)
    assert only(found) == pytest.approx(np.mean((predicted - curve) ** 2), rel=1e-12)
    assert found.table["off_curve"].tolist() == [10]


def test_a_subgroup_without_a_curve_gets_the_mean_prediction() -> None:
    z = np.repeat([0.0, 5.0], 100)
    table = pd.DataFrame({"a": z + RNG.normal(size=200), "b": z})
    groups = sg.find_subgroups(table, features="a", max_depth=1)
    part = table[groups["a"].assign(table) == 0]
    effect = sg.effect(lambda X: X["a"], part, "a", subgroups=groups["a"])
    found = compute(lambda X: X["a"], table, effect)
    other = table["a"][groups["a"].assign(table) == 1]
    # Rows of the other subgroup are as far from the curve as from the mean of all.
    expected = ((other - table["a"].mean()) ** 2).sum() / len(table)
    assert found.table["off_curve"].tolist() == [len(other)]
    assert only(found) == pytest.approx(expected, rel=0.01)


def test_a_level_that_no_curve_has_is_off_the_curve() -> None:
    rows = NEW.assign(c=["x"] * 5 + list(NEW["c"][5:]))
    with pytest.warns(UnseenValueWarning, match="'x'"):
        found = compute(model, rows, sg.effect(model, X, "c", subgroups=None))
    assert found.table["off_curve"].tolist() == [5]


def test_integer_weights_equal_duplicated_rows() -> None:
    weights = RNG.integers(0, 4, len(NEW))
    repeated = NEW.loc[NEW.index.repeat(weights)].reset_index(drop=True)
    for kind in ("pdp", "ale"):
        effect = sg.effect(model, X, "a", kind=kind, subgroups=None)
        weighted = compute(model, NEW, effect, sample_weight=sg.FrequencyWeights(weights), y=model(NEW)).table
        pd.testing.assert_frame_equal(weighted, compute(model, repeated, effect, y=model(repeated)).table)


def test_methods_are_named_by_kind_and_tree_or_by_the_user() -> None:
    groups = sg.find_subgroups(X, features="a", max_depth=1)
    pdp, ale = sg.effect(model, X, "a", subgroups=None), sg.effect(model, X, "a", kind="ale")
    within = sg.effect(model, X, "a", subgroups=groups["a"])
    named = compute(model, NEW, [pdp, ale, within]).table["method"].tolist()
    assert named == ["pdp", "ale", "pdp, transformation tree of depth 1"]
    assert compute(model, NEW, {"mine": [pdp, ale]}).table["method"].tolist() == ["mine", "mine"]


def test_overall_is_mean_and_median_over_features() -> None:
    effects = {"PDP": [sg.effect(model, X, name, subgroups=None) for name in "abc"]}
    found = compute(model, NEW, effects)
    losses = found.table["estimate"]
    (line,) = found.overall.to_dict("records")
    assert line == {
        "method": "PDP",
        "against": "prediction",
        "curves": 3,
        "estimate": pytest.approx(losses.mean()),
        "median": pytest.approx(losses.median()),
    }


def test_a_surface_of_two_features_is_closer_than_either_curve() -> None:
    one, two = sg.effect(model, X, "a", subgroups=None), sg.effect(model, X, ["a", "b"], subgroups=None)
    table = compute(model, NEW, [one, two]).table
    assert table["feature"].tolist() == ["a", "a + b"]
    assert table["estimate"][1] < table["estimate"][0]


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_tables_are_of_the_library_of_x(make: Any) -> None:
    def simple(X: Any) -> Any:
        return 2 * np.asarray(X["a"]) + np.asarray(X["b"])

    rows = make(NEW)
    effect = sg.effect(simple, make(X), "a", subgroups=None)
    found = compute(simple, rows, effect)
    assert type(found.table) is type(rows)
    estimate = float(np.asarray(found.table["estimate"])[0])
    assert estimate == pytest.approx(only(compute(simple, NEW, sg.effect(simple, X, "a", subgroups=None))), rel=1e-12)


def test_an_array_of_one_column_is_a_table() -> None:
    def line(X: Any) -> Any:
        return 2 * X[:, 0]

    values = np.linspace(0, 1, 20)[:, None]
    assert only(compute(line, values, sg.effect(line, values, "x0", subgroups=None))) == pytest.approx(0, abs=1e-24)


def test_one_row_has_no_standard_error() -> None:
    (error,) = compute(model, NEW[:1], sg.effect(model, X, "a", subgroups=None)).table["std_error"]
    assert np.isnan(error)


def test_constant_feature_has_the_variance_of_predictions() -> None:
    rows = X.assign(a=1.0)
    found = only(compute(model, rows, sg.effect(model, rows, "a", subgroups=None)))
    assert found == pytest.approx(np.var(model(rows)), rel=1e-9)


def test_a_result_is_frozen_and_can_be_pickled() -> None:
    found = compute(model, NEW, sg.effect(model, X, "a", subgroups=None))
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(AttributeError):
        found.losses = ()  # type: ignore[misc]


def test_user_table_is_not_modified() -> None:
    def rude(X: Any) -> Any:
        X["a"] = 0.0
        return np.asarray(X["b"])

    before = NEW.copy()
    compute(rude, NEW, sg.effect(lambda X: X["b"], X, "a", subgroups=None))
    pd.testing.assert_frame_equal(NEW, before)


EFFECT = sg.effect(model, X, "a", subgroups=None)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"effects": "a"}, ParameterError, "effects must be a result of effect"),
        ({"effects": []}, ParameterError, "effects is empty"),
        ({"effects": {}}, ParameterError, "effects is empty"),
        ({"effects": ["a"]}, ParameterError, "got str"),
        ({"effects": {"PDP": "a"}}, ParameterError, "got str"),
        ({"effects": sg.effect(model, X, "a", kind="ice", subgroups=None).centred()}, ParameterError, "is centred"),
        ({"X": NEW[:0]}, InputError, "no rows"),
        ({"X": NEW.drop(columns="a")}, InputError, "X lacks 'a'"),
        ({"y": [1.0]}, LengthError, "y has 1 values"),
        ({"y": ["u"] * 80}, InputError, "needs numbers"),
        ({"y": np.ones((80, 2))}, InputError, "2 columns"),
        ({"sample_weight": np.zeros(80)}, InputError, "is 0 for every row"),
        ({"response_method": "guess"}, ParameterError, "response_method must be"),
        ({"model": 7}, ParameterError, "model must have predict"),
    ],
)
def test_invalid_input_raises(change: dict[str, Any], error: type[Exception], says: str) -> None:
    given: dict[str, Any] = {"model": lambda X: X["b"], "X": NEW, "effects": EFFECT} | change
    with pytest.raises(error, match=says):
        compute(given.pop("model"), given.pop("X"), given.pop("effects"), **given)


def test_effect_of_another_model_raises() -> None:
    fitted = RandomForestClassifier(5, random_state=0).fit(X[["a", "b"]], X["c"])
    effect = sg.effect(fitted, X[["a", "b"]], "a", subgroups=None)
    with pytest.raises(ParameterError, match="is that of output 'u', but the model has the outputs"):
        compute(lambda X: X["b"], X[["a", "b"]], effect)


def test_y_on_another_scale_raises() -> None:
    y = X["a"] > 0
    fitted = LogisticRegression().fit(X[["a", "b"]], y)
    effect = sg.effect(fitted, X[["a", "b"]], "a", response_method="decision_function", subgroups=None)
    with pytest.raises(ParameterError, match="y cannot be compared with decision_function"):
        compute(fitted, X[["a", "b"]], effect, y=y, response_method="decision_function")


def test_predictions_that_are_not_numbers_raise() -> None:
    with pytest.raises(ParameterError, match="cannot be compared with a curve"):
        compute(lambda X: np.asarray(X["c"]), NEW, EFFECT)


def test_y_with_another_index_raises() -> None:
    with pytest.raises(InputError, match="another order"):
        compute(model, NEW, EFFECT, y=pd.Series(model(NEW), index=NEW.index)[::-1])


def test_ice_curves_starting_at_zero_are_not_centred() -> None:
    rows = pd.DataFrame({"a": np.arange(30.0), "b": 1.0})

    def start_at_zero(X: pd.DataFrame) -> Any:
        return X["a"]

    found = compute(start_at_zero, rows, sg.effect(start_at_zero, rows, "a", kind="ice", subgroups=None))
    assert found.table["estimate"].iloc[0] == pytest.approx(0, abs=1e-12)
