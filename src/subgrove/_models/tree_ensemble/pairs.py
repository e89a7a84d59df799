"""Partial dependence of tree ensembles on single columns and on pairs of columns, exact over all rows.

A leaf adds its value times the share of rows that satisfy its conditions on all columns but the one or two at hand,
where these are within its bounds. So the partial dependence on a pair is a sum of rectangles, one for each leaf with
both columns on its path; the other leaves add functions of one column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._models.tree_ensemble.ensemble import require
from subgrove._models.tree_ensemble.places import Places, placed_nodes
from subgrove._models.tree_ensemble.steps import StepFunctions
from subgrove._native.loader import tree_pairs

_MAX_NODE_COLUMNS = 1 << 25  # bounds of nodes that are stored
_MAX_COUNTS = 1 << 26

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Leaves:
    """Leaves of all trees.

    Attributes
    ----------
    on_path : bool array (L, p)
        Columns on the path of each leaf.
    low, high : int arrays (L, p)
        Places of numbers in the leaf: from `low`, below `high`.
    missing : bool array (L, p)
        Whether missing values are in the leaf.
    levels : dict
        Column of levels -> which of them are in the leaf, (L, places).
    value : float array (L, K)
        Value that the leaf adds to each margin.
    """

    on_path: Bools
    low: Places
    high: Places
    missing: Bools
    levels: dict[int, Bools]
    value: Floats


class PairDependence:
    """Partial dependence on columns and pairs of columns, over some rows.

    Parameters
    ----------
    steps : StepFunctions
        The ensemble and its rows.
    rows : int array
        Rows to average over.
    points : int array
        Rows at whose values the functions are evaluated.
    """

    def __init__(self, steps: StepFunctions, rows: Rows, points: Rows) -> None:
        require(tree_pairs is not None, "the compiled part is not installed")
        self.n_rows = len(rows)
        arguments, _ = placed_nodes(steps.ensemble, steps.columns, any_missing=True)
        self._leaves = _read_leaves(arguments)
        self._counts, self._slots = _count(arguments, self._leaves.on_path, steps.places[rows].astype(np.int32))
        self._position = self._leaves.on_path.cumsum(axis=1) - 1
        at = steps.places[points].astype(np.int32)
        self._distinct, self._inverse = zip(*(np.unique(column, return_inverse=True) for column in at.T), strict=True)
        self._missing_place = [column.missing if column.cuts is not None else -1 for column in steps.columns]
        self._runs: dict[int, tuple[Rows, Rows, Rows]] = {}

    def single(self, column: int) -> Floats:
        """Return the centred partial dependence on a column at the points, (m, K)."""
        leaves = np.flatnonzero(self._leaves.on_path[:, column])
        return _centred(self._of_one(column, leaves, self._share(leaves, column)))

    def pairs(self, columns: Sequence[int]) -> Iterator[tuple[int, int, Floats, Floats]]:
        """Yield for each pair of columns the centred interaction and the centred joint partial dependence, (m, K).

        The interaction is the joint function without those of the single columns.
        """
        singles = {j: self.single(j) for j in columns}
        for at, j in enumerate(columns):
            for k in columns[at + 1 :]:
                leaves = np.flatnonzero(self._leaves.on_path[:, j] & self._leaves.on_path[:, k])
                difference = np.zeros_like(singles[j])
                if len(leaves):
                    difference = self._of_two(j, k, leaves)
                    for one in (j, k):
                        difference -= self._of_one(one, leaves, self._share(leaves, one))
                    difference = _centred(difference)
                yield j, k, difference, difference + singles[j] + singles[k]

    def _share(self, leaves: Rows, *columns: int) -> Floats:
        """Return the share of rows that satisfy all conditions of leaves on other columns than these."""
        start, d = self._slots[leaves], self._leaves.on_path[leaves].sum(axis=1)
        count = self._counts[start].astype(np.float64)
        places = [self._position[leaves, column] for column in columns]
        for place in places:
            count += self._counts[start + 1 + place]
        if len(places) == 2:
            a, b = np.minimum(*places), np.maximum(*places)
            count += self._counts[start + 1 + d + a * d - a * (a + 1) // 2 + b - a - 1]
        return count / self.n_rows

    def _of_one(self, column: int, leaves: Rows, share: Floats) -> Floats:
        """Return the sum over leaves of value times share, where the column is within the bounds of the leaf."""
        number, start, end = self._runs_of(column, leaves)
        added = self._leaves.value[leaves[number]] * share[number, None]
        size = len(self._distinct[column]) + 1
        steps = _sums(start, added, size) - _sums(end, added, size)
        return np.asarray(steps.cumsum(axis=0)[self._inverse[column]])

    def _of_two(self, j: int, k: int, leaves: Rows) -> Floats:
        """Return the sum over leaves of value times share, where both columns are within the bounds of the leaf."""
        share = self._share(leaves, j, k)
        (number_j, start_j, end_j), (number_k, start_k, end_k) = (self._runs_of(one, leaves) for one in (j, k))
        n_j, n_k = (np.bincount(number, minlength=len(leaves)) for number in (number_j, number_k))
        # All pairs of a run of the one and a run of the other column, in each leaf.
        n = n_j * n_k
        leaf = np.repeat(np.arange(len(leaves)), n)
        within = np.arange(len(leaf)) - np.repeat(np.cumsum(n) - n, n)
        at_j = (np.cumsum(n_j) - n_j)[leaf] + within // n_k[leaf]
        at_k = (np.cumsum(n_k) - n_k)[leaf] + within % n_k[leaf]
        added = self._leaves.value[leaves[leaf]] * share[leaf, None]
        shape = len(self._distinct[j]) + 1, len(self._distinct[k]) + 1
        total = np.zeros((shape[0] * shape[1], added.shape[1]))
        for (sign_j, first), (sign_k, second) in product(((1, start_j), (-1, end_j)), ((1, start_k), (-1, end_k))):
            total += sign_j * sign_k * _sums(first[at_j] * shape[1] + second[at_k], added, len(total))
        surface = total.reshape(*shape, -1).cumsum(axis=0).cumsum(axis=1)
        return np.asarray(surface[self._inverse[j], self._inverse[k]])

    def _runs_of(self, column: int, leaves: Rows) -> tuple[Rows, Rows, Rows]:
        """Return runs of consecutive distinct places in each leaf: the position of the leaf, start and end."""
        if column not in self._runs:
            self._runs[column] = self._all_runs(column)
        leaf, start, end = self._runs[column]
        position = np.full(len(self._leaves.value), -1)
        position[leaves] = np.arange(len(leaves))
        number = position[leaf]
        return number[number >= 0], start[number >= 0], end[number >= 0]

    def _all_runs(self, column: int) -> tuple[Rows, Rows, Rows]:
        """Return the runs of all leaves with the column on their path, in the order of the leaves."""
        own, distinct = np.flatnonzero(self._leaves.on_path[:, column]), self._distinct[column]
        if column in self._leaves.levels:
            inside = self._leaves.levels[column][own][:, distinct].astype(np.int8)
            edges = np.diff(inside, axis=1, prepend=0, append=0)
            (leaf, start), (_, end) = np.nonzero(edges > 0), np.nonzero(edges < 0)
            return own[leaf], start, end
        start, end = (distinct.searchsorted(bound[own, column]) for bound in (self._leaves.low, self._leaves.high))
        leaf = own
        if distinct[-1] == self._missing_place[column]:
            also = own[self._leaves.missing[own, column]]
            last = np.full(len(also), len(distinct) - 1)
            leaf, start, end = np.append(own, also), np.append(start, last), np.append(end, last + 1)
        kept = np.flatnonzero(start < end)
        kept = kept[np.argsort(leaf[kept], kind="stable")]
        return leaf[kept], start[kept], end[kept]


def _centred(values: Floats) -> Floats:
    return np.asarray(values - values.mean(axis=0))


def _sums(at: Rows, values: Floats, size: int) -> Floats:
    return np.stack([np.bincount(at, weights=column, minlength=size) for column in values.T], axis=1)


def _read_leaves(arguments: tuple[Any, ...]) -> _Leaves:
    """Return the leaves of placed nodes, level by level from the roots."""
    column, cut, child, roots, output, n_places, is_level, value, sets = arguments[:9]
    n, p, n_outputs, scale = len(column), len(n_places), arguments[14], arguments[17]
    require(n * p <= _MAX_NODE_COLUMNS, "it has too many nodes")
    on_path, missing = np.zeros((n, p), dtype=np.bool_), np.ones((n, p), dtype=np.bool_)
    low, high = np.zeros((n, p), dtype=np.int32), np.tile(n_places, (n, 1))
    levels = {int(j): np.ones((n, n_places[j]), dtype=np.bool_) for j in np.flatnonzero(is_level)}
    require(n * sum(each.shape[1] for each in levels.values()) <= 4 * _MAX_NODE_COLUMNS, "it has too many levels")
    nodes = roots[column[roots] >= 0]
    while len(nodes):
        own, left = column[nodes] >> 1, child[nodes]
        numeric = is_level[own] == 0
        for side in (0, 1):
            below = left + side
            for table in (on_path, missing, low, high, *levels.values()):
                table[below] = table[nodes]
            on_path[below, own] = True
            missing[below, own] &= (column[nodes] & 1) != side
            bound, at = (high, low)[side], (below[numeric], own[numeric])
            bound[at] = (np.minimum, np.maximum)[side](bound[at], cut[nodes[numeric]])
            for j, inside in levels.items():
                of_j = own == j
                inside[below[of_j]] &= (sets[cut[nodes[of_j]], : n_places[j]] != 0) != side
        nodes = np.concatenate([left, left + 1])
        nodes = nodes[column[nodes] >= 0]
    leaf = np.flatnonzero(column < 0)
    values = value * scale
    if n_outputs > 1 and values.shape[1] == 1:  # a tree adds to one margin
        tree = roots.searchsorted(leaf, side="right") - 1
        values = np.where(output[tree][:, None] == np.arange(n_outputs), values, 0.0)
    within = {j: inside[leaf] for j, inside in levels.items()}
    return _Leaves(on_path[leaf], low[leaf], high[leaf], missing[leaf], within, values)


def _count(arguments: tuple[Any, ...], on_path: Bools, places: Places) -> tuple[npt.NDArray[np.int32], Rows]:
    """Return counts of rows by leaf and violated columns, and the first count of each leaf."""
    column, cut, child, roots, _, n_places, is_level, _, sets = arguments[:9]
    depth = on_path.sum(axis=1)
    path_start = np.concatenate(([0], np.cumsum(depth)))
    slots = np.concatenate(([0], np.cumsum(1 + depth + depth * (depth - 1) // 2)))
    require(int(slots[-1]) <= _MAX_COUNTS, "it has too many leaves")
    path = np.nonzero(on_path)[1].astype(np.int32)
    counts = np.zeros(int(slots[-1]), dtype=np.int32)
    assert tree_pairs is not None
    tree_pairs.count(
        column, cut, child, roots, n_places, is_level, sets, np.ascontiguousarray(places), path_start, path, slots,
        counts, arguments[9], arguments[10], arguments[11], arguments[12], len(path), len(counts), arguments[15],
        arguments[16], len(places),
    )  # fmt: skip
    return counts, slots[:-1]
