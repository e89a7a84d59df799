"""Ridge regression: held-out predictions in closed form."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from subgrove._regress.linear import best_ridge_residuals, ridge_predictions

RNG = np.random.default_rng(0)


def test_dual_form_of_ridge_gives_the_same_predictions() -> None:
    X, y = RNG.normal(size=(30, 29)), RNG.normal(size=(30, 2))
    more = np.hstack([X, np.zeros((30, 5))])
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = Ridge(alpha=0.02 * 30).fit(scaled, y).predict(scaled)
    for design in (X, more):
        np.testing.assert_allclose(ridge_predictions(design, y, design, 0.02), expected, rtol=1e-9)


def test_best_ridge_residuals_are_leave_one_out_residuals_of_the_best_penalty() -> None:
    X = RNG.normal(size=(60, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * RNG.normal(size=60)
    design = np.hstack([np.ones((60, 1)), (X - X.mean(axis=0)) / X.std(axis=0)])
    each = []
    for penalty in 10.0 ** np.arange(-3, 4):
        # The intercept has no penalty and counts as one more column.
        inner = design.T @ design + np.diag([0.0, *[penalty * 60] * 4])
        hat = design @ np.linalg.solve(inner, design.T)
        each.append((y - hat @ y) / (1 - np.diag(hat)))
    expected = min(each, key=lambda residuals: float(np.mean(residuals**2)))
    np.testing.assert_allclose(best_ridge_residuals(X, y), expected, rtol=1e-8)


def test_best_ridge_residuals_of_pure_noise_are_at_most_those_of_the_mean() -> None:
    X, y = RNG.normal(size=(30, 10)), RNG.normal(size=30)
    assert np.mean(best_ridge_residuals(X, y) ** 2) <= np.mean(((y - y.mean()) * 30 / 29) ** 2)
