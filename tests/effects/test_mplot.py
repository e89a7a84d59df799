"""M-plots: mean predictions of rows with about the same value."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._effects import effect
from subgrove._subgroups import find_subgroups

from .models import SEASONS, model, rows


def test_curve_is_the_mean_prediction_in_intervals_of_equal_counts() -> None:
    X = rows(100)
    curves = effect(model, X, "hum", kind="mplot", grid_resolution=5).curves
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


def test_levels_can_be_selected() -> None:
    X = rows()
    whole = effect(model, X, "season", kind="mplot").curves.set_index("x")["estimate"]
    for grid in (["WINTER"], ["FALL", "WINTER"]):
        curves = effect(model, X, "season", kind="mplot", grid=grid).curves
        assert curves["x"].tolist() == grid
        assert curves["estimate"].tolist() == pytest.approx(whole[grid].tolist())
        assert curves["n"].tolist() == [(X["season"] == level).sum() for level in grid]


def test_subgroup_without_rows_of_the_selected_levels_has_no_curve() -> None:
    groups = find_subgroups(rows(400, seed=1), features="season", max_depth=1)
    X = rows(400)
    code = groups["season"].assign(X)
    found = effect(model, X, "season", kind="mplot", grid=SEASONS[:1], subgroups=groups)
    X = X[(code == 0) | (X["season"] != SEASONS[0])]
    assert len(found.lines) == 2
    found = effect(model, X, "season", kind="mplot", grid=SEASONS[:1], subgroups=groups)
    assert set(found.curves["subgroup"]) == {0}


def test_rows_are_assigned_to_the_nearest_user_point() -> None:
    X = rows()
    curves = effect(model, X, "temp", kind="mplot", grid=[10.0, 20.0, 500.0]).curves
    assert curves["n"].tolist() == [(X["temp"] <= 15).sum(), (X["temp"] > 15).sum(), 0]
    assert curves["estimate"].iloc[0] == pytest.approx(model(X)[X["temp"] <= 15].mean())
    assert np.isnan(curves["estimate"].iloc[2])


def test_predict_skips_points_without_rows() -> None:
    X = rows()
    found = effect(model, X, "temp", kind="mplot", grid=[10.0, 20.0, 500.0])
    assert found.predict([400.0]).tolist() == [found.curves["estimate"].iloc[1]]
