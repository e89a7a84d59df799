"""Numbers are read as they were written; what is not a number is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgrove._cli.numeric_text import NumericText

GROUPS = {".": [",", "'", "\u2019", " ", ""], ",": [".", "\u202f", " ", ""]}


@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=20),
    st.sampled_from([(decimal, group) for decimal, groups in GROUPS.items() for group in groups]),
    st.sampled_from(["{}", "$ {}", "{} €", "{}%", "{} kg", "CHF {}"]),
    st.sampled_from(["-{}", "({})", "{}-"]),
)
def test_numbers_are_read_in_any_style(cents: list[int], style: tuple[str, str], unit: str, negative: str) -> None:
    """Two decimals show which separator is decimal."""
    decimal, group = style

    def written(value: int) -> str:
        digits = f"{abs(value) / 100:,.2f}".replace(",", "G").replace(".", decimal).replace("G", group)
        return negative.format(unit.format(digits)) if value < 0 else unit.format(digits)

    texts = {written(value): value / 100 for value in cents}
    numbers = NumericText(dict.fromkeys(texts, 1))
    assert numbers.read(None, ".")[0] == pytest.approx(texts)
    assert numbers.share == 1


@pytest.mark.parametrize(
    "text",
    [
        "1.2.3", "192.168.1.1", "+491701234567", "030 123 45", "555-1234", "2024-01-31", "10:30", "1/2", "18-25", "<5",
        "1st", "A12", "71053B", "12 Main Street, Apt 4", "5 (good)", "1,2,3", "12,34,5", "", "--5", "(-5)", "1e",
        "Q1 2024",
    ],
)  # fmt: skip
def test_what_is_not_a_number_is_not_read_as_one(text: str) -> None:
    numbers = NumericText({text: 1, "7": 9})
    assert text not in numbers.read(None, ".")[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,23,456", 123456), ("\u22125", -5), ("5.-", 5), ("-5.-", -5), ("0.35Rs.-", -0.35), ("1e3", 1000),
        (".5", 0.5), ("US$5", 5), ("€1.5M", 1.5e6), ("5 K", 5000), ("(2 M)", -2e6),
    ],
)  # fmt: skip
def test_number_is_read(text: str, value: float) -> None:
    assert NumericText({text: 1}).read(None, ".")[0] == {text: value}


def test_other_units_are_odd_cells() -> None:
    values, notes, _ = NumericText({"5 kg": 8, "6 kg": 8, "7 lb": 1}).read(None, ".")
    assert values == {"5 kg": 5, "6 kg": 6}
    assert notes == ["'kg' removed", "1 cell read as missing, not a number: '7 lb'"]
