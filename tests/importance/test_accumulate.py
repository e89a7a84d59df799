"""Accumulating the losses of a feature: rows that turn in circles are counted as all others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import CyclicShift, Donors
from subgrove._scoring.feature_result import with_rows

KEPT = ("rows", "influence", "repeats", "overall", "excess", "mc_variance", "sizes", "code")


def rows_of(n: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 1] += X[:, 0]
    X[:, 3] = np.round(X[:, 3])  # few values: some subgroups have exact expectations
    return X


def model(X: Floats) -> Floats:
    return np.asarray(X[:, 0] * X[:, 1] + X[:, 2] + X[:, 3])


@pytest.mark.parametrize("sampler", ["marginal", "subgroups"])
@pytest.mark.parametrize("loss", ["squared_error", ["squared_error", "absolute_error"]])
def test_circles_are_weighted_as_single_donors_are(sampler: str, loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows_of(300, seed=0)
    y = model(X) + np.random.default_rng(1).normal(size=300)
    given: Any = sg.find_subgroups(rows_of(400, seed=2), max_depth=3) if sampler == "subgroups" else sampler

    def scores() -> Any:
        return sg.importance(model, X, y, sampler=given, loss=loss, n_repeats=4, random_state=0).scores

    turned = scores()
    with monkeypatch.context() as patched:
        patched.setattr(
            Donors,
            "from_cyclic_shift",
            lambda cyclic_shift: Donors(cyclic_shift.taken(cyclic_shift.order).take(cyclic_shift.place)),
        )
        single = scores()
    for one, other in zip(turned, single, strict=True):
        for name in KEPT:
            # The order of sums differs, so the last digits may; of `influence` seven are kept.
            rtol = 1e-6 if name == "influence" else 1e-10
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-12)


def test_subgroup_without_a_row_takes_no_part() -> None:
    groups = sg.find_subgroups(rows_of(400, seed=2), max_depth=2)
    partition = groups["x0"]
    X = rows_of(2000, seed=3)
    X = X[partition.assign(X) != 1]
    result = sg.importance(model, X, model(X), sampler=groups, features=["x0"], n_repeats=3, random_state=0)
    (score,) = with_rows(result.scores, "the test")
    assert score.sizes[1] == 0
    assert np.isnan(score.repeats[:, :, 1]).all()
    for k in (0, 2, 3):
        np.testing.assert_allclose(score.repeats[0, :, k].mean(), score.rows[0, score.code == k].mean(), rtol=1e-12)


def test_ring_turns_there_and_back() -> None:
    order = np.array([2, 0, 4, 1, 3])
    place = np.argsort(order)
    cyclic_shift = CyclicShift(order, place, ((0, 3, 1), (3, 5, 0)))
    values = np.arange(5.0)
    np.testing.assert_array_equal(cyclic_shift.taken(values), [1, 2, 0, 3, 4])
    np.testing.assert_array_equal(cyclic_shift.returned(cyclic_shift.taken(values)), values)
    np.testing.assert_array_equal(Donors.from_cyclic_shift(cyclic_shift).rows, [4, 1, 0, 3, 2])
