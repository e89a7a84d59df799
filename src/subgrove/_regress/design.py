"""Columns of any kind as numbers for a shift: values, and an indicator for each level and for missing values.

Every part is centred and scaled as in training, so that a missing value is an average one with an indicator of its own,
and a level that training did not have is none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, ColumnInfo, Floats
from subgrove._data.table import Table

_MOST_LEVELS = 20  # of a column, the most frequent ones
_LEAST_ROWS = 10  # of a level or of missing values, on either side
_CONSTANT = 1e-12
_LARGEST = 1e70  # its fourth power is a number


@dataclass(frozen=True)
class DesignColumn:
    """One number for each row: the value of a column, or whether it has a level, or none.

    Attributes
    ----------
    column : str
        Its name.
    level : str or None
        The level that is indicated; None for values and missing values.
    missing : bool
        Whether missing values are indicated.
    mean, scale : float
        In training; the scale is the standard deviation.
    """

    column: str
    level: str | None
    missing: bool
    mean: float
    scale: float

    @property
    def is_value(self) -> bool:
        """Whether it is the value itself."""
        return self.level is None and not self.missing

    @property
    def label(self) -> str:
        """In words."""
        if self.is_value:
            return self.column
        return f"[{self.column} missing]" if self.missing else f"[{self.column} = {self.level}]"


@dataclass(frozen=True, eq=False)
class Design:
    """How the columns of a table become numbers.

    Attributes
    ----------
    columns : tuple of ColumnInfo
        As in training.
    parts : tuple of Part
    """

    columns: tuple[ColumnInfo, ...]
    parts: tuple[DesignColumn, ...]

    @classmethod
    def of(cls, table: Table) -> tuple[Design, Floats]:
        """The design of training rows, and their numbers."""
        found: list[tuple[DesignColumn, Floats]] = []
        for column, at in zip(table.columns, table.positions(), strict=True):
            found += (
                _nominal(column, table.codes[:, at]) if column.is_nominal else _numeric(column, table.numbers[:, at])
            )
        design = cls(table.columns, tuple(part for part, _ in found))
        matrix = np.empty((len(found), table.n_rows))
        for line, (part, raw) in zip(matrix, found, strict=True):
            line[:] = (raw - part.mean) / part.scale
        return design, np.ascontiguousarray(matrix.T)

    def allowed(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """The parts of these columns."""
        wanted = set(names)
        return np.array([at for at, part in enumerate(self.parts) if part.column in wanted], dtype=np.intp)

    def numbers(self, table: Table, part: DesignColumn) -> Floats:
        """One part of new rows, centred and scaled as in training."""
        place = table.names.index(part.column)
        column, at = table.columns[place], table.positions()[place]
        if column.is_nominal:
            codes = table.codes[:, at]
            code = MISSING if part.missing else self._code(column, part.level)
            raw = (codes == code).astype(np.float64)
        else:
            values = table.numbers[:, at]
            raw = (
                np.isnan(values).astype(np.float64)
                if part.missing
                else np.where(np.isfinite(values), values, part.mean)
            )
        return np.asarray((raw - part.mean) / part.scale)

    @staticmethod
    def _code(column: ColumnInfo, level: str | None) -> int:
        return column.levels.index(level) if level in column.levels else len(column.levels)


def is_extreme(values: Floats) -> bool:
    """Whether numbers are so large, or so close to each other, that sums of their squares or products would not do."""
    if not len(values):
        return False
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(high - low):  # some are missing, or infinite
        known = values[np.isfinite(values)]
        if not len(known):
            return False
        low, high = float(known.min()), float(known.max())
    return max(abs(low), abs(high)) > _LARGEST or 0 < high - low < 1 / _LARGEST


def _numeric(column: ColumnInfo, values: Floats) -> list[tuple[DesignColumn, Floats]]:
    known = np.isfinite(values)
    if not known.any() or is_extreme(values):
        return []
    every = bool(known.all())
    mean = float((values if every else values[known]).mean())
    raw = values if every else np.where(known, values, mean)
    scale = float(raw.std())
    if not np.isfinite(scale) or scale <= _CONSTANT * max(abs(mean), 1e-300):
        return []
    found = [(DesignColumn(column.name, None, False, mean, scale), raw)]
    return found if every else found + _indicator(column.name, None, True, ~known)


def _nominal(column: ColumnInfo, codes: npt.NDArray[np.int32]) -> list[tuple[DesignColumn, Floats]]:
    counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    # By frequency and then by name, for containers differ in the order of levels.
    order = sorted(range(len(column.levels)), key=lambda code: (-counts[code], column.levels[code]))[:_MOST_LEVELS]
    shown = sorted(order, key=lambda code: column.levels[code])
    if len(shown) == 2 and not (codes < 0).any() and len(column.levels) == 2:
        shown = shown[1:]  # the other is its opposite
    found: list[tuple[DesignColumn, Floats]] = []
    for code in shown:
        found += _indicator(column.name, column.levels[code], False, codes == code)
    return found + _indicator(column.name, None, True, codes == MISSING)


def _indicator(
    name: str, level: str | None, missing: bool, has: npt.NDArray[np.bool_]
) -> list[tuple[DesignColumn, Floats]]:
    n = int(has.sum())
    if min(n, len(has) - n) < _LEAST_ROWS:
        return []
    raw = has.astype(np.float64)
    return [(DesignColumn(name, level, missing, float(raw.mean()), float(raw.std())), raw)]
