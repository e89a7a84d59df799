"""Intervals moves each row to a border of its interval, both borders being equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._core.execution import Streams
from subgrove.exceptions import ParameterError
from subgrove.samplers.intervals import FittedIntervals, Intervals
from subgrove.samplers.resampled_feature import ResampledFeature

SIZES = pd.CategoricalDtype(["s", "m", "l", "xl"], ordered=True)


def fitted_on(values: Any, n_intervals: int) -> FittedIntervals:
    return Intervals(n_intervals).fit(pd.DataFrame({"x": values}))


def drawn(fitted: FittedIntervals, values: Any, n_repeats: int = 40) -> np.ndarray[Any, Any]:
    """A line for each repeat, a column for each row."""
    X = pd.DataFrame({"x": values})
    return np.array([list(column) for column in fitted.sample(X, "x", Streams(0, "x", n_repeats))])


def resampled_feature(fitted: FittedIntervals, X: pd.DataFrame, n_repeats: int = 2) -> ResampledFeature:
    return fitted.resample(fitted.read(X), ("x",), Streams(0, "x", n_repeats))


def test_borders_are_type_1_quantiles() -> None:
    # The smallest value v such that a share k / 4 of the 10 rows is at most v: ranks 1, 3, 5, 8 and 10.
    assert fitted_on(np.arange(1.0, 11.0), 4).borders["x"].tolist() == [1.0, 3.0, 5.0, 8.0, 10.0]


def test_rank_of_a_border_is_not_rounded_up_by_floats() -> None:
    # 0.07 * 100 is 7.000000000000001 in floats: the border would be 8.
    assert fitted_on(np.arange(1.0, 101.0), 100).borders["x"].tolist() == list(range(1, 101))


def test_equal_borders_are_merged() -> None:
    assert fitted_on([0.0] * 9 + [1.0], 5).borders["x"].tolist() == [0.0, 1.0]


def test_intervals_are_open_on_the_left_and_the_minimum_is_in_the_first() -> None:
    fitted = fitted_on(np.arange(1.0, 10.0), 2)
    assert fitted.borders["x"].tolist() == [1.0, 5.0, 9.0]
    rows = drawn(fitted, [1.0, 2.0, 5.0, 5.5, 9.0])
    assert [sorted(set(column)) for column in rows.T] == [[1, 5], [1, 5], [1, 5], [5, 9], [5, 9]]


def test_values_beyond_training_go_to_the_nearest_interval() -> None:
    rows = drawn(fitted_on(np.arange(1.0, 10.0), 2), [-100.0, 100.0])
    assert [sorted(set(column)) for column in rows.T] == [[1, 5], [5, 9]]


def test_either_border_is_equally_likely() -> None:
    rows = drawn(fitted_on(np.arange(1.0, 10.0), 2), [2.0] * 100, n_repeats=100)
    # 10,000 fair coins: the share has a standard deviation of 0.005.
    assert (rows == 1.0).mean() == pytest.approx(0.5, abs=4 * 0.005)


def test_rows_have_coins_of_their_own() -> None:
    rows = drawn(fitted_on(np.arange(1.0, 10.0), 2), [2.0, 2.0], n_repeats=50)
    assert (rows[:, 0] != rows[:, 1]).any()


def test_expectation_is_exact_in_two_steps() -> None:
    fitted = fitted_on(np.arange(1.0, 10.0), 2)
    resampled = resampled_feature(fitted, pd.DataFrame({"x": [1.0, 2.0, 5.0]}))
    assert resampled.exact is not None
    assert resampled.exact.rows.all()
    left, right = resampled.exact.terms()
    # A row that stands on a border is not given its own value.
    assert left.rows.tolist() == [1, 2]
    assert right.rows.tolist() == [0, 1]
    assert left.weights.tolist() == right.weights.tolist() == [0.5, 0.5]


def test_ordered_levels_come_back_as_levels() -> None:
    train = pd.Series(["xl", "l", "m", "s", "s"], dtype=SIZES)
    fitted = fitted_on(train, 3)
    assert fitted.borders["x"].tolist() == [1.0, 3.0, 4.0]
    columns = list(fitted.sample(pd.DataFrame({"x": train}), "x", 20))
    assert all(column.dtype == SIZES for column in columns)
    assert {column[1] for column in columns} == {"s", "l"}


def test_whole_numbers_and_dates_keep_their_dtype() -> None:
    days = pd.date_range("2020-01-01", periods=9)
    X = pd.DataFrame({"count": np.arange(9), "day": days})
    fitted = Intervals(2).fit(X)
    for name in X.columns:
        for column in fitted.sample(X, name, 3):
            assert pd.Series(column).dtype == X[name].dtype
            assert set(column) <= set(X[name].iloc[[0, 4, 8]])


def test_constant_column_is_moved_to_its_one_value() -> None:
    assert (drawn(fitted_on([7.0, 7.0], 30), [7.0, 8.0]) == 7.0).all()
    resampled = resampled_feature(fitted_on([7.0, 7.0], 30), pd.DataFrame({"x": [7.0]}))
    assert resampled.exact is not None
    assert all(len(step.rows) == 0 for step in resampled.exact.terms())


def test_missing_values_raise_an_error_in_training() -> None:
    with pytest.raises(ParameterError, match=r"'intervals' takes no missing values, but column 'x'"):
        fitted_on([1.0, None, 2.0], 2)


def test_missing_values_raise_an_error_at_resampling_with_the_row() -> None:
    with pytest.raises(ParameterError, match=r"a missing value: column 'x' has 1 such rows, the first is row 1"):
        resampled_feature(fitted_on([1.0, 2.0], 2), pd.DataFrame({"x": [1.0, None]}))


def test_level_that_training_did_not_have_raises_an_error() -> None:
    fitted = fitted_on(pd.Series(["a", "b"], dtype=pd.CategoricalDtype(["a", "b"], ordered=True)), 2)
    new = pd.DataFrame({"x": pd.Series(["c"], dtype=pd.CategoricalDtype(["a", "b", "c"], ordered=True))})
    with pytest.raises(ParameterError, match="a level that is absent from training"):
        resampled_feature(fitted, new)


def test_number_of_intervals_is_checked() -> None:
    with pytest.raises(ParameterError, match="n_intervals must be a whole number >= 1"):
        fitted_on([1.0, 2.0], 0)


def test_feature_that_was_not_fitted_is_named() -> None:
    X = pd.DataFrame({"x": [1.0, 2.0], "z": [1.0, 2.0]})
    fitted = Intervals().fit(X, ["x"])
    with pytest.raises(ParameterError, match=r"was not fitted for 'z', only for 'x'"):
        next(fitted.sample(X, "z", 1))
