"""Columns of any kind become numbers, of new rows as of training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._data.encode import Design, is_extreme
from subgrove._data.table import read_like, read_table

N = 120


def table(**columns: Any) -> Any:
    return read_table(pd.DataFrame(columns), lenient=True)


def numbers(n: int = N, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(3.0, 2.0, n)


def labels(design: Design) -> list[str]:
    return [part.label for part in design.parts]


def test_a_number_is_centred_and_scaled() -> None:
    design, values = Design.of(table(a=numbers()))
    assert labels(design) == ["a"]
    assert values.mean() == pytest.approx(0, abs=1e-12)
    assert values.std() == pytest.approx(1)


def test_levels_have_an_indicator_each_but_two_levels_have_one() -> None:
    three = np.array(["u", "v", "w"])[np.arange(N) % 3]
    two = np.arange(N) % 2 == 0
    design, values = Design.of(table(three=three, two=two))
    assert labels(design) == ["[three = u]", "[three = v]", "[three = w]", "[two = True]"]
    np.testing.assert_allclose(values.std(axis=0), 1)


def test_ordered_levels_are_numbers() -> None:
    sizes = pd.Categorical(np.array(["s", "m", "l"])[np.arange(N) % 3], ["s", "m", "l"], ordered=True)
    design, values = Design.of(table(size=sizes))
    assert labels(design) == ["size"]
    assert values[0, 0] < values[1, 0] < values[2, 0]


def test_missing_values_are_average_ones_with_an_indicator_of_their_own() -> None:
    a = numbers()
    a[:15] = np.nan
    kind = np.array(["u", "v", None], dtype=object)[np.arange(N) % 3]
    design, values = Design.of(table(a=a, kind=kind))
    assert labels(design) == ["a", "[a missing]", "[kind = u]", "[kind = v]", "[kind missing]"]
    np.testing.assert_allclose(values[:15, 0], 0, atol=1e-12)
    assert (values[:15, 1] > 0).all()
    assert (values[15:, 1] < 0).all()


def test_few_missing_values_and_rare_levels_have_no_indicator() -> None:
    a = numbers()
    a[:9] = np.nan
    kind = np.array(["u"] * (N - 9) + ["rare"] * 9)
    design, _ = Design.of(table(a=a, kind=kind))
    assert labels(design) == ["a"]


def test_of_many_levels_the_most_frequent_count() -> None:
    rng = np.random.default_rng(0)
    level = np.minimum(rng.geometric(0.06, 5000), 60)
    design, _ = Design.of(table(level=[f"l{k:02}" for k in level]))
    assert len(design.parts) == 20
    assert labels(design)[0] == "[level = l01]"


@pytest.mark.parametrize("constant", [1.0, 1e9, 0.0, "same", None])
def test_constant_and_empty_columns_have_no_effect(constant: Any) -> None:
    design, values = Design.of(table(a=numbers(), constant=[constant] * N))
    assert labels(design) == ["a"]
    assert values.shape == (N, 1)


def test_numbers_far_from_zero_are_distinguished() -> None:
    design, values = Design.of(table(far=1e9 + numbers()))
    assert labels(design) == ["far"]
    assert values.std() == pytest.approx(1)


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_numbers_that_cannot_be_squared_have_no_effect(factor: float) -> None:
    design, _ = Design.of(table(a=numbers(), extreme=factor * numbers()))
    assert labels(design) == ["a"]
    assert is_extreme(factor * numbers())
    assert not is_extreme(numbers())
    assert not is_extreme(np.full(5, 7.0))
    assert not is_extreme(np.full(5, np.nan))


def test_numbers_of_training_rows_come_out_again() -> None:
    a = numbers()
    a[:15] = np.nan
    frame = pd.DataFrame({"a": a, "kind": np.array(["u", "v", "w"])[np.arange(N) % 3], "b": numbers(seed=1)})
    known = read_table(frame)
    design, values = Design.of(known)
    for at, part in enumerate(design.parts):
        np.testing.assert_allclose(design.numbers(known, part), values[:, at], atol=1e-12)


def test_new_rows_are_scaled_as_in_training_and_an_unseen_level_is_none_of_those_known() -> None:
    frame = pd.DataFrame({"a": numbers(), "kind": np.array(["u", "v", "w"])[np.arange(N) % 3]})
    known = read_table(frame)
    design, _ = Design.of(known)
    new = read_like(pd.DataFrame({"a": [3.0, np.nan], "kind": ["new", "w"]}), known.columns)
    a, *kinds = design.parts
    assert design.numbers(new, a)[0] == pytest.approx((3.0 - frame["a"].mean()) / frame["a"].std(ddof=0))
    assert design.numbers(new, a)[1] == 0.0
    assert [bool(design.numbers(new, part)[0] > 0) for part in kinds] == [False, False, False]
    assert [bool(design.numbers(new, part)[1] > 0) for part in kinds] == [False, False, True]


def test_allowed_parts_are_those_of_the_columns() -> None:
    design, _ = Design.of(table(a=numbers(), kind=np.array(["u", "v", "w"])[np.arange(N) % 3], b=numbers(seed=1)))
    assert design.allowed(["b", "kind"]).tolist() == [1, 2, 3, 4]
    assert [part.column for part in design.parts] == ["a", "kind", "kind", "kind", "b"]
    assert design.allowed([]).tolist() == []
