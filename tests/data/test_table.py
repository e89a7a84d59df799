"""Tables and columns as they are read: kinds, levels, values and missing values, from every container."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from subgrove._core.weights import FrequencyWeights, read_weights
from subgrove._data.from_containers import is_missing
from subgrove._data.table import ColumnInfo, Kind, Table, read_like, read_series, read_table
from subgrove.exceptions import ColumnError, InputError

DAY = 86_400 * 1e6  # microseconds
LABELS = ["v", "u", None, "v"]
CODES = [1, 0, -1, 1]
NUMBERS = [2.5, 1.0, None, 2.5]
FLAGS = [True, False, None, True]
DATES = [date(1970, 1, 2), date(1970, 1, 4), None, date(1970, 1, 2)]
TIMES = [None if day is None else datetime(day.year, day.month, day.day) for day in DATES]
DICTIONARY = pa.array(["u", "v"])
ORDERED = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), DICTIONARY, ordered=True)
UNORDERED = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), DICTIONARY)


def objects(values: list[Any]) -> npt.NDArray[np.object_]:
    return np.array(values, dtype=object)


def arrow(values: list[Any], kind: Any) -> Any:
    """A pandas column that lies in Arrow's memory."""
    dtype: Any = pd.ArrowDtype(kind)
    return pd.Series(values, dtype=dtype)


NUMERIC: dict[str, Any] = {
    "pandas float64": pd.DataFrame({"a": np.array(NUMBERS, dtype=float)}),
    "pandas float32": pd.DataFrame({"a": np.array(NUMBERS, dtype=np.float32)}),
    "pandas Float64": pd.DataFrame({"a": pd.array(NUMBERS, dtype="Float64")}),
    "pandas arrow": pd.DataFrame({"a": arrow(NUMBERS, pa.float64())}),
    "pandas object": pd.DataFrame({"a": objects(NUMBERS)}),
    "pandas object with NA": pd.DataFrame({"a": objects([2.5, 1, pd.NA, 2.5])}),
    "polars": pl.DataFrame({"a": NUMBERS}),
    "polars NaN": pl.DataFrame({"a": [2.5, 1.0, float("nan"), 2.5]}),
    "pyarrow": pa.table({"a": NUMBERS}),
    "pyarrow in chunks": pa.table({"a": pa.chunked_array([NUMBERS[:1], NUMBERS[1:]])}),
    "pyarrow decimal": pa.table({"a": [None if n is None else Decimal(str(n)) for n in NUMBERS]}),
}
INTEGERS: dict[str, Any] = {
    "pandas int64": pd.DataFrame({"a": [10, 1, 2]}),
    "pandas Int64": pd.DataFrame({"a": pd.array([10, 1, 2], dtype="Int64")}),
    "polars": pl.DataFrame({"a": [10, 1, 2]}),
    "polars UInt8": pl.DataFrame({"a": [10, 1, 2]}, schema={"a": pl.UInt8}),
    "pyarrow": pa.table({"a": [10, 1, 2]}),
}
MISSING_INTEGERS: dict[str, Any] = {
    "polars": pl.DataFrame({"a": [3, None, 2]}),
    "pyarrow": pa.table({"a": [3, None, 2]}),
    "pandas Int64": pd.DataFrame({"a": pd.array([3, None, 2], dtype="Int64")}),
    "pandas arrow": pd.DataFrame({"a": arrow([3, None, 2], pa.int64())}),
}
NOMINAL: dict[str, Any] = {
    "pandas str": pd.DataFrame({"a": LABELS}),
    "pandas string": pd.DataFrame({"a": pd.array(LABELS, dtype="string")}),
    "pandas object": pd.DataFrame({"a": objects(LABELS)}),
    "pandas object with NaN": pd.DataFrame({"a": objects(["v", "u", np.nan, "v"])}),
    "pandas category": pd.DataFrame({"a": pd.Categorical(LABELS)}),
    "pandas arrow": pd.DataFrame({"a": arrow(LABELS, pa.string())}),
    "polars String": pl.DataFrame({"a": LABELS}),
    "polars Categorical": pl.DataFrame({"a": LABELS}, schema={"a": pl.Categorical}),
    "pyarrow string": pa.table({"a": LABELS}),
    "pyarrow large string": pa.table({"a": pa.array(LABELS, type=pa.large_string())}),
    "pyarrow dictionary": pa.table({"a": UNORDERED}),
}
BOOLEAN: dict[str, Any] = {
    "pandas object": pd.DataFrame({"a": objects(FLAGS)}),
    "pandas boolean": pd.DataFrame({"a": pd.array(FLAGS, dtype="boolean")}),
    "pandas arrow": pd.DataFrame({"a": arrow(FLAGS, pa.bool_())}),
    "polars": pl.DataFrame({"a": FLAGS}),
    "pyarrow": pa.table({"a": FLAGS}),
}
DATED: dict[str, Any] = {
    "pandas datetime64[ns]": pd.DataFrame({"a": np.array(TIMES, dtype="datetime64[ns]")}),
    "pandas datetime64[s]": pd.DataFrame({"a": np.array(TIMES, dtype="datetime64[s]")}),
    "pandas with a time zone": pd.DataFrame({"a": pd.to_datetime(pd.Series(TIMES)).dt.tz_localize("UTC")}),
    "pandas arrow": pd.DataFrame({"a": arrow(DATES, pa.date32())}),
    "polars Date": pl.DataFrame({"a": DATES}),
    "polars Datetime": pl.DataFrame({"a": TIMES}),
    "polars Datetime in ns": pl.DataFrame({"a": TIMES}, schema={"a": pl.Datetime("ns")}),
    "pyarrow date32": pa.table({"a": pa.array(DATES, type=pa.date32())}),
    "pyarrow timestamp": pa.table({"a": pa.array(TIMES, type=pa.timestamp("ms"))}),
    "pyarrow with a time zone": pa.table({"a": pa.array(TIMES, type=pa.timestamp("us", "UTC"))}),
}
SIZED: dict[str, Any] = {
    "pandas": pd.DataFrame({"a": pd.Categorical(LABELS, ["u", "v"], ordered=True)}),
    "polars Enum": pl.DataFrame({"a": LABELS}, schema={"a": pl.Enum(["u", "v"])}),
    "pyarrow dictionary": pa.table({"a": ORDERED}),
}
DURATIONS: dict[str, Any] = {
    "pandas": pd.DataFrame({"a": pd.to_timedelta([1.0, 3.0, None], unit="D")}),
    "polars": pl.DataFrame({"a": [1, 3, None]}, schema={"a": pl.Int64}).select(pl.duration(days="a").alias("a")),
    "pyarrow": pa.table({"a": pa.array([86_400, 3 * 86_400, None], type=pa.duration("s"))}),
}


