"""Ridge regression: held-out predictions in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from subgrove._regress import best_ridge_residuals, ridge_leave_one_out, ridge_predictions

RNG = np.random.default_rng(0)


def test_ridge_leave_one_out_equals_refits_without_each_row() -> None:
    X, y = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 1))
    said = ridge_leave_one_out(X, y, 0.02)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    centred, mean = y - y.mean(), y.mean()
    for row in range(40):
        keep = np.arange(40) != row
        # The same penalty and centre, an intercept without a penalty that counts as one more column.
        design = np.hstack([np.ones((40, 1)), scaled])
        inner = design[keep].T @ design[keep] + np.diag([0.0, *[0.02 * 40] * 3])
        expected = mean + design[row] @ np.linalg.solve(inner, design[keep].T @ centred[keep])
        assert said[row] == pytest.approx(expected, rel=1e-10)


def test_dual_form_of_ridge_gives_the_same_predictions() -> None:
    X, y = RNG.normal(size=(30, 29)), RNG.normal(size=(30, 2))
    more = np.hstack([X, np.zeros((30, 5))])
    np.testing.assert_allclose(ridge_leave_one_out(X, y, 0.02), ridge_leave_one_out(more, y, 0.02), rtol=1e-9)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = Ridge(alpha=0.02 * 30).fit(scaled, y).predict(scaled)
    for design in (X, more):
        np.testing.assert_allclose(ridge_predictions(design, y, design, 0.02), expected, rtol=1e-9)


def test_best_ridge_residuals_are_leave_one_out_residuals_of_the_best_penalty() -> None:
    X = RNG.normal(size=(60, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * RNG.normal(size=60)
    each = [y - ridge_leave_one_out(X, y[:, None], penalty)[:, 0] for penalty in 10.0 ** np.arange(-3, 4)]
    expected = min(each, key=lambda residuals: float(np.mean(residuals**2)))
    np.testing.assert_allclose(best_ridge_residuals(X, y), expected, rtol=1e-8)


def test_best_ridge_residuals_of_pure_noise_are_at_most_those_of_the_mean() -> None:
    X, y = RNG.normal(size=(30, 10)), RNG.normal(size=30)
    assert np.mean(best_ridge_residuals(X, y) ** 2) <= np.mean(((y - y.mean()) * 30 / 29) ** 2)
