"""A test of conditional importance that does not trust the sampler.

For the squared error and the true conditional distribution, the importance of a feature is

    2 E[(y - E[y | rest]) (f(x) - E[f(x) | rest])],

twice the covariance, given the other columns, of the target and of what the model says. Redraws give the second
expectation, by a sampler that may be off. An estimate of the form above is off by the *product* of two errors: that
of what is taken for E[y | rest], and that of what is taken for E[f | rest]. If one of them is small, so is the
product; the mean increase of the loss has no such protection. So both factors are predicted from the other columns
once more (`foretold.py`), starting from what the redraws say, and what is left of them is multiplied, row by row.

Where both start from the mean over the same few redraws, its noise is in both factors and would add to their product;
its variance is known, and is taken off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.random import stream
from subgrove._data.fingerprint import fingerprint
from subgrove._data.replace_columns import Frames
from subgrove._data.result_tables import as_count
from subgrove._data.table import Table, read_table
from subgrove._importance.inference.intervals import interval_columns
from subgrove._importance.inference.residualize import unforetold
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import InputError, ParameterError
from subgrove.samplers.predictors import encoded_predictors

NOISE = "test rows + Monte Carlo"
Asked = tuple[Floats, Floats]  # predictions of the rows as they are, and what they leave of y: (n, K) each


def tested(
    scores: Sequence[FeatureResult],
    asked: Asked | None,
    X: Any,
    weights: Floats | None,
    kept: Any,
    settings: Mapping[str, Any],
    level: float,
    by_subgroup: bool,
) -> list[dict[str, Any]]:
    """Lines of the table of `ImportanceResult.independence_test`."""
    _reject_what_cannot_be_tested(scores, asked)
    assert asked is not None
    table = _rows_once_more(X, kept, settings)
    lines: list[dict[str, Any]] = []
    for score in scores:
        given = (settings.get("given") or {}).get(score.title)
        products = _products(score, asked, table, given, int(settings.get("random_state") or 0))
        parts = range(len(score.rules)) if by_subgroup else [None]
        for k in parts:
            rows = slice(None) if k is None else score.code == k
            fold = {} if k is None or not score.folds else {"fold": score.folds[k]}
            name = {} if k is None else {**fold, "subgroup": k, "rule": score.rules[k]}
            own = None if weights is None else weights[rows]
            lines.append({"feature": score.title, **name, **_line(products[rows], own, level)})
    return lines


def _reject_what_cannot_be_tested(scores: Sequence[FeatureResult], asked: Asked | None) -> None:
    if asked is None or any(score.moved is None for score in scores):
        raise ParameterError(
            "test needs predictions and a target that are numbers, or probabilities of a single target. It is not "
            "there for labels, for loco, or for a result that an earlier version saved. Read p_value of .overall."
        )
    if any(np.isnan(score.moved_variance).any() for score in scores if score.moved_variance is not None):
        raise ParameterError("test needs at least two redraws of each row. Pass n_repeats=2 or more to importance.")


def _rows_once_more(X: Any, kept: Any, settings: Mapping[str, Any]) -> Table:
    """The rows that the result is of, read anew."""
    table = read_table(X, lenient=True)
    if kept is not None and table.n_rows == len(kept):
        table = read_table(Frames(X, table.columns).changed(np.flatnonzero(kept), {}), lenient=True)
    if fingerprint(table) != settings.get("fingerprint"):
        raise InputError("X has other rows than the result was computed on. Pass the same X to importance and test.")
    return table


def _products(score: FeatureResult, asked: Asked, table: Table, given: Sequence[str] | None, seed: int) -> Floats:
    """For each row the product of what is left of y and what is left of the prediction, summed over predictions.

    What is left is what the columns of `given` do not foretell, all others if None.
    """
    assert score.moved is not None
    assert score.moved_variance is not None
    answers, rest = asked
    moved = score.moved.astype(np.float64)
    if not moved.any():
        return np.zeros(len(moved))
    predictors = encoded_predictors(table, score.feature, given)
    tree_seed = int(stream(seed, f"test of {score.title}").integers(2**31))
    of_draws = score.moved_variance.astype(np.float64)
    products = np.zeros(len(moved))
    for k in range(moved.shape[1]):
        answer = answers[:, k]
        guesses = [answer + moved[:, k], np.zeros(len(moved))]  # the mean over redraws, or nothing
        left_of_y, one = unforetold(answer + rest[:, k], guesses, predictors, tree_seed)
        left_of_f, two = unforetold(answer, guesses, predictors, tree_seed)
        products += left_of_y * left_of_f
        if one == two == 0:
            products -= of_draws[:, k]
    return products


def _line(products: Floats, weights: Floats | None, level: float) -> dict[str, Any]:
    """The estimate, twice the mean product, and what goes with it."""
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
    return {"n": as_count(n), **{name: float(value) for name, value in columns.items()}, "noise": NOISE}
