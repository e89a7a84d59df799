"""Numbers on the page: minus signs, few digits, and the same numbers as in sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgrove._core.text import p_value_text
from subgrove._report.cells import cell, estimate_cell, estimate_text, explained, percent
from subgrove._report.summary import Estimate
from subgrove._report.svg import number, prose, scale_of
from subgrove._report.wording import with_range

finite = st.floats(-1e12, 1e12)


def plain(text: str) -> str:
    return text.replace("\u2212", "-").replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (466.2, "466"),
        (-0.0512, "\u22120.0512"),
        (1234567.0, "1,234,567"),
        (3.2e-7, "3.20\u00a0\u00d7\u00a010\u207b\u2077"),
        (0.0, "0"),
        (None, "\u2013"),
        (float("nan"), "\u2013"),
    ],
)
def test_numbers_have_few_digits(value: float | None, text: str) -> None:
    assert number(value) == text


@given(finite, st.floats(1e-3, 1e6))
def test_tables_and_sentences_show_the_same_number(value: float, margin: float) -> None:
    one = Estimate(value, margin / 2, value - margin, value + margin, None, None, "", "uncertain")
    if "e" not in with_range(one):
        assert plain(estimate_text(one)) == with_range(one)
    assert "-" not in estimate_text(one)
    assert estimate_text(one) == "{} ({})".format(*estimate_cell(one))


def test_sentences_are_typeset_and_names_are_not() -> None:
    assert prose("-3 \u00b1 4 at 5 %") == "\u22123\u00a0\u00b1\u00a04 at 5\u00a0%"
    assert prose("2011-01-05, x-1, a_-b") == "2011-01-05, x-1, a_-b"


@pytest.mark.parametrize(("share", "text"), [(0.001, "< 1 %"), (0.999, "> 99 %"), (0.5, "50 %"), (None, "\u2013")])
def test_shares_are_not_rounded_to_0_or_100(share: float | None, text: str) -> None:
    assert plain(percent(share)) == text


def test_a_negative_explained_share_is_0() -> None:
    assert plain(explained(-0.06)) == "0 %"


@pytest.mark.parametrize(("p", "text"), [(1e-9, "p < 0.001"), (0.021, "p = 0.021"), (0.5, "p = 0.50"), (None, "")])
def test_p_values_are_short(p: float | None, text: str) -> None:
    assert p_value_text(p) == text


def test_settings_are_text() -> None:
    assert [cell(one) for one in (None, True, 1, 19_710, 0.5, "auto")] == [
        "\u2013",
        "yes",
        "1",
        "19,710",
        "0.5",
        "auto",
    ]


@given(st.lists(finite, min_size=1, max_size=6), st.integers(2, 8))
def test_an_axis_includes_its_numbers_and_has_few_distinct_ticks(values: list[float], most: int) -> None:
    scale = scale_of(values, 0.0, 100.0)
    assert all(-1e-6 <= scale(value) <= 100 + 1e-6 for value in values)
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most + 1
    assert len({text for _, text in ticks}) == len(ticks)


@pytest.mark.parametrize(
    "values",
    [(1e9, 1e9 + 100), (1e-6, 3e-6), (0.0, 1.0), (-250.0, 750.0), (5.0, 5.0), (1e-309, 2e-309), (-1e308, 1e308)],
)
def test_ticks_have_distinct_labels(values: tuple[float, float]) -> None:
    ticks = scale_of(values, 0.0, 100.0).ticks(5)
    assert len({text for _, text in ticks}) == len(ticks) >= 2
