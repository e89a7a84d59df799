"""Equal tables have equal fingerprints, in whatever container; tables that differ have not."""

from __future__ import annotations

import tracemalloc
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import subgrove as sg
from subgrove._data.table import Table, fingerprint, read_like, read_table

BIKE = sg.datasets.bike().X


def columns() -> dict[str, list[Any]]:
    return {
        "number": [1.5, None, -0.0, 4.0],
        "whole": [1, 2, 3, 4],
        "flag": [True, False, None, True],
        "word": ["b", "a", None, "c"],
        "day": [date(2020, 1, 1), date(2020, 1, 2), None, date(2021, 1, 1)],
    }


def pandas_frame() -> pd.DataFrame:
    days = np.array(columns()["day"], dtype="datetime64[ns]")
    return pd.DataFrame({**columns(), "number": [1.5, np.nan, -0.0, 4.0], "day": days})


def of(X: Any, **options: Any) -> str:
    return fingerprint(read_table(X, **options))


def test_is_32_hexadecimal_digits() -> None:
    assert len(of(BIKE)) == 32
    int(of(BIKE), 16)


def test_stays_the_same_between_versions() -> None:
    """Saved subgroups are compared with tables read later."""
    assert of(np.array([[1.0, np.nan], [2.0, -0.0]])) == "1677d5ed4d43861109250b49e6b7546c"


@pytest.mark.parametrize(
    "other",
    [
        pl.DataFrame(columns()),
        pa.table(columns()),
        pl.DataFrame(columns()).with_columns(pl.col("word").cast(pl.Categorical)),
        pandas_frame().astype({"word": "category", "whole": float}),
        pandas_frame().assign(word=pd.Categorical(columns()["word"], ["z", "c", "b", "a"])),
        pandas_frame().astype({"number": "Float64", "whole": "int8", "flag": "boolean"}),
        pandas_frame().assign(number=[1.5, np.nan, 0.0, 4.0]),
    ],
    ids=range(7),
)
def test_equal_data_have_equal_fingerprints(other: Any) -> None:
    assert of(other) == of(pandas_frame())


def test_bike_is_the_same_in_every_container() -> None:
    frame = pl.DataFrame({name: BIKE[name].tolist() for name in BIKE})
    assert of(BIKE) == of(frame) == of(pa.table({name: BIKE[name].tolist() for name in BIKE}))


def test_memory_order_does_not_matter() -> None:
    array = np.random.default_rng(0).normal(size=(50, 4))
    assert of(array) == of(np.asfortranarray(array)) == of(array[::-1][::-1]) == of(np.hstack([array, array])[:, :4])


def test_kind_of_nan_does_not_matter() -> None:
    array = np.random.default_rng(0).normal(size=(9, 2))
    array[3, 1] = np.nan
    other = array.copy()
    other.view(np.uint64)[3, 1] |= 1 | 1 << 63
    assert np.isnan(other[3, 1])
    assert other.tobytes() != array.tobytes()
    assert of(other) == of(array)


def test_rows_read_like_training_have_the_fingerprint_of_training() -> None:
    table = read_table(BIKE)
    assert fingerprint(read_like(BIKE[BIKE.columns[::-1]], table.columns)) == fingerprint(table)


SMALL = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["u", "v", "u"]})
OTHERS: dict[str, pd.DataFrame] = {
    "value": SMALL.assign(a=[1.0, 2.0, np.nextafter(3.0, 4.0)]),
    "missing value": SMALL.assign(a=[1.0, 2.0, np.nan]),
    "level": SMALL.assign(b=["u", "v", "v"]),
    "name of a level": SMALL.assign(b=["u", "w", "u"]),
    "missing level": SMALL.assign(b=pd.Series(["u", "v", None])),
    "name of a column": SMALL.rename(columns={"a": "c"}),
    "kind": SMALL.assign(b=pd.Categorical(SMALL["b"], ["u", "v"], ordered=True)),
    "order of rows": SMALL[::-1],
    "order of columns": SMALL[["b", "a"]],
    "fewer rows": SMALL[:2],
    "more columns": SMALL.assign(c=1.0),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=list(OTHERS))
def test_other_data_have_another_fingerprint(other: pd.DataFrame) -> None:
    assert of(other) != of(SMALL)


def test_names_do_not_run_together() -> None:
    one, other = pd.DataFrame({"ab": [1.0], "c": [1.0]}), pd.DataFrame({"a": [1.0], "bc": [1.0]})
    assert of(one) != of(other)


def test_kinds_given_by_the_user_count() -> None:
    assert of(SMALL, kinds={"a": "nominal"}) != of(SMALL)


def test_table_is_not_copied_as_a_whole() -> None:
    table: Table = read_table(np.random.default_rng(0).normal(size=(20_000, 50)))
    fingerprint(table)
    tracemalloc.start()
    fingerprint(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 20_000 * 8
