"""Places: the values of each column as trees distinguish them, and the nodes of an ensemble in terms of places.

A column that is one number to the trees has a place for each cell between the thresholds of its nodes. A column of
categories, and one that becomes several inputs (one-hot codes), has a place for each of its values. The missing value
of a number has a place of its own: `n_places + 1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._models.tree_ensemble.ensemble import NotReadable, TreeEnsemble, require
from subgrove._models.tree_ensemble.inputs import TreeInputs

Places = npt.NDArray[np.integer[Any]]
_MAX_CELLS = 1 << 28  # of a table of nodes by levels


@dataclass(frozen=True, eq=False)
class ColumnPlaces:
    """Places of one column of the user's table.

    Attributes
    ----------
    inputs : tuple of int
        Inputs of the trees that are computed from it.
    n_places : int
        Number of places, without that of the missing value.
    cuts : float array or None
        Sorted thresholds; place k has values above cuts[k - 1], up to cuts[k]. None for levels.
    levels : float array (n_places, number of inputs)
        Inputs at each level; empty for numbers.
    """

    inputs: tuple[int, ...]
    n_places: int
    cuts: Floats | None
    levels: Floats

    @property
    def missing(self) -> int:
        """Place of the missing value of a number."""
        return self.n_places + 1

    def of(self, values: Floats) -> Places:
        """Return the places of inputs (m, number of inputs); raise `NotReadable` for a level that has no place."""
        if self.cuts is not None:
            if not self.inputs:
                return np.zeros(len(values), dtype=np.int32)
            column = values[:, 0]
            places = self.cuts.searchsorted(column, side="left").astype(np.int32)
            missing = np.isnan(column)
            return np.where(missing, np.int32(self.missing), places) if missing.any() else places
        codes = np.zeros(len(values), dtype=np.intp)
        known = np.zeros(len(self.levels), dtype=np.intp)
        for own, level in zip(values.T, self.levels.T, strict=True):
            distinct = np.unique(level)
            at = np.minimum(distinct.searchsorted(own), len(distinct) - 1)
            same = (distinct[at] == own) | (np.isnan(distinct[at]) & np.isnan(own))
            require(bool(same.all()), "a column has a level that it had not before")
            codes = codes * len(distinct) + at
            known = known * len(distinct) + distinct.searchsorted(level)
        order = np.argsort(known)
        at = np.minimum(known[order].searchsorted(codes), len(known) - 1)
        require(bool((known[order][at] == codes).all()), "a column has a level that it had not before")
        return order[at].astype(np.int32)


def _distinct_rows(values: Floats) -> Floats:
    """Return the distinct rows of a matrix; missing values are equal to each other."""
    codes = np.zeros(len(values), dtype=np.intp)
    for column in values.T:
        distinct, inverse = np.unique(column, return_inverse=True)
        codes = np.unique(codes * len(distinct) + inverse, return_inverse=True)[1]
    return values[np.unique(codes, return_index=True)[1]]


def column_places(ensemble: TreeEnsemble, inputs: TreeInputs, tables: Sequence[Floats]) -> tuple[ColumnPlaces, ...]:
    """Return the places of each column of the user's table; `tables` are the encoded rows that will be evaluated."""
    split = np.flatnonzero(ensemble.feature >= 0)
    order = split[np.argsort(ensemble.feature[split], kind="stable")]
    bounds = ensemble.feature[order].searchsorted(np.arange(ensemble.n_inputs + 1))
    found = []
    for own in inputs.columns:
        nodes = np.concatenate([order[bounds[k] : bounds[k + 1]] for k in own]) if own else order[:0]
        if not len(nodes) or (len(own) == 1 and (ensemble.category[nodes] < 0).all()):
            cuts = np.unique(ensemble.threshold[nodes])
            found.append(ColumnPlaces(own if len(nodes) else (), len(cuts) + 1, cuts, np.empty((0, 0))))
            continue
        levels = _distinct_rows(np.concatenate([_distinct_rows(table[:, list(own)]) for table in tables]))
        require(len(levels) * len(nodes) <= _MAX_CELLS, "a column has too many levels")
        found.append(ColumnPlaces(own, len(levels), None, levels))
    return tuple(found)


