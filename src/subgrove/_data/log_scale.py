"""Logarithmic scale of a column with heavy tails, such as an income: on it, curves of the column have an even slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats

_HEAVY_TAILS = 6.0  # kurtosis from which there is one; that of a normal distribution is 3, of an exponential one 9
_MIN_ROWS, _MIN_VALUES = 50, 20  # rows, and different values, for it
_NORMAL_IQR = 1.349  # interquartile range of a normal distribution, in standard deviations


@dataclass(frozen=True)
class LogScale:
    """Logarithm of positive values; of others, the inverse hyperbolic sine, a logarithm of both tails.

    Attributes
    ----------
    least : float or None
        Smallest training value; new ones below it are set to it. None for the inverse hyperbolic sine.
    centre, spread : float
        Median and scaled interquartile range, between which the inverse hyperbolic sine is nearly linear.
    """

    least: float | None
    centre: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, values: Floats) -> LogScale | None:
        """Return the scale of a column with heavy tails; None for others, and for those with few different values."""
        if len(values) < _MIN_ROWS or len(np.unique(values)) < _MIN_VALUES:
            return None
        centred = values - values.mean()
        if not (centred**4).mean() > _HEAVY_TAILS * (centred**2).mean() ** 2:
            return None
        if values.min() > 0:
            return cls(float(values.min()))
        low, centre, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
        spread = (high - low) / _NORMAL_IQR
        return cls(None, centre, spread) if spread > 0 else None

    def of_values(self, values: Floats) -> Floats:
        """Return values on the scale."""
        if self.least is not None:
            return np.log(np.maximum(values, self.least))
        return np.arcsinh((values - self.centre) / self.spread)

    def label(self, column: str) -> str:
        """Return the label of a column on the scale."""
        return f"log({column})" if self.least is not None else f"arsinh({column})"
