"""cs-PDPs of the bike data against the paper's own R functions: trees of training rows, curves of test rows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from subgrove._effects import Effect, effect
from subgrove._subgroups import Subgroups, find_subgroups

from .effects_cases import ABSENT, END_TO_END, bike_model, bike_rows

pytestmark = pytest.mark.skipif(not END_TO_END.exists(), reason=ABSENT)
NUMERIC = [(feature, depth) for feature in ("temp", "hum", "wind") for depth in (1, 2)]
FACTORS = ["season", "weather", "yr"]


@cache
def groups(depth: int) -> Subgroups:
    return find_subgroups(bike_rows("train"), max_depth=depth)


@cache
def ours(feature: str, depth: int) -> Effect:
    return effect(bike_model, bike_rows("test"), feature, subgroups=groups(depth), grid="uniform", grid_resolution=30)


def reference(name: str, feature: str, depth: int) -> pd.DataFrame:
    table = pd.read_csv(END_TO_END / f"{name}.csv", keep_default_na=False)
    mine = (table["model"] == "closed_form") & (table["feature"] == feature) & (table["maxdepth"] == depth)
    return table[mine].reset_index(drop=True)


def sorted_curves(table: pd.DataFrame, rule: str, value: str) -> list[tuple[float, ...]]:
    """Curves as tuples, in an order that does not depend on how rules are written."""
    return sorted(tuple(curve[value]) for _, curve in table.groupby(rule, sort=False))


@pytest.mark.parametrize(("feature", "depth"), NUMERIC)
def test_curves_of_numeric_features_are_those_of_the_paper(feature: str, depth: int) -> None:
    theirs, mine = reference("cs_pdp_numeric", feature, depth), ours(feature, depth).curves
    for name_ours, name_theirs in (("x", "x"), ("estimate", "value")):
        np.testing.assert_allclose(
            sorted_curves(mine, "rule", name_ours), sorted_curves(theirs, "rule", name_theirs), rtol=0, atol=1e-8
        )


@pytest.mark.parametrize(("feature", "depth"), NUMERIC)
def test_points_within_box_and_whiskers_are_those_of_the_paper(feature: str, depth: int) -> None:
    theirs, mine = reference("cs_pdp_numeric", feature, depth), ours(feature, depth).curves
    order = mine["estimate"].argsort().to_numpy(), theirs["value"].argsort().to_numpy()
    for name_ours, name_theirs in (("in_box", "in_box"), ("in_whiskers", "in_hinges")):
        written = theirs[name_theirs].astype(str).str.upper() == "TRUE"
        assert mine[name_ours].to_numpy()[order[0]].tolist() == written.to_numpy()[order[1]].tolist()


@pytest.mark.parametrize(("feature", "depth"), NUMERIC)
def test_box_statistics_and_the_curve_at_them_are_those_of_the_paper(feature: str, depth: int) -> None:
    theirs, found = reference("cs_pdp_boxstats", feature, depth), ours(feature, depth)
    five = ["whisker_low", "q1", "median", "q3", "whisker_high"]
    stats = found.support[five].to_numpy()
    expected = theirs["stats"].to_numpy().reshape(-1, 5)
    # The file has 15 digits.
    np.testing.assert_allclose(sorted(map(tuple, stats)), sorted(map(tuple, expected)), rtol=1e-14)
    # Their curve at these values, read off the curve between its points as `predict` does.
    X = bike_rows("test")
    code = groups(depth)[feature].assign(X)
    for k, row in enumerate(stats):
        of_group = X[code == k].iloc[[0] * 5].assign(**{feature: row})
        curve = theirs[".value"].to_numpy().reshape(-1, 5)
        at = found.predict(of_group)
        assert np.abs(curve - at).max(axis=1).min() < 1e-8


@pytest.mark.parametrize("feature", FACTORS)
def test_means_of_levels_are_those_of_the_paper(feature: str) -> None:
    theirs, mine = reference("cs_pdp_factor", feature, 2), ours(feature, 2).curves
    columns = ["n", "level", "mean_value"]
    expected = theirs[columns].sort_values(columns).reset_index(drop=True)
    found = mine[["n", "x", "estimate"]].set_axis(columns, axis=1).sort_values(columns).reset_index(drop=True)
    assert found[["n", "level"]].astype(str).equals(expected[["n", "level"]].astype(str))
    np.testing.assert_allclose(found["mean_value"], expected["mean_value"], rtol=0, atol=1e-8)


@pytest.mark.parametrize(("feature", "depth"), NUMERIC)
def test_curves_are_over_as_many_test_rows_as_in_the_paper(feature: str, depth: int) -> None:
    rules = pd.read_csv(END_TO_END / "tree_rules.csv", keep_default_na=False)
    theirs = rules[(rules["feature"] == feature) & (rules["maxdepth"] == depth)]
    assert ours(feature, depth).support["n"].tolist() == theirs["n_test"].tolist()
