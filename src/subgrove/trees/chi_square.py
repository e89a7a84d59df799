"""Tail of the chi-square distribution in logarithms, where the probability itself would vanish."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from subgrove._data.table import Floats

_SMALLEST = 1e-290


def log_tails(statistic: Floats, df: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """log P(chi2 > statistic) and log P(chi2 <= statistic), elementwise; df of 0 gives log 1 and log 0."""
    from scipy.special import gammainc, gammaincc

    shape, half = np.maximum(df, 1) / 2.0, np.where(df > 0, statistic, 0.0) / 2.0
    upper = gammaincc(shape, half)
    lower = gammainc(shape, half)
    with np.errstate(divide="ignore"):
        log_upper = np.log(upper)
        # Whichever tail is small is the one known to full precision.
        log_lower = np.where(upper < 0.5, np.log1p(-upper), np.log(lower))
    tiny = upper < _SMALLEST
    if tiny.any():
        log_upper[tiny] = _log_upper_far(shape[tiny], half[tiny])
        log_lower[tiny] = -np.exp(log_upper[tiny])
    return log_upper, log_lower


def _log_upper_far(shape: Floats, half: Floats) -> Floats:
    """log of the regularised upper incomplete gamma function far in the tail, by its continued fraction."""
    from scipy.special import gammaln

    b = half + 1.0 - shape
    c = np.full_like(b, 1e300)
    d = 1.0 / b
    fraction = d.copy()
    for i in range(1, 200):
        a = -i * (i - shape)
        b = b + 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        fraction *= d * c
        if np.all(np.abs(d * c - 1.0) < 1e-15):
            break
    result: Floats = shape * np.log(half) - half - gammaln(shape) + np.log(fraction)
    return result
