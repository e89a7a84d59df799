"""Variance of an importance over samplers fitted on other training rows, estimated by half-sampling.

The sampler is fitted again on random halves of the training rows. For smooth statistics, the variance over halves
equals the variance of the whole over other training rows: a half has twice the variance, and half of it is observed,
because two halves of the same rows are correlated. Draws of resamples are independent; their variance is subtracted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats
from subgrove._core.validate import whole_number
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_table
from subgrove._scoring.context import ScoringContext
from subgrove._scoring.estimate_variance import monte_carlo_variance
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import ParameterError, SubgroveWarning
from subgrove.samplers.base import FittedSampler

_MIN_REPEATS, _MAX_REPEATS = 2, 10  # of the importance in a resample

Refit = Callable[[Any], tuple[FittedSampler, Table]]
"""Takes training rows; returns the fitted sampler, and the test rows as it reads them."""
Score = Callable[[ScoringContext], Sequence[FeatureResult]]


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


def with_sampler_variance(
    context: ScoringContext,
    scores: Sequence[FeatureResult],
    train: Any,
    n_resamples: int,
    refit: Refit,
    score: Score,
) -> list[FeatureResult]:
    """Return the scores with their variance over samplers fitted on halves of train; 0 without `train`."""
    if train is None:
        return [_with_variance(one, np.zeros(len(one.rows)), n_resamples) for one in scores]
    rows = getattr(train, "X", train) if not hasattr(train, "columns") else train
    table = read_table(rows, argument="train", lenient=True)
    frames, size = Frames(rows, table.columns), table.n_rows // 2
    per_row = [loss.per_row for loss in context.losses.losses]
    estimates, draws = [], []
    for number in range(n_resamples):
        rng = stream(context.seed, f"partition {number}")
        half = frames.changed(np.sort(rng.permutation(table.n_rows)[:size]), {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SubgroveWarning)  # they were given for the whole of train
            resampled = score(_with_sampler(context, *refit(half), int(rng.integers(2**62))))
        estimates.append([one.overall.mean(axis=1) for one in resampled])
        draws.append(
            [[monte_carlo_variance(one, at, per_row=own) for at, own in enumerate(per_row)] for one in resampled]
        )
    excess = np.var(estimates, axis=0, ddof=1) - np.mean(draws, axis=0)
    variances = np.maximum(excess, 0.0) * size / (table.n_rows - size)
    return [_with_variance(one, own, n_resamples) for one, own in zip(scores, variances, strict=True)]


def _with_sampler(context: ScoringContext, fitted: FittedSampler, redrawn: Table, seed: int) -> ScoringContext:
    return replace(
        context,
        sampler=fitted,
        table=redrawn,
        frames=Frames(context.frames.X, redrawn.columns, fitted.train),
        n_repeats=int(np.clip(context.n_repeats, _MIN_REPEATS, _MAX_REPEATS)),
        seed=seed,
        prediction_values=None,
        adaptive=None,
        fidelity_checker=None,
    )


def _with_variance(score: FeatureResult, variance: Floats, n_resamples: int) -> FeatureResult:
    return replace(score, sampler_variance=variance, sampler_resamples=n_resamples)
