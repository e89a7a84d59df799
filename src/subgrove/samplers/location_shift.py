"""Location shift: new values of a feature are its linear prediction from other columns plus a resampled residual.

`ResidualSampler` resamples the residuals of a numeric feature within subgroups; `LevelSampler` draws levels with the
probabilities of a multinomial model. Both are used by `auto` and by `ShiftedSubgroups`, and start from training data
that all features of a table share (`SharedTraining`).

The linear prediction is only an estimate. A row's own value is informative about the estimation error in this row, and
new values that ignored it would be further from the old one than two values of the same row are. A row therefore
retains a share of its own residual: the part of the residual variance that the columns could explain with more rows.
Old and new value are then exchangeable up to second moments (`docs/decisions/0020-shifted-subgroups.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams, cached, read_seed, stream
from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._core.validate import whole_number
from subgrove._data.columns import ColumnInfo, Members, allowed_columns
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table, TypedColumn
from subgrove._regress import FoldGrams, LinearFit, LinearPredictor
from subgrove._regress.forest_levels import ForestLevels, ForestLevelsFit
from subgrove._regress.kernel import SmoothPredictor
from subgrove._regress.kernel_levels import KernelLevels, KernelLevelsFit
from subgrove._regress.multinomial import MultinomialFit, MultinomialPredictor
from subgrove._regress.ordered_levels import OrderedLevels, OrderedLevelsFit
from subgrove._subgroups import Partition
from subgrove._subgroups.partition import TreeSettings
from subgrove.samplers.base import Feature, FittedSampler, read_training_table
from subgrove.samplers.donors import SortedPools, balanced_points
from subgrove.samplers.new_values import NewValues
from subgrove.samplers.resampled_feature import (
    DonorPool,
    ExactExpectation,
    ExpectationTerm,
    ResampledFeature,
    RowGroups,
)
from subgrove.samplers.scales import ValueScale
from subgrove.trees.training import SortedTable, select_columns

MAX_ROWS = 20_000
NO_LIMIT = 30  # maximum depth of a tree that is stopped by its tests
REPORT_DEPTH = 2
FEW_VALUES = 10  # numeric features with at most this many distinct values are treated as levels
_MAX_RETENTION = 0.9
_NEGLIGIBLE = 1e-12  # probabilities below it are rounding error


@dataclass(frozen=True, eq=False)
class SharedTraining:
    """Training data and settings shared by all features of one table.

    Attributes
    ----------
    table : Table
        Training rows (a random subset if there are many).
    rows : int array
        Their positions in the user's table.
    grams : FoldGrams
        Gram matrices of all columns by fold, for linear predictions.
    allowed : tuple of str
        Columns that new values may depend on.
    settings : TreeSettings
        Settings of the trees.
    report_depth : int
        Depth of the subgroups by which results are reported.
    seed : int
        Seed of folds, halves and forests.
    sorted_table : SortedTable or None
        Sorted columns that trees on all these rows share; None if only some of the rows are used.
    """

    table: Table
    rows: Rows
    grams: FoldGrams
    allowed: Members
    settings: TreeSettings
    report_depth: int
    seed: int
    sorted_table: SortedTable | None = None

    def predictors(self, feature: Feature) -> Table:
        """Return the columns that values of a feature may depend on."""
        if self.sorted_table is None:
            return select_columns(self.table, [name for name in self.allowed if name not in feature])
        return self.sorted_table.table.without(feature)


def read_shared_training(
    sampler: Any, X: Any, features: Any
) -> tuple[tuple[ColumnInfo, ...], tuple[Feature, ...], SharedTraining]:
    """Return the columns of training rows, the features to resample, and the shared training data.

    `sampler` has the parameters of `Auto`.
    """
    settings = TreeSettings.checked("transformation", sampler.max_depth, sampler.min_samples_leaf, sampler.alpha)
    report_depth = whole_number("report_depth", sampler.report_depth, least=0)
    seed = read_seed(sampler.random_state)
    table, parsed = read_training_table(X, features, sampler)
    rows, most = np.arange(table.n_rows), whole_number("max_rows", sampler.max_rows, least=10)
    if len(rows) > most:
        rows = np.sort(stream(seed, "rows that are used").choice(len(rows), most, replace=False))
    subset = table.rows(rows)
    allowed = allowed_columns(sampler.given, table.names)
    shared = SharedTraining(
        table=subset,
        rows=rows,
        grams=FoldGrams.of(subset, seed),
        allowed=allowed,
        settings=settings,
        report_depth=report_depth,
        seed=seed,
        sorted_table=SortedTable.of(select_columns(subset, allowed), shared=True),
    )
    return table.columns, parsed, shared


def intercept_only(grams: FoldGrams, series: TypedColumn) -> LinearFit:
    """Return the fit of a feature that no other column predicts: its mean."""
    mean = float(series.values.mean())
    residuals = series.values - mean
    return LinearFit(LinearPredictor(series.info.name, mean, (), grams.design), residuals, float(residuals.var()))


def residual_column(fit: LinearFit) -> TypedColumn:
    """Return the residuals of a fit as a column."""
    return TypedColumn(ColumnInfo(f"residual of {fit.predictor.feature}", "numeric"), fit.residuals)


def has_few_levels(series: TypedColumn) -> bool:
    """Return whether a feature is resampled by level: nominal, ordered, or numeric with few distinct values."""
    if series.info.kind != "numeric":
        return True
    first = series.values[: 5 * FEW_VALUES]  # usually enough to see that there are more
    return len(np.unique(first)) <= FEW_VALUES and len(np.unique(series.values)) <= FEW_VALUES


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualSampler(FittedSampler):
    """Resamples one numeric feature: linear prediction plus a residual from the same subgroup.

    Attributes
    ----------
    predictor : LinearPredictor
        Linear prediction of the feature.
    partition : Partition
        Subgroups of the residuals.
    shown : Partition
        Subgroups by which results are reported.
    code, residuals : arrays
        Subgroup and held-out residual of each training row.
    centre : float array
        Mean residual of each subgroup.
    retention : float
        Share of its own residual that a row retains.
    values : NewValues
        Range and rounding of new values.
    """

    predictor: LinearPredictor | SmoothPredictor
    partition: Partition
    shown: Partition
    code: Codes
    residuals: Floats
    centre: Floats
    retention: float
    values: NewValues

    @classmethod
    def of(
        cls,
        fit: LinearFit,
        partition: Partition,
        training: SharedTraining,
        series: TypedColumn,
        report_depth: int,
        retention: float | Literal["auto"] = "auto",
        scale: ValueScale | None = None,
    ) -> ResidualSampler:
        """Build from a linear fit and the subgroups of its residuals."""
        code = partition._assign_table(training.table).astype(np.int32)
        counts = np.maximum(np.bincount(code, minlength=len(partition)), 1)
        centre = np.bincount(code, weights=fit.residuals, minlength=len(partition)) / counts
        return cls(
            training.table.columns,
            predictor=fit.predictor,
            partition=partition,
            shown=partition.at_depth(report_depth),
            code=code,
            residuals=fit.residuals,
            centre=centre,
            retention=_residual_retention(fit, code, centre, counts) if retention == "auto" else float(retention),
            values=NewValues.of(series, fit.residuals, training.rows, scale),
        )

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the feature; new numbers have no exact expectation."""
        (name,) = feature
        values = table.values(name)
        own = self.values.on_scale(values)
        code = self.partition._assign_table(table).astype(np.int32)
        shown = self.shown._assign_table(table).astype(np.int32)
        predicted = self.predictor.predict(table) + self.centre[code]
        retention = np.where(np.isnan(own), 0.0, self.retention)
        base = predicted + retention * np.where(np.isnan(own), 0.0, own - predicted)
        spread = np.sqrt(1.0 - retention**2)
        pools = cached(rngs, "pools", lambda: SortedPools(self.code, self.residuals, len(self.partition)))
        centred = self.residuals - self.centre[self.code]

        def members() -> Iterator[Rows]:
            points = balanced_points(code, len(self.partition), own - predicted, rngs)
            return (pools.at(code, each) for each in points)

        def draws() -> Iterator[Changes]:
            return ({name: self.values.fitted_to(base + spread * centred[drawn], values)} for drawn in members())

        groups = RowGroups(shown, self.shown.rules, self.conditioning)
        return ResampledFeature(groups, draws, None, np.array([np.inf]), donor_pool=DonorPool(self.code, members))

    @property
    def conditioning(self) -> tuple[str, ...]:
        """Columns of the linear predictor and of the subgroups."""
        return tuple(dict.fromkeys((*self.predictor.columns, *self.partition.conditioning)))

    @property
    def has_subgroups(self) -> bool:
        """Whether results can be reported by subgroups of the residuals."""
        return len(self.shown) > 1

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the subgroups by which results are reported."""
        return self.shown

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe this sampler."""
        return {
            "shift": self.predictor.text(),
            "residual_retention": self.retention,
            "n_subgroups": len(self.partition),
            "conditioning": self.conditioning,
        }


