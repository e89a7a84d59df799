"""Noise by source: which parts of the uncertainty a standard error covers, and how large each of them is.

Sources are independent, so variances add::

    test rows   other rows from the same source would have given another mean
    redraw      other draws of the same number of repeats would have
    partition   a sampler fitted on other training rows would have
    model       a model fitted on other training rows would have (`importance_over_refits`)

Each variance is an estimate with degrees of freedom of its own: few redraws or resamples tell their variance badly.
Those of the sum are Welch and Satterthwaite's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import quote
from subgrove._scoring.estimate_variance import monte_carlo_variance, overall_variance, subgroup_variance
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import ParameterError

TEST_ROWS, MONTE_CARLO, SAMPLER, MODEL = "test rows", "Monte Carlo", "sampler", "model"
SOURCES = (TEST_ROWS, MONTE_CARLO, SAMPLER, MODEL)
_HOW = {
    TEST_ROWS: "It needs a loss that has a value for each row.",
    MONTE_CARLO: "This result has no redraws.",
    SAMPLER: "Pass train to importance and call .with_sampler_variance() on the result.",
    MODEL: "Use importance_over_refits, which fits the model again and again; one fitted model cannot tell.",
}


def label(sources: Sequence[str], *, calibrated: bool = False) -> str:
    """Sources in the words of the column `noise`."""
    return " + ".join(f"{one} (calibrated)" if calibrated and one == TEST_ROWS else one for one in sources)


def known_sources(scores: Sequence[FeatureResult], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The sources that a result can tell of."""
    known = [TEST_ROWS]
    if settings.get("method") != "loco":
        known.append(MONTE_CARLO)
    if scores and all(score.partition_variance is not None for score in scores):
        known.append(SAMPLER)
    return tuple(known)


def default_sources(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """What tables cover unless the user chose: the test rows, and the draws if there are any."""
    return (TEST_ROWS,) if settings.get("method") == "loco" else (TEST_ROWS, MONTE_CARLO)


def read_sources(asked: Sequence[Any], known: Sequence[str]) -> tuple[str, ...]:
    """The sources that the user asked for, in the order of this file."""
    if not asked:
        raise ParameterError(f"with_noise needs at least one source. This result knows {quote(known)}.")
    for source in asked:
        if source not in SOURCES:
            raise ParameterError(f"noise must be among {quote(SOURCES)}; got {source!r}.")
        if source not in known:
            raise ParameterError(f"The noise of {source!r} is not known here. {_HOW[source]}")
    return tuple(source for source in SOURCES if source in asked)


def overall_parts(score: FeatureResult, at: int, weights: Floats | None, *, per_row: bool) -> dict[str, Floats]:
    """Source -> variance of the overall estimate, and its degrees of freedom; NaN where it is not known."""
    n = score.sizes.sum()
    parts = {
        TEST_ROWS: np.array([overall_variance(score, weights)[at] if per_row else np.nan, n - 1]),
        MONTE_CARLO: np.array([monte_carlo_variance(score, at, per_row=per_row), _draws_df(score, whole=True)]),
    }
    if score.partition_variance is not None:
        parts[SAMPLER] = np.array([score.partition_variance[at], score.partition_resamples - 1])
    return parts


def subgroup_parts(score: FeatureResult, at: int, weights: Floats | None) -> dict[str, Floats]:
    """The same for each subgroup: arrays of variances and of degrees of freedom."""
    return {
        TEST_ROWS: np.array([subgroup_variance(score, weights)[at], score.sizes - 1]),
        MONTE_CARLO: np.array([score.mc_variance[at], _draws_df(score)]),
    }


def _draws_df(score: FeatureResult, *, whole: bool = False) -> Any:
    """How many numbers, beyond their means, the noise of the draws was learned from: for each subgroup, or for all."""
    more = score.overall.shape[1] - 1.0
    if not score.has_rows and score.independent:
        return more * (score.sizes.sum() if whole else np.maximum(score.sizes, 1.0))
    return more if whole else np.full(len(score.sizes), more)


def reject_partition(sources: Sequence[str]) -> None:
    """Subgroups are others in every resample, so that they have no such noise of their own."""
    if SAMPLER in sources:
        raise ParameterError(
            "by_subgroup cannot cover the noise of 'sampler': a sampler that is fitted on other rows has other "
            "subgroups. Read it with .with_noise('test rows', 'Monte Carlo'), or read .overall."
        )


def added(parts: Mapping[str, Floats], sources: Sequence[str]) -> tuple[Floats, Floats]:
    """Variance of the chosen sources together, and its degrees of freedom.

    Of a single repeat the noise of the draws is not known apart: that of the test rows has it in it already.
    """
    chosen = {source: parts[source] for source in sources}
    if TEST_ROWS in chosen and MONTE_CARLO in chosen:
        variance, df = chosen[MONTE_CARLO]
        chosen[MONTE_CARLO] = np.array([np.where(df > 0, variance, 0.0), df])
    variances = np.array([variance for variance, _ in chosen.values()])
    freedom = np.maximum([df for _, df in chosen.values()], 1.0)
    total = variances.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(total > 0, total**2 / (variances**2 / freedom).sum(axis=0), freedom[0])
    return total, np.asarray(df)
