"""Best cut in a chosen column, by the statistic of the two groups it makes.

A cut that sends rows with weight m of n to the left has d = sum of their centred scores, variance
[sum (s - sbar)(s - sbar)' / n] m (n - m) / (n - 1) and statistic d' V^+ d. With whitened scores that is
|d|^2 (n - 1) / (m (n - m)). The first of equal statistics wins, in ascending order of the values, or of
the partitions as binary numbers whose lowest bit is the second level present.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._native import loader

MAX_ENUMERATED = 12  # levels up to which all partitions are tried
_TIE = 1e-10  # above the rounding that the fit leaves in the scores


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """A cut: values up to `threshold` left (None: all observed), or the levels `left`; where missing go."""

    statistic: float
    threshold: float | None = None
    left: tuple[int, ...] = ()
    missing_left: bool | None = None


def cut_numbers(
    values: Floats, order: Rows, stacked: Floats, sizes: Rows, n: Floats, least: Floats
) -> list[SplitPoint | None]:
    """Best cut of each node of a block in a column without missing values.

    Parameters
    ----------
    values : float array (nodes, m)
        Infinite where padded.
    order : int array (nodes, m)
        Places of each node in ascending order of its values.
    stacked : float array (nodes, q + 1, m)
        Whitened scores and, last, weights; 0 where padded.
    sizes : int array (nodes,)
        Rows before padding.
    n, least : float array (nodes,)
        Weight of the node, and least weight of a side.
    """
    q = stacked.shape[1] - 1
    if loader.tree_fit is None or q > loader.MAX_COEFFICIENTS:
        best, at = _scan(order, values, stacked, n, least)
    else:
        nodes, m = values.shape
        best, at = np.empty(nodes), np.empty(nodes)
        loader.tree_fit.scan(
            np.ascontiguousarray(order, dtype=np.int64),
            np.ascontiguousarray(values),
            np.ascontiguousarray(stacked),
            sizes.astype(np.float64),
            np.ascontiguousarray(n),
            np.ascontiguousarray(least),
            q,
            nodes,
            m,
            best,
            at,
        )
    cuts: list[SplitPoint | None] = []
    for k, (statistic, place) in enumerate(zip(best.tolist(), at.tolist(), strict=True)):
        cuts.append(None if place < 0 else SplitPoint(statistic, threshold=float(values[k, order[k, int(place)]])))
    return cuts


def _scan(order: Rows, values: Floats, stacked: Floats, n: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Statistic of the best cut of each node and its place in sorted order; -1 where none is admissible."""
    nodes, m = values.shape
    flat = (order + m * np.arange(nodes)[:, None]).ravel()
    ordered = values.ravel()[flat].reshape(nodes, m)
    squares = np.zeros((nodes, m))
    running = np.empty((nodes, m))
    for direction in range(stacked.shape[1]):
        np.cumsum(stacked[:, direction].ravel()[flat].reshape(nodes, m), axis=1, out=running)
        if direction < stacked.shape[1] - 1:
            squares += running * running
    left, right = running, n[:, None] - running
    allowed = (left >= least[:, None]) & (right >= least[:, None])
    allowed[:, :-1] &= ordered[:, :-1] < ordered[:, 1:]
    allowed[:, -1] = False
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(allowed, squares * (n[:, None] - 1) / (left * right), -1.0)
    best = statistic.max(axis=1)
    at = np.argmax(statistic >= best[:, None] * (1 - _TIE), axis=1)
    return best, np.where(best >= 0, at, -1).astype(np.float64)


