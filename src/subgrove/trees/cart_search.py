"""Search of CART: the split of a node with the largest reduction of a sum of squares.

Requirements this design meets:

- one arithmetic for both criteria. The weighted Gini impurity of a class label is the sum of squares of its
  indicator columns around their means, so regression has one column of numbers here and K classes have K.
  A split with weight A on one side and B on the other reduces it by  sum_k S_k^2 (A + B) / (A B),
  where S_k is the sum on one side of column k, centred at the mean of the node;
- all numeric columns are scanned at once. They are sorted once, at the root, for all features that share a table;
  children inherit the order;
- rounding has no influence. Gains that differ by no more than rounding are ties, and the first one wins, so neither
  the order of the rows nor weights in place of duplicated rows have an influence;
- a missing value is a category of its own, tried on both sides of each split point and alone against all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._data.table import ColumnInfo, Floats
from subgrove.trees.candidates import SortedTable
from subgrove.trees.nodes import NO_GAIN, ROUNDING
from subgrove.trees.split_points import MAX_ENUMERATED, order_of_levels
from subgrove.trees.splits import Side, Split, assign_unseen_values, goes_left
from subgrove.trees.training import Training

Rows = npt.NDArray[np.intp]
Booleans = npt.NDArray[np.bool_]

_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}


@dataclass(frozen=True, eq=False)
class CartTarget:
    """Target columns whose sum of squares is reduced.

    Attributes
    ----------
    columns : float array (K, n_rows)
        The target, or an indicator of each class. Two classes need one indicator.
    position : float array (n_rows,)
        The target, or the number of the class: the left child is the one with the smaller mean.
    """

    columns: Floats
    position: Floats

    @classmethod
    def of(cls, training: Training) -> CartTarget:
        """Return the target of a training sample."""
        position = training.values.astype(np.float64)
        if training.target.kind == "numeric":
            return cls(position[np.newaxis], position)
        classes = np.unique(position)
        indicated = classes[1:] if len(classes) == 2 else classes
        return cls((position == indicated[:, np.newaxis]).astype(np.float64), position)


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows of a node, also sorted by each numeric column.

    Attributes
    ----------
    rows : int array (n,)
        Positions in the training table.
    order : int array (p, n)
        The rows, ascending by each of the p numeric and ordered columns; missing values last.
    values : float array (p, n)
        Values of the columns in this order.
    """

    rows: Rows
    order: Rows
    values: Floats

    @classmethod
    def of(cls, training: Training) -> SortedRows:
        """Return all training rows."""
        columns = SortedTable.of(training.table, shared=False) if training.columns is None else training.columns
        return cls(np.arange(training.n_rows), *columns.sorted_numbers)

    def part(self, rows: Rows, n_rows: int) -> SortedRows:
        """Return a subset of the rows in the inherited order; `n_rows` is the size of the training table."""
        in_subset = np.zeros(n_rows, dtype=np.bool_)
        in_subset[rows] = True
        selected = in_subset[self.order]
        shape = (len(self.order), len(rows))
        return SortedRows(rows, self.order[selected].reshape(shape), self.values[selected].reshape(shape))


