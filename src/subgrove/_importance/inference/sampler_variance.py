"""Noise of the partition: what the importance would be if the sampler had been fitted on other training rows.

The sampler is fitted again on random halves of the training rows. For what is smooth in the rows, the variance over
halves is that of the whole over other training rows: a half has twice the variance, and half of that is seen, because
two halves of the same rows are alike. Draws of resamples are independent, so their share is known and taken off.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.random import stream
from subgrove._core.validate import whole_number
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_table
from subgrove._scoring.estimate_variance import monte_carlo_variance
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.score import ScoringContext
from subgrove.exceptions import ParameterError, SubgroveWarning
from subgrove.samplers.base import FittedSampler

_LEAST_REPEATS, _MOST_REPEATS = 2, 10  # redraws of an estimate in a resample

Refitted = Callable[
    [Any], tuple[FittedSampler, Table]
]  # from training rows to the sampler, and the test rows as it reads them
Scored = Callable[[ScoringContext], Sequence[FeatureResult]]


def read_resamples(n_resamples: Any, trained_on: str) -> int:
    """Return the number of resamples; raise unless the sampler was fitted on `train`."""
    n = whole_number("n_resamples", n_resamples, least=2)
    if trained_on == "cross-fitted":
        raise ParameterError(
            "with_sampler_variance fits the sampler on halves of the training rows, but this sampler was cross-fitted "
            "on the test rows. Pass train to importance."
        )
    if trained_on == "before":
        raise ParameterError(
            "with_sampler_variance fits the sampler again, but it was passed fitted. Pass one to be fitted, such as "
            "sampler='subgroups', with train."
        )
    return n


def with_partition_noise(
    question: ScoringContext,
    scores: Sequence[FeatureResult],
    train: Any,
    n_resamples: int,
    refitted: Refitted,
    scored: Scored,
) -> list[FeatureResult]:
    """The scores with their variance over samplers of other training rows; without `train` nothing is learned from."""
    if train is None:
        return [_told(score, np.zeros(len(score.rows)), n_resamples) for score in scores]
    rows = getattr(train, "X", train) if not hasattr(train, "columns") else train
    table = read_table(rows, argument="train", lenient=True)
    frames, size = Frames(rows, table.columns), table.n_rows // 2
    per_row = [loss.per_row for loss in question.scoring.losses]
    estimates, draws = [], []
    for number in range(n_resamples):
        rng = stream(question.seed, f"partition {number}")
        half = frames.changed(np.sort(rng.permutation(table.n_rows)[:size]), {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SubgroveWarning)  # what there is to say was said of the whole
            found = scored(_asked_again(question, *refitted(half), int(rng.integers(2**62))))
        estimates.append([score.overall.mean(axis=1) for score in found])
        draws.append(
            [[monte_carlo_variance(score, at, per_row=own) for at, own in enumerate(per_row)] for score in found]
        )
    spread = np.var(estimates, axis=0, ddof=1) - np.mean(draws, axis=0)
    variances = np.maximum(spread, 0.0) * size / (table.n_rows - size)
    return [_told(score, own, n_resamples) for score, own in zip(scores, variances, strict=True)]


def _asked_again(question: ScoringContext, fitted: FittedSampler, redrawn: Table, seed: int) -> ScoringContext:
    return replace(
        question,
        sampler=fitted,
        table=redrawn,
        frames=Frames(question.frames.X, redrawn.columns, fitted.train),
        n_repeats=int(np.clip(question.n_repeats, _LEAST_REPEATS, _MOST_REPEATS)),
        seed=seed,
        answers=None,
        budget=None,
        checker=None,
    )


def _told(score: FeatureResult, variance: Floats, n_resamples: int) -> FeatureResult:
    return replace(score, partition_variance=variance, partition_resamples=n_resamples)
