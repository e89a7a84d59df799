"""Rules as pictures write them."""

from __future__ import annotations

import pytest

from subgrove.plots._figure import DOTS, short_rule, text_width, wrap, wrap_list


@pytest.mark.parametrize(
    ("rule", "short"),
    [
        ("hum <= 66.75", "hum <= 66.75"),
        ("hum <= 67.29166666", "hum <= 67.29"),
        ("-1.2345678 < a <= 2.3456789e-05", "-1.235 < a <= 2.346e-05"),
        ("a > 1234567.8", "a > 1234568"),
        ("a >= 0.5 and b < -12.34567 or missing", "a >= 0.5 and b < -12.35 or missing"),
        ("size in {1.23456, 2.34567}", "size in {1.23456, 2.34567}"),
        ("when <= 2011-06-12T12:00:00.123456", "when <= 2011-06-12T12:00:00.123456"),
        ("v1.23456 <= 3.0", "v1.23456 <= 3"),
    ],
)
def test_thresholds_are_rounded_and_nothing_else(rule: str, short: str) -> None:
    assert short_rule(rule) == short


RULE = "season in {SPRING, SUMMER, FALL} and hum <= 66.75"


def test_rules_are_wrapped_and_a_comparison_stays_on_one_line() -> None:
    lines = wrap(RULE, text_width("season in {SPRING,", 9), 9, 4).split("\n")
    assert len(lines) > 1
    assert " ".join(lines) == RULE
    assert any("hum <= 66.75" in line for line in lines)


def test_a_rule_is_shortened_if_its_lines_do_not_hold_it() -> None:
    line = wrap(RULE, 100.0, 9, 1)
    assert line.count(DOTS) == 1
    assert line.endswith("66.75")
    assert text_width(line, 9) <= 110.0


def test_names_are_broken_at_underscores() -> None:
    assert wrap("average_monthly_consumption", 100.0, 9, 3).split("\n") == ["average_monthly_", "consumption"]


def test_a_list_ends_with_the_number_of_further_items() -> None:
    items = ["WINTER", "SPRING", "SUMMER", "FALL"]
    assert wrap_list(items, "4 levels", 300.0, 9, 1, ending="or missing") == "WINTER, SPRING, SUMMER, FALL or missing"
    assert wrap_list(items, "4 levels", 130.0, 9, 1) == "WINTER and 3 more"
    assert wrap_list(["a very long level of a column"] * 4, "4 levels", 60.0, 9, 1) == "4 levels"
