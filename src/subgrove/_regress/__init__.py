"""Predict one column from the others: random forests, and sparse linear models chosen by cross-validation."""

from subgrove._regress.design import Design, is_extreme
from subgrove._regress.forest import RandomForest, grow_forest
from subgrove._regress.gram import FoldGrams
from subgrove._regress.linear_predictor import LinearPredictor, LinearTerm
from subgrove._regress.linear_search import LinearFit, fit_dense_linear, fit_sparse_linear
from subgrove._regress.numbers import forest_numbers
from subgrove._regress.one_standard_error import exceeds_standard_error, mean_and_std_error

__all__ = [
    "Design",
    "FoldGrams",
    "LinearFit",
    "LinearPredictor",
    "LinearTerm",
    "RandomForest",
    "exceeds_standard_error",
    "fit_dense_linear",
    "fit_sparse_linear",
    "forest_numbers",
    "grow_forest",
    "is_extreme",
    "mean_and_std_error",
]
