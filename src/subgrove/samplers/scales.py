"""Scales of a feature on which its dependence may be a plain shift: logarithms and normal scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from subgrove._core.kinds import Floats

_MIN_LOG_SPREAD = 0.3  # standard deviation of logarithms below which they are nearly linear
_HEAVY_TAILS = 4.5  # kurtosis from which normal scores are tried; that of a normal distribution is 3
_EXTREME_TAILS = 30.0  # kurtosis from which candidates are compared on normal scores
_MIN_ROWS = 50


@dataclass(frozen=True, eq=False)
class ValueScale:
    """Increasing transformation of a feature.

    Attributes
    ----------
    kind : {"log", "normal scores"}
    values, scores : float arrays
        Sorted training values, and their normal scores; empty for logarithms.
    """

    kind: Literal["log", "normal scores"]
    values: Floats
    scores: Floats

    @classmethod
    def of(cls, kind: Literal["log", "normal scores"], x: Floats) -> ValueScale:
        """Return the transformation of training values."""
        if kind == "log":
            return cls(kind, np.empty(0), np.empty(0))
        from scipy.special import ndtri

        values, first, counts = np.unique(np.sort(x), return_index=True, return_counts=True)
        return cls(kind, values, ndtri((first + counts / 2) / len(x)))

    def forward(self, x: Floats) -> Floats:
        """Return transformed values."""
        if self.kind == "log":
            return np.log(np.maximum(x, np.finfo(np.float64).tiny))
        return np.where(np.isnan(x), np.nan, np.interp(x, self.values, self.scores))

    def back(self, z: Floats) -> Floats:
        """Return the values of transformed ones."""
        if self.kind == "log":
            return np.exp(np.minimum(z, 700.0))
        return np.asarray(np.interp(z, self.scores, self.values))

    def label(self, feature: str) -> str:
        """Return the name of the transformed feature."""
        return f"log({feature})" if self.kind == "log" else f"normal score of {feature}"


def judging_scale(x: Floats) -> ValueScale | None:
    """Return normal scores if a few extreme values would decide a comparison of CRPS; None otherwise."""
    spread = float(x.std())
    if len(x) < _MIN_ROWS or not 0 < spread < np.inf:
        return None
    kurtosis = float((((x - x.mean()) / spread) ** 4).mean())
    return ValueScale.of("normal scores", x) if kurtosis > _EXTREME_TAILS else None


def scales_to_try(x: Floats, residuals: Floats) -> list[ValueScale]:
    """Return transformations that may make a dependence simpler: of positive, skewed and heavy-tailed values."""
    if len(x) < _MIN_ROWS:
        return []
    if x.min() > 0 and float(np.log(x).std()) > _MIN_LOG_SPREAD:
        return [ValueScale.of("log", x)]
    spread = float(residuals.std())
    if spread > 0 and float(((residuals - residuals.mean()) ** 4).mean()) > _HEAVY_TAILS * spread**4:
        return [ValueScale.of("normal scores", x)]
    return []
