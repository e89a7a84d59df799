"""Points between 0 and 1 for each row and repeat, spread as evenly as they can be, whichever way they are looked at.

Within a repeat the rows of a subgroup have one point in each of as many equal stretches as there are rows; over repeats
each row turns on by the golden section, which spreads any number of points well and goes on where fewer repeats ended.
A value that is taken at a point from a sorted pool is then a fair draw, and the mean over rows and repeats varies less
than that of independent draws.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from subgrove._kinds import Codes, Floats, Rows
from subgrove._random import Streams

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def balanced_points(code: Codes, n_groups: int, rngs: Streams) -> Iterator[Floats]:
    """For each repeat a point in [0, 1) for each row."""
    rng = rngs.shared
    shuffled = rng.permutation(len(code))
    jitter = rng.random(len(code))
    order = shuffled if n_groups == 1 else shuffled[np.argsort(code[shuffled], kind="stable")]
    sizes = np.bincount(code, minlength=n_groups)
    within = np.arange(len(code)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    start = np.empty(len(code))
    start[order] = (within + jitter[order]) / sizes[code[order]]
    for repeat in range(len(rngs)):
        yield (start + repeat * _GOLDEN) % 1.0


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