class SplitSearch:
    """Search for the best split of the nodes of a training sample.

    Parameters
    ----------
    training : Training
    response : Response
    min_samples_leaf : int
        Minimum weight of a child.
    """

    def __init__(self, training: Training, target: CartTarget, min_samples_leaf: int) -> None:
        self.training = training
        self.target = target
        self.min_samples_leaf = min_samples_leaf
        self.columns = tuple(zip(training.table.columns, training.table.positions(), strict=True))
        # Workspace: only the rows of the current node are written, so that no node costs as much as the whole sample.
        self._centred = np.empty_like(target.columns)

    def best(self, rows: SortedRows) -> Split | str:
        """Return the split with the largest reduction of the sum of squares, or the reason why there is none."""
        node = self._centre(rows)
        numeric = _NumericSplits.of(node)
        codes = self.training.table.codes
        nominal = {
            place: _NominalSplits.of(node, codes[rows.rows, place], len(info.levels))
            for info, place in self.columns
            if info.is_nominal
        }
        gains = np.array(
            [nominal[place].best if info.is_nominal else numeric.best[place] for info, place in self.columns]
        )
        if gains.max() == -np.inf:
            return "no admissible cut"
        if gains.max() <= NO_GAIN * node.sum_of_squares:
            return "complexity"
        info, place = self.columns[_first_best(gains)]
        split = nominal[place].split(info) if info.is_nominal else numeric.split(info, place)
        return self._finish(split, info, self._values(info, place, rows.rows), node)

    def goes_left(self, split: Split, rows: Rows) -> Booleans:
        """Return which rows a split sends to the left child."""
        info, place = self.columns[self.training.table.names.index(split.column)]
        return goes_left(split, info, self._values(info, place, rows))

    def _values(self, info: ColumnInfo, place: int, rows: Rows) -> npt.NDArray[Any]:
        table = self.training.table
        return np.asarray((table.codes if info.is_nominal else table.numbers)[rows, place])

    def _centre(self, rows: SortedRows) -> _CentredNode:
        columns = self.target.columns[:, rows.rows]
        weights = None if self.training.weights is None else self.training.weights[rows.rows]
        centred = columns - np.average(columns, axis=1, weights=weights)[:, np.newaxis]
        weighted = centred if weights is None else centred * weights
        self._centred[:, rows.rows] = weighted
        total = float(len(rows.rows) if weights is None else weights.sum())
        return _CentredNode(
            sorted=rows,
            scattered=self._centred,
            all_weights=self.training.weights,
            weighted=weighted,
            weights=np.ones(len(rows.rows)) if weights is None else weights,
            total=total,
            sum_of_squares=float((centred * weighted).sum()),
            # Sums of fractional weights may be off by rounding.
            least=self.min_samples_leaf * (1 - ROUNDING),
        )

    def _finish(self, split: Split, info: ColumnInfo, values: npt.NDArray[Any], node: _CentredNode) -> Split:
        """Order the children, and assign levels and missing values absent from the node."""
        left = goes_left(split, info, values)
        position = self.target.position[node.sorted.rows]
        weight_left, weight_right = node.weights[left].sum(), node.weights[~left].sum()
        mean_left = position[left] @ node.weights[left] / weight_left
        mean_right = position[~left] @ node.weights[~left] / weight_right
        # As in rpart, values below go right if both means are equal (possible for classes only).
        if mean_right - mean_left <= ROUNDING * np.ptp(position):
            split = _mirror(split)
            weight_left, weight_right = weight_right, weight_left
        return assign_unseen_values(split, info, values, "left" if weight_left >= weight_right else "right")


@dataclass(frozen=True, eq=False)
class _CentredNode:
    """A node with target columns centred at their means in it, times the weights."""

    sorted: SortedRows
    scattered: Floats  # (K, n_rows): by position in the training table
    all_weights: Floats | None
    weighted: Floats  # (K, n): by row of the node
    weights: Floats
    total: float
    sum_of_squares: float
    least: float

    def gains(self, squares: Floats, weight: Floats) -> Floats:
        """Return the reduction of the sum of squares by splits with a sum of S_k^2 and a weight on one side.

        It is -inf if a side is too small. `weight` may be one row for all rows of `squares`.
        """
        other = self.total - weight
        admissible = (weight >= self.least) & (other >= self.least)
        factor = np.divide(self.total, weight * other, out=np.zeros_like(weight), where=admissible)
        gains: Floats = squares * factor
        gains[np.broadcast_to(~admissible, gains.shape)] = -np.inf
        return gains


@dataclass(frozen=True, eq=False)
class _NumericSplits:
    """Gains of all splits on all numeric and ordered columns of a node.

    Attributes
    ----------
    values : float array (p, n)
        Sorted values. Split i of a column is between value i and value i + 1.
    above : float array (p, n - 1)
        Gain of each split with missing values above; -inf if it is not admissible. The last split of a column with
        missing values separates all observed values from the missing ones.
    below : float array (p, n - 1) or None
        The same with missing values below; None if the node has none.
    best : float array (p,)
        Largest gain of each column.
    """

    values: Floats
    above: Floats
    below: Floats | None
    best: Floats

    @classmethod
    def of(cls, node: _CentredNode) -> _NumericSplits:
        """Return all splits of a node."""
        values, order = node.sorted.values, node.sorted.order
        gappy = np.flatnonzero(np.isnan(values[:, -1]))
        last = values.shape[1] - 1 - np.isnan(values[gappy]).sum(axis=1)
        squares, squares_below = _sums_of_squares(node, gappy, last)
        if node.all_weights is None:
            weight = np.arange(1.0, values.shape[1])[np.newaxis]
        else:
            weight = np.cumsum(node.all_weights[order], axis=1)[:, :-1]
        between = values[:, :-1] < values[:, 1:]
        above = node.gains(squares, weight)
        if not gappy.size:
            above[~between] = -np.inf
            return cls(values, above, None, above.max(axis=1, initial=-np.inf))
        weight = np.broadcast_to(weight, squares.shape)[gappy]
        missing_weight = node.total - np.take_along_axis(weight, last[:, np.newaxis], axis=1)
        below = np.full_like(above, -np.inf)
        below[gappy] = node.gains(squares_below, weight + missing_weight)
        below[~between] = -np.inf
        observed = last >= 0
        between[gappy[observed], last[observed]] = True
        above[~between] = -np.inf
        return cls(values, above, below, np.maximum(above, below).max(axis=1, initial=-np.inf))

    def split(self, info: ColumnInfo, place: int) -> Split:
        """Return the best split on a column; values below go to the left child."""
        above = self.above[place]
        below = np.full_like(above, -np.inf) if self.below is None else self.below[place]
        at = _first_best(np.maximum(above, below))
        missing: Side = "right" if above[at] >= below[at] - ROUNDING * abs(below[at]) else "left"
        low, high = float(self.values[place, at]), float(self.values[place, at + 1])
        if np.isnan(high):
            return Split(info.name, info.kind, missing="right")
        if info.kind == "ordered":
            return Split(info.name, "ordered", threshold=float(np.ceil((low + high) / 2) - 1), missing=missing)
        middle = _midpoint(low, high)
        # Dates are whole microseconds, and rules print them as such.
        threshold = float(np.ceil(middle)) if info.is_date or info.is_duration else middle
        return Split(info.name, "numeric", threshold=threshold, strict=True, missing=missing)


