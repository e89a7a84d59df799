"""Quantiles that are values of rows, and the intervals between them."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._core.moments import interval_ends, quantile_rows, quantile_values


@pytest.mark.parametrize("n_intervals", [1, 3, 7, 10, 30, 49])
def test_quantile_is_the_row_of_the_rank_rounded_up(n_intervals: int) -> None:
    """Also where the rank is a whole number, which floats miss now and then."""
    for n in range(1, 400):
        ranks = -(-np.arange(n_intervals + 1) * n // n_intervals)
        found = quantile_rows(np.arange(float(n)), None, np.linspace(0, 1, n_intervals + 1))
        assert found.tolist() == (np.maximum(ranks, 1) - 1).tolist()


def test_integer_weights_equal_duplicated_rows() -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=50), rng.integers(1, 4, 50).astype(np.float64)
    shares, repeated = np.linspace(0, 1, 8), np.repeat(x, weights.astype(int))
    assert x[quantile_rows(x, weights, shares)].tolist() == repeated[quantile_rows(repeated, None, shares)].tolist()


@pytest.mark.parametrize("n_intervals", [1, 3, 7, 30, 49])
def test_values_are_those_of_the_rows(n_intervals: int) -> None:
    rng, shares = np.random.default_rng(1), np.linspace(0, 1, n_intervals + 1)
    for n in (1, 2, 5, 29, 30, 100, 399):
        x = rng.integers(0, n, n).astype(np.float64)
        for weights in (None, rng.uniform(0.1, 2, n)):
            assert quantile_values(x, weights, shares).tolist() == x[quantile_rows(x, weights, shares)].tolist()


def test_intervals_are_open_on_the_left_except_the_first() -> None:
    left, right = interval_ends(np.array([0.0, 1.0, 2.0]), np.array([-5.0, 0.0, 0.5, 1.0, 1.5, 2.0, 9.0]))
    assert left.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert right.tolist() == [1, 1, 1, 1, 2, 2, 2]


def test_single_edge_is_both_ends() -> None:
    left, right = interval_ends(np.array([3.0]), np.array([1.0, 3.0, 5.0]))
    assert left.tolist() == right.tolist() == [0, 0, 0]
