"""Missing values of the feature, and of other columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from subgrove._effects import effect
from subgrove._subgroups import find_subgroups

from .models import Counting, rows


def model(X: Any) -> Any:
    return X["temp"].fillna(0.0) + X["hum"].fillna(1.0) * (X["season"] == "FALL")


def with_gaps() -> Any:
    X = rows(100)
    X.loc[::7, "temp"] = np.nan
    X.loc[::5, "season"] = None
    X.loc[3, "hum"] = np.nan
    return X


@pytest.mark.parametrize("feature", ["temp", "season"])
def test_partial_dependence_includes_rows_with_missing_values(feature: str) -> None:
    X = with_gaps()
    curves = effect(model, X, feature, subgroups=None).curves
    assert curves["n"].unique().tolist() == [100]
    full = X[feature].dropna()
    assert set(curves["x"]) <= set(full) if feature == "season" else curves["x"].max() == full.max()


@pytest.mark.parametrize("kind", ["ale", "mplot"])
@pytest.mark.parametrize("feature", ["temp", "season"])
def test_ale_and_mplot_exclude_rows_with_missing_values(kind: Any, feature: str) -> None:
    X = with_gaps()
    alone = effect(model, X.dropna(subset=[feature]), feature, kind=kind, subgroups=None)
    counting = Counting(model)
    found = effect(counting, X, feature, kind=kind, subgroups=None)
    assert found.curves.equals(alone.curves)
    assert counting.n_rows == alone.n_rows_predicted


def test_support_counts_missing_values() -> None:
    X = with_gaps()
    assert effect(model, X, "temp", subgroups=None).support["missing"].tolist() == [X["temp"].isna().sum()]
    assert effect(model, X, "temp", subgroups=None).support["low"].item() == X["temp"].min()
    assert effect(model, X, "season", subgroups=None).support["missing"].unique().tolist() == [X["season"].isna().sum()]


def test_subgroup_without_any_value_has_no_curve() -> None:
    X = rows(200)
    groups = find_subgroups(X, features="temp", max_depth=1, min_samples_leaf=40)
    code = groups["temp"].assign(X)
    X.loc[code == 1, "temp"] = np.nan
    found = effect(model, X, "temp", subgroups=groups)
    assert set(found.curves["subgroup"]) == {0}
    assert found.support["missing"].tolist() == [0, (code == 1).sum()]


def test_missing_values_have_no_value_on_a_curve() -> None:
    found = effect(model, with_gaps(), "temp", subgroups=None)
    assert np.isnan(found.predict([np.nan, 1.0])).tolist() == [True, False]
