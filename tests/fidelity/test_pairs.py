"""Blocks of pairs: the compiled loops and those in NumPy give what the definition says."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._core.kinds import Floats
from subgrove._fidelity.mmd import PairBlock
from subgrove._native import loader
from subgrove._scoring.two_sample import Points

needs_compiler = pytest.mark.skipif(loader.mmd_pairs is None, reason="the package was installed without a compiler")


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(loader, "mmd_pairs", None)
    elif loader.mmd_pairs is None:
        pytest.skip("the package was installed without a compiler")


def points(n: int, seed: int, numbers: int = 3, labels: int = 2) -> Points:
    rng = np.random.default_rng(seed)
    return Points(rng.normal(size=(n, numbers)), rng.integers(0, 3, (n, labels)).astype(float))


def defined(a: Points, b: Points, *, triangle: bool = False, base: Floats | None = None) -> Floats:
    """Squared distances by the definition: a loop over all pairs."""
    found = [
        ((a.numbers[i] - b.numbers[j]) ** 2).sum() + (a.labels[i] != b.labels[j]).sum()
        for i in range(len(a))
        for j in range(i + 1 if triangle else 0, len(b))
    ]
    return np.array(found) + (0.0 if base is None else base)


SHAPES = [(7, 5, False), (1, 1, False), (6, 6, True), (2, 2, True), (1, 1, True), (3, 1100, False), (600, 600, True)]


@pytest.mark.parametrize(("n", "m", "triangle"), SHAPES)
@pytest.mark.parametrize("with_base", [False, True])
def test_distances_are_sums_of_squares_and_of_labels_that_differ(
    n: int, m: int, triangle: bool, with_base: bool
) -> None:
    a, b = points(n, 0), points(m, 1)
    base = np.random.default_rng(2).random(PairBlock.of(a, b, triangle=triangle).n_pairs) if with_base else None
    block = PairBlock.of(a, b, triangle=triangle, base=base)
    expected = defined(a, b, triangle=triangle, base=base)
    assert block.n_pairs == len(expected)
    np.testing.assert_allclose(block.distances(), expected, rtol=1e-13)


@pytest.mark.parametrize(("n", "m", "triangle"), SHAPES)
@pytest.mark.parametrize("gamma", [1e-3, 0.7, 1e3])
def test_the_sum_of_the_kernel_is_that_of_its_values(n: int, m: int, triangle: bool, gamma: float) -> None:
    block = PairBlock.of(points(n, 0), points(m, 1), triangle=triangle)
    expected = np.exp(-gamma * block.distances()).sum()
    assert block.kernel_sum(gamma) == pytest.approx(expected, rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("exponent", [0.0, 1e-300, 1e-17, 0.3, 1.0, 37.5, 700.0, 707.9, 1e4, 1e300])
def test_the_kernel_is_exact_for_small_and_for_large_distances(exponent: float) -> None:
    expected = np.exp(-exponent)
    assert PairBlock.listed(np.array([exponent])).kernel_sum(1.0) == pytest.approx(expected, rel=1e-15, abs=1e-300)


def test_values_between_bounds_are_counted_and_collected_with_the_bounds_included() -> None:
    block = PairBlock.of(points(40, 0), points(30, 1))
    values = np.sort(block.distances())
    low, high = float(values[300]), float(values[700])
    below, found, kept = block.between(low, high, 1200)
    assert below == (values < low).sum()
    assert found == ((values >= low) & (values <= high)).sum()
    np.testing.assert_allclose(np.sort(kept), values[(values >= low) & (values <= high)])


@pytest.mark.parametrize("room", [0, 1, 100, 600])
def test_values_beyond_the_buffer_are_counted(room: int) -> None:
    block = PairBlock.of(points(40, 0), points(30, 1))
    _, found, kept = block.between(0.0, np.inf, room)
    assert found == 1200
    assert len(kept) == room
    assert set(kept) <= set(block.distances())


def test_thinned_pairs_belong_to_the_block() -> None:
    for triangle in (False, True):
        a = points(50, 0)
        plain = PairBlock.of(a, a, triangle=triangle)
        base = np.arange(float(plain.n_pairs))
        some = PairBlock.of(a, a, triangle=triangle, base=base).thinned(20)
        whole = np.sort(plain.distances() + base)
        assert 0 < len(some) < len(whole)
        nearest = whole[np.clip(np.searchsorted(whole, some - 1e-9), 0, len(whole) - 1)]
        np.testing.assert_allclose(some, nearest, rtol=1e-12)


def test_equal_rows_have_distance_zero_exactly() -> None:
    a = Points.of(1e8 + np.random.default_rng(0).normal(size=(5, 4)))
    squared = PairBlock.of(a, a).distances().reshape(5, 5)
    assert np.diag(squared).tolist() == [0.0] * 5
