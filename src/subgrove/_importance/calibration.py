"""Calibration: test rows are weighted so that their mean agrees with that of all rows of known columns.

An importance is a mean over test rows and varies with the sample of rows. Part of a row's contribution z is predicted
by its columns: h, learned by cross-fitting on the test rows (`ControlVariate`). h is also known for additional rows
such as the training rows, whose target is not needed. With n test rows, m additional rows, N = n + m and means over
them::

    weights     w_i = 1 + (mean_N h - mean_n h)' S^-1 (h_i - mean_n h),   S the covariance of h over test rows
    estimate    mean_n w z  =  mean_n z + slope (mean_N h - mean_n h),    slope that of z on h
    variance    Var(z - (m / N) slope h) / n  +  slope^2 Var(h) m / N^2

Weights are bounded below: where one would be smaller, all of them are shrunk towards 1.
The estimand is unchanged if all rows have the same distribution. Only the columns of additional rows are used; the
model, which may have been fitted on them, does not predict them. A feature whose donors are training rows is not
among the columns that predict z, or the noise of these rows would count twice.

The predictors of z are values, squares and levels of the columns; extreme values are clipped, so that no single row
dominates. Predictors are selected forward, on rows other than those predicted, as long as the best of them correlates
with the residuals more than the best of as many pure-noise predictors would (Donoho and Johnstone's bound). Where no
predictor is selected in most folds, there is no control variate.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import first_of
from subgrove._core.validate import warn
from subgrove._data.encode import Design
from subgrove._data.table import Table, read_like, read_table
from subgrove._scoring.estimate_variance import mean_variance, subgroup_variance
from subgrove._scoring.feature_result import Calibration, FeatureResult, to_float32
from subgrove.exceptions import InputError, ParameterError
from subgrove.samplers.fit import reject_other_kinds, training_rows

_MIN_WEIGHT = 0.1
_FOLDS = 5
_MAX_PREDICTORS = 6
_MIN_ROWS = 50  # with fewer there is too little to learn from
_MAX_ROWS = 20_000
_MAX_ENTRIES = 4_000_000  # of the design matrix
_MAX_DISTANCE = 4.5  # standard errors between test and additional rows: by chance in one case of a hundred thousand


def read_additional_rows(X: Any, table: Table) -> Table:
    """Read the rows that test rows are calibrated on, with the columns that both tables have."""
    if X is None or isinstance(X, int | float | str):
        raise ParameterError(f"calibrated needs a table of rows with the columns of X; got {X!r}.")
    rows = training_rows(X)
    theirs = read_table(rows, argument="X", lenient=True)
    shared = tuple(column for column in table.columns if column.name in theirs.names)
    if not shared:
        raise InputError("The rows to calibrate on have none of the columns of the test rows.")
    reject_other_kinds(theirs.columns, table)
    return read_like(rows, shared, argument="X")


def reject_uncalibratable(weights: Floats | None, losses: Sequence[str], per_row_losses: Sequence[bool]) -> None:
    """Raise where calibration has no meaning: with weights of the user, or for a score of all rows together."""
    if weights is not None:
        raise ParameterError(
            "Calibration gives test rows weights of its own, so it cannot be used with sample_weight. Compute the "
            "importance without it."
        )
    scores = [loss for loss, per_row in zip(losses, per_row_losses, strict=True) if not per_row]
    if scores:
        raise ParameterError(
            f"Calibration weights rows, and {', '.join(scores)} is a score of all rows together. Use .for_loss(...) "
            f"of a loss that has a value for each row."
        )


def calibrated_scores(
    scores: Sequence[FeatureResult], table: Table, further: Table, seed: int, *, uses_training_donors: bool
) -> tuple[FeatureResult, ...]:
    """Return the scores with calibrated estimates; warn of covariate shift between test and additional rows."""
    fit = ControlVariateFit.of(table, further, seed)
    calibrated, shifted = [], []
    for score in scores:
        variates = _significant(fit, score, score.feature if uses_training_donors else ())
        calibrated.append(_with_weights(score, variates, further.n_rows))
        if max((_distance(one.test, one.further) for one in variates), default=0.0) > _MAX_DISTANCE:
            shifted.append(score.title)
    if shifted:
        named = first_of([repr(name) for name in shifted], most=5)
        warn(
            f"Covariate shift: the rows to calibrate on differ from the test rows in columns that predict the "
            f"importance of {named}, so calibrated estimates describe another "
            f"population than the test rows. Read the uncalibrated result, or split rows at random."
        )
    return tuple(calibrated)


def _significant(fit: ControlVariateFit, score: FeatureResult, without: Collection[str]) -> list[ControlVariate]:
    """Return control variates of the losses whose held-out predictions correlate with the contributions of rows."""
    variates = [fit.predict(one.astype(np.float64), without) for one in score.influence]
    return [
        one
        for one, values in zip(variates, score.influence, strict=True)
        if one is not None and np.cov(one.test, values.astype(np.float64))[0, 1] > 0
    ]


def _distance(one: Floats, two: Floats) -> float:
    """Difference of two means in standard errors, if both samples have the same distribution."""
    error = np.concatenate([one, two]).std() * np.sqrt(1 / len(one) + 1 / len(two))
    return float(abs(one.mean() - two.mean()) / error) if error > 0 else 0.0


@dataclass(frozen=True, eq=False)
class _JointVariates:
    """Control variates of all losses of a feature, side by side; `test` is centred."""

    test: Floats  # (n, q)
    inverse: Floats  # of its covariance
    further: Floats  # covariance over additional rows
    shift: Floats  # mean of all rows minus mean of the test rows
    share: float  # of the additional rows among all
    n_all: int

    @classmethod
    def of(cls, variates: Sequence[ControlVariate]) -> _JointVariates:
        test = np.column_stack([one.test for one in variates])
        further = np.column_stack([one.further for one in variates])
        n, m = len(test), len(further)
        shift = (further.mean(axis=0) - test.mean(axis=0)) * m / (n + m)
        test = test - test.mean(axis=0)
        inverse = np.linalg.pinv(test.T @ test / n, hermitian=True)
        return cls(test, inverse, np.atleast_2d(np.cov(further.T)), shift, m / (n + m), n + m)

    def slopes(self, values: Floats, shrinkage: float) -> Floats:
        """Slopes of values of the test rows on the control variates: (lines, q)."""
        return np.asarray(values @ self.test @ self.inverse) / len(self.test) * shrinkage

    def residuals(self, values: Floats, slopes: Floats) -> Floats:
        """Values whose variance is the noise of the test rows after calibration."""
        return values - self.share * (slopes @ self.test.T)

    def variance(self, slopes: Floats) -> Floats:
        """Variance that the additional rows add."""
        squares: Floats = np.einsum("lq,qr,lr->l", slopes, self.further, slopes)
        return squares * self.share / self.n_all


def _with_weights(score: FeatureResult, variates: Sequence[ControlVariate], m: int) -> FeatureResult:
    """Return the scores as weighted means; weights are 1 where no control variate was found."""
    if not variates or m < 2:
        ones, none = np.ones(len(score.code)), np.zeros(len(score.rows))
        return replace(score, calibration=Calibration(ones, none, subgroup_variance(score, None), score))
    joint = _JointVariates.of(variates)
    tilt = joint.test @ joint.inverse @ joint.shift
    shrinkage = min(1.0, (1.0 - _MIN_WEIGHT) / max(-float(tilt.min()), np.finfo(np.float64).tiny))
    weights = 1.0 + shrinkage * tilt
    values = _contributions(score)
    slopes = joint.slopes(values, shrinkage)
    calibration = Calibration(
        weights=weights,
        further_variance=joint.variance(slopes),
        subgroup_variance=_subgroup_variance(score, joint, values, weights, shrinkage),
        plain=score,
        columns=tuple(dict.fromkeys(name for one in variates for name in one.columns)),
    )
    influence = to_float32(joint.residuals(values, slopes))
    return replace(_weighted(score, values, weights), influence=influence, calibration=calibration)


def _contributions(score: FeatureResult) -> Floats:
    """Contribution of each row; of rows that are no donors it is the increase itself, with all its digits."""
    if np.array_equal(to_float32(score.rows), score.influence):
        return score.rows
    return score.influence.astype(np.float64)


def _weighted(score: FeatureResult, values: Floats, weights: Floats) -> FeatureResult:
    """Return estimates of subgroups and of all rows as weighted means; every repeat is shifted by the same amount."""
    groups = len(score.rules)
    counts = np.bincount(score.code, minlength=groups)
    sizes: Floats = np.bincount(score.code, weights=weights, minlength=groups).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        weighted = [np.bincount(score.code, weights=line * weights, minlength=groups) / sizes for line in values]
        plain = [np.bincount(score.code, weights=line, minlength=groups) / counts for line in values]
    repeats = score.repeats + (np.array(weighted) - np.array(plain))[:, None, :]
    overall = (np.where(sizes > 0, repeats, 0.0) * sizes).sum(axis=2) / sizes.sum()
    for array in (repeats, overall, sizes):
        array.flags.writeable = False
    return replace(score, repeats=repeats, overall=overall, sizes=sizes)


def _subgroup_variance(
    score: FeatureResult, joint: _JointVariates, values: Floats, weights: Floats, shrinkage: float
) -> Floats:
    """Variance of the weighted mean of each subgroup; rows outside of it enter through the weights only."""
    n, groups = len(score.code), len(score.rules)
    counts = np.bincount(score.code, minlength=groups)
    variances = np.full((len(values), groups), np.nan)
    for k in np.flatnonzero(counts > 2):
        inside = score.code == k
        means = (values[:, inside] @ weights[inside]) / weights[inside].sum()
        centred = np.where(inside, values - means[:, None], 0.0) * (n / counts[k])
        slopes = joint.slopes(centred, shrinkage)
        own = mean_variance(joint.residuals(centred, slopes), None, score.excess[:, k] * n / counts[k])
        variances[:, k] = own + joint.variance(slopes)
    return variances


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
