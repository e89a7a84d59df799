"""Importances, splits, knockoffs, MMD and effects of simulated data agree with known results.

The model is f(x) = x1 x2 + x1 + ... + x10. If x1 is replaced by x1 + d, f changes by d (1 + x2), so the importance
for the squared error is E[d^2 (1 + x2)^2]::

    conditional   2 E[Var(x1 | rest) (1 + x2)^2]                        (`Scenario.importance`)
    marginal      E[(E[x1^2] - 2 E[x1] m + m^2 + v) (1 + x2)^2]         with m, v mean and variance of x1 given the rest

Estimates may differ by four standard errors: a normal estimate exceeds that in one of 16,000 seeds.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove._fidelity.mmd import squared_mmd

SCENARIOS = ("independent", "linear", "nonlinear")
MARGIN = 4.0  # standard errors


def nonlinear_marginal() -> float:
    """Return the marginal importance of x1 in the nonlinear scenario.

    x1 is N(3, 1) if x2 > 0, in half of the rows; else N(-3, sd 2) or N(0, sd 5), in a quarter each. E[(1 + x2)^2] is 2,
    of which 1 + sqrt(2 / pi) comes from x2 > 0.
    """
    above = 1 + sqrt(2 / pi)
    shares, weights = (0.5, 0.25, 0.25), (above, (2 - above) / 2, (2 - above) / 2)
    means, variances = (3.0, -3.0, 0.0), (1.0, 4.0, 25.0)
    groups = list(zip(shares, weights, means, variances, strict=True))
    mean = sum(share * m for share, _, m, _ in groups)
    square = sum(share * (m**2 + v) for share, _, m, v in groups)
    return sum(weight * (square - 2 * mean * m + m**2 + v) for _, weight, m, v in groups)


# Independent: 2 Var(x1) E[(1 + x2)^2]. Linear: m is x2 and v is 1, and E[x2^2 (1 + x2)^2] is 1 + 3.
MARGINAL = {"independent": 2 * 1 * 2.0, "linear": (2 + 1) * 2.0 + 1 + 3, "nonlinear": nonlinear_marginal()}


def x1_importance(model: Any, test: Any, sampler: Any) -> Any:
    imp = sg.importance(
        model,
        test.X,
        test.y,
        sampler=sampler,
        features=["x1"],
        n_repeats=20,
        check_fidelity=False,
        random_state=1,
        loss="squared_error",
    )
    return imp.overall.iloc[0]


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("kind", ["conditional", "marginal"])
def test_importance_of_x1_is_its_closed_form(name: str, kind: str) -> None:
    scenario = sg.simulate.scenario(name)
    test = scenario.sample(20_000, random_state=1)
    sampler, truth = ("marginal", MARGINAL[name]) if kind == "marginal" else (scenario.sampler, scenario.importance)
    row = x1_importance(scenario.model, test, sampler)
    assert abs(row["estimate"] - truth) < MARGIN * row["std_error"] < 0.15 * truth


def test_conditionally_independent_feature_has_importance_zero_for_a_model_that_uses_it() -> None:
    null = sg.simulate.null_scenario("linear")
    row = x1_importance(lambda X: np.asarray(X["x1"] + X["x3"]), null.sample(20_000, random_state=1), null.sampler)
    assert abs(row["estimate"]) < MARGIN * row["std_error"] < 0.1


def test_transformation_tree_finds_the_true_splits() -> None:
    """The distribution of x1 changes at x2 = 0 and, below it, at x3 = 0.

    The threshold between two levels that differ by D, in noise of variance V, has an error of about V / (D^2 n f),
    where n f is the number of rows per unit of the column: here 0.001 for the first and 0.01 for the second. The margin
    is 0.1.
    """
    train = sg.simulate.scenario("nonlinear").sample(3000, random_state=1)
    tree = sg.find_subgroups(train.X, features=["x1"], max_depth=2)["x1"].tree
    splits = [node.split for node in tree.nodes if node.split is not None][:2]
    assert [split.column for split in splits] == ["x2", "x3"]
    assert all(abs(float(split.threshold or 0.0)) < 0.1 for split in splits)


def correlated(seed: int = 1) -> Floats:
    """Return three normal columns of different scales that depend on each other."""
    mixing = np.array([[1.0, 0.8, 0.3], [0.0, 0.6, 0.5], [0.0, 0.0, 2.0]])
    columns: Floats = np.random.default_rng(seed).standard_normal((500, 3)) @ mixing
    return columns


def test_knockoffs_have_the_covariances_of_their_definition() -> None:
    """A row maps to mean + A (row - mean) plus noise of covariance V.

    So the covariance of the knockoffs is A S A' + V, which must be S, and that of rows and knockoffs S A', which must
    be S - diag(s).
    """
    fitted = sg.samplers.Knockoffs().fit(correlated())
    scale = np.outer(fitted.scale, fitted.scale)
    covariance = scale * np.linalg.inv(fitted.precision)
    mapped = (fitted.conditional_mean(fitted.mean + np.eye(len(fitted.mean))) - fitted.mean).T
    np.testing.assert_allclose(
        (mapped @ covariance @ mapped.T + fitted.conditional_covariance) / scale, covariance / scale, atol=1e-10
    )
    cross = covariance - np.diag(fitted.s * fitted.scale**2)
    np.testing.assert_allclose(covariance @ mapped.T / scale, cross / scale, atol=1e-10)


def test_mean_squared_mmd_of_two_samples_of_one_distribution_is_known() -> None:
    """It is (2 / n) (1 - E k(x, x')), where E exp(-g |x - x'|^2) = (1 + 4 g)^(-p / 2) is 1/2 for g = 1/4 and p = 2."""
    n, n_pairs = 50, 300
    pairs = np.random.default_rng(1).standard_normal((n_pairs, 2, n, 2))
    values = np.array([squared_mmd(one, two, gamma=0.25) for one, two in pairs]) * n / 2
    assert abs(values.mean() - 0.5) < MARGIN * values.std(ddof=1) / sqrt(n_pairs)


@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_effect_of_a_linear_model_has_its_slope(kind: Any) -> None:
    X = pd.DataFrame(correlated(), columns=["a", "b", "c"])
    curve = sg.effect(
        lambda X: 3.0 * X["a"] - 2.0 * X["b"] + X["c"], X, "a", kind=kind, grid_resolution=15, subgroups=None
    ).curves
    np.testing.assert_allclose(np.diff(curve["estimate"]) / np.diff(curve["x"]), 3.0, atol=1e-9)