# What a column is, how it is stored, what is read from it.
READ: dict[str, tuple[dict[str, Any], ColumnInfo, list[Any]]] = {
    "numbers": (NUMERIC, ColumnInfo("a", "numeric", (), True), [2.5, 1.0, np.nan, 2.5]),
    "integers": (INTEGERS, ColumnInfo("a", "numeric", is_integer=True), [10.0, 1.0, 2.0]),
    "missing": (MISSING_INTEGERS, ColumnInfo("a", "numeric", (), True, is_integer=True), [3.0, np.nan, 2.0]),
    "nominal": (NOMINAL, ColumnInfo("a", "nominal", ("u", "v"), True), CODES),
    "booleans": (BOOLEAN, ColumnInfo("a", "nominal", ("False", "True"), True), CODES),
    "dates": (DATED, ColumnInfo("a", "numeric", (), True, is_date=True), [DAY, 3 * DAY, np.nan, DAY]),
    "ordered": (SIZED, ColumnInfo("a", "ordered", ("u", "v"), True), [2.0, 1.0, np.nan, 2.0]),
    "durations": (DURATIONS, ColumnInfo("a", "numeric", (), True, is_duration=True), [DAY, 3 * DAY, np.nan]),
}


def each(frames: dict[str, Any]) -> pytest.MarkDecorator:
    """The test on each container."""
    return pytest.mark.parametrize("frame", list(frames.values()), ids=list(frames))


def only(table: Table) -> ColumnInfo:
    assert len(table.columns) == 1
    return table.columns[0]


