"""Accumulated local effects."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from subgrove._effects import effect

from .models import SEASONS, model, rows


def test_linear_effect_is_a_line_of_mean_zero() -> None:
    X = rows()
    curves = effect(lambda X: 3 * X["temp"] + X["hum"] ** 2, X, "temp", kind="ale", grid_resolution=10).curves
    np.testing.assert_allclose(np.diff(curves["estimate"]), 3 * np.diff(curves["x"]), rtol=1e-9)
    # Without interactions all rows agree on every step: the error is that of the mean of 3 temp, up to rounding of temp
    # to the middles of ten intervals.
    np.testing.assert_allclose(curves["std_error"], 3 * X["temp"].std() / np.sqrt(len(X)), rtol=0.05)


def test_correlated_feature_that_is_not_used_has_a_flat_curve() -> None:
    X = rows()
    assert effect(lambda X: X["temp"] ** 2, X, "season", kind="ale").curves["estimate"].abs().max() == 0


def by_hand(X: pd.DataFrame, order: list[str]) -> dict[str, float]:
    """Levels: a step is the mean over the rows of both levels; the mean over rows is 0."""
    values = [0.0]
    for one, two in pairwise(order):
        some = X[X["season"].isin([one, two])]
        levels = [pd.Categorical([level] * len(some), SEASONS) for level in (one, two)]
        values.append(
            values[-1] + float((model(some.assign(season=levels[1])) - model(some.assign(season=levels[0]))).mean())
        )
    centre = np.mean([values[order.index(level)] for level in X["season"].astype(str)])
    return {level: value - float(centre) for level, value in zip(order, values, strict=True)}


def test_levels_are_accumulated_over_the_rows_of_both_neighbours() -> None:
    X = rows(300)
    curves = effect(model, X, "season", kind="ale").curves
    expected = by_hand(X, curves["x"].tolist())
    assert curves["estimate"].tolist() == pytest.approx([expected[level] for level in curves["x"]])


def test_levels_are_ordered_by_similarity_with_the_first_one_first() -> None:
    # By temperature the order is that of the seasons; their labels say otherwise.
    X = rows(400)[["temp", "season"]]
    X["season"] = X["season"].astype(str)
    x = effect(lambda X: X["temp"], X, "season", kind="ale").curves["x"].tolist()
    assert x in (SEASONS, SEASONS[::-1])
    assert x.index("FALL") < 2  # the first level by name


def test_ordered_levels_keep_their_order() -> None:
    assert effect(model, rows(), "size", kind="ale").curves["x"].tolist() == ["s", "m", "l"]


def test_user_order_of_levels_is_respected() -> None:
    order = ["FALL", "WINTER", "SPRING", "SUMMER"]
    X = rows(300)
    curves = effect(model, X, "season", kind="ale", grid=order).curves
    assert curves["x"].tolist() == order
    assert curves["estimate"].tolist() == pytest.approx(list(by_hand(X, order).values()))


def test_user_borders_exclude_rows_outside() -> None:
    X = rows()
    found = effect(model, X, "temp", kind="ale", grid=[10, 15, 20])
    assert found.curves["x"].tolist() == [10, 15, 20]
    assert found.curves["n"].tolist() == [X["temp"].between(10, 20).sum()] * 3


def test_empty_interval_has_no_step() -> None:
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 8.0, 9.0, 10.0], "b": np.arange(6.0)})
    curves = effect(lambda X: X["a"] * X["b"], X, "a", kind="ale", grid=[0.0, 3.0, 7.0, 10.0]).curves
    assert curves["estimate"].iloc[1] == curves["estimate"].iloc[2]
    assert curves["std_error"].notna().all()


def test_constant_column_has_one_point_at_zero() -> None:
    curves = effect(model, rows().assign(temp=3.0), "temp", kind="ale").curves
    assert curves[["x", "estimate"]].to_numpy().tolist() == [[3.0, 0.0]]


def test_column_of_one_level_has_one_point_at_zero() -> None:
    X = rows().query("season == 'FALL'")
    curves = effect(model, X, "season", kind="ale").curves
    assert curves[["x", "estimate"]].to_numpy().tolist() == [["FALL", 0.0]]


def test_error_is_known_if_some_interval_has_two_rows() -> None:
    assert effect(model, rows(10), "hum", kind="ale", grid_resolution=9).curves["std_error"].notna().all()


@pytest.mark.parametrize("feature", ["hum", "season"])
def test_errors_do_not_depend_on_the_scale_of_weights(feature: str) -> None:
    curves = effect(model, rows(), feature, kind="ale", sample_weight=np.full(120, 1 / 120)).curves
    pd.testing.assert_frame_equal(curves, effect(model, rows(), feature, kind="ale").curves)


def test_error_is_unknown_if_every_interval_has_one_row() -> None:
    X = pd.DataFrame({"a": [0.5, 1.5, 2.5], "b": np.arange(3.0)})
    curves = effect(lambda X: X["a"] * X["b"], X, "a", kind="ale", grid=[0.0, 1.0, 2.0, 3.0]).curves
    assert curves["std_error"].isna().all()
