"""Frames that hold the same values in another way give the same numbers; damaged ones give numbers or a clear error."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import subgrove as sg

from .outcome import outcome

pytestmark = pytest.mark.filterwarnings("ignore::subgrove.exceptions.SubgroveWarning")
RNG = np.random.default_rng(5)
N = 60
SPARSE: Any = pd.arrays.SparseArray
ENUM: Any = enum.Enum
CLEAN = pd.DataFrame({"a": RNG.integers(-9, 9, N), "b": RNG.integers(0, 4, N), "c": RNG.integers(0, 99, N)})
Y = 2.0 * CLEAN["a"].to_numpy() + CLEAN["b"].to_numpy()


def model(X: Any) -> Any:
    columns = [np.asarray(X[name], dtype=np.float64) for name in ("a", "b")]
    return 2 * columns[0] + columns[1]


def importance(X: Any, predict: Any = model, **options: Any) -> Any:
    settings = {"sampler": "subgroups", "n_repeats": 2, "random_state": 1, "check_fidelity": False, **options}
    return sg.importance(predict, X, Y, **settings).overall


def shuffled_index(X: pd.DataFrame) -> pd.DataFrame:
    return X.set_axis(np.random.default_rng(1).permutation(N), axis=0)


SAME: dict[str, Callable[[pd.DataFrame], Any]] = {
    **{kind: methodcaller("astype", kind) for kind in ("int8", "int16", "float32", "float64", "Int64", ">i4")},
    "Float64": lambda X: X.astype("Float64"),
    "arrow": lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "fortran": lambda X: pd.DataFrame(np.asfortranarray(X.to_numpy()), columns=X.columns),
    "strided": lambda X: pd.DataFrame(np.repeat(X.to_numpy(), 2, axis=0), columns=X.columns).iloc[::2],
    "repeated index": lambda X: X.set_axis(np.zeros(N, dtype=int), axis=0),
    "shuffled index": shuffled_index,
    "times as index": lambda X: X.set_axis(pd.date_range("2020", periods=N, tz="UTC"), axis=0),
    "index with levels": lambda X: X.set_axis(pd.MultiIndex.from_product([range(6), range(10)]), axis=0),
    "missing labels": lambda X: X.set_axis([None] * N, axis=0),
    "named columns": lambda X: X.rename_axis(columns="name"),
    "attributes": lambda X: X.assign().pipe(lambda frame: (frame.attrs.update(x=object()), frame)[1]),
}


@pytest.mark.parametrize("sampler", ["subgroups", "marginal", "cart"])
@pytest.mark.parametrize("form", SAME)
def test_the_same_values_in_another_frame_give_the_same_numbers(form: str, sampler: str) -> None:
    table = outcome(lambda: importance(SAME[form](CLEAN), sampler=sampler))
    expected = importance(CLEAN, sampler=sampler)["estimate"]
    np.testing.assert_allclose(np.asarray(table["estimate"], dtype=float), expected, rtol=1e-12)


def objects(*values: Any) -> list[Any]:
    return [values[at % len(values)] for at in range(N)]


COLUMNS: dict[str, Any] = {
    "all missing": np.full(N, np.nan),
    "infinite": np.r_[np.inf, np.arange(N - 1.0)],
    "largest": np.r_[1.7e308, -1.7e308, np.arange(N - 2.0)],
    "smallest": np.r_[5e-324, np.zeros(N - 1)],
    "nearly constant": 1 + 1e-16 * np.arange(N),
    "one apart": np.r_[1.0, np.zeros(N - 1)],
    "beyond 2^53": 2**60 + np.arange(N),
    "unsigned": np.array([2**64 - 1, *range(N - 1)], dtype=np.uint64),
    "negative zero": np.where(np.arange(N) % 2, 0.0, -0.0),
    "bool": np.arange(N) % 2 == 0,
    "bool or missing": pd.array(objects(True, None, False), dtype="boolean"),
    "complex": np.arange(N) * 1j,
    "half": np.arange(N, dtype=np.float16),
    "text": objects("x", "y", ""),
    "unique text": [f"level {at}" for at in range(N)],
    "text and numbers": objects("x", 1, 2.5),
    "numbers as text": [str(at) for at in range(N)],
    "missing in all ways": objects(None, np.nan, pd.NA, pd.NaT, 1.0),
    "bytes": objects(b"x", b"\xff"),
    "half a surrogate": pd.Series(objects("\ud800", "x"), dtype=object),
    "control characters": objects("\x00", "\x1b[2J", "\r\n"),
    "right to left": objects("\u202eabc", "abc"),
    "long text": objects("x" * 50_000, "y"),
    "formula": objects("=1+1", "<script>"),
    "lists": objects([1], [2, 3]),
    "dicts": objects({}, {"x": 1}),
    "sets": objects({1}, {2}),
    "functions": objects(len, max),
    "classes": objects(int, float),
    "frames": objects(CLEAN),
    "decimals": objects(decimal.Decimal("1.1"), decimal.Decimal("NaN")),
    "signalling": objects(decimal.Decimal("sNaN"), decimal.Decimal(1)),
    "fractions": objects(fractions.Fraction(1, 3), 2),
    "dates": objects(datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    "times of day": objects(datetime.time(1), datetime.time(2)),
    "mixed zones": objects(pd.Timestamp("2020", tz="UTC"), pd.Timestamp("2020", tz="Asia/Tokyo")),
    "missing times": pd.to_datetime(objects("2020", None)),
    "durations": pd.to_timedelta(np.arange(N), "s"),
    "periods": pd.period_range("2020", periods=N, freq="D"),
    "intervals": pd.interval_range(0, N),
    "unused levels": pd.Categorical(objects("x", "y"), categories=["z", "y", "x"]),
    "levels of two types": pd.Categorical(objects(1, "1")),
    "ordered": pd.Categorical(objects("low", "high"), categories=["low", "high"], ordered=True),
    "missing levels": pd.Categorical([None] * N, categories=["x"]),
    "sparse": SPARSE(np.r_[1.0, np.zeros(N - 1)]),
    "masked": pd.array(objects(1, None), dtype="Int64"),
    "named tuple": objects((1, 2), (3, 4)),
    "enum": objects(*ENUM("Kind", "X Y")),
}


@pytest.mark.parametrize("where", ["feature", "other"])
@pytest.mark.parametrize("name", COLUMNS)
def test_an_odd_column_gives_numbers_or_a_clear_error(name: str, where: str) -> None:
    X = CLEAN.assign(odd=COLUMNS[name])
    features = ["odd"] if where == "feature" else ["a"]
    outcome(lambda: importance(X, features=features))


NAMES: list[Any] = [
    "",
    " ",
    "a\nb",
    "\x00",
    "\ud800",
    "x" * 5_000,
    "<script>",
    "$\\frac{",
    0,
    1.5,
    None,
    ("t", 1),
    True,
    "A",
    "feature",
]


@pytest.mark.parametrize("name", NAMES, ids=[f"name{at}" for at in range(len(NAMES))])
def test_an_odd_name_of_a_column_gives_the_same_numbers_or_a_clear_error(name: Any) -> None:
    table = outcome(
        lambda: importance(CLEAN.set_axis(pd.Index(["a", "b", name], dtype=object), axis=1), features=["a"])
    )
    if table is not None:
        np.testing.assert_allclose(table["estimate"], importance(CLEAN, features=["a"])["estimate"], rtol=1e-12)


SHAPES: dict[str, Callable[[], Any]] = {
    "no rows": lambda: CLEAN.iloc[:0],
    "one row": lambda: CLEAN.iloc[:1],
    "no columns": lambda: CLEAN[[]],
    "duplicate names": lambda: CLEAN.set_axis(["a", "a", "b"], axis=1),
    "levels of names": lambda: CLEAN.set_axis(pd.MultiIndex.from_product([["x"], ["a", "b", "c"]]), axis=1),
    "3-d": lambda: np.zeros((N, 2, 2)),
    "1-d": lambda: np.zeros(N),
    "text": lambda: "a table",
    "bytes": lambda: b"a table",
    "number": lambda: 3,
    "none": lambda: None,
    "generator": lambda: (row for row in CLEAN.to_numpy()),
    "lists": lambda: CLEAN.to_numpy().tolist(),
    "dict": lambda: CLEAN.to_dict("list"),
    "records": lambda: CLEAN.to_records(index=False),
    "series": lambda: CLEAN["a"],
    "sparse": lambda: scipy.sparse.csr_array(CLEAN.to_numpy()),
    "masked": lambda: np.ma.masked_less(CLEAN.to_numpy(), 0),
    "object array": lambda: CLEAN.to_numpy().astype(object),
    "class": lambda: pd.DataFrame,
}


@pytest.mark.parametrize("form", SHAPES)
def test_an_object_that_is_not_a_table_gives_numbers_or_a_clear_error(form: str) -> None:
    outcome(lambda: importance(SHAPES[form](), lambda X: np.zeros(len(X))))
