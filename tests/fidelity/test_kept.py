"""Checks of several samplers on the same rows share what depends on the real values, and find the same without it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data.table import kept_with, read_once, read_table

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(1400, 4)), columns=list("abcd")).assign(e=RNG.choice(list("xyz"), size=1400))
ROWS["b"] += ROWS["a"]
TRAIN, X = ROWS[:700], ROWS[700:]


def model(rows: pd.DataFrame) -> npt.NDArray[np.float64]:
    return np.asarray(rows["a"] + rows["b"] * (rows["e"] == "x"))


def checks(sampler: str) -> list[str]:
    found = sg.importance(
        model, X, model(X) + 1, sampler=sampler, train=TRAIN, loss="squared_error", n_repeats=3, random_state=1
    )
    return [repr(score.fidelity_check) for score in found.scores]  # numbers that are not known are NaN


def test_a_check_is_the_same_after_that_of_another_sampler() -> None:
    alone = checks("marginal")
    with read_once(X, table=read_table(X, lenient=True)):
        checks("subgroups")
        after = checks("marginal")
    assert after == alone


@pytest.mark.parametrize("read", [True, False])
def test_only_tables_that_are_read_once_keep_anything(read: bool) -> None:
    table = read_table(X)
    with read_once(X, table=table if read else read_table(X)):
        kept_with(table)["key"] = 1
        assert kept_with(table) == ({"key": 1} if read else {})
    assert kept_with(table) == {}
