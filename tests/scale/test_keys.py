"""Keys of rows: the same for equal values, and nothing in common between neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from subgrove._core.execution import mix64
from subgrove._scale.readers.data import hash_column, numbered_keys, salt_keys
from subgrove.exceptions import ColumnError


def test_mixing_is_that_of_splitmix64() -> None:
    # The first numbers of the generator with state 1234567, as its authors publish them.
    step = 0x9E3779B97F4A7C15
    state = np.uint64(1234567) + np.arange(3, dtype=np.uint64) * np.uint64(step)
    assert mix64(state, step).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_keys_of_numbers_differ_and_go_on() -> None:
    keys = numbered_keys(0, 100_000)
    assert len(np.unique(keys)) == 100_000
    assert np.array_equal(keys[40_000:], numbered_keys(40_000, 60_000))


def test_seeds_and_purposes_have_nothing_in_common() -> None:
    keys = numbered_keys(0, 20_000)
    drawn = [salt_keys(keys, seed, what) / 2.0**64 for seed, what in ((1, "sample"), (2, "sample"), (1, "other"))]
    correlation = np.corrcoef([*drawn, *(one[::-1] for one in drawn)])
    assert np.abs(correlation - np.eye(6)).max() < 4.5 / np.sqrt(20_000)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array([1, 2], np.int32), pd.Series([1, 2], dtype="Int64")),
        (pd.Series(["a", "b"]), pd.Series(["a", "b"], dtype="category")),
        (pd.Series(["a", "b"]), pl.Series(["a", "b"])),
        (pa.chunked_array([["a"], ["b"]]), pd.Series(["a", "b"], dtype=object)),
        (pa.chunked_array([[5, 6]]), pl.Series([5, 6])),
        (pd.Series([-0.0, 1.5]), np.array([0.0, 1.5], np.float32)),
        (pd.Series(pd.to_datetime(["2024-01-01"])), pd.Series(pd.to_datetime(["2024-01-01"])).astype("M8[ns]")),
        (pd.Series(pd.to_datetime(["2024-01-01T01:00+01:00"])), pd.Series(pd.to_datetime(["2024-01-01"]))),
    ],
)
def test_equal_values_have_equal_keys(first: Any, second: Any) -> None:
    assert hash_column(first, "id").tolist() == hash_column(second, "id").tolist()


@pytest.mark.parametrize("values", [[1.0, None], ["a", None], pd.Series([1, None], dtype="Int64")])
def test_missing_keys_are_rejected(values: Any) -> None:
    with pytest.raises(ColumnError, match="'id', which has missing values"):
        hash_column(pd.Series(values), "id")
