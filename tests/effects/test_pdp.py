"""Partial dependence: Equation (2) of the paper, written out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._effects import effect

from .models import SEASONS, SIZES, model, rows


def by_hand(X: pd.DataFrame, **values: Any) -> float:
    """The mean prediction with columns set to one value."""
    changed = X.copy()
    for name, value in values.items():
        changed[name] = pd.Series([value] * len(X)).astype(X[name].dtype) if X[name].dtype != int else value
    return float(model(changed).mean())


@pytest.mark.parametrize("feature", ["temp", "hum"])
def test_numeric_curve_is_the_mean_prediction_at_equal_steps(feature: str) -> None:
    X = rows()
    curves = effect(model, X, feature, grid="uniform", grid_resolution=7, subgroups=None).curves
    np.testing.assert_allclose(curves["x"], np.linspace(X[feature].min(), X[feature].max(), 7), rtol=1e-14)
    expected = [by_hand(X, **{feature: x}) for x in curves["x"]]
    np.testing.assert_allclose(curves["estimate"], expected, rtol=1e-12)


def test_half_of_the_points_of_a_skewed_feature_are_among_most_of_its_rows() -> None:
    """Equal steps over the range had 1 of 20 points among 90 % of the rows."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"income": rng.lognormal(0, 2, 500), "z": rng.normal(size=500)})
    found = effect(lambda X: np.log(X["income"]) + X["z"], X, "income").curves["x"].to_numpy()
    assert len(found) == 20
    assert (found[0], found[-1]) == (X["income"].min(), X["income"].max())
    assert (found <= X["income"].quantile(0.9)).sum() >= 9
    assert (found >= X["income"].quantile(0.99)).sum() >= 7, "the tail is drawn too"


def test_the_points_of_a_uniform_feature_are_about_equal_steps() -> None:
    X = pd.DataFrame({"x": np.linspace(2, 5, 101), "z": 0.0})
    found = effect(lambda X: X["x"], X, "x", grid_resolution=7).curves["x"]
    np.testing.assert_allclose(found, np.linspace(2, 5, 7), rtol=1e-12)


def test_points_depend_on_rows_and_not_on_how_they_are_written() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"x": rng.exponential(size=60), "z": rng.normal(size=60)})
    times = rng.integers(1, 4, 60)
    weighted = effect(lambda X: X["x"] * X["z"], X, "x", sample_weight=times.astype(float)).curves
    repeated = effect(lambda X: X["x"] * X["z"], X.loc[X.index.repeat(times)], "x").curves
    np.testing.assert_allclose(weighted["x"], repeated["x"], rtol=1e-12)


def test_dummy_column_has_points_at_0_and_1() -> None:
    X = rows().assign(count=lambda X: (X["count"] > 4).astype(int))
    curves = effect(model, X, "count", subgroups=None).curves
    assert curves["x"].tolist() == [0, 1]
    np.testing.assert_allclose(curves["estimate"], [by_hand(X, count=x) for x in (0, 1)], rtol=1e-12)


@pytest.mark.parametrize("grid_resolution", [4, 9])
def test_integers_have_points_at_integers(grid_resolution: int) -> None:
    x = effect(model, rows(), "count", grid_resolution=grid_resolution, subgroups=None).curves["x"].tolist()
    assert x == ([0, 3, 5, 8] if grid_resolution == 4 else list(range(9)))


def test_few_integers_have_a_point_each() -> None:
    X = rows().assign(count=lambda X: np.where(X["count"] > 4, 1000, X["count"]))
    assert effect(model, X, "count", subgroups=None).curves["x"].tolist() == [0, 1, 2, 3, 4, 1000]


def test_integer_points_are_distinct() -> None:
    X = rows().assign(count=lambda X: np.arange(len(X)) % 25)
    assert effect(model, X, "count", grid_resolution=24, subgroups=None).curves["x"].is_unique


@pytest.mark.parametrize(("feature", "levels"), [("season", SEASONS), ("size", SIZES), ("flag", [False, True])])
def test_curve_of_levels_has_every_level_in_its_order(feature: str, levels: list[Any]) -> None:
    X = rows()
    curves = effect(model, X, feature, subgroups=None).curves
    assert curves["x"].tolist() == [str(level) for level in levels]
    np.testing.assert_allclose(curves["estimate"], [by_hand(X, **{feature: level}) for level in levels], rtol=1e-12)


def test_levels_without_rows_have_no_point() -> None:
    X = rows().query("season != 'SUMMER'")
    assert effect(model, X, "season", subgroups=None).curves["x"].tolist() == ["WINTER", "SPRING", "FALL"]


def test_grid_of_dates_is_in_whole_days_where_the_dates_are() -> None:
    X = rows()
    curves = effect(model, X, "day", grid_resolution=4, subgroups=None).curves
    assert curves["x"].iloc[0] == X["day"].min()
    assert curves["x"].iloc[-1] == X["day"].max()
    assert (curves["x"].dt.normalize() == curves["x"]).all()
    np.testing.assert_allclose(curves["estimate"], [by_hand(X, day=x) for x in curves["x"]], rtol=1e-12)