def values(table: Table) -> list[float]:
    """What is read from the only column: numbers, or codes if it is nominal."""
    assert table.numbers.dtype == np.float64
    assert table.codes.dtype == np.int32
    array = table.codes if only(table).is_nominal else table.numbers
    assert array.shape == (table.n_rows, 1)
    read: list[float] = array[:, 0].tolist()
    return read


# Kinds and values.


@pytest.mark.parametrize(
    ("frame", "info", "expected"),
    [
        pytest.param(frame, info, expected, id=f"{kind} in {container}")
        for kind, (frames, info, expected) in READ.items()
        for container, frame in frames.items()
    ],
)
def test_column_is_the_same_from_every_container(frame: Any, info: ColumnInfo, expected: list[float]) -> None:
    table = read_table(frame)
    assert only(table) == info
    np.testing.assert_array_equal(values(table), expected)


@pytest.mark.parametrize(
    ("trained", "frame", "expected"),
    [
        pytest.param(next(iter(frames.values())), frame, expected, id=f"{kind} in {container}")
        for kind, (frames, _, expected) in READ.items()
        for container, frame in frames.items()
    ],
)
def test_new_rows_are_the_same_from_every_container(trained: Any, frame: Any, expected: list[float]) -> None:
    np.testing.assert_array_equal(values(read_like(frame, read_table(trained).columns)), expected)


@each(NOMINAL)
def test_ordered_levels_match_unordered_new_rows(frame: Any) -> None:
    table = read_like(frame, read_table(SIZED["pandas"]).columns)
    np.testing.assert_array_equal(values(table), [2.0, 1.0, np.nan, 2.0])


def test_declared_levels_without_rows_are_kept_in_their_order() -> None:
    levels = ("w", "v", "u")
    enum = pl.DataFrame({"a": ["u"]}, schema={"a": pl.Enum(levels)})
    category = pd.DataFrame({"a": pd.Categorical(["u"], levels)})
    assert only(read_table(enum)).levels == only(read_table(category)).levels == levels


def test_positions_address_numbers_and_codes() -> None:
    frame = pd.DataFrame({"c": ["u", "v"], "a": [1.0, 2.0], "d": ["w", "w"], "b": [3, 4]})
    table = read_table(frame)
    assert table.positions() == (0, 0, 1, 1)
    assert table.numbers.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert table.codes.tolist() == [[0, 0], [1, 0]]


def test_column_is_found_by_name() -> None:
    table = read_table(pd.DataFrame({"c": ["u", "v"], "a": [1.0, 2.0], "d": ["w", None], "b": [3, 4]}))
    assert [table.values(name).tolist() for name in "abcd"] == [[1.0, 2.0], [3.0, 4.0], [0, 1], [0, -1]]
    assert [table.series(name).info for name in table.names] == list(table.columns)
    assert table.series("d").missing.tolist() == [False, True]


@pytest.mark.parametrize("order", ["C", "F"])
def test_array_of_floats_is_not_copied(order: Any) -> None:
    array = np.array([[1.0, 2.0], [np.nan, 4.0]], order=order)
    assert np.shares_memory(read_table(array).numbers, array)


def test_frame_of_floats_is_not_copied() -> None:
    array = np.array([[1.0, 2.0], [np.nan, 4.0]])
    assert np.shares_memory(read_table(pd.DataFrame(array, copy=False)).numbers, array)


# Kinds that the user gives.


@each(INTEGERS)
@pytest.mark.parametrize("kind", ["nominal", "ordered"])
def test_integers_become_levels_in_the_order_of_the_numbers(frame: Any, kind: Kind) -> None:
    assert only(read_table(frame, kinds={"a": kind})) == ColumnInfo("a", kind, ("1", "2", "10"))


@pytest.mark.parametrize("kind", ["nominal", "ordered"])
def test_integers_and_whole_floats_have_the_same_levels(kind: Kind) -> None:
    # A missing value turns a pandas column of integers into floats.
    integers = read_table(pd.DataFrame({"a": [10, 1, 2]}), kinds={"a": kind})
    floats = read_table(pd.DataFrame({"a": [10.0, 1.0, 2.0, np.nan]}), kinds={"a": kind})
    assert only(integers).levels == only(floats).levels


