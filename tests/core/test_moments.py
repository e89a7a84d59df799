"""Moments of parts merge into the moments of the whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from subgrove._core.moments import Moments, merged

RNG = np.random.default_rng(1)
N, K = 1000, 4
VALUES = np.vstack([RNG.standard_normal(N), RNG.exponential(size=N)])
CODE = RNG.integers(0, K, N)
WEIGHTS = RNG.integers(1, 4, N).astype(float)


def direct(values: np.ndarray, code: np.ndarray, n_groups: int, weights: np.ndarray) -> np.ndarray:
    """The same in extended precision, from the definition."""
    found = np.zeros((5, len(values), n_groups))
    for line, row in enumerate(values.astype(np.longdouble)):
        for k in range(n_groups):
            own, w = row[code == k], weights[code == k].astype(np.longdouble)
            if w.sum() == 0:
                continue
            mean = (own * w).sum() / w.sum()
            powers = [((own - mean) ** power * w).sum() for power in (2, 3, 4)]
            found[:, line, k] = [w.sum(), mean, *powers]
    return found


def parts(cuts: list[int], values: np.ndarray, weights: np.ndarray | None) -> list[Moments]:
    ends = [0, *cuts, N]
    return [
        Moments.of(values[:, a:b], CODE[a:b], K, None if weights is None else weights[a:b]) for a, b in pairwise(ends)
    ]


def test_moments_are_those_of_the_definition() -> None:
    np.testing.assert_allclose(Moments.of(VALUES, CODE, K).array, direct(VALUES, CODE, K, np.ones(N)), rtol=1e-12)
    np.testing.assert_allclose(
        Moments.of(VALUES).array, direct(VALUES, np.zeros(N, dtype=int), 1, np.ones(N)), rtol=1e-12
    )


def test_integer_weights_equal_duplicated_rows() -> None:
    np.testing.assert_allclose(Moments.of(VALUES, CODE, K, WEIGHTS).array, direct(VALUES, CODE, K, WEIGHTS), rtol=1e-12)
    repeated = np.repeat(VALUES, WEIGHTS.astype(int), axis=1)
    np.testing.assert_allclose(Moments.of(VALUES, weights=WEIGHTS).array, Moments.of(repeated).array, rtol=1e-11)


@pytest.mark.parametrize("cuts", [[500], [1, 2, 3], [10, 10, 400, 999], list(range(1, N, 7))])
def test_moments_of_chunks_merge_into_those_of_all_rows(cuts: list[int]) -> None:
    whole = direct(VALUES, CODE, K, WEIGHTS)
    found = merged(parts(cuts, VALUES, WEIGHTS)).array
    np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-12 * np.abs(whole).max())


def test_order_of_merging_changes_only_rounding_errors() -> None:
    some = parts([100, 300, 700], VALUES, None)
    left = merged(some)
    right = some[0].merged(some[1].merged(some[2].merged(some[3])))
    np.testing.assert_allclose(left.array, right.array, rtol=1e-12, atol=1e-11)
    assert (merged(some).array == left.array).all()


def test_small_variance_far_from_zero_is_exact() -> None:
    far = VALUES + 1e9
    whole = direct(far, CODE, K, np.ones(N))
    found = merged(parts([3, 333, 600], far, None)).array
    # Means near 1e9 are known to 1e-7, so a difference of means is, too: of rows with a spread of 1, that is the error.
    np.testing.assert_allclose(found[:2], whole[:2], rtol=1e-15)
    np.testing.assert_allclose(found[2], whole[2], rtol=1e-7)
    np.testing.assert_allclose(found[3:], whole[3:], rtol=1e-6, atol=1e-4)
    naive = (far**2).sum(axis=1) - N * far.mean(axis=1) ** 2
    assert (np.abs(naive - found[2].sum(axis=1)) > 1e3).any()  # what sums of plain squares would have given


def test_empty_subgroups_and_chunks_change_nothing() -> None:
    here = Moments.of(VALUES[:, CODE < 2], CODE[CODE < 2], K)
    assert (here.array[:, :, 2:] == 0).all()
    for found in (here.merged(Moments.none((2, K))), Moments.none((2, K)).merged(here)):
        assert (found.array == here.array).all()


def test_moments_of_subgroups_merge_into_those_of_all_rows() -> None:
    np.testing.assert_allclose(Moments.of(VALUES, CODE, K).together().array, Moments.of(VALUES).array, rtol=1e-11)


def test_moments_survive_as_one_array() -> None:
    found = Moments.of(VALUES, CODE, K)
    assert (Moments.from_array(found.array).array == found.array).all()
    assert (found[1:2].array == found.array[:, 1:2]).all()
