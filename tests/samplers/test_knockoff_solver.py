"""The solver finds the largest sum of s, says how far it may be off, and is quick."""

from __future__ import annotations

import time

import numpy as np
import pytest

from subgrove._core.kinds import Floats
from subgrove.samplers.knockoff_solver import drawn_in, equal_s, largest_s


def factor_model(p: int, n: int, seed: int = 0) -> Floats:
    """Correlations of columns that share five factors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 5)) @ rng.normal(size=(5, p))
    return np.asarray(np.corrcoef(X.T))


def equally_correlated(p: int, rho: float) -> Floats:
    return (1 - rho) * np.eye(p) + rho


def test_independent_columns_have_s_of_one() -> None:
    assert largest_s(np.eye(4)).s == pytest.approx(np.ones(4), abs=1e-7)
    assert equal_s(np.eye(4)) == pytest.approx(np.ones(4))


@pytest.mark.parametrize(("rho", "expected"), [(0.3, 0.6), (0.6, 0.8), (-0.8, 0.4)])
def test_two_columns_have_the_closed_form(rho: float, expected: float) -> None:
    # 2G - diag(s) is singular at s = 2 (1 - |rho|) for both columns, and s is at most 1.
    expected = min(1.0, 2 * (1 - abs(rho)))
    assert largest_s(np.array([[1, rho], [rho, 1]])).s == pytest.approx([expected] * 2, abs=1e-6)


@pytest.mark.parametrize("p", [3, 20])
def test_equal_correlations_have_the_closed_form(p: int) -> None:
    # By symmetry and concavity the optimum is the same for all columns, hence the equal one: 2 (1 - rho).
    assert largest_s(equally_correlated(p, 0.8)).s == pytest.approx(np.full(p, 0.4), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_gap_bounds_the_distance_from_any_feasible_point(seed: int) -> None:
    correlation = factor_model(8, 30, seed)
    found = largest_s(correlation)
    rough = largest_s(correlation, tolerance=1e-2)
    assert 0 <= found.gap <= 8e-8
    assert rough.s.sum() <= found.s.sum() + found.gap
    assert found.s.sum() <= rough.s.sum() + rough.gap
    assert found.s.sum() >= equal_s(correlation).sum() - found.gap


@pytest.mark.parametrize("method", [lambda G: largest_s(G).s, equal_s])
@pytest.mark.parametrize(
    "correlation", [factor_model(8, 30), equally_correlated(8, 0.9), equally_correlated(5, 1 - 1e-6)]
)
def test_what_is_drawn_in_is_safely_positive_definite(method: object, correlation: Floats) -> None:
    assert callable(method)
    s = drawn_in(method(correlation), correlation)
    assert ((s >= 0) & (s <= 1)).all()
    assert np.linalg.eigvalsh(2 * correlation - np.diag(s))[0] > 1e-8


def test_columns_that_are_nearly_the_same_do_not_hold_back_the_others() -> None:
    correlation = np.eye(6)
    correlation[0, 5] = correlation[5, 0] = 1 - 1e-6
    found = largest_s(correlation)
    assert found.gap <= 6e-8
    assert found.s[1:5] == pytest.approx(np.ones(4), abs=1e-6)
    assert found.s[[0, 5]] == pytest.approx([2e-6] * 2, abs=1e-7)


def test_250_columns_take_less_than_five_seconds_of_processor_time() -> None:
    # About 0.6 s on two idle cores; docs/decisions/0008-knockoff-solver.md.
    start = time.process_time()
    found = largest_s(factor_model(250, 550))
    assert time.process_time() - start < 5
    assert found.gap <= 250e-8