@dataclass(frozen=True, eq=False)
class _NominalSplits:
    """Gains of the splits on one nominal column of a node.

    Attributes
    ----------
    present : int array (m,)
        Levels present in the node; the number of levels stands for missing values.
    groups : bool array (number of splits, m), or int array (m,)
        First group of each split; or an order of the levels, of which split i takes the first i + 1.
    gains : float array
        Gain of each split.
    best : float
        Largest gain.
    """

    present: Rows
    groups: npt.NDArray[Any]
    gains: Floats
    best: float

    @classmethod
    def of(cls, node: _CentredNode, codes: npt.NDArray[np.int32], n_levels: int) -> _NominalSplits:
        """Return the splits on a column with these codes in the node."""
        level = np.where(codes < 0, n_levels, codes)
        present = np.flatnonzero(np.bincount(level))
        if len(present) < 2:
            return cls(present, present, np.empty(0), -np.inf)
        weight: Floats = np.bincount(level, weights=node.weights)[present].astype(np.float64)
        sums = np.array([np.bincount(level, weights=column)[present] for column in node.weighted])
        if len(sums) > 1 and len(present) <= MAX_ENUMERATED:
            groups: npt.NDArray[Any] = _partitions(len(present))
            first_sums, first_weight = sums @ groups.T, groups @ weight
        else:
            groups = order_of_levels(sums, weight)
            first_sums, first_weight = np.cumsum(sums[:, groups], axis=1)[:, :-1], np.cumsum(weight[groups])[:-1]
        gains = node.gains((first_sums * first_sums).sum(axis=0), first_weight)
        return cls(present, groups, gains, float(gains.max()))

    def split(self, info: ColumnInfo) -> Split:
        """Return the best split, with its first group on the left. Levels absent from the node are in neither group."""
        at = _first_best(self.gains)
        first = (
            self.groups[at] if self.groups.ndim == 2 else np.isin(np.arange(len(self.present)), self.groups[: at + 1])
        )
        left, right = set(self.present[first]), set(self.present[~first])
        levels = tuple(
            tuple(level for code, level in enumerate(info.levels) if code in group) for group in (left, right)
        )
        missing: Side = "left" if len(info.levels) in left else "right"
        return Split(info.name, "nominal", levels=(levels[0], levels[1]), missing=missing)


def _sums_of_squares(node: _CentredNode, gappy: Rows, last: Rows) -> tuple[Floats, Floats]:
    """Return the sum of S_k^2 below each split of each column, and with missing values below for columns with some."""
    order = node.sorted.order
    squares = np.zeros((len(order), order.shape[1] - 1))
    squares_below = np.zeros((len(gappy), order.shape[1] - 1))
    for k in np.flatnonzero(node.weighted.any(axis=1)):
        sums = np.cumsum(node.scattered[k][order], axis=1)[:, :-1]
        squares += sums * sums
        if gappy.size:
            # Sums are centred, so those of the missing values are minus those of all observed values.
            squares_below += (sums[gappy] - sums[gappy, last][:, np.newaxis]) ** 2
    return squares, squares_below


@lru_cache(maxsize=MAX_ENUMERATED)
def _partitions(n_levels: int) -> Booleans:
    """Return all partitions of levels into two groups, one per row; the last level is in the second group."""
    numbers = np.arange(1, 2 ** (n_levels - 1))[:, np.newaxis]
    groups: Booleans = (numbers >> np.arange(n_levels)) & 1 == 1
    groups.setflags(write=False)
    return groups


def _first_best(gains: Floats) -> int:
    """Return the position of the largest gain; the first one if several differ by rounding only."""
    best = gains.max()
    return int(np.argmax(gains >= best - ROUNDING * abs(best)))


def _midpoint(low: float, high: float) -> float:
    """Return the midpoint of two values, above the lower one even if they are adjacent floats."""
    middle = (low + high) / 2
    if np.isinf(middle):
        middle = low / 2 + high / 2
    return middle if middle > low else high


def _mirror(split: Split) -> Split:
    """Return the split with the children exchanged."""
    return replace(split, below=_OTHER[split.below], levels=split.levels[::-1], missing=_OTHER[split.missing])
