"""Quantiles of type 1, which are values of rows, and the intervals between them."""

from __future__ import annotations

import numpy as np

from subgrove._core.kinds import Floats, Rows

_CLOSE = 1e-12  # cumulative weights that differ by less, relative to their sum, are equal


def quantile_rows(x: Floats, weights: Floats | None, shares: Floats) -> Rows:
    """Return the rows of the quantiles: the smallest values that at least these shares of the rows do not exceed."""
    order = np.argsort(x, kind="stable")
    total = np.arange(1.0, len(x) + 1) if weights is None else np.cumsum(weights[order])
    at = np.searchsorted(total, shares * total[-1] * (1 - _CLOSE), side="left")
    rows: Rows = order[np.minimum(at, len(x) - 1)]
    return rows


def quantile_values(x: Floats, weights: Floats | None, shares: Floats) -> Floats:
    """Return the quantiles."""
    if weights is not None:
        return np.asarray(x[quantile_rows(x, weights, shares)])
    at = np.ceil(shares * len(x) * (1 - _CLOSE)).astype(np.intp) - 1
    return np.asarray(np.sort(x)[np.clip(at, 0, len(x) - 1)])  # faster than sorting row numbers


def interval_ends(edges: Floats, x: Floats) -> tuple[Rows, Rows]:
    """Return for each value the indices of the edges left and right of it; the left one is the index of its interval.

    Intervals are open on the left, except the first one. Values beyond the edges belong to the nearest interval. A
    single edge is both ends.
    """
    left = np.clip(np.searchsorted(edges, x, side="left") - 1, 0, max(len(edges) - 2, 0))
    return left, np.minimum(left + 1, len(edges) - 1)
