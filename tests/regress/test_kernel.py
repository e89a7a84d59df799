"""Kernel ridge regression: honest residuals, columns that are found, and the noise variance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from subgrove._core.kinds import Floats
from subgrove._data.table import Table, read_table
from subgrove._regress.gram import FoldGrams
from subgrove._regress.kernel import (
    KernelFit,
    PilotForest,
    ValueIndicator,
    _orthonormal,
    _RidgeProblem,
    fit_kernel,
)
from subgrove._regress.levels import as_probabilities, fit_kernel_levels

NAMES = ["a", "b", "c"]


def rows(n: int, seed: int) -> tuple[Table, pd.DataFrame]:
    X = pd.DataFrame(np.random.default_rng(seed).uniform(-2, 2, size=(n, 3)), columns=NAMES)
    return read_table(X), X


def fitted(table: Table, target: Floats) -> KernelFit | None:
    grams, values = FoldGrams.of(table, 0), (target - target.mean())[:, None]
    return fit_kernel(grams, values, PilotForest.of(grams, values, NAMES, 0), 0)


def test_leave_one_out_residuals_are_those_of_refits_without_each_row() -> None:
    rng = np.random.default_rng(0)
    features, target = rng.normal(size=(40, 5)), rng.normal(size=(40, 2))
    problem = _RidgeProblem.of(features.copy(), np.eye(5))  # orthonormal landmarks
    found = problem.fit(target, 3)[2]
    # The penalty and the centres are those of all rows, as in the closed form.
    centred = features - features.mean(axis=0)
    penalty = 10.0 ** (-6 + 0.5 * 3) * 40
    for row in (0, 17, 39):
        kept = np.arange(40) != row
        design = np.column_stack([np.ones(40), centred])
        inner = design[kept].T @ design[kept] + np.diag([0.0, *[penalty] * 5])
        expected = target[row] - design[row] @ np.linalg.solve(inner, design[kept].T @ target[kept])
        np.testing.assert_allclose(found[row], expected, rtol=1e-8)


def test_a_wave_of_one_column_is_found_with_its_noise() -> None:
    table, X = rows(1000, 1)
    noise = np.random.default_rng(2).normal(size=1000)
    found = fitted(table, np.asarray(2 * np.sin(4 * X["b"])) + 0.5 * noise)
    assert found is not None
    assert found.predictor.columns == ("b",)
    # 1000 rows: the variance of the noise has a relative error of sqrt(2 / 1000) = 4.5 %; the curve adds some.
    assert found.noise[0] == pytest.approx(0.25, rel=0.15)
    assert (found.residuals**2).mean() == pytest.approx(0.25, rel=0.2)
    new, Y = rows(500, 3)
    curve = found.predictor.predict(new)[:, 0]
    truth = 2 * np.sin(4 * np.asarray(Y["b"]))
    assert np.sqrt(np.mean((curve - curve.mean() - truth + truth.mean()) ** 2)) < 0.2


def test_an_interaction_without_main_effects_is_found() -> None:
    table, X = rows(1000, 4)
    target = np.asarray(np.sin(2 * X["a"]) * np.cos(2 * X["c"])) + 0.1 * np.random.default_rng(5).normal(size=1000)
    found = fitted(table, target)
    assert found is not None
    assert set(found.predictor.columns) == {"a", "c"}
    assert (found.residuals**2).mean() < 0.02


def test_noise_is_left_alone_mostly() -> None:
    """Pure noise in 40 tables: a kernel is fitted in at most 10 % and 3 standard errors of a share of them."""
    count = sum(
        fitted(rows(300, seed)[0], np.random.default_rng(seed).normal(size=300)) is not None for seed in range(40)
    )
    assert count <= 40 * (0.1 + 3 * np.sqrt(0.1 * 0.9 / 40))


def test_probabilities_of_levels_are_found() -> None:
    table, X = rows(1500, 6)
    likely = np.where(np.asarray(X["a"] * X["b"]) > 0, 0.9, 0.1)
    code = (np.random.default_rng(7).random(1500) < likely).astype(int)
    found = fit_kernel_levels(FoldGrams.of(table, 0), "x", code, NAMES, 0)
    assert found is not None
    predicted = found.predictor.predict(table)
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0)
    assert predicted.min() > 0
    assert np.abs(predicted[:, 1] - likely).mean() < 0.12
    assert 0 <= found.kept < 0.3


def test_numbers_below_zero_become_probabilities() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    found = as_probabilities(np.array([[1.2, -0.2, 0.0], [-1.0, -1.0, -1.0]]), shares, 0.1)
    np.testing.assert_allclose(found, np.array([[0.95, 0.03, 0.02], shares.tolist()]))


def test_interpolated_noise_has_no_small_errors() -> None:
    """As many features as rows: in-sample residuals vanish, and errors of left-out rows must not."""
    rng = np.random.default_rng(8)
    rows_close = rng.uniform(-2, 2, size=(150, 1))
    features = np.exp(-0.5 * (10 * (rows_close - rows_close.T)) ** 2)
    noise = rng.normal(size=(150, 1))
    needed, basis = _orthonormal(features)
    assert _RidgeProblem.of(features[:, needed], basis).errors(noise).min() > 0.8 * noise.var()


def test_a_number_with_few_values_may_have_a_curve_for_each_of_them() -> None:
    """The sign of a curve changes over 24 hours in no order that a smooth function of the hour could follow."""
    rng = np.random.default_rng(8)
    sign = rng.choice([-1.0, 1.0], size=24)

    def drawn(n: int) -> tuple[pd.DataFrame, Floats]:
        X = pd.DataFrame({"a": rng.uniform(-2, 2, size=n), "b": rng.integers(24, size=n), "c": rng.normal(size=n)})
        return X, np.asarray(2 * sign[X["b"]] * np.sin(2 * X["a"]))

    X, truth = drawn(600)
    found = fitted(read_table(X), truth + 0.5 * rng.normal(size=600))
    assert found is not None
    assert any(isinstance(part, ValueIndicator) for part in found.predictor.parts)
    # 24 curves from 600 rows; one curve for all hours leaves nearly the whole variance, which is 2.2.
    assert (found.residuals**2).mean() < 0.6
    new, expected = drawn(300)
    assert np.corrcoef(found.predictor.predict(read_table(new))[:, 0], expected)[0, 1] > 0.9
