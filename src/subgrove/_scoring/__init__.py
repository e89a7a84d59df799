"""Baseline predictions, resampled predictions in batches, and accumulated losses."""
