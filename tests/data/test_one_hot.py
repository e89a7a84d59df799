"""What forests are given: numbers as they are, indicators of levels, days."""

from __future__ import annotations

import numpy as np
import pandas as pd

from subgrove._data.encode import one_hot
from subgrove._data.table import read_like, read_table

SIZES = pd.CategoricalDtype(["s", "m", "l"], ordered=True)
X = pd.DataFrame(
    {
        "x": [0.0, 0.0, 0.0],
        "number": [1.5, np.nan, 3.0],
        "size": pd.Series(["l", None, "s"], dtype=SIZES),
        "label": ["b", "a", None],
        "day": np.array(["1970-01-02T00:00", "NaT", "1970-01-03T12:00"], dtype="datetime64[us]"),
    }
)


def test_each_kind_has_its_encoding_and_missing_values_stay() -> None:
    # In the order of the table: the number, the number of the level, indicators of a, b and missing, days since 1970.
    np.testing.assert_array_equal(
        one_hot(read_table(X), "x"),
        [[1.5, 3, 0, 1, 0, 1.0], [np.nan, np.nan, 1, 0, 0, np.nan], [3.0, 1, 0, 0, 1, 2.5]],
    )


def test_level_that_training_did_not_have_has_no_indicator() -> None:
    columns = read_table(X[["x", "label"]]).columns
    new = read_like(pd.DataFrame({"x": [0.0], "label": ["new"]}), columns)
    np.testing.assert_array_equal(one_hot(new, "x"), [[0.0, 0.0, 0.0]])


def test_ordered_level_that_training_did_not_have_is_missing() -> None:
    columns = read_table(X[["x", "size"]]).columns
    new = read_like(pd.DataFrame({"x": [0.0], "size": pd.Categorical(["xl"], ["xl"], ordered=True)}), columns)
    np.testing.assert_array_equal(one_hot(new, "x"), [[np.nan]])


def test_without_another_column_there_is_a_constant_one() -> None:
    np.testing.assert_array_equal(one_hot(read_table(X[["x"]]), "x"), np.zeros((3, 1)))
