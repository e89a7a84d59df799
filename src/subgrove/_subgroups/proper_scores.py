"""Proper scores of the distribution of a feature in a subgroup, evaluated at held-out rows; lower is better.

The expected value of a proper score is minimal for the true distribution, so it rewards neither too narrow nor too
wide a distribution:

- numeric features: the continuous ranked probability score of the subgroup's empirical distribution F at the row's
  value y, CRPS = E|X - y| - E|X - X'| / 2, with X and X' drawn from F; in units of the feature. With one donor it is
  the absolute error. Ordered levels count as 1, 2, and so on;
- nominal features: the log score, -log of the share of the row's level in its subgroup, with half a row added to each
  level, so that a level absent from the subgroup has a large but finite score.
"""

from __future__ import annotations

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import TypedColumn
from subgrove.trees.candidates import ascending


def crps(values: Floats, weights: Floats | None, y: Floats) -> Floats:
    """Return the CRPS of the empirical distribution of `values` at each of `y`."""
    # Distances from the median, halved so that none overflows; then in units of the largest, so that no sum does.
    order = ascending(values)
    x, at = (part / 2 - values[order[len(order) // 2]] / 2 for part in (values[order], y))
    unit = float(max(np.abs(x).max(), np.abs(at).max())) or 1.0
    x, at = x / unit, at / unit
    share = np.full(len(x), 1 / len(x)) if weights is None else weights[order] / weights.sum()
    below = np.concatenate([[0.0], np.cumsum(share)])
    summed = np.concatenate([[0.0], np.cumsum(share * x)])
    place = np.searchsorted(x, at, side="right")
    distance = at * (2 * below[place] - below[-1]) + summed[-1] - 2 * summed[place]
    # E|X - X'| / 2 is the integral of F (1 - F).
    spread = float((np.diff(x) * below[1:-1] * (1 - below[1:-1])).sum())
    return np.asarray((distance - spread) * unit * 2)


def log_score(codes: Rows, weights: Floats | None, y: Rows, n_levels: int) -> Floats:
    """Return minus the logarithm of the share of each level `y` among `codes`, half a row added to each level."""
    counts = np.bincount(codes, weights=weights, minlength=n_levels) + 0.5
    return np.asarray(-np.log(counts[y] / counts.sum()))


def leaf_scores(
    feature: TypedColumn,
    weights: Floats | None,
    rows: Rows,
    leaf: Rows,
    held_out: Rows,
    held_out_leaf: Rows,
) -> Floats:
    """Return the score of each held-out row under the distribution of the feature in the same leaf.

    Parameters
    ----------
    feature : TypedColumn
        The feature in all rows, without missing values.
    weights : float array or None
        Sample weights.
    rows, held_out : int arrays
        Numbers of the rows that the tree was grown on, and of the rows to score.
    leaf, held_out_leaf : int arrays
        Their leaves. The leaf of a held-out row contains rows that the tree was grown on.
    """
    scores = np.empty(len(held_out))
    for number in np.unique(held_out_leaf):
        donors, scored = rows[leaf == number], held_out_leaf == number
        donor_weights = None if weights is None else weights[donors]
        values, y = feature.values[donors], feature.values[held_out[scored]]
        if feature.info.is_nominal:
            levels = max(len(feature.info.levels), 1)
            scores[scored] = log_score(values.astype(np.intp), donor_weights, y.astype(np.intp), levels)
        else:
            scores[scored] = crps(values, donor_weights, y)
    return scores


def leave_one_out_scores(feature: TypedColumn, leaf: Rows) -> Floats:
    """Return the leave-one-out score of each row in its leaf; a singleton leaf is scored by all other rows."""
    scores = np.empty(len(leaf))
    n_leaves = int(leaf.max(initial=0)) + 1
    for number in range(n_leaves):
        rows = np.flatnonzero(leaf == number) if n_leaves > 1 else np.arange(len(leaf))
        if len(rows) == 1:
            others = np.flatnonzero(leaf != number)
            scores[rows] = (
                leaf_scores(feature, None, others, np.zeros(len(others), np.intp), rows, np.zeros(1, np.intp))
                if len(others)
                else 0.0
            )
        elif feature.info.is_nominal:
            n_levels = max(len(feature.info.levels), 1)
            scores[rows] = _leave_one_out_log_score(feature.values[rows].astype(np.intp), n_levels)
        elif len(rows):
            scores[rows] = _leave_one_out_crps(feature.values[rows])
    return scores


def _leave_one_out_log_score(codes: Rows, n_levels: int) -> Floats:
    counts = np.bincount(codes, minlength=n_levels) - 0.5  # half a row added, the row itself removed
    return np.asarray(-np.log(np.maximum(counts[codes], 0.5) / (len(codes) - 1 + 0.5 * n_levels)))


def _leave_one_out_crps(values: Floats) -> Floats:
    """Return E|X - y| - E|X - X'| / 2 for each value y, with X and X' drawn from the other values."""
    n = len(values)
    order = ascending(values)
    x = values[order] / 2 - values[order[n // 2]] / 2
    unit = float(np.abs(x).max()) or 1.0
    x = x / unit
    summed = np.cumsum(x)
    # For the value at place i: values below it add i x - their sum, values above it their sum - (n - 1 - i) x.
    to_others = np.arange(2 - n, n + 1, 2) * x + (summed[-1] - 2 * summed)
    # X and X' are drawn with replacement, hence (n - 1)^2 pairs. The sum over these is that over all pairs less twice
    # the contribution of the value itself.
    pairs = max((n - 1) ** 2, 1)
    scores = np.empty(n)
    scores[order] = (to_others * (1 / max(n - 1, 1) + 1 / pairs) - float(to_others.sum()) / (2 * pairs)) * unit * 2
    return scores
