"""Shifts of predictions when a feature is resampled, for the doubly robust test of conditional independence.

Losses show whether predictions got worse, not how they changed. For the test each row has the mean shift of its
predictions over resamples, and the Monte-Carlo variance of that mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Rows
from subgrove._models.predictor import Predictions, Target


def predictions_and_residuals(
    predictions: Predictions, target: Target, *, probabilities: bool
) -> tuple[Floats | None, Floats | None]:
    """Return baseline predictions and residuals, both (n, K); None if predictions are not numbers.

    For two classes the probability of the second is sufficient.
    """
    if predictions.dtype.kind not in "iufb":
        return None, None
    baseline = np.array(predictions.reshape(len(predictions), -1), dtype=np.float64)
    if probabilities and baseline.shape[1] == 2:
        baseline = baseline[:, 1:].copy()
    observed = _indicators(target, baseline) if probabilities else _numbers(target)
    if observed is None or observed.shape != baseline.shape:
        return None, None
    return baseline, observed - baseline


def _numbers(target: Target) -> Floats | None:
    values: npt.NDArray[Any] | None = target.numbers
    if values is None and target.raw.dtype.kind in "iufb":
        values = target.raw
    return None if values is None else np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _indicators(target: Target, baseline: Floats) -> Floats | None:
    """Return one-hot classes; for two classes the second column only."""
    if target.codes is None or target.codes.ndim != 1:
        return None
    if baseline.shape[1] == 1:
        return np.asarray(target.codes[:, None] == 1, dtype=np.float64)
    return np.asarray(target.codes[:, None] == np.arange(baseline.shape[1]), dtype=np.float64)


class PredictionShifts:
    """Sums over resamples of the shifts of the predictions of each row, and of their squares.

    Parameters
    ----------
    baseline : float array (n, K)
        Baseline predictions.
    """

    def __init__(self, baseline: Floats) -> None:
        self.baseline = baseline
        self.sums = np.zeros(baseline.shape)
        self.squares = np.zeros(baseline.shape)

    def add(self, predictions: Predictions, rows: Rows | None, weights: Floats | None) -> None:
        """Add predictions of one resample, or with `weights` of one value of an exact expectation."""
        where: Any = slice(None) if rows is None else rows
        moved = predictions.reshape(len(predictions), -1)[:, -self.baseline.shape[1] :] - self.baseline[where]
        if weights is not None:
            self.sums[where] += moved * weights[:, None]
            return
        self.sums[where] += moved
        self.squares[where] += moved * moved

    def means(self, n_repeats: int, drawn: Floats, exact: npt.NDArray[np.bool_] | None) -> tuple[Floats, Floats]:
        """Return the mean shift of each row and its Monte-Carlo variance; `drawn` is a factor of the variance."""
        times = np.full((len(self.sums), 1), float(n_repeats))
        if exact is not None:
            times[exact] = 1.0
        means = self.sums / times
        if n_repeats < 2:
            variance = np.full(means.shape, np.nan)
        else:
            spread = self.squares - n_repeats * means**2
            variance = np.maximum(spread, 0.0) / (n_repeats - 1) / n_repeats * drawn[:, None]
        if exact is not None:
            variance[exact] = 0.0
        return means, variance
