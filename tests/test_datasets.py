"""The data sets that are shipped."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove.datasets import Dataset, bike
from subgrove.exceptions import ParameterError

REFERENCE = Path(__file__).parents[2] / "shared" / "reference" / "trees" / "data"
COLUMNS = ["season", "yr", "holiday", "weekday", "temp", "hum", "work", "weather", "wind"]
# Rows of bike_full.csv.gz of the reference trees (R), with cnt at the end. Rows 31 and 137 are those where rounding
# the decimal value and rounding a scaled float differ, in hum and in temp.
EXCERPT: dict[int, tuple[Any, ...]] = {
    0: ("WINTER", "2011", "NO HOLIDAY", "SAT", 8.2, 80.583, "NO WORKING DAY", "BAD", 10.749882, 985.0),
    31: ("WINTER", "2011", "NO HOLIDAY", "TUE", 1.0, 82.957, "WORKING DAY", "BAD", 3.565271, 1360.0),
    137: ("SPRING", "2011", "NO HOLIDAY", "WED", 17.9, 87.0, "WORKING DAY", "BAD", 13.499964, 3855.0),
}


def test_bike_holds_the_rows_of_the_reference_excerpt() -> None:
    data = bike()
    for row, expected in EXCERPT.items():
        assert (*data.X.iloc[row], data.y.iloc[row]) == expected


def test_bike_has_731_rows_and_nine_columns_in_order() -> None:
    data = bike()
    assert list(data.X.columns) == COLUMNS
    assert data.X.shape == (731, 9)
    assert data.y.name == "cnt"
    assert data.y.index.equals(data.X.index)
    assert not data.X.isna().any(axis=None)


def test_nominal_columns_are_unordered_categories() -> None:
    X = bike().X
    nominal = [name for name in COLUMNS if name not in {"temp", "hum", "wind"}]
    assert not any(X[name].cat.ordered for name in nominal)
    assert list(X["season"].cat.categories) == ["WINTER", "SPRING", "SUMMER", "FALL"]
    assert list(X["weekday"].cat.categories) == ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


@pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"needs the reference data in {REFERENCE}")
def test_bike_equals_the_reference_bit_for_bit() -> None:
    schema = json.loads((REFERENCE / "bike_full.schema.json").read_text())["columns"]
    with gzip.open(REFERENCE / "bike_full.csv.gz", "rt") as file:
        expected = list(csv.DictReader(file))
    data = bike()
    for name, column in schema.items():
        found = data.y if name == "cnt" else data.X[name]
        if column["type"] == "factor":
            assert list(found.cat.categories) == column["levels"], name
            assert found.tolist() == [row[name] for row in expected], name
        else:
            assert found.dtype == np.float64
            assert found.tolist() == [float(row[name]) for row in expected], name


def test_split_parts_hold_every_row_once_in_order() -> None:
    whole = bike()
    train, test = bike(split=0.7, random_state=1)
    assert (len(train.X), len(test.X)) == (512, 219)
    for part in (train, test):
        assert part.X.index.is_monotonic_increasing
        pd.testing.assert_frame_equal(part.X, whole.X.loc[part.X.index])
        pd.testing.assert_series_equal(part.y, whole.y.loc[part.X.index])
    assert sorted([*train.X.index, *test.X.index]) == list(range(731))


def test_split_keeps_all_levels() -> None:
    train, test = bike(split=0.01, random_state=0)
    assert train.X["season"].dtype == test.X["season"].dtype == bike().X["season"].dtype


@pytest.mark.parametrize("seed", [0, 1, np.int64(7)])
def test_same_seed_same_split(seed: int) -> None:
    one, other = bike(split=0.5, random_state=seed), bike(split=0.5, random_state=seed)
    assert one[0].X.index.equals(other[0].X.index)


def test_other_seed_other_split() -> None:
    assert not bike(split=0.5, random_state=0)[0].X.index.equals(bike(split=0.5, random_state=1)[0].X.index)


def test_split_without_seed_differs_from_call_to_call() -> None:
    # Two of C(731, 365) splits are equal with probability below 1e-200.
    assert not bike(split=0.5)[0].X.index.equals(bike(split=0.5)[0].X.index)


@pytest.mark.parametrize("split", [0, 1, -0.1, 1.5, float("nan"), True, "half"])
def test_split_outside_0_and_1_raises(split: Any) -> None:
    with pytest.raises(ParameterError, match="split must be a number between 0 and 1"):
        bike(split=split, random_state=1)


def test_split_with_an_empty_part_raises() -> None:
    with pytest.raises(ParameterError, match=r"one part of the 731 rows empty\. Choose it nearer to 0\.5"):
        bike(split=1e-5)


def test_random_state_without_split_raises() -> None:
    with pytest.raises(ParameterError, match=r"random_state=0 has no effect without split"):
        bike(random_state=0)  # type: ignore[call-overload]  # the error is tested


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_invalid_random_state_raises(seed: Any) -> None:
    with pytest.raises(ParameterError, match="random_state must be an integer"):
        bike(split=0.5, random_state=seed)


def test_dataset_is_frozen_and_can_be_pickled() -> None:
    data = bike()
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = data.y * 2  # type: ignore[misc]  # the error is tested
    copy = pickle.loads(pickle.dumps(data))
    assert isinstance(copy, Dataset)
    pd.testing.assert_frame_equal(copy.X, data.X)


def test_modified_table_does_not_affect_the_next_call() -> None:
    first = bike()
    first.X.loc[0, "temp"] = 99.0
    assert bike().X.loc[0, "temp"] == 8.2


def test_dataset_names_its_source() -> None:
    data = bike()
    assert "Fanaee-T" in data.source
    assert "CC BY 4.0" in data.source
    assert "bikes" in data.description