def placed_nodes(
    ensemble: TreeEnsemble, columns: Sequence[ColumnPlaces], *, any_missing: bool
) -> tuple[tuple[Any, ...], Floats]:
    """Return arguments of the kernel `tree_steps.ensemble`, and what its sums are added to.

    Nodes are in terms of places, children next to each other, with whole numbers as values of leaves.
    """
    order = _breadth_first(ensemble)
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    feature = ensemble.feature[order]
    leaf = feature < 0
    column_of = np.full(ensemble.n_inputs + 1, -1, dtype=np.int32)
    for j, column in enumerate(columns):
        column_of[list(column.inputs)] = j
    of_node = np.where(leaf, -1, 2 * column_of[feature] + ensemble.missing_left[order]).astype(np.int32)
    cut, sets = _cuts(ensemble, columns, order, feature)
    child = np.where(leaf, np.cumsum(leaf) - 1, place[ensemble.left[order]]).astype(np.int32)
    value, base, scale = _whole_numbers(ensemble, order[leaf])
    roots = place[ensemble.roots]
    n_places = np.array([one.n_places for one in columns], dtype=np.int32)
    is_level = np.array([one.cuts is None for one in columns], dtype=np.uint8)
    arrays = (of_node, cut, child, roots, np.ascontiguousarray(ensemble.output), n_places, is_level, value, sets)
    sizes = (len(order), len(roots), len(columns), *value.shape, ensemble.n_outputs, *sets.shape)
    return (*arrays, *sizes, scale, any_missing), base


def _breadth_first(ensemble: TreeEnsemble) -> Rows:
    """Return the nodes of each tree level by level, so that children are next to each other."""
    levels, trees = [ensemble.roots.astype(np.intp)], [np.arange(ensemble.n_trees)]
    while len(levels[-1]):
        split = ensemble.feature[levels[-1]] >= 0
        nodes = levels[-1][split]
        levels.append(np.column_stack([ensemble.left[nodes], ensemble.right[nodes]]).ravel().astype(np.intp))
        trees.append(np.repeat(trees[-1][split], 2))
    return np.concatenate(levels)[np.argsort(np.concatenate(trees), kind="stable")]


def _cuts(
    ensemble: TreeEnsemble, columns: Sequence[ColumnPlaces], order: Rows, feature: npt.NDArray[np.int32]
) -> tuple[Places, npt.NDArray[np.uint8]]:
    """Return the first place that goes right at each node, or for levels the row of a table of those that go left."""
    cut = np.zeros(len(order), dtype=np.int32)
    by_input = np.argsort(feature, kind="stable")
    bounds = feature[by_input].searchsorted(np.arange(ensemble.n_inputs + 1))
    width = max((one.n_places for one in columns if one.cuts is None), default=0)
    sets: list[npt.NDArray[np.uint8]] = []
    n_sets = 0
    for one in columns:
        for at, number in enumerate(one.inputs):
            nodes = by_input[bounds[number] : bounds[number + 1]]
            if one.cuts is not None:
                cut[nodes] = one.cuts.searchsorted(ensemble.threshold[order[nodes]]) + 1
                continue
            left = np.zeros((len(nodes), width), dtype=np.uint8)
            values = np.tile(one.levels[:, at], len(nodes))
            goes = ensemble.goes_left(np.repeat(order[nodes], one.n_places), values)
            left[:, : one.n_places] = goes.reshape(len(nodes), one.n_places)
            cut[nodes] = n_sets + np.arange(len(nodes))
            n_sets += len(nodes)
            sets.append(left)
    return cut, np.concatenate(sets) if sets else np.zeros((0, 0), dtype=np.uint8)


def _whole_numbers(ensemble: TreeEnsemble, leaves: Rows) -> tuple[npt.NDArray[np.int64], Floats, float]:
    """Return values of leaves as whole numbers, what is added to their sums, and the unit.

    Sums of whole numbers are exact in any order, so a row whose leaves do not change has a difference of exactly 0. The
    middle of the values of each tree is taken out first: some libraries put the mean of y into the first tree.
    """
    tree = ensemble.roots.searchsorted(leaves, side="right") - 1
    values = ensemble.value[leaves]
    starts = np.flatnonzero(np.diff(tree, prepend=-1))
    middle = (np.maximum.reduceat(values, starts) + np.minimum.reduceat(values, starts)) / 2
    values = values - middle[tree]
    base = ensemble.base.copy()
    if values.shape[1] == ensemble.n_outputs and ensemble.n_outputs > 1:
        base += middle.sum(axis=0)
    else:
        np.add.at(base, np.maximum(ensemble.output, 0), middle[:, 0])
    largest = float(np.maximum.reduceat(np.abs(values), starts).sum(axis=0).max())
    if not np.isfinite(largest):
        raise NotReadable("its values are too large")
    exponent = int(np.frexp(max(largest, 1e-300))[1]) - 59
    return np.rint(np.ldexp(values, -exponent)).astype(np.int64), base, float(np.ldexp(1.0, exponent))
