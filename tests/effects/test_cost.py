"""Number of predictions of an effect, which does not depend on batches and jobs."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn import config_context

from subgrove._effects import effect
from subgrove._subgroups import find_subgroups

from .models import AGAIN, Counting, model, rows

X = rows(150)
GROUPS = find_subgroups(rows(150, seed=1), min_samples_leaf=30)
KINDS: list[Any] = ["pdp", "ice", "ale", "mplot"]


@pytest.mark.parametrize("subgroups", [None, GROUPS], ids=["all rows", "subgroups"])
@pytest.mark.parametrize(
    ("feature", "kind", "per_row"),
    [("temp", "pdp", 7), ("temp", "ice", 7), ("temp", "ale", 2), ("temp", "mplot", 1), ("season", "mplot", 1)],
)
def test_number_of_predicted_rows_is_as_documented(feature: str, kind: Any, per_row: int, subgroups: Any) -> None:
    counting = Counting()
    found = effect(counting, X, feature, kind=kind, subgroups=subgroups, grid_resolution=7)
    assert counting.n_rows == found.n_rows_predicted == 150 * per_row + AGAIN
    assert len(counting.sizes) == found.n_calls


def test_levels_are_predicted_where_a_subgroup_has_them() -> None:
    counting = Counting()
    curves = effect(counting, X, "season", subgroups=GROUPS).curves
    assert counting.n_rows == curves["n"].sum() + AGAIN
    counting = Counting()
    effect(counting, X, "season", subgroups=None)
    assert counting.n_rows == 150 * 4 + AGAIN


def test_ale_of_levels_predicts_each_row_and_its_neighbours() -> None:
    counting = Counting()
    x = effect(counting, X, "season", kind="ale").curves["x"]
    at_the_ends = X["season"].isin([x.iloc[0], x.iloc[-1]]).sum()
    assert counting.n_rows == 3 * 150 - at_the_ends + AGAIN


def test_surface_predicts_every_cell() -> None:
    counting = Counting()
    effect(counting, X, ("temp", "season"), grid_resolution=5, subgroups=None)
    assert counting.n_rows == 150 * 5 * 4 + AGAIN


def test_reading_makes_no_predictions() -> None:
    counting = Counting()
    found = effect(counting, X, "temp", kind="ice", subgroups=GROUPS)
    options = counting.n_rows
    assert len(found.curves)
    assert len(found.support) + len(found.outliers) + len(found.ice)
    assert len(found.predict(X)) + len(found.centred().curves)
    assert counting.n_rows == options


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("feature", ["temp", "season"])
def test_size_of_batches_does_not_change_a_digit(kind: Any, feature: str) -> None:
    usual = effect(model, X, feature, kind=kind, subgroups=GROUPS)
    for memory in (0.01, 0.1):
        counting = Counting()
        with config_context(working_memory=memory):
            small = effect(counting, X, feature, kind=kind, subgroups=GROUPS)
        # 7 columns of 8 bytes, four tables at once.
        assert max(counting.sizes) <= memory * 2**20 / (4 * 7 * 8)
        assert small.curves.equals(usual.curves)
        assert small.n_rows_predicted == usual.n_rows_predicted


@pytest.mark.parametrize("kind", KINDS)
def test_number_of_jobs_does_not_change_a_digit(kind: Any) -> None:
    one, two = (effect(model, X, "temp", kind=kind, subgroups=GROUPS, n_jobs=jobs) for jobs in (1, 2))
    assert one.curves.equals(two.curves)
    assert one.n_rows_predicted == two.n_rows_predicted


def test_batches_are_large() -> None:
    counting = Counting(lambda X: X[:, 0])
    effect(counting, np.random.default_rng(0).normal(size=(1000, 3)), "x0", grid_resolution=250, subgroups=None)
    assert sorted(counting.sizes) == [AGAIN, 82_000, 84_000, 84_000]  # about equal, and none above 100,000


def test_result_does_not_contain_the_model() -> None:
    found = effect(Counting(), X, "temp", subgroups=GROUPS)
    assert pickle.loads(pickle.dumps(found)) == found
    assert b"Counting" not in pickle.dumps(found)