def test_integer_levels_match_floats_in_new_rows() -> None:
    training = read_table(pd.DataFrame({"a": [10, 1, 2]}), kinds={"a": "nominal"})
    again = read_like(pd.DataFrame({"a": [10.0, np.nan, 2.0]}), training.columns)
    assert again.codes[:, 0].tolist() == [2, -1, 1]


@each(BOOLEAN)
def test_booleans_become_0_and_1(frame: Any) -> None:
    np.testing.assert_array_equal(values(read_table(frame, kinds={"a": "numeric"})), [1.0, 0.0, np.nan, 1.0])


@each(DATED)
def test_dates_become_levels_in_the_order_of_time(frame: Any) -> None:
    info = only(read_table(frame, kinds={"a": "ordered"}))
    assert (info.kind, info.has_missing, len(info.levels)) == ("ordered", True, 2)
    assert info.levels[0].startswith("1970-01-02")


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": ["10", "9", None]}),
        pd.DataFrame({"a": pd.Categorical(["10", "9", None])}),
        pd.DataFrame({"a": pd.Categorical([10, 9, None])}),
        pl.DataFrame({"a": ["10", "9", None]}),
        pa.table({"a": ["10", "9", None]}),
    ],
)
def test_text_that_holds_numbers_becomes_numeric(frame: Any) -> None:
    np.testing.assert_array_equal(values(read_table(frame, kinds={"a": "numeric"})), [10.0, 9.0, np.nan])


# Invalid tables.


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [np.nan, np.nan]}),
        pd.DataFrame({"a": objects([None, None])}),
        pd.DataFrame({"a": pd.array([None, None], dtype="Int64")}),
        pd.DataFrame({"a": pd.Categorical([None, None], ["u"])}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.Float64}),
        pl.DataFrame({"a": [None, None]}),
        pa.table({"a": pa.array([None, None], type=pa.date32())}),
        pa.table({"a": [None, None]}),
    ],
)
def test_all_missing_column_raises_and_is_named(frame: Any) -> None:
    with pytest.raises(ColumnError, match=r"'a' of X has no value at all: every row is missing. Drop the column"):
        read_table(frame)


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinite_values_raise_in_every_container(value: float) -> None:
    frames = [pd.DataFrame({"a": [1.0, value]}), pl.DataFrame({"a": [1.0, value]}), pa.table({"a": [1.0, value]})]
    for frame in [*frames, pd.DataFrame({"a": objects([1, value])}), np.array([[1.0], [value]])]:
        with pytest.raises(ColumnError, match="of X has 1 infinite values"):
            read_table(frame)


def test_duplicate_names_raise_in_pyarrow() -> None:
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    with pytest.raises(InputError, match=r"X has several columns named 'a'. Rename them"):
        read_table(table)


def test_lazy_frame_raises() -> None:
    with pytest.raises(InputError, match=r"X must be .*; got LazyFrame"):
        read_table(pl.DataFrame({"a": [1.0]}).lazy())


@pytest.mark.parametrize("frame", [pl.DataFrame({"a": [[1], [2]]}), pa.table({"a": [{"b": 1}, {"b": 2}]})])
def test_nested_column_raises_and_is_named(frame: Any) -> None:
    with pytest.raises(ColumnError, match=r"'a' of X has dtype .* Convert it to numbers, .*, or drop it"):
        read_table(frame)


@pytest.mark.parametrize("value", [b"u", [1]], ids=["bytes", "lists"])
def test_object_column_of_one_unsupported_type_is_not_called_mixed(value: Any) -> None:
    with pytest.raises(ColumnError, match=r"'a' of X .*Convert it") as caught:
        read_table(pd.DataFrame({"a": pd.Series([value, value], dtype=object)}))
    assert "mixes" not in str(caught.value)


def test_categories_with_the_same_text_raise_or_stay_distinct() -> None:
    frame = pd.DataFrame({"a": pd.Categorical([1, "1", 1])})
    try:
        table = read_table(frame)
    except ColumnError as error:
        assert "'a'" in str(error)  # noqa: PT017  # either way is right, one level for both is not
    else:
        assert len(set(table.columns[0].levels)) == len(set(table.codes[:, 0])) == 2


# A column on its own.