def cut_partial(values: Floats, z: Floats, weights: Floats | None, n: float, least: float) -> SplitPoint | None:
    """Best cut of one node in a column with missing values: each cut with them on either side, and them alone."""
    counted = np.ones(len(values)) if weights is None else weights
    missing = np.isnan(values)
    lost, lost_weight = z[:, missing].sum(axis=1), float(counted[missing].sum())
    order = np.argsort(values[~missing])
    ordered = values[~missing][order]
    running = np.cumsum(z[:, ~missing][:, order], axis=1)
    left = np.cumsum(counted[~missing][order])
    ends = np.append(ordered[:-1] < ordered[1:], True)
    alone = np.zeros(len(ends), dtype=np.bool_)
    alone[-1] = True
    best: SplitPoint | None = None
    for missing_left in (False, True):
        d = running + lost[:, None] if missing_left else running
        weight = left + lost_weight if missing_left else left
        allowed = ends & (weight >= least) & (n - weight >= least)
        if missing_left:
            allowed &= ~alone
        if not allowed.any():
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(allowed, (d**2).sum(axis=0) * (n - 1) / (weight * (n - weight)), -1.0)
        top = float(statistic.max())
        if best is None or top > best.statistic * (1 + _TIE):
            at = int(np.argmax(statistic >= top * (1 - _TIE)))
            best = SplitPoint(top, None if alone[at] else float(ordered[at]), missing_left=missing_left)
    return best


def cut_levels(sums: Floats, counts: Floats, n: float, least: float) -> SplitPoint | None:
    """Best cut of one node in a nominal column, from its whitened scores (q, levels) and weights by level."""
    present = np.flatnonzero(counts > 0)
    if len(present) < 2:
        return None
    sums, counts = sums[:, present], counts[present]
    few = len(present) <= MAX_ENUMERATED
    right = _partitions(len(present)) if few else _cuts_in_order(sums, counts)
    right_weight = right @ counts
    d = right @ sums.T
    allowed = (right_weight >= least) & (n - right_weight >= least)
    if not allowed.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(allowed, (d**2).sum(axis=1) * (n - 1) / (right_weight * (n - right_weight)), -1.0)
    top = float(statistic.max())
    at = int(np.argmax(statistic >= top * (1 - _TIE)))
    return SplitPoint(top, left=tuple(int(level) for level in present[right[at] == 0]))


@lru_cache(maxsize=MAX_ENUMERATED)
def _partitions(levels: int) -> npt.NDArray[np.float64]:
    """All ways to send some levels but the first to the right, as rows of 0 and 1, counting in binary."""
    numbers = np.arange(1, 2 ** (levels - 1))
    bits = (numbers[:, None] >> np.arange(levels - 1)) & 1
    return np.concatenate([np.zeros((len(numbers), 1)), bits], axis=1).astype(np.float64)


def order_of_levels(sums: Floats, weight: Floats) -> Rows:
    """Levels ascending by their mean, or along the leading direction of their means where those are vectors.

    The best cut of one mean is among those of this order (Fisher 1958). For vectors it is close to the best
    (Coppersmith, Hong and Hosking 1999).
    """
    means = sums / weight
    if len(means) == 1:
        key = means[0]
    else:
        _, _, directions = np.linalg.svd((means * np.sqrt(weight)).T, full_matrices=False)
        leading = directions[0]
        # The sign of a direction is arbitrary: its largest entry is made positive.
        largest = np.argmax(np.abs(leading) >= np.abs(leading).max() * (1 - _TIE))
        key = np.sign(leading[largest]) * (leading @ means)
    ascending = np.argsort(key, kind="stable")
    # Means that differ by rounding only keep the order of the levels.
    step = np.diff(key[ascending], prepend=key[ascending[0]]) > _TIE * np.abs(key).max()
    rank = np.empty_like(ascending)
    rank[ascending] = np.cumsum(step)
    return np.argsort(rank, kind="stable")


def _cuts_in_order(sums: Floats, counts: Floats) -> Floats:
    """Cuts of the levels put in order, as rows of 0 (left) and 1 (right)."""
    order = order_of_levels(sums, counts)
    right = np.ones((len(order) - 1, len(order)))
    for cut in range(len(order) - 1):
        right[cut, order[: cut + 1]] = 0.0
    # The first level present is on the left, as in the enumeration.
    right[right[:, 0] == 1] = 1 - right[right[:, 0] == 1]
    return right
