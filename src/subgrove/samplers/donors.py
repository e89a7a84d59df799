"""Donor schemes: the row whose value each row receives.

- `cyclic_shifts`: donors are other rows of the same table. The rows of a subgroup are put in random order, and each row
  receives the value of the row a number of places further on. The shift is between 1 and size - 1, so no row is its own
  donor, and it differs between repeats: after size - 1 repeats every other row has been the donor once, which is the
  exact expectation.
- `weighted_donors`: the same with sample weights, drawn independently, or with clusters of dependent rows, of which
  none is the donor of another.
- `training_donors`: donors are training rows of the same subgroup, spread evenly over rows and repeats.
- `shuffle_within`: one random permutation within cells.

A sampler that knows the distribution of its donors states it in `ResampledFeature.distribution` (`OtherRows`,
`TrainingRows`, `ShiftedResiduals`, `LevelShares`): for tree models the expected loss is then exact, without draws.

With `IndependentStreams`, `training_donors` and `balanced_points` draw each row and repeat independently, and
`cyclic_shifts` are plain random permutations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import IndependentStreams, KeyedStreams, Streams, cached
from subgrove._core.kinds import Codes, Floats
from subgrove._core.weights import own_weights
from subgrove._data.replace_columns import CyclicShift, Donors, Rows

_HEADS = (100, 1000)  # leading rows that usually contain all subgroups if these are few, or more


@dataclass(frozen=True, eq=False)
class OtherRows:
    """Other rows of the same subgroup, in proportion to their weights.

    Attributes
    ----------
    code : int array (n,)
        Subgroup of each row.
    n_groups : int
        Number of subgroups.
    with_itself : bool
        Whether a row is among its own donors.
    """

    code: Codes
    n_groups: int
    with_itself: bool = False


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows of the same subgroup, all with the same probability.

    Attributes
    ----------
    code : int array (n,)
        Subgroup of each row.
    leaf : int array (m,)
        Subgroup of each training row.
    rows : int array (m,)
        Positions of the training rows in the user's table.
    """

    code: Codes
    leaf: Codes
    rows: Rows


@dataclass(frozen=True, eq=False)
class ShiftedResiduals:
    """`base + spread * residual`, with the residuals of the same subgroup, within bounds.

    Attributes
    ----------
    code : int array (n,)
        Subgroup of each row.
    leaf, residuals : arrays (m,)
        Subgroup and residual of each training row.
    base, spread : float arrays (n,)
        Of each row.
    low, high : float arrays (n,)
        Bounds of each row, in the units of the feature.
    largest : callable
        Returns for values of the feature, with an entry for each, the largest value before rounding that is rounded to
        at most the value, and the largest sum of base and scaled residual that gives at most that.
    """

    code: Codes
    leaf: Codes
    residuals: Floats
    base: Floats
    spread: Floats
    low: Floats
    high: Floats
    largest: Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class LevelShares:
    """Levels with their probabilities in each row.

    Attributes
    ----------
    probabilities : float array (n, levels)
        Probabilities of the levels, which sum to 1.
    representatives : int array (levels,)
        Position of a training row with each level in the user's table.
    """

    probabilities: Floats
    representatives: Rows


@dataclass(frozen=True, eq=False)
class FoldDistributions:
    """Distributions of cross-fitted folds.

    Attributes
    ----------
    rows, others : tuples of int arrays
        Rows of each fold, and the rows that its sampler was fitted on.
    parts : tuple of distributions
        Distribution of each fold; positions count from the first row of the fold, or of its training rows.
    """

    rows: tuple[Rows, ...]
    others: tuple[Rows, ...]
    parts: tuple[OtherRows | TrainingRows | ShiftedResiduals | LevelShares, ...]


KnownDistribution = OtherRows | TrainingRows | ShiftedResiduals | LevelShares
Distribution = KnownDistribution | FoldDistributions


def cyclic_shifts(code: Codes, n_groups: int, rngs: Streams, *, fixed_points: bool = False) -> Iterator[Donors]:
    """Yield, for each repeat, the donors of all rows: other rows of the same subgroup.

    A row alone in its subgroup keeps its value. With `fixed_points` a row may be its own donor.
    """
    if isinstance(rngs, IndependentStreams):
        yield from (Donors(shuffle_within(code, rng, fixed_points=True)) for rng in rngs)
        return
    rng = rngs.shared
    order = _random_order(code, n_groups, rng)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    sizes = np.bincount(code, minlength=n_groups)
    of_rank = _by_first_row(code, n_groups)
    steps = np.empty((len(rngs), n_groups), dtype=np.intp)
    steps[:, of_rank] = _shifts(sizes[of_rank] - (0 if fixed_points else 1), rng, len(rngs))
    steps += 0 if fixed_points else 1
    ends = np.cumsum(sizes)
    bounds = [(end - size, end, size) for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]
    for each in steps.tolist():
        segments = [(start, end, step % size) for (start, end, size), step in zip(bounds, each, strict=True) if size]
        yield Donors.from_cyclic_shift(CyclicShift(order, place, tuple(segments)))


