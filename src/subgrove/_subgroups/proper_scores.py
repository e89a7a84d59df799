"""How well subgroups foretell a feature in rows that their tree has not seen: proper scores, the less the better.

A proper score is least on average for the true distribution, so it rewards neither too narrow nor too wide a one:

- numbers: the continuous ranked probability score of the subgroup's empirical distribution F at the row's value y,
  CRPS = E|X - y| - E|X - X'| / 2, with X and X' drawn from F; in units of the feature. With one donor it is the
  absolute error. Ordered levels count as 1, 2, and so on.
- levels: the log score, -log of the share of the row's level in its subgroup, half a row added to each level so that a
  level that is new to the subgroup is expensive, not impossible.
"""

from __future__ import annotations

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import TypedColumn
from subgrove.trees.sorted_table import ascending


def crps(values: Floats, weights: Floats | None, y: Floats) -> Floats:
    """The CRPS of the empirical distribution of `values` at each of `y`."""
    # Distances from the middle, of halves, so that none overflows; then in units of the largest, so that no sum does.
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
    """Minus the logarithm of the share of each level `y` among `codes`, half a row added to each level."""
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
    """The score of each held-out row, by the distribution of the feature in the rows of the same leaf.

    Parameters
    ----------
    feature : Series
        The feature in all rows, without missing values.
    weights : float array or None
        How often each row counts.
    rows, held_out : int arrays
        Numbers of the rows that the tree grew on, and of those to score.
    leaf, held_out_leaf : int arrays
        Their leaves. A leaf of a held-out row has rows that the tree grew on.
    """
    found = np.empty(len(held_out))
    for number in np.unique(held_out_leaf):
        own, asked = rows[leaf == number], held_out_leaf == number
        counted = None if weights is None else weights[own]
        values, y = feature.values[own], feature.values[held_out[asked]]
        if feature.info.is_nominal:
            levels = max(len(feature.info.levels), 1)
            found[asked] = log_score(values.astype(np.intp), counted, y.astype(np.intp), levels)
        else:
            found[asked] = crps(values, counted, y)
    return found


def leave_one_out_scores(feature: TypedColumn, leaf: Rows) -> Floats:
    """The score of each row by the other rows of its leaf; a row that is alone in it is foretold by all others."""
    found = np.empty(len(leaf))
    n_leaves = int(leaf.max(initial=0)) + 1
    for number in range(n_leaves):
        rows = np.flatnonzero(leaf == number) if n_leaves > 1 else np.arange(len(leaf))
        if len(rows) == 1:
            others = np.flatnonzero(leaf != number)
            own = (
                leaf_scores(feature, None, others, np.zeros(len(others), np.intp), rows, np.zeros(1, np.intp))
                if len(others)
                else 0.0
            )
            found[rows] = own
        elif feature.info.is_nominal:
            found[rows] = _levels_left_out(feature.values[rows].astype(np.intp), max(len(feature.info.levels), 1))
        elif len(rows):
            found[rows] = _numbers_left_out(feature.values[rows])
    return found


def _levels_left_out(codes: Rows, n_levels: int) -> Floats:
    counts = np.bincount(codes, minlength=n_levels) - 0.5  # half a row more, and the row itself less
    return np.asarray(-np.log(np.maximum(counts[codes], 0.5) / (len(codes) - 1 + 0.5 * n_levels)))


def _numbers_left_out(values: Floats) -> Floats:
    """CRPS of each number by the others, E|X - y| - E|X - X'| / 2 with X and X' two of the others."""
    n = len(values)
    order = ascending(values)
    x = values[order] / 2 - values[order[n // 2]] / 2
    unit = float(np.abs(x).max()) or 1.0
    x = x / unit
    summed = np.cumsum(x)
    # Of the number at place i: those below it add i x - their sum, those above it their sum - (n - 1 - i) x.
    to_others = np.arange(2 - n, n + 1, 2) * x + (summed[-1] - 2 * summed)
    # Draws X and X' are with replacement, so n - 1 times n - 1 pairs; among them is all but twice what the number adds.
    pairs = max((n - 1) ** 2, 1)
    scores = np.empty(n)
    scores[order] = (to_others * (1 / max(n - 1, 1) + 1 / pairs) - float(to_others.sum()) / (2 * pairs)) * unit * 2
    return scores
