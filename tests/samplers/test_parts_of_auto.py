"""Parts of the default sampler: scales, reweighted residuals, donors of a forest, special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove._data.table import TypedColumn, read_table
from subgrove._regress.forest import grow_forest
from subgrove._regress.gram import FoldGrams
from subgrove.samplers.auto.selector import special_values
from subgrove.samplers.chained import TwoPart
from subgrove.samplers.forest_donors import ensemble_crps, fit_donor_forest
from subgrove.samplers.location_shift import ValueScale, judging_scale, scales_to_try
from subgrove.samplers.predicted_probabilities import BinnedResiduals, fit_reweighted, quantile_crps


def column(values: Floats) -> TypedColumn:
    return read_table(pd.DataFrame({"x": values})).series("x")


def drawn(fitted: Any, X: pd.DataFrame, n_repeats: int) -> Floats:
    return np.array([np.asarray(values) for values in fitted.sample(X, "x", Streams(0, "x", n_repeats))])


@pytest.mark.parametrize("kind", ["log", "normal scores"])
def test_scales_go_there_and_back(kind: Any) -> None:
    x = np.exp(np.random.default_rng(0).normal(size=200))
    scale = ValueScale.of(kind, x)
    np.testing.assert_allclose(scale.back(scale.forward(x)), x, rtol=1e-12)
    assert (np.diff(scale.forward(np.sort(x))) > 0).all()
    assert np.isnan(ValueScale.of("normal scores", x).forward(np.array([np.nan]))).all()


def test_scales_are_tried_for_positive_and_heavy_tailed_values_only() -> None:
    rng = np.random.default_rng(1)
    normal, cauchy = rng.normal(size=500), rng.standard_cauchy(500)
    assert scales_to_try(normal, normal) == []
    assert [scale.kind for scale in scales_to_try(np.exp(normal), normal)] == ["log"]
    assert [scale.kind for scale in scales_to_try(cauchy, cauchy)] == ["normal scores"]
    assert judging_scale(normal) is None
    assert judging_scale(cauchy) is not None


def test_scores_of_draws_and_quantiles_are_the_crps() -> None:
    """The CRPS of a standard normal distribution at y is y (2 F(y) - 1) + 2 f(y) - 1 / sqrt(pi)."""
    from scipy.special import ndtr, ndtri

    y = np.linspace(-2, 2, 9)
    exact = y * (2 * ndtr(y) - 1) + 2 * np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi) - 1 / np.sqrt(np.pi)
    draws = np.random.default_rng(2).normal(size=(9, 20_000))
    # The standard error of a mean of 20,000 distances of at most about 1 is 0.007.
    np.testing.assert_allclose(ensemble_crps(draws, y), exact, atol=4 * 0.007)
    np.testing.assert_allclose(quantile_crps(y, lambda level: np.full(9, ndtri(level))), exact, atol=0.02)


def test_an_atom_has_a_bin_of_its_own() -> None:
    values = np.concatenate([np.zeros(300), np.random.default_rng(3).uniform(1, 2, 700)])
    bins, code = BinnedResiduals.of(values)
    assert set(code[:300]) == {0}
    assert 0 not in code[300:]
    assert np.diff(bins.starts)[0] == 300
    equal = np.tile(np.cumsum(np.diff(bins.starts) / 1000), (5, 1))
    points = np.array([0.0, 0.2905, 0.3105, 0.6505, 0.9505])
    np.testing.assert_allclose(bins.at(equal, points), np.sort(values)[[0, 290, 310, 650, 950]])


def test_residuals_are_reweighted_where_their_spread_changes() -> None:
    rng = np.random.default_rng(4)
    Z = pd.DataFrame(rng.uniform(-1, 1, size=(1500, 2)), columns=["a", "b"])
    residuals = np.where(Z["a"] > 0, 2.0, 0.2) * rng.normal(size=1500)
    table = read_table(Z)
    found = fit_reweighted(FoldGrams.of(table, 0), "x", residuals, ["a", "b"], float(residuals.var()), 0)
    assert found is not None
    ends = np.cumsum(found.probabilities.predict(table), axis=1)
    new = np.array([found.bins.at(ends, rng.random(1500)) for _ in range(5)])
    assert new[:, np.asarray(Z["a"] > 0.2)].std() == pytest.approx(2.0, rel=0.15)
    assert new[:, np.asarray(Z["a"] < -0.2)].std() < 0.6


def test_donors_of_a_forest_follow_two_modes() -> None:
    rng = np.random.default_rng(5)
    Z = pd.DataFrame(rng.uniform(-1, 1, size=(1200, 2)), columns=["a", "b"])
    x = np.where(rng.random(1200) < np.where(Z["a"] > 0, 0.9, 0.1), 3.0, -3.0) + 0.3 * rng.normal(size=1200)
    found = fit_donor_forest(FoldGrams.of(read_table(Z), 0), x, ["a", "b"], 0)
    assert found is not None
    # The CRPS of the marginal distribution is about 1.5; that of the true one about 0.6.
    assert found.scores.mean() < 0.8


@pytest.mark.compiled
def test_leaves_are_those_of_the_predictions() -> None:
    rng = np.random.default_rng(6)
    Z, target = rng.normal(size=(200, 3)), rng.normal(size=(200, 1))
    forest = grow_forest(Z, target, n_trees=7, seed=1, n_jobs=1)
    leaves = forest.leaves(Z)
    assert leaves.shape == (200, 7)
    np.testing.assert_allclose(forest.values[leaves].mean(axis=1), forest.predict(Z))
    np.testing.assert_array_equal(forest.leaves(Z, [2, 5]), leaves[:, [2, 5]])


def test_special_values_are_ends_that_many_rows_share() -> None:
    rng = np.random.default_rng(7)
    normal = rng.normal(size=1000)
    assert special_values(column(normal)).tolist() == []
    assert special_values(column(np.clip(normal, -1, 1))).tolist() == [-1.0, 1.0]
    assert special_values(column(np.maximum(normal, 0.0))).tolist() == [0.0]
    assert special_values(column(np.where(rng.random(1000) < 0.3, 0.5, normal))).tolist() == [0.5]
    assert special_values(column(rng.integers(0, 5, 1000).astype(float))).tolist() == []


def test_amounts_with_many_zeros_are_resampled_in_two_parts() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(2, 1500))
    zero = rng.random(1500) < 1 / (1 + np.exp(3 * a))
    X = pd.DataFrame({"a": a, "b": b, "x": np.where(zero, 0.0, np.exp(b + 0.2 * rng.normal(size=1500)))})
    fitted = sg.samplers.Auto().fit(X, ["x"])
    assert isinstance(fitted.learned["x"], TwoPart)
    new = drawn(fitted, X, 10)
    assert (new >= 0).all()
    assert (new == 0).mean() == pytest.approx(zero.mean(), abs=0.03)
    assert (new[:, a > 1] == 0).mean() < 0.12 < 0.85 < (new[:, a < -1] == 0).mean()
    positive = np.where(new > 0, new, np.nan)
    assert np.nanmedian(positive[:, b > 1]) > 4 * np.nanmedian(positive[:, b < 0])


def test_censored_values_stay_within_their_limits() -> None:
    rng = np.random.default_rng(9)
    a = rng.normal(size=1000)
    X = pd.DataFrame({"a": a, "b": rng.normal(size=1000), "x": np.clip(a + 0.5 * rng.normal(size=1000), -1, 1)})
    new = drawn(sg.samplers.Auto().fit(X, ["x"]), X, 5)
    assert new.min() == -1.0
    assert new.max() == 1.0
    assert (new[:, a > 1.5] == 1.0).mean() > 0.6
