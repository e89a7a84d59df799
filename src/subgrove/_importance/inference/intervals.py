"""Noise of the test rows: standard errors, intervals and p-values from per-row numbers.

The increase of a row's loss depends on the row and on its donor. Where donors are other test rows, each row plays both
parts, and the estimate is a U-statistic: its variance is that of the sum of a row's two parts, over the number of rows.
A sum over few repeats also varies because of the draws; that part is known from the repeats and is taken off, for the
Monte-Carlo error has a column of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._importance.inference.skewness import Leaning, leaning, reach
from subgrove._scoring.feature_result import FeatureScores
from subgrove._scoring.summed import Scores, SummedScores, leaning_of_rows, spread_of_rows

_LEAST_SHARE = 0.1  # what is taken off as noise of the draws leaves at least this share of a variance


def overall_variance(score: Scores, weights: Floats | None) -> Floats:
    """Variance of the overall estimate of each loss."""
    n = score.sizes.sum()
    share = score.sizes / n
    excess = (score.excess * share).sum(axis=1)
    if isinstance(score, SummedScores):
        return _of_mean(spread_of_rows(score.moments.together())[:, 0], n, excess)
    return mean_variance(score.influence.astype(np.float64), weights, excess) + further_variance(score)


def further_variance(score: FeatureScores) -> Floats:
    """What is in the variance of a calibrated estimate due to the additional rows."""
    return np.zeros(len(score.rows)) if score.calibration is None else score.calibration.further_variance


def subgroup_variance(score: Scores, weights: Floats | None) -> Floats:
    """Variance of the estimates of each loss and subgroup: (losses, subgroups)."""
    if isinstance(score, SummedScores):
        return _of_mean(spread_of_rows(score.moments), np.maximum(score.sizes, 1.0), score.excess)
    if score.calibration is not None:
        return score.calibration.subgroup_variance
    variances = np.full((len(score.influence), len(score.rules)), np.nan)
    for k in range(len(score.rules)):
        rows = np.flatnonzero(score.code == k)
        own = None if weights is None else weights[rows]
        if len(rows):
            variances[:, k] = mean_variance(score.influence[:, rows].astype(np.float64), own, score.excess[:, k])
    return variances


def overall_leaning(score: Scores, at: int, weights: Floats | None) -> Leaning:
    """How the rows lean that the overall estimate of a loss is the mean of."""
    if isinstance(score, SummedScores):
        return leaning_of_rows(score.moments.line(at).together().row(0)).of(0)
    return leaning(score.influence[at : at + 1].astype(np.float64), weights).of(0)


def subgroup_leaning(score: Scores, at: int, weights: Floats | None) -> Leaning:
    """The same for each subgroup; those without rows lean nowhere."""
    if isinstance(score, SummedScores):
        return leaning_of_rows(score.moments.row(at))
    values = score.influence[at : at + 1].astype(np.float64)
    found = [Leaning(np.zeros(1), np.full(1, np.inf)) for _ in score.rules]
    for k in range(len(score.rules)):
        rows = np.flatnonzero(score.code == k)
        if len(rows):
            found[k] = leaning(values[:, rows], None if weights is None else weights[rows])
    return Leaning(*(np.concatenate([getattr(one, name) for one in found]) for name in ("third", "df")))


def paired_variance(
    one: FeatureScores, two: FeatureScores, losses: list[tuple[int, int]], weights: Any, *, same_draws: bool
) -> Floats:
    """Variance of the difference of two estimates on the same rows.

    With the same draws in both, their noise is in part the same and the difference has less of it; how much is not
    known, so nothing is taken off. All rows count alike.
    """
    first, second = [pair[0] for pair in losses], [pair[1] for pair in losses]
    values = one.influence[first].astype(np.float64) - two.influence[second].astype(np.float64)
    if same_draws:
        return mean_variance(values, weights, np.zeros(len(values)))
    excess = sum(
        (score.excess[places] * (score.sizes / score.sizes.sum())).sum(axis=1)
        for score, places in ((one, first), (two, second))
    )
    return mean_variance(values, weights, np.asarray(excess))


def combined_variance(terms: Sequence[tuple[float, FeatureScores, int]], weights: Floats | None) -> float:
    """Variance of a sum of estimates on the same rows, each with a factor: terms are (factor, scores, loss).

    Their draws are taken to be independent of each other.
    """
    values = sum(factor * score.influence[at].astype(np.float64) for factor, score, at in terms)
    excess = sum(factor**2 * (score.excess[at] * score.sizes).sum() / score.sizes.sum() for factor, score, at in terms)
    return float(mean_variance(np.asarray(values)[None, :], weights, np.array([excess]))[0])


def combined_mc_variance(terms: Sequence[tuple[float, FeatureScores, int]], *, per_row: bool) -> float:
    """Variance of such a sum over other draws."""
    total = 0.0
    for factor, score, at in terms:
        if per_row:
            share = score.sizes / score.sizes.sum()
            variance = float((np.where(share > 0, score.mc_variance[at], 0.0) * share**2).sum())
        else:
            m = len(score.overall[at])
            variance = float(score.overall[at].var(ddof=1) / m) if m > 1 else np.nan
        total += factor**2 * variance
    return total


def mean_variance(values: Floats, weights: Floats | None, excess: Floats) -> Floats:
    """Variance of the mean of each line; weights count rows.

    Of two rows each is the other's donor: there is one number, and no spread to learn from.
    """
    n = float(values.shape[1] if weights is None else weights.sum())
    if n <= 2:
        return np.full(len(values), np.nan)
    if weights is None:
        spread = values.var(axis=1, ddof=1)
    else:
        centred = values - (values @ weights / n)[:, None]
        spread = (centred**2) @ weights / (n - 1)
    return _of_mean(spread, n, excess)


def _of_mean(spread: Floats, n: float | Floats, excess: Floats) -> Floats:
    """Variance of a mean of n rows with this spread, less what is due to few draws."""
    return np.asarray(np.maximum(spread - excess, _LEAST_SHARE * spread) / n)


def interval_columns(
    estimate: Floats, std_error: Floats, df: Floats, level: float, shape: Leaning | None = None
) -> dict[str, Floats]:
    """Columns that go with an estimate; the p-value is of the test that the importance is not above 0.

    `df` are the degrees of freedom of the standard error; `shape` tells how the rows lean, if that is known.
    """
    # Of Student's t; scipy.stats has them too, but takes a second to import and a millisecond a call.
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(std_error > 0, estimate / std_error, np.where(estimate == 0, 0.0, np.inf * estimate))
    statistic = np.where(np.isnan(std_error), np.nan, statistic)
    # No row changed at all: there is nothing to test, and nothing that speaks for an importance.
    p_value = np.where((std_error == 0) & (estimate == 0), 1.0, stdtr(np.maximum(df, 1), -statistic))
    below, above = reach(std_error, df, level, shape)
    return {
        "estimate": estimate,
        "std_error": std_error,
        "statistic": statistic,
        "p_value": p_value,
        "conf_low": estimate - below * std_error,
        "conf_high": estimate + above * std_error,
    }
