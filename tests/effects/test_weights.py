"""Sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._core.weights import FrequencyWeights
from subgrove._effects import effect
from subgrove._subgroups import find_subgroups

from .models import AGAIN, Counting, model, rows

X = rows(150)
GROUPS = find_subgroups(rows(150, seed=1), min_samples_leaf=30)
WEIGHTS = np.random.default_rng(4).integers(0, 4, 150)
REPEATED = X.iloc[np.repeat(np.arange(150), WEIGHTS)].reset_index(drop=True)


def close(one: pd.DataFrame, two: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(one, two, check_exact=False, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("subgroups", [None, GROUPS], ids=["all rows", "subgroups"])
@pytest.mark.parametrize("kind", ["pdp", "ice", "ale", "mplot"])
@pytest.mark.parametrize("feature", ["temp", "count", "season", "size", "flag"])
def test_integer_weights_equal_duplicated_rows(feature: str, kind: Any, subgroups: Any) -> None:
    weighted = effect(
        model, X, feature, kind=kind, subgroups=subgroups, sample_weight=FrequencyWeights(WEIGHTS), grid_resolution=6
    )
    repeated = effect(model, REPEATED, feature, kind=kind, subgroups=subgroups, grid_resolution=6)
    close(weighted.curves, repeated.curves)
    close(weighted.support, repeated.support)
    close(weighted.outliers, repeated.outliers)


def test_quantiles_are_weighted() -> None:
    weighted = effect(
        model, X, "temp", grid="quantiles", sample_weight=FrequencyWeights(WEIGHTS), grid_resolution=6, subgroups=None
    )
    close(weighted.curves, effect(model, REPEATED, "temp", grid="quantiles", grid_resolution=6, subgroups=None).curves)


def test_weights_of_one_change_nothing() -> None:
    close(
        effect(model, X, "temp", sample_weight=np.ones(150), subgroups=None).curves,
        effect(model, X, "temp", subgroups=None).curves,
    )


def test_rows_of_weight_zero_are_not_predicted() -> None:
    counting = Counting()
    effect(counting, X, "temp", sample_weight=WEIGHTS, grid_resolution=4, subgroups=None)
    assert counting.n_rows == 4 * (WEIGHTS > 0).sum() + AGAIN


def test_scale_of_fractional_weights_changes_no_curve() -> None:
    weights = np.random.default_rng(5).uniform(size=150)
    one, two = (effect(model, X, "temp", subgroups=GROUPS, sample_weight=w) for w in (weights, weights / weights.sum()))
    np.testing.assert_allclose(one.curves["estimate"], two.curves["estimate"], rtol=1e-12)
    close(one.support.drop(columns="n"), two.support.drop(columns="n"))
