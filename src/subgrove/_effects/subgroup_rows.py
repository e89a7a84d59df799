"""The rows of a subgroup, and copies of them with other values of the feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._data.replace_columns import Changes, Column, Donors, Frames, Rows
from subgrove._effects.grid import GridAxis, has_levels
from subgrove._effects.predict import GridBlock
from subgrove._effects.support import FeatureSupport, support_of
from subgrove._subgroups import Partition
from subgrove.trees.splits import ALL_ROWS


@dataclass(frozen=True, eq=False)
class FeatureData:
    """A table, and one or two of its features.

    Attributes
    ----------
    X : frame, table or 2-d array
        The user's table.
    infos : tuple of ColumnInfo
        The feature, or the two features.
    x : tuple of float arrays
        Their values, encoded like `GridAxis.points`; NaN where missing.
    weights : float array or None
        Sample weights.
    level_data : FeatureData or None
        Rows to copy values of levels from, if these rows may lack some levels (chunks of large data).
    """

    X: Any
    infos: tuple[ColumnInfo, ...]
    x: tuple[Floats, ...]
    weights: Floats | None
    level_data: FeatureData | None = None

    @cached_property
    def frames(self) -> Frames:
        """All rows; values of levels are copied from rows, as the user's container stores them."""
        return Frames(self.X, self.infos, self.level_source.X)

    @property
    def level_source(self) -> FeatureData:
        """The rows that values of levels are copied from."""
        return self.level_data or self

    @property
    def row_weights(self) -> Floats:
        """Sample weights, 1 without weights."""
        return np.ones(self.frames.n_rows) if self.weights is None else self.weights

    @cached_property
    def any_levels(self) -> bool:
        """Whether one of the features is categorical."""
        return any(has_levels(info) for info in self.infos)

    @cached_property
    def level_rows(self) -> tuple[Rows, ...]:
        """For each feature the first row with each level; empty for numeric features."""
        return tuple(
            _first_rows(x, len(info.levels)) if has_levels(info) else np.empty(0, dtype=np.intp)
            for info, x in zip(self.infos, self.x, strict=True)
        )

    def column(self, which: int, points: Floats) -> Column:
        """Return the column that replaces a feature by the given points."""
        if not has_levels(self.infos[which]):
            return points
        return Donors(self.level_source.level_rows[which][points.astype(np.intp)], train=True)


def _first_rows(codes: Floats, n_levels: int) -> Rows:
    rows = np.full(n_levels, -1, dtype=np.intp)
    present = np.flatnonzero(~np.isnan(codes))[::-1]
    rows[codes[present].astype(np.intp)] = present
    return rows


@dataclass(frozen=True, eq=False)
class SubgroupRows:
    """The rows of one subgroup.

    Attributes
    ----------
    data : FeatureData
        The table that they belong to.
    subgroup : int
        Index of the subgroup.
    rule : str
        Its rule.
    rows : int array
        Indices of its rows with a positive weight.
    """

    data: FeatureData
    subgroup: int
    rule: str
    rows: Rows

    @cached_property
    def frames(self) -> Frames:
        """These rows, in the container of the model."""
        whole = self.data.frames
        if len(self.rows) == whole.n_rows:
            return whole
        return Frames(whole.changed(self.rows, {}), self.data.infos, self.data.level_source.X)

    @cached_property
    def x(self) -> tuple[Floats, ...]:
        """Values of the one or two features."""
        return tuple(x[self.rows] for x in self.data.x)

    @cached_property
    def weights(self) -> Floats | None:
        """Sample weights of the rows."""
        return None if self.data.weights is None else self.data.weights[self.rows]

    @property
    def n(self) -> float:
        """Sum of the weights; the number of rows without weights."""
        return float(len(self.rows) if self.weights is None else self.weights.sum())

    def where(self, mask: npt.NDArray[np.bool_]) -> SubgroupRows:
        """Return the rows selected by a mask."""
        return self if mask.all() else replace(self, rows=self.rows[mask])

    def with_value(self) -> SubgroupRows:
        """Return the rows in which the (first) feature is not missing."""
        return self.where(~np.isnan(self.x[0]))

    def has_curve(self, partition: Partition | None) -> bool:
        """Whether there are enough rows for a curve: two in a subgroup, and one with a value of each feature."""
        if not len(self.rows) or any(np.isnan(x).all() for x in self.x):
            return False
        return partition is None or len(self.rows) > 1 or self.n >= 2

    def supports(self) -> tuple[FeatureSupport, ...]:
        """Return the distribution of each feature in the subgroup."""
        return tuple(support_of(info, x, self.weights) for info, x in zip(self.data.infos, self.x, strict=True))

    def block(self, axes: Sequence[GridAxis], place: Sequence[int]) -> GridBlock:
        """Return all rows at one grid point."""
        points = [axis.points[at] for axis, at in zip(axes, place, strict=True)]

        def text() -> str:
            return self.describe(", ".join(axis.text(at) for axis, at in zip(axes, place, strict=True)))

        numbers = None if self.data.any_levels else tuple(points)
        return GridBlock(lambda: self._at([np.full(len(self.rows), point) for point in points]), text, numbers)

    def block_of(self, points: Floats, description: str) -> GridBlock:
        """Return all rows, each at a point of its own."""
        return GridBlock(lambda: self._at([points]), lambda: self.describe(description))

    def unchanged(self) -> GridBlock:
        """Return all rows with their observed values."""
        return GridBlock(dict, lambda: self.describe("observed values"))

    def describe(self, values: str) -> str:
        """Describe a block of rows, for error messages."""
        return f"effect of {' and '.join(info.name for info in self.data.infos)}, {values}, {self.rule}"

    def _at(self, points: Sequence[Floats]) -> Changes:
        infos = self.data.infos
        return {infos[which].name: self.data.column(which, values) for which, values in enumerate(points)}


def rows_by_subgroup(data: FeatureData, partition: Partition | None) -> list[SubgroupRows]:
    """Return the rows of each subgroup; all rows without a partition."""
    weighted = np.ones(data.frames.n_rows, dtype=np.bool_) if data.weights is None else data.weights > 0
    if partition is None:
        return [SubgroupRows(data, 0, ALL_ROWS, np.flatnonzero(weighted))]
    code = partition.assign(data.X)
    return [
        SubgroupRows(data, k, rule, np.flatnonzero(weighted & (code == k))) for k, rule in enumerate(partition.rules)
    ]
