"""Best split point of a selected column, and refined split points of a grown tree.

A split that sends rows with weight m of n to the left has d = sum of their centred scores, variance
[sum (s - sbar)(s - sbar)' / n] m (n - m) / (n - 1) and statistic d' V^+ d. With whitened scores this is
|d|^2 (n - 1) / (m (n - m)). Ties go to the first split, in ascending order of the values, or of the partitions of
levels as binary numbers whose lowest bit is the second level present.

The test statistic finds the right column, but its split point is imprecise: it compares scores of the undivided node.
Once all subgroups are known, `refine_split_points` moves each split point to where the rows are most likely, each side
under the (normal) distributions of the subgroups below it. This reduces the number of rows near a split point that are
on the wrong side and would receive unrealistic values.

`shorten_split_points` gives rules that are easy to read: a split point with many digits moves to a shorter number that
separates the same training rows. Trees of `subgrove.trees` keep their split points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.encode import first_axis
from subgrove._native import loader
from subgrove.trees.nodes import Node, Split, goes_left
from subgrove.trees.target_scores import Histogram
from subgrove.trees.training import Training, ascending
from subgrove.trees.tree import Tree

MAX_ENUMERATED = 12  # number of levels up to which all partitions are tried
_TIE = 1e-10  # above the rounding error of fitted scores
_MAX_LEAVES = 8  # number of leaves up to which split points are refined; in larger trees each matters little
READABLE = 5
"""Significant digits up to which a rule is easy to read."""
_FEWEST = 4  # significant digits of a shortened split point: a year keeps all of its digits
_PRECISE = 12  # significant digits beyond which there is only rounding error
_TIMES = tuple(each * 1e6 for each in (86_400, 3_600, 60, 1))  # microseconds of a day, an hour, a minute, a second
_MIN_SPREAD = 1e-3  # minimum standard deviation of a subgroup, as a share of that of all rows


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """Split point: values up to `threshold` go left (None: all observed values), or the levels `left`."""

    statistic: float
    threshold: float | None = None
    left: tuple[int, ...] = ()
    missing_left: bool = False

    def split(self, column: ColumnInfo) -> Split:
        """Return the split of a column at this point."""
        if not column.is_nominal:
            return Split(column.name, column.kind, self.threshold, missing="left" if self.missing_left else "right")
        codes = range(len(column.levels) + 1)  # the code after the last level stands for missing values
        left, right = (
            tuple(column.levels[code] for code in codes[:-1] if (code in self.left) == is_left)
            for is_left in (True, False)
        )
        return Split(
            column.name, "nominal", levels=(left, right), missing="left" if codes[-1] in self.left else "right"
        )


def best_splits(
    values: Floats, order: Rows, stacked: Floats, sizes: Rows, n: Floats, least: Floats
) -> list[SplitPoint | None]:
    """Return the best split point of each node of a block in its column without missing values.

    Parameters
    ----------
    values : float array (nodes, m)
        Infinite for padding.
    order : int array (nodes, m)
        Positions of each node in ascending order of its values.
    stacked : float array (nodes, q + 1, m)
        Whitened scores and, last, weights; 0 for padding.
    sizes : int array (nodes,)
        Number of rows before padding.
    n, least : float array (nodes,)
        Weight of the node, and minimum weight of a child.
    """
    q = stacked.shape[1] - 1
    if loader.tree_fit is None or q > loader.MAX_COEFFICIENTS:
        best, at = _scan(order, values, stacked, n, least)
    else:
        best, at = np.empty(len(values)), np.empty(len(values))
        floats = (np.ascontiguousarray(each) for each in (values, stacked, sizes.astype(np.float64), n, least))
        loader.tree_fit.scan(np.ascontiguousarray(order, dtype=np.int64), *floats, q, *values.shape, best, at)
    points: list[SplitPoint | None] = []
    for k, (statistic, place) in enumerate(zip(best.tolist(), at.tolist(), strict=True)):
        points.append(None if place < 0 else SplitPoint(statistic, threshold=float(values[k, order[k, int(place)]])))
    return points


def _scan(order: Rows, values: Floats, stacked: Floats, n: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Return the statistic of the best split of each node and its sorted position; -1 if none is admissible."""
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


