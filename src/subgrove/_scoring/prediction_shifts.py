"""How far predictions move when a feature is redrawn: what a test needs that does not trust the sampler.

Losses say whether predictions got worse, not how they changed. For the test of `association.py` each row keeps the
mean of its predictions over redraws, and how much that mean varies because draws are few.
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
    """Predictions of the rows as they are, and what is left of the target: both (n, K), or None without numbers.

    Of two probabilities the second is enough.
    """
    if predictions.dtype.kind not in "iufb":
        return None, None
    answers = np.array(predictions.reshape(len(predictions), -1), dtype=np.float64)
    if probabilities and answers.shape[1] == 2:
        answers = answers[:, 1:].copy()
    wanted = _indicators(target, answers) if probabilities else _numbers(target)
    if wanted is None or wanted.shape != answers.shape:
        return None, None
    return answers, wanted - answers


def _numbers(target: Target) -> Floats | None:
    values: npt.NDArray[Any] | None = target.numbers
    if values is None and target.raw.dtype.kind in "iufb":
        values = target.raw
    return None if values is None else np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _indicators(target: Target, answers: Floats) -> Floats | None:
    """One column for each class, 1 where a row is of it; of two classes that of the second."""
    if target.codes is None or target.codes.ndim != 1:
        return None
    if answers.shape[1] == 1:
        return np.asarray(target.codes[:, None] == 1, dtype=np.float64)
    return np.asarray(target.codes[:, None] == np.arange(answers.shape[1]), dtype=np.float64)


class PredictionShifts:
    """Sums over redraws of how far the predictions of each row moved, and of the squares.

    Parameters
    ----------
    answers : float array (n, K)
        Predictions of the rows as they are.
    """

    def __init__(self, answers: Floats) -> None:
        self.answers = answers
        self.sums = np.zeros(answers.shape)
        self.squares = np.zeros(answers.shape)

    def add(self, predictions: Predictions, rows: Rows | None, weights: Floats | None) -> None:
        """Count predictions of one redraw, or with `weights` of one value of an exact expectation."""
        where: Any = slice(None) if rows is None else rows
        moved = predictions.reshape(len(predictions), -1)[:, -self.answers.shape[1] :] - self.answers[where]
        if weights is not None:
            self.sums[where] += moved * weights[:, None]
            return
        self.sums[where] += moved
        self.squares[where] += moved * moved

    def means(self, n_repeats: int, drawn: Floats, exact: npt.NDArray[np.bool_] | None) -> tuple[Floats, Floats]:
        """Of each row the mean move, and its variance over other draws, of which `drawn` is left in each row."""
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
