"""Predict one column from the others: random forests, and sparse linear models chosen by cross-validation."""

from subgrove._regress.design import Design, is_extreme
from subgrove._regress.forest import Forest, grow
from subgrove._regress.gram import Rivals
from subgrove._regress.linear_predictor import Shift, Term
from subgrove._regress.linear_search import FoundShift, find_dense_shift, find_shift
from subgrove._regress.numbers import forest_numbers
from subgrove._regress.one_standard_error import is_clear, mean_and_error

__all__ = [
    "Design",
    "Forest",
    "FoundShift",
    "Rivals",
    "Shift",
    "Term",
    "find_dense_shift",
    "find_shift",
    "forest_numbers",
    "grow",
    "is_clear",
    "is_extreme",
    "mean_and_error",
]
