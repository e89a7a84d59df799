"""Probabilities of levels, or of bins of a number, as smooth functions of the other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import Table
from subgrove._regress.gram import FoldGrams
from subgrove._regress.kernel import KernelPredictor, PilotForest, fit_kernel

_MAX_KEPT = 0.9
_PRIOR_WEIGHTS = (0.01, 0.03, 0.1, 0.3)  # share of the overall probabilities in each prediction


@dataclass(frozen=True, eq=False)
class KernelLevels:
    """Probabilities of levels by a kernel regression of their indicators.

    Attributes
    ----------
    feature : str
        Name of the feature.
    kernel : KernelPredictor
        Predicts the deviation of each probability from the overall one.
    shares : float array
        Share of each level in the training rows.
    weight : float
        Share of these in each prediction, so that no level is impossible.
    """

    feature: str
    kernel: KernelPredictor
    shares: Floats
    weight: float

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the kernel."""
        return self.kernel.columns

    def predict(self, table: Table) -> Floats:
        """Return the probability of each level in each row."""
        return as_probabilities(self.shares + self.kernel.predict(table), self.shares, self.weight)

    def text(self, most: int = 6) -> str:
        """Return one line: which columns the probabilities depend on."""
        return f"{self.feature} has probabilities that are smooth functions of {', '.join(self.columns[:most])}"


@dataclass(frozen=True, eq=False)
class KernelLevelsFit:
    """Predictor of probabilities, the value of each level, and leave-one-out probabilities of the rows."""

    predictor: KernelLevels
    values: npt.NDArray[np.generic]
    code: Rows
    probabilities: Floats
    noise: float

    @property
    def kept(self) -> float:
        """Share of rows that keep their own level, so that old and new levels differ as often as two true draws.

        With the true probabilities p, two draws differ with probability 1 - sum p^2, which is the noise variance of the
        indicators together. The estimated probabilities of held-out rows would change levels more often.
        """
        changes = float(1 - self.probabilities[np.arange(len(self.code)), self.code].mean())
        return float(np.clip(1 - self.noise / changes, 0.0, _MAX_KEPT)) if changes > 0 else 0.0

    @property
    def scores(self) -> Floats:
        """Log score of each row."""
        return log_scores(self.probabilities, self.code)


def log_scores(probabilities: Floats, code: Rows) -> Floats:
    """Return minus the logarithm of the probability of each row's level."""
    return np.asarray(-np.log(np.maximum(probabilities[np.arange(len(code)), code], 1e-300)))


def as_probabilities(predicted: Floats, shares: Floats, weight: float) -> Floats:
    """Return positive numbers with sum 1, mixed with the overall shares."""
    positive = np.maximum(predicted, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    normed = np.where(total > 0, positive / np.where(total > 0, total, 1.0), shares)
    return np.asarray((1 - weight) * normed + weight * shares)


def fit_kernel_levels(
    grams: FoldGrams,
    feature: str,
    series: npt.NDArray[np.generic],
    names: Sequence[str],
    seed: int,
    summaries: Floats | None = None,
) -> KernelLevelsFit | None:
    """Fit the probabilities of the values of a column; None if no column predicts them.

    `summaries` are numbers of each row whose prediction decides on the columns and widths of the kernel; by default
    the indicators of the values.
    """
    values, code = np.unique(series, return_inverse=True)
    if len(values) < 2:
        return None
    indicators = (code[:, None] == np.arange(len(values))).astype(np.float64)
    shares = indicators.mean(axis=0)
    centred = indicators - shares
    pilot = PilotForest.of(grams, centred if summaries is None else summaries, names, seed)
    fit = fit_kernel(grams, centred, pilot, seed, summaries)
    if fit is None:
        return None
    left_out = shares + centred - fit.residuals
    tried = [as_probabilities(left_out, shares, weight) for weight in _PRIOR_WEIGHTS]
    best = int(np.argmin([log_scores(one, code).mean() for one in tried]))
    predictor = KernelLevels(feature, fit.predictor, shares, _PRIOR_WEIGHTS[best])
    return KernelLevelsFit(predictor, values, code, tried[best], float(fit.noise.sum()))
