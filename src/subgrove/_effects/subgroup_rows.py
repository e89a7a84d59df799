"""The rows of a subgroup, ready to be given other values of the feature."""

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


@dataclass(frozen=True, eq=False)
class FeatureData:
    """The user's table, and the feature in it (or two).

    Attributes
    ----------
    X : frame, table or 2-d array
        As it was given.
    infos : tuple of ColumnInfo
        The feature, or the two features.
    x : tuple of float arrays
        Their values, as those of `GridAxis.points`; NaN where missing.
    weights : float array or None
        How often each row counts.
    holding : Source or None
        Where values of levels are taken from, if these rows need not hold all of them.
    """

    X: Any
    infos: tuple[ColumnInfo, ...]
    x: tuple[Floats, ...]
    weights: Floats | None
    holding: FeatureData | None = None

    @cached_property
    def frames(self) -> Frames:
        """All rows; values of levels are taken from them, as the user's container holds them."""
        return Frames(self.X, self.infos, self.holder.X)

    @property
    def holder(self) -> FeatureData:
        """Where values of levels are taken from."""
        return self.holding or self

    @property
    def counted(self) -> Floats:
        """How often each row counts, 1 without weights."""
        return np.ones(self.frames.n_rows) if self.weights is None else self.weights

    @cached_property
    def any_levels(self) -> bool:
        """Whether one of the features has levels instead of numbers."""
        return any(has_levels(info) for info in self.infos)

    @cached_property
    def donors(self) -> tuple[Rows, ...]:
        """For each feature and level the first row that has it; empty for numbers."""
        return tuple(
            _first_rows(x, len(info.levels)) if has_levels(info) else np.empty(0, dtype=np.intp)
            for info, x in zip(self.infos, self.x, strict=True)
        )

    def column(self, which: int, points: Floats) -> Column:
        """What replaces the column of a feature so that it has these values."""
        if not has_levels(self.infos[which]):
            return points
        return Donors(self.holder.donors[which][points.astype(np.intp)], train=True)


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
    source : Source
        Where they are from.
    subgroup : int
        Number of the subgroup.
    rule : str
        Its rule.
    rows : int array
        Numbers of its rows that have a weight above 0.
    """

    source: FeatureData
    subgroup: int
    rule: str
    rows: Rows

    @cached_property
    def frames(self) -> Frames:
        """These rows, for the model."""
        whole = self.source.frames
        if len(self.rows) == whole.n_rows:
            return whole
        return Frames(whole.changed(self.rows, {}), self.source.infos, self.source.holder.X)

    @cached_property
    def x(self) -> tuple[Floats, ...]:
        """Values of the feature, or of the two."""
        return tuple(x[self.rows] for x in self.source.x)

    @cached_property
    def weights(self) -> Floats | None:
        """How often each of the rows counts."""
        return None if self.source.weights is None else self.source.weights[self.rows]

    @property
    def n(self) -> float:
        """Sum of the weights, which is the number of rows without weights."""
        return float(len(self.rows) if self.weights is None else self.weights.sum())

    def where(self, kept: npt.NDArray[np.bool_]) -> SubgroupRows:
        """Some of the rows."""
        return self if kept.all() else replace(self, rows=self.rows[kept])

    def block(self, axes: Sequence[GridAxis], place: Sequence[int]) -> GridBlock:
        """All rows, at one point of the axes."""
        points = [axis.points[at] for axis, at in zip(axes, place, strict=True)]

        def text() -> str:
            return self.about(", ".join(axis.text(at) for axis, at in zip(axes, place, strict=True)))

        numbers = None if self.source.any_levels else tuple(points)
        return GridBlock(lambda: self._at([np.full(len(self.rows), point) for point in points]), text, numbers)

    def block_of(self, points: Floats, what: str) -> GridBlock:
        """All rows, each at a value of its own of the feature."""
        return GridBlock(lambda: self._at([points]), lambda: self.about(what))

    def unchanged(self) -> GridBlock:
        """All rows as they are."""
        return GridBlock(dict, lambda: self.about("as it is"))

    def about(self, what: str) -> str:
        """What rows were made for, in words."""
        return f"effect of {' and '.join(info.name for info in self.source.infos)}, {what}, {self.rule}"

    def _at(self, points: Sequence[Floats]) -> Changes:
        infos = self.source.infos
        return {infos[which].name: self.source.column(which, values) for which, values in enumerate(points)}
