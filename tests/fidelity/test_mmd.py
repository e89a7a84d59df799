"""Squared MMD agrees with its definition, for samples of any size."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._core.kinds import Floats
from subgrove._fidelity import mmd
from subgrove._fidelity.mmd import SamplePairs, squared_mmd, subsample_two
from subgrove._scoring.two_sample import Points
from subgrove.exceptions import InputError


def defined(a: Floats, b: Floats, gamma: float | None = None) -> float:
    """The definition, with all distances in memory."""
    both = np.vstack([a, b])
    squared = ((both[:, None] - both[None]) ** 2).sum(axis=2)
    if gamma is None:
        gamma = 1 / (2 * np.median(np.sqrt(squared[np.triu_indices(len(both), 1)])) ** 2)
    kernel, n = np.exp(-gamma * squared), len(a)
    return float(kernel[:n, :n].mean() + kernel[n:, n:].mean() - 2 * kernel[:n, n:].mean())


def samples(n: int = 60, m: int = 45, p: int = 3) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, p)), 0.5 + rng.normal(size=(m, p))


@pytest.mark.parametrize(("n", "m"), [(60, 45), (2, 2), (1, 3), (1, 1)])
@pytest.mark.parametrize("gamma", [None, 0.3])
def test_squared_mmd_follows_its_definition(n: int, m: int, gamma: float | None) -> None:
    a, b = samples(n, m)
    assert squared_mmd(a, b, gamma) == pytest.approx(defined(a, b, gamma), abs=1e-14)


def test_order_of_the_samples_and_of_their_rows_does_not_matter() -> None:
    a, b = samples()
    assert squared_mmd(b, a) == pytest.approx(squared_mmd(a, b), abs=1e-14)
    assert squared_mmd(a[::-1], b) == pytest.approx(squared_mmd(a, b), abs=1e-14)


def test_scale_of_all_columns_together_does_not_matter() -> None:
    a, b = samples()
    assert squared_mmd(1e6 * a, 1e6 * b) == pytest.approx(squared_mmd(a, b), abs=1e-12)
    assert squared_mmd(a + 1e6, b + 1e6) == pytest.approx(squared_mmd(a, b), abs=1e-8)


def test_squared_mmd_of_equal_distributions_has_the_documented_mean() -> None:
    # Mean over 200 pairs of samples; its standard error is the standard deviation over them / sqrt(200), times 4.
    rng = np.random.default_rng(5)
    found, expected = [], []
    for _ in range(200):
        both = rng.normal(size=(2, 50, 2))
        found.append(squared_mmd(both[0], both[1], gamma=0.5))
        # k = E exp(-|x - y|^2 / 2) with x - y normal of variance 2: (1 + 2)^(-1) in two dimensions
        expected.append(2 * (1 - 1 / 3) / 50)
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=4 * np.std(found) / np.sqrt(200))


def test_mostly_equal_rows_use_the_median_of_positive_distances() -> None:
    a, b = np.zeros((30, 1)), np.append(np.zeros(28), [3.0, 3.0])[:, None]
    assert squared_mmd(a, b) == pytest.approx(defined(a, b, 1 / (2 * 9)), abs=1e-14)


def test_rows_that_are_all_equal_have_no_distance() -> None:
    assert squared_mmd(np.ones((5, 2)), np.ones((4, 2))) == 0.0


def test_subsamples_are_proportional_and_without_replacement() -> None:
    rows = subsample_two(400, 200, 90, np.random.default_rng(0))
    assert [len(part) for part in rows] == [60, 30]
    assert all(len(set(part.tolist())) == len(part) for part in rows)


def test_samples_within_the_limit_are_not_subsampled() -> None:
    assert subsample_two(60, 45, 105, np.random.default_rng(0)) == (slice(None), slice(None))


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("n_copies", [1, 2, 3])
def test_varying_column_gives_the_mmd_of_whole_samples(cache: bool, n_copies: int) -> None:
    a, b = samples()
    copies = [np.random.default_rng(seed).normal(size=(len(b), 1)) for seed in range(n_copies)]
    found = SamplePairs.of(a[:, 1:], b[:, 1:], cache=cache)
    whole = np.vstack([np.hstack([copy, b[:, 1:]]) for copy in copies])
    assert found.squared_mmd(a[:, :1], copies) == pytest.approx(squared_mmd(a, whole), abs=1e-14)


def test_distances_beyond_the_cache_size_are_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = samples()
    assert SamplePairs.of(a, b).across is not None
    expected = SamplePairs.of(a, b).squared_mmd(a[:, :1], [b[:, :1]])
    monkeypatch.setattr(mmd, "_CACHE_BYTES", 100)
    assert SamplePairs.of(a, b).across is None
    assert SamplePairs.of(a, b).squared_mmd(a[:, :1], [b[:, :1]]) == pytest.approx(expected, abs=1e-14)


def test_labels_equal_one_hot_columns_scaled_by_sqrt_half() -> None:
    rng = np.random.default_rng(0)
    numbers, labels = rng.normal(size=(50, 2)), rng.integers(0, 4, (50, 1)).astype(float)
    indicators = (labels == np.arange(4)) / np.sqrt(2)
    a, b = np.arange(20), np.arange(20, 50)
    found = SamplePairs.of(Points(numbers, labels).rows(a), Points(numbers, labels).rows(b), cache=False)
    whole = np.hstack([numbers, indicators])
    nothing = np.empty((50, 0))
    assert found.squared_mmd(nothing[a], [nothing[b]]) == pytest.approx(defined(whole[a], whole[b]), abs=1e-14)


@pytest.mark.parametrize("scale", [1e200, 1e160, 1e-155])
def test_distances_with_overflowing_squares_raise(scale: float) -> None:
    a, b = samples()
    with pytest.raises(InputError, match="median distance between rows is"):
        squared_mmd(scale * a, scale * b)
    assert squared_mmd(1e120 * a, 1e120 * b) == pytest.approx(squared_mmd(a, b), rel=1e-9)
