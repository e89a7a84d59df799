"""Predict one column from the others: random forests, and linear models selected by cross-validation."""

from subgrove._regress.forest import RandomForest, grow_forest
from subgrove._regress.gram import FoldGrams, exceeds_standard_error, mean_and_std_error
from subgrove._regress.linear import (
    LinearFit,
    LinearPredictor,
    LinearTerm,
    best_ridge_residuals,
    fit_dense_linear,
    fit_sparse_linear,
    ridge_predictions,
)

__all__ = [
    "FoldGrams",
    "LinearFit",
    "LinearPredictor",
    "LinearTerm",
    "RandomForest",
    "best_ridge_residuals",
    "exceeds_standard_error",
    "fit_dense_linear",
    "fit_sparse_linear",
    "grow_forest",
    "mean_and_std_error",
    "ridge_predictions",
]
