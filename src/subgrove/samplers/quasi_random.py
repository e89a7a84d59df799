"""Points between 0 and 1 for each row and repeat, spread as evenly as they can be, whichever way they are looked at.

Within a repeat the rows of a subgroup, in the order of their own values, have the points of van der Corput's sequence,
all turned by the same random angle: they are spread evenly over the subgroup, and over those of its rows whose values
are alike. Over repeats each row turns on by the golden section, which spreads any number of points well and goes on
where fewer repeats ended. A value that is taken at a point from a sorted pool is a fair draw of its own, and the mean
over rows and repeats varies less than that of independent draws.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._core.random import KeyedStreams, Streams

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def balanced_points(code: Codes, n_groups: int, own: Floats, rngs: Streams) -> Iterator[Floats]:
    """For each repeat a point in [0, 1) for each row.

    Parameters
    ----------
    code : int array
        Subgroup of each row.
    n_groups : int
        Number of subgroups.
    own : float array
        What the rows of a subgroup are put in order by; equal and missing ones come in random order.
    rngs : Streams
        One for each repeat; what they share is used. Rows of keyed streams do not know of each other: each has a
        random point of its own to start from, and turns on from it like all others.
    """
    if isinstance(rngs, KeyedStreams):
        start = rngs.of_rows.random(len(code))
        for repeat in range(len(rngs)):
            yield (start + repeat * _GOLDEN) % 1.0
        return
    rng = rngs.shared
    order = rng.permutation(len(code))
    order = order[np.argsort(own[order], kind="stable")]
    angle = rng.random(len(code))
    if n_groups > 1:
        order = order[np.argsort(code[order], kind="stable")]
    sizes = np.bincount(code, minlength=n_groups)
    starts = np.cumsum(sizes) - sizes
    within = np.arange(len(code)) - np.repeat(starts, sizes)
    # The angle of a subgroup is that of its first row, so that it does not depend on the subgroup's number.
    first = np.minimum.reduceat(order, starts[sizes > 0]) if len(order) else order
    turned = np.repeat(angle[first], sizes[sizes > 0])
    start = np.empty(len(code))
    start[order] = _reversed_bits(within) + turned
    for repeat in range(len(rngs)):
        yield (start + repeat * _GOLDEN) % 1.0


def _reversed_bits(numbers: Rows) -> Floats:
    """Van der Corput's sequence: the binary digits of a number, mirrored at the point."""
    found, half = np.zeros(len(numbers)), 0.5
    left = numbers.copy()
    while left.any():
        found += half * (left & 1)
        left >>= 1
        half /= 2
    return found


class Pools:
    """Members of subgroups, in the order of their values, to be taken at points.

    Parameters
    ----------
    code : int array
        Subgroup of each member.
    values : array
        What members are sorted by.
    n_groups : int
        Number of subgroups.
    """

    def __init__(self, code: Codes, values: Floats, n_groups: int) -> None:
        order = np.argsort(values, kind="stable")
        self.order: Rows = order[np.argsort(code[order], kind="stable")]
        self.sizes = np.bincount(code, minlength=n_groups)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def at(self, code: Codes, points: Floats) -> Rows:
        """The member that each row takes: of its subgroup, at its point."""
        size = self.sizes[code]
        places: Rows = self.starts[code] + np.minimum((points * size).astype(np.intp), size - 1)
        return self.order[places]
