"""ICE curves, their mean, and their opacity."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._effects import effect
from subgrove._effects.grid import GridAxis
from subgrove._effects.subgroup_rows import opacity_of
from subgrove._subgroups import find_subgroups
from subgrove.trees import TransformationModel

from .models import model, rows


def test_each_row_has_its_own_curve() -> None:
    X = rows(20)
    ice = effect(model, X, "temp", kind="ice", grid=[0.0, 9.0], subgroups=None).ice
    assert ice["row"].tolist() == [row for row in range(20) for _ in range(2)]
    for x, values in ice.groupby("x"):
        np.testing.assert_allclose(values["estimate"], model(X.assign(temp=x)), rtol=1e-12)


@pytest.mark.parametrize("feature", ["temp", "season", "day"])
def test_mean_of_ice_is_partial_dependence(feature: str) -> None:
    X = rows()
    one, two = (
        effect(model, X, feature, kind=kind, grid_resolution=5, subgroups=None).curves for kind in ("ice", "pdp")
    )
    assert one.equals(two)


def test_row_numbers_are_those_of_x_within_subgroups() -> None:
    X = rows(200)
    groups = find_subgroups(rows(200, seed=1), features="temp", min_samples_leaf=20)
    ice = effect(model, X, "temp", kind="ice", subgroups=groups, grid_resolution=3).ice
    assert sorted(ice["row"].unique()) == list(range(200))
    assert (groups["temp"].assign(X)[ice["row"]] == ice["subgroup"]).all()


def test_centred_curves_start_at_zero_and_keep_their_shape() -> None:
    X = rows()
    found = effect(model, X, "temp", kind="ice", grid_resolution=4, subgroups=None)
    centred = found.centred()
    first = centred.ice.groupby("row")["estimate"].first()
    assert (first == 0).all()
    assert (centred.curves["estimate"] - found.curves["estimate"]).std() < 1e-9
    assert centred.curves["std_error"].iloc[0] == 0
    assert found.ice["estimate"].iloc[0] != 0  # what was centred is a copy


def test_opacity_is_highest_where_the_leaf_is_densest() -> None:
    X = rows(400)
    groups = find_subgroups(rows(400, seed=1), features=["temp", "season"], min_samples_leaf=50)
    for feature in ("temp", "season"):
        ice = effect(model, X, feature, kind="ice", subgroups=groups, grid_resolution=30).ice
        assert ice["opacity"].between(0, 1).all()
        by_group = ice.groupby("subgroup")["opacity"].max()
        assert (by_group > 0.95).all()


def test_opacity_is_zero_far_from_the_subgroup() -> None:
    X = rows(400)
    groups = find_subgroups(rows(400, seed=1), features="temp", min_samples_leaf=50)
    ice = effect(model, X, "temp", kind="ice", subgroups=groups, grid=[-200.0, 15.0, 200.0]).ice
    assert (ice.loc[ice["x"] != 15, "opacity"] == 0).all()


def test_opacity_is_the_density_of_the_leaf_where_it_has_a_model() -> None:
    X = rows(400)[["temp", "hum"]]
    tree = find_subgroups(X, features="temp")["temp"].tree  # nothing to split on: the root is fitted, and a leaf
    (leaf,) = tree.leaves
    assert leaf.theta is not None
    density = TransformationModel().fit(X["temp"])
    fine = np.linspace(X["temp"].min(), X["temp"].max(), 2000)
    x = np.linspace(0, 30, 7)
    expected = density.pdf(x) / density.pdf(fine).max()
    np.testing.assert_allclose(opacity_of(tree, leaf, GridAxis(tree.target, x)), expected, rtol=1e-3)


def test_without_subgroups_there_is_no_opacity() -> None:
    assert "opacity" not in effect(model, rows(), "temp", kind="ice", grid_resolution=2, subgroups=None).ice
