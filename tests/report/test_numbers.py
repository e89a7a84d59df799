"""Numbers in sentences: few digits, the same decimals side by side, never a minus zero."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgrove._core.text import common_decimals, count_of, fixed, listed, number, percent
from subgrove._report.summary import Estimate
from subgrove._report.svg import LinearScale
from subgrove._report.wording import short, tidy, with_interval

numbers = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-200)


def read(text: str) -> float:
    return float(text.replace(",", ""))


@given(numbers)
def test_a_number_is_within_half_a_percent_of_what_is_shown(value: float) -> None:
    assert read(number(value)) == pytest.approx(value, rel=0.0051)
    assert not re.search(r"-0(?![.\d])", number(value))


@given(st.lists(numbers, min_size=1, max_size=4), st.floats(0, 1e6))
def test_what_is_not_zero_is_not_shown_as_zero_and_keeps_its_sign(values: list[float], precision: float) -> None:
    largest = max(abs(value) for value in values)
    for value, text in zip(values, common_decimals(values, precision), strict=True):
        assert not text.startswith("-") or value < 0
        assert read(text) == pytest.approx(value, rel=0.006, abs=max(precision, largest / 10) * 0.06)


@pytest.mark.parametrize(
    ("values", "precision", "shown"),
    [
        ([4.12, 8.93, -4.81, 13.05], 8.93, ["4.1", "8.9", "-4.8", "13.1"]),
        ([234.4, 71.9, 162.5, 306.3], 71.9, ["234", "72", "162", "306"]),
        ([0.0, 4.0], 4.0, ["0", "4"]),
        ([5.0, 4.98, 0.02, 9.98], 4.98, ["5.00", "4.98", "0.02", "9.98"]),
        ([0.0, 0.0], 0.0, ["0", "0"]),
        ([1234567.0, 1e4], 1e4, ["1,234,567", "10,000"]),
        ([2e-7, 1e-8], 1e-8, ["2.00e-07", "1.00e-08"]),
    ],
)
def test_numbers_beside_each_other_have_the_same_decimals(
    values: list[float], precision: float, shown: list[str]
) -> None:
    assert common_decimals(values, precision) == shown


def test_an_interval_has_its_level_and_an_estimate_may_have_none() -> None:
    one = Estimate(4.12, 4.5, -4.81, 13.05, 0.2, 0.1, "test rows", "uncertain")
    assert with_interval(one, 0.95) == "4.1 (95 % interval -4.8 to 13.1)"
    assert with_interval(Estimate(4.12, None, None, None, None, None, "none", "unknown"), 0.95) == "4.12"


def test_one_row_is_one_row() -> None:
    assert [count_of(n, "row") for n in (0, 1, 2, 1500)] == ["0 rows", "1 row", "2 rows", "1,500 rows"]
    assert [listed(names) for names in (["a"], ["a", "b"], list("abcdef"))] == ["a", "a and b", "a, b, c, d and 2 more"]


def test_shares_are_integer_percents_but_never_wrongly_0_or_100() -> None:
    assert [percent(share) for share in (0.0, 0.002, 0.5, 0.998, 1.0)] == [
        "0 %",
        "less than 1 %",
        "50 %",
        "more than 99 %",
        "100 %",
    ]


def test_zero_has_no_sign_and_names_stay_on_one_line() -> None:
    assert fixed(-0.0004, 2) == "0.00"
    assert tidy(" a\nb\t\x00c ") == "a b c"
    assert len(short("x" * 1000)) <= 140


def test_a_small_number_in_a_sentence_has_no_power_of_ten() -> None:
    """A report had 2.69e-05 (-2.97e-05 to 9.38e-05)."""
    small = Estimate(2.69e-05, 3e-05, -2.97e-05, 9.38e-05, 0.2, 1e-6, "rows", "uncertain")
    assert with_interval(small, 0.95) == "0.000027 (95 % interval -0.000030 to 0.000094)"
    assert number(2.69e-05) == "0.0000269"
    assert number(1.5e10) == "15,000,000,000"


def test_a_rule_with_many_levels_is_shortened_to_a_few_and_their_number() -> None:
    """A headline had a rule with 30 countries, cut off in the middle."""
    rule = f"country in {{{', '.join(f'Country {at}' for at in range(30))}}} and year <= 1990"
    found = short(rule)
    assert len(found) <= 140
    assert re.fullmatch(r"country in \{Country 0, .* and \d+ others\} and year <= 1990", found)
    shown, others = found.count("Country"), int(re.findall(r"and (\d+) others", found)[0])
    assert shown + others == 30
    assert short("season in {WINTER, FALL}") == "season in {WINTER, FALL}"


def test_ticks_below_ten_thousand_have_no_separator() -> None:
    """The axis of a year had 1,960."""
    assert [words for _, words in LinearScale(1952, 2007, 0, 100).ticks(4)] == ["1960", "1980", "2000"]
    assert [words for _, words in LinearScale(0, 20_000, 0, 100).ticks(2)] == ["0", "10,000", "20,000"]
