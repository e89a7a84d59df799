"""The median distance is exact, whatever the distances look like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgrove._core.kinds import Floats
from subgrove._fidelity import mmd
from subgrove._fidelity.mmd import PairBlock, median_distance
from subgrove._scoring.two_sample import Points


def within(rows: Floats) -> PairBlock:
    return PairBlock.of(Points.of(rows), Points.of(rows), triangle=True)


def cases() -> dict[str, Floats]:
    rng = np.random.default_rng(0)
    sorted_rows = np.sort(rng.exponential(size=(900, 1)), axis=0)
    return {
        "normal": rng.normal(size=(900, 5)),
        "sorted, so that a look at some is misleading": np.vstack([sorted_rows, 100 + sorted_rows]),
        "a block of equal rows first": np.vstack([np.zeros((500, 2)), rng.normal(size=(450, 2))]),
        "two values": rng.integers(0, 2, (800, 1)).astype(float),
        "few values": rng.integers(0, 3, (800, 4)).astype(float),
        "heavy tails": rng.standard_cauchy(size=(700, 3)),
        "one far row": np.append(rng.normal(size=600), 1e9)[:, None],
    }


@pytest.mark.parametrize("name", list(cases()))
def test_median_is_that_of_all_distances(name: str) -> None:
    block = within(cases()[name])
    assert median_distance([block]) == np.median(np.sqrt(block.distances()))


@pytest.mark.parametrize("name", list(cases()))
@pytest.mark.parametrize(("room", "margin"), [(1, 1e-6), (1, 0.2), (50, 0.04)])
def test_median_does_not_depend_on_the_bracket(
    monkeypatch: pytest.MonkeyPatch, name: str, room: int, margin: float
) -> None:
    block = within(cases()[name])
    monkeypatch.setattr(mmd, "_MIN_BUFFER", room)
    monkeypatch.setattr(mmd, "_BUFFER_SHARE", 0.0)
    monkeypatch.setattr(mmd, "_MARGIN", margin)
    monkeypatch.setattr(mmd, "_PILOT_ROWS", 5)
    assert median_distance([block]) == np.median(np.sqrt(block.distances()))


def test_median_of_an_even_number_is_the_mean_of_the_two_distances_in_the_middle() -> None:
    block = PairBlock.listed(np.array([1.0, 4.0, 16.0, 100.0]))
    assert median_distance([block]) == 3.0  # not the root of the mean of the squares


def test_median_is_over_all_blocks_together() -> None:
    parts = [PairBlock.listed(np.array([1.0, 4.0])), PairBlock.listed(np.array([9.0])), PairBlock.listed(np.empty(0))]
    assert median_distance(parts) == 2.0


def test_median_of_positive_distances_excludes_zeros() -> None:
    block = PairBlock.listed(np.array([0.0, 0.0, 0.0, 0.0, 4.0, 16.0, 25.0]))
    assert median_distance([block]) == 0.0
    assert median_distance([block], positive=True) == 4.0


def test_median_without_pairs_is_nan() -> None:
    assert np.isnan(median_distance([PairBlock.listed(np.empty(0))]))
    assert np.isnan(median_distance([PairBlock.listed(np.zeros(5))], positive=True))


@given(st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0, 5e-324, 1e300]), min_size=1, max_size=60), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_median_of_any_list_of_distances(values: list[float], looked_at: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mmd, "_PILOT_ROWS", looked_at)
        patch.setattr(mmd, "_MIN_BUFFER", 1)
        assert median_distance([PairBlock.listed(np.array(values))]) == np.median(np.sqrt(values))


def test_search_ends_with_nan_distances() -> None:
    rows = Points.of(np.full((4, 1), np.inf))
    assert np.isnan(median_distance([PairBlock.of(rows, rows, triangle=True)]))
