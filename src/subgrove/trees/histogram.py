"""The distribution of x in a node, small enough to keep: what a picture of the tree needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._data.table import ColumnInfo, Floats

BINS = 48


@dataclass(frozen=True, eq=False)
class Histogram:
    """Which cell of x each training row is in.

    Attributes
    ----------
    cell : int array
        Cell of each row.
    n_cells : int
    edges : tuple of float
        Numeric x: borders of the cells, equal steps over its range. Empty otherwise: then a cell is a level, and there
        is none where several features share the tree.
    """

    cell: npt.NDArray[np.intp]
    n_cells: int
    edges: tuple[float, ...]

    @classmethod
    def of(cls, info: ColumnInfo, values: npt.NDArray[Any]) -> Histogram:
        """Cells for x: its levels, or equal steps over its range."""
        if not len(values) or not (info.levels or info.kind == "numeric"):
            return cls(np.zeros(len(values), dtype=np.intp), len(info.levels), ())
        if info.kind != "numeric":
            first = 0 if info.is_nominal else 1
            return cls(values.astype(np.intp) - first, len(info.levels), ())
        low, high = float(values.min()), float(values.max())
        # Halved before the difference is taken: the range of x may be wider than a float holds.
        width = high / 2 - low / 2
        share = (values / 2 - low / 2) / width if width > 0 else np.zeros(len(values))
        cell = np.minimum((share * BINS).astype(np.intp), BINS - 1)
        at = np.linspace(0, 1, BINS + 1)
        return cls(cell, BINS, tuple((low * (1 - at) + high * at).tolist()))

    def counts(self, group: npt.NDArray[np.intp], n_groups: int, weights: Floats | None) -> Floats:
        """Weight in each cell of each of `n_groups` groups of rows: one row a group."""
        if not self.n_cells:
            return np.empty((n_groups, 0))
        flat = np.bincount(group * self.n_cells + self.cell, weights=weights, minlength=n_groups * self.n_cells)
        return flat.reshape(n_groups, self.n_cells).astype(np.float64)
