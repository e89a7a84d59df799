"""Numbers of results as text: one format for estimates and their standard errors."""

from __future__ import annotations

import math

from subgrove._core.text import common_decimals, with_errors


def test_estimate_and_error_have_the_same_decimals_and_no_powers_of_ten() -> None:
    """The user saw: 53813.9  +- 1.08e+04."""
    assert with_errors([53813.9, 8.21235, 0.0], [10800.0, 8.26, 0.0]) == [
        "53,814  +- 10,800",
        "   8.2  +- 8.3",
        "     0  +- 0",
    ]


def test_unknown_error_is_left_out() -> None:
    """The user saw: +- nan."""
    assert with_errors([0.1234, 0.5], [math.nan, math.nan]) == ["0.123", "0.500"]
    assert common_decimals([1.0, math.nan], math.nan) == ["1.00", ""]
