"""M-plots: means of predictions of rows that have about this value."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._effects import effect

from .models import model, rows


def test_curve_is_the_mean_prediction_in_intervals_of_equal_counts() -> None:
    X = rows(100)
    curves = effect(model, X, "hum", kind="mplot", n_points=5).curves
    order = X["hum"].to_numpy().argsort().reshape(5, 20)
    np.testing.assert_allclose(curves["x"], X["hum"].to_numpy()[order].mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(curves["estimate"], model(X)[order].mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(curves["std_error"], model(X)[order].std(axis=1, ddof=1) / np.sqrt(20), rtol=1e-12)
    assert curves["n"].tolist() == [20] * 5


def test_levels_have_the_mean_prediction_of_their_rows() -> None:
    X = rows()
    curves = effect(model, X, "season", kind="mplot").curves
    expected = X.assign(value=model(X)).groupby("season", observed=True)["value"].mean()
    assert curves["estimate"].tolist() == pytest.approx(expected.tolist())
    assert curves["n"].tolist() == X["season"].value_counts(sort=False).tolist()


def test_given_points_count_the_rows_that_are_nearest() -> None:
    X = rows()
    curves = effect(model, X, "temp", kind="mplot", grid=[10.0, 20.0, 500.0]).curves
    assert curves["n"].tolist() == [(X["temp"] <= 15).sum(), (X["temp"] > 15).sum(), 0]
    assert curves["estimate"].iloc[0] == pytest.approx(model(X)[X["temp"] <= 15].mean())
    assert np.isnan(curves["estimate"].iloc[2])


def test_points_without_rows_are_passed_over_by_predict() -> None:
    X = rows()
    found = effect(model, X, "temp", kind="mplot", grid=[10.0, 20.0, 500.0])
    assert found.predict([400.0]).tolist() == [found.curves["estimate"].iloc[1]]