def best_column_splits(
    values: Floats, order: npt.NDArray[Any], stacked: Floats, n: float, least: float
) -> list[SplitPoint | None]:
    """Return the best split point of one node in each of several columns.

    Missing values are tried on both sides of each split point, and alone against all others.

    Parameters
    ----------
    values : float array (columns, m)
        NaN where missing.
    order : int array (columns, m)
        Positions in ascending order of each column, missing values last.
    stacked : float array (q + 1, m)
        Whitened scores and, last, weights.
    n, least : float
        Weight of the node, and minimum weight of a child.
    """
    n_columns, m = values.shape
    missing = np.isnan(values)
    n_missing = missing.sum(axis=1)
    partial = np.flatnonzero(n_missing)
    if partial.size:
        # A column with missing values is searched twice: with these above all other values, and below them.
        below = np.where(missing[partial], -np.inf, values[partial])
        values = np.concatenate([np.where(missing, np.inf, values), below])
        missing_first = (np.arange(m) - n_missing[partial, None]) % m
        order = np.concatenate([order, np.take_along_axis(order[partial], missing_first, axis=1)])
    scores = np.broadcast_to(stacked, (len(values), *stacked.shape))
    points = best_splits(values, order, scores, *(np.full(len(values), each) for each in (m, n, least)))
    for at, other in zip(partial, points[n_columns:], strict=True):
        point, last = points[at], m - 1 - n_missing[at]
        if point is not None and point.threshold == values[at, order[at, last]]:
            points[at] = replace(point, threshold=None)  # the missing values alone
        if other is not None and (point is None or other.statistic > point.statistic * (1 + _TIE)):
            points[at] = replace(other, missing_left=True)
    return points[:n_columns]


def best_level_split(sums: Floats, counts: Floats, n: float, least: float) -> SplitPoint | None:
    """Return the best split of a node on a nominal column, from whitened scores (q, levels) and weights by level."""
    present = np.flatnonzero(counts > 0)
    if len(present) < 2:
        return None
    sums, counts = sums[:, present], counts[present]
    few = len(present) <= MAX_ENUMERATED
    right = _partitions(len(present)) if few else _splits_in_order(sums, counts)
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
    """Return all partitions of levels with the first one on the left, as rows of 0 and 1 in binary order."""
    numbers = np.arange(1, 2 ** (levels - 1))
    bits = (numbers[:, None] >> np.arange(levels - 1)) & 1
    return np.concatenate([np.zeros((len(numbers), 1)), bits], axis=1).astype(np.float64)


def order_of_levels(sums: Floats, weight: Floats) -> Rows:
    """Order levels by their mean, or along the first principal axis of their means if those are vectors.

    For a scalar mean, the best split is one of this order (Fisher 1958). For vectors it is close to the best
    (Coppersmith, Hong and Hosking 1999).
    """
    means: Floats = sums / weight
    key = means[0] if len(means) == 1 else first_axis((means * np.sqrt(weight)).T) @ means
    ascending = np.argsort(key, kind="stable")
    # Levels whose means differ by rounding only keep their order.
    step = np.diff(key[ascending], prepend=key[ascending[0]]) > _TIE * np.abs(key).max()
    rank = np.empty_like(ascending)
    rank[ascending] = np.cumsum(step)
    return np.argsort(rank, kind="stable")


def _splits_in_order(sums: Floats, counts: Floats) -> Floats:
    """Return the splits of the ordered levels, as rows of 0 (left) and 1 (right)."""
    order = order_of_levels(sums, counts)
    right = np.ones((len(order) - 1, len(order)))
    for cut in range(len(order) - 1):
        right[cut, order[: cut + 1]] = 0.0
    # The first level present is on the left, as in the enumeration.
    right[right[:, 0] == 1] = 1 - right[right[:, 0] == 1]
    return right


def refine_split_points(tree: Tree, training: Training, least: int) -> Tree:
    """Return the tree with refined numeric split points; columns and nominal splits do not change.

    Parameters
    ----------
    tree : Tree
        Tree of one numeric target.
    training : Training
        Rows it was grown on, without weights.
    least : int
        Minimum number of rows of a subgroup; the tree is returned unchanged if a subgroup would have fewer.
    """
    movable = [node for node in tree.nodes if node.split is not None and _can_move(node.split)]
    if not movable or len(tree.leaves) > _MAX_LEAVES:
        return tree
    refiner = _SplitPointRefiner(tree, training, least)
    refiner.refine(tree.nodes[0], np.arange(training.n_rows))
    leaf = refiner.leaf_of_rows()
    sizes = np.bincount(leaf, minlength=len(tree.leaves))
    return tree if sizes.min() < least else refiner.refined_tree(leaf)


def _can_move(split: Split) -> bool:
    return split.kind == "numeric" and split.threshold is not None and not split.strict


