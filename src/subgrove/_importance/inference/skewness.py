"""How far an interval reaches where a few rows carry most of an importance.

Increases of a squared error lean to the right: most rows add little, a few add much. Student's interval is then too
short above, because a sample without such rows has a small mean and a small standard error at once. Its bounds are
moved out, never in, by two known terms: the first of Cornish and Fisher, (2 t^2 + 1) / 6 times the skewness of the
mean; and t has the degrees of freedom that the kurtosis of the rows leaves their variance, 2 n / (kurtosis - 1).
With rows that do not lean the interval is Student's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats

_LEAST_DF = 3.0  # below it quantiles tell more about their formula than about the rows


@dataclass(frozen=True)
class Leaning:
    """Shape of the rows that means are taken over, an entry for each mean.

    Attributes
    ----------
    third : float array
        Third central moment of the mean.
    df : float array
        Degrees of freedom of its variance, as far as the kurtosis of the rows leaves them.
    """

    third: Floats
    df: Floats

    def of(self, at: int) -> Leaning:
        """The shape of one of the means."""
        return Leaning(self.third[at], self.df[at])


def leaning(values: Floats, weights: Floats | None) -> Leaning:
    """Shape of the mean of each line of values; weights count rows."""
    n = float(values.shape[1] if weights is None else weights.sum())
    share = np.full(values.shape[1], 1 / values.shape[1]) if weights is None else weights / n
    centred = values - (values @ share)[:, None]
    second, third, fourth = ((centred**power) @ share for power in (2, 3, 4))
    return leaning_of(n, second, third, fourth)


def leaning_of(n: float | Floats, second: Floats, third: Floats, fourth: Floats) -> Leaning:
    """Shape of means over n rows that have these central moments."""
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(second > 0, 2 * n / (fourth / second**2 - 1), n - 1)
    return Leaning(third / n**2, np.clip(df, _LEAST_DF, np.maximum(n - 1, _LEAST_DF)))


def reach(std_error: Floats, df: Floats, level: float, shape: Leaning | None) -> tuple[Floats, Floats]:
    """How many standard errors the interval reaches below the estimate, and above."""
    from scipy.special import stdtrit

    plain: Floats = np.asarray(stdtrit(np.maximum(df, 1), 0.5 + level / 2))
    if shape is None:
        return plain, plain
    wide = stdtrit(np.minimum(np.maximum(df, 1), shape.df), 0.5 + level / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(std_error > 0, shape.third / std_error**3, 0.0)
    moved = skewness * (2 * wide**2 + 1) / 6
    return np.maximum(plain, wide - moved), np.maximum(plain, wide + moved)
