"""Markdown has the content of the summary, and escapes text from the data."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from subgrove._report.render import escaped, markdown

from . import hand_made
from .reports import SCRIPT, bike_report, odd_report


def test_every_sentence_and_importance_is_in_it() -> None:
    report = bike_report()
    text = report.to_markdown()
    summary = report.summary
    sentences = [*summary.highlights, *summary.cautions, *summary.methods.sentences, *summary.dependence_sentences]
    for one in summary.features:
        sentences += [one.headline, *one.story, *one.effect_sentences, *(part.sentence for part in one.subgroups)]
    assert [sentence for sentence in sentences if escaped(sentence) not in text] == []


def test_tables_have_as_many_cells_in_each_row_as_in_their_head() -> None:
    for report in (bike_report(), odd_report()):
        head = 0
        for line in report.to_markdown().splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line))
            if not line.startswith("|"):
                head = 0
                assert cells == 0
                continue
            head = head or cells
            assert cells == head, line


def test_numbers_of_rows_are_integers() -> None:
    summary = hand_made.bike_like()
    groups = tuple(replace(group, n_train=54) for group in summary.features[0].subgroups)
    lines = markdown(replace(summary, features=(replace(summary.features[0], subgroups=groups),))).splitlines()
    assert sum("| 54 |" in line for line in lines) == len(groups)
    assert not any("54.0" in line for line in lines)


def test_no_markup_comes_from_the_data() -> None:
    text = odd_report().to_markdown()
    assert SCRIPT not in text
    assert not re.search(r"(?<!\\)[<>`]", text)
    assert "new line" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("`x` <b> [y](z)", r"\`x\` \<b\> \[y\](z)"),
        ("a\nb\r\n# c", r"a b \# c"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("33.8", "33.8"),
        ("-33.8", r"\-33.8"),
        ("a & b", r"a \& b"),
    ],
)
def test_markdown_syntax_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown
