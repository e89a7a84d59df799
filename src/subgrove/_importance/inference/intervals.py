"""Intervals, p-values and their adjustment for multiple tests; variances of differences between estimates.

In a table of many features some are significant by chance. Holm's adjustment bounds the probability of any false
rejection, however the tests depend on each other; Benjamini and Hochberg's bounds the expected share of false ones
among the rejections, for independent or positively dependent tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._scoring.estimate_variance import mean_variance
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.skewness import SkewnessCorrection, interval_multipliers


def interval_columns(
    estimate: Floats, std_error: Floats, df: Floats, level: float, correction: SkewnessCorrection | None = None
) -> dict[str, Floats]:
    """Return the columns that go with an estimate; the p-value is one-sided, of the null "importance is at most 0".

    `df` are the degrees of freedom of the standard error; `correction` widens the interval for skewed rows.
    """
    # Student's t from scipy.special: scipy.stats takes a second to import and a millisecond a call.
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(std_error > 0, estimate / std_error, np.where(estimate == 0, 0.0, np.inf * estimate))
    statistic = np.where(np.isnan(std_error), np.nan, statistic)
    # If no row changed at all there is nothing to test, and no evidence of an importance.
    p_value = np.where((std_error == 0) & (estimate == 0), 1.0, stdtr(np.maximum(df, 1), -statistic))
    below, above = interval_multipliers(std_error, df, level, correction)
    return {
        "estimate": estimate,
        "std_error": std_error,
        "statistic": statistic,
        "p_value": p_value,
        "conf_low": estimate - below * std_error,
        "conf_high": estimate + above * std_error,
    }


def paired_variance(
    one: FeatureResult, two: FeatureResult, losses: list[tuple[int, int]], weights: Any, *, same_draws: bool
) -> Floats:
    """Return the variance of the difference of two estimates on the same rows.

    With the same draws in both, part of the Monte Carlo noise cancels; how much is not known, so nothing is subtracted.
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


def combined_variance(terms: Sequence[tuple[float, FeatureResult]], weights: Floats | None) -> float:
    """Return the variance of a sum of estimates on the same rows with coefficients: terms are (coefficient, scores).

    Draws of different terms are taken to be independent.
    """
    values = sum(factor * score.influence[0].astype(np.float64) for factor, score in terms)
    excess = sum(factor**2 * (score.excess[0] * score.sizes).sum() / score.sizes.sum() for factor, score in terms)
    return float(mean_variance(np.asarray(values)[None, :], weights, np.array([excess]))[0])


def adjusted_p_values(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines with `p_holm` and `p_bh` after `p_value`, adjusted over the lines of the same loss."""
    columns: list[dict[str, float]] = [{} for _ in lines]
    for loss in dict.fromkeys(line.get("loss") for line in lines):
        places = [at for at, line in enumerate(lines) if line.get("loss") == loss]
        p_values = [lines[at]["p_value"] for at in places]
        for at, one, two in zip(places, holm(p_values), benjamini_hochberg(p_values), strict=True):
            columns[at] = {"p_holm": float(one), "p_bh": float(two)}
    return [_insert_after(line, "p_value", extra) for line, extra in zip(lines, columns, strict=True)]


def holm(p_values: Any) -> Floats:
    """Return p-values adjusted by Holm's method; NaN stays NaN and does not count."""

    def step_down(ascending: Floats) -> Floats:
        return np.maximum.accumulate(ascending * (len(ascending) - np.arange(len(ascending))))

    return _adjusted(p_values, step_down)


def benjamini_hochberg(p_values: Any) -> Floats:
    """Return p-values adjusted by Benjamini and Hochberg's method; NaN stays NaN and does not count."""

    def step_up(ascending: Floats) -> Floats:
        n = len(ascending)
        return np.minimum.accumulate((ascending * n / np.arange(1, n + 1))[::-1])[::-1]

    return _adjusted(p_values, step_up)


def _adjusted(p_values: Any, method: Callable[[Floats], Floats]) -> Floats:
    plain = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(plain.shape, np.nan)
    known = np.flatnonzero(~np.isnan(plain))
    order = known[np.argsort(plain[known], kind="stable")]
    if len(order):
        adjusted[order] = np.minimum(method(plain[order]), 1.0)
    return adjusted


def _insert_after(line: dict[str, Any], name: str, extra: dict[str, float]) -> dict[str, Any]:
    at = list(line).index(name) + 1
    items = list(line.items())
    return dict([*items[:at], *extra.items(), *items[at:]])
