"""Tables are read once in a call, whatever the number of its steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data import from_containers
from subgrove._data import table as tables
from subgrove._data.table import read_like, read_once, read_table

X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": ["u", "v", "u", "w"], "c": [0.5, 0.1, 0.2, 0.4]})


@pytest.fixture
def whole_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The containers of which all columns are read, by identity."""
    found: list[int] = []
    original = from_containers.untyped_columns

    def counting(container: Any, argument: str, only: Any = None) -> Any:
        if only is None or len(only) > 1:
            found.append(id(container))
        return original(container, argument, only)

    monkeypatch.setattr(tables, "untyped_columns", counting)
    return found


def test_some_columns_of_a_table_that_was_read_are_not_read_again(whole_reads: list[int]) -> None:
    with read_once(X):
        whole = read_table(X)
        part = read_like(X, whole.columns[1:])
    assert whole_reads == [id(X)]
    assert part.names == ("b", "c")
    pd.testing.assert_series_equal(pd.Series(part.values("c")), X["c"], check_names=False)
    np.testing.assert_array_equal(part.values("b"), whole.values("b"))


def test_other_levels_are_read_anew() -> None:
    with read_once(X):
        other = read_table(X.iloc[:2]).columns
        read_table(X)
        assert read_like(X, other).unseen == {"b": ("w",)}
        assert read_like(X, other[:1]).unseen == {}


def test_an_inner_context_uses_and_extends_what_the_outer_one_has_read(whole_reads: list[int]) -> None:
    with read_once(X):
        with read_once(X):
            read_table(X)
        with read_once(X.copy()):
            read_table(X)
        read_table(X)
    assert whole_reads == [id(X)]


def test_a_container_that_the_outer_context_does_not_hold_is_forgotten(whole_reads: list[int]) -> None:
    other = X.copy()
    with read_once(X):
        with read_once(other):
            read_table(other)
        read_table(other)
    assert whole_reads == [id(other)] * 2


def test_a_report_reads_each_table_once_before_it_explains(whole_reads: list[int]) -> None:
    train, test = sg.datasets.bike(split=0.7, random_state=1)
    sg.report(lambda rows: 100 * rows["temp"], train, test, features=["temp", "hum"], n_repeats=2, random_state=1)
    assert whole_reads.count(id(train.X)) == whole_reads.count(id(test.X)) == 1
