"""Encodings of a table as a matrix of numbers.

- `one_hot`: a matrix for forests; numbers unchanged, an indicator for each level.
- `rank_encoded`: a matrix for forests with one column per feature; levels ranked by their mean outputs.
- `Design`: standardized columns and indicators for linear models.

Dates and durations are numbers too, in days (`forest_numbers`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, Codes, Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import Table

_DAY = 86_400e6  # microseconds
_TIE = 1e-9  # weights that differ by a smaller share are equal
_MAX_LEVELS = 20  # of a column, the most frequent ones
_MIN_ROWS = 10  # with and without a level, or a missing value, for it to have an indicator
_CONSTANT = 1e-12
_LARGEST = 1e70  # its fourth power is finite


def forest_numbers(info: ColumnInfo, values: Floats) -> Floats:
    """Return the values of a column that is not nominal; dates and durations in days.

    Trees of scikit-learn, the fallback, have single precision, which cannot represent microseconds.
    """
    return np.asarray(values / _DAY if info.is_date or info.is_duration else values)


def one_hot(table: Table, excluded: str | tuple[str, ...], columns: Collection[str] | None = None) -> Floats:
    """Return all columns except some, or those of them that are in `columns`, as a matrix for forests.

    Nominal columns become an indicator for each level and for missing values. Missing numbers are NaN. A level that is
    absent from training has no indicator. Without any column the matrix has one constant column.
    """
    blocks: list[Floats] = []
    left_out = (excluded,) if isinstance(excluded, str) else excluded
    for column, at in zip(table.columns, table.positions(), strict=True):
        if column.name not in left_out and (columns is None or column.name in columns):
            blocks.append(_indicators(column, table.codes[:, at]) if column.is_nominal else _finite(column, table, at))
    return np.column_stack(blocks) if blocks else np.zeros((table.n_rows, 1))


def _finite(column: ColumnInfo, table: Table, at: int) -> Floats:
    values = forest_numbers(column, table.numbers[:, at])
    # An ordered level that is absent from training is infinite in the table; trees treat it as missing.
    return np.where(np.isinf(values), np.nan, values)[:, None]


def _indicators(column: ColumnInfo, codes: npt.NDArray[np.int32]) -> Floats:
    # By name: containers differ in the order of levels, and a forest depends on the order of columns.
    by_name = sorted(range(len(column.levels)), key=lambda code: column.levels[code])
    known = [*by_name, *([MISSING] if column.has_missing else [])]
    return np.asarray((codes[:, None] == np.array(known, dtype=np.int32)).astype(np.float64))


def rank_encoded(table: Table, columns: Sequence[str], outputs: Floats, train: Rows) -> Floats:
    """Return the columns as a matrix for a forest that predicts `outputs`, fitted on the rows `train`.

    Levels of a nominal column are ranked along the direction in which their mean outputs in training rows differ most,
    so that one split separates the levels that differ most, as in forests of R. An indicator for each level would
    need one split for each, and would hide the column among its indicators when few columns are tried at a split.
    Missing values are NaN.
    """
    matrix = np.empty((table.n_rows, len(columns)))
    for at, name in enumerate(columns):
        series = table.series(name)
        if series.info.is_nominal:
            matrix[:, at] = _level_ranks(series.info, series.values, outputs, train)
        else:
            matrix[:, at] = forest_numbers(series.info, series.values)
    return matrix


def _level_ranks(info: ColumnInfo, codes: Codes, outputs: Floats, train: Rows) -> Floats:
    """Return the rank of each row's level; NaN if it is missing or absent from the training rows."""
    known = train[codes[train] >= 0]
    n = np.bincount(codes[known], minlength=len(info.levels)).astype(np.float64)
    sums = np.stack([np.bincount(codes[known], weights=column, minlength=len(n)) for column in outputs[known].T], 1)
    present = np.flatnonzero(n)
    if not len(present):
        return np.full(len(codes), np.nan)
    place = first_direction(sums[present] / n[present, None], n[present])
    # Ties by name, because containers differ in the order of levels.
    order = sorted(range(len(present)), key=lambda at: (place[at], info.levels[present[at]]))
    rank = np.full(len(n) + 1, np.nan)  # the last is for missing values, whose code is -1
    rank[present[order]] = np.arange(len(present))
    return np.asarray(rank[np.maximum(codes, -1)])


def first_direction(means: Floats, n: Floats) -> Floats:
    """Return the position of each level on the first principal component of the levels' mean outputs.

    For a numeric feature this is the order of means, for two classes the order of their shares.
    """
    centred = means - n @ means / n.sum()
    if centred.shape[1] == 1:
        return np.asarray(centred[:, 0])
    _, _, directions = np.linalg.svd(centred * np.sqrt(n)[:, None], full_matrices=False)
    first: npt.NDArray[np.float64] = directions[0]
    # Two outputs may have equal weights up to rounding, which differs between machines: the first one sets the sign.
    sizes = np.abs(first)
    sign = np.sign(first[np.argmax(sizes >= sizes.max() * (1 - _TIE))])
    # Rounded, so that levels with equal means are tied.
    return np.asarray(np.round(sign * centred @ first, 12))


