"""Expectations of losses over all values that rows may receive, for all columns in one pass over the trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._models.tree_ensemble.places import ColumnPlaces, Places
from subgrove._models.tree_ensemble.steps import StepBlock, StepFunctions, in_threads, kernel

_NO_DONORS, _TABLE, _POOL = range(3)  # kinds of the kernel
KERNEL_LOSSES = {"squared_error": 0, "absolute_error": 1, "log_loss": 2, "brier": 3}
"""Numbers of the losses that the kernel computes."""


class BlockLosses(Protocol):
    """Losses at the steps of a block of rows."""

    def __call__(self, block: StepBlock, steps: Floats, pointers: Rows) -> tuple[list[Floats], list[Floats]]:
        """Return the increase of each loss, and the shift of each prediction, at steps; `pointers` are by row."""


@dataclass(frozen=True, eq=False)
class PlaceWeights:
    """Weights of the places of a column in each subgroup.

    Attributes
    ----------
    group : int array (n,)
        Subgroup of each row.
    weights : float array (subgroups, places + 2)
        Weights; the last is that of the missing value.
    own : float array (n,) or float
        Weight of each row that is not among its own donors.
    """

    group: Codes
    weights: Floats
    own: Floats | float = 0.0

    def shares(self, rows: slice) -> Floats:
        """Return one over the sum of the weights of the donors of rows; 0 without donors."""
        mass = self.weights.sum(axis=1)[self.group[rows]]
        mass -= self.own if isinstance(self.own, float) else self.own[rows]
        return np.where(mass > 0, 1.0 / np.where(mass > 0, mass, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class MemberPool:
    """Members of subgroups, all with the same probability, of which a row receives a value.

    Attributes
    ----------
    group : int array (n,)
        Subgroup of each row.
    leaf, keys : arrays (m,)
        Subgroup and key of each member. Without `base` a key is a place.
    n_groups : int
        Number of subgroups.
    cut, bound : float arrays (places + 1), or None
        Largest sum of base and scaled key, and largest value, of which the place is below each place.
    base, spread, low, high : float arrays (n,), or None
        Of each row: the value is base + spread * key, from low to high.
    """

    group: Codes
    leaf: Codes
    keys: Floats
    n_groups: int
    cut: Floats | None = None
    bound: Floats | None = None
    base: Floats | None = None
    spread: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True, eq=False)
class ColumnExpectation:
    """Expectation of one column over received values.

    Attributes
    ----------
    increase : float array (L, n)
        Mean of the increases.
    shift : float array (n, C)
        Mean shift of the predictions.
    received : float array (L, subgroups, places + 2), or (L, m)
        Sum over rows (times their weights) of the increase at each place, or by each member.
    """

    increase: Floats
    shift: Floats
    received: Floats


@dataclass(eq=False)
class ExpectedLosses:
    """Expectations of the losses of rows over the values that columns receive, in one pass over the trees.

    Attributes
    ----------
    steps : StepFunctions
        Step functions of the rows.
    donors : mapping
        Column -> donors of the rows.
    losses : BlockLosses
        Losses and shifts of predictions.
    n_losses, n_shifts : int
        Their numbers.
    weights : float array (n,) or None
        Weights of the rows, in sums by donor.
    """

    steps: StepFunctions
    donors: Mapping[int, PlaceWeights | MemberPool]
    losses: BlockLosses
    n_losses: int
    n_shifts: int
    weights: Floats | None

    def __post_init__(self) -> None:
        """Collect the arguments of the kernel for the donors of all columns."""
        p = self.steps.n_columns
        self.kind, self.n_groups, self.first = np.zeros(p, np.uint8), np.ones(p, np.int64), np.zeros(p, np.int64)
        self.cut, self.bound = np.zeros(self.steps.slots), np.zeros(self.steps.slots)
        self.orders: dict[int, tuple[int, Rows]] = {}
        tables, keys, pointers = [], [], [np.zeros(1, dtype=np.int64)]
        n_cells = n_keys = n_pools = 0
        for j, one in self.donors.items():
            column = self.steps.columns[j]
            if isinstance(one, PlaceWeights):
                self.kind[j], self.n_groups[j], self.first[j] = _TABLE, len(one.weights), n_cells
                cumulated = np.zeros(one.weights.shape)
                np.cumsum(one.weights[:, : column.n_places], axis=1, out=cumulated[:, 1 : column.n_places + 1])
                cumulated[:, -1] = one.weights[:, -1]
                tables.append(cumulated.ravel())
                n_cells += cumulated.size
                continue
            self.kind[j], self.n_groups[j], self.first[j] = _POOL, one.n_groups, n_pools
            order = np.lexsort((one.keys, one.leaf))
            self.orders[j] = (n_keys, order)
            sizes = np.bincount(one.leaf, minlength=one.n_groups)
            pointers.append(n_keys + np.cumsum(sizes))
            keys.append(one.keys[order])
            n_keys += len(order)
            n_pools += one.n_groups
            slots = slice(self.steps.starts[j], self.steps.starts[j] + column.n_places + 1)
            places = np.arange(column.n_places + 1) - 0.5
            self.cut[slots] = places if one.cut is None else one.cut
            self.bound[slots] = places if one.bound is None else one.bound
        self.cumulated = np.concatenate(tables) if tables else np.zeros(0)
        self.keys = np.concatenate(keys) if keys else np.zeros(0)
        of_columns = (self.kind, self.n_groups, self.first)
        pools = (np.concatenate(pointers), n_pools, self.keys, n_keys)
        bounds = (self.cut, self.bound)
        self.kernel = kernel.donors(self.steps.kernel, *of_columns, self.cumulated, n_cells, *bounds, *pools)

    def _of_rows(self, share: slice) -> tuple[npt.NDArray[np.int32], list[Any]]:
        """Return the subgroups of some rows, and their bases, spreads and bounds (None without any)."""
        shape = (share.stop - share.start, len(self.kind))
        group = np.zeros(shape, dtype=np.int32)
        rows: list[Any] = [None] * 4
        for j, one in self.donors.items():
            group[:, j] = one.group[share]
            if not isinstance(one, MemberPool) or one.base is None:
                continue
            if rows[0] is None:
                rows = [np.full(shape, value) for value in (0.0, 1.0, -np.inf, np.inf)]
            for array, own in zip(rows, (one.base, one.spread, one.low, one.high), strict=True):
                array[:, j] = 0.0 if own is None else own[share]
        return group, rows

    def of_columns(self, n_threads: int, dtype: Any) -> dict[int, ColumnExpectation]:
        """Return the expectation of each column, the same for any number of threads; shifts have the dtype."""
        # One array of all columns each: many of a few megabytes would leave holes in the memory of the process.
        n, n_rows = len(self.donors), self.steps.n_rows
        means = dict(zip(self.donors, np.empty((n, self.n_losses, n_rows)), strict=True))
        shifts = dict(zip(self.donors, np.empty((n, n_rows, self.n_shifts), dtype), strict=True))
        received, pooled = self._no_sums()
        work = partial(self._share_of_rows, means, shifts)
        for by_place, by_member in in_threads(work, self.steps.shares(), n_threads):
            received += by_place
            pooled += by_member
        return {j: ColumnExpectation(means[j], shifts[j], self._received(j, received, pooled)) for j in self.donors}

    def _no_sums(self) -> tuple[Floats, Floats]:
        """Return zeros for the sums of increases by place and by member."""
        return np.zeros((self.n_losses, len(self.cumulated))), np.zeros((self.n_losses, len(self.keys)))

    def _share_of_rows(
        self, found: dict[int, Floats], found_shifts: dict[int, Floats], share: slice
    ) -> tuple[Floats, Floats]:
        """Write the means of some rows; return the sums of their increases by place and by member."""
        n_losses, n_shifts, p = self.n_losses, self.n_shifts, self.steps.n_columns
        received, pooled = self._no_sums()
        group, of_rows = self._of_rows(share)
        means = np.empty((max(n_losses, n_shifts), 2, share.stop - share.start, p))
        for block in self.steps.blocks(share):
            n = len(block.margins)
            own = slice(block.rows.start - share.start, block.rows.stop - share.start)
            increases, shifts = self.losses(block, block.steps, block.row_pointers(p))
            missing: tuple[list[Any], list[Any]] = ([None] * n_losses, [None] * n_shifts)
            if block.missing is not None:
                missing = self.losses(block, block.missing, np.arange(n + 1) * p)
            some = [None if values is None else values[own] for values in of_rows]
            weight = None if self.weights is None else np.ascontiguousarray(self.weights[block.rows])
            for at in range(len(means)):
                loss, other = min(at, n_losses - 1), min(at, n_shifts - 1)
                mean, mean_shift = means[loss, 0, own], means[other, 1, own]
                sums = (received[at], pooled[at]) if at < n_losses else (None, None)
                kernel.means(
                    self.kernel, n, group[own], *some, weight, block.pointers, block.starts, len(block.steps),
                    increases[loss], shifts[other], missing[0][loss], missing[1][other], mean, mean_shift, *sums,
                )  # fmt: skip
        for j, one in self.donors.items():
            scale: Any = one.shares(share) if isinstance(one, PlaceWeights) else 1.0
            found[j][:, share] = means[:n_losses, 0, :, j] * scale
            found_shifts[j][share] = (means[:n_shifts, 1, :, j] * scale).T
        return received, pooled

    def _received(self, j: int, received: Floats, pooled: Floats) -> Floats:
        """Return the sums of a column by place, or by member in the order of the members."""
        one = self.donors[j]
        if isinstance(one, PlaceWeights):
            cells = slice(self.first[j], self.first[j] + one.weights.size)
            sums: Floats = received[:, cells].reshape(-1, *one.weights.shape).copy()
            if not self.steps.is_dense:  # of differences
                n = self.steps.columns[j].n_places
                np.cumsum(sums[..., :n], axis=2, out=sums[..., :n])
            return sums
        first, order = self.orders[j]
        sums = np.empty((len(pooled), len(order)))
        leaf = one.leaf[order]
        running = np.cumsum(pooled[:, first : first + len(order)], axis=1)
        starts = np.flatnonzero(np.diff(leaf, prepend=-1))
        earlier = np.where(starts > 0, running[:, starts - 1], 0.0)
        sums[:, order] = running - earlier[:, np.searchsorted(starts, np.arange(len(order)), side="right") - 1]
        return sums


class KernelLosses:
    """One of the losses that the kernel computes, of an ensemble with one margin.

    Parameters
    ----------
    loss : int
        Number of the loss.
    y : float array (n,)
        Target; 0 and 1 for classes.
    """

    def __init__(self, loss: int, y: npt.NDArray[Any]) -> None:
        self.loss, self.y = loss, np.ascontiguousarray(y, dtype=np.float64)

    def __call__(self, block: StepBlock, steps: Floats, pointers: Rows) -> tuple[list[Floats], list[Floats]]:
        """Return the increase of the loss, and the shift of the prediction, at steps."""
        increase, shift = np.empty(len(steps)), np.empty(len(steps))
        y, margins = self.y[block.rows], np.ascontiguousarray(block.margins[:, 0])
        kernel.increase(self.loss, margins, y, len(y), pointers, steps, len(steps), increase, shift)
        return [increase], [shift]


def place_weights(column: ColumnPlaces, places: Places, code: Codes, n_groups: int, weights: Floats | None) -> Floats:
    """Return the weights of the places of donors by subgroup, (subgroups, places + 2)."""
    width = column.n_places + 2
    cells = code.astype(np.intp) * width + places
    return np.bincount(cells, weights=weights, minlength=n_groups * width).astype(np.float64).reshape(n_groups, width)