def training_donors(code: Codes, pools: list[Rows], rngs: Streams) -> Iterator[Rows]:
    """Yield, for each repeat, the donors of all rows from the pool of training rows of their subgroup.

    Within a repeat the donors of a subgroup are spread evenly over its pool; over repeats a row receives every member
    of its pool once before any member twice. With keyed streams rows are independent of each other: each starts at a
    random position of its pool.
    """
    if isinstance(rngs, KeyedStreams):
        yield from _keyed_donors(code, pools, rngs)
        return
    if isinstance(rngs, IndependentStreams):
        members, counts = np.concatenate(pools), np.array([len(pool) for pool in pools])
        starts, counts = (np.cumsum(counts) - counts)[code], counts[code]
        yield from (members[starts + (rng.random(len(code)) * counts).astype(np.intp)] for rng in rngs)
        return
    rng = rngs.shared
    n_groups = len(pools)
    order = _random_order(code, n_groups, rng)
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


def _shuffled_pools(pools: list[Rows], rng: np.random.Generator, n_repeats: int) -> tuple[Rows, Rows, Rows, Rows]:
    """Return pools in random order, one after the other, their starts and sizes, and their shifts in each repeat."""
    sizes = np.array([len(pool) for pool in pools])
    # Ordered by rows of the pools, not by subgroup numbers, which depend on the order of levels.
    place = rng.permutation(1 + max((int(pool.max()) for pool in pools if len(pool)), default=0))
    members = np.concatenate([pool[np.argsort(place[pool])] for pool in pools])
    of_rank = np.argsort([int(pool.min()) if len(pool) else len(place) for pool in pools], kind="stable")
    steps = np.empty((n_repeats, len(pools)), dtype=np.intp)
    steps[:, of_rank] = _shifts(sizes[of_rank], rng, n_repeats)
    return members, np.cumsum(sizes) - sizes, sizes, steps


def _keyed_donors(code: Codes, pools: list[Rows], rngs: KeyedStreams) -> Iterator[Rows]:
    shuffled = cached(rngs, "pools", lambda: _shuffled_pools(pools, rngs.shared, len(rngs)))
    members, starts, sizes, shifts = shuffled
    start, size = starts[code], sizes[code]
    own = np.minimum((rngs.of_rows.random(len(code)) * size).astype(np.intp), size - 1)
    for steps in shifts:
        place = own + steps[code]
        place -= np.where(place >= size, size, 0)
        yield members[start + place]


def weighted_donors(
    code: Codes,
    n_groups: int,
    weights: Floats | None,
    rngs: Iterable[np.random.Generator],
    *,
    fixed_points: bool = False,
    clusters: Rows | None = None,
) -> Iterator[Rows]:
    """Yield, for each repeat, donors of the same subgroup, drawn in proportion to sample weights.

    A row of frequency w stands for w equal rows, of which w - 1 can be its donor; one of relative weight is not its own
    donor. With `fixed_points` it can be. With `clusters` donors are of other clusters, and rows of a subgroup that has
    one cluster keep their values; without weights, donors are then spread evenly over the subgroup.
    """
    if clusters is not None and not fixed_points:
        yield from _donors_of_other_clusters(code, n_groups, weights, rngs, clusters)
        return
    assert weights is not None
    order = np.argsort(code, kind="stable")
    sizes = np.bincount(code, minlength=n_groups)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    for rng in rngs:
        donors = np.arange(len(code))
        u = rng.random(len(code))
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            rows = order[start : start + size]
            total = float(weights[rows].sum())
            own = np.zeros(size) if fixed_points else own_weights(weights[rows])
            if size == 0 or (total - own <= 0).any():
                continue
            # Inverse of the cumulative weights, leaving out the row's own.
            ends = np.cumsum(weights[rows])
            point = u[rows] * (total - own)
            starts_of_rows = ends - weights[rows]
            point = np.where(point >= starts_of_rows, point + own, point)
            donors[rows] = rows[np.minimum(np.searchsorted(ends, point, side="right"), size - 1)]
        yield donors


