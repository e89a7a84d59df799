"""Donors by shifts: rows of the same subgroup, none twice before all have been there, all equally often."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgrove._core.execution import Streams
from subgrove._data.columns import ColumnInfo
from subgrove._data.replace_columns import Frames
from subgrove.samplers.donors import cyclic_shifts, training_donors, weighted_donors

Ints = npt.NDArray[np.intp]
examples = settings(max_examples=60, derandomize=True, deadline=None, database=None)
codes = st.lists(st.integers(0, 4), min_size=1, max_size=40).map(lambda code: np.array(code, dtype=np.int32))


def row_donors(*args: Any, **options: Any) -> Any:
    return (donors.rows for donors in cyclic_shifts(*args, **options))


def drawn(donors: Any) -> Ints:
    return np.array(list(donors))


@examples
@given(code=codes, n_repeats=st.integers(1, 30), seed=st.integers(0, 10**6), fixed_points=st.booleans())
def test_shifts_are_balanced(code: Any, n_repeats: int, seed: int, fixed_points: bool) -> None:
    found = drawn(row_donors(code, 5, Streams(seed, "x", n_repeats), fixed_points=fixed_points))
    assert found.shape == (n_repeats, len(code))
    assert (code[found] == code).all()
    assert (np.sort(found, axis=1) == np.arange(len(code))).all()  # every row is donor once in a repeat
    for row, k in enumerate(code):
        others = np.flatnonzero(code == k)
        if not fixed_points and len(others) > 1:
            others = others[others != row]
        for start in range(0, n_repeats, len(others)):
            part = found[start : start + len(others), row].tolist()
            assert len(set(part)) == len(part)
            assert set(part) <= set(others.tolist())


@examples
@given(
    code=codes,
    pools=st.lists(st.integers(1, 12), min_size=5, max_size=5),
    n_repeats=st.integers(1, 25),
    seed=st.integers(0, 99),
)
def test_training_donors_are_balanced(code: Any, pools: list[int], n_repeats: int, seed: int) -> None:
    ends = np.cumsum(pools)
    rows = [np.arange(end - size, end) for size, end in zip(pools, ends, strict=True)]
    found = drawn(training_donors(code, rows, Streams(seed, "x", n_repeats)))
    for row, k in enumerate(code):
        for start in range(0, n_repeats, pools[k]):
            part = found[start : start + pools[k], row].tolist()
            assert len(set(part)) == len(part)
            assert set(part) <= set(rows[k].tolist())
    for k in np.unique(code):
        times = np.array([np.bincount(one, minlength=ends[-1])[rows[k]] for one in found[:, code == k]])
        assert (times.max(axis=1) - times.min(axis=1) <= 1).all()


@pytest.mark.parametrize("fixed_points", [False, True])
def test_every_donor_is_as_likely_as_any_other(fixed_points: bool) -> None:
    """4000 seeds, one repeat: counts of a donor have sd sqrt(4000 p (1 - p)) < 31; the largest of 30 within 4.5."""
    code = np.zeros(6, dtype=np.int32)
    counts = np.zeros((6, 6))
    for seed in range(4000):
        for row, donor in enumerate(next(iter(row_donors(code, 1, Streams(seed, "x", 1), fixed_points=fixed_points)))):
            counts[row, donor] += 1
    expected = np.full((6, 6), 4000 / 6) if fixed_points else 800 * (1 - np.eye(6))
    assert np.abs(counts - expected).max() < 4.5 * 31
    if not fixed_points:
        assert (np.diag(counts) == 0).all()


def test_subgroups_are_drawn_independently_of_each_other() -> None:
    """Shifts of two subgroups of 5 rows over 2000 seeds: a table of 16 cells, 125 each; chi-square of 15 below 45."""
    code = np.repeat([0, 1], 5).astype(np.int32)
    table = np.zeros((10, 10))
    for seed in range(2000):
        found = next(iter(row_donors(code, 2, Streams(seed, "x", 1))))
        table[found[0], found[5]] += 1
    cells = table[1:5][:, 6:]
    assert cells.sum() == 2000
    assert ((cells - 125) ** 2 / 125).sum() < 45


def test_row_alone_keeps_its_value_and_empty_subgroups_are_passed_over() -> None:
    code = np.array([0, 3, 3, 3], dtype=np.int32)
    found = drawn(row_donors(code, 6, Streams(0, "x", 4)))
    assert (found[:, 0] == 0).all()


@pytest.mark.parametrize("n_groups", [300, 70_000])
def test_many_subgroups(n_groups: int) -> None:
    code = np.arange(600, dtype=np.int32) // 2 * (n_groups // 300)
    found = drawn(row_donors(code, n_groups, Streams(0, "x", 1)))
    assert (found[0] == np.arange(600).reshape(-1, 2)[:, ::-1].ravel()).all()


def test_weighted_donors_are_drawn_by_weight_without_one_of_their_own() -> None:
    """A row of weight w is w rows: of 7 in all, row 0 (weight 3) is its own donor 2 times in 6, row 2 (weight 1) never.

    6000 draws: sd below 39 a count; four of these.
    """
    weights = np.array([3.0, 2.0, 1.0, 1.0, 5.0])
    code = np.array([0, 0, 0, 0, 1], dtype=np.int32)
    counts = np.zeros((5, 5))
    for found in weighted_donors(code, 2, weights, Streams(1, "x", 6000)):
        counts[np.arange(5), found] += 1
    expected = np.zeros((5, 5))
    for row in range(4):
        others = weights[:4] - (np.arange(4) == row)
        expected[row, :4] = 6000 * others / others.sum()
    expected[4, 4] = 6000
    assert np.abs(counts - expected).max() < 4 * 39
    assert (counts[expected == 0] == 0).all()


def test_weights_below_one_leave_the_row_itself_out() -> None:
    weights = np.array([0.5, 0.25, 0.25])
    code = np.zeros(3, dtype=np.int32)
    found = drawn(weighted_donors(code, 1, weights, Streams(0, "x", 300)))
    assert (found != np.arange(3)).all()
    assert np.mean(found[:, 0] == 1) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(300))


def test_first_repeats_are_the_same_however_many_there_are() -> None:
    code = np.array([0, 1, 0, 1, 0, 1, 0, 0], dtype=np.int32)
    few, many = (drawn(row_donors(code, 2, Streams(4, "x", m))) for m in (3, 50))
    assert (few == many[:3]).all()
    pools = [np.arange(7), np.arange(7, 9)]
    few, many = (drawn(training_donors(code, pools, Streams(4, "x", m))) for m in (3, 50))
    assert (few == many[:3]).all()


@examples
@given(code=codes, seed=st.integers(0, 10**6))
def test_circles_are_subgroups_in_the_order_of_their_numbers(code: Any, seed: int) -> None:
    donors = list(cyclic_shifts(code, 5, Streams(seed, "x", 3)))
    for one in donors:
        cyclic_shift = one.cyclic_shift
        assert cyclic_shift is not None
        np.testing.assert_array_equal(code[cyclic_shift.order], np.sort(code))
        np.testing.assert_array_equal(cyclic_shift.order[cyclic_shift.place], np.arange(len(code)))
        assert [end - start for start, end, _ in cyclic_shift.segments] == np.bincount(code)[np.unique(code)].tolist()
        np.testing.assert_array_equal(cyclic_shift.taken(cyclic_shift.order), one.rows[cyclic_shift.order])


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_turned_column_holds_the_values_of_the_donors(container: Any) -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    frames = Frames(container(values), [ColumnInfo("x0", "numeric"), ColumnInfo("x1", "numeric")])
    code = np.arange(50, dtype=np.int32) % 3
    for key in ("a", "b"):  # other circles, the same column
        for donors in cyclic_shifts(code, 3, Streams(0, key, 3)):
            for place, name in enumerate(frames.names):
                np.testing.assert_array_equal(frames.native(name, donors), values[donors.rows, place])


@examples
@given(code=codes, n_clusters=st.integers(1, 8), seed=st.integers(0, 10**6), weighted=st.booleans())
def test_no_donor_is_of_the_cluster_of_its_row(code: Any, n_clusters: int, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    clusters, weights = rng.integers(0, n_clusters, len(code)), rng.random(len(code)) if weighted else None
    for found in weighted_donors(code, 5, weights, Streams(seed, "x", 5), clusters=clusters):
        assert (code[found] == code).all()
        for row, k in enumerate(code):
            if np.ptp(clusters[code == k]) > 0:
                assert clusters[found[row]] != clusters[row]
            else:
                assert found[row] == row


@pytest.mark.parametrize("weighted", [False, True])
def test_donors_of_other_clusters_are_drawn_in_proportion_to_their_weights(weighted: bool) -> None:
    clusters, code = np.array([0, 0, 0, 1, 1, 2]), np.zeros(6, dtype=np.int32)
    weights = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 4.0]) if weighted else None
    n = 6000
    found = drawn(weighted_donors(code, 1, weights, Streams(1, "x", n), clusters=clusters))
    for row in range(6):
        shares = np.where(clusters == clusters[row], 0.0, 1.0 if weights is None else weights)
        shares /= shares.sum()
        # Five standard errors of a share of 1/2 in 6000 draws.
        assert np.abs(np.bincount(found[:, row], minlength=6) / n - shares).max() < 5 * 0.5 / np.sqrt(n)
