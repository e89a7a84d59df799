"""Predict one column from the others: random forests, and sparse linear models chosen by cross-validation."""

from subgrove._regress.design import Design, is_extreme
from subgrove._regress.forest import Forest, grow
from subgrove._regress.gram import FoldGrams
from subgrove._regress.linear_predictor import Shift, Term
from subgrove._regress.linear_search import LinearFit, fit_dense_linear, fit_sparse_linear
from subgrove._regress.numbers import forest_numbers
from subgrove._regress.one_standard_error import is_clear, mean_and_error

__all__ = [
    "Design",
    "FoldGrams",
    "Forest",
    "LinearFit",
    "Shift",
    "Term",
    "fit_dense_linear",
    "fit_sparse_linear",
    "forest_numbers",
    "grow",
    "is_clear",
    "is_extreme",
    "mean_and_error",
]
