"""`SelectedRows` are the rows that `Table.rows` copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from subgrove._data.replace_columns import SelectedRows, selected_rows
from subgrove._data.table import Table, read_table

FRAME = pd.DataFrame(
    {f"x{j}": np.random.default_rng(j).normal(size=60) for j in range(12)}
    | {"level": pd.Categorical(np.array(list("abc"))[np.arange(60) % 3]), "flag": np.arange(60) % 2 == 0}
)
ROWS = np.array([7, 3, 50, 12])


def tables() -> tuple[Table, Table]:
    table = read_table(FRAME).with_clusters(np.arange(60) // 2)
    found = selected_rows(table, ROWS, table.columns)
    assert isinstance(found, SelectedRows)
    return found, table.rows(ROWS)


def test_columns_are_those_of_a_copy() -> None:
    found, expected = tables()
    assert found.n_rows == 4
    for one, other in zip(found, expected, strict=True):
        assert one.info == other.info
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(found.values(one.info.name), other.values)


def test_whole_arrays_are_those_of_a_copy() -> None:
    found, expected = tables()
    np.testing.assert_array_equal(found.numbers, expected.numbers)
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_array_equal(found.clusters, expected.clusters)


def test_parts_are_those_of_a_copy() -> None:
    found, expected = tables()
    part, other = (table.without(["x3"]).rows(np.array([2, 0])) for table in (found, expected))
    assert part.names == other.names
    np.testing.assert_array_equal(part.values("level"), other.values("level"))
    np.testing.assert_array_equal(part.values("x4"), other.values("x4"))


def test_columns_with_other_levels_are_not_selected() -> None:
    table = read_table(FRAME)
    columns = tuple(replace(one, levels=("a", "b")) if one.name == "level" else one for one in table.columns)
    assert selected_rows(table, ROWS, columns) is None
    assert selected_rows(table, ROWS, table.columns[1:]) is None
