"""Levels of nominal columns are numbered in the order of what they go with in the training rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from subgrove._data.encode import first_direction, rank_encoded
from subgrove._data.table import read_table


def ranks(levels: list[str | None], outputs: list[list[float]], train: list[int]) -> list[float]:
    table = read_table(pd.DataFrame({"level": pd.Series(levels, dtype=object)}))
    found = rank_encoded(table, ["level"], np.array(outputs, dtype=float), np.array(train))
    return [float(rank) for rank in found[:, 0]]


def test_levels_are_ranked_by_the_mean_of_a_number() -> None:
    assert ranks(["a", "b", "c", "a"], [[5.0], [1.0], [3.0], [7.0]], [0, 1, 2, 3]) == [2, 0, 1, 2]


def test_only_training_rows_decide() -> None:
    # Without the last row the mean of b is the smaller one.
    assert ranks(["a", "b", "b"], [[2.0], [1.0], [99.0]], [0, 1]) == [1, 0, 0]


def test_levels_are_ranked_by_the_share_of_two_classes() -> None:
    outputs = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    assert ranks(["a", "a", "b", "b", "c", "c"], outputs, list(range(6))) == [1, 1, 2, 2, 0, 0]


def test_rounding_does_not_turn_the_order_round() -> None:
    # Shares of two classes weigh the same, so that rounding alone, which differs by machine, would choose the sign.
    rng = np.random.default_rng(1)
    for _ in range(200):
        shares = rng.uniform(size=5)
        means = np.column_stack([shares, 1 - shares, np.zeros(5)])
        place = first_direction(means, rng.integers(1, 50, size=5).astype(float))
        assert (np.argsort(place) == np.argsort(shares)).all()


def test_levels_that_training_rows_lack_and_missing_ones_have_no_rank() -> None:
    found = ranks(["a", "b", None, "c"], [[1.0], [2.0], [3.0], [0.0]], [0, 1, 2])
    assert found[:2] == [0, 1]
    assert np.isnan(found[2:]).all()


def test_ties_are_broken_by_name() -> None:
    assert ranks(["b", "a"], [[1.0], [1.0]], [0, 1]) == [1, 0]


def test_a_column_without_a_known_level_is_missing_throughout() -> None:
    assert np.isnan(ranks([None, None, "a"], [[1.0], [2.0], [3.0]], [0, 1])).all()
