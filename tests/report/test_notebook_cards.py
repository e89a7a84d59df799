"""Cards of notebook views: escaped, small, well formed, readable on light and dark."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser

import pytest
from markupsafe import Markup

from subgrove._report import notebook_cards
from subgrove._report.notebook_cards import (
    COLOUR,
    MOST_ROWS,
    WARNING,
    bar,
    card,
    chart_scale,
    curve,
    dot,
    folded,
    table,
)
from subgrove._report.svg import number, template_text

NASTY = "<script>alert('x')</script> & \"quoted\""


class Walker(HTMLParser):
    """Text of a page; fails where an end does not fit its beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a beginning"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text.append(data)


def walked(html: str) -> Walker:
    walker = Walker()
    walker.feed(html)
    walker.close()
    assert not walker.open
    return walker


def test_text_of_the_data_is_escaped_wherever_it_goes() -> None:
    rows = table([NASTY, "n"], [[NASTY, 1]], 2, NASTY)
    html = card(NASTY, NASTY, rows, notebook_cards.sentences([NASTY] * 30, NASTY), folded(NASTY, rows))
    assert "script" not in walked(html).tags
    assert "".join(walked(html).text).count(NASTY) == 2 + 3 + 21 + 1 + 3


def test_long_text_is_shortened_and_its_title_is_escaped() -> None:
    html = card("t", "", table(["rule"], [['x" onmouseover="' + NASTY * 50]], 1))
    assert walked(html).tags.count("span") == 1
    assert len("".join(walked(html).text)) < 300
    assert '" onmouseover' not in html


def test_a_table_has_twenty_rows_and_the_number_of_more() -> None:
    html = card("t", "", table(["n"], [[at] for at in range(103)], 103, ".overall"))
    assert walked(html).tags.count("tr") == MOST_ROWS + 2  # the head and the foot
    assert "and 83 more: .overall has all" in html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.23456, "1.23"),
        (-0.00123, "\u22120.00123"),
        (1.2e-7, "1.20\u00a0\u00d7\u00a010\u207b\u2077"),
        (1265.4, "1,265"),
        (3e12, "3.00\u00a0\u00d7\u00a010\u00b9\u00b2"),
        (math.nan, "\u2013"),
        (None, "\u2013"),
        (-math.inf, "\u2013"),
    ],
)
def test_numbers_have_few_digits(value: float | None, text: str) -> None:
    assert number(value) == text


def test_unknown_values_have_no_chart() -> None:
    scale = chart_scale([1.0, math.nan, math.inf])
    assert dot(scale, math.nan, 0.0, 1.0) == bar(scale, 0.0, math.nan) == Markup("")
    assert "line" not in walked(dot(chart_scale([1.0, 2.0], zero=False), 1.0, math.nan, 2.0)).tags
    y = [1.0, math.nan, 0.0]
    assert "nan" not in curve([0.0, 0.5, 1.0], y, [0.0, 1.0], y, points=False)


@pytest.mark.parametrize("values", [[], [0.0], [5.0, 5.0], [-1.7e308, 1.7e308], [math.nan]])
def test_a_scale_takes_any_numbers(values: list[float]) -> None:
    scale = chart_scale(values, zero=False)
    for value in [*values, 0.0]:
        places = re.findall(r'cx="([\d.]+)"', dot(scale, value, value, value))
        assert math.isnan(value) or 0 <= float(places[0]) <= notebook_cards.WIDTH


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("background", ["#ffffff", "#f5f5f5", "#111111", "#1f1f1f"])
@pytest.mark.parametrize("colour", [COLOUR, WARNING])
def test_pictures_stand_out_from_light_and_dark_notebooks(colour: str, background: str) -> None:
    light, dark = sorted((luminance(colour), luminance(background)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3.0  # WCAG 2, graphical objects


def test_style_touches_nothing_but_the_card() -> None:
    rules = re.findall(r"([^{}]+)\{", template_text("notebook.css"))
    assert rules
    assert all(part.strip().startswith("div.subgrove-card") for rule in rules for part in rule.split(","))
