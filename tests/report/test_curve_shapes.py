"""Sentences on a curve describe its shape."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgrove._report.curve_shapes import FLAT, curve_shape, level_sentences, numeric_sentences, shape_words
from subgrove._report.summary import ReportCurve


def line(
    y: list[float], x: list[float | str] | None = None, kind: str = "pdp", subgroup: int | None = None
) -> ReportCurve:
    points = tuple(x) if x is not None else tuple(float(at) for at in range(len(y)))
    none = (None,) * len(y)
    return ReportCurve(kind, None, subgroup, points, tuple(y), none, none, (2,) * len(y), 50)


heights = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-9)


@given(st.lists(heights, min_size=2, max_size=25), st.floats(0, 10), st.floats(1e-6, 1e6))
def test_a_rising_curve_ends_higher_and_a_flat_one_hardly_changes(y: list[float], low: float, spread: float) -> None:
    found = curve_shape(line(y), (low, float(len(y) - 1)), spread)
    if found is None:
        return
    size = found.most - found.least
    if found.shape == "rises":
        assert found.end - found.start >= 0.8 * size > 0
    if found.shape == "falls":
        assert found.start - found.end >= 0.8 * size > 0
    assert (found.shape == "flat") == (size <= FLAT * spread or size == 0)
    sentences = shape_words(found)
    assert not re.search(r"\bnan\b|None|-0(?![.\d])", sentences)
    if found.shape in ("rises", "falls"):
        change, start, end = re.findall(r"-?[\d,.]*\d(?:e[-+]\d+)?", sentences)
        error = 0.06 * size + 1e-9
        assert float(change.replace(",", "")) == pytest.approx(abs(found.end - found.start), rel=0.006, abs=error)
        assert float(start.replace(",", "")) == pytest.approx(found.start, rel=0.006, abs=error)
        assert float(end.replace(",", "")) == pytest.approx(found.end, rel=0.006, abs=error)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0, 10, 20], "rises by 20, from 0 to 20"),
        ([20, 10, 0], "falls by 20, from 20 to 0"),
        ([0, 20, 5], "rises, then falls: from 0 over 20 at 1.00 to 5"),
        ([20, 0, 15], "falls, then rises: from 20 over 0 at 1.00 to 15"),
        ([0, 20, 0, 20], "goes up and down between 0 and 20"),
        ([1.0, 1.0001, 1.0], "is flat: it changes by 0.0001000"),
    ],
)
def test_shapes_have_their_words(y: list[float], words: str) -> None:
    found = curve_shape(line([float(one) for one in y]), (0.0, len(y) - 1.0), 10.0)
    assert found is not None
    assert shape_words(found) == words


def test_a_curve_is_described_over_the_middle_of_the_rows_only() -> None:
    y = np.where(np.arange(11) < 10, 0.0, 100.0).tolist()  # it moves beyond the rows alone
    found = curve_shape(line(y), (0.0, 8.0), 10.0)
    assert found is not None
    assert found.shape == "flat"


def test_one_point_or_no_width_has_no_shape() -> None:
    assert curve_shape(line([1.0]), (0.0, 1.0), 1.0) is None
    assert curve_shape(line([1.0, 2.0]), (1.0, 1.0), 1.0) is None
    assert curve_shape(line([1.0, 2.0]), (5.0, 6.0), 1.0) is None


def test_subgroups_have_a_sentence_each_and_a_different_ale_is_reported() -> None:
    lines = [line([0, 10, 20]), line([0, 0, 0], kind="ale"), line([0, 5, 10], subgroup=1)]
    sentences = list(numeric_sentences("x", lines, [(0.0, 2.0), None, (0.0, 2.0)], 10.0, None))
    assert (
        sentences[0]
        == "Over the middle 90 % of the rows (x from 0 to 2), the mean prediction rises by 20, from 0 to 20."
    )
    assert "The ALE curve, which compares neighbouring rows, changes by 0 where the PDP changes by 20" in sentences[1]
    assert sentences[2] == "In subgroup B, it rises by 10, from 0 to 10."


def test_dates_are_written_as_dates() -> None:
    sentences = list(numeric_sentences("when", [line([0, 20, 5])], [(0.0, 2.0)], 1.0, ("2020-01-01", "2021-01-01")))
    assert sentences == [
        "Over the middle 90 % of the rows (when from 2020-01-01 to 2021-01-01), the mean prediction rises, then falls."
    ]


def test_levels_are_ranked_and_those_without_rows_are_left_out() -> None:
    beyond = ReportCurve("pdp", "yes", None, ("a", "b", "c"), (1.0, 5.0, 99.0), (None,) * 3, (None,) * 3, (2, 2, 0), 10)
    (sentence,) = level_sentences("x", [beyond], 1.0)
    assert sentence == (
        "In all rows, the mean probability of class yes is highest for x = b (5) and lowest for a (1), a "
        "difference of 4."
    )
    (same,) = level_sentences("x", [line([1.0, 1.001], ["a", "b"])], 1.0)
    assert "hardly differs" in same