class _SplitPointRefiner:
    """A tree whose split points are refined one after the other, from the root down."""

    def __init__(self, tree: Tree, training: Training, least: int) -> None:
        self.tree, self.training, self.least = tree, training, least
        self.splits = {node.id: node.split for node in tree.nodes if node.split is not None}
        self.left = {id_: self._goes_left(split) for id_, split in self.splits.items()}
        x: Floats = training.values
        leaf = self.leaf_of_rows()
        counts = np.maximum(np.bincount(leaf, minlength=len(tree.leaves)), 1)
        mean = np.bincount(leaf, weights=x, minlength=len(counts)) / counts
        spread = np.sqrt(np.bincount(leaf, weights=(x - mean[leaf]) ** 2, minlength=len(counts)) / counts)
        spread = np.maximum(spread, _MIN_SPREAD * float(x.std()))
        log_density = -0.5 * ((x - mean[:, None]) / spread[:, None]) ** 2 - np.log(spread)[:, None]
        # Log-density of each row in the subgroup that it would reach below a node. Split points below a node move after
        # its own, so these are valid when they are used.
        self.log_density = self._below({node.id: line for node, line in zip(tree.leaves, log_density, strict=True)})

    def _below(self, of_leaves: dict[int, Any]) -> dict[int, npt.NDArray[Any]]:
        """Return, for each node, the value of the leaf that each row would reach below it."""
        of_nodes = dict(of_leaves)
        for node in reversed(self.tree.nodes):  # children come after their parents
            if node.children is not None:
                of_nodes[node.id] = np.where(self.left[node.id], *(of_nodes[child] for child in node.children))
        return of_nodes

    def leaf_of_rows(self) -> Rows:
        """Return the number of the leaf of each row."""
        return self._below({node.id: number for number, node in enumerate(self.tree.leaves)})[1]

    def refine(self, node: Node, rows: Rows) -> None:
        """Refine the split point of a node, then those below it."""
        if node.children is None:
            return
        split = self.splits[node.id]
        if _can_move(split):
            self.splits[node.id] = split = self._moved(node.children, split, rows)
            self.left[node.id] = self._goes_left(split)
        left = self.left[node.id][rows]
        for child, own in zip(node.children, (rows[left], rows[~left]), strict=True):
            self.refine(self.tree.nodes[child - 1], own)

    def _moved(self, children: tuple[int, int], split: Split, rows: Rows) -> Split:
        values = self.training.table.values(split.column)[rows]
        known = ~np.isnan(values)
        if not known.all():
            rows, values = rows[known], values[known]
        below, above = children if split.below == "left" else children[::-1]
        gain = self.log_density[below][rows] - self.log_density[above][rows]
        order = ascending(values)
        ordered, total = values[order], np.cumsum(gain[order])
        allowed = np.flatnonzero(ordered[1:] > ordered[:-1])
        allowed = allowed[(allowed >= self.least - 1) & (allowed < len(rows) - self.least)]
        if not len(allowed):
            return split
        best = int(allowed[np.argmax(total[allowed])])
        low, high = float(ordered[best]), float(ordered[best + 1])
        middle = low / 2 + high / 2
        return replace(split, threshold=middle if low <= middle < high else low)

    def _goes_left(self, split: Split) -> npt.NDArray[np.bool_]:
        """Return whether each row would go left."""
        return goes_left(split, self.tree._info[split.column], self.training.table.values(split.column))

    def refined_tree(self, leaf: Rows) -> Tree:
        """Return the tree with the new split points and updated counts."""
        place = np.array([node.id - 1 for node in self.tree.leaves], dtype=np.intp)
        parents = [None if node.parent is None else node.parent - 1 for node in self.tree.nodes]
        counts = Histogram.of(self.tree.target, self.training.values).node_counts(place[leaf], parents, None)
        nodes = [
            replace(node, split=self.splits.get(node.id), n=float(line.sum()), counts=line)
            for node, line in zip(self.tree.nodes, counts, strict=True)
        ]
        return replace(self.tree, nodes=tuple(nodes))


def shorten_split_points(tree: Tree, training: Training, readable: int = READABLE) -> Tree:
    """Return the tree with split points of few digits (dates: whole days) that separate the same training rows.

    Parameters
    ----------
    tree : Tree
    training : Training
        Rows it was grown on.
    readable : int
        Number of significant digits up to which a split point stays as it is.
    """
    nodes = []
    for node, _, values in tree._route(training.table):
        split = node.split
        if split is not None and split.kind == "numeric" and split.threshold is not None:
            known, info = values[~np.isnan(values)], tree._info[split.column]
            node = replace(node, split=_shortened(split, info, known, readable))
        nodes.append(node)
    return replace(tree, nodes=tuple(nodes))


def _shortened(split: Split, info: ColumnInfo, values: Floats, readable: int) -> Split:
    """Return the split at the shortest number between the values next to it, as near as possible to where it is."""
    at = float(split.threshold or 0.0)
    below = values < at if split.strict else values <= at
    if below.all() or not below.any():
        return split
    low, high = float(values[below].max()), float(values[~below].min())
    for one in _dates_near(at) if info.is_date or info.is_duration else _numbers_near(at, readable):
        if low < one <= high if split.strict else low <= one < high:
            return replace(split, threshold=one)
    return split


def _numbers_near(at: float, readable: int) -> Iterator[float]:
    """Yield the number if it has few digits, then the nearest numbers with few digits, then those with more."""
    exact = Decimal(repr(at))
    without_noise = Context(prec=_PRECISE).plus(exact)
    if len(without_noise.normalize().as_tuple().digits) <= readable:
        yield float(without_noise)
    for digits in range(_FEWEST, 18):
        for rounding in (ROUND_HALF_EVEN, ROUND_CEILING, ROUND_FLOOR):
            yield float(Context(prec=digits, rounding=rounding).plus(exact))


def _dates_near(at: float) -> Iterator[float]:
    for unit in _TIMES:
        yield from (float(rounded(at / unit) * unit) for rounded in (np.round, np.ceil, np.floor))
