"""Paths of the lasso: two implementations with the same result, that of scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import lasso_path

from subgrove._core.kinds import Floats
from subgrove._native import loader
from subgrove._regress import gram as path
from subgrove.exceptions import SubgroveWarning

N, P = 200, 12


def problem(seed: int = 0, *, twin: bool = False) -> tuple[Floats, Floats]:
    """Centred columns that depend on each other, and a target of variance 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P))
    X[:, 1:] += 0.7 * X[:, :-1]
    if twin:
        X[:, 3] = X[:, 2]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 0] - 0.5 * X[:, 4] + 0.2 * X[:, 7] + rng.normal(size=N)
    return X, (y - y.mean()) / y.std()


def penalties(X: Floats, y: Floats, least: float = 1e-3) -> Floats:
    return np.asarray(np.abs(X.T @ y / N).max() * np.geomspace(1, least, 20))


def followed(X: Floats, y: Floats, alphas: Floats) -> Floats:
    return np.asarray(path.lasso_paths((X.T @ X / N)[None], (X.T @ y / N)[None], alphas)[0])


@pytest.fixture(params=["as built", "in Python"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        monkeypatch.setattr(loader, "lasso_path", None)


@pytest.mark.usefixtures("either")
def test_coefficients_are_those_of_scikit_learn() -> None:
    X, y = problem()
    alphas = penalties(X, y)
    _, expected, _ = lasso_path(X, y, alphas=alphas, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(followed(X, y, alphas), expected.T, atol=2e-3)


@pytest.mark.usefixtures("either")
def test_the_largest_penalty_leaves_no_column_and_the_least_nearly_min_squares() -> None:
    X, y = problem()
    found = followed(X, y, penalties(X, y, 1e-5))
    assert not found[0].any()
    assert np.count_nonzero(found[-1]) == P
    np.testing.assert_allclose(found[-1], np.linalg.lstsq(X, y, rcond=None)[0], atol=5e-3)


@pytest.mark.usefixtures("either")
def test_the_slope_is_within_the_penalty_everywhere_and_at_it_where_columns_are_used() -> None:
    X, y = problem(1)
    alphas = penalties(X, y)
    for penalty, b in zip(alphas, followed(X, y, alphas), strict=True):
        slope = X.T @ (y - X @ b) / N
        assert np.abs(slope).max() <= penalty + 2e-3
        np.testing.assert_allclose(slope[b != 0], penalty * np.sign(b[b != 0]), atol=2e-3)


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.skipif(loader.lasso_path is None, reason="there is no compiled code here")
def test_compiled_and_python_code_agree(monkeypatch: pytest.MonkeyPatch, twin: bool) -> None:
    X, y = problem(2, twin=twin)
    alphas = penalties(X, y)
    compiled = followed(X, y, alphas)
    monkeypatch.setattr(loader, "lasso_path", None)
    np.testing.assert_allclose(followed(X, y, alphas), compiled, atol=1e-9)


@pytest.mark.usefixtures("either")
def test_problems_are_solved_each_for_itself_and_left_as_they_were() -> None:
    (X, y), (Z, w) = problem(3), problem(4)
    alphas = penalties(X, y)
    products, crossed = np.array([X.T @ X / N, Z.T @ Z / N]), np.array([X.T @ y / N, Z.T @ w / N])
    before = products.copy(), crossed.copy(), alphas.copy()
    both = path.lasso_paths(products, crossed, alphas)
    np.testing.assert_array_equal(both[0], followed(X, y, alphas))
    np.testing.assert_array_equal(both[1], followed(Z, w, alphas))
    for one, two in zip(before, (products, crossed, alphas), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.usefixtures("either")
def test_a_column_without_variance_is_never_used() -> None:
    X, y = problem(5)
    X[:, 6] = 0.0
    found = followed(X, y, penalties(X, y))
    assert not found[:, 6].any()
    assert np.isfinite(found).all()


@pytest.mark.parametrize("compiled", [True, False])
def test_descent_that_does_not_converge_warns(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    if not compiled:
        monkeypatch.setattr(loader, "lasso_path", None)
    monkeypatch.setattr(path, "_TOLERANCE", -1.0)
    monkeypatch.setattr(path, "_MAX_SWEEPS", 2)
    with pytest.warns(SubgroveWarning, match="did not converge for 2 of 2 lasso problems"):
        path.lasso_paths(np.eye(2)[None], np.ones((1, 2)), np.array([0.5, 0.1]))
