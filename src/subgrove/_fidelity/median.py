"""The median distance of many pairs, exactly, without holding all of the distances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._scoring.fidelity_check.pairs import PairBlock

_LOOKED_AT = 200  # rows of each block whose distances say about where the median is
_MARGIN = 0.04  # share of these distances on either side of their median that bounds are set at first
_ROOM = 0.2  # share of all distances that there is room for
_LEAST_ROOM = 1 << 16


def median_distance(blocks: Sequence[PairBlock], *, positive: bool = False) -> float:
    """The median of the distances of all pairs; the mean of the two in the middle if their number is even.

    A look at some of the distances says between which bounds the median may lie. All are counted then, and those
    between the bounds collected; if the median is not among them, the bounds are moved.

    Parameters
    ----------
    blocks : sequence of Block
        The pairs.
    positive : bool, default False
        Whether only distances above 0 count.

    Returns
    -------
    float
        NaN if there is no pair, or if a distance that matters is NaN.
    """
    least = float(np.nextafter(0, 1)) if positive else 0.0
    total = sum(block.n_pairs for block in blocks)
    zeros = _between(blocks, least, np.inf, 0)[0] if positive else 0
    if total == zeros:
        return float("nan")
    ranks = zeros + (total - zeros - 1) // 2, zeros + (total - zeros) // 2
    some = np.sort(np.concatenate([block.thinned(_LOOKED_AT) for block in blocks]))
    some = some[some >= least]
    margin, room, narrowing = _MARGIN, max(_LEAST_ROOM, int(_ROOM * total)), True
    while True:
        low, high = _bounds(some, margin, least)
        below, found, kept = _between(blocks, low, high, 0 if low == high else room)
        if not (below <= ranks[0] and ranks[1] < below + found):
            if margin >= 0.5:  # all were counted, but those that are NaN
                return float("nan")
            margin, narrowing = max(2 * margin, 0.001), False
        elif low == high:
            return float(np.sqrt(low))
        elif found <= room:
            places = [ranks[0] - below, ranks[1] - below]
            return float(np.sqrt(np.partition(kept, places)[places]).mean())
        elif narrowing:  # too many between the bounds, mostly because many are equal
            margin = margin / 4 if margin > 0.001 else 0.0
        else:
            room = found


def _bounds(some: Floats, margin: float, least: float) -> tuple[float, float]:
    """Quantiles of the distances looked at, a share `margin` below and above their median."""
    if margin >= 0.5 or not len(some):
        return least, float("inf")
    last = len(some) - 1
    low = int((0.5 - margin) * last)
    return float(some[low]), float(some[last - low] if margin > 0 else some[low])


def _between(blocks: Sequence[PairBlock], low: float, high: float, room: int) -> tuple[int, int, Floats]:
    """What `PairBlock.between` says of each block, of all of them together."""
    below = found = 0
    kept: list[Floats] = []
    for block in blocks:
        under, inside, values = block.between(low, high, min(room, block.n_pairs))
        below, found, room = below + under, found + inside, room - len(values)
        kept.append(values)
    return below, found, np.concatenate(kept)
