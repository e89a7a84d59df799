"""The splits of one tree of a forest, and the cells that they divide rows into.

A tree was grown to predict the target. To resample a feature given the columns that it is associated with, only splits
on these columns count; there are two ways to make cells of them:

- the grid of Strobl et al. (2008): a column is cut wherever any node of the tree cuts it, and cells are the
  combinations of the resulting intervals;
- nodes: a split counts only for rows that get to it. A node that splits on any other column sends its rows both ways,
  and rows share a cell if no split that they get to parts them. These cells are larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Rows

_NO_CUTS: Floats = np.empty(0)


@dataclass(frozen=True, eq=False)
class TreeSplits:
    """A binary tree of numeric splits; arrays with an entry for each node, the root first.

    Attributes
    ----------
    left, right : int array
        Children; -1 at a leaf.
    column : int array
        Which column is split; negative at a leaf.
    cut : float array
        Values up to this one go left.
    missing_left : bool array
        Whether missing values do.
    """

    left: Rows
    right: Rows
    column: Rows
    cut: Floats
    missing_left: npt.NDArray[np.bool_]

    def cuts(self, column: int) -> Floats:
        """Where a column is cut anywhere in the tree, ascending."""
        return self._cuts.get(column, _NO_CUTS)

    @cached_property
    def _cuts(self) -> dict[int, Floats]:
        """The cuts of each column that has some; computed for all at once, since all are needed."""
        inner = np.flatnonzero(self.left >= 0)
        if not len(inner):  # a tree that is a single leaf
            return {}
        order = inner[np.lexsort((self.cut[inner], self.column[inner]))]
        column, cut = self.column[order], self.cut[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (column[1:] != column[:-1]) | (cut[1:] != cut[:-1])
        column, cut = column[new], cut[new]
        starts = np.flatnonzero(np.diff(column, prepend=-1))
        return dict(zip(column[starts].tolist(), np.split(cut, starts[1:]), strict=True))

    def intervals(self, column: int, values: Floats) -> Rows:
        """For each row the number of the interval between cuts that its value lies in; missing values are one more."""
        cuts = self.cuts(column)
        own = values[:, column]
        return np.where(np.isnan(own), len(cuts) + 1, np.searchsorted(cuts, own))


def associated_columns(splits: TreeSplits, values: Floats, column: int, threshold: float) -> tuple[int, ...]:
    """Columns that depend on `column`: 1 - p is above the threshold, in a chi-square test of the tree's intervals.

    A threshold of 0 takes all columns that the tree splits. A column that the tree does not split depends on none.
    """
    others = [other for other in range(values.shape[1]) if other != column and len(splits.cuts(other))]
    if threshold == 0:
        return tuple(others)
    if not len(splits.cuts(column)):
        return ()
    own = splits.intervals(column, values)
    return tuple(other for other in others if 1.0 - _independence_p(own, splits.intervals(other, values)) > threshold)


def grid_cells(splits: TreeSplits, values: Floats, columns: Sequence[int]) -> Rows:
    """For each row the number of its cell in the grid of all cuts of some columns."""
    cells = np.zeros(len(values), dtype=np.intp)
    for column in columns:
        cells = _both(cells, splits.intervals(column, values))
    return cells


def node_cells(splits: TreeSplits, values: Floats, columns: Sequence[int]) -> Rows:
    """For each row the number of its cell if splits count only where rows get to them."""
    used = frozenset(columns)

    def below(node: int, rows: Rows) -> Rows:
        if splits.left[node] < 0 or len(rows) < 2:
            return np.zeros(len(rows), dtype=np.intp)
        left, right, column = int(splits.left[node]), int(splits.right[node]), int(splits.column[node])
        if column not in used:
            return _both(below(left, rows), below(right, rows))
        own = values[rows, column]
        goes_left = np.where(np.isnan(own), splits.missing_left[node], own <= splits.cut[node])
        cells = np.empty(len(rows), dtype=np.intp)
        cells[goes_left] = below(left, rows[goes_left])
        start = int(cells[goes_left].max()) + 1 if goes_left.any() else 0
        cells[~goes_left] = below(right, rows[~goes_left]) + start
        return cells

    return below(0, np.arange(len(values)))


def _both(one: Rows, two: Rows) -> Rows:
    """Numbers, without gaps, of the combinations of two numberings."""
    numbers: Rows = np.unique(one * (int(two.max(initial=0)) + 1) + two, return_inverse=True)[1]
    return numbers


def _independence_p(one: Rows, two: Rows) -> float:
    """p-value of Pearson's chi-square test; 1 if either has a single value."""
    from scipy.special import chdtrc

    height, width = int(one.max()) + 1, int(two.max()) + 1
    counts = np.bincount(one * width + two, minlength=height * width).reshape(height, width)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    free = (np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1)
    if not free:
        return 1.0
    if not (rows.all() and columns.all()):
        counts, rows, columns = counts[rows > 0][:, columns > 0], rows[rows > 0], columns[columns > 0]
    expected = np.multiply.outer(rows, columns) / len(one)
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(chdtrc(free, statistic))
