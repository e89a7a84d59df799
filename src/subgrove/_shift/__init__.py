"""Shifts: what a sparse sum of the other columns tells about a feature, term by term. `fitting.py` finds them."""

from subgrove._shift.clear import is_clear, mean_and_error
from subgrove._shift.design import Design, is_extreme
from subgrove._shift.fitting import FoundShift, find_dense_shift, find_shift
from subgrove._shift.rivals import Rivals
from subgrove._shift.shift import Shift, Term

__all__ = [
    "Design",
    "FoundShift",
    "Rivals",
    "Shift",
    "Term",
    "find_dense_shift",
    "find_shift",
    "is_clear",
    "is_extreme",
    "mean_and_error",
]
