"""Balanced points: each is uniform, together they are spread evenly, and they go on where fewer repeats ended."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._core.execution import Streams
from subgrove._core.kinds import Codes, Floats
from subgrove.samplers.training_donors import SortedPools, balanced_points

CODE = np.repeat(np.arange(3, dtype=np.int32), [40, 25, 1])
OWN = np.random.default_rng(0).normal(size=len(CODE))


def points(n_repeats: int, seed: int = 0, code: Codes = CODE, own: Floats = OWN) -> Floats:
    return np.array(list(balanced_points(code, int(code.max(initial=0)) + 1, own, Streams(seed, "x", n_repeats))))


def test_points_are_from_0_to_1() -> None:
    found = points(50)
    assert found.shape == (50, len(CODE))
    assert found.min() >= 0
    assert found.max() < 1


def test_more_repeats_go_on_where_fewer_ended() -> None:
    np.testing.assert_array_equal(points(20)[:7], points(7))


def test_the_same_seed_gives_the_same_points_and_another_gives_others() -> None:
    np.testing.assert_array_equal(points(3), points(3))
    assert (points(3) != points(3, seed=1)).any(axis=1).all()


def test_each_point_is_uniform_over_seeds() -> None:
    """Of a row in the middle and of the row that is alone, in the first and the fifth repeat."""
    runs = 2000
    found = np.array([points(5, seed)[[0, 4]] for seed in range(runs)])
    for repeat in range(2):
        for row in (3, 50, 65):
            shares = np.histogram(found[:, repeat, row], bins=10, range=(0, 1))[0] / runs
            # A share of 0.1 has a standard error of sqrt(0.09 / 2000) = 0.0067.
            assert np.abs(shares - 0.1).max() < 4.5 * 0.0067


def test_points_of_a_subgroup_are_spread_evenly_in_each_repeat() -> None:
    """Of 40 points each of 8 equal parts of [0, 1) has 5, give or take the few that the turn moves."""
    for repeat in points(10):
        for rows in (CODE == 0, CODE == 1):
            counts = np.histogram(repeat[rows], bins=8, range=(0, 1))[0]
            assert np.abs(counts - rows.sum() / 8).max() <= 3


def test_points_of_a_row_are_spread_evenly_over_repeats() -> None:
    found = np.sort(points(21), axis=0)
    gaps = np.diff(np.vstack([found, found[:1] + 1]), axis=0)
    assert gaps.max() < 2.7 / 21  # three distances at most, in steps of the golden section
    assert gaps.min() > 0.3 / 21


def test_rows_of_like_values_have_points_that_differ() -> None:
    """Any eight neighbours in the order of their own values cover [0, 1) without a gap of a third."""
    first = points(1)[0]
    order = np.flatnonzero(CODE == 0)[np.argsort(OWN[CODE == 0])]
    for start in range(len(order) - 8):
        near = np.sort(first[order[start : start + 8]])
        assert np.diff(np.append(near, near[0] + 1)).max() < 1 / 3


def test_the_order_of_subgroups_does_not_matter() -> None:
    np.testing.assert_array_equal(points(3), points(3, code=np.array([2, 0, 1], dtype=np.int32)[CODE]))


def test_equal_and_missing_values_and_no_rows_have_points_too() -> None:
    same = points(4, own=np.full(len(CODE), 2.0))
    assert (np.sort(same[0][CODE == 0]) != np.sort(same[1][CODE == 0])).any()
    assert np.isfinite(points(2, own=np.full(len(CODE), np.nan))).all()
    assert points(2, code=np.zeros(0, dtype=np.int32), own=np.zeros(0)).shape == (2, 0)


def test_the_mean_over_draws_varies_less_than_that_of_independent_draws() -> None:
    """Of values that depend on row and draw, as losses do: less than a quarter of the variance."""
    n, repeats, runs = 60, 5, 300
    own = np.sort(np.random.default_rng(1).normal(size=n))
    pool = np.sort(np.random.default_rng(2).normal(size=80))
    pools = SortedPools(np.zeros(80, dtype=np.int32), pool, 1)
    code = np.zeros(n, dtype=np.int32)
    balanced, independent = [], []
    for seed in range(runs):
        drawn = [pool[pools.at(code, each)] for each in balanced_points(code, 1, own, Streams(seed, "x", repeats))]
        balanced.append(np.mean((np.array(drawn) - own) ** 2))
        taken = np.random.default_rng(seed).integers(0, 80, (repeats, n))
        independent.append(np.mean((pool[taken] - own) ** 2))
    truth = np.mean((pool[:, None] - own) ** 2)
    assert np.mean(balanced) == pytest.approx(truth, abs=4 * np.std(balanced) / np.sqrt(runs))
    # The ratio of two sample variances of 300 runs has a standard error of about 12 %.
    assert np.var(balanced) < np.var(independent) / 4


def test_members_of_pools_are_of_the_row_s_subgroup_and_sorted() -> None:
    rng = np.random.default_rng(3)
    code, values = rng.integers(0, 3, 90).astype(np.int32), rng.normal(size=90)
    pools = SortedPools(code, values, 3)
    requested = np.repeat(np.arange(3, dtype=np.int32), 50)
    taken = pools.at(requested, np.tile(np.linspace(0, 1, 50, endpoint=False), 3))
    np.testing.assert_array_equal(code[taken], requested)
    for k in range(3):
        assert (np.diff(values[taken[requested == k]]) >= 0).all()
    np.testing.assert_array_equal(
        values[pools.at(np.arange(3, dtype=np.int32), np.ones(3))], [values[code == k].max() for k in range(3)]
    )


def test_every_member_is_taken_equally_often() -> None:
    pools = SortedPools(np.zeros(7, dtype=np.int32), np.arange(7.0), 1)
    taken = pools.at(np.zeros(70, dtype=np.int32), (np.arange(70) + 0.5) / 70)
    assert np.bincount(taken).tolist() == [10] * 7
