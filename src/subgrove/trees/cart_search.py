"""The split of a node that reduces a sum of squares most: the search of CART.

Requirements this design meets:

- one arithmetic for both criteria. The weighted Gini impurity of a class label is the sum of squares of its
  indicator columns around their means, so regression has one column of numbers here and K classes have K.
  A cut with weight A on one side and B on the other reduces it by  sum_k S_k^2 (A + B) / (A B),
  where S_k is the sum on one side of column k, centred at the mean of the node;
- all numeric columns are scanned at once. They are sorted once, at the root, for all features that share a table;
  children inherit the order;
- rounding does not choose. Gains that differ by no more than rounding are ties, and the first one wins, so neither
  the order of the rows nor weights in place of repeated rows can decide;
- a missing value is a value of its own, tried on both sides of each cut and alone against all others.
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
    """What the search takes sums of squares of.

    Attributes
    ----------
    columns : float array (K, n_rows)
        x itself, or an indicator of each class. Two classes need one indicator: the other mirrors it.
    position : float array (n_rows,)
        x, or the number of the class: the child with the smaller mean of it is the left one.
    """

    columns: Floats
    position: Floats

    @classmethod
    def of(cls, training: Training) -> CartTarget:
        """The response of a training sample."""
        position = training.values.astype(np.float64)
        if training.target.kind == "numeric":
            return cls(position[np.newaxis], position)
        classes = np.unique(position)
        shown = classes[1:] if len(classes) == 2 else classes
        return cls((position == shown[:, np.newaxis]).astype(np.float64), position)


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows of a node, and the same sorted by each numeric column.

    Attributes
    ----------
    rows : int array (n,)
        Places in the training table.
    order : int array (p, n)
        The same, ascending by each of the p numeric and ordered columns; missing values stand last.
    values : float array (p, n)
        Values of the columns in that order.
    """

    rows: Rows
    order: Rows
    values: Floats

    @classmethod
    def of(cls, training: Training) -> SortedRows:
        """All rows of a training sample."""
        known = SortedTable.of(training.table, shared=False) if training.prepared is None else training.prepared
        return cls(np.arange(training.n_rows), *known.sorted_numbers)

    def part(self, rows: Rows, n_rows: int) -> SortedRows:
        """Some of the rows, in the order they already have; `n_rows` is the size of the training table."""
        wanted = np.zeros(n_rows, dtype=np.bool_)
        wanted[rows] = True
        kept = wanted[self.order]
        shape = (len(self.order), len(rows))
        return SortedRows(rows, self.order[kept].reshape(shape), self.values[kept].reshape(shape))


