"""Knockoffs keep mean and covariance, and say what they do where the covariance is singular."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove.exceptions import InputError, ParameterError, SubgroveWarning
from subgrove.samplers.knockoffs import FittedKnockoffs, Knockoffs

METHODS: list[Literal["sdp", "equi"]] = ["sdp", "equi"]
both_methods = pytest.mark.parametrize("method", METHODS)
RHO = 0.8
N = 40_000


def gaussian(n: int, seed: int) -> Floats:
    """Three columns: two correlated ones with mean and scale of their own, and one on its own."""
    rng = np.random.default_rng(seed)
    one, two, three = rng.normal(size=(3, n))
    return np.column_stack([5 + 2 * one, 10 * (RHO * one + np.sqrt(1 - RHO**2) * two), three])


def new_columns(fitted: FittedKnockoffs, X: Any, feature: str, n_repeats: int = 1) -> Floats:
    columns = fitted.sample(X, feature, Streams(0, feature, n_repeats))
    return np.array([np.asarray(column) for column in columns])


@both_methods
def test_resampled_column_keeps_mean_and_covariance(method: Literal["sdp", "equi"]) -> None:
    X = gaussian(N, 1)
    fitted = Knockoffs(method).fit(gaussian(N, 0))
    changed = X.copy()
    changed[:, 0] = new_columns(fitted, X, "x0")[0]
    # Entries of a covariance of standardised columns have a standard deviation of at most sqrt(2 / N) = 0.007; two
    # samples are compared with each other.
    scale = np.array([2.0, 10.0, 1.0])
    assert changed.mean(axis=0) / scale == pytest.approx(X.mean(axis=0) / scale, abs=4 * 0.01)
    ours, theirs = (np.cov(table.T) / np.outer(scale, scale) for table in (changed, X))
    assert ours == pytest.approx(theirs, abs=4 * 0.01)


@both_methods
def test_correlation_with_the_original_is_one_minus_s(method: Literal["sdp", "equi"]) -> None:
    X = gaussian(N, 1)
    fitted = Knockoffs(method).fit(gaussian(N, 0))
    for at, name in enumerate(fitted.names):
        correlation = np.corrcoef(X[:, at], new_columns(fitted, X, name)[0])[0, 1]
        # A correlation has a standard deviation of at most 1 / sqrt(N) = 0.005.
        assert correlation == pytest.approx(1 - fitted.s[at], abs=4 * 0.005)


def test_s_is_what_theory_says() -> None:
    fitted = Knockoffs().fit(gaussian(N, 0))
    # Two columns with correlation rho: 2 (1 - rho), and 1 for the independent one.
    assert fitted.s == pytest.approx([2 * (1 - RHO)] * 2 + [1.0], abs=0.02)


def test_one_repeat_is_a_draw_from_the_conditional_distribution() -> None:
    X = gaussian(1, 1)
    fitted = Knockoffs().fit(gaussian(2000, 0))
    draws = new_columns(fitted, X, "x1", 4000)[:, 0]
    sd = np.sqrt(fitted.conditional_covariance[1, 1])
    assert draws.mean() == pytest.approx(fitted.conditional_mean(X)[0, 1], abs=4 * sd / np.sqrt(4000))
    assert draws.std() == pytest.approx(sd, rel=4 / np.sqrt(2 * 4000))


def test_conditional_mean_of_one_column_is_that_of_all() -> None:
    X = gaussian(20, 1)
    fitted = Knockoffs().fit(gaussian(100, 0))
    for at in range(3):
        assert fitted.conditional_mean(X, at) == pytest.approx(fitted.conditional_mean(X)[:, at], rel=1e-12)


def test_other_kinds_of_columns_are_neither_resampled_nor_conditioned_on() -> None:
    numbers = pd.DataFrame(gaussian(300, 0), columns=["a", "b", "c"])
    mixed = numbers.assign(label=np.where(numbers["a"] > 5, "high", "low"))
    fitted = Knockoffs().fit(mixed, ["a"])
    assert fitted.names == ("a", "b", "c")
    np.testing.assert_array_equal(
        new_columns(fitted, mixed, "a"), new_columns(Knockoffs().fit(numbers, ["a"]), numbers, "a")
    )
    with pytest.raises(ParameterError, match="'knockoffs' takes numeric columns, but 'label' is nominal"):
        Knockoffs().fit(mixed, ["label"])
    with pytest.raises(ParameterError, match="resamples the numeric columns a, b, c; got 'label'"):
        next(fitted.sample(mixed, "label", 1))


def test_scale_of_columns_does_not_matter() -> None:
    X = gaussian(300, 0)
    factors = np.array([1e-60, 1e60, 1e6])
    plain, scaled = Knockoffs().fit(X), Knockoffs().fit(X * factors)
    assert scaled.s == pytest.approx(plain.s, abs=1e-6)
    assert new_columns(scaled, X * factors, "x1") / 1e60 == pytest.approx(new_columns(plain, X, "x1"), abs=1e-4)


@both_methods
def test_a_feature_that_others_determine_is_warned_of(method: Literal["sdp", "equi"]) -> None:
    X = gaussian(500, 0)
    with pytest.warns(SubgroveWarning, match="'x0'.*nearly copies"):
        Knockoffs(method).fit(np.column_stack([X, X[:, 0]]), ["x0", "x1"])


copies_are_meant = pytest.mark.filterwarnings("ignore:Knockoffs of")


@copies_are_meant
@both_methods
def test_duplicate_columns_stay_close_to_each_other(method: Literal["sdp", "equi"]) -> None:
    X = gaussian(500, 0)
    X = np.column_stack([X, X[:, 0]])
    fitted = Knockoffs(method).fit(X)
    assert fitted.shrinkage == pytest.approx(1e-6, rel=0.01)
    moved = new_columns(fitted, X, "x0")[0] - X[:, 0]
    assert 0 < np.abs(moved).max() < 0.05 * X[:, 0].std()


@copies_are_meant
def test_duplicate_columns_leave_others_as_they_were() -> None:
    X = gaussian(500, 0)
    alone, doubled = Knockoffs().fit(X[:, 1:]), Knockoffs().fit(np.column_stack([X[:, 1:], X[:, 2]]))
    assert doubled.s[0] == pytest.approx(alone.s[0], abs=0.02)


@copies_are_meant
@both_methods
def test_sum_of_columns_is_not_nan(method: Literal["sdp", "equi"]) -> None:
    X = gaussian(500, 0)
    X = np.column_stack([X, X.sum(axis=1)])
    fitted = Knockoffs(method).fit(X)
    assert 0 < fitted.shrinkage < 2e-6
    for name in fitted.names:
        assert np.isfinite(new_columns(fitted, X, name)).all()


def test_constant_column_keeps_its_values() -> None:
    X = np.column_stack([gaussian(200, 0), np.full(200, 0.1)])
    fitted = Knockoffs().fit(X)
    assert fitted.s[3] == 0
    new = X[:5].copy()
    new[:, 3] = np.arange(5)
    np.testing.assert_array_equal(new_columns(fitted, new, "x3")[0], np.arange(5.0))
    np.testing.assert_allclose(new_columns(fitted, X, "x0"), new_columns(Knockoffs().fit(X[:, :3]), X[:, :3], "x0"))


def test_constant_columns_alone_keep_their_values() -> None:
    X = np.full((5, 2), 3.0)
    np.testing.assert_array_equal(new_columns(Knockoffs().fit(X), X, "x0")[0], X[:, 0])


@both_methods
def test_more_columns_than_rows_are_shrunk_as_the_sample_calls_for(method: Literal["sdp", "equi"]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 50))
    fitted = Knockoffs(method).fit(X)
    # The columns are independent: nearly all of their correlations is noise.
    assert 0.8 < fitted.shrinkage <= 1
    assert np.isfinite(new_columns(fitted, X, "x0")).all()
    assert fitted.s.min() > 0.9


def test_two_training_rows_are_enough_and_one_is_not() -> None:
    X = gaussian(2, 0)
    assert np.isfinite(new_columns(Knockoffs().fit(X), X, "x0")).all()
    with pytest.raises(InputError, match="train has 1 row"):
        Knockoffs().fit(X[:1])


@copies_are_meant
def test_shrinking_by_hand_is_recorded() -> None:
    X = gaussian(500, 0)
    assert Knockoffs().fit(X).shrinkage == 0
    assert Knockoffs(shrink=0.5).fit(X).shrinkage == 0.5
    assert Knockoffs(shrink=1).fit(X).s == pytest.approx(np.ones(3), abs=1e-7)
    assert Knockoffs(shrink=0).fit(np.column_stack([X, X])).shrinkage == pytest.approx(1e-6, rel=0.01)


@pytest.mark.parametrize("shrink", [-0.1, 1.1, "some", None])
def test_shrink_is_checked(shrink: Any) -> None:
    with pytest.raises(ParameterError, match="shrink"):
        Knockoffs(shrink=shrink).fit(gaussian(10, 0))


def test_method_is_checked() -> None:
    with pytest.raises(ParameterError, match="method must be 'sdp' or 'equi'; got 'asdp'"):
        Knockoffs("asdp").fit(gaussian(10, 0))  # type: ignore[arg-type]


def test_missing_value_in_any_numeric_column_raises_an_error_with_its_name() -> None:
    X = pd.DataFrame(gaussian(50, 0), columns=["a", "b", "c"])
    holed = X.copy()
    holed.loc[3, "c"] = np.nan
    with pytest.raises(ParameterError, match=r"takes no missing values, but there are some in 'c'"):
        Knockoffs().fit(holed, ["a"])
    fitted = Knockoffs().fit(X, ["a"])
    with pytest.raises(ParameterError, match=r"takes no missing values, but there are some in 'c'"):
        next(fitted.sample(holed, "a", 1))


def test_whole_numbers_become_floats_and_dates_stay_dates() -> None:
    rng = np.random.default_rng(0)
    count = rng.poisson(20, 100)
    X = pd.DataFrame({"count": count, "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(count, unit="D")})
    X["day"] += pd.to_timedelta(rng.integers(0, 5, 100), unit="D")
    fitted = Knockoffs().fit(X)
    (counts,) = fitted.sample(X, "count", 1)
    (days,) = fitted.sample(X, "day", 1)
    assert pd.Series(counts).dtype == np.float64
    assert pd.Series(days).dtype == X["day"].dtype
