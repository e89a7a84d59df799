"""Donors by balanced shifts: every row gets another row's value, and over repeats each donor once before any twice.

The rows of a subgroup stand in a random circle; in each repeat, every row takes the value of the row that stands a
number of places further on. The number is between 1 and size - 1, so no row keeps its own place, and it differs
between repeats. With size - 1 repeats, every other row has been donor once: that is the exact expectation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, Floats
from subgrove._core.random import KeyedStreams, Streams, cached
from subgrove._data.replace_columns import CyclicShift, Donors, Rows

_HEADS = (100, 1000)  # rows among which few subgroups, and more, are mostly found


def shifted_donors(code: Codes, n_groups: int, rngs: Streams, *, fixed_points: bool = False) -> Iterator[Rows]:
    """For each repeat the donor of each row; as `shifted_rings`, without the circles."""
    return (donors.rows for donors in shifted_rings(code, n_groups, rngs, fixed_points=fixed_points))


def shifted_rings(code: Codes, n_groups: int, rngs: Streams, *, fixed_points: bool = False) -> Iterator[Donors]:
    """For each repeat the donor of each row, a row of the same subgroup.

    A row alone in its subgroup keeps its value. With `fixed_points` a row may be its own donor.
    """
    rng = rngs.shared
    order = _circles(code, n_groups, rng)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    sizes = np.bincount(code, minlength=n_groups)
    of_rank = _by_first_row(code, n_groups)
    steps = np.empty((len(rngs), n_groups), dtype=np.intp)
    steps[:, of_rank] = _shifts(sizes[of_rank] - (0 if fixed_points else 1), rng, len(rngs))
    steps += 0 if fixed_points else 1
    ends = np.cumsum(sizes)
    circles = [(end - size, end, size) for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]
    for each in steps.tolist():
        turns = [(start, end, step % size) for (start, end, size), step in zip(circles, each, strict=True) if size]
        yield Donors.from_cyclic_shift(CyclicShift(order, place, tuple(turns)))


def outside_donors(code: Codes, pools: list[Rows], rngs: Streams) -> Iterator[Rows]:
    """For each repeat the donor of each row, from the pool of its subgroup (training rows).

    Within a repeat the donors of a subgroup are spread evenly over its pool; over repeats a row sees all of its pool
    before it sees a donor again. Rows of keyed streams do not know of each other, so that each starts at a place of its
    own in the pool; the rest is the same.
    """
    if isinstance(rngs, KeyedStreams):
        yield from _keyed_donors(code, pools, rngs)
        return
    rng = rngs.shared
    n_groups = len(pools)
    order = _circles(code, n_groups, rng)
    sizes = np.bincount(code, minlength=n_groups)
    rows = np.split(order, np.cumsum(sizes)[:-1])
    of_rank = _by_first_row(code, n_groups)
    shuffled = [rng.permutation(pools[k]) for k in of_rank]
    steps = _shifts(np.array([len(pool) for pool in shuffled]), rng, len(rngs))
    for each in steps.tolist():
        donors = np.empty(len(code), dtype=np.intp)
        for k, pool, step in zip(of_rank, shuffled, each, strict=True):
            size = len(rows[k])
            if size:
                donors[rows[k]] = pool[(np.arange(size) * len(pool) // size + step) % len(pool)]
        yield donors


@dataclass(frozen=True, eq=False)
class _Pools:
    """Pools in random order, one after the other, and how far each repeat turns them."""

    members: Rows
    starts: Rows
    sizes: Rows
    steps: npt.NDArray[np.intp]

    @classmethod
    def of(cls, pools: list[Rows], rng: np.random.Generator, n_repeats: int) -> _Pools:
        sizes = np.array([len(pool) for pool in pools])
        # By rows of the pools, not by numbers of subgroups, which follow the order of levels.
        place = rng.permutation(1 + max((int(pool.max()) for pool in pools if len(pool)), default=0))
        members = np.concatenate([pool[np.argsort(place[pool])] for pool in pools])
        of_rank = np.argsort([int(pool.min()) if len(pool) else len(place) for pool in pools], kind="stable")
        steps = np.empty((n_repeats, len(pools)), dtype=np.intp)
        steps[:, of_rank] = _shifts(sizes[of_rank], rng, n_repeats)
        return cls(members, np.cumsum(sizes) - sizes, sizes, steps)


def _keyed_donors(code: Codes, pools: list[Rows], rngs: KeyedStreams) -> Iterator[Rows]:
    found = cached(rngs, "pools", lambda: _Pools.of(pools, rngs.shared, len(rngs)))
    start, size = found.starts[code], found.sizes[code]
    own = np.minimum((rngs.of_rows.random(len(code)) * size).astype(np.intp), size - 1)
    for steps in found.steps:
        place = own + steps[code]
        place -= np.where(place >= size, size, 0)
        yield found.members[start + place]


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


def _by_first_row(code: Codes, n_groups: int) -> list[int]:
    """Subgroups in the order of their first rows; those without a row come last.

    The numbers of subgroups follow the order of levels, in which containers differ; draws must not depend on it.
    """
    if n_groups == 1:
        return [0]
    first = np.full(n_groups, len(code))
    for n in (*_HEADS, len(code)):
        head = code[:n]
        # Backwards, since of several numbers written to one place the last stays.
        first[head[::-1]] = np.arange(len(head))[::-1]
        if (first < len(code)).all():
            break
    ranked: list[int] = np.argsort(first, kind="stable").tolist()
    return ranked


def _circles(code: Codes, n_groups: int, rng: np.random.Generator) -> Rows:
    """Rows by subgroup, in random order within each."""
    order = rng.permutation(len(code))
    if n_groups == 1:
        return order
    # NumPy sorts small integers by counting, which is several times as fast.
    small = code.astype(np.min_scalar_type(n_groups - 1)) if n_groups <= 65536 else code
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