@pytest.mark.parametrize(
    "x",
    [
        [1.5, None, 2.0],
        (1.5, None, 2.0),
        np.array([1.5, np.nan, 2.0]),
        np.array([[1.5], [np.nan], [2.0]]),
        pd.Series([1.5, None, 2.0]),
        pd.Series(pd.array([1.5, None, 2.0], dtype="Float64")),
        pl.Series([1.5, None, 2.0]),
        pa.chunked_array([[1.5, None, 2.0]]),
    ],
    ids=lambda x: f"{type(x).__module__}.{type(x).__name__}",
)
def test_single_column_is_read_from_every_container(x: Any) -> None:
    series = read_series(x)
    assert series.info.kind == "numeric"
    np.testing.assert_array_equal(series.values, [1.5, np.nan, 2.0])
    assert series.missing.tolist() == [False, True, False]


@pytest.mark.parametrize(
    "x",
    [
        ["v", None, "u"],
        ["v", float("nan"), "u"],
        pd.Series(["v", None, "u"]),
        pd.Series(pd.Categorical(["v", None, "u"])),
        pl.Series(["v", None, "u"]),
        pl.Series(["v", None, "u"], dtype=pl.Categorical),
        pa.chunked_array([["v", None, "u"]]),
    ],
    ids=lambda x: f"{type(x).__module__}.{type(x).__name__}",
)
def test_single_column_of_levels_is_read_from_every_container(x: Any) -> None:
    series = read_series(x)
    assert (series.info.kind, series.info.levels) == ("nominal", ("u", "v"))
    assert series.values.tolist() == [1, -1, 0]


@pytest.mark.parametrize("x", [range(3), [0, 1, 2], np.arange(3), pl.Series([0, 1, 2]), pd.Series([0, 1, 2])])
def test_single_column_of_integers_is_marked_as_integer(x: Any) -> None:
    assert read_series(x).info.is_integer


@pytest.mark.parametrize("x", [pd.Series([1.0], name="temp"), pl.Series("temp", [1.0])])
def test_column_keeps_its_name(x: Any) -> None:
    assert read_series(x).info.name == "temp"


@pytest.mark.parametrize("container", [list, np.array, pd.Series, pl.Series, pa.array])
def test_weights_are_read_from_every_container(container: Any) -> None:
    np.testing.assert_array_equal(read_weights(FrequencyWeights(container([1, 3])), 2), [1.0, 3.0])
    relative = read_weights(container([1.0, 2.5]), 2)
    assert relative is not None
    np.testing.assert_allclose(relative, np.array([1.0, 2.5]) * 3.5 / 7.25)


# New rows.


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [np.nan]}),
        pd.DataFrame({"a": objects([None])}),
        pd.DataFrame({"a": pd.array([None], dtype="Int64")}),
        pl.DataFrame({"a": [None]}),
        pl.DataFrame({"a": [None]}, schema={"a": pl.Float64}),
        pa.table({"a": [None]}),
    ],
)
@pytest.mark.parametrize("trained", [NUMERIC["pandas float64"], NOMINAL["pandas str"], DATED["polars Date"]])
def test_new_rows_may_have_only_missing_values(trained: Any, frame: Any) -> None:
    table = read_like(frame, read_table(trained).columns)
    assert table.codes.tolist() == [[-1]] or np.isnan(table.numbers).all()


def test_column_that_is_ignored_may_be_anything() -> None:
    training = read_table(pd.DataFrame({"a": [1.0, 2.0]}))
    frame = pd.DataFrame({"a": [1.0], "b": [np.inf], "c": pd.Series([[1, 2]], dtype=object)})
    assert read_like(frame, training.columns).numbers.tolist() == [[1.0]]


def test_integers_of_128_bits_are_numbers_and_views_of_text_are_rejected() -> None:
    wide = pl.DataFrame({"x": pl.Series([1, 2, 2**70], dtype=pl.Int128)})
    assert read_table(wide).values("x").tolist() == [1.0, 2.0, 2.0**70]
    view = pa.table({"x": pa.array(["u", "v"], pa.string_view())})
    with pytest.raises(ColumnError, match="'x' of X has dtype string_view, which is not supported"):
        read_table(view)


def test_a_signalling_nan_is_missing() -> None:
    assert is_missing(Decimal("sNaN"))
