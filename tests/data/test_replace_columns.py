"""Tables for the model: the user's rows in the user's container, with columns replaced and nothing else changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from subgrove._data.replace_columns import Donors, Frames
from subgrove._data.table import read_table
from subgrove._data.to_containers import backend_of, copied, make_table, without_columns
from subgrove.exceptions import ColumnError

N = 6
FRAME = pd.DataFrame(
    {
        "x": [0.5, 1.5, np.nan, 3.5, 4.5, 5.5],
        "count": [0, 1, 2, 3, 4, 5],
        "city": ["a", "b", "c", "a", "b", None],
        "flag": [True, False, True, True, False, False],
        "grade": pd.Categorical(["low", "high", "low", "low", None, "high"], ["low", "high"], ordered=True),
        "day": pd.Series(pd.date_range("2024-01-01", periods=6).to_numpy()).mask(np.arange(6) == 2).to_numpy(),
        "zone": pd.date_range("2024-01-01", periods=6, tz="Europe/Berlin"),
        "span": pd.to_timedelta([1, 2, 3, 4, 5, 6], unit="h"),
    },
    index=list("uvwxyz"),
)
ARRAY = np.arange(12.0).reshape(6, 2)
TABLES: dict[str, Any] = {
    "pandas": FRAME,
    "pandas nullable": FRAME.convert_dtypes(),
    "floats": pd.DataFrame(ARRAY, columns=["x", "z"]),
    "array": ARRAY,
    "whole numbers": ARRAY.astype(np.int64),
    "objects": FRAME[["x", "city"]].to_numpy(),
    "polars": pl.from_pandas(FRAME.drop(columns="zone")),
    "pyarrow": pa.Table.from_pandas(FRAME.drop(columns="zone"), preserve_index=False),
}
each_table = pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))


def frames_of(table: Any, train: Any = None) -> Frames:
    return Frames(table, read_table(table).columns, train)


def rows_of(table: Any) -> list[tuple[str, ...]]:
    """Rows as text, so that missing values are equal."""
    if isinstance(table, np.ndarray):
        return [tuple(map(str, row)) for row in table.tolist()]
    if isinstance(table, pd.DataFrame):
        return [tuple(map(str, row)) for row in table.itertuples(index=False)]
    columns = table.to_dict(as_series=False) if isinstance(table, pl.DataFrame) else table.to_pydict()
    return [tuple(map(str, row)) for row in zip(*columns.values(), strict=True)]


def schema(table: Any) -> Any:
    if isinstance(table, np.ndarray):
        return table.dtype
    return table.dtypes.tolist() if isinstance(table, pd.DataFrame) else table.schema


@each_table
def test_rows_are_selected_unchanged(table: Any) -> None:
    frames = frames_of(table)
    rows = rows_of(table)
    assert rows_of(frames.changed(slice(1, 4), {})) == rows[1:4]
    assert rows_of(frames.changed(np.array([5, 0, 0]), {})) == [rows[5], rows[0], rows[0]]
    assert schema(frames.changed(slice(1, 4), {})) == schema(table)


@each_table
def test_donors_replace_one_column_only(table: Any) -> None:
    frames = frames_of(table)
    rows = rows_of(table)
    for place, name in enumerate(frames.names):
        donors = np.array([5, 4, 3, 2, 1, 0])
        expected = [
            (*row[:place], rows[donor][place], *row[place + 1 :]) for row, donor in zip(rows, donors, strict=True)
        ]
        changed = frames.changed(slice(None), {name: Donors(donors)})
        assert rows_of(changed) == expected
        assert schema(changed) == schema(table)


@each_table
def test_tile_can_be_filled_repeatedly(table: Any) -> None:
    """Each filling is the copies with these columns replaced, whatever was filled before; also if fewer."""
    frames = frames_of(table)
    tile = frames.tile(3)
    rng = np.random.default_rng(0)
    first, second = frames.names[:2]
    for blocks in ([first], [second, first], [first, second, first], [second], [first, first, second]):
        changes: list[dict[str, Any]] = [{name: Donors(rng.permutation(N))} for name in blocks]
        filled = tile.fill(changes)
        alone = [row for change in changes for row in rows_of(frames.changed(slice(None), change))]
        assert rows_of(filled) == alone
        assert schema(filled) == schema(table)
    both: dict[str, Any] = {first: Donors(rng.permutation(N)), second: Donors(rng.permutation(N))}
    assert rows_of(tile.fill([both])) == rows_of(frames.changed(slice(None), both))


def test_tile_is_contiguous() -> None:
    change = {"x": Donors(np.arange(N)[::-1])}
    polars = frames_of(TABLES["polars"]).tile(3).fill([change] * 3)
    assert polars.n_chunks("all") == [1] * polars.width
    pyarrow = frames_of(TABLES["pyarrow"]).tile(3).fill([change] * 3)
    assert [column.num_chunks for column in pyarrow.columns] == [1] * pyarrow.num_columns


@each_table
def test_table_of_the_user_is_not_changed(table: Any) -> None:
    before = rows_of(table)
    frames = frames_of(table)
    name = frames.names[0]
    tile = frames.tile(2)
    tile.fill([{name: Donors(np.zeros(N, dtype=np.intp))}] * 2)
    frames.changed(slice(None), {name: Donors(np.zeros(N, dtype=np.intp))})
    assert rows_of(table) == before


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in ("pandas", "pandas nullable", "polars", "pyarrow")
        for name in FRAME.columns
        if name != "zone" or kind.startswith("pandas")
    ],
)
def test_training_donors_come_in_the_dtype_of_the_table(kind: str, name: str) -> None:
    table = TABLES[kind]
    train = frames_of(table).changed(np.array([1, 3, 4]), {})
    frames = frames_of(table, train)
    donors = Donors(np.array([0, 1, 2, 2, 1, 0]), train=True)
    changed = frames.changed(slice(None), {name: donors})
    place = frames.names.index(name)
    assert schema(changed) == schema(table)
    assert [row[place] for row in rows_of(changed)] == [rows_of(train)[donor][place] for donor in donors.rows]
    filled = frames.tile(2).fill([{name: donors}, {}])
    assert rows_of(filled) == rows_of(changed) + rows_of(table)
    assert schema(filled) == schema(table)


def test_microseconds_are_dates_again() -> None:
    """Samplers that make new values give numbers; dates and durations get their own type back."""
    for kind in ("pandas", "polars", "pyarrow"):
        table = TABLES[kind]
        frames = frames_of(table)
        moments = np.array([0.0, 1e6, np.nan, 86_400e6, 1.0, 2.0])
        names = ["day", "span"] if kind != "pandas" else ["day", "span", "zone"]
        for name in names:
            changed = frames.changed(slice(None), {name: moments})
            assert schema(changed) == schema(table)
            info = read_table(changed)
            column = next(column for column in info.columns if column.name == name)
            values = info.values(name)
            assert column.has_missing
            np.testing.assert_array_equal(values[[0, 1, 3]], moments[[0, 1, 3]])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint16, np.bool_])
def test_replaced_values_have_the_dtype_of_the_array_if_possible(dtype: Any) -> None:
    table = (ARRAY % 2).astype(dtype)
    frames = frames_of(table)
    for filled in (
        frames.changed(slice(None), {"x0": np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])}),
        frames.tile(1).fill([{"x0": np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])}]),
    ):
        assert filled.dtype == dtype
        assert filled[:, 0].astype(float).tolist() == [0, 1, 1, 0, 1, 0]


def test_integer_table_becomes_float_and_integer_again() -> None:
    frames = frames_of(ARRAY.astype(np.int64))
    tile = frames.tile(1)
    assert tile.fill([{"x0": np.full(N, 0.5)}])[:, 0].tolist() == [0.5] * N
    again = tile.fill([{"x1": Donors(np.arange(N)[::-1])}])
    assert again.dtype == np.int64
    assert again[:, 0].tolist() == ARRAY[:, 0].tolist()
    missing = tile.fill([{"x0": np.array([np.nan, 1.0, 2.0, 3.0, 4.0, 5.0])}])
    assert np.isnan(missing[0, 0])


def test_longer_strings_are_not_cut_off_in_an_array() -> None:
    table = np.array([["a", "b"], ["c", "d"]])
    frames = frames_of(table)
    assert frames.tile(1).fill([{"x0": np.array(["longer", "z"])}]).tolist() == [["longer", "b"], ["z", "d"]]
    assert frames.changed(slice(None), {"x0": np.array(["longer", "z"])}).tolist() == [["longer", "b"], ["z", "d"]]


def test_unknown_category_raises() -> None:
    with pytest.raises(ColumnError, match=r"'grade' do not all fit the dtype category of X"):
        frames_of(FRAME).changed(slice(None), {"grade": np.array(["low", "mid", "low", "low", "low", "low"])})


def write(table: Any) -> None:
    if isinstance(table, np.ndarray):
        table[0, 0] = 99
    else:
        table.iloc[0, 0] = 99


@pytest.mark.parametrize("kind", ["pandas", "pandas nullable", "floats", "array", "whole numbers", "objects"])
def test_writing_to_a_table_is_noticed(kind: str) -> None:
    frames = frames_of(TABLES[kind])
    for rows in (slice(None), slice(0, 3)):
        given = frames.changed(rows, {})
        assert frames.holds(given, rows)
        write(given)
        assert not frames.holds(given, rows)
    assert str(rows_of(TABLES[kind])[0][0]) != "99"


def test_replaced_column_is_detected() -> None:
    for kind in ("pandas", "floats"):
        frames = frames_of(TABLES[kind])
        given = frames.changed(slice(None), {})
        given["new"] = 1.0
        assert not frames.holds(given, slice(None))


@each_table
def test_copy_can_be_written_to(table: Any) -> None:
    before = rows_of(table)
    copy = copied(table)
    assert rows_of(copy) == before
    if isinstance(copy, np.ndarray | pd.DataFrame):
        write(copy)
        assert rows_of(table) == before


@pytest.mark.parametrize(
    ("table", "backend"),
    [(FRAME, "pandas"), (ARRAY, "pandas"), (TABLES["polars"], "polars"), (TABLES["pyarrow"], "pyarrow")],
    ids=["pandas", "array", "polars", "pyarrow"],
)
def test_results_come_in_the_container_of_the_table(table: Any, backend: str) -> None:
    assert backend_of(table) == backend
    types: dict[str, Callable[..., Any]] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
    made = make_table(backend, {"a": [1, 2], "b": ["u", None], "c": [0.5, np.nan]})
    assert isinstance(made, types[backend])  # type: ignore[arg-type]
    assert [row[0] for row in rows_of(made)] == ["1", "2"]


@each_table
def test_columns_are_dropped_by_name(table: Any) -> None:
    names = frames_of(table).names
    left = without_columns(table, names[1:])
    assert [row[:1] for row in rows_of(table)] == rows_of(left)


@each_table
def test_constant_columns_equal_columns_of_that_number(table: Any) -> None:
    frames = frames_of(table)
    tile, other = frames.tile(3), frames.tile(3)
    for numbers in ([2.0, 4.0, 3.0], [1.0], [0.5, 2.0]):
        blocks = [{"x": np.full(N, number)} for number in numbers] if "x" in frames.names else []
        name = "x" if blocks else "x0"
        blocks = blocks or [{name: np.full(N, number)} for number in numbers]
        found, expected = tile.fill_numbers({name: np.array(numbers)}), other.fill(blocks)
        assert rows_of(found) == rows_of(expected)
        assert schema(found) == schema(expected)
    unchanged = tile.fill([{}, {}, {}])
    assert rows_of(unchanged) == rows_of(table) * 3
    assert schema(unchanged) == schema(table)


def test_filling_another_column_restores_the_last_one() -> None:
    tile = frames_of(ARRAY).tile(2)
    tile.fill_numbers({"x0": np.array([7.0, 8.0])})
    found = tile.fill_numbers({"x1": np.array([9.0])})
    assert found[:, 0].tolist() == ARRAY[:, 0].tolist()
    assert found[:, 1].tolist() == [9.0] * N
