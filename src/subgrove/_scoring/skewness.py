"""Skewness-corrected intervals, for means that a few rows dominate.

Increases of a squared error are skewed to the right: most rows add little, a few add much. Student's interval is then
too short above, because a sample without such rows has a small mean and a small standard error at once. Its bounds are
moved outwards, never inwards, by two known terms: the first of Cornish and Fisher, (2 t^2 + 1) / 6 times the skewness
of the mean; and t has the degrees of freedom that the kurtosis of the rows leaves their variance,
2 n / (kurtosis - 1). For symmetric rows the interval is Student's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats

_MIN_DF = 3.0  # with fewer the quantiles are unreliable


@dataclass(frozen=True)
class SkewnessCorrection:
    """Skewness and kurtosis of the rows that means are taken over, one entry per mean.

    Attributes
    ----------
    third : float array
        Third central moment of the mean.
    df : float array
        Degrees of freedom of its variance, from the kurtosis of the rows.
    """

    third: Floats
    df: Floats

    def of(self, at: int) -> SkewnessCorrection:
        """Return the correction of one of the means."""
        return SkewnessCorrection(self.third[at], self.df[at])


def skewness_correction(values: Floats, weights: Floats | None) -> SkewnessCorrection:
    """Return the correction for the mean of each line of values; weights are frequencies of rows."""
    n = float(values.shape[1] if weights is None else weights.sum())
    share = np.full(values.shape[1], 1 / values.shape[1]) if weights is None else weights / n
    centred = values - (values @ share)[:, None]
    second, third, fourth = ((centred**power) @ share for power in (2, 3, 4))
    return correction_from_moments(n, second, third, fourth)


def correction_from_moments(n: float | Floats, second: Floats, third: Floats, fourth: Floats) -> SkewnessCorrection:
    """Return the correction for means over n rows with these central moments."""
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(second > 0, 2 * n / (fourth / second**2 - 1), n - 1)
    return SkewnessCorrection(third / n**2, np.clip(df, _MIN_DF, np.maximum(n - 1, _MIN_DF)))


def interval_multipliers(
    std_error: Floats, df: Floats, level: float, correction: SkewnessCorrection | None
) -> tuple[Floats, Floats]:
    """Return how many standard errors the interval extends below the estimate, and above."""
    from scipy.special import stdtrit

    plain: Floats = np.asarray(stdtrit(np.maximum(df, 1), 0.5 + level / 2))
    if correction is None:
        return plain, plain
    wide = stdtrit(np.minimum(np.maximum(df, 1), correction.df), 0.5 + level / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(std_error > 0, correction.third / std_error**3, 0.0)
    shift = skewness * (2 * wide**2 + 1) / 6
    return np.maximum(plain, wide - shift), np.maximum(plain, wide + shift)
