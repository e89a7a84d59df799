"""Control variates: the contribution of a row to an importance, predicted from the columns of the row.

The predictors are values, squares and levels of the columns; extreme values are clipped, so that no single row
dominates. Predictors are selected forward, on rows other than those predicted, as long as the best of them correlates
with the residuals more than the best of as many pure-noise predictors would (Donoho and Johnstone's bound). Where no
predictor is selected in most folds, there is no control variate.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import Design
from subgrove._data.table import Table

_FOLDS = 5
_MAX_PREDICTORS = 6
_MIN_ROWS = 50  # with fewer there is too little to learn from
_MAX_ROWS = 20_000
_MAX_ENTRIES = 4_000_000  # of the design matrix


@dataclass(frozen=True, eq=False)
class ControlVariate:
    """Predicted contributions of rows.

    Attributes
    ----------
    test : float array (n,)
        Out-of-fold predictions of the test rows.
    further : float array (m,)
        Predictions of the additional rows, the mean over folds.
    columns : tuple of str
        The columns that were selected in most folds.
    """

    test: Floats
    further: Floats
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ControlVariateFit:
    """Design matrix and folds to predict contributions of test rows, shared by all features."""

    test: Table
    further: Table
    design: Design
    rows: Rows  # those that are fitted on
    matrix: Floats  # their design matrix
    fold: Rows

    @classmethod
    def of(cls, test: Table, further: Table, seed: int) -> ControlVariateFit:
        """Choose the rows to fit on and their folds."""
        design, rng = Design.robust(test, further), stream(seed, "calibration")
        most = min(_MAX_ROWS, max(_MIN_ROWS, _MAX_ENTRIES // max(len(design.parts), 1)))
        order = rng.permutation(test.n_rows)[:most]
        return cls(test, further, design, order, design.matrix(test.rows(order)), np.arange(len(order)) % _FOLDS)

    def predict(self, values: Floats, without: Collection[str]) -> ControlVariate | None:
        """Predict values of the rows from other columns than these; None where no column is predictive."""
        usable = np.array([one.column not in without for one in self.design.parts], dtype=np.bool_)
        largest = float(np.abs(values).max(initial=0.0))
        if len(self.rows) < _MIN_ROWS or not usable.any() or not 0 < largest < np.inf:
            return None
        target = values[self.rows] / largest
        slopes = np.zeros((_FOLDS, len(usable)))
        intercepts = np.zeros(_FOLDS)
        for number in range(_FOLDS):
            training = self.fold != number
            selected, own = _forward_selection(self.matrix, target, training, usable)
            slopes[number, selected] = own
            intercepts[number] = target[training].mean() - self.matrix[training][:, selected].mean(axis=0) @ own
        return self._predictions(slopes * largest, intercepts * largest)

    def _predictions(self, slopes: Floats, intercepts: Floats) -> ControlVariate | None:
        used = np.flatnonzero(slopes.any(axis=0))
        often = np.flatnonzero(2 * (slopes != 0).sum(axis=0) > _FOLDS)
        if not len(often):
            return None
        test = np.full(self.test.n_rows, intercepts.mean())
        further = np.full(self.further.n_rows, intercepts.mean())
        for at in used:
            one, slope = self.design.parts[at], slopes[:, at].mean()
            test += slope * self.design.numbers(self.test, one)
            further += slope * self.design.numbers(self.further, one)
        own = slopes[:, used][self.fold]
        test[self.rows] = intercepts[self.fold] + (self.matrix[:, used] * own).sum(axis=1)
        return ControlVariate(test, further, tuple(dict.fromkeys(self.design.parts[at].column for at in often)))


def _forward_selection(
    matrix: Floats, target: Floats, training: npt.NDArray[np.bool_], usable: npt.NDArray[np.bool_]
) -> tuple[Rows, Floats]:
    """Select predictors of the target on the training rows; return their positions and slopes."""
    n = int(training.sum())
    share = training / n
    means = share @ matrix
    spread = np.sqrt(np.maximum(share @ matrix**2 - means**2, 0.0))
    candidates = usable & (spread > 0)
    threshold = float(np.sqrt(2.0 * np.log(max(int(candidates.sum()), 2))))  # of the best of as many noise predictors
    middle = target[training].mean()
    residuals = np.where(training, target - middle, 0.0)
    selected: list[int] = []
    slopes = np.zeros(0)
    while len(selected) < _MAX_PREDICTORS and candidates.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.sqrt((residuals @ residuals) or np.inf)
            strength = np.where(candidates, np.abs(residuals @ matrix) / spread / size, 0.0)
        best = int(np.argmax(strength))
        if strength[best] < threshold:
            break
        selected.append(best)
        candidates[best] = False
        design = matrix[training][:, selected] - means[selected]
        slopes = np.linalg.lstsq(design, target[training] - middle, rcond=None)[0]
        residuals[training] = target[training] - middle - design @ slopes
    return np.array(selected, dtype=np.intp), slopes
