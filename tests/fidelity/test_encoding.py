"""Encoding of columns of any type as points, with the documented distances."""

from __future__ import annotations

import numpy as np
import pandas as pd

from subgrove._core.kinds import Floats
from subgrove._data.encode import PointEncoding, columns_with_missing
from subgrove._data.table import read_like, read_table
from subgrove._fidelity.mmd import PairBlock
from subgrove._scoring.two_sample import Points


def points(train: pd.DataFrame, rows: pd.DataFrame) -> Points:
    learned = read_table(train, lenient=True)
    table = read_like(rows, learned.columns)
    return Points(*PointEncoding.of(learned).arrays(table, table.names, columns_with_missing([learned, table])))


def distances(train: pd.DataFrame, rows: pd.DataFrame) -> Floats:
    made = points(train, rows)
    return np.sqrt(PairBlock.of(made, made).distances()).reshape(len(rows), len(rows))


def test_numbers_are_scaled_by_the_training_rows() -> None:
    train = pd.DataFrame({"u": [1.0, 2.0, 3.0], "v": [0.0, 100.0, 200.0]})
    made = points(train, pd.DataFrame({"u": [2.0, 4.0], "v": [100.0, 0.0]}))
    np.testing.assert_allclose(made.numbers, [[0.0, 0.0], [2.0, -1.0]])
    assert made.labels.shape == (2, 0)


def test_different_labels_have_distance_one_and_equal_ones_none() -> None:
    rows = pd.DataFrame({"u": ["a", "b", "c", "a"]})
    np.testing.assert_allclose(distances(rows, rows)[0], [0, 1, 1, 0])


def test_a_missing_label_is_a_label_of_its_own() -> None:
    rows = pd.DataFrame({"u": ["a", None, None, "b"]})
    np.testing.assert_allclose(distances(rows, rows)[1], [1, 0, 0, 1])


def test_labels_unseen_in_training_are_one_label() -> None:
    train = pd.DataFrame({"u": ["a", "b", "a"]})
    np.testing.assert_allclose(distances(train, pd.DataFrame({"u": ["z", "a", "b", "y"]}))[0], [0, 1, 1, 0])


def test_missing_number_is_the_mean_with_an_indicator() -> None:
    train = pd.DataFrame({"u": [1.0, 2.0, 3.0, np.nan]})
    found = distances(train, pd.DataFrame({"u": [2.0, np.nan, 4.0, np.nan]}))
    np.testing.assert_allclose(found[1], [1.0, 0.0, np.sqrt(1 + 4), 0.0])


def test_ordered_levels_are_numbers() -> None:
    levels = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    rows = pd.DataFrame({"u": pd.Series(["low", "mid", "high"], dtype=levels)})
    np.testing.assert_allclose(distances(rows, rows)[0], [0, 1, 2])


def test_a_constant_column_is_only_centred() -> None:
    train = pd.DataFrame({"u": [5.0, 5.0, 5.0]})
    np.testing.assert_allclose(points(train, pd.DataFrame({"u": [5.0, 6.0]})).numbers[:, 0], [0.0, 1.0])


def test_a_column_without_a_value_has_no_distances() -> None:
    rows = pd.DataFrame({"u": [np.nan, np.nan, np.nan], "v": [1.0, 2.0, 3.0]})
    np.testing.assert_allclose(distances(rows, rows)[0], [0, 1, 2])


def test_columns_can_be_encoded_separately() -> None:
    rows = pd.DataFrame({"u": [1.0, 2.0, 3.0], "v": ["a", "b", "a"], "w": [3.0, 1.0, 2.0], "x": ["c", "c", "d"]})
    table = read_table(rows)
    encoding = PointEncoding.of(table)
    whole = Points(*encoding.arrays(table, table.names, ()))
    parts = [Points(*encoding.arrays(table, (name,), ())) for name in ("u", "w", "v", "x")]
    together = parts[0].beside(parts[1]).beside(parts[2]).beside(parts[3])
    np.testing.assert_array_equal(together.numbers, whole.numbers)
    np.testing.assert_array_equal(together.labels, whole.labels)