def _residual_retention(fit: LinearFit, code: Codes, centre: Floats, counts: Rows) -> float:
    """Return 1 minus the noise variance of the full linear model over the variance of held-out residuals."""
    factor = (counts / np.maximum(counts - 1, 1))[code]
    variance = float((((fit.residuals - centre[code]) * factor) ** 2).mean())
    return float(np.clip(1.0 - fit.noise / variance, 0.0, _MAX_RETENTION)) if variance > 0 else 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class LevelSampler(FittedSampler):
    """Resamples one feature by the predicted probabilities of its levels.

    Attributes
    ----------
    predictor : MultinomialPredictor
        Probabilities of levels.
    values : array
        Value in the table for each level.
    representatives : int array
        A training row with each level.
    kept : float
        Share of rows that keep their own level: the part of the uncertainty that is due to errors of the probabilities.
    """

    partition: ClassVar[None] = None  # levels have no residuals
    retention: ClassVar[None] = None
    predictor: MultinomialPredictor | ForestLevels | KernelLevels | OrderedLevels
    values: npt.NDArray[np.generic]
    representatives: Rows
    kept: float = 0.0

    @classmethod
    def of(
        cls,
        fit: MultinomialFit | ForestLevelsFit | KernelLevelsFit | OrderedLevelsFit,
        series: TypedColumn,
        rows: Rows,
        columns: tuple[ColumnInfo, ...],
    ) -> LevelSampler:
        """Build from predicted probabilities; `rows` are the positions of the rows in X."""
        _, first = np.unique(series.values, return_index=True)
        return cls(columns, predictor=fit.predictor, values=fit.values, representatives=rows[first], kept=fit.kept)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the feature."""
        own = table.values(feature[0])
        is_own = own[:, None] == self.values
        known = is_own.any(axis=1, keepdims=True)
        probabilities = self.predictor.predict(table)
        probabilities = np.where(known, (1 - self.kept) * probabilities + self.kept * is_own, probabilities)
        groups = RowGroups(np.zeros(table.n_rows, dtype=np.int32), conditioning=self.predictor.columns)
        return sample_levels(
            probabilities, self.values, self.representatives, own, feature[0], rngs, exact=exact, groups=groups
        )

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe this sampler."""
        return {"shift": self.predictor.text(), "conditioning": self.predictor.columns}


