"""Donors by balanced shifts: every row gets another row's value, and over repeats each donor once before any twice.

The rows of a subgroup stand in a random circle; in each repeat, every row takes the value of the row that stands a
number of places further on. The number is between 1 and size - 1, so no row keeps its own place, and it differs
between repeats. With size - 1 repeats, every other row has been donor once: that is the exact expectation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._frames import Donors, Ring, Rows
from subgrove._kinds import Codes, Floats
from subgrove._random import Streams

_HEAD = 1000  # rows among which most subgroups are found


def shifted_donors(code: Codes, n_groups: int, rngs: Streams, *, fixed_points: bool = False) -> Iterator[Rows]:
    """For each repeat the donor of each row; as `shifted_rings`, without the circles."""
    return (donors.rows for donors in shifted_rings(code, n_groups, rngs, fixed_points=fixed_points))


def shifted_rings(code: Codes, n_groups: int, rngs: Streams, *, fixed_points: bool = False) -> Iterator[Donors]:
    """For each repeat the donor of each row, a row of the same subgroup.

    A row alone in its subgroup keeps its value. With `fixed_points` a row may be its own donor.
    """
    rng = rngs.shared
    code = _by_first_row(code, n_groups)[1]
    order = _circles(code, n_groups, rng)
    sizes = np.bincount(code, minlength=n_groups)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    steps = _shifts(sizes - (0 if fixed_points else 1), rng, len(rngs)) + (0 if fixed_points else 1)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    turned = np.empty_like(order)
    for repeat in range(len(rngs)):
        turns = [
            (start, size, step % size)
            for start, size, step in zip(starts.tolist(), sizes.tolist(), steps[repeat].tolist(), strict=True)
            if size
        ]
        for start, size, step in turns:
            cut, end = start + step, start + size
            turned[start : end - step] = order[cut:end]
            turned[end - step : end] = order[start:cut]
        yield Donors(turned.take(place), ring=Ring(order, tuple(turns)))


def outside_donors(code: Codes, pools: list[Rows], rngs: Streams) -> Iterator[Rows]:
    """For each repeat the donor of each row, from the pool of its subgroup (training rows).

    Within a repeat the donors of a subgroup are spread evenly over its pool; over repeats a row sees all of its pool
    before it sees a donor again.
    """
    rng = rngs.shared
    n_groups = len(pools)
    of_rank, code = _by_first_row(code, n_groups)
    pools = [pools[k] for k in of_rank]
    order = _circles(code, n_groups, rng)
    sizes = np.bincount(code, minlength=n_groups)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    pools = [rng.permutation(pool) for pool in pools]
    steps = _shifts(np.array([len(pool) for pool in pools]), rng, len(rngs))
    for repeat in range(len(rngs)):
        donors = np.empty(len(code), dtype=np.intp)
        for pool, start, size, step in zip(pools, starts.tolist(), sizes.tolist(), steps[repeat].tolist(), strict=True):
            if size:
                places = (np.arange(size) * len(pool) // size + step) % len(pool)
                donors[order[start : start + size]] = pool[places]
        yield donors


def weighted_donors(
    code: Codes, n_groups: int, weights: Floats, rngs: Iterable[np.random.Generator], *, fixed_points: bool = False
) -> Iterator[Rows]:
    """For each repeat donors of the same subgroup, drawn in proportion to weights that count rows.

    A row of weight w stands for w equal rows, of which w - 1 may be its donor; with `fixed_points`, all w.
    """
    order = np.argsort(code, kind="stable")
    sizes = np.bincount(code, minlength=n_groups)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    for rng in rngs:
        donors = np.arange(len(code))
        u = rng.random(len(code))
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            rows = order[start : start + size]
            total = float(weights[rows].sum())
            own = np.zeros(size) if fixed_points else np.minimum(weights[rows], 1.0)
            if size == 0 or (total - own <= 0).any():
                continue
            # Along the cumulated weights, leaving out one unit of the row's own.
            ends = np.cumsum(weights[rows])
            point = u[rows] * (total - own)
            before = ends - weights[rows]
            point = np.where(point >= before, point + own, point)
            donors[rows] = rows[np.minimum(np.searchsorted(ends, point, side="right"), size - 1)]
        yield donors


def _by_first_row(code: Codes, n_groups: int) -> tuple[list[int], npt.NDArray[Any]]:
    """Subgroups in the order of their first rows, and the code of each row in that order.

    The numbers of subgroups follow the order of levels, in which containers differ; draws must not depend on it.
    """
    if n_groups == 1:
        return [0], code
    found, first = np.unique(code[:_HEAD], return_index=True)
    if len(found) < n_groups and len(code) > _HEAD:
        found, first = np.unique(code, return_index=True)
    of_rank = found[np.argsort(first)].tolist()
    of_rank += [k for k in range(n_groups) if k not in set(of_rank)]
    rank = np.empty(n_groups, dtype=np.uint8 if n_groups <= 256 else np.int32)
    rank[of_rank] = np.arange(n_groups)
    return of_rank, rank.take(code)


def _circles(code: Codes, n_groups: int, rng: np.random.Generator) -> Rows:
    """Rows by subgroup, in random order within each."""
    order = rng.permutation(len(code))
    if n_groups == 1:
        return order
    # NumPy sorts small integers by counting, which is several times as fast.
    small = code.astype(np.uint16, copy=False) if 256 < n_groups <= 65536 else code
    return order.take(np.argsort(small.take(order), kind="stable"))


def _shifts(population: npt.NDArray[np.intp], rng: np.random.Generator, n_repeats: int) -> npt.NDArray[np.intp]:
    """For each repeat and subgroup a number in 0 .. population - 1; none twice before all have been there.

    Repeats are drawn one after the other, so that the first ones are the same however many there are.
    """
    u = rng.random((n_repeats, len(population)))
    shifts = np.zeros(u.shape, dtype=np.intp)
    for k, size in enumerate(population.tolist()):
        if size > 1:
            shifts[:, k] = _without_replacement(u[:, k].tolist(), size)
    return shifts


def _without_replacement(u: list[float], size: int) -> list[int]:
    """Fisher and Yates' shuffle as far as it is needed, again and again."""
    drawn: list[int] = []
    moved: dict[int, int] = {}
    for number in u:
        at = len(drawn) % size
        if at == 0:
            moved = {}
        chosen = at + int(number * (size - at))
        drawn.append(moved.get(chosen, chosen))
        moved[chosen] = moved.get(at, at)
    return drawn