class SplitSearch:
    """Finds the best split of one node after another of the same training sample.

    Parameters
    ----------
    training : Training
    response : Response
    min_samples_leaf : int
        Least weight of a child.
    """

    def __init__(self, training: Training, response: CartTarget, min_samples_leaf: int) -> None:
        self.training = training
        self.response = response
        self.min_samples_leaf = min_samples_leaf
        self.columns = tuple(zip(training.table.columns, training.table.positions(), strict=True))
        # Scratch: only the rows of the node at hand hold anything, so no node pays for the whole sample.
        self._centred = np.empty_like(response.columns)

    def best(self, rows: SortedRows) -> Split | str:
        """The split that reduces the sum of squares most, or the reason why there is none."""
        node = self._centre(rows)
        numeric = _NumericCuts.of(node)
        codes = self.training.table.codes
        nominal = {
            place: _NominalCuts.of(node, codes[rows.rows, place], len(info.levels))
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
        """Which of some rows a split sends to the left child."""
        info, place = self.columns[self.training.table.names.index(split.column)]
        return goes_left(split, info, self._values(info, place, rows))

    def _values(self, info: ColumnInfo, place: int, rows: Rows) -> npt.NDArray[Any]:
        table = self.training.table
        values: npt.NDArray[Any] = (table.codes if info.is_nominal else table.numbers)[rows, place]
        return values

    def _centre(self, rows: SortedRows) -> _Node:
        columns = self.response.columns[:, rows.rows]
        weights = None if self.training.weights is None else self.training.weights[rows.rows]
        centred = columns - np.average(columns, axis=1, weights=weights)[:, np.newaxis]
        weighted = centred if weights is None else centred * weights
        self._centred[:, rows.rows] = weighted
        total = float(len(rows.rows) if weights is None else weights.sum())
        return _Node(
            sorted=rows,
            scattered=self._centred,
            all_weights=self.training.weights,
            weighted=weighted,
            weights=np.ones(len(rows.rows)) if weights is None else weights,
            total=total,
            sum_of_squares=float((centred * weighted).sum()),
            # Weights that are no whole numbers may miss their sum by rounding.
            least=self.min_samples_leaf * (1 - ROUNDING),
        )

    def _finish(self, split: Split, info: ColumnInfo, values: npt.NDArray[Any], node: _Node) -> Split:
        """Put the children in order, and give a place to levels and missing values that the node did not have."""
        left = goes_left(split, info, values)
        position = self.response.position[node.sorted.rows]
        weight_left, weight_right = node.weights[left].sum(), node.weights[~left].sum()
        mean_left = position[left] @ node.weights[left] / weight_left
        mean_right = position[~left] @ node.weights[~left] / weight_right
        # As in rpart, what lies below goes right where both means are the same (only classes can have that).
        if mean_right - mean_left <= ROUNDING * np.ptp(position):
            split = _mirror(split)
            weight_left, weight_right = weight_right, weight_left
        return assign_unseen_values(split, info, values, "left" if weight_left >= weight_right else "right")


@dataclass(frozen=True, eq=False)
class _Node:
    """A node as the search sees it: response columns centred at their means there, times the weights."""

    sorted: SortedRows
    scattered: Floats  # (K, n_rows): by place in the training table
    all_weights: Floats | None
    weighted: Floats  # (K, n): by row of the node
    weights: Floats
    total: float
    sum_of_squares: float
    least: float

    def gains(self, squares: Floats, weight: Floats) -> Floats:
        """Reduction of the sum of squares by cuts with such a sum of S_k^2 and weight on one side.

        -inf where a side is too small. `weight` may be one row for all rows of `squares`.
        """
        other = self.total - weight
        admissible = (weight >= self.least) & (other >= self.least)
        factor = np.divide(self.total, weight * other, out=np.zeros_like(weight), where=admissible)
        gains: Floats = squares * factor
        gains[np.broadcast_to(~admissible, gains.shape)] = -np.inf
        return gains


@dataclass(frozen=True, eq=False)
class _NumericCuts:
    """Gains of all cuts of all numeric and ordered columns of a node.

    Attributes
    ----------
    values : float array (p, n)
        Sorted values. Cut i of a column lies between value i and value i + 1.
    above : float array (p, n - 1)
        Gain of each cut, missing values above; -inf where there is no cut. The last cut of a column
        with missing values is between all observed values and the missing ones.
    below : float array (p, n - 1) or None
        The same with missing values below; None where the node has none.
    best : float array (p,)
        Largest gain of each column.
    """

    values: Floats
    above: Floats
    below: Floats | None
    best: Floats

    @classmethod
    def of(cls, node: _Node) -> _NumericCuts:
        """All cuts of a node."""
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
        """The best cut of a column; what lies below is the left child."""
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
        # Moments are whole microseconds; so is what a rule prints of them.
        threshold = float(np.ceil(middle)) if info.is_date or info.is_duration else middle
        return Split(info.name, "numeric", threshold=threshold, strict=True, missing=missing)


@dataclass(frozen=True, eq=False)
class _NominalCuts:
    """Gains of the cuts of one nominal column of a node.

    Attributes
    ----------
    present : int array (m,)
        Levels that the node has; the number of levels stands for missing values.
    groups : bool array (number of cuts, m), or int array (m,)
        What lies in the first group of each cut; or an order of the levels, of which cut i takes the first i + 1.
    gains : float array
        Gain of each cut.
    best : float
        The largest one.
    """

    present: Rows
    groups: npt.NDArray[Any]
    gains: Floats
    best: float

    @classmethod
    def of(cls, node: _Node, codes: npt.NDArray[np.int32], n_levels: int) -> _NominalCuts:
        """The cuts of a column with these codes in the node."""
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
        """The best cut; its first group is the left child. Levels that the node lacks are in neither group."""
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


def _sums_of_squares(node: _Node, gappy: Rows, last: Rows) -> tuple[Floats, Floats]:
    """Sum of S_k^2 below each cut of each column; the same with missing values below, for columns that have some."""
    order = node.sorted.order
    squares = np.zeros((len(order), order.shape[1] - 1))
    squares_below = np.zeros((len(gappy), order.shape[1] - 1))
    for k in np.flatnonzero(node.weighted.any(axis=1)):
        sums = np.cumsum(node.scattered[k][order], axis=1)[:, :-1]
        squares += sums * sums
        if gappy.size:
            # Sums are centred, so those of the missing values are minus those of all observed ones.
            squares_below += (sums[gappy] - sums[gappy, last][:, np.newaxis]) ** 2
    return squares, squares_below


@lru_cache(maxsize=MAX_ENUMERATED)
def _partitions(n_levels: int) -> Booleans:
    """All ways to split levels in two groups, one a row; the last level is never in the first group."""
    numbers = np.arange(1, 2 ** (n_levels - 1))[:, np.newaxis]
    groups: Booleans = (numbers >> np.arange(n_levels)) & 1 == 1
    groups.setflags(write=False)
    return groups


def _first_best(gains: Floats) -> int:
    """Place of the largest gain; the first one of those that differ by rounding only."""
    best = gains.max()
    return int(np.argmax(gains >= best - ROUNDING * abs(best)))


def _midpoint(low: float, high: float) -> float:
    """The middle of two values, above the lower one even if they are neighbours among the floats."""
    middle = (low + high) / 2
    if np.isinf(middle):
        middle = low / 2 + high / 2
    return middle if middle > low else high


def _mirror(split: Split) -> Split:
    """The same split with the children exchanged."""
    return replace(split, below=_OTHER[split.below], levels=split.levels[::-1], missing=_OTHER[split.missing])
