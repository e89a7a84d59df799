"""Differences between two importance results, with the standard error of paired rows where the rows are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.to_containers import as_count
from subgrove._importance.intervals import MONTE_CARLO, TEST_ROWS, interval_columns, label, paired_variance
from subgrove._importance.tables import ImportanceData
from subgrove._scoring.estimate_variance import monte_carlo_variance, overall_variance
from subgrove._scoring.feature_result import FeatureResult, with_rows
from subgrove.exceptions import ParameterError

_ROUNDING = 1e-12  # smaller relative differences count as 0


def differences(one: ImportanceData, two: ImportanceData) -> list[dict[str, Any]]:
    """Return the lines of `ImportanceResult.compare`, for features and losses that both results have."""
    losses = [(one.losses.index(loss), two.losses.index(loss)) for loss in one.losses if loss in two.losses]
    # Calibrated results have weights of their own: paired differences need the same weight for every row.
    theirs = {score.title: score.uncalibrated() for score in with_rows(two.scores, "compare")}
    shared = [score.uncalibrated() for score in with_rows(one.scores, "compare") if score.title in theirs]
    if not losses or not shared:
        raise ParameterError("The two results have no loss, or no feature, in common.")
    lines = []
    for place in range(len(losses)):
        for score in shared:
            other = theirs[score.title]
            variance = _variance(one, two, score, other, losses, place)
            lines.append(_line(one, score, other, losses[place], variance))
    return lines


def _variance(
    one: ImportanceData,
    two: ImportanceData,
    first: FeatureResult,
    second: FeatureResult,
    losses: list[tuple[int, int]],
    place: int,
) -> float:
    mine, yours = losses[place]
    paired = same_rows(one, two)
    same_draws = paired and _same_seed(one, two)
    same_draws = same_draws and np.array_equal(first.code, second.code) and first.overall.shape == second.overall.shape
    if paired:
        variance = float(paired_variance(first, second, losses, one.weights, same_draws=same_draws)[place])
    else:
        variance = float(overall_variance(first, one.weights)[mine] + overall_variance(second, two.weights)[yours])
    if MONTE_CARLO in one.covered and not same_draws:  # otherwise the variance of the rows includes it
        draws = [monte_carlo_variance(score, at, per_row=True) for score, at in ((first, mine), (second, yours))]
        variance += float(np.nansum(draws))
    return variance


def same_rows(one: ImportanceData, two: ImportanceData) -> bool:
    """Return whether two results are of the same rows, with the same weights."""
    return (
        one.settings.get("fingerprint") == two.settings.get("fingerprint")
        and one.n_rows == two.n_rows
        and np.array_equal(_weights(one), _weights(two))
    )


def _same_seed(one: ImportanceData, two: ImportanceData) -> bool:
    return all(one.settings.get(key) == two.settings.get(key) for key in ("random_state", "sampler", "n_repeats"))


def _weights(result: ImportanceData) -> Floats:
    return np.ones(result.n_rows) if result.weights is None else result.weights


def _line(
    one: ImportanceData, first: FeatureResult, second: FeatureResult, loss: tuple[int, int], variance: float
) -> dict[str, Any]:
    a, b = float(first.overall[loss[0]].mean()), float(second.overall[loss[1]].mean())
    n = float(first.sizes.sum())
    columns = interval_columns(np.array(a - b), np.array(np.sqrt(variance)), np.array(n - 1), one.level)
    p = float(columns["p_value"])
    covered = [TEST_ROWS, *([MONTE_CARLO] if MONTE_CARLO in one.covered else [])]
    return {
        **one._loss_column(loss[0]),
        "feature": first.title,
        "n": as_count(n),
        "this": a,
        "other": b,
        **{name: float(value) for name, value in columns.items()},
        "p_value": 1.0 if abs(a - b) <= _ROUNDING * max(abs(a), abs(b)) else min(1.0, 2 * min(p, 1 - p)),
        "noise": label(covered),
    }
