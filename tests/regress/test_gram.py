"""Least squares on held-out folds: what is formed from products of columns is what rows give one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import read_table
from subgrove._regress.gram import (
    N_FOLDS,
    CrossValidatedLeastSquares,
    FoldGrams,
    exceeds_standard_error,
    mean_and_std_error,
)
from subgrove._regress.linear import _refit_without_penalty

RNG = np.random.default_rng(0)
P = 4


@pytest.fixture(params=[200, 203], ids=["folds of one size", "folds of 40 and of 41 rows"])
def problem(request: pytest.FixtureRequest) -> CrossValidatedLeastSquares:
    n = request.param
    frame = pd.DataFrame(RNG.normal(1.0, 2.0, size=(n, P)), columns=list("abcd")).assign(x=RNG.normal(size=n))
    found = CrossValidatedLeastSquares.of(FoldGrams.of(read_table(frame), 0), frame["x"].to_numpy(), list("abcd"))
    assert found is not None
    return found


def outside(problem: CrossValidatedLeastSquares) -> list[Rows]:
    """Rows outside each fold, and all."""
    every = np.arange(len(problem.target))
    return [*(np.setdiff1d(every, every[rows]) for rows in problem.grams.folds), every]


def left_by(problem: CrossValidatedLeastSquares, fold: int, b: Floats) -> Floats:
    """What coefficients of the other folds, with their means, leave of the rows of one."""
    kept, rows = outside(problem)[fold], problem.grams.folds[fold]
    about = problem.values[rows] - problem.values[kept].mean(axis=0)
    return np.asarray(problem.target[rows] - problem.target[kept].mean() - about @ b)


def test_products_are_those_of_the_rows_outside_each_fold(problem: CrossValidatedLeastSquares) -> None:
    known = problem.without
    for fold, kept in enumerate(outside(problem)):
        values, target = problem.values[kept], problem.target[kept]
        about = values - values.mean(axis=0)
        np.testing.assert_allclose(known.products[fold], about.T @ about / len(kept), atol=1e-12)
        np.testing.assert_allclose(problem.covariances[fold], about.T @ target / len(kept), atol=1e-12)
        np.testing.assert_allclose(known.means[fold], values.mean(axis=0), atol=1e-12)
        assert problem.target_means[fold] == pytest.approx(target.mean(), abs=1e-12)


def test_residuals_of_rows_are_by_what_was_fitted_without_their_fold(problem: CrossValidatedLeastSquares) -> None:
    several = RNG.normal(size=(N_FOLDS, 3, P))
    direct = np.hstack([[left_by(problem, fold, b) for b in several[fold]] for fold in range(N_FOLDS)])
    np.testing.assert_allclose(problem.held_out_residuals(several), direct, atol=1e-12)
    np.testing.assert_allclose(problem.held_out_residuals(several[:, 1]), direct[1], atol=1e-12)
    np.testing.assert_allclose(problem.held_out_errors(several), (direct**2).mean(axis=1), atol=1e-11)


def test_each_fold_fits_the_columns_that_it_uses(problem: CrossValidatedLeastSquares) -> None:
    chosen = np.zeros((N_FOLDS + 1, P))
    chosen[:, 0] = chosen[2, 1] = chosen[4, 3] = 1.0
    found = _refit_without_penalty(problem, chosen)
    for fold, kept in enumerate(outside(problem)):
        used = np.flatnonzero(chosen[fold])
        about = problem.values[kept] - problem.values[kept].mean(axis=0)
        expected = np.zeros(P)
        expected[used] = np.linalg.lstsq(about[:, used], problem.target[kept], rcond=None)[0]
        np.testing.assert_allclose(found[fold], expected, atol=1e-8)


def test_columns_beside_are_as_if_they_had_been_there(problem: CrossValidatedLeastSquares) -> None:
    extra = RNG.normal(size=(len(problem.target), 2))
    more = problem.with_columns(extra)
    for fold, kept in enumerate(outside(problem)):
        values = np.hstack([problem.values, extra])[kept]
        about = values - values.mean(axis=0)
        np.testing.assert_allclose(more.without.products[fold], about.T @ about / len(kept), atol=1e-12)
        np.testing.assert_allclose(more.covariances[fold], about.T @ problem.target[kept] / len(kept), atol=1e-12)


def test_a_gain_is_clear_if_its_mean_is_beyond_its_standard_error() -> None:
    gain = RNG.normal(0.3, 1.0, size=500)
    mean, error = mean_and_std_error(gain)
    assert mean == pytest.approx(gain.mean())
    assert error == pytest.approx(gain.std() / np.sqrt(500))
    assert exceeds_standard_error(gain, errors=0.99 * mean / error)
    assert not exceeds_standard_error(gain, errors=1.01 * mean / error)
    assert not exceeds_standard_error(np.zeros(5))