def test_grid_of_dates_is_accepted() -> None:
    X = rows()
    found = effect(model, X, "day", grid=[datetime(2020, 5, 1), datetime(2020, 6, 1)], subgroups=None)
    assert found.curves["estimate"].tolist() == pytest.approx([by_hand(X, day=x) for x in found.curves["x"]])


def test_durations_have_points() -> None:
    X = pd.DataFrame({"wait": pd.to_timedelta([1, 2, 5], unit="h"), "z": [1.0, 2.0, 3.0]})
    hours = pd.to_timedelta([1, 3, 5], unit="h")
    curves = effect(
        lambda X: X["wait"].dt.total_seconds() / 3600 + X["z"], X, "wait", grid=hours, subgroups=None
    ).curves
    assert curves["x"].tolist() == [pd.Timedelta(hours=hours) for hours in (1, 3, 5)]
    assert curves["estimate"].tolist() == pytest.approx([3.0, 5.0, 7.0])


def test_quantiles_are_values_of_rows() -> None:
    X = rows()
    x = effect(model, X, "temp", grid="quantiles", grid_resolution=5, subgroups=None).curves["x"]
    assert set(x) <= set(X["temp"])
    assert x.iloc[2] == X["temp"].sort_values().iloc[59]  # half of 120 rows are not above


def test_grid_is_sorted_and_without_duplicates() -> None:
    assert effect(model, rows(), "temp", grid=[20, 1, 20], subgroups=None).curves["x"].tolist() == [1.0, 20.0]


def test_user_levels_keep_their_order() -> None:
    assert effect(model, rows(), "season", grid=["FALL", "WINTER"], subgroups=None).curves["x"].tolist() == [
        "FALL",
        "WINTER",
    ]
    assert effect(model, rows(), "flag", grid=[True], subgroups=None).curves["x"].tolist() == ["True"]


def test_constant_column_has_one_point() -> None:
    X = rows().assign(temp=3.0)
    curves = effect(model, X, "temp", subgroups=None).curves
    assert curves["x"].tolist() == [3.0]
    assert curves["estimate"].tolist() == pytest.approx([model(X).mean()])


def test_a_single_row_has_a_curve_without_an_error() -> None:
    curves = effect(model, rows().head(1), "temp", grid=[1.0, 2.0], subgroups=None).curves
    assert len(curves) == 2
    assert curves["std_error"].isna().all()


@pytest.mark.parametrize("pair", [("temp", "hum"), ("season", "temp"), ("temp", "season"), ("flag", "size")])
def test_surface_is_the_mean_prediction_on_the_cross_of_both_grids(pair: tuple[str, str]) -> None:
    X = rows(40)
    curves = effect(model, X, pair, grid_resolution=3, subgroups=None).curves
    one, two = (effect(model, X, name, grid_resolution=3, subgroups=None).curves["x"].tolist() for name in pair)
    assert list(zip(curves["x1"], curves["x2"], strict=True)) == [(x1, x2) for x1 in one for x2 in two]
    plain = {"False": False, "True": True}
    expected = [
        by_hand(X, **{pair[0]: plain.get(x1, x1), pair[1]: plain.get(x2, x2)})
        for x1, x2 in zip(curves["x1"], curves["x2"], strict=True)
    ]
    np.testing.assert_allclose(curves["estimate"], expected, rtol=1e-12)


def test_grids_of_a_surface_are_named() -> None:
    curves = effect(
        model, rows(), ("temp", "season"), grid={"temp": [0, 10], "season": ["FALL"]}, subgroups=None
    ).curves
    assert curves[["x1", "x2"]].to_numpy().tolist() == [[0.0, "FALL"], [10.0, "FALL"]]


def test_standard_error_is_that_of_a_mean_of_ice_values() -> None:
    X = rows()
    curves = effect(model, X, "temp", grid=[5.0], subgroups=None).curves
    ice = model(X.assign(temp=5.0))
    assert curves["std_error"].item() == pytest.approx(ice.std(ddof=1) / np.sqrt(len(X)), rel=1e-12)
    # 1.980 is the 97.5 % quantile of Student's t with 119 degrees of freedom.
    margin = (curves["conf_high"] - curves["estimate"]) / curves["std_error"]
    assert margin.item() == pytest.approx(1.9801, abs=1e-4)


def test_levels_have_the_distribution_of_their_predictions() -> None:
    X = rows()
    curves = effect(model, X, "season", subgroups=None).curves
    ice = np.sort(model(X.assign(season=pd.Categorical(["FALL"] * len(X), SEASONS))))
    fall = curves[curves["x"] == "FALL"].iloc[0]
    assert fall["median"] == pytest.approx(ice[59:61].mean())
    assert fall["q1"] == pytest.approx(ice[29:31].mean())  # hinge: the median of the lower half, 60 rows
    assert fall["whisker_high"] == ice[ice <= fall["q3"] + 1.5 * (fall["q3"] - fall["q1"])].max()


def test_grid_of_numbers_whose_range_overflows_is_finite() -> None:
    table = pd.DataFrame({"x": [1e308, -1e308] * 20, "z": np.arange(40.0)})
    found = effect(lambda Z: np.asarray(Z["z"]), table, "x", subgroups=None)
    assert np.isfinite(found.curves["x"]).all()
    assert (found.curves["x"].min(), found.curves["x"].max()) == (-1e308, 1e308)
