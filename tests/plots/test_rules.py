"""Rules as pictures write them."""

from __future__ import annotations

import pytest

from subgrove.plots._text import DOTS, Ruler, short_rule


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


def test_rules_are_broken_between_conditions() -> None:
    ruler = Ruler(9)
    room = ruler.width("season in {SUMMER} and h")
    assert ruler.wrap_rule("season in {SUMMER} and hum <= 66.75", room, 3) == ("season in {SUMMER} and", "hum <= 66.75")


def test_a_condition_that_is_too_long_is_broken_within() -> None:
    ruler = Ruler(9)
    lines = ruler.wrap_rule("season in {SPRING, SUMMER, FALL} and hum <= 66.75", ruler.width("season in {SPRING,"), 4)
    assert " ".join(lines) == "season in {SPRING, SUMMER, FALL} and hum <= 66.75"


def test_a_rule_is_shortened_if_its_lines_do_not_hold_it() -> None:
    (line,) = Ruler(9).wrap_rule("season in {SPRING, SUMMER, FALL} and hum <= 66.75", 100.0, 1)
    assert line.count(DOTS) == 1
    assert line.endswith("66.75")


def test_levels_with_an_and_of_their_own_are_kept() -> None:
    rule = "weather in {rain and snow, fog} and hum > 3"
    assert " ".join(Ruler(9).wrap_rule(rule, 90.0, 5)) == rule
