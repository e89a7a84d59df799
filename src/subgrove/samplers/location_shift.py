"""Shifted subgroups: a feature is a shift by other columns plus a residual, which is redrawn within subgroups.

The shift is only estimated. A row's own value tells something of what the shift misses in this row, and a redrawn value
that ignored it would be further from the old one than two values of the same row are. So of its own residual a row
keeps a share: the part of the residuals' variance that the columns could explain with more rows. Old and new value
are then exchangeable, as far as two moments go; `docs/decisions/0020-shifted-subgroups.md` has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from subgrove._core.kinds import MISSING, Codes, ColumnInfo, Floats, Rows
from subgrove._core.parallel import one_blas_thread, parallel_map
from subgrove._core.random import Streams, cached
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table, TypedColumn
from subgrove._regress import FoldGrams, LinearFit, LinearPredictor, fit_sparse_linear, is_extreme
from subgrove._subgroups import Partition
from subgrove._subgroups.grow import grow_partition
from subgrove.exceptions import ColumnError, ParameterError
from subgrove.samplers.auto.shared_training import (
    MAX_ROWS,
    NO_LIMIT,
    REPORT_DEPTH,
    SharedTraining,
    read_shared_training,
)
from subgrove.samplers.base import Feature, FittedSampler, Sampler
from subgrove.samplers.learned import learned_for
from subgrove.samplers.quasi_random import Pools, balanced_points
from subgrove.samplers.redraw import ResampledFeature, RowGroups
from subgrove.samplers.sparse_levels import LevelSampler, MultinomialPredictor, fit_sparse_multinomial
from subgrove.trees.training import select_columns

FEW_VALUES = 10  # numbers that are taken for levels
_MOST_KEPT = 0.9
_BEYOND = 2.0  # standard deviations of residuals that values may go beyond the extremes


class ShiftedSubgroups(Sampler):
    """Moves each value by what the other columns foretell of it, and redraws the rest within subgroups.

    A numeric feature is taken apart: a sparse shift (few terms with signs and sizes, among them products of two columns
    where these matter) and a residual, whose subgroups a transformation tree finds. A row is given the residual of a
    training row of its subgroup, on top of its own shift. A nominal feature (an ordered one, a number of few values)
    has a sparse multinomial shift: each level has a probability, which is that of the draw.

    Parameters
    ----------
    max_depth : int, default 30
        Most splits above a subgroup of residuals; mostly the tests of the tree stop it before.
    min_samples_leaf : int, default 30
        Least number of training rows in a subgroup.
    alpha : float, default 0.05
        Level of the tests that stop a tree.
    given : list of str, optional
        The columns that shift and subgroups may be made of.
    keep : float or "auto", default "auto"
        Share of its own residual that a row keeps, from 0 to 1. "auto" takes the share of the residuals' variance that
        a better estimate of the shift would explain; 0 draws without looking at the row's own value.
    report_depth : int, default 2
        Depth of the subgroups that results are told by. Redrawing uses all of the tree.
    max_rows : int, default 20000
        Training rows that are used, at random if there are more.
    random_state : int, default 0
        Of the folds that the shift's penalty is chosen on, and of the rows that are used.
    n_jobs : int, optional
        Number of features fitted at once.

    Notes
    -----
    Values go no further than those of training and the row's own, but for a little more where training values do not
    pile up at the end, and never below 0 if none was. Those of whole numbers, and of columns whose values repeat, are
    the nearest value of training. Features with missing values are refused: what is missing has no shift.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> sampler = sg.samplers.ShiftedSubgroups().fit(train.X, ["temp"])
    >>> sampler.shifts["temp"].columns[:2]
    ('season', 'hum')
    >>> for column in sampler.sample(test.X, "temp", 1):
    ...     print(len(column))
    219
    """

    name = "shifted_subgroups"
    accepts_missing = False

    def __init__(
        self,
        max_depth: int = NO_LIMIT,
        min_samples_leaf: int = 30,
        alpha: float = 0.05,
        given: Any = None,
        keep: float | Literal["auto"] = "auto",
        report_depth: int = REPORT_DEPTH,
        max_rows: int = MAX_ROWS,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.alpha = alpha
        self.given = given
        self.keep = keep
        self.report_depth = report_depth
        self.max_rows = max_rows
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, features: Any = None) -> FittedShiftedSubgroups:
        """Find the shift of each feature on training rows, and the subgroups of what is left.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be redrawn, or groups of names; all columns if not given.
        """
        if self.keep != "auto" and not (isinstance(self.keep, int | float | np.number) and 0 <= self.keep <= 1):
            raise ParameterError(f"keep must be 'auto' or a number from 0 to 1; got {self.keep!r}.")
        with one_blas_thread():
            columns, asked, setup = read_shared_training(self, X, features)
            task = _Fitting(setup, self.keep)
            learned = dict(zip((name for (name,) in asked), parallel_map(task, asked, self.n_jobs), strict=True))
        keeps_rows = any(isinstance(one, LevelSampler) or one.values is not None for one in learned.values())
        return FittedShiftedSubgroups(columns, X if keeps_rows else None, learned=learned)


@dataclass(frozen=True, eq=False)
class _Fitting:
    """What is learned of one feature."""

    setup: SharedTraining
    keep: float | Literal["auto"]

    def __call__(self, feature: Feature) -> ResidualSampler | LevelSampler:
        (name,) = feature
        setup = self.setup
        others = tuple(each for each in setup.allowed if each != name)
        series = setup.table.series(name)
        if takes_levels(series):
            found = fit_sparse_multinomial(setup.rivals, series, others)
            return LevelSampler.of(found, series, setup.rows)
        if is_extreme(series.values):
            raise ColumnError(
                f"Column {name!r} of train has numbers beyond 1e70, or closer to each other than 1e-70, which have no "
                f"shift. Rescale it, or use sampler 'auto'."
            )
        shift = fit_sparse_linear(setup.rivals, name, series.values, others) or no_shift(setup.rivals, series)
        tree = grow_partition(select_columns(setup.table, others), feature, (left_by(shift),), None, setup.settings)
        return ResidualSampler.of(shift, tree, setup.table, series, setup.rows, setup.shown, self.keep)


def no_shift(rivals: FoldGrams, series: TypedColumn) -> LinearFit:
    """Of a feature that no other column tells anything of: its mean."""
    mean = float(series.values.mean())
    left = series.values - mean
    return LinearFit(LinearPredictor(series.info.name, mean, (), rivals.design), left, float(left.var()))


def left_by(found: LinearFit) -> TypedColumn:
    """What a shift leaves of a feature, as a column."""
    return TypedColumn(ColumnInfo(f"residual of {found.shift.feature}", "numeric"), found.residuals)


@dataclass(frozen=True)
class ValueBounds:
    """How far redrawn values may go.

    Attributes
    ----------
    low, high : float
        Least and largest value of training.
    beyond_low, beyond_high : float
        How far values may go beyond these and the row's own value: nowhere, if several training rows have the extreme.
    floor : float
        What no value is below: 0 if none of training is.
    """

    low: float
    high: float
    beyond_low: float
    beyond_high: float
    floor: float

    @classmethod
    def of(cls, values: Floats, residuals: Floats) -> ValueBounds:
        """Of training values, and what a shift leaves of them."""
        low, high = float(values.min()), float(values.max())
        beyond = _BEYOND * float(residuals.std())
        return cls(
            low,
            high,
            beyond if (values == low).sum() == 1 else 0.0,
            beyond if (values == high).sum() == 1 else 0.0,
            0.0 if low >= 0 else -np.inf,
        )

    def around(self, own: Floats) -> tuple[Floats, Floats]:
        """Least and largest value for each row."""
        low = np.fmin(self.low, own) - self.beyond_low
        return np.maximum(low, np.fmin(self.floor, own)), np.fmax(self.high, own) + self.beyond_high


@dataclass(frozen=True, eq=False)
class ResidualSampler:
    """What redraws one numeric feature.

    Attributes
    ----------
    shift : Shift
    partition : Partition
        Of the residuals.
    shown : Partition
        The subgroups that results are told by.
    code, residuals : arrays
        Subgroup and held-out residual of each training row.
    centre : float array
        Mean residual of each subgroup.
    kept : float
        Share of its own residual that a row keeps.
    limits : Limits
        How far values may go.
    values, representatives : arrays or None
        Values of training in ascending order, and a row that has each: what redrawn values are rounded to.
    """

    shift: LinearPredictor
    partition: Partition
    shown: Partition
    code: Codes
    residuals: Floats
    centre: Floats
    kept: float
    limits: ValueBounds
    values: Floats | None
    representatives: Rows | None

    @classmethod
    def of(
        cls,
        found: LinearFit,
        partition: Partition,
        table: Table,
        series: TypedColumn,
        rows: Rows,
        shown: int,
        keep: float | Literal["auto"] = "auto",
    ) -> ResidualSampler:
        """From a shift that was found and the subgroups of what it leaves; `rows` are the places of the rows in X."""
        code = partition._assign_table(table).astype(np.int32)
        counts = np.maximum(np.bincount(code, minlength=len(partition)), 1)
        centre = np.bincount(code, weights=found.residuals, minlength=len(partition)) / counts
        share = _share_to_keep(found, code, centre, counts) if keep == "auto" else float(keep)
        values, first = np.unique(series.values, return_index=True)
        repeats = series.info.is_integer or 2 * len(values) < len(series.values)
        return cls(
            found.shift,
            partition,
            partition.at_depth(shown),
            code,
            found.residuals,
            centre,
            share,
            ValueBounds.of(series.values, found.residuals),
            values if repeats else None,
            rows[first] if repeats else None,
        )

    def resample(self, table: Table, feature: Feature, rngs: Streams, *, exact: bool = True) -> ResampledFeature:
        """The redraw of the feature; numbers that are not those of training have no exact expectation."""
        (name,) = feature
        own = table.values(name)
        code = self.partition._assign_table(table).astype(np.int32)
        shown = self.shown._assign_table(table).astype(np.int32)
        foretold = self.shift.predict(table) + self.centre[code]
        kept = np.where(np.isnan(own), 0.0, self.kept)
        base = foretold + kept * np.where(np.isnan(own), 0.0, own - foretold)
        spread = np.sqrt(1.0 - kept**2)
        pools = cached(rngs, "pools", lambda: Pools(self.code, self.residuals, len(self.partition)))
        drawn = self.residuals - self.centre[self.code]
        low, high = self.limits.around(own)

        def draws() -> Iterator[Changes]:
            for points in balanced_points(code, len(self.partition), own - foretold, rngs):
                values = np.clip(base + spread * drawn[pools.at(code, points)], low, high)
                yield {name: self._as_in_training(values)}

        groups = RowGroups(shown, self.shown.rules, self.conditioning)
        return ResampledFeature(groups, draws, None, np.array([np.inf]))

    @property
    def conditioning(self) -> tuple[str, ...]:
        """The columns that shift and subgroups ask for."""
        return tuple(dict.fromkeys((*self.shift.columns, *self.partition.conditioning)))

    def _as_in_training(self, values: Floats) -> Floats | Donors:
        if self.values is None or self.representatives is None:
            return values
        middles = (self.values[1:] + self.values[:-1]) / 2
        return Donors(self.representatives[np.searchsorted(middles, values)], train=True, representatives=True)


def _share_to_keep(found: LinearFit, code: Codes, centre: Floats, counts: Rows) -> float:
    """1 minus the noise that no sum of columns explains, over the variance of held-out residuals."""
    factor = (counts / np.maximum(counts - 1, 1))[code]
    left = float((((found.residuals - centre[code]) * factor) ** 2).mean())
    return float(np.clip(1.0 - found.noise / left, 0.0, _MOST_KEPT)) if left > 0 else 0.0


@dataclass(frozen=True, eq=False)
class FittedShiftedSubgroups(FittedSampler):
    """Redraws residuals on top of shifts; `learned` holds what is known of each feature."""

    learned: Mapping[str, ResidualSampler | LevelSampler] = field(kw_only=True)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw of one feature."""
        learned = learned_for(self.learned, feature, ShiftedSubgroups.name)
        series = table.series(feature[0])
        if (series.values == MISSING if series.info.is_nominal else series.missing).any():
            raise ParameterError(
                f"sampler {ShiftedSubgroups.name!r} takes no missing values, but column {feature[0]!r} has some in the "
                f"rows to redraw. Fill them, leave it out of features, or use 'auto'."
            )
        return learned.resample(table, feature, rngs, exact=exact)

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """The subgroups that results of the feature are told by; levels have none."""
        learned = learned_for(self.learned, feature, ShiftedSubgroups.name)
        return learned.shown if isinstance(learned, ResidualSampler) else None

    @property
    def shifts(self) -> dict[str, LinearPredictor | MultinomialPredictor]:
        """The shift of each feature: `.terms`, `.columns`, `.text()`."""
        return {name: one.shift for name, one in self.learned.items()}

    @property
    def subgroups(self) -> dict[str, Partition]:
        """The subgroups of the residuals of each numeric feature."""
        return {name: one.partition for name, one in self.learned.items() if isinstance(one, ResidualSampler)}

    @property
    def kept(self) -> dict[str, float]:
        """The share of its own residual that a row keeps, for each numeric feature."""
        return {name: one.kept for name, one in self.learned.items() if isinstance(one, ResidualSampler)}


def takes_levels(series: TypedColumn) -> bool:
    """Whether values are told apart as levels: nominal, ordered, or few different numbers."""
    if series.info.kind != "numeric":
        return True
    first = series.values[: 5 * FEW_VALUES]  # mostly enough to see that there are more
    return len(np.unique(first)) <= FEW_VALUES and len(np.unique(series.values)) <= FEW_VALUES
