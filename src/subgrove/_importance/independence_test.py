"""A test of conditional independence that is robust to errors of the sampler.

For the squared error and the true conditional distribution, the importance of a feature is

    2 E[(y - E[y | others]) (f(x) - E[f(x) | others])],

twice the covariance of target and prediction given the other columns. Resampling estimates the second expectation, with
a sampler that may be wrong. The error of an estimate of this form is the *product* of two errors: that of the estimate
of E[y | others], and that of E[f | others]. If one of them is small, so is the product; the mean increase of the loss
has no such protection. So both factors are predicted from the other columns once more, starting from the mean over
resamples, and their residuals are multiplied row by row. Three regressions compete by their held-out residuals: none, a
ridge regression (each row left out in closed form), and a forest on its residuals (out of bag).

Where both factors start from the mean over the same few resamples, its noise is in both and would add to their product;
its variance is known, and is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats
from subgrove._data.encode import one_hot
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, fingerprint, read_table
from subgrove._data.to_containers import as_count
from subgrove._importance.intervals import MONTE_CARLO, TEST_ROWS, interval_columns, label
from subgrove._importance.tables import ImportanceData, subgroup_columns
from subgrove._regress import best_ridge_residuals, grow_forest
from subgrove._scoring.feature_result import FeatureResult, with_rows
from subgrove.exceptions import InputError, ParameterError

_N_TREES = 100


def independence_lines(result: ImportanceData, X: Any, *, by_subgroup: bool) -> list[dict[str, Any]]:
    """Return the lines of `ImportanceResult.independence_test`."""
    scores = with_rows(result.scores, "independence_test")
    if result.predictions is None or result.residuals is None or any(score.moved is None for score in scores):
        raise ParameterError(
            "independence_test needs predictions and a target that are numbers, or probabilities of a single target. "
            "It is not available for labels or for loco. Read p_value of .overall."
        )
    if any(np.isnan(score.moved_variance).any() for score in scores if score.moved_variance is not None):
        raise ParameterError(
            "independence_test needs at least two resamples of each row. Pass n_repeats=2 or more to importance."
        )
    table = _same_rows(X, result)
    lines: list[dict[str, Any]] = []
    for score in scores:
        given = (result.settings.get("given") or {}).get(score.title)
        seed = int(stream(int(result.settings.get("random_state") or 0), f"test of {score.title}").integers(2**31))
        products = _products(score, result.predictions, result.residuals, table, given, seed)
        for k in range(len(score.rules)) if by_subgroup else [None]:
            rows = slice(None) if k is None else score.code == k
            name = {} if k is None else subgroup_columns(score, k)
            own = None if result.weights is None else result.weights[rows]
            lines.append({"feature": score.title, **name, **_line(products[rows], own, result.level)})
    return lines


def _same_rows(X: Any, result: ImportanceData) -> Table:
    """Read the rows of the result again; raise for other rows."""
    table = read_table(X, lenient=True)
    if result.row_mask is not None and table.n_rows == len(result.row_mask):
        table = read_table(Frames(X, table.columns).changed(np.flatnonzero(result.row_mask), {}), lenient=True)
    if fingerprint(table) != result.settings.get("fingerprint"):
        raise InputError("X has other rows than the result was computed on. Pass the X that was passed to importance.")
    return table


def _products(
    score: FeatureResult, predictions: Floats, residuals: Floats, table: Table, given: Sequence[str] | None, seed: int
) -> Floats:
    """Return for each row the product of the residuals of target and prediction, summed over predictions.

    Both are regressed on the columns of `given`, all others if None.
    """
    assert score.moved is not None
    assert score.moved_variance is not None
    shifts = score.moved.astype(np.float64)
    if not shifts.any():
        return np.zeros(len(shifts))
    predictors = one_hot(table, score.feature, given)
    mc_variance = score.moved_variance.astype(np.float64)
    products = np.zeros(len(shifts))
    for k in range(shifts.shape[1]):
        prediction = predictions[:, k]
        starts = [prediction + shifts[:, k], np.zeros(len(shifts))]  # the mean over resamples, or nothing
        of_target, one = residualize(prediction + residuals[:, k], starts, predictors, seed)
        of_prediction, two = residualize(prediction, starts, predictors, seed)
        products += of_target * of_prediction
        if one == two == 0:
            products -= mc_variance[:, k]
    return products


def _line(products: Floats, weights: Floats | None, level: float) -> dict[str, Any]:
    """Return the estimate, twice the mean product, with its interval and p-value."""
    n = float(len(products) if weights is None else weights.sum())
    values = 2.0 * products
    if n <= 2:
        mean = float(values.mean()) if len(values) else float("nan")
        error = float("nan")
    elif weights is None:
        mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(n))
    else:
        mean = float(values @ weights / n)
        error = float(np.sqrt((values - mean) ** 2 @ weights / (n - 1) / n))
    columns = interval_columns(np.array(mean), np.array(error), np.array(n - 1), level)
    noise = label((TEST_ROWS, MONTE_CARLO))
    return {"n": as_count(n), **{name: float(value) for name, value in columns.items()}, "noise": noise}


def residualize(values: Floats, starts: list[Floats], predictors: Floats, seed: int) -> tuple[Floats, int]:
    """Return the held-out residuals of values on the predictors, and the number of the start of the best fit.

    Starts depend on the predictors alone; regressions are of the values minus a start.
    """
    candidates = []
    for start in starts:
        values_left = values - start
        linear = best_ridge_residuals(predictors, values_left)
        candidates += [values_left, linear, _forest_residuals(linear, predictors, seed)]
    best = int(np.argmin([float(np.mean(one**2)) for one in candidates]))
    return candidates[best], best // 3


def _forest_residuals(values: Floats, predictors: Floats, seed: int) -> Floats:
    """Return the out-of-bag residuals of a forest."""
    tried = max(1, predictors.shape[1] // 2)
    forest = grow_forest(predictors, values[:, None], n_trees=_N_TREES, tried=tried, seed=seed, n_jobs=1)
    predicted = forest.out_of_bag[:, 0]
    residuals: Floats = values - np.where(np.isnan(predicted), values.mean(), predicted)
    return residuals
