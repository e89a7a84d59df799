"""Scenarios in which a feature that goes with another has nothing to do with the target."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ParameterError
from subgrove.simulate import NullScenario, null_scenario, null_scenarios

NAMES = ("linear", "nonlinear", "mixed")


def as_numbers(X: pd.DataFrame) -> pd.DataFrame:
    return pd.get_dummies(X, dtype=float)


def test_there_are_three_forms() -> None:
    assert null_scenarios() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_x1_has_correlation_nine_tenths_with_x2(name: str) -> None:
    n = 20_000
    X = null_scenario(name).sample(n, random_state=1).X
    # A correlation r of normal columns has standard error (1 - r^2) / sqrt(n); bent ones have at most twice that.
    assert abs(X["x1"].corr(X["x2"]) - 0.9) < 4 * 2 * 0.19 / np.sqrt(n)


@pytest.mark.parametrize("name", NAMES)
def test_the_target_does_not_know_x1_given_the_others(name: str) -> None:
    n = 20_000
    null = null_scenario(name)
    data = null.sample(n, random_state=2)
    np.testing.assert_array_equal(null.model(data.X), null.model(data.X.assign(x1=0.0)))
    noise = data.y.to_numpy() - null.model(data.X)
    assert abs(noise.std() - 1) < 4 / np.sqrt(2 * n)
    # Correlations of independent columns have standard error 1 / sqrt(n).
    assert max(abs(np.corrcoef(noise, column)[0, 1]) for column in as_numbers(data.X).to_numpy().T) < 4 / np.sqrt(n)


@pytest.mark.parametrize("name", NAMES)
def test_no_model_has_a_conditional_importance_of_a_null_feature(name: str) -> None:
    null = null_scenario(name)
    estimates = [
        null.true_importance(lambda X: 2 * X["x1"] - X["x2"] ** 2, n=2_000, random_state=seed) for seed in range(40)
    ]
    # 40 independent estimates: four standard errors of their mean.
    assert abs(np.mean(estimates)) < 4 * np.std(estimates, ddof=1) / np.sqrt(40)
    assert null.importance == 0.0
    assert null.true_importance(n=100, random_state=1) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_with_strength_the_closed_form_is_what_simulation_gives(name: str) -> None:
    one = null_scenario(name, strength=0.7)
    estimates = np.array([one.true_importance(n=5_000, random_state=seed) for seed in range(40)])
    assert abs(estimates.mean() - one.importance) < 4 * estimates.std(ddof=1) / np.sqrt(40)
    # Noise of y is in each estimate, with standard deviation 2 strength sd(d) / sqrt(5000): about 0.015 here.
    assert estimates.std(ddof=1) / np.sqrt(40) < 0.05 * one.importance
    assert one.importance == pytest.approx(0.49 * null_scenario(name, strength=1).importance)


@pytest.mark.parametrize("name", NAMES)
def test_strength_adds_x1_to_the_target_of_the_same_rows(name: str) -> None:
    none, some = (null_scenario(name, p=11, strength=strength).sample(30, random_state=4) for strength in (0.0, 0.5))
    pd.testing.assert_frame_equal(none.X, some.X)
    np.testing.assert_allclose(some.y - none.y, 0.5 * none.X["x1"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_redrawn_x1_has_the_joint_distribution_of_the_data(name: str) -> None:
    null = null_scenario(name)
    X = null.sample(20_000, random_state=5).X
    (new,) = null.sampler.fit(X).sample(X, "x1", [np.random.default_rng(0)])
    for column in as_numbers(X.drop(columns="x1")).to_numpy().T:
        for power in (1, 2):
            products = (X["x1"] ** power - new**power) * column
            # The mean of the difference of two products with the same expectation, in its own standard errors.
            assert abs(products.mean()) < 4.5 * products.std() / np.sqrt(len(X))


def test_the_sampler_works_where_a_sampler_is_an_argument() -> None:
    null = null_scenario("mixed", strength=1.0)
    data = null.sample(4_000, random_state=6)
    options: dict[str, Any] = {"sampler": null.sampler, "features": ["x1"], "loss": "squared_error", "random_state": 1}
    imp = sg.importance(null.model, data.X, data.y, **options)
    estimate, error = (float(imp.overall[name].iloc[0]) for name in ("estimate", "std_error"))
    assert abs(estimate - null.importance) < 4 * error


def test_a_null_scenario_is_frozen_and_picklable_and_says_what_it_is() -> None:
    one = null_scenario("mixed", p=11, strength=0.5)
    assert pickle.loads(pickle.dumps(one)) == one == NullScenario("mixed", 11, 0.5)
    X = one.sample(3, random_state=0).X
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one.model))(X), one.model(X))
    assert "0.5 times x1" in one.sample(3, random_state=0).description
    assert "redundant" in null_scenario("linear").sample(3, random_state=0).description


@pytest.mark.parametrize("name", ["multilinear", "null linear", "", None, 3, ["linear"]])
def test_an_unknown_name_lists_the_valid_ones(name: Any) -> None:
    with pytest.raises(ParameterError, match="name must be one of 'linear', 'nonlinear', 'mixed'; got"):
        null_scenario(name)


@pytest.mark.parametrize("strength", ["1", None, float("nan"), float("inf"), True])
def test_a_strength_that_is_not_a_number_is_rejected(strength: Any) -> None:
    with pytest.raises(ParameterError, match="strength must be a finite number"):
        null_scenario("linear", strength=strength)


@pytest.mark.parametrize("p", [9, 10.0, True])
def test_too_few_features_are_rejected(p: Any) -> None:
    with pytest.raises(ParameterError, match="p must be a whole number >= 10"):
        null_scenario("linear", p=p)