def sample_levels(
    probabilities: Floats,
    levels: npt.NDArray[np.generic],
    representatives: Rows,
    own: npt.NDArray[np.generic],
    name: str,
    rngs: Streams,
    *,
    exact: bool,
    groups: RowGroups,
) -> ResampledFeature:
    """Draw levels with row-wise probabilities, or take the expectation if that costs no more than the repeats."""
    probabilities = np.where(probabilities < _NEGLIGIBLE, 0.0, probabilities)
    ends = np.cumsum(probabilities, axis=1)

    def draws() -> Iterator[Changes]:
        for rng in rngs:
            # Below the last end even if the probabilities do not sum to exactly 1.
            points = rng.random(len(own)) * ends[:, -1]
            drawn = np.minimum((points[:, None] >= ends).sum(axis=1), len(levels) - 1)
            yield {name: Donors(representatives[drawn], train=True, representatives=True)}

    def terms() -> Iterator[ExpectationTerm]:
        for k, level in enumerate(levels):
            rows = np.flatnonzero((probabilities[:, k] > 0) & (own != level))
            donors = Donors(np.full(len(rows), representatives[k]), train=True, representatives=True)
            yield ExpectationTerm(rows, {name: donors}, probabilities[rows, k])

    expectation = None
    if exact and len(levels) - 1 <= len(rngs):
        expectation = ExactExpectation(np.ones(len(own), dtype=np.bool_), terms)
    return ResampledFeature(groups, draws, expectation)
