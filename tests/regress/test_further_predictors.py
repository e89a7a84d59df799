"""Terms with thresholds, means by very many levels, and probabilities of ordered levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from subgrove._core.kinds import Floats
from subgrove._data.table import read_like, read_table
from subgrove._regress.gram import FoldGrams
from subgrove._regress.kernel import PilotForest
from subgrove._regress.level_means import fit_level_means
from subgrove._regress.levels import fit_ordered_levels
from subgrove._regress.linear import LinearFit, LinearPredictor
from subgrove._regress.threshold_terms import fit_threshold_terms

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(1000, 4)), columns=list("abcd"))
TABLE = read_table(X)
GRAMS = FoldGrams.of(TABLE, 0)
NOTHING = LinearPredictor("x", 0.0, (), GRAMS.design)


def thresholds(mean: Floats, noise: float) -> tuple[LinearFit | None, Floats]:
    target = mean - mean.mean() + noise * np.random.default_rng(1).normal(size=1000)
    pilot = PilotForest.of(GRAMS, target[:, None], list("abcd"), 0)
    return fit_threshold_terms(GRAMS, NOTHING, target, pilot.ranked), mean - mean.mean()


@pytest.mark.parametrize(
    "mean",
    [
        np.sign(X["a"]) * X["b"],
        1.0 * (X["c"] > 0.5),
        np.abs(X["d"] - 0.3),
        np.where(X["a"] > -0.5, X["b"], -X["b"]),
        0.5 * np.sign(X["a"] * X["b"]),
    ],
    ids=["sign", "step", "kink", "slopes", "two steps"],
)
def test_changes_at_a_threshold_are_found(mean: Any) -> None:
    found, truth = thresholds(np.asarray(mean), 0.2)
    assert found is not None
    assert (found.residuals**2).mean() < 1.15 * 0.04
    assert found.noise == pytest.approx(0.04, rel=0.15)  # relative error sqrt(2 / 1000) = 4.5 %
    predicted = found.predictor.predict(TABLE)
    assert np.mean((predicted - truth) ** 2) < 0.006
    assert "changes at" in found.predictor.text()


def test_noise_has_no_threshold() -> None:
    target = np.random.default_rng(3).normal(size=1000)
    assert fit_threshold_terms(GRAMS, NOTHING, target, GRAMS.design.allowed(list("abcd"))) is None


def levels(n: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 60, n)
    return pd.DataFrame({"shop": [f"s{k:02d}" for k in code], "z": rng.normal(size=n)}), np.sin(code * 2.4)


def test_means_of_many_levels_are_shrunk_and_left_out() -> None:
    frame, effect = levels(900, 1)
    x = 2.0 + effect + 0.5 * np.random.default_rng(2).normal(size=900)
    table = read_table(frame)
    found = fit_level_means(table, x)
    assert found is not None
    # 15 rows a level: the squared error of a mean is 0.25 / 15, a little less if it is shrunk.
    assert found.error_variance == pytest.approx(0.25 / 15, rel=0.25)
    assert (found.residuals**2).mean() == pytest.approx(0.25 + found.error_variance, rel=0.15)
    new, truth = levels(300, 3)
    predicted = found.predictor.predict(read_like(new, table.columns))
    assert np.corrcoef(predicted, truth)[0, 1] > 0.95


def test_a_level_that_training_did_not_have_has_no_deviation() -> None:
    frame, effect = levels(900, 1)
    table = read_table(frame)
    found = fit_level_means(table, effect)
    assert found is not None
    unseen = read_like(pd.DataFrame({"shop": ["new", None], "z": [0.0, 0.0]}), table.columns)
    np.testing.assert_array_equal(found.predictor.predict(unseen), [0.0, 0.0])


def test_levels_without_effect_and_few_levels_have_no_means() -> None:
    frame, _ = levels(900, 1)
    assert fit_level_means(read_table(frame), np.random.default_rng(5).normal(size=900)) is None
    few = pd.DataFrame({"shop": ["u", "v"] * 450, "z": 0.0})
    assert fit_level_means(read_table(few), np.tile([0.0, 1.0], 450)) is None


def test_probabilities_of_ordered_levels_are_those_of_a_cumulative_model() -> None:
    latent = np.asarray(X["a"] + X["b"])
    cuts = np.array([-1.5, -0.5, 0.5, 1.5])
    code = np.searchsorted(cuts, latent + 0.7 * np.random.default_rng(6).normal(size=1000))
    found = fit_ordered_levels(GRAMS, "x", code, list("abcd"), 0)
    assert found is not None
    ends = ndtr((cuts - latent[:, None]) / 0.7)
    truth = np.diff(np.column_stack([np.zeros(1000), ends, np.ones(1000)]), axis=1)
    predicted = found.predictor.predict(TABLE)
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0, atol=1e-6)
    assert np.abs(predicted - truth).mean() < 0.02
    assert fit_ordered_levels(GRAMS, "x", np.random.default_rng(7).integers(0, 5, 1000), list("abcd"), 0) is None


def test_columns_of_few_values_have_no_thresholds() -> None:
    flags = pd.DataFrame(np.random.default_rng(0).integers(0, 2, size=(400, 2)).astype(float), columns=["a", "b"])
    grams = FoldGrams.of(read_table(flags), 0)
    target = np.asarray(flags["a"] * flags["b"]) - 0.25
    nothing = LinearPredictor("x", 0.0, (), grams.design)
    assert fit_threshold_terms(grams, nothing, target, grams.design.allowed(["a", "b"])) is None
