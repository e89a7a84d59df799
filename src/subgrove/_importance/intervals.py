"""Variance components of an importance, intervals, p-values, and their adjustment for multiple tests.

Sources of noise are independent, so their variances add::

    test rows     another sample of test rows would give another mean
    Monte Carlo   other draws of the same number of repeats would
    donors        other training rows, whose values or residuals are drawn, would
    sampler       a sampler fitted on other training rows would (`with_sampler_variance`)
    model         a model fitted on other training rows would (`importance_over_refits`)

Each variance is an estimate with its own degrees of freedom; few repeats or resamples estimate it badly. The degrees of
freedom of the sum are Welch and Satterthwaite's.

In a table of many features some are significant by chance. Holm's adjustment bounds the probability of any false
rejection, however the tests depend on each other; Benjamini and Hochberg's bounds the expected share of false ones
among the rejections, for independent or positively dependent tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import quote
from subgrove._scoring.estimate_variance import (
    SkewnessCorrection,
    interval_multipliers,
    mean_variance,
    monte_carlo_variance,
    one_sided_p_value,
    overall_variance,
    subgroup_variance,
)
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import ParameterError

TEST_ROWS, MONTE_CARLO, DONORS, SAMPLER, MODEL = "test rows", "Monte Carlo", "donors", "sampler", "model"
SOURCES = (TEST_ROWS, MONTE_CARLO, DONORS, SAMPLER, MODEL)
_REMEDY = {
    TEST_ROWS: "It needs a loss that has a value for each row.",
    MONTE_CARLO: "This result has no Monte Carlo draws.",
    DONORS: "It needs a sampler that draws values or residuals of training rows.",
    SAMPLER: "Pass train to importance and call .with_sampler_variance() on the result.",
    MODEL: "Use importance_over_refits, which fits the model repeatedly; a single fitted model does not show it.",
}


def label(sources: Sequence[str], score: FeatureResult | None = None) -> str:
    """Return the sources as the column `noise` states them."""
    how = ""
    if score is not None and score.calibration is not None and score.calibration.is_used:
        how = " (calibrated)"
    elif score is not None and score.clusters is not None:
        how = " (clustered)"
    return " + ".join(f"{one}{how}" if one == TEST_ROWS else one for one in sources)


def known_sources(scores: Sequence[FeatureResult], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sources whose variance a result knows."""
    has_sampler_variance = scores and all(score.sampler_variance is not None for score in scores)
    sources = default_sources(settings)
    if not has_sampler_variance:
        return sources
    return (*(source for source in sources if source != DONORS), SAMPLER)  # other training rows are other donors too


