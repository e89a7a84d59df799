"""Shifts in words: what is printed is what is added."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from subgrove._data.encode import Design
from subgrove._data.table import read_table
from subgrove._regress.linear import LinearPredictor, LinearTerm

FRAME = pd.DataFrame(
    {
        "hum": np.linspace(20, 100, 60),
        "wind": np.tile([-3.0, 1.0, -1.0], 20),
        "season": np.repeat(["FALL", "SPRING", "SUMMER"], 20),
    }
)
TABLE = read_table(FRAME)
DESIGN, _ = Design.of(TABLE)
HUM, WIND, FALL, SPRING, SUMMER = DESIGN.parts


def shift(*terms: LinearTerm) -> LinearPredictor:
    return LinearPredictor("temp", 15.25, terms, DESIGN)


def test_a_line_has_signs_numbers_and_names() -> None:
    text = shift(LinearTerm((SUMMER,), 4.2, 2.0), LinearTerm((HUM,), -0.1, 1.0)).text()
    assert text == "temp ~ 15.2 + 4.2 * [season = SUMMER] - 0.1 * hum"


def test_factors_of_a_product_are_taken_about_their_means() -> None:
    text = shift(LinearTerm((HUM, WIND), 0.5, 2.0), LinearTerm((FALL, HUM), -2.0, 1.0)).text()
    assert text == "temp ~ 15.2 + 0.5 * (hum - 60) * (wind + 1) - 2 * ([season = FALL] - 0.333) * (hum - 60)"


@pytest.mark.parametrize(("most", "ending"), [(6, "* wind"), (2, "+ 1 smaller term"), (1, "+ 2 smaller terms")])
def test_long_sums_end_with_how_many_are_left_out(most: int, ending: str) -> None:
    terms = shift(LinearTerm((SUMMER,), 4.2, 2.0), LinearTerm((HUM,), -0.1, 1.0), LinearTerm((WIND,), 0.3, 0.5))
    assert terms.text(most).endswith(ending)


def test_columns_come_in_the_order_of_the_terms_and_once() -> None:
    assert shift(
        LinearTerm((SUMMER,), 4.2, 2.0), LinearTerm((HUM, FALL), 1.0, 1.0), LinearTerm((WIND,), 1.0, 0.5)
    ).columns == (
        "season",
        "hum",
        "wind",
    )


def test_the_printed_sum_is_the_one_that_is_applied() -> None:
    one = shift(LinearTerm((SUMMER,), 4.0, 2.0), LinearTerm((HUM,), -0.5, 1.0), LinearTerm((HUM, WIND), 0.25, 0.5))
    printed = 15.25 + 4 * (FRAME["season"] == "SUMMER") - 0.5 * FRAME["hum"]
    printed += 0.25 * (FRAME["hum"] - 60) * (FRAME["wind"] + 1)
    np.testing.assert_allclose(one.predict(TABLE), printed, rtol=1e-12)


def test_without_terms_there_is_the_intercept() -> None:
    assert shift().text() == "temp ~ 15.2"
    np.testing.assert_array_equal(shift().predict(TABLE), 15.25)
