"""Encodings of a table as numbers: the one place that turns typed columns into a matrix.

- `one_hot`: a matrix for forests; numbers unchanged, an indicator for each level.
- `rank_encoded`: a matrix for forests with one column per feature; levels ranked by their mean outputs.
- `Design`: columns and indicators for linear models, standardized by mean and standard deviation or robustly.
- `PointEncoding`: standardized numbers and codes of labels, for distances between rows.

Dates and durations are numbers too, in days (`forest_numbers`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, Codes, Floats, Rows
from subgrove._data.columns import NORMAL_IQR, ColumnInfo, LogScale
from subgrove._data.table import Table

_DAY = 86_400e6  # microseconds
_TIE = 1e-9  # weights that differ by a smaller share are equal
_MAX_LEVELS = 20  # of a column, the most frequent ones
_MIN_ROWS = 10  # with and without a level, or a missing value, for it to have an indicator
_CONSTANT = 1e-12
_LARGEST = 1e70  # its fourth power is finite
_CLIP = 4.0  # robust standard deviations from the median at which values are clipped
_MIN_ROBUST_ROWS = 5  # with a level, for it to have an indicator in a robust design
_MAX_SCALED = 150  # columns of a design with logarithmic scales: pairwise products of more are not tried


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
    for info, values in ((column.info, column.values) for column in table):
        if info.name not in left_out and (columns is None or info.name in columns):
            blocks.append(_indicators(info, values) if info.is_nominal else _finite(info, values))
    return np.column_stack(blocks) if blocks else np.zeros((table.n_rows, 1))


def _finite(column: ColumnInfo, values: Floats) -> Floats:
    # An ordered level that is absent from training is infinite in the table; trees treat it as missing.
    return _known(forest_numbers(column, values))[:, None]


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
    # Rounded, so that levels with equal means are tied.
    return np.asarray(np.round(centred @ first_axis(centred * np.sqrt(n)[:, None]), 12))


def first_axis(rows: Floats) -> Floats:
    """Return the first principal axis of rows (not centred here), with a sign that rounding does not change."""
    first: Floats = np.linalg.svd(rows, full_matrices=False)[2][0]
    # Two entries may be equal up to rounding, which differs between machines: the first one is made positive.
    sizes = np.abs(first)
    return np.asarray(first * np.sign(first[np.argmax(sizes >= sizes.max() * (1 - _TIE))]))


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
        Mean and standard deviation in training; in a robust design, median and scaled interquartile range of values.
    power : int
        2 for the square of the standardized value.
    log_scale : LogScale or None
        Scale of the value, if not its own.
    """

    column: str
    level: str | None
    missing: bool
    mean: float
    scale: float
    power: int = 1
    log_scale: LogScale | None = None

    @property
    def is_value(self) -> bool:
        """Whether it is the value itself, not an indicator."""
        return self.level is None and not self.missing

    @property
    def label(self) -> str:
        """Label in formulas."""
        if self.is_value:
            return self.column if self.log_scale is None else self.log_scale.label(self.column)
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
    clip : float
        Largest absolute value of a standardized value.
    """

    columns: tuple[ColumnInfo, ...]
    parts: tuple[DesignColumn, ...]
    clip: float = np.inf

    @classmethod
    def of(cls, table: Table) -> tuple[Design, Floats]:
        """Return the design of training rows, and their design matrix."""
        parts: list[DesignColumn] = []
        for column in table:
            parts += (_nominal if column.info.is_nominal else _numeric)(column.info, column.values)
        if len(parts) > _MAX_SCALED:
            parts = [part for part in parts if part.log_scale is None]
        design = cls(table.columns, tuple(parts))
        return design, np.ascontiguousarray(design.matrix(table))

    @classmethod
    def robust(cls, one: Table, two: Table) -> Design:
        """Return the design of the rows of two tables in which no single row dominates.

        Values are standardized by median and interquartile range, clipped, and have squares; of levels, the most
        frequent is the reference. The columns are those of the second table.
        """
        parts: list[DesignColumn] = []
        for name in two.names:
            first, second = one.series(name), two.series(name)
            values = np.concatenate([first.values, second.values])
            missing = np.concatenate([first.missing, second.missing])
            parts += _levels(first.info, values) if first.info.is_nominal else _powers(name, values[~missing])
            if 0 < missing.sum() < len(missing):
                parts.append(DesignColumn(name, None, True, 0.0, 1.0))
        return cls(two.columns, tuple(parts), _CLIP)

    def matrix(self, table: Table) -> Floats:
        """Return the design matrix of new rows."""
        matrix = np.empty((len(self.parts), table.n_rows))
        for line, part in zip(matrix, self.parts, strict=True):
            line[:] = self.numbers(table, part)
        return matrix.T

    def allowed(self, names: Sequence[str], *, log_scales: bool = True) -> npt.NDArray[np.intp]:
        """Return the positions of the design columns of some table columns, perhaps without logarithmic scales."""
        wanted = set(names)
        found = [at for at, part in enumerate(self.parts) if part.column in wanted]
        return np.array([at for at in found if log_scales or self.parts[at].log_scale is None], dtype=np.intp)

    def on_log_scales(self, places: Rows) -> Rows:
        """Return positions of design columns, those of values on a logarithmic scale where there is one."""
        logs = {part.column: at for at, part in enumerate(self.parts) if part.log_scale is not None}
        columns = [(at, self.parts[at]) for at in places.tolist()]
        return np.array([logs.get(part.column, at) if part.is_value else at for at, part in columns], dtype=np.intp)

    def numbers(self, table: Table, part: DesignColumn) -> Floats:
        """Return one design column of new rows, standardized as in training."""
        series = table.series(part.column)
        if part.missing:
            is_missing = series.values == MISSING if series.info.is_nominal else np.isnan(series.values)
            raw = is_missing.astype(np.float64)
        elif series.info.is_nominal:
            raw = (series.values == _code_of_level(series.info, part.level)).astype(np.float64)
        else:
            known, scale = np.isfinite(series.values), part.log_scale
            values = series.values if scale is None else scale.of_values(np.where(known, series.values, 1.0))
            raw = np.where(known, values, part.mean)
        standardized = np.asarray((raw - part.mean) / part.scale)
        if not part.is_value or self.clip == np.inf:
            return standardized
        return np.asarray(np.clip(standardized, -self.clip, self.clip) ** part.power)


def _powers(name: str, values: Floats) -> list[DesignColumn]:
    """Return the value of a column and its square, robustly standardized; none if the column is constant."""
    values = values[np.isfinite(values)]
    if not len(values):
        return []
    low, centre, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    with np.errstate(over="ignore", invalid="ignore"):
        scale = (high - low) / NORMAL_IQR
        scale = scale if scale > 0 else float(values.std())
    if not 0 < scale < np.inf:
        return []
    two_values = bool(((values == values.min()) | (values == values.max())).all())
    return [DesignColumn(name, None, False, centre, scale, power) for power in ((1,) if two_values else (1, 2))]


def _levels(info: ColumnInfo, codes: Codes) -> list[DesignColumn]:
    """Return indicators of frequent levels; the most frequent is the reference."""
    counts = np.bincount(codes[codes >= 0])
    frequent = np.argsort(-counts, kind="stable")[1 : _MAX_LEVELS + 1]
    own = [info.levels[code] for code in frequent if counts[code] >= _MIN_ROBUST_ROWS]
    return [DesignColumn(info.name, level, False, 0.0, 1.0) for level in own]


def _code_of_level(column: ColumnInfo, level: str | None) -> int:
    return column.levels.index(level) if level in column.levels else len(column.levels)


def is_extreme(values: Floats) -> bool:
    """Return whether numbers are so large, or so close together, that sums of their products over- or underflow."""
    known = values[np.isfinite(values)]
    if not len(known):
        return False
    low, high = float(known.min()), float(known.max())
    return max(abs(low), abs(high)) > _LARGEST or 0 < high - low < 1 / _LARGEST


def _numeric(column: ColumnInfo, values: Floats) -> list[DesignColumn]:
    known = np.isfinite(values)
    if not known.any() or is_extreme(values):
        return []
    complete = bool(known.all())
    mean = float((values if complete else values[known]).mean())
    raw = values if complete else np.where(known, values, mean)
    scale = float(raw.std())
    if not np.isfinite(scale) or scale <= _CONSTANT * max(abs(mean), 1e-300):
        return []
    parts = [DesignColumn(column.name, None, False, mean, scale)]
    log_scale = None if column.is_date else LogScale.of(values[known])
    if log_scale is not None:
        scaled = log_scale.of_values(values[known])
        parts.append(DesignColumn(column.name, None, False, float(scaled.mean()), float(scaled.std()), 1, log_scale))
    return parts if complete else [*parts, *_indicator(column.name, None, True, ~known)]


def _nominal(column: ColumnInfo, codes: npt.NDArray[np.int32]) -> list[DesignColumn]:
    counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    # By frequency and then by name, because containers differ in the order of levels.
    frequent = sorted(range(len(column.levels)), key=lambda code: (-counts[code], column.levels[code]))[:_MAX_LEVELS]
    by_name = sorted(frequent, key=lambda code: column.levels[code])
    if len(by_name) == 2 and not (codes < 0).any() and len(column.levels) == 2:
        by_name = by_name[1:]  # the first is its complement
    parts: list[DesignColumn] = []
    for code in by_name:
        parts += _indicator(column.name, column.levels[code], False, codes == code)
    return parts + _indicator(column.name, None, True, codes == MISSING)


def _indicator(name: str, level: str | None, missing: bool, present: npt.NDArray[np.bool_]) -> list[DesignColumn]:
    """Return the indicator of a level or of missing values; none if nearly all rows, or hardly any, have it."""
    n = int(present.sum())
    if min(n, len(present) - n) < _MIN_ROWS:
        return []
    raw = present.astype(np.float64)
    return [DesignColumn(name, level, missing, float(raw.mean()), float(raw.std()))]


@dataclass(frozen=True, eq=False)
class PointEncoding:
    """Encodes rows as points, with columns standardized by the training rows.

    Numbers, ranks of ordered levels and dates have mean 0 and standard deviation 1 in the training rows; constant
    columns are only centred. Two different labels have distance 1, like two numbers that differ by one standard
    deviation. A missing label is a label of its own; a missing number is set to the mean and flagged in a further
    column by 1. Ordered levels unseen in training count as missing; unseen labels count as one label.

    Attributes
    ----------
    columns : tuple of ColumnInfo
        Columns of the training rows.
    centre, spread : float array
        Mean and standard deviation of numeric columns, in the order of `Table.numbers`.
    """

    columns: tuple[ColumnInfo, ...]
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, train: Table) -> PointEncoding:
        """Compute means and standard deviations of the training rows."""
        numbers = _known(train.numbers)
        count = np.maximum((~np.isnan(numbers)).sum(axis=0), 1)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is reported with the distances
            centre = np.nansum(numbers, axis=0) / count
            spread = np.sqrt(np.nansum((numbers - centre) ** 2, axis=0) / np.maximum(count - 1, 1))
        return cls(train.columns, centre, np.where((spread > 0) & np.isfinite(spread), spread, 1.0))

    def arrays(self, table: Table, names: Collection[str], with_missing: Collection[str]) -> tuple[Floats, Floats]:
        """Return numbers and codes of labels of some columns.

        Numeric columns in `with_missing` get an indicator of missing values.
        """
        places = zip(self.columns, table.positions(), strict=True)
        selected = [(column, at) for column, at in places if column.name in names]
        numeric = [at for column, at in selected if not column.is_nominal]
        nominal = [at for column, at in selected if column.is_nominal]
        flagged = [column.name in with_missing for column, _ in selected if not column.is_nominal]
        numbers = _known(table.numbers[:, numeric])
        missing = np.isnan(numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(missing, 0.0, (numbers - self.centre[numeric]) / self.spread[numeric])
        labels = table.codes[:, nominal].astype(np.float64)
        return np.hstack([scaled, missing[:, np.array(flagged, dtype=np.bool_)].astype(np.float64)]), labels


def columns_with_missing(tables: Sequence[Table]) -> frozenset[str]:
    """Return the numeric columns with missing values in any of the tables."""
    numeric = (column for table in tables for column in table if not column.info.is_nominal)
    return frozenset(column.info.name for column in numeric if not np.isfinite(column.values).all())


def _known(numbers: Floats) -> Floats:
    return np.where(np.isinf(numbers), np.nan, numbers)
