"""Calibration: test rows are weighted so that they are, on average, as all rows that are known.

An importance is a mean over test rows, and varies with which rows these happen to be. What a row adds is in part
foretold by the row itself (h, learned on other test rows), and h is known of further rows as well: the training rows,
whose target is not needed. With n test rows, m further rows, N = n + m and means over them::

    weights     w_i = 1 + (mean_N h - mean_n h)' S^-1 (h_i - mean_n h),   S the covariance of h over test rows
    estimate    mean_n w z  =  mean_n z + slope (mean_N h - mean_n h),    z what a row adds, slope that of z on h
    variance    Var(z - (m / N) slope h) / n  +  slope^2 Var(h) m / N^2

For a part k of the way, weights are 1 + k (w - 1), and k slope stands for the slope.
It estimates the same as before, with less noise. Nothing of a further row is used but its columns: the model, which may
have been fitted on it, is not asked about it. A feature that takes donors from the training rows is not among the
columns that its rows are weighted by, or the noise of these rows would count twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.table import Table, read_like, read_table
from subgrove._importance.inference.calibration_weights import Calibration
from subgrove._importance.inference.control_variates import Foretold, RowLearner
from subgrove._importance.inference.covariate_shift import distance
from subgrove._importance.inference.intervals import mean_variance, overall_variance, subgroup_variance
from subgrove._importance.inference.row_features import RowTerms
from subgrove._scoring.feature_result import FeatureScores
from subgrove._scoring.sums import narrow
from subgrove.exceptions import InputError, ParameterError, SubgroveWarning
from subgrove.samplers.fit import reject_other_kinds, training_rows

AUTO = "auto"
_LEAST_WEIGHT = 0.1
_FAR_APART = 4.5  # standard errors between test rows and further rows: by chance in one case of a hundred thousand


def is_unasked(calibrate: Any) -> bool:
    """Whether nobody asked for calibration, which "auto" leaves open."""
    return calibrate is False or (isinstance(calibrate, str) and calibrate == AUTO)


def read_further(calibrate: Any, train: Any, weights: Any, table: Table) -> Table | None:
    """The further rows, None where none are asked for; raises where calibration has no meaning."""
    if is_unasked(calibrate):
        return None
    if weights is not None:
        raise ParameterError(
            "calibrate gives test rows weights of its own, so it cannot be used with weights. Leave one of them out."
        )
    if calibrate is True and train is None:
        raise ParameterError(
            "calibrate=True uses the training rows, and train is missing. Pass train, or calibrate=ROWS with further "
            "rows from the same source as X; they need no target."
        )
    if calibrate is None or (isinstance(calibrate, int | float | str) and calibrate is not True):
        raise ParameterError(f"calibrate must be 'auto', True, False, or a table of further rows; got {calibrate!r}.")
    argument, rows = ("train", train) if calibrate is True else ("calibrate", calibrate)
    rows = training_rows(rows)
    theirs = read_table(rows, argument=argument, lenient=True)
    shared = tuple(column for column in table.columns if column.name in theirs.names)
    if not shared:
        raise InputError(f"{argument} has none of the columns of X. Pass rows with the same columns.")
    reject_other_kinds(theirs.columns, table)
    return read_like(rows, shared, argument=argument)


def reject_scores(names: Sequence[str]) -> None:
    """Scores of all rows together are no means over rows."""
    if names:
        raise ParameterError(
            f"calibrate weights rows, and {', '.join(names)} is a score of all rows together. Use a loss that has a "
            f"value for each row, or leave calibrate out."
        )


def calibrated(
    scores: Sequence[FeatureScores], table: Table, further: Table, seed: int, *, uses_training_donors: bool
) -> list[FeatureScores]:
    """The scores with calibrated estimates; warns where further rows are not like the test rows."""
    learner = RowLearner.of(RowTerms(table, further), seed)
    found, apart = [], []
    for score in scores:
        told = useful(learner, score, score.feature if uses_training_donors else ())
        found.append(with_weights(score, told, further.n_rows))
        apart += [score.title] * (apart_by(told) > _FAR_APART)
    _warn_of_other_rows(apart)
    return found


def useful(learner: RowLearner, score: FeatureScores, without: Collection[str]) -> list[Foretold]:
    """What is foretold of the rows, for the losses where that goes with what they add."""
    told = [learner.foretold(one.astype(np.float64), without) for one in score.influence]
    return [one for one, values in zip(told, score.influence, strict=True) if one and _holds(one, values)]


def apart_by(told: Sequence[Foretold]) -> float:
    """How far further rows are from test rows in what is foretold, at most, in standard errors."""
    return max((distance(one.test, one.further) for one in told), default=0.0)


def _holds(told: Foretold, values: Any) -> bool:
    """Whether what was foretold goes with what rows add: rows that were not learned on say so."""
    return bool(np.cov(told.test, values.astype(np.float64))[0, 1] > 0)


def _warn_of_other_rows(features: Sequence[str]) -> None:
    if features:
        more = f" and {len(features) - 5} more" if len(features) > 5 else ""
        warnings.warn(
            f"The rows to weight by are not like the test rows in the columns that tell how much rows add to the "
            f"importance of {', '.join(map(repr, features[:5]))}{more}, so calibrated estimates are of other "
            f"rows than X. Pass calibrate=False, or split rows at random.",
            SubgroveWarning,
            stacklevel=4,
        )


@dataclass(frozen=True, eq=False)
class _Foretellings:
    """What was foretold for the losses of a feature, side by side; `test` is about its mean."""

    test: Floats  # (n, q)
    inverse: Floats  # of its covariance
    further: Floats  # covariance over further rows
    gap: Floats  # mean of all rows less mean of the test rows
    share: float  # of the further rows among all
    n_all: int

    @classmethod
    def of(cls, told: Sequence[Foretold]) -> _Foretellings:
        test = np.column_stack([one.test for one in told])
        further = np.column_stack([one.further for one in told])
        n, m = len(test), len(further)
        gap = (further.mean(axis=0) - test.mean(axis=0)) * m / (n + m)
        test = test - test.mean(axis=0)
        inverse = np.linalg.pinv(test.T @ test / n, hermitian=True)
        return cls(test, inverse, np.atleast_2d(np.cov(further.T)), gap, m / (n + m), n + m)

    def slopes(self, values: Floats, shrunk: float) -> Floats:
        """Slopes of values of the test rows on what was foretold: (lines, q)."""
        return np.asarray(values @ self.test @ self.inverse) / len(self.test) * shrunk

    def left(self, values: Floats, slopes: Floats) -> Floats:
        """What the noise of the test rows is made of."""
        return values - self.share * (slopes @ self.test.T)

    def variance(self, slopes: Floats) -> Floats:
        """What the further rows add to a variance."""
        squares: Floats = np.einsum("lq,qr,lr->l", slopes, self.further, slopes)
        return squares * self.share / self.n_all


def with_weights(score: FeatureScores, told: Sequence[Foretold], m: int, part: float = 1.0) -> FeatureScores:
    """The scores with rows weighted, a part of the way to where they are as all rows are."""
    n = len(score.code)
    before = score.overall.mean(axis=1), overall_variance(score, None)
    if not told or m < 2:
        nothing = Calibration(np.ones(n), np.zeros(len(score.rows)), subgroup_variance(score, None), *before)
        return replace(score, calibration=nothing)
    found = _Foretellings.of(told)
    moved = found.test @ found.inverse @ found.gap
    shrunk = min(part, (1.0 - _LEAST_WEIGHT) / max(-float(moved.min()), np.finfo(np.float64).tiny))
    weights = 1.0 + shrunk * moved
    values = _added_by_rows(score)
    slopes = found.slopes(values, shrunk)
    columns = tuple(dict.fromkeys(name for one in told for name in one.columns))
    subgroups = _subgroup_variance(score, found, values, weights, shrunk)
    moves = _moves(score, values, weights)
    kept = Calibration(
        weights, found.variance(slopes), subgroups, *before, columns, moves, score.influence, float(shrunk)
    )
    return _weighted(replace(score, influence=narrow(found.left(values, slopes)), calibration=kept))


def _added_by_rows(score: FeatureScores) -> Floats:
    """What each row adds; of rows that give no donors it is the increase itself, with all its digits."""
    if np.array_equal(narrow(score.rows), score.influence):
        return score.rows
    return score.influence.astype(np.float64)


def _moves(score: FeatureScores, values: Floats, weights: Floats) -> Floats:
    """By how much the weighted mean of each subgroup is above its mean."""
    groups = len(score.rules)
    counts = np.bincount(score.code, minlength=groups)
    sizes = np.bincount(score.code, weights=weights, minlength=groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array(
            [
                np.bincount(score.code, weights=line * weights, minlength=groups) / sizes
                - np.bincount(score.code, weights=line, minlength=groups) / counts
                for line in values
            ]
        )


def _weighted(score: FeatureScores) -> FeatureScores:
    """Estimates of subgroups and of all rows, as weighted means; each repeat is moved alike."""
    made = score.calibration
    assert made is not None
    assert made.moves is not None
    sizes: Floats = np.bincount(score.code, weights=made.weights, minlength=len(score.rules)).astype(np.float64)
    repeats = score.repeats + made.moves[:, None, :]
    overall = (np.where(sizes > 0, repeats, 0.0) * sizes).sum(axis=2) / sizes.sum()
    for kept in (repeats, overall, sizes):
        kept.flags.writeable = False
    return replace(score, repeats=repeats, overall=overall, sizes=sizes)


def _subgroup_variance(
    score: FeatureScores, found: _Foretellings, values: Floats, weights: Floats, shrunk: float
) -> Floats:
    """Variance of weighted means of subgroups; rows outside of one count only in how rows are weighted."""
    n, groups = len(score.code), len(score.rules)
    counts = np.bincount(score.code, minlength=groups)
    variances = np.full((len(values), groups), np.nan)
    for k in np.flatnonzero(counts > 2):
        inside = score.code == k
        means = (values[:, inside] @ weights[inside]) / weights[inside].sum()
        parts = np.where(inside, values - means[:, None], 0.0) * (n / counts[k])
        slopes = found.slopes(parts, shrunk)
        own = mean_variance(found.left(parts, slopes), None, score.excess[:, k] * n / counts[k])
        variances[:, k] = own + found.variance(slopes)
    return variances
