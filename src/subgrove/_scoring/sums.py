"""Sums by subgroup, and numbers in half the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Rows

_FLOAT32_MAX = 1e30


def to_float32(values: Floats) -> npt.NDArray[np.floating[Any]]:
    """In half the memory, if the numbers allow it: digits beyond the seventh do not matter for a standard error."""
    with np.errstate(invalid="ignore"):
        largest = max(float(np.max(values, initial=0.0)), -float(np.min(values, initial=0.0)))
        return values if largest > _FLOAT32_MAX else values.astype(np.float32)


class GroupSums:
    """Sums of values by subgroup: rows are put in order of their subgroups once, then each is one stretch.

    `code` is the subgroup of each row, `counts` the number of rows of each subgroup.
    """

    def __init__(self, code: Rows, counts: Rows) -> None:
        self.code = code
        self.n_groups = len(counts)
        self.order: Rows | None = None  # rows by subgroup, once they were sorted or someone knows it
        self.used = np.flatnonzero(counts)
        self.starts = (np.cumsum(counts) - counts)[self.used]

    def __call__(self, values: Floats) -> Floats:
        """Sums of values that come in the order of the rows."""
        if self.n_groups == 1:
            return self.stretches(values)
        if self.order is None:
            # NumPy sorts small integers by counting, which is several times as fast.
            small = self.code.astype(np.min_scalar_type(self.n_groups - 1)) if self.n_groups <= 65536 else self.code
            self.order = np.argsort(small, kind="stable")
        return self.stretches(values.take(self.order))

    def stretches(self, values: Floats) -> Floats:
        """Sums of values that come in the order of the subgroups."""
        if self.n_groups == 1:
            return np.array([values.sum()])
        found: Floats = np.add.reduceat(values, self.starts)
        if len(found) == self.n_groups:
            return found
        sums = np.zeros(self.n_groups)
        sums[self.used] = found
        return sums


def group_sums(code: Rows, n_groups: int) -> GroupSums:
    """Sums for rows whose subgroups were not counted yet."""
    return GroupSums(code, np.bincount(code, minlength=n_groups))
