"""Squared MMD: what the definition says, for samples of any kind and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from subgrove import squared_mmd
from subgrove._core.kinds import Floats
from subgrove._fidelity import mmd
from subgrove._fidelity.mmd import Pairs, sample_two
from subgrove._scoring.fidelity_check.pairs import Points
from subgrove.exceptions import InputError, ParameterError


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
def test_squared_mmd_is_what_its_definition_says(n: int, m: int, gamma: float | None) -> None:
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


def test_two_samples_of_one_distribution_have_what_the_docstring_says() -> None:
    # Mean over 200 pairs of samples; its standard error is the standard deviation over them / sqrt(200), times 4.
    rng = np.random.default_rng(5)
    found, expected = [], []
    for _ in range(200):
        both = rng.normal(size=(2, 50, 2))
        found.append(squared_mmd(both[0], both[1], gamma=0.5))
        # k = E exp(-|x - y|^2 / 2) with x - y normal of variance 2: (1 + 2)^(-1) in two dimensions
        expected.append(2 * (1 - 1 / 3) / 50)
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=4 * np.std(found) / np.sqrt(200))


def test_samples_in_frames_are_the_same_samples() -> None:
    a, b = samples()
    names = ["u", "v", "w"]
    expected = squared_mmd(a, b)
    assert squared_mmd(pd.DataFrame(a, columns=names), pd.DataFrame(b, columns=names)) == expected
    assert squared_mmd(pl.DataFrame(a, schema=names), pl.DataFrame(b, schema=names)) == expected


def test_mostly_equal_rows_take_the_median_of_what_differs() -> None:
    a, b = np.zeros((30, 1)), np.append(np.zeros(28), [3.0, 3.0])[:, None]
    assert squared_mmd(a, b) == pytest.approx(defined(a, b, 1 / (2 * 9)), abs=1e-14)


def test_rows_that_are_all_equal_have_no_distance() -> None:
    assert squared_mmd(np.ones((5, 2)), np.ones((4, 2))) == 0.0


def test_more_rows_than_the_limit_are_drawn_by_the_seed() -> None:
    a, b = samples(400, 200)
    first, again, other = (squared_mmd(a, b, max_rows=90, random_state=seed) for seed in (1, 1, 2))
    assert first == again != other
    rows = sample_two(400, 200, 90, np.random.default_rng(0))
    assert [len(part) for part in rows] == [60, 30]
    assert all(len(set(part.tolist())) == len(part) for part in rows)


def test_up_to_the_limit_all_rows_are_used() -> None:
    a, b = samples()
    assert squared_mmd(a, b, max_rows=105) == squared_mmd(a, b)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("n_copies", [1, 2, 3])
def test_a_column_that_changes_gives_what_whole_samples_give(keep: bool, n_copies: int) -> None:
    a, b = samples()
    copies = [np.random.default_rng(seed).normal(size=(len(b), 1)) for seed in range(n_copies)]
    found = Pairs.of(a[:, 1:], b[:, 1:], keep=keep)
    whole = np.vstack([np.hstack([copy, b[:, 1:]]) for copy in copies])
    assert found.squared_mmd(a[:, :1], copies) == pytest.approx(squared_mmd(a, whole), abs=1e-14)


def test_distances_are_not_kept_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = samples()
    assert Pairs.of(a, b).across is not None
    expected = Pairs.of(a, b).squared_mmd(a[:, :1], [b[:, :1]])
    monkeypatch.setattr(mmd, "_KEPT", 100)
    assert Pairs.of(a, b).across is None
    assert Pairs.of(a, b).squared_mmd(a[:, :1], [b[:, :1]]) == pytest.approx(expected, abs=1e-14)


def test_labels_are_as_indicators_of_half_the_square() -> None:
    rng = np.random.default_rng(0)
    numbers, labels = rng.normal(size=(50, 2)), rng.integers(0, 4, (50, 1)).astype(float)
    indicators = (labels == np.arange(4)) / np.sqrt(2)
    a, b = np.arange(20), np.arange(20, 50)
    found = Pairs.of(Points(numbers, labels).rows(a), Points(numbers, labels).rows(b), keep=False)
    whole = np.hstack([numbers, indicators])
    nothing = np.empty((50, 0))
    assert found.squared_mmd(nothing[a], [nothing[b]]) == pytest.approx(defined(whole[a], whole[b]), abs=1e-14)


BAD: list[tuple[Any, Any, dict[str, Any], str]] = [
    (np.ones((3, 2)), np.ones((3, 1)), {}, "a has 2 columns and b has 1"),
    (np.ones((0, 2)), np.ones((3, 2)), {}, "a has 0 rows"),
    (np.ones((3, 2)), np.ones((3, 0)), {}, "b has 3 rows and 0 columns"),
    (np.array([[1.0], [np.nan]]), np.ones((3, 1)), {}, "a has missing values in 'x0'"),
    (pd.DataFrame({"u": ["a", "b"]}), np.ones((3, 1)), {}, "a has the column 'u' of labels"),
]


@pytest.mark.parametrize(("a", "b", "more", "message"), BAD)
def test_samples_that_have_no_distances_are_refused(a: Any, b: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        squared_mmd(a, b, **more)


@pytest.mark.parametrize("gamma", [0, -1.0, np.inf, np.nan, "large", True])
def test_gamma_that_is_no_number_above_zero_is_refused(gamma: Any) -> None:
    with pytest.raises(ParameterError, match="gamma must be"):
        squared_mmd(*samples(), gamma)


@pytest.mark.parametrize("max_rows", [1, 2.5, "all"])
def test_a_limit_that_is_no_number_of_rows_is_refused(max_rows: Any) -> None:
    with pytest.raises(ParameterError, match="max_rows"):
        squared_mmd(*samples(), max_rows=max_rows)


def test_columns_of_two_tables_are_matched_by_name() -> None:
    a, b = samples()
    one, two = pd.DataFrame(a, columns=["u", "v", "w"]), pd.DataFrame(b, columns=["u", "v", "w"])
    assert squared_mmd(one, two[["w", "u", "v"]]) == squared_mmd(a, b) == squared_mmd(one, b)
    with pytest.raises(InputError, match="a has the column 'w', which b lacks"):
        squared_mmd(one, two.rename(columns={"w": "z"}))


@pytest.mark.parametrize("scale", [1e200, 1e160, 1e-155])
def test_distances_whose_squares_no_float_can_hold_are_refused(scale: float) -> None:
    a, b = samples()
    with pytest.raises(InputError, match="median distance of the rows is"):
        squared_mmd(scale * a, scale * b)
    assert squared_mmd(1e120 * a, 1e120 * b) == pytest.approx(squared_mmd(a, b), rel=1e-9)
