"""Means of differences row by row, and whether they are clear of their noise."""

from __future__ import annotations

import numpy as np

from subgrove._core.kinds import Floats


def mean_and_std_error(differences: Floats) -> tuple[float, float]:
    """Their mean, and its standard error."""
    n = len(differences)
    mean = float(differences.mean())
    about = differences - mean
    return mean, float(np.sqrt(about @ about)) / n


def exceeds_standard_error(gain: Floats, errors: float = 1.0) -> bool:
    """Whether the mean is above 0 by more than so many standard errors."""
    mean, error = mean_and_std_error(gain)
    return mean > errors * error