@dataclass(frozen=True)
class DesignColumn:
    """One column of a design matrix: the value of a table column, or an indicator of a level or of missing values.

    Attributes
    ----------
    column : str
        Name of the table column.
    level : str or None
        Level of an indicator; None for values and for missing values.
    missing : bool
        Whether it indicates missing values.
    mean, scale : float
        Mean and standard deviation in training.
    """

    column: str
    level: str | None
    missing: bool
    mean: float
    scale: float

    @property
    def is_value(self) -> bool:
        """Whether it is the value itself, not an indicator."""
        return self.level is None and not self.missing

    @property
    def label(self) -> str:
        """Label in formulas."""
        if self.is_value:
            return self.column
        return f"[{self.column} missing]" if self.missing else f"[{self.column} = {self.level}]"


@dataclass(frozen=True, eq=False)
class Design:
    """Encoding of a table for linear models: standardized values, and indicators of levels and missing values.

    A missing value is encoded as the mean plus an indicator; a level that is absent from training has no indicator.

    Attributes
    ----------
    columns : tuple of ColumnInfo
        Columns of the training table.
    parts : tuple of DesignColumn
        Columns of the design matrix.
    """

    columns: tuple[ColumnInfo, ...]
    parts: tuple[DesignColumn, ...]

    @classmethod
    def of(cls, table: Table) -> tuple[Design, Floats]:
        """Return the design of training rows, and their design matrix."""
        encoded: list[tuple[DesignColumn, Floats]] = []
        for column, at in zip(table.columns, table.positions(), strict=True):
            encoded += (
                _nominal(column, table.codes[:, at]) if column.is_nominal else _numeric(column, table.numbers[:, at])
            )
        design = cls(table.columns, tuple(part for part, _ in encoded))
        matrix = np.empty((len(encoded), table.n_rows))
        for line, (part, raw) in zip(matrix, encoded, strict=True):
            line[:] = (raw - part.mean) / part.scale
        return design, np.ascontiguousarray(matrix.T)

    def allowed(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the positions of the design columns of some table columns."""
        wanted = set(names)
        return np.array([at for at, part in enumerate(self.parts) if part.column in wanted], dtype=np.intp)

    def numbers(self, table: Table, part: DesignColumn) -> Floats:
        """Return one design column of new rows, standardized as in training."""
        place = table.names.index(part.column)
        column, at = table.columns[place], table.positions()[place]
        if column.is_nominal:
            code = MISSING if part.missing else _code_of_level(column, part.level)
            raw = (table.codes[:, at] == code).astype(np.float64)
        else:
            values = table.numbers[:, at]
            raw = (
                np.isnan(values).astype(np.float64)
                if part.missing
                else np.where(np.isfinite(values), values, part.mean)
            )
        return np.asarray((raw - part.mean) / part.scale)


def _code_of_level(column: ColumnInfo, level: str | None) -> int:
    return column.levels.index(level) if level in column.levels else len(column.levels)


def is_extreme(values: Floats) -> bool:
    """Return whether numbers are so large, or so close together, that sums of their products over- or underflow."""
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
    complete = bool(known.all())
    mean = float((values if complete else values[known]).mean())
    raw = values if complete else np.where(known, values, mean)
    scale = float(raw.std())
    if not np.isfinite(scale) or scale <= _CONSTANT * max(abs(mean), 1e-300):
        return []
    encoded = [(DesignColumn(column.name, None, False, mean, scale), raw)]
    return encoded if complete else encoded + _indicator(column.name, None, True, ~known)


def _nominal(column: ColumnInfo, codes: npt.NDArray[np.int32]) -> list[tuple[DesignColumn, Floats]]:
    counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    # By frequency and then by name, because containers differ in the order of levels.
    frequent = sorted(range(len(column.levels)), key=lambda code: (-counts[code], column.levels[code]))[:_MAX_LEVELS]
    by_name = sorted(frequent, key=lambda code: column.levels[code])
    if len(by_name) == 2 and not (codes < 0).any() and len(column.levels) == 2:
        by_name = by_name[1:]  # the first is its complement
    encoded: list[tuple[DesignColumn, Floats]] = []
    for code in by_name:
        encoded += _indicator(column.name, column.levels[code], False, codes == code)
    return encoded + _indicator(column.name, None, True, codes == MISSING)


def _indicator(
    name: str, level: str | None, missing: bool, present: npt.NDArray[np.bool_]
) -> list[tuple[DesignColumn, Floats]]:
    n = int(present.sum())
    if min(n, len(present) - n) < _MIN_ROWS:
        return []
    raw = present.astype(np.float64)
    return [(DesignColumn(name, level, missing, float(raw.mean()), float(raw.std())), raw)]
