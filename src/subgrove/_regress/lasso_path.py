"""Lasso paths: coefficients for decreasing penalties, for several problems at once."""

from __future__ import annotations

import warnings

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._native import loader
from subgrove.exceptions import SubgroveWarning

_TOLERANCE = 1e-7  # relative to the target's variance: smaller decreases of the objective end the descent
_MAX_SWEEPS = 1000


def lasso_paths(gram: Floats, with_target: Floats, penalties: Floats) -> Floats:
    """Return the coefficients (problems, penalties, columns) that minimize b' G b / 2 - c' b + penalty |b|.

    Parameters
    ----------
    gram : float array (problems, columns, columns)
        G: mean products of the centred columns.
    with_target : float array (problems, columns)
        c: mean products with the target, whose variance is about 1.
    penalties : float array
        Decreasing.
    """
    problems, p = with_target.shape
    gram, with_target, penalties = (
        np.ascontiguousarray(part, dtype=np.float64) for part in (gram, with_target, penalties)
    )
    coef = np.zeros((problems, len(penalties), p))
    if loader.lasso_path is not None:
        sizes = problems, p, len(penalties)
        failures = loader.lasso_path.paths(gram, with_target, penalties, coef, *sizes, _TOLERANCE)
    else:
        failures = sum(
            _follow(*problem) for problem in zip(gram, with_target, [penalties] * problems, coef, strict=True)
        )
    if failures:
        warnings.warn(
            f"Coordinate descent did not converge for {failures} of {problems * len(penalties)} lasso problems, so the "
            f"columns that a shift is made of may not be the best ones.",
            SubgroveWarning,
            stacklevel=2,
        )
    return coef


def _follow(gram: Floats, with_target: Floats, penalties: Floats, out: Floats) -> int:
    """Write the coefficients of one problem; return for how many penalties they did not converge."""
    gradient, coef, failures = with_target.copy(), np.zeros(len(with_target)), 0
    columns = np.flatnonzero(np.diag(gram) > 0)
    for at, penalty in enumerate(penalties):
        failures += not _descend(gram, columns, penalty, coef, gradient)
        out[at] = coef
    return failures


def _descend(gram: Floats, columns: Rows, penalty: float, coef: Floats, gradient: Floats) -> bool:
    """Update the coefficients for one penalty; return whether they converged."""
    for _ in range(_MAX_SWEEPS):
        if _sweep(gram, columns, penalty, coef, gradient) <= _TOLERANCE:
            return True
        for _ in range(_MAX_SWEEPS):
            if _sweep(gram, np.flatnonzero(coef), penalty, coef, gradient) <= _TOLERANCE:
                break
    return False


def _sweep(gram: Floats, columns: Rows, penalty: float, coef: Floats, gradient: Floats) -> float:
    """Update each column once; return the largest decrease of the objective, times 2."""
    largest = 0.0
    for j in columns:
        diagonal, old = gram[j, j], coef[j]
        unpenalized = gradient[j] + diagonal * old
        new = np.sign(unpenalized) * max(abs(unpenalized) - penalty, 0.0) / diagonal
        step = new - old
        if step != 0.0:
            coef[j] = new
            gradient -= step * gram[j]
            largest = max(largest, step * step * diagonal)
    return largest
