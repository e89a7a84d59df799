"""Array operations of the accumulator in NumPy: sums by subgroup and by donor.

`LossAccumulator` is written against these few methods. `_models.device.arrays` has the same ones for tensors. How sums
are ordered is part of an implementation, so that each gives the same bits for any batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import CyclicShift

_FLOAT32_MAX = 1e30
GroupSum = Callable[[Any], Any]


def to_float32(values: Floats) -> npt.NDArray[np.floating[Any]]:
    """Return values in half the memory if they allow it: a standard error needs no more than seven digits."""
    with np.errstate(invalid="ignore"):
        largest = max(float(np.max(values, initial=0.0)), -float(np.min(values, initial=0.0)))
        return values if largest > _FLOAT32_MAX else values.astype(np.float32)


class GroupSums:
    """Sums of values (..., n) by subgroup: rows are sorted by subgroup once, then each subgroup is one segment.

    Parameters
    ----------
    code : int array
        Subgroup of each row.
    n_groups : int
        Number of subgroups.
    """

    def __init__(self, code: Rows, n_groups: int) -> None:
        self.code, self.n_groups = code, n_groups
        counts = np.bincount(code, minlength=n_groups)
        self.order: Rows | None = None  # rows by subgroup, once known
        self.nonempty = np.flatnonzero(counts)
        self.starts = (np.cumsum(counts) - counts)[self.nonempty]

    def __call__(self, values: Floats) -> Floats:
        """Return the sums of values in the order of the rows."""
        if self.n_groups == 1:
            return self.ordered(values)
        if self.order is None:
            # NumPy sorts small integers by counting, which is several times as fast.
            small = self.code.astype(np.min_scalar_type(self.n_groups - 1)) if self.n_groups <= 65536 else self.code
            self.order = np.argsort(small, kind="stable")
        return self.ordered(values.take(self.order, axis=-1))

    def ordered(self, values: Floats) -> Floats:
        """Return the sums of values in the order of the subgroups."""
        if self.n_groups == 1:
            return np.asarray(values.sum(axis=-1, keepdims=True))
        segments: Floats = np.add.reduceat(values, self.starts, axis=-1)
        if segments.shape[-1] == self.n_groups:
            return segments
        sums = np.zeros((*values.shape[:-1], self.n_groups))
        sums[..., self.nonempty] = segments
        return sums


class BincountSums:
    """Sums of values (L, n) by subgroup in the order of the rows, which needs no sorting."""

    def __init__(self, code: Rows, n_groups: int) -> None:
        self.code, self.n_groups = code, n_groups

    def __call__(self, values: Floats) -> Floats:
        """Return the sums of values in the order of the rows."""
        if self.n_groups == 1:
            return np.asarray(values.sum(axis=1, keepdims=True))
        return np.array([np.bincount(self.code, weights=line, minlength=self.n_groups) for line in values])


class NumpyArrays:
    """Arrays of the rows of a table in memory.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    weights : float array (n,) or None
        Weights of the rows.
    sums : class
        How values are summed by subgroup.
    """

    xp: Any = np

    def __init__(self, n_rows: int, weights: Floats | None, sums: Any = GroupSums) -> None:
        self.n_rows, self.weights, self.host_weights, self.sums = n_rows, weights, weights, sums

    def zeros(self, *shape: int) -> Floats:
        """Return zeros in float64."""
        return np.zeros(shape)

    def repeats(self, n_losses: int, n_repeats: int, n_groups: int) -> Floats:
        """Return zeros for sums of each loss, repeat and subgroup."""
        return np.zeros((n_losses, n_repeats, n_groups))

    def array(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array of the host."""
        return values

    index = array

    def group_sums(self, code: Rows, n_groups: int) -> Any:
        """Return a function that sums values of all rows by subgroup."""
        return self.sums(code, n_groups)

    def subset_sums(self, by_group: Any, rows: Rows) -> GroupSum:
        """Return a function that sums values of some rows by subgroup."""
        subset: GroupSum = self.sums(by_group.code[rows], by_group.n_groups)
        return subset

    def scatter(self, index: Rows, values: Floats, n: int) -> Floats:
        """Return sums (L, n) of values (L, m) by index."""
        return np.array([np.bincount(index, weights=line, minlength=n) for line in values])

    def take(self, values: Floats, index: Rows) -> Floats:
        """Return values at an index of the last axis."""
        return values.take(index, axis=-1)

    def to_rows(self, values: Floats, code: Rows) -> Floats:
        """Return the values (..., K) of the subgroup of each row; one subgroup is broadcast."""
        return values if values.shape[-1] == 1 else values.take(code, axis=-1)

    def same_group(self, code: Rows, donors: Rows, rows: Rows | None) -> Any:
        """Return whether all donors are in the subgroup of their row."""
        return bool((code[donors] == (code if rows is None else code[rows])).all())

    def estimates(self, sums: Floats, sizes: Floats) -> Floats:
        """Return the mean increase of each loss and subgroup."""
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: Floats = (sums / sizes).mean(axis=1)
            return mean

    def squares_by_group(self, by_group: Any, squares: Floats, rows: Rows | None) -> Floats:
        """Return squares of rows summed by subgroup, in the order of the rows."""
        code = by_group.code if rows is None else by_group.code[rows]
        return self.scatter(code, squares, by_group.n_groups)

    def ordered_by(self, shift: CyclicShift, values: Floats) -> tuple[Any, Floats]:
        """Return a cyclic shift as these arrays use it, and values in its order."""
        return shift, values.take(shift.order, axis=-1)

    def returned(self, own: CyclicShift, shift: CyclicShift, values: Floats) -> Floats:
        """Return values of receivers at the positions of their donors, both in the order of the shift."""
        if len(values) == 1:
            return shift.returned(values[0])[None]
        return np.array([shift.returned(line) for line in values])
