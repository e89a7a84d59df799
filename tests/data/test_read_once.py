"""A table that is used several times in one call is read once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data import table as module
from subgrove._data.table import read_like, read_once, read_table


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count how often each container is read, by its identity."""
    counts: Counter[int] = Counter()
    for name in ("_read_table", "_read_like"):
        function = getattr(module, name)

        def counted(X: Any, *rest: Any, function: Any = function) -> Any:
            counts[id(X)] += 1
            return function(X, *rest)

        monkeypatch.setattr(module, name, counted)
    return counts


def frame(n: int, seed: int, missing: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["u", "v"], size=n)})
    X["b"] += X["a"]
    if missing:
        X.loc[0, "b"] = np.nan
    return X


def model(X: Any) -> Any:
    return X["a"].to_numpy()


@pytest.mark.parametrize("sampler", ["auto", "subgroups", "marginal", "imputation"])
def test_importance_reads_test_and_training_rows_once(reads: Counter[int], sampler: str) -> None:
    train, test = frame(200, 1), frame(60, 2)
    sg.importance(model, test, test["a"], train=train, sampler=sampler, random_state=1, n_repeats=1)
    assert reads[id(test)] == 1
    assert reads[id(train)] == 1


def test_rows_with_other_missing_values_than_training_are_read_twice(reads: Counter[int]) -> None:
    train, test = frame(200, 1, missing=True), frame(60, 2)
    sg.importance(model, test, test["a"], train=train, sampler="subgroups", random_state=1, n_repeats=1)
    assert reads[id(test)] == 2
    assert reads[id(train)] == 1


def test_tables_of_a_context_are_the_same_object(reads: Counter[int]) -> None:
    X, other = frame(20, 1), frame(20, 2)
    with read_once(X):
        first = read_table(X, lenient=True)
        assert read_table(X, lenient=True) is first
        assert read_like(X, first.columns) is first
        assert read_table(other, lenient=True) is not read_table(other, lenient=True)
        assert read_table(X) is first
        narrow = read_like(X, first.columns[:1])
        assert read_like(X, first.columns[:1]) is narrow
    assert read_table(X, lenient=True) is not first


def test_changes_between_calls_are_seen() -> None:
    X = frame(20, 1)
    with read_once(X):
        before = read_table(X, lenient=True).values("a").copy()
    X["a"] += 1
    with read_once(X):
        np.testing.assert_array_equal(read_table(X, lenient=True).values("a"), before + 1)


def test_table_that_was_read_before_is_used(reads: Counter[int]) -> None:
    X = frame(20, 1)
    table = read_table(X, lenient=True)
    with read_once(X, table=table):
        assert read_table(X, lenient=True) is table
    assert reads[id(X)] == 1
