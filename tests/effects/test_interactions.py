"""Subgroups are split further where ICE curves differ in shape, with the reason of each split."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context

import subgrove as sg
from subgrove._data.columns import ColumnInfo
from subgrove._effects import effect
from subgrove._effects.interaction_search import best_split
from subgrove._subgroups import find_subgroups
from subgrove.exceptions import ParameterError

from .models import Counting, model, rows

X = rows(300)
GROUPS = find_subgroups(rows(300, seed=1), min_samples_leaf=30)


def by_hum(X: Any) -> Any:
    """The slope of temp is 1 where hum is above 60, and 0 elsewhere."""
    return (np.asarray(X["temp"]) * (np.asarray(X["hum"]) > 60)) + np.asarray(X["count"])


@pytest.mark.parametrize("kind", ["pdp", "ice"])
@pytest.mark.parametrize("subgroups", [None, GROUPS], ids=["all rows", "subgroups"])
@pytest.mark.parametrize("feature", ["temp", "count", "season", "size", "flag", "day"])
def test_interactions_need_no_further_predictions(feature: str, subgroups: Any, kind: Any) -> None:
    plain, split = Counting(), Counting()
    one = effect(plain, X, feature, kind=kind, subgroups=subgroups, grid_resolution=6)
    two = effect(split, X, feature, kind=kind, subgroups=subgroups, interactions=True, grid_resolution=6)
    assert plain.n_rows == one.n_rows_predicted
    assert split.n_rows == two.n_rows_predicted <= plain.n_rows
    assert two.n_calls <= one.n_calls
    if subgroups is None or feature in ("season", "size", "flag"):
        assert split.n_rows == plain.n_rows
    options = split.n_rows
    _ = two.curves, two.splits, two.support, two.predict(X), repr(two)
    assert split.n_rows == options


def test_interaction_is_found_with_its_reason() -> None:
    found = effect(by_hum, X, "temp", subgroups=GROUPS, interactions=True)
    made = found.splits[found.splits["reason"] == "interaction"]
    assert set(made["column"]) == {"hum"}
    assert set(found.curves["reason"]) <= {"interaction", "dependence"}
    for rule, reason in zip(found.support["rule"], found.support["reason"], strict=True):
        assert ("hum" in rule) == (reason == "interaction")
    assert found.heterogeneity is not None
    assert found.heterogeneity.explained("interaction") > 0.9


def test_without_subgroups_all_rows_are_split() -> None:
    found = effect(by_hum, X, "temp", interactions=True, grid_resolution=5, subgroups=None)
    below = X["hum"][X["hum"] <= 60].max()
    assert found.support["rule"].tolist() == [f"hum <= {below:.6g}", f"hum > {below:.6g}"] or len(found.support) == 2
    assert found.subgroups is not None
    np.testing.assert_array_equal(found.subgroups.assign(X), (X["hum"] > 60).astype(int))
    slopes = found.curves.groupby("subgroup")["estimate"].agg(lambda one: one.iloc[-1] - one.iloc[0])
    np.testing.assert_allclose(slopes, [0, X["temp"].max() - X["temp"].min()], atol=1e-9)
    assert found.splits["share"].tolist() == pytest.approx([1.0, 0.0])


def test_curves_are_those_of_the_rows_in_the_group() -> None:
    """The mean over the rows of a group, at the points of the subgroup that it is part of."""
    found = effect(by_hum, X, "temp", subgroups=GROUPS, interactions=True, grid_resolution=4)
    assert found.subgroups is not None
    group = found.subgroups.assign(X)
    for (number, x), line in found.curves.groupby(["subgroup", "x"]):
        own = X[group == number].assign(temp=x)
        assert line["estimate"].item() == pytest.approx(by_hum(own).mean())
        assert line["n"].item() == len(own)


def test_rows_of_ice_are_sorted_into_the_groups_of_their_rules() -> None:
    grid = [5.0, 15.0, 25.0]
    plain = effect(model, X, "temp", kind="ice", subgroups=GROUPS, grid=grid).ice
    found = effect(model, X, "temp", kind="ice", subgroups=GROUPS, interactions=True, grid=grid)
    key = ["row", "x"]
    both = plain.merge(found.ice, on=key, suffixes=("", "_split"))
    assert len(both) == len(plain) == len(found.ice)
    np.testing.assert_array_equal(both["estimate"], both["estimate_split"])
    assert found.subgroups is not None
    np.testing.assert_array_equal(found.subgroups.assign(X)[found.ice["row"]], found.ice["subgroup"])
    assert (found.ice["opacity"] > 0).any()


def test_shares_sum_to_one() -> None:
    """Explained and unexplained shares sum to 1, and the share of a dependence split is never negative."""
    for feature in ("temp", "season", "flag"):
        found = effect(model, X, feature, subgroups=GROUPS, interactions=True)
        assert found.splits["share"].sum() == pytest.approx(1.0)
        assert (found.splits["share"] >= 0).all()


def test_unexplained_share_is_the_heterogeneity_within_groups() -> None:
    """Recomputed from the table of curves, by the definition; without dependence all rows have the same points."""
    found = effect(model, X, "temp", kind="ice", interactions=True, grid_resolution=5, subgroups=None)

    def disagreement(table: pd.DataFrame) -> float:
        curves = table.pivot_table(index="row", columns="x", values="estimate").to_numpy()
        shapes = curves - curves.mean(axis=1, keepdims=True)
        return float(((shapes - shapes.mean(axis=0)) ** 2).sum())

    within = sum(disagreement(part) for _, part in found.ice.groupby("subgroup"))
    assert found.heterogeneity is not None
    assert len(found.lines) > 1
    assert found.heterogeneity.left == pytest.approx(within / disagreement(found.ice))


def test_dependence_splits_can_explain_all_heterogeneity() -> None:
    """Where the tree of dependence splits on the very column that the slope depends on, nothing is left to split."""
    rng = np.random.default_rng(2)
    z = rng.choice(["low", "high"], 400)
    data = pd.DataFrame({"x": rng.normal(size=400) + (z == "high"), "z": z, "u": rng.normal(size=400)})
    groups = find_subgroups(data[:200], features="x", max_depth=1)
    found = effect(lambda X: X["x"] * (X["z"] == "high") + X["u"], data[200:], "x", subgroups=groups, interactions=True)
    assert found.splits["reason"].tolist() == ["dependence", "none"]
    assert found.splits["share"].tolist() == pytest.approx([1.0, 0.0])
    assert found.heterogeneity is not None
    assert found.heterogeneity.sentence == (
        "x: heterogeneity explained by dependence splits 100 %, no significant interaction split; unexplained 0 %."
    )


def test_additive_model_has_nothing_to_split() -> None:
    def additive(X: Any) -> Any:
        return (np.exp(X["temp"] / 10) + X["hum"] ** 2).astype(np.float32)  # rounding is no interaction

    for subgroups in (None, GROUPS):
        found = effect(additive, X, "temp", subgroups=subgroups, interactions=True)
        assert len(found.lines) == (1 if subgroups is None else len(GROUPS["temp"]))
        assert found.heterogeneity is not None
        assert found.heterogeneity.additive
        assert found.heterogeneity.left == 0
        assert "same shape" in found.heterogeneity.sentence
        grid = found.curves["x"].unique()
        plain = effect(additive, X, "temp", subgroups=subgroups, grid=grid).curves
        both = found.curves.merge(plain, on=["subgroup", "x"])
        assert len(both) == len(found.curves)
        np.testing.assert_allclose(both["estimate_x"], both["estimate_y"])
        assert (found.subgroups is None) == (subgroups is None)


def test_splits_use_only_columns_of_the_subgroups() -> None:
    groups = find_subgroups(rows(300, seed=1), features="temp", given=["season", "count"])
    found = effect(by_hum, X, "temp", subgroups=groups, interactions=True)
    assert found.subgroups is not None
    assert set(found.subgroups.conditioning) <= {"season", "count"}


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_depth_is_respected(depth: int) -> None:
    found = effect(model, X, "temp", subgroups=GROUPS, interactions=depth)
    plain = GROUPS["temp"].tree.depth
    if depth == 0:
        assert found == effect(model, X, "temp", subgroups=GROUPS)
        with pytest.raises(ParameterError, match="splits needs interactions"):
            _ = found.splits
        return
    assert found.subgroups is not None
    assert plain < found.subgroups.tree.depth <= plain + depth
    sizes = [group.n for group in found.groups if group.reason == "interaction"]
    assert min(sizes) >= 20


def test_outputs_have_equal_weight() -> None:
    def two(X: Any) -> Any:
        return np.column_stack([1000 * by_hum(X), np.asarray(X["temp"]) * (np.asarray(X["count"]) > 4)])

    found = effect(two, X, "temp", interactions=True, grid_resolution=4, subgroups=None)
    assert set(found.splits["column"][:-1]) == {"hum", "count"}
    assert found.heterogeneity is not None
    assert found.heterogeneity.left < 0.05


def test_missing_values_go_to_one_side() -> None:
    data = X.assign(hum=X["hum"].where(X["hum"] > 40))
    known = data["hum"].isna()

    def slope(X: Any) -> Any:
        return np.asarray(X["temp"] * X["hum"].isna())

    found = effect(slope, data, "temp", interactions=1, subgroups=None)
    assert sorted(found.support["rule"]) == ["hum is missing", "hum is not missing"]
    assert found.support["n"].tolist() == [int((~known).sum()), int(known.sum())]


def test_weights_equal_duplicated_rows_in_splits() -> None:
    weights = np.arange(300) % 3
    found = effect(by_hum, X, "temp", interactions=True, sample_weight=weights, subgroups=None)
    repeated = effect(by_hum, X.loc[np.repeat(X.index, weights)], "temp", interactions=True, subgroups=None)
    assert found.support["rule"].tolist() == repeated.support["rule"].tolist()
    np.testing.assert_allclose(found.curves["estimate"], repeated.curves["estimate"])
    np.testing.assert_allclose(found.splits["share"], repeated.splits["share"], atol=1e-12)


def test_number_of_jobs_batches_and_container_change_nothing() -> None:
    numbers = X[["temp", "hum", "count"]].astype(float)
    one = effect(by_hum, numbers, "temp", interactions=True, subgroups=None)
    two = effect(by_hum, numbers, "temp", interactions=True, n_jobs=2, subgroups=None)
    assert one == replace(two, n_calls=one.n_calls)
    with config_context(working_memory=0.01):
        batches = effect(by_hum, numbers, "temp", interactions=True, subgroups=None)
    assert batches.splits.equals(one.splits)
    other = effect(
        by_hum,
        pl.DataFrame({name: numbers[name].to_numpy() for name in numbers}),
        "temp",
        interactions=True,
        subgroups=None,
    )
    assert other.splits.columns == list(one.splits.columns)
    np.testing.assert_array_equal(other.curves["estimate"].to_numpy(), one.curves["estimate"])
    assert pickle.loads(pickle.dumps(one)) == one


def test_predict_and_fidelity_use_the_groups() -> None:
    found = effect(by_hum, X, "temp", subgroups=GROUPS, interactions=True)
    plain = effect(by_hum, X, "temp", subgroups=GROUPS)
    truth = by_hum(X)
    assert np.mean((found.predict(X) - truth) ** 2) < 0.5 * np.mean((plain.predict(X) - truth) ** 2)


def test_legend_names_the_reason() -> None:
    found = effect(by_hum, X, "temp", subgroups=GROUPS.at_depth(1), interactions=1)
    legend = sg.plots.effect(found).get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    reasons = found.support["reason"].tolist()
    assert ["interaction, n = " in label.replace("\n", " ") for label in labels] == [
        reason == "interaction" for reason in reasons
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "ale"}, "kind is 'ale'"),
        ({"kind": "mplot"}, "kind is 'mplot'"),
        ({"feature": ("temp", "hum")}, "there are two"),
        ({"interactions": -1}, "interactions must be a whole number >= 0"),
        ({"interactions": "yes"}, "interactions must be a whole number >= 0"),
    ],
)
def test_kinds_without_ice_curves_raise(options: dict[str, Any], words: str) -> None:
    settings: dict[str, Any] = {"feature": "temp", "subgroups": None, "interactions": True} | options
    with pytest.raises(ParameterError, match=words):
        effect(model, X, **settings)


def test_best_split_is_the_best_of_all() -> None:
    """Against every cut of every column, tried one by one."""
    rng = np.random.default_rng(3)
    shapes = rng.normal(size=(60, 3))
    shapes -= shapes.mean(axis=0)
    numbers, levels = rng.integers(0, 15, 60).astype(float), rng.integers(0, 2, 60)
    shapes[numbers > 9] += 0.7
    shapes -= shapes.mean(axis=0)
    columns: list[Any] = [
        (ColumnInfo("number", "numeric"), numbers),
        (ColumnInfo("level", "nominal", ("a", "b")), levels.astype(np.int32)),
    ]
    found = best_split(shapes, np.ones(60), columns, 5)
    assert found is not None

    def gain(left: Any) -> float:
        parts = [shapes[left], shapes[~left]]
        return float((shapes**2).sum() - sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts))

    tried: dict[tuple[str, Any], float] = {
        ("number", cut): gain(numbers <= cut) for cut in range(14) if 5 <= (numbers <= cut).sum() <= 55
    }
    tried[("level", 0)] = gain(levels == 0)
    best = max(tried, key=tried.__getitem__)
    assert (found.split.column, found.split.threshold) == best
    assert found.gain == pytest.approx(tried[best])
    np.testing.assert_array_equal(found.left, numbers <= best[1])


@pytest.mark.parametrize("grid_resolution", [2, 3, 4, 5, 8, 20, 50])
@pytest.mark.parametrize("grid", [None, "quantiles"])
@pytest.mark.parametrize("feature", ["temp", "day", "count", "hum"])
def test_subgroups_share_grid_points_at_no_further_cost(feature: str, grid: Any, grid_resolution: int) -> None:
    plain = effect(model, X, feature, subgroups=GROUPS, grid_resolution=grid_resolution, grid=grid)
    found = effect(model, X, feature, subgroups=GROUPS, interactions=True, grid_resolution=grid_resolution, grid=grid)
    assert found.n_rows_predicted <= plain.n_rows_predicted
    assert found.subgroups is not None
    whole = GROUPS[feature].assign(X)
    for line in found.lines:
        points = line.axes[0].points
        own = np.unique(whole[found.subgroups.assign(X) == line.subgroup])
        x = X[feature][whole == own[0]]
        numbers = x.astype("int64") / (1000 if str(x.dtype) == "datetime64[ns]" else 1) if feature == "day" else x
        assert len(points) >= 2
        assert numbers.min() <= points[0] < points[-1] <= numbers.max()
    if grid_resolution >= 20 and len(found.lines) > 1:
        shared = set(found.lines[0].axes[0].points)
        for line in found.lines[1:]:
            shared &= set(line.axes[0].points)
        assert len(shared) >= 2 or feature == "day"