def _donors_of_other_clusters(
    code: Codes, n_groups: int, weights: Floats | None, rngs: Iterable[np.random.Generator], clusters: Rows
) -> Iterator[Rows]:
    order = np.lexsort((clusters, code))  # rows of a cluster are next to each other
    sizes = np.bincount(code, minlength=n_groups)
    segments = [rows for rows in np.split(order, np.cumsum(sizes)[:-1]) if len(rows) and np.ptp(clusters[rows])]
    for rng in rngs:
        donors, u = np.arange(len(code)), rng.random(len(code))
        start = rng.random()
        for rows in segments:
            share = u[rows]
            if weights is None:  # one in each of as many equal intervals as there are rows
                share = (np.argsort(np.argsort(share)) + start) / len(rows)
            ends = np.cumsum(np.ones(len(rows)) if weights is None else weights[rows])
            last = np.flatnonzero(np.diff(clusters[rows], append=-1))  # of each cluster
            high = np.repeat(ends[last], np.diff(last, prepend=-1))
            low = np.repeat(np.concatenate(([0.0], ends[last[:-1]])), np.diff(last, prepend=-1))
            # Inverse of the cumulative weights, leaving out those of the row's cluster.
            point = share * (ends[-1] - (high - low))
            point = np.where(point >= low, np.maximum(point + (high - low), high), point)
            # Rounding beyond the last row: the last row of another cluster.
            at = np.searchsorted(ends, point, side="right")
            at = np.where(at < len(rows), at, np.where(high < ends[-1], len(rows) - 1, last[-2]))
            donors[rows] = rows[at]
        yield donors


def shuffle_within(cells: npt.NDArray[Any], rng: np.random.Generator, *, fixed_points: bool = False) -> Rows:
    """Return a random donor of the same cell for each row, each row being donor once.

    The rows of a cell are put in random order, and each receives the value of the next; a row alone keeps its own.
    With `fixed_points` it is a plain random permutation.
    """
    shuffled = rng.permutation(len(cells))
    shuffled = shuffled[np.argsort(cells[shuffled], kind="stable")]
    donors = np.empty_like(shuffled)
    if fixed_points:
        donors[np.argsort(cells, kind="stable")] = shuffled
        return donors
    ends = np.flatnonzero(np.diff(cells[shuffled], append=-1))
    starts = np.concatenate(([0], ends[:-1] + 1))
    following = np.arange(1, len(cells) + 1)
    following[ends] = starts
    donors[shuffled] = shuffled[following]
    return donors


def _by_first_row(code: Codes, n_groups: int) -> list[int]:
    """Return the subgroups in the order of their first rows; empty ones come last.

    Subgroup numbers depend on the order of levels, which differs between containers; draws must not depend on it.
    """
    if n_groups == 1:
        return [0]
    first = np.full(n_groups, len(code))
    for n in (*_HEADS, len(code)):
        head = code[:n]
        # Backwards: of several values assigned to one position the last one remains.
        first[head[::-1]] = np.arange(len(head))[::-1]
        if (first < len(code)).all():
            break
    ranked: list[int] = np.argsort(first, kind="stable").tolist()
    return ranked


def _random_order(code: Codes, n_groups: int, rng: np.random.Generator) -> Rows:
    """Return the rows sorted by subgroup, in random order within each."""
    order = rng.permutation(len(code))
    if n_groups == 1:
        return order
    # NumPy sorts small integers by counting, which is several times as fast.
    small = code.astype(np.min_scalar_type(n_groups - 1)) if n_groups <= 65536 else code
    return order.take(np.argsort(small.take(order), kind="stable"))


def _shifts(population: npt.NDArray[np.intp], rng: np.random.Generator, n_repeats: int) -> npt.NDArray[np.intp]:
    """Return, for each repeat and subgroup, a number in 0 .. population - 1, drawn without replacement.

    Repeats are drawn one after the other, so that the first ones do not depend on the number of repeats.
    """
    u = rng.random((n_repeats, len(population)))
    shifts = np.zeros(u.shape, dtype=np.intp)
    for k, size in enumerate(population.tolist()):
        if size > 1:
            shifts[:, k] = _without_replacement(u[:, k].tolist(), size)
    return shifts


def _without_replacement(u: list[float], size: int) -> list[int]:
    """Return the first elements of repeated Fisher-Yates shuffles."""
    drawn: list[int] = []
    moved: dict[int, int] = {}
    for number in u:
        at = len(drawn) % size
        if at == 0:
            moved = {}
        index = at + int(number * (size - at))
        drawn.append(moved.get(index, index))
        moved[index] = moved.get(at, at)
    return drawn
