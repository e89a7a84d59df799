"""Control variates: the contribution of a row to an importance, predicted from the columns of the row.

The predictors are values, squares and levels of the columns; extreme values are clipped, so that no single row
dominates. Predictors are selected forward, on rows other than those predicted, as long as the best of them correlates
with the residuals more than the best of as many pure-noise predictors would (Donoho and Johnstone's bound). Where no
predictor is selected in most folds, there is no control variate.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import Table, TypedColumn

_CLIP = 4.0  # robust standard deviations from the median at which values are clipped
_NORMAL_IQR = 1.349  # interquartile range of a normal distribution, in standard deviations
_MAX_LEVELS = 20
_MIN_LEVEL_ROWS = 5
_FOLDS = 5
_MAX_PREDICTORS = 6
_MIN_ROWS = 50  # with fewer there is too little to learn from
_MAX_ROWS = 20_000
_MAX_ENTRIES = 4_000_000  # of the design matrix


@dataclass(frozen=True)
class RowFeature:
    """A number computed from one column of a row.

    Attributes
    ----------
    column : str
        The column.
    power : int
        1 for the value, 2 for its square, 0 for an indicator of a level or of a missing value.
    centre, scale : float
        By which values are standardized.
    level : int
        Code of the level; -1 for missing.
    """

    column: str
    power: int
    centre: float = 0.0
    scale: float = 1.0
    level: int = -1

    def of(self, series: TypedColumn) -> Floats:
        """Return the number of each row of a column."""
        if self.power == 0:
            indicator = series.missing if self.level < 0 else series.values == self.level
            return indicator.astype(np.float64)
        present = np.where(series.missing, self.centre, series.values)
        with np.errstate(over="ignore"):
            scaled: Floats = np.clip((present - self.centre) / self.scale, -_CLIP, _CLIP)
        return scaled**self.power


@dataclass(frozen=True, eq=False)
class RowFeatures:
    """Features of the rows of two tables with the same columns: the test rows, and additional rows."""

    test: Table
    further: Table

    @cached_property
    def features(self) -> tuple[RowFeature, ...]:
        """All features that are not constant."""
        features: list[RowFeature] = []
        for name in self.further.names:
            one, two = self.test.series(name), self.further.series(name)
            values = np.concatenate([one.values, two.values])
            missing = np.concatenate([one.missing, two.missing])
            features += _level_features(name, values) if one.info.is_nominal else _powers(name, values[~missing])
            if 0 < missing.sum() < len(missing):
                features.append(RowFeature(name, 0))
        return tuple(features)

    def matrix(self, rows: npt.NDArray[np.intp]) -> Floats:
        """Return all features of some of the test rows: (rows, features)."""
        table = self.test.rows(rows)
        matrix = np.empty((len(self.features), len(rows)))
        for at, one in enumerate(self.features):
            matrix[at] = one.of(table.series(one.column))
        return matrix.T


def _powers(name: str, values: npt.NDArray[Any]) -> list[RowFeature]:
    values = values[np.isfinite(values)]
    if not len(values):
        return []
    low, centre, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    with np.errstate(over="ignore", invalid="ignore"):
        scale = (high - low) / _NORMAL_IQR
        scale = scale if scale > 0 else float(values.std())
    if not 0 < scale < np.inf:
        return []
    two_values = bool(((values == values.min()) | (values == values.max())).all())
    return [RowFeature(name, power, centre, scale) for power in ((1,) if two_values else (1, 2))]


def _level_features(name: str, codes: npt.NDArray[Any]) -> list[RowFeature]:
    counts = np.bincount(codes[codes >= 0])
    frequent = np.argsort(-counts, kind="stable")[1 : _MAX_LEVELS + 1]  # the most frequent is the reference level
    return [RowFeature(name, 0, level=int(level)) for level in frequent if counts[level] >= _MIN_LEVEL_ROWS]


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

    features: RowFeatures
    rows: Rows  # those that are fitted on
    matrix: Floats  # their features
    fold: Rows

    @classmethod
    def of(cls, features: RowFeatures, seed: int) -> ControlVariateFit:
        """Choose the rows to fit on and their folds."""
        n, rng = features.test.n_rows, stream(seed, "calibration")
        most = min(_MAX_ROWS, max(_MIN_ROWS, _MAX_ENTRIES // max(len(features.features), 1)))
        order = rng.permutation(n)[:most]
        return cls(features, order, features.matrix(order), np.arange(len(order)) % _FOLDS)

    def predict(self, values: Floats, without: Collection[str]) -> ControlVariate | None:
        """Predict values of the rows from other columns than these; None where no column is predictive."""
        usable = np.array([one.column not in without for one in self.features.features], dtype=np.bool_)
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
        test = np.full(self.features.test.n_rows, intercepts.mean())
        further = np.full(self.features.further.n_rows, intercepts.mean())
        for at in used:
            one, slope = self.features.features[at], slopes[:, at].mean()
            test += slope * one.of(self.features.test.series(one.column))
            further += slope * one.of(self.features.further.series(one.column))
        own = slopes[:, used][self.fold]
        test[self.rows] = intercepts[self.fold] + (self.matrix[:, used] * own).sum(axis=1)
        return ControlVariate(test, further, tuple(dict.fromkeys(self.features.features[at].column for at in often)))


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
