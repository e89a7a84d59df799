"""Calibration that nobody asked for: half of the way, where it pays, and only if no column speaks against it.

The default of `importance`, with the sampler "auto" and training rows. Moved by a part k of the whole way, an estimate
has k (2 - k) of the gain in variance, and k^2 of the squared error that comes in if training and test rows are of two
sources. So half of the way has three quarters of the gain and a quarter of the harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._fingerprint import fingerprint
from subgrove._importance.alike import look_alike
from subgrove._importance.calibrating import AUTO, apart_by, useful, with_weights
from subgrove._importance.inference import overall_variance
from subgrove._importance.row_learning import LEAST_ROWS, RowLearner
from subgrove._importance.row_terms import RowTerms
from subgrove._importance.scoring import Scoring
from subgrove._importance.tally import FeatureScores
from subgrove._table import Table, read_like, read_table
from subgrove.samplers.fitting import sampler_name, training_rows

HALFWAY = 0.5
_LEAST_GAIN = 0.1  # of the variance
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
    further = _further(train, table, mark)
    if further is None:
        return list(scores), 0
    terms = RowTerms(table, further)
    learner = RowLearner.of(terms, seed)
    found = [_weighted(score, learner, further.n_rows) for score in scores]
    if all(score.calibration is None for score in found) or not look_alike(terms):
        return list(scores), 0
    told = [score if score.calibration is not None else with_weights(score, (), further.n_rows) for score in found]
    return told, further.n_rows


def _further(train: Any, table: Table, mark: str) -> Table | None:
    """Training rows to weight by; None where they cannot save much."""
    rows = training_rows(train)
    theirs = read_table(rows, argument="train", lenient=True)
    shared = tuple(column for column in table.columns if column.name in theirs.names)
    same = theirs.n_rows == table.n_rows and fingerprint(theirs) == mark
    too_few = table.n_rows < LEAST_ROWS or _most_gain(table.n_rows, theirs.n_rows) <= _LEAST_GAIN
    if too_few or table.n_rows > _MOST_ROWS or not shared or same:
        return None
    return read_like(rows, shared, argument="train")


def _weighted(score: FeatureScores, learner: RowLearner, m: int) -> FeatureScores:
    """The scores with rows weighted by m further rows, or as they are where that does not pay."""
    least = _LEAST_GAIN / _most_gain(score.n_rows, m)
    if any(learner.at_most(one.astype(np.float64), score.feature) < least for one in score.influence):
        return score
    told = useful(learner, score, score.feature)
    if not told or apart_by(told) > _APART:
        return score
    found = with_weights(score, told, m, HALFWAY)
    pays = overall_variance(found, None) <= (1 - _LEAST_GAIN) * overall_variance(score, None)
    return found if pays.all() else score


def _most_gain(n: int, m: int) -> float:
    """The share of the variance that is saved if all that rows add were foretold, of n test and m further rows."""
    return (1 - (1 - HALFWAY) ** 2) * m / (n + m)
