"""Predict one column from the others: random forests, and linear models selected by cross-validation."""
