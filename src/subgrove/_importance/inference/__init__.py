"""Variance components, intervals, tests and calibration of importance estimates."""
