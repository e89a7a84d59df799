"""Bounds move out where rows skew, by the terms that are written down; the p-value belongs to the lower bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kurtosis, skew
from scipy.stats import t as student

import subgrove as sg
from subgrove._core.weights import as_relative
from subgrove._importance.intervals import interval_columns
from subgrove._scoring.estimate_variance import interval_multipliers, l_kurtosis, skewness_correction

RIGHT = np.random.default_rng(1).exponential(size=(1, 200)) ** 2
ERROR = RIGHT.std(axis=1, ddof=1) / np.sqrt(200)


def student_reach(n: float) -> float:
    return float(student.ppf(0.975, n - 1))


def test_moments_are_those_of_scipy() -> None:
    shape = skewness_correction(RIGHT, None)
    assert shape.third[0] == pytest.approx(skew(RIGHT[0]) * RIGHT.std() ** 3 / 200**2)
    assert shape.df[0] == pytest.approx(2 * 200 / (kurtosis(RIGHT[0], fisher=False) - 1))


def test_the_bound_moves_by_skewness_and_kurtosis() -> None:
    shape = skewness_correction(RIGHT, None)
    wide = student.ppf(0.975, shape.df)
    below, above = interval_multipliers(ERROR, np.array([199.0]), 0.95, shape)
    assert above == pytest.approx(wide + shape.third / ERROR**3 * (2 * wide**2 + 1) / 6)
    assert below == pytest.approx(wide)


def test_left_skewed_rows_move_the_lower_bound() -> None:
    right, left = (
        interval_multipliers(ERROR, np.array([199.0]), 0.95, skewness_correction(side * RIGHT, None))
        for side in (1, -1)
    )
    assert left[0] == pytest.approx(right[1])
    assert left[1] == pytest.approx(right[0])


def test_without_skewness_the_interval_is_students() -> None:
    flat = np.linspace(-1, 1, 200)[None, :]
    below, above = interval_multipliers(np.array([0.1]), np.array([199.0]), 0.95, skewness_correction(flat, None))
    assert below == pytest.approx(student_reach(200))
    assert above == pytest.approx(student_reach(200))
    assert interval_multipliers(np.array([0.1]), np.array([199.0]), 0.95, None)[0] == pytest.approx(student_reach(200))


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_p_value_is_below_half_the_level_exactly_where_the_interval_excludes_zero(side: int, level: float) -> None:
    shape, df = skewness_correction(side * RIGHT, None), np.array([199.0])
    bound = interval_multipliers(ERROR, df, level, shape)[0] * ERROR
    for factor, expected in ((1.0001, True), (0.9999, False)):
        columns = interval_columns(factor * bound, ERROR, df, level, shape)
        assert (columns["conf_low"][0] > 0) == (columns["p_value"][0] < (1 - level) / 2) == expected


def test_left_skewed_rows_of_mean_zero_are_rejected_as_often_as_stated() -> None:
    # 4,000 samples of 100 rows: a share of 0.05 has a standard error of 0.0034. Student's test rejects more than 0.09.
    rng = np.random.default_rng(4)
    values = 1 - rng.exponential(size=(4000, 100)) ** 1.5 / 1.3293403881791372
    error, df = values.std(axis=1, ddof=1) / 10, np.full(4000, 99.0)
    corrected, plain = (
        interval_columns(values.mean(axis=1), error, df, 0.95, shape)["p_value"]
        for shape in (skewness_correction(values, None), None)
    )
    assert np.mean(plain < 0.05) > 0.09
    assert np.mean(corrected < 0.05) < 0.065


def test_p_values_of_infinite_statistics_are_zero_and_one() -> None:
    shape = skewness_correction(-np.ones((2, 5)), None)
    columns = interval_columns(np.array([1.0, -1.0]), np.zeros(2), np.array([4.0, 4.0]), 0.95, shape)
    assert columns["p_value"].tolist() == [0.0, 1.0]


def test_weights_count_rows() -> None:
    counts = np.random.default_rng(2).integers(0, 4, size=200)
    weighted, repeated = (
        skewness_correction(RIGHT, counts.astype(float)),
        skewness_correction(np.repeat(RIGHT, counts, axis=1), None),
    )
    assert weighted.third == pytest.approx(repeated.third)
    assert weighted.df == pytest.approx(repeated.df)


@pytest.mark.parametrize("values", [np.zeros((1, 50)), np.ones((1, 1)), np.array([[1.0, 1.0, 1e6]])])
def test_bounds_of_few_or_constant_rows_are_numbers(values: np.ndarray) -> None:
    error = np.array([values.std() / np.sqrt(values.shape[1])])
    columns = interval_columns(
        values.mean(axis=1), error, np.array([values.shape[1] - 1.0]), 0.95, skewness_correction(values, None)
    )
    assert np.isfinite(columns["conf_low"]).all()
    assert np.isfinite(columns["conf_high"]).all()


def test_squared_errors_are_covered_above_as_well() -> None:
    # Squares of normal numbers times an exponential one: about the shape of the non-linear scenario. Of 2,000 samples
    # of 200 rows, a coverage of 0.95 has a standard error of 0.005; Student's interval covers 0.90.
    rng = np.random.default_rng(3)
    values = rng.standard_normal((2000, 200)) ** 2 * rng.exponential(size=(2000, 200))
    error = values.std(axis=1, ddof=1) / np.sqrt(200)
    df = np.full(2000, 199.0)
    leaned = interval_columns(values.mean(axis=1), error, df, 0.95, skewness_correction(values, None))
    plain = interval_columns(values.mean(axis=1), error, df, 0.95)
    covered = [np.mean((one["conf_low"] <= 1) & (one["conf_high"] >= 1)) for one in (leaned, plain)]
    assert 0.935 < covered[0] < 0.965
    assert covered[1] < 0.93


@pytest.mark.parametrize(("draw", "expected"), [("uniform", 0.0), ("standard_normal", 0.1226), ("exponential", 1 / 6)])
def test_l_kurtosis_is_that_of_the_distribution(draw: str, expected: float) -> None:
    values = getattr(np.random.default_rng(0), draw)(size=200_000)
    assert l_kurtosis(values) == pytest.approx(expected, abs=0.004)  # four standard errors, about 0.2 / sqrt(n) each


def test_l_kurtosis_of_frequencies_is_that_of_duplicated_rows_and_has_no_scale_of_weights() -> None:
    counts = np.random.default_rng(2).integers(1, 4, size=200).astype(float)
    assert l_kurtosis(RIGHT[0], counts) == pytest.approx(l_kurtosis(np.repeat(RIGHT[0], counts.astype(int))))
    assert l_kurtosis(RIGHT[0], as_relative(counts)) == pytest.approx(l_kurtosis(RIGHT[0], as_relative(1000 * counts)))


@pytest.mark.parametrize(
    ("function", "n", "reason"),
    [
        (np.tanh, 200, ""),
        (np.exp, 200, "few rows have most of the loss"),
        (np.tanh, 11, "fewer than 20 rows"),
    ],
)
def test_intervals_that_may_not_hold_are_marked(function: Any, n: int, reason: str) -> None:
    """The user saw: intervals and p-values of subgroups of 6 rows, and 86 % coverage of exp(x), without a warning."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    result = sg.importance(
        lambda X: 3 * function(X[:, 0]), X, 3 * function(X[:, 0]) + rng.normal(size=n), sampler="marginal",
        features=[0], random_state=1, check_fidelity=False,
    )  # fmt: skip
    assert result.overall["reliable"][0] == result.by_subgroup["reliable"][0] == reason
    assert ("+-" in repr(result)) == (reason == "")
    assert reason in repr(result)
    assert result.with_noise("Monte Carlo").overall["reliable"][0] == ""
