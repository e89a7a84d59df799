"""Every container gives every tree the same groups and the same rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from subgrove.trees import CartTree, ConditionalInferenceTree, TransformationTree, Tree

Grower = TransformationTree | ConditionalInferenceTree | CartTree
Columns = dict[str, list[Any]]

N = 900
SIZES = ["s", "m", "l", "xl"]
SEASONS = ["FALL", "SPRING", "SUMMER", "WINTER"]
GROWERS: list[type[Grower]] = [TransformationTree, ConditionalInferenceTree, CartTree]
each_tree = pytest.mark.parametrize("grower", GROWERS)


def plain(missing: bool) -> tuple[Columns, npt.NDArray[np.float64]]:
    """The data as lists: one column of each kind, and x that depends on all of them."""
    rng = np.random.default_rng(0)
    temp, count = rng.normal(15, 8, N).round(1), rng.integers(0, 50, N)
    flag, season, size = rng.random(N) < 0.4, rng.integers(0, 4, N), rng.integers(0, 4, N)
    day = rng.integers(0, 700, N)
    x = (
        2 * (temp > 15)
        + (count > 20)
        + 1.5 * flag
        + 3 * (season % 2)
        + (size > 1)
        + (day > 400)
        + 0.3 * rng.normal(size=N)
    )
    columns: Columns = {
        "temp": temp.tolist(),
        "count": count.tolist(),
        "flag": flag.tolist(),
        "season": [SEASONS[code] for code in season],
        "size": [SIZES[code] for code in size],
        "day": [date(2020, 1, 1) + timedelta(days=int(number)) for number in day],
    }
    if missing:
        for values in columns.values():
            for row in np.flatnonzero(rng.random(N) < 0.06):
                values[row] = None
    return columns, x


def times(days: list[date | None]) -> list[datetime | None]:
    return [None if day is None else datetime(day.year, day.month, day.day) for day in days]


def sizes(values: list[Any]) -> Any:
    return pd.Categorical(values, SIZES, ordered=True)


def pandas_numpy(columns: Columns) -> pd.DataFrame:
    missing = None in columns["flag"]
    return pd.DataFrame(
        {
            "temp": np.array(columns["temp"], dtype=float),
            "count": np.array(columns["count"], dtype=float if None in columns["count"] else np.int64),
            "flag": np.array(columns["flag"], dtype=object if missing else bool),
            "season": np.array(columns["season"], dtype=object),
            "size": sizes(columns["size"]),
            "day": np.array(columns["day"], dtype="datetime64[ns]"),
        }
    )


def pandas_nullable(columns: Columns) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "temp": pd.Series(columns["temp"], dtype="Float64"),
            "count": pd.Series(columns["count"], dtype="Int64"),
            "flag": pd.Series(columns["flag"], dtype="boolean"),
            "season": pd.Series(columns["season"], dtype="string"),
            "size": sizes(columns["size"]),
            "day": np.array(columns["day"], dtype="datetime64[s]"),
        }
    )


def pandas_categories(columns: Columns) -> pd.DataFrame:
    return pandas_numpy(columns).assign(season=pd.Categorical(columns["season"], SEASONS))


def pandas_inferred(columns: Columns) -> pd.DataFrame:
    return pd.DataFrame({**columns, "size": sizes(columns["size"]), "day": pd.to_datetime(pd.Series(columns["day"]))})


def pandas_arrow(columns: Columns) -> pd.DataFrame:
    frame: pd.DataFrame = pyarrow_strings(columns).to_pandas(types_mapper=pd.ArrowDtype)
    return frame.assign(size=sizes(columns["size"]))


def polars_strings(columns: Columns) -> pl.DataFrame:
    return pl.DataFrame(columns, schema_overrides={"size": pl.Enum(SIZES)})


def polars_categories(columns: Columns) -> pl.DataFrame:
    overrides: Any = {"size": pl.Enum(SIZES), "season": pl.Categorical, "count": pl.Int16, "day": pl.Datetime("ms")}
    return pl.DataFrame({**columns, "day": times(columns["day"])}, schema_overrides=overrides)


def ordered_dictionary(values: list[Any]) -> Any:
    codes = pa.array([None if value is None else SIZES.index(value) for value in values], type=pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(SIZES), ordered=True)


def pyarrow_strings(columns: Columns) -> Any:
    return pa.table({**columns, "size": ordered_dictionary(columns["size"])})


def pyarrow_dictionaries(columns: Columns) -> Any:
    codes = pa.array([None if value is None else SEASONS.index(value) for value in columns["season"]])
    season = pa.DictionaryArray.from_arrays(codes, pa.array(SEASONS))
    day = pa.array(times(columns["day"]), type=pa.timestamp("us"))
    return pa.table({**columns, "season": season, "size": ordered_dictionary(columns["size"]), "day": day})


CONTAINERS: dict[str, Callable[[Columns], Any]] = {
    "pandas with numpy": pandas_numpy,
    "pandas nullable": pandas_nullable,
    "pandas categories": pandas_categories,
    "pandas inferred": pandas_inferred,
    "pandas with arrow": pandas_arrow,
    "polars strings": polars_strings,
    "polars categories": polars_categories,
    "pyarrow strings": pyarrow_strings,
    "pyarrow dictionaries": pyarrow_dictionaries,
}
each_container = pytest.mark.parametrize("make", CONTAINERS.values(), ids=list(CONTAINERS))
maybe_missing = pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])


def grow(grower: type[Grower], X: Any, x: Any, **arguments: Any) -> Tree:
    if issubclass(grower, CartTree):
        return grower(max_depth=8, min_samples_leaf=12, cp=0.001).fit(X, x, **arguments)
    return grower(max_depth=8, min_samples_leaf=12).fit(X, x, **arguments)


@cache
def grown_once(name: str, missing: bool) -> Tree:
    columns, x = plain(missing)
    return grow(next(grower for grower in GROWERS if grower.__name__ == name), pandas_numpy(columns), x)


def expected(grower: type[Grower], missing: bool) -> Tree:
    """The tree that every container has to give."""
    return grown_once(grower.__name__, missing)


def without_columns(tree: Tree) -> Tree:
    """A tree without the storage of its columns."""
    return replace(tree, columns=tuple(replace(column, is_integer=False) for column in tree.columns))


@each_tree
@maybe_missing
def test_every_kind_of_column_takes_part(grower: type[Grower], missing: bool) -> None:
    splits = [node.split for node in expected(grower, missing).nodes]
    assert {split.column for split in splits if split is not None} == set(plain(missing)[0])


@each_tree
@maybe_missing
@each_container
def test_container_gives_the_same_groups_and_rules(
    grower: type[Grower], missing: bool, make: Callable[[Columns], Any]
) -> None:
    columns, x = plain(missing)
    tree = grow(grower, make(columns), x)
    assert without_columns(tree) == without_columns(expected(grower, missing))
    assert tree.rules == expected(grower, missing).rules


@each_tree
@maybe_missing
@each_container
def test_new_rows_come_in_any_container(grower: type[Grower], missing: bool, make: Callable[[Columns], Any]) -> None:
    columns, tree = plain(missing)[0], expected(grower, missing)
    np.testing.assert_array_equal(tree.apply(make(columns)), tree.apply(pandas_numpy(columns)))


@each_tree
@each_container
def test_tree_of_any_container_takes_new_rows_of_pandas(grower: type[Grower], make: Callable[[Columns], Any]) -> None:
    columns, x = plain(missing=True)
    tree = grow(grower, make(columns), x)
    np.testing.assert_array_equal(tree.apply(pandas_numpy(columns)), tree.apply(make(columns)))


@each_tree
@pytest.mark.parametrize(
    "container", [np.array, list, tuple, pd.Series, pl.Series, lambda x: pa.chunked_array([x])], ids=range(6)
)
def test_x_comes_in_any_container(grower: type[Grower], container: Callable[[Any], Any]) -> None:
    columns, x = plain(missing=False)
    assert grow(grower, pandas_numpy(columns), container(x.tolist())) == expected(grower, missing=False)


@pytest.mark.parametrize("grower", [ConditionalInferenceTree, CartTree])
@pytest.mark.parametrize(
    "x_of",
    [
        list,
        lambda labels: np.array(labels, dtype=object),
        pd.Series,
        lambda labels: pd.Series(pd.Categorical(labels)),
        pl.Series,
        lambda labels: pl.Series(labels, dtype=pl.Categorical),
        lambda labels: pa.chunked_array([labels]),
        lambda labels: pa.chunked_array([labels]).dictionary_encode(),
    ],
    ids=range(8),
)
def test_levels_of_x_come_in_any_container(grower: type[Grower], x_of: Callable[[list[Any]], Any]) -> None:
    columns, _ = plain(missing=True)
    labels = columns.pop("season")
    X = pandas_numpy({**columns, "season": ["same"] * N}).drop(columns="season")
    one, other = grow(grower, X, pd.Series(labels)), grow(grower, X, x_of(labels))
    # A dictionary has its levels in the order of the rows, by which CART orders left and right.
    assert sorted(one.rules.values()) == sorted(other.rules.values())
    assert sorted(one.target.levels) == sorted(other.target.levels)


# Arrays.


@each_tree
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, object])
@pytest.mark.parametrize("order", ["C", "F"])
def test_array_gives_the_groups_of_the_frame(grower: type[Grower], dtype: Any, order: Any) -> None:
    rng = np.random.default_rng(1)
    array = rng.integers(0, 30, (N, 3))
    x = (array[:, 0] > 10) + (array[:, 1] > 20) + 0.5 * rng.normal(size=N)
    frame = pd.DataFrame(array.astype(float), columns=["x0", "x1", "x2"])
    of_frame, of_array = grow(grower, frame, x), grow(grower, np.array(array, dtype=dtype, order=order), x)
    assert of_array.rules == of_frame.rules
    np.testing.assert_array_equal(of_array.apply(array), of_frame.apply(frame))


@each_tree
@pytest.mark.parametrize("dtype", ["U", object])
def test_array_of_strings_is_nominal(grower: type[Grower], dtype: Any) -> None:
    rng = np.random.default_rng(1)
    array = rng.choice(["u", "v", "w"], (N, 2))
    x = (array[:, 0] == "v") + 0.5 * rng.normal(size=N)
    frame = pd.DataFrame(array, columns=["x0", "x1"])
    assert grow(grower, array.astype(dtype), x).rules == grow(grower, frame, x).rules


@each_tree
def test_array_of_booleans_is_nominal(grower: type[Grower]) -> None:
    rng = np.random.default_rng(1)
    array = rng.random((N, 1)) < 0.5
    x = array[:, 0] + 0.5 * rng.normal(size=N)
    assert set(grow(grower, array, x).rules.values()) == {"x0 in {False}", "x0 in {True}"}


# Names and places of columns.


@each_tree
def test_integer_labels_of_columns_are_names(grower: type[Grower]) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(N, 2)))
    x = (frame[1] > 0) + 0.5 * rng.normal(size=N)
    tree = grow(grower, frame, x)
    assert tree.rules == grow(grower, frame.rename(columns=str), x).rules
    np.testing.assert_array_equal(tree.apply(frame), tree.apply(frame.rename(columns=str)))


@each_tree
@pytest.mark.parametrize("make", [pandas_numpy, polars_strings, pyarrow_strings])
def test_order_of_columns_does_not_matter_to_new_rows(grower: type[Grower], make: Callable[[Columns], Any]) -> None:
    columns, x = plain(missing=True)
    tree = grow(grower, make(columns), x)
    backwards = {name: columns[name] for name in reversed(columns)}
    np.testing.assert_array_equal(tree.apply(make(backwards)), tree.apply(make(columns)))


@each_tree
def test_order_of_float_columns_does_not_matter_to_new_rows(grower: type[Grower]) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    tree = grow(grower, frame, (frame["a"] > 0) + 0.5 * rng.normal(size=N))
    np.testing.assert_array_equal(tree.apply(frame[["b", "a"]]), tree.apply(frame))


@each_tree
def test_other_columns_of_new_rows_are_ignored(grower: type[Grower]) -> None:
    columns, x = plain(missing=False)
    X, tree = pandas_numpy(columns), expected(grower, missing=False)
    wider = X.assign(target=x, broken=np.inf, mixed=pd.Series([1, "u", None] * (N // 3), dtype=object))
    np.testing.assert_array_equal(tree.apply(wider), tree.apply(X))


@each_tree
def test_index_of_a_frame_does_not_matter(grower: type[Grower]) -> None:
    columns, x = plain(missing=False)
    X = pandas_numpy(columns)
    series = pd.Series(x, index=np.arange(N) + 7)
    assert grow(grower, X.set_index(np.arange(N)[::-1]), series).rules == expected(grower, missing=False).rules


# Kinds.


@each_tree
@pytest.mark.parametrize("make", [pandas_numpy, pandas_nullable, polars_strings, pyarrow_strings])
def test_numbers_become_levels_where_the_user_says_so(grower: type[Grower], make: Callable[[Columns], Any]) -> None:
    columns, x = plain(missing=False)
    columns["count"] = [number % 5 for number in columns["count"]]
    x = x + 3 * (np.array(columns["count"]) % 2)
    tree = grow(grower, make(columns), x, kinds={"count": "nominal"})
    assert tree.columns[1].levels == ("0", "1", "2", "3", "4")
    assert any("count in {1, 3}" in rule for rule in tree.rules.values())


@each_tree
def test_levels_become_numbers_where_the_user_says_so(grower: type[Grower]) -> None:
    columns, x = plain(missing=False)
    X = pandas_numpy(columns)
    text = X.assign(count=X["count"].astype(str))
    assert grow(grower, text, x, kinds={"count": "numeric"}).rules == expected(grower, missing=False).rules


@each_tree
def test_ordered_levels_become_nominal_where_the_user_says_so(grower: type[Grower]) -> None:
    columns, x = plain(missing=False)
    X = pandas_numpy(columns)
    unordered = X.assign(size=pd.Categorical(columns["size"], SIZES))
    assert grow(grower, X, x, kinds={"size": "nominal"}).rules == grow(grower, unordered, x).rules


@pytest.mark.parametrize("grower", [ConditionalInferenceTree, CartTree])
def test_kind_of_x_is_what_the_user_says(grower: type[ConditionalInferenceTree | CartTree]) -> None:
    columns, _ = plain(missing=False)
    X = pandas_numpy(columns).drop(columns="count")
    codes = np.array(columns["count"]) % 3
    as_text = grower(min_samples_leaf=15).fit(X, pd.Series(codes).astype(str))
    assert grower(min_samples_leaf=15).fit(X, codes, x_kind="nominal").to_dict()["nodes"] == as_text.to_dict()["nodes"]
