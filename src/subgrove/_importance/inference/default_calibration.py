"""Calibration that nobody asked for: part of the way, where it pays, and only if no column speaks against it.

The default of `importance`, with the sampler "auto" and training rows. Moved by a part k of the whole way, an estimate
has k (2 - k) of the gain in variance, and k^2 of the squared error that comes in if training and test rows are of two
sources. So half of the way has three quarters of the gain and a quarter of the harm. Where much could be gained, rows
are weighted less far: so that a quarter of the variance goes, and no more. That bounds what can go wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._data.fingerprint import fingerprint
from subgrove._data.table import Table, read_like, read_table
from subgrove._importance.inference.calibration import AUTO, apart_by, useful, with_weights
from subgrove._importance.inference.control_variates import LEAST_ROWS, RowLearner
from subgrove._importance.inference.covariate_shift import hold_test_rows, look_alike
from subgrove._importance.inference.intervals import overall_variance
from subgrove._importance.inference.row_features import RowTerms
from subgrove._scoring.feature_result import FeatureScores
from subgrove._scoring.row_losses import Scoring
from subgrove.samplers.fit import sampler_name, training_rows

_MOST_PART = 0.5
_LEAST_GAIN, _MOST_GAIN = 0.1, 0.25  # of the variance
_APART = 3.0  # most standard errors between training and test rows in what is foretold of them
_MOST_ROWS = 20_000  # with more test rows their noise is small already


def may_calibrate(sampler: Any, train: Any, weights: Any, scoring: Scoring) -> bool:
    """Whether rows may be weighted without being asked to: where everything is left to the package."""
    per_row = all(one.per_row for one in scoring.losses)
    return sampler_name(sampler) == AUTO and train is not None and weights is None and per_row


def calibrated_where_it_pays(
    scores: Sequence[FeatureScores], table: Table, train: Any, mark: str, seed: int
) -> tuple[list[FeatureScores], int]:
    """The scores, and the number of training rows that test rows were weighted by; 0 where none were weighted.

    `mark` is the fingerprint of the test rows. Donors are training rows.
    """
    if not LEAST_ROWS <= table.n_rows <= _MOST_ROWS:
        return list(scores), 0
    theirs = read_table(training_rows(train), argument="train", lenient=True)
    further = _further(train, theirs, table, mark)
    if further is None:
        return list(scores), 0
    terms = RowTerms(table, further)
    learner = RowLearner.of(terms, seed)
    found = [_weighted(score, learner, further.n_rows) for score in scores]
    used = any(score.calibration is not None for score in found)
    if not used or not look_alike(terms, theirs) or hold_test_rows(table, further):
        return list(scores), 0
    told = [score if score.calibration is not None else with_weights(score, (), further.n_rows) for score in found]
    return told, further.n_rows


def _further(train: Any, theirs: Table, table: Table, mark: str) -> Table | None:
    """Training rows to weight by, with the levels of the test rows; None where they cannot save much."""
    shared = tuple(column for column in table.columns if column.name in theirs.names)
    if not shared or _most_gain(table.n_rows, theirs.n_rows) <= _LEAST_GAIN:
        return None
    if theirs.n_rows == table.n_rows and fingerprint(theirs) == mark:
        return None
    return read_like(training_rows(train), shared, argument="train")


def _weighted(score: FeatureScores, learner: RowLearner, m: int) -> FeatureScores:
    """The scores with rows weighted by m further rows, or as they are where that does not pay."""
    least = _LEAST_GAIN / _most_gain(score.n_rows, m)
    if any(learner.promise(one.astype(np.float64), score.feature) < least for one in score.influence):
        return score
    told = useful(learner, score, score.feature)
    if not told or apart_by(told) > _APART:
        return score
    before = overall_variance(score, None)
    gains = 1 - overall_variance(with_weights(score, told, m), None) / before
    if not gains.max() > 0:
        return score
    found = with_weights(score, told, m, _part(float(gains.max())))
    return found if (overall_variance(found, None) <= (1 - _LEAST_GAIN) * before).all() else score


def _part(gain: float) -> float:
    """How far to go where the whole way gains so much: k (2 - k) of it is at most the bound."""
    return min(_MOST_PART, 1 - float(np.sqrt(max(1 - _MOST_GAIN / gain, 0.0))))


def _most_gain(n: int, m: int) -> float:
    """The share of the variance that is saved if all that rows add were foretold, of n test and m further rows."""
    return _MOST_PART * (2 - _MOST_PART) * m / (n + m)
