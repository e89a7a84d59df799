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


def income(n: int = N) -> Any:
    return np.exp(np.random.default_rng(4).normal(0.0, 1.2, n))


def test_a_column_with_a_heavy_tail_has_its_logarithm_too() -> None:
    values = income()
    design, matrix = Design.of(table(a=numbers(), income=values))
    assert labels(design) == ["a", "income", "log(income)"]
    logs = np.log(values)
    np.testing.assert_allclose(matrix[:, 2], (logs - logs.mean()) / logs.std(), atol=1e-12)


def test_new_values_below_those_of_training_have_the_smallest_logarithm() -> None:
    design, matrix = Design.of(table(income=income()))
    new = design.matrix(table(income=[-1.0, 0.0, income().min() / 2, np.nan]))
    np.testing.assert_allclose(new[:3, 1], matrix[:, 1].min())
    assert new[3, 1] == pytest.approx(0)


def test_heavy_tails_on_both_sides_are_shrunk() -> None:
    values = np.random.default_rng(4).standard_t(1.5, 1000)
    design, matrix = Design.of(table(a=values))
    assert labels(design) == ["a", "arsinh(a)"]
    assert (np.diff(matrix[np.argsort(values), 1]) > 0).all()
    assert np.abs(matrix[:, 1]).max() < np.abs(matrix[:, 0]).max() / 3


def test_few_values_few_rows_dates_and_light_tails_have_no_logarithm() -> None:
    many, days = income(400), pd.Timestamp("2020-01-01") + pd.to_timedelta(income(400) * 100, unit="D")
    design, _ = Design.of(table(few=np.round(many / many.max() * 10), uniform=np.linspace(0, 1, 400), day=days))
    assert labels(design) == ["few", "uniform", "day"]
    design, _ = Design.of(table(income=many[:40]))
    assert labels(design) == ["income"]


def test_missing_values_have_the_mean_logarithm() -> None:
    values = income(400)
    values[::8] = np.nan
    design, matrix = Design.of(table(income=values))
    assert labels(design) == ["income", "log(income)", "[income missing]"]
    np.testing.assert_allclose(matrix[::8, 1], 0, atol=1e-12)


def test_many_columns_have_no_logarithms() -> None:
    columns = {f"c{at}": income(200) for at in range(76)}
    assert len(Design.of(table(**columns))[0].parts) == 76
    del columns["c0"]
    assert len(Design.of(table(**columns))[0].parts) == 150


def test_kernels_take_logarithms_where_there_are_such() -> None:
    design, _ = Design.of(table(a=numbers(), income=income(), kind=np.array(["u", "v", "w"])[np.arange(N) % 3]))
    places = design.allowed(["a", "income", "kind"], log_scales=False)
    assert [design.parts[at].label for at in places] == ["a", "income", "[kind = u]", "[kind = v]", "[kind = w]"]
    found = [design.parts[at].label for at in design.on_log_scales(places)]
    assert found == ["a", "log(income)", "[kind = u]", "[kind = v]", "[kind = w]"]
