"""Curves in subgroups, over their own rows and range, and the distribution of the feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from subgrove._effects import effect
from subgrove._subgroups import find_subgroups
from subgrove.exceptions import SameRowsWarning

from .models import SEASONS, model, rows

X = rows(400)
GROUPS = find_subgroups(rows(400, seed=1), min_samples_leaf=40)
KINDS: list[Any] = ["pdp", "ice", "ale", "mplot"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("feature", ["temp", "season", "flag", "day"])
def test_curve_of_a_subgroup_is_that_of_its_rows_alone(kind: Any, feature: str) -> None:
    curves = effect(model, X, feature, kind=kind, subgroups=GROUPS, grid_resolution=6).curves
    code = GROUPS[feature].assign(X)
    for subgroup, curve in curves.groupby("subgroup"):
        alone = effect(model, X[code == subgroup], feature, kind=kind, grid_resolution=6, subgroups=None).curves
        mine = curve.reset_index(drop=True)
        assert mine["rule"].unique().tolist() == [GROUPS[feature].rules[subgroup]]
        same = [name for name in mine.columns if name not in ("subgroup", "rule")]
        pd.testing.assert_frame_equal(mine[same], alone[same], check_exact=False, rtol=1e-12)


def test_partition_of_the_feature_is_accepted() -> None:
    one = effect(model, X, "temp", subgroups=GROUPS["temp"])
    assert one == effect(model, X, "temp", subgroups=GROUPS)


@pytest.mark.parametrize("kinds", [None, {"count": "ordered"}])
def test_curves_over_the_rows_that_subgroups_were_grown_on_are_computed_with_a_warning(kinds: Any) -> None:
    groups = find_subgroups(X, features="temp", kinds=kinds)
    with pytest.warns(SameRowsWarning, match="grown on the rows"):
        found = effect(model, X, "temp", subgroups=groups)
    assert len(found.lines) == len(groups["temp"])
    with pytest.warns(SameRowsWarning):
        effect(model, X[X.columns[::-1]], "temp", subgroups=groups)


def test_rows_that_subgroups_were_not_grown_on_give_no_warning() -> None:
    groups = find_subgroups(X, features="temp", given=["season", "hum"])
    effect(model, X.iloc[1:], "temp", subgroups=groups)
    # A column that the rules do not use may be missing, or may have changed.
    effect(lambda X: X["temp"], X.drop(columns="count"), "temp", subgroups=groups)
    effect(lambda X: X["temp"], X.assign(count="many"), "temp", subgroups=groups)
    effect(lambda X: X["temp"], X.assign(count=X["day"]), "temp", subgroups=groups)


def test_same_rows_in_another_container_are_the_same_rows() -> None:
    some = X[["temp", "hum"]]
    groups = find_subgroups(some, features="temp")
    with pytest.warns(SameRowsWarning):
        effect(lambda X: np.asarray(X["temp"]), pl.DataFrame(some.to_dict("list")), "temp", subgroups=groups)


def test_surface_in_subgroups_of_both_features() -> None:
    groups = find_subgroups(rows(400, seed=1), features=[("temp", "hum")], min_samples_leaf=60)
    found = effect(model, X, ("hum", "temp"), subgroups=groups, grid_resolution=3)
    assert len(found.curves) == 9 * len(groups["temp", "hum"])
    assert found.support["feature"].tolist() == ["hum"] * len(found.groups) + ["temp"] * len(found.groups)


def test_subgroup_without_rows_and_with_one_row_have_no_curve_but_are_listed() -> None:
    groups = find_subgroups(X, features="season", max_depth=1, min_samples_leaf=40)
    code = groups["season"].assign(X)
    one_left = pd.concat([X[code == 0], X[code == 1].head(1)])
    none_left = X[code == 0]
    for kind in KINDS:
        for some, n in ((one_left, 1), (none_left, 0)):
            found = effect(model, some, "season", kind=kind, subgroups=groups)
            assert set(found.curves["subgroup"]) == {0}
            assert found.support.groupby("subgroup")["n"].first().tolist() == [(code == 0).sum(), n]


def test_numeric_support_of_small_subgroups_is_stated() -> None:
    groups = find_subgroups(X, features="temp", max_depth=1, min_samples_leaf=40)
    code = groups["temp"].assign(X)
    support = effect(model, X[code == 0], "temp", subgroups=groups).support
    assert support["n"].tolist() == [(code == 0).sum(), 0]
    assert support.loc[1, ["low", "q1", "median", "high"]].isna().all()


def test_table_is_empty_when_no_subgroup_has_a_curve() -> None:
    groups = find_subgroups(X, features="temp", max_depth=1, min_samples_leaf=40)
    found = effect(model, X.head(1), "temp", subgroups=groups)
    assert len(found.curves) == 0
    assert found.support["n"].sum() == 1
    assert np.isnan(found.predict(X.head(3))).all()


def test_support_counts_levels() -> None:
    found = effect(model, X, "season", subgroups=GROUPS).support
    code = GROUPS["season"].assign(X)
    counts = [((X["season"] == level) & (code == k)).sum() for k in range(len(GROUPS["season"])) for level in SEASONS]
    assert found["count"].tolist() == counts
    assert found["level"].tolist() == SEASONS * len(GROUPS["season"])


def test_outliers_are_the_values_beyond_the_whiskers() -> None:
    some = rows(60).assign(temp=[*np.linspace(0, 10, 57), 99.0, 99.0, -50.0])
    found = effect(model, some, "temp", subgroups=None)
    assert found.outliers[["x", "n"]].to_numpy().tolist() == [[-50.0, 1.0], [99.0, 2.0]]
    assert found.support[["low", "high"]].to_numpy().tolist() == [[-50.0, 99.0]]
    assert found.support[["whisker_low", "whisker_high"]].to_numpy().tolist() == [[0.0, 10.0]]


@pytest.mark.parametrize(
    ("x", "hinges"),
    [
        ([1, 2, 3, 4, 5], (2, 3, 4)),
        ([1, 2, 3, 4], (1.5, 2.5, 3.5)),
        ([1, 2, 3, 4, 5, 6, 7], (2.5, 4, 5.5)),
        ([8], (8, 8, 8)),
    ],
)
def test_quartiles_are_tukeys_hinges(x: list[float], hinges: tuple[float, ...]) -> None:
    some = rows(len(x)).assign(temp=np.array(x, dtype=float))
    assert tuple(effect(model, some, "temp", subgroups=None).support[["q1", "median", "q3"]].iloc[0]) == hinges


def test_dates_have_box_statistics_in_dates() -> None:
    support = effect(model, X, "day", subgroups=None).support
    assert support["low"].item() == X["day"].min()
    assert X["day"].min() < support["median"].item() < X["day"].max()
