"""Scores of rows by the other rows of their subgroup: those of the definition, and of numbers of any size."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._core.kinds import Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import TypedColumn
from subgrove._subgroups.depth import leave_one_out_scores

NUMBERS = ColumnInfo("x", "numeric")


def by_definition(x: Floats, leaf: Rows) -> Floats:
    """E|X - y| - E|X - X'| / 2, X and X' drawn with replacement from the other rows of the leaf."""
    found = np.empty(len(x))
    for row, y in enumerate(x):
        others = x[(leaf == leaf[row]) & (np.arange(len(x)) != row)]
        found[row] = np.abs(others - y).mean() - np.abs(others[:, None] - others).mean() / 2
    return found


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("kind", ["normal", "ties", "far from 0"])
def test_scores_are_those_of_the_definition(kind: str, scale: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    x = scale * {"normal": x, "ties": np.round(x), "far from 0": x + 1e3}[kind]
    leaf = rng.integers(3, size=60)
    np.testing.assert_allclose(leave_one_out_scores(TypedColumn(NUMBERS, x), leaf), by_definition(x, leaf), rtol=1e-9)


def test_scores_of_the_largest_numbers_are_numbers() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, size=500)
    plain = leave_one_out_scores(TypedColumn(NUMBERS, x), np.zeros(500, dtype=np.intp))
    large = leave_one_out_scores(TypedColumn(NUMBERS, 2.0**1023 * x), np.zeros(500, dtype=np.intp))
    np.testing.assert_allclose(large / 2.0**1023, plain, rtol=1e-12)
