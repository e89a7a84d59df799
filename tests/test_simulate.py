"""Scenarios whose conditional importance is known."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import subgrove as sg
from subgrove.exceptions import InputError, ParameterError, SubgroveError
from subgrove.simulate import PAPER, Scenario, scenario, scenarios

NAMES = ("independent", "linear", "nonlinear", "multilinear", "interaction", "mixed")
NUMERIC = NAMES[:5]


def draws(name: str, n: int, seed: int) -> pd.DataFrame:
    return scenario(name).sample(n, random_state=seed).X


def test_the_scenarios_are_those_of_the_paper_and_two_more() -> None:
    assert scenarios() == NAMES
    assert NAMES[:4] == PAPER


@pytest.mark.parametrize(
    ("name", "x1", "y"),
    [
        ("independent", -0.30829969692298687, -5.287193580995594),
        ("linear", -1.3088999978234492, -6.009261513526252),
        ("nonlinear", 3.889624240411444, 9.588827180243173),
        ("multilinear", 0.366696035314221, 3.2001140224148554),
    ],
)
def test_rows_of_a_seed_are_those_that_stored_results_are_of(name: str, x1: float, y: float) -> None:
    data = scenario(name).sample(50, random_state=3)
    assert data.X["x1"].iloc[-1] == pytest.approx(x1, rel=1e-12)
    assert data.y.iloc[-1] == pytest.approx(y, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", [10, 90])
def test_samples_have_p_named_columns_and_a_target(name: str, p: int) -> None:
    data = scenario(name, p=p).sample(7, random_state=0)
    assert data.X.columns.tolist() == [f"x{number}" for number in range(1, p + 1)]
    assert len(data.y) == len(data.X) == 7
    assert data.y.name == "y"


@pytest.mark.parametrize("name", NAMES)
def test_the_target_is_the_model_plus_noise_of_standard_deviation_one(name: str) -> None:
    n = 20_000
    data = scenario(name).sample(n, random_state=1)
    noise = data.y.to_numpy() - scenario(name).model(data.X)
    # Standard errors of mean and variance of n normal draws: 1 / sqrt(n) and sqrt(2 / n); four of them.
    assert abs(noise.mean()) < 4 / np.sqrt(n)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / n)


def test_the_model_is_the_formula_of_the_paper() -> None:
    X = scenario("linear", p=12).sample(50, random_state=2).X
    x = X.to_numpy()
    expected = x[:, 0] * x[:, 1] + x[:, :10].sum(axis=1)
    np.testing.assert_allclose(scenario("linear", p=12).model(X), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "inside", "mean", "sd"),
    [
        ("independent", lambda X: X["x2"] > -9, 0, 1),
        ("nonlinear", lambda X: X["x2"] > 0, 3, 1),
        ("nonlinear", lambda X: (X["x2"] <= 0) & (X["x3"] > 0), -3, 2),
        ("nonlinear", lambda X: (X["x2"] <= 0) & (X["x3"] <= 0), 0, 5),
    ],
)
def test_x1_has_the_mean_and_spread_that_the_paper_gives(name: str, inside: Any, mean: float, sd: float) -> None:
    X = draws(name, 20_000, seed=3)
    own = X.loc[inside(X), "x1"]
    # Four standard errors: sd / sqrt(n) of a mean, sd / sqrt(2 n) of a standard deviation.
    assert abs(own.mean() - mean) < 4 * sd / np.sqrt(len(own))
    assert abs(own.std() - sd) < 4 * sd / np.sqrt(2 * len(own))


@pytest.mark.parametrize(("name", "others", "sd"), [("linear", ["x2"], 1), ("multilinear", range(2, 11), 5)])
def test_x1_is_a_sum_of_others_plus_noise(name: str, others: Any, sd: float) -> None:
    X = draws(name, 20_000, seed=4)
    rest = X["x1"] - X[[other if isinstance(other, str) else f"x{other}" for other in others]].sum(axis=1)
    assert abs(rest.std() - sd) < 4 * sd / np.sqrt(2 * len(X))
    # A correlation of independent columns has standard error 1 / sqrt(n).
    assert max(abs(rest.corr(X[f"x{other}"])) for other in range(2, 11)) < 4 / np.sqrt(len(X))


@pytest.mark.parametrize("name", NAMES)
def test_the_closed_form_is_what_simulation_gives(name: str) -> None:
    one = scenario(name)
    estimates = np.array([one.true_importance(n=5_000, random_state=seed) for seed in range(40)])
    # 40 independent estimates: four standard errors of their mean.
    assert abs(estimates.mean() - one.importance) < 4 * estimates.std(ddof=1) / np.sqrt(40)
    assert estimates.std(ddof=1) / np.sqrt(40) < 0.03 * one.importance


def test_the_closed_forms_are_the_numbers_that_the_paper_simulated() -> None:
    # Truths of setting I in the published summary, means of 1000 repetitions of 1000 rows: within 1 %.
    published = {"independent": 4.0064, "linear": 4.0064, "nonlinear": 9.4672, "multilinear": 100.099}
    for name, value in published.items():
        assert scenario(name).importance == pytest.approx(value, rel=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_redrawn_x1_has_the_joint_distribution_of_the_data(name: str) -> None:
    X = draws(name, 20_000, seed=5)
    (new,) = scenario(name).sampler.fit(X).sample(X, "x1", [np.random.default_rng(0)])
    spread = X["x1"].std()
    levels = pd.get_dummies(X, dtype=float)
    for other in [column for column in levels.columns.tolist() if column.startswith(("x2", "x3", "x10"))]:
        products = (X["x1"] - new) * levels[other]
        # The mean of the difference of two products with the same expectation, in its own standard errors.
        assert abs(products.mean()) < 4 * products.std() / np.sqrt(len(X))
    assert abs(np.std(new) - spread) < 0.03 * spread
    assert abs(np.corrcoef(new, X["x1"])[0, 1]) < 1 - 1e-3


def test_an_interaction_is_seen_in_neither_of_its_columns_alone() -> None:
    X = draws("interaction", 20_000, seed=8)
    noise = X["x1"] - 2 * X["x2"] * X["x3"]
    assert abs(noise.std() - 1) < 4 / np.sqrt(2 * len(X))
    for other in ("x2", "x3"):
        # x1 has variance 5, and its product with x2 at most 4 E[x2^4] + 1 = 13: four standard errors of a correlation.
        assert abs(X["x1"].corr(X[other])) < 4 * np.sqrt(13 / 5 / len(X))
    assert X["x1"].corr(X["x2"] * X["x3"]) == pytest.approx(2 / np.sqrt(5), abs=0.02)


@pytest.mark.parametrize(("level", "mean", "sd"), [("a", -2, 0.5), ("b", 1, 1), ("c", 0, 2)])
def test_in_the_mixed_scenario_mean_and_noise_go_with_a_label_and_a_number(level: str, mean: float, sd: float) -> None:
    X = draws("mixed", 30_000, seed=9)
    own = X[X["x2"] == level]
    noise = (own["x1"] - mean - own["x3"]) / np.exp(own["x3"] / 4)
    assert abs(noise.mean()) < 4 * sd / np.sqrt(len(own))
    assert abs(noise.std() - sd) < 4 * sd / np.sqrt(2 * len(own))
    # A third of the rows, within four standard errors.
    assert abs(len(own) / len(X) - 1 / 3) < 4 * np.sqrt(2 / 9 / len(X))


def test_the_mixed_table_has_labels_of_two_to_five_levels() -> None:
    X = scenario("mixed", p=12).sample(500, random_state=1).X
    counts = {name: X[name].nunique() for name in X if X[name].dtype == "category"}
    assert counts == {"x2": 3, "x4": 2, "x5": 5}


def test_levels_add_to_the_mixed_target_what_the_page_says() -> None:
    X = scenario("mixed").sample(40, random_state=2).X
    x2, x4, x5 = (
        X[name].astype(object).map(codes).astype(float)
        for name, codes in {
            "x2": {"a": -0.5, "b": 0.5, "c": 1.0},
            "x4": {"no": -0.5, "yes": 0.5},
            "x5": {"p": -1.0, "q": -0.5, "r": 0.0, "s": 0.5, "t": 1.0},
        }.items()
    )
    numbers = X[["x1", "x3", "x6", "x7", "x8", "x9", "x10"]].sum(axis=1)
    np.testing.assert_allclose(scenario("mixed").model(X), X["x1"] * x2 + numbers + x2 + x4 + x5, rtol=1e-12)


def test_the_mixed_scenario_takes_text_and_other_containers() -> None:
    one = scenario("mixed")
    X = one.sample(30, random_state=3).X
    tables: list[Any] = [X, X.astype(dict.fromkeys(("x2", "x4", "x5"), str)), pl.from_pandas(X), X[X["x2"] == "b"]]
    drawn = [next(one.sampler.fit(t).sample(t, "x1", [np.random.default_rng(3)])) for t in tables[:3]]
    for values in drawn[1:]:
        np.testing.assert_array_equal(values, drawn[0])
    predictions = [one.model(table) for table in tables]
    for values in predictions[1:3]:
        np.testing.assert_array_equal(values, predictions[0])
    np.testing.assert_array_equal(predictions[3], predictions[0][(X["x2"] == "b").to_numpy()])


def test_a_table_that_is_not_mixed_as_the_scenario_is_rejected() -> None:
    one = scenario("mixed")
    X = one.sample(5, random_state=0).X
    with pytest.raises(InputError, match="X must be a frame, since x2, x4, x5 hold labels; got an array"):
        one.model(X.to_numpy())
    with pytest.raises(InputError, match="X has numbers in 'x4'; the scenario has the labels 'no', 'yes' there"):
        one.model(X.assign(x4=1.0))
    with pytest.raises(InputError, match="X has 'z' in 'x2'; the scenario has the labels 'a', 'b', 'c' there"):
        one.model(X.assign(x2=["a", "b", "c", "z", "a"]))
    with pytest.raises(InputError, match="X has missing values in 'x2'"):
        one.model(X.assign(x2=pd.Series(["a", "b", "c", None, "a"], dtype=object)))


@pytest.mark.parametrize("container", ["pandas", "polars", "numpy"])
def test_the_true_sampler_gives_the_true_importance_in_every_container(container: str) -> None:
    one = scenario("linear")
    data = one.sample(4_000, random_state=6)
    X: Any = {"pandas": data.X, "polars": pl.from_pandas(data.X), "numpy": data.X.to_numpy()}[container]
    feature = "x0" if container == "numpy" else "x1"
    imp = sg.importance(one.model, X, data.y.to_numpy(), sampler=one.sampler, features=[feature], random_state=1)
    estimate, error = (float(np.asarray(imp.overall[name])[0]) for name in ("estimate", "std_error"))
    assert abs(estimate - one.importance) < 4 * error


def test_every_container_gives_the_same_redraw_and_the_same_prediction() -> None:
    one = scenario("nonlinear")
    X = one.sample(30, random_state=7).X
    tables: list[tuple[Any, str]] = [(X, "x1"), (pl.from_pandas(X[X.columns[::-1]]), "x1"), (X.to_numpy(), "x0")]
    drawn = [next(one.sampler.fit(t).sample(t, name, [np.random.default_rng(3)])) for t, name in tables]
    predictions = [one.model(table) for table, _ in tables]
    for values in drawn[1:]:
        np.testing.assert_array_equal(values, drawn[0])
    for values in predictions[1:]:
        np.testing.assert_allclose(values, predictions[0], rtol=1e-12)


def test_true_importance_evaluates_any_model_on_frames() -> None:
    class Model:
        def predict(self, X: pd.DataFrame) -> Any:
            assert list(X.columns[:2]) == ["x1", "x2"]
            return 2 * X["x2"]

    assert scenario("linear").true_importance(Model(), random_state=1) == 0.0


def test_the_same_seed_gives_the_same_rows_and_another_one_others() -> None:
    one = scenario("multilinear")
    pd.testing.assert_frame_equal(one.sample(5, random_state=0).X, one.sample(5, random_state=0).X)
    assert not one.sample(5, random_state=0).X.equals(one.sample(5, random_state=1).X)
    assert not one.sample(5).X.equals(one.sample(5).X)
    assert one.true_importance(random_state=3) == one.true_importance(random_state=3)


def test_a_scenario_is_frozen_and_picklable() -> None:
    one = scenario("linear", p=11)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one == Scenario("linear", 11)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.p = 3  # type: ignore[misc]  # that it cannot be set is the point
    assert repr(one.sampler) == "TrueConditional('linear')"
    assert pickle.loads(pickle.dumps(one.sampler)).name == "linear"


@pytest.mark.parametrize("name", ["quadratic", "", None, 3, ["linear"]])
def test_an_unknown_scenario_lists_the_valid_ones(name: Any) -> None:
    with pytest.raises(ParameterError, match="'independent', 'linear', 'nonlinear', 'multilinear', 'interaction', 'mi"):
        scenario(name)


@pytest.mark.parametrize("p", [9, 0, -1, 10.0, True, "10", None])
def test_too_few_features_are_rejected(p: Any) -> None:
    with pytest.raises(ParameterError, match="p must be a whole number >= 10"):
        scenario("linear", p=p)


@pytest.mark.parametrize("n", [0, -1, 2.5, True, None, "3"])
def test_a_number_of_rows_that_is_not_a_count_is_rejected(n: Any) -> None:
    with pytest.raises(ParameterError, match="n must be a whole number >= 1"):
        scenario("linear").sample(n)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_an_invalid_seed_is_rejected(seed: Any) -> None:
    with pytest.raises(ParameterError, match="seed"):
        scenario("linear").sample(3, random_state=seed)


def test_one_row_is_enough() -> None:
    assert len(scenario("linear").sample(1, random_state=0).X) == 1
    assert np.isfinite(scenario("linear").true_importance(n=1, random_state=0))


def test_other_features_are_not_redrawn() -> None:
    one = scenario("linear")
    data = one.sample(20, random_state=0)
    with pytest.raises(SubgroveError, match=r"resamples 'x1' only; got 'x2'. Pass features=\['x1'\]"):
        sg.importance(one.model, data.X, data.y, sampler=one.sampler, features=["x2"])


def test_tables_without_the_columns_are_rejected() -> None:
    one = scenario("linear")
    X = one.sample(5, random_state=0).X
    with pytest.raises(InputError, match="X lacks the columns 'x3'"):
        one.model(X.drop(columns="x3"))
    with pytest.raises(InputError, match=r"array of shape \(5, 9\)"):
        one.model(X.to_numpy()[:, :9])
    with pytest.raises(SubgroveError):
        one.model("rows")


def test_labels_in_place_of_numbers_are_rejected() -> None:
    X = draws("linear", 3, 1).assign(x2=["a", "b", "c"])
    with pytest.raises(InputError, match="labels in 'x2'"):
        scenario("linear").model(X)