def default_sources(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sources that tables cover by default: test rows, Monte Carlo draws, and training donors."""
    if settings.get("method") == "loco":
        return (TEST_ROWS,)
    return (TEST_ROWS, MONTE_CARLO, DONORS) if settings.get("training_donors") else (TEST_ROWS, MONTE_CARLO)


def read_sources(names: Sequence[Any], known: Sequence[str]) -> tuple[str, ...]:
    """Return the sources that the user named, in the order of this module."""
    if not names:
        raise ParameterError(f"with_noise needs at least one source. This result knows {quote(known)}.")
    for source in names:
        if source not in SOURCES:
            raise ParameterError(f"noise must be among {quote(SOURCES)}; got {source!r}.")
        if source not in known:
            raise ParameterError(f"The noise of {source!r} is not known here. {_REMEDY[source]}")
    return tuple(source for source in SOURCES if source in names)


def overall_components(score: FeatureResult, at: int, weights: Floats | None, *, per_row: bool) -> dict[str, Floats]:
    """Return source -> variance of the overall estimate, and its degrees of freedom; NaN where it is not known."""
    rows = overall_variance(score, weights)[at] if per_row else np.nan
    components = {
        TEST_ROWS: np.array([rows, score.n_units - 1]),
        MONTE_CARLO: np.array([monte_carlo_variance(score, at, per_row=per_row), _draws_df(score, whole=True)]),
    }
    variance = 0.0 if score.donor_variance is None or not per_row else float(score.donor_variance[at])
    components[DONORS] = np.array([variance, np.inf])
    if score.sampler_variance is not None:
        components[SAMPLER] = np.array([score.sampler_variance[at], score.sampler_resamples - 1])
    return components


def subgroup_components(score: FeatureResult, at: int, weights: Floats | None) -> dict[str, Floats]:
    """Return the same for each subgroup: arrays of variances and of degrees of freedom."""
    donors = score.donor_subgroup_variance
    none = np.zeros(len(score.sizes))
    return {
        TEST_ROWS: np.array([subgroup_variance(score, weights)[at], score.units - 1]),
        MONTE_CARLO: np.array([score.mc_variance[at], _draws_df(score)]),
        DONORS: np.array([none if donors is None else donors[at], none + np.inf]),
    }


def _draws_df(score: FeatureResult, *, whole: bool = False) -> Any:
    """Return the degrees of freedom of the Monte Carlo variance: of each subgroup, or of all rows."""
    more = score.overall.shape[1] - 1.0
    if score.independent:
        return more * (score.sizes.sum() if whole else np.maximum(score.sizes, 1.0))
    return more if whole else np.full(len(score.sizes), more)


def monte_carlo_variances(score: FeatureResult, per_row_losses: Sequence[bool]) -> list[float]:
    """Return the Monte Carlo variance of the overall estimate, for each loss."""
    return [monte_carlo_variance(score, at, per_row=per_row) for at, per_row in enumerate(per_row_losses)]


def total_variance(components: Mapping[str, Floats], sources: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the summed variance of some sources, and its degrees of freedom.

    With a single repeat the Monte Carlo variance is not known by itself: that of the test rows includes it.
    """
    selected = {source: components[source] for source in sources}
    if TEST_ROWS in selected and MONTE_CARLO in selected:
        variance, df = selected[MONTE_CARLO]
        selected[MONTE_CARLO] = np.array([np.where(df > 0, variance, 0.0), df])
    variances = np.array([variance for variance, _ in selected.values()])
    freedom = np.maximum([df for _, df in selected.values()], 1.0)
    total = variances.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(total > 0, total**2 / (variances**2 / freedom).sum(axis=0), freedom[0])
    return total, np.asarray(df)


def interval_columns(
    estimate: Floats, std_error: Floats, df: Floats, level: float, correction: SkewnessCorrection | None = None
) -> dict[str, Floats]:
    """Return the columns that go with an estimate; the p-value is one-sided, of the null "importance is at most 0".

    `df` are the degrees of freedom of the standard error; `correction` widens the interval for skewed rows. The p-value
    is below (1 - level) / 2 where the interval lies above 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(std_error > 0, estimate / std_error, np.where(estimate == 0, 0.0, np.inf * estimate))
    statistic = np.where(np.isnan(std_error), np.nan, statistic)
    # If no row changed at all there is nothing to test, and no evidence of an importance.
    p_value = one_sided_p_value(statistic, std_error, df, correction)
    p_value = np.where((std_error == 0) & (estimate == 0), 1.0, p_value)
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
        return mean_variance(values, weights, np.zeros(len(values)), _clusters(one, two))
    excess = sum(
        (score.excess[places] * (score.sizes / score.sizes.sum())).sum(axis=1)
        for score, places in ((one, first), (two, second))
    )
    return mean_variance(values, weights, np.asarray(excess), _clusters(one, two))


def combined_variance(terms: Sequence[tuple[float, FeatureResult]], weights: Floats | None) -> float:
    """Return the variance of a sum of estimates on the same rows with coefficients: terms are (coefficient, scores).

    Draws of different terms are taken to be independent.
    """
    values = sum(factor * score.influence[0].astype(np.float64) for factor, score in terms)
    excess = sum(factor**2 * (score.excess[0] * score.sizes).sum() / score.sizes.sum() for factor, score in terms)
    clusters = _clusters(*(score for _, score in terms))
    return float(mean_variance(np.asarray(values)[None, :], weights, np.array([excess]), clusters)[0])


def _clusters(*scores: FeatureResult) -> Rows | None:
    """Return the clusters of rows of the first of several results that has them."""
    return next((score.clusters for score in scores if score.clusters is not None), None)


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
    return _adjusted(p_values, lambda p: np.maximum.accumulate(p * np.arange(len(p), 0, -1)))


def benjamini_hochberg(p_values: Any) -> Floats:
    """Return p-values adjusted by Benjamini and Hochberg's method; NaN stays NaN and does not count."""
    return _adjusted(p_values, lambda p: np.minimum.accumulate((p * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1])


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
