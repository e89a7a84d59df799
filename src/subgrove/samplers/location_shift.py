"""Location shift: new values of a feature are its linear prediction from other columns plus a resampled residual.

`ResidualSampler` resamples the residuals of a numeric feature within subgroups. The feature may be on another scale
(`ValueScale`), and new values have the range and the rounding of the training values (`NewValues`).

The linear prediction is only an estimate. A row's own value is informative about the estimation error in this row, and
new values that ignored it would be further from the old one than two values of the same row are. A row therefore
retains a share of its own residual: the part of the residual variance that the columns could explain with more rows.
Old and new value are then exchangeable up to second moments (`docs/decisions/0020-shifted-subgroups.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from subgrove._core.execution import Streams, cached
from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table, TypedColumn
from subgrove._regress.gram import FoldGrams
from subgrove._regress.kernel import PredictorSum
from subgrove._regress.linear import LinearFit, LinearPredictor
from subgrove._subgroups import Partition
from subgrove.samplers.base import Feature, FittedSampler
from subgrove.samplers.donors import ShiftedResiduals
from subgrove.samplers.resampled_feature import DonorPool, ResampledFeature, RowGroups
from subgrove.samplers.training_donors import SharedTraining, SortedPools, balanced_points

_MIN_LOG_SPREAD = 0.3  # standard deviation of logarithms below which they are nearly linear
_HEAVY_TAILS = 4.5  # kurtosis from which normal scores are tried; that of a normal distribution is 3
_EXTREME_TAILS = 30.0  # kurtosis from which candidates are compared on normal scores
_MIN_ROWS = 50
_MARGIN = 2.0  # residual standard deviations by which new values may exceed the range
_MAX_RETENTION = 0.9
_SPREAD_RANGE = (0.005, 0.995)  # quantiles of predicted spreads beyond which none is predicted


@dataclass(frozen=True, eq=False)
class ValueScale:
    """Increasing transformation of a feature.

    Attributes
    ----------
    kind : {"log", "normal scores"}
    values, scores : float arrays
        Sorted training values, and their normal scores; empty for logarithms.
    """

    kind: Literal["log", "normal scores"]
    values: Floats
    scores: Floats

    @classmethod
    def of(cls, kind: Literal["log", "normal scores"], x: Floats) -> ValueScale:
        """Return the transformation of training values."""
        if kind == "log":
            return cls(kind, np.empty(0), np.empty(0))
        from scipy.special import ndtri

        values, first, counts = np.unique(np.sort(x), return_index=True, return_counts=True)
        return cls(kind, values, ndtri((first + counts / 2) / len(x)))

    def forward(self, x: Floats) -> Floats:
        """Return transformed values."""
        if self.kind == "log":
            return np.log(np.maximum(x, np.finfo(np.float64).tiny))
        return np.where(np.isnan(x), np.nan, np.interp(x, self.values, self.scores))

    def back(self, z: Floats) -> Floats:
        """Return the values of transformed ones."""
        if self.kind == "log":
            return np.exp(np.minimum(z, 700.0))
        return np.asarray(np.interp(z, self.scores, self.values))

    def largest_below(self, limits: Floats) -> Floats:
        """Return the largest transformed value whose value is at most each limit."""
        if self.kind == "log":
            with np.errstate(divide="ignore"):
                return np.log(np.maximum(limits, 0.0))
        inside = np.interp(limits, self.values, self.scores)
        return np.where(limits < self.values[0], -np.inf, np.where(limits >= self.values[-1], np.inf, inside))

    def label(self, feature: str) -> str:
        """Return the name of the transformed feature."""
        return f"log({feature})" if self.kind == "log" else f"normal score of {feature}"


def judging_scale(x: Floats) -> ValueScale | None:
    """Return normal scores if a few extreme values would decide a comparison of CRPS; None otherwise."""
    spread = float(x.std())
    if len(x) < _MIN_ROWS or not 0 < spread < np.inf:
        return None
    kurtosis = float((((x - x.mean()) / spread) ** 4).mean())
    return ValueScale.of("normal scores", x) if kurtosis > _EXTREME_TAILS else None


def scales_to_try(x: Floats, residuals: Floats) -> list[ValueScale]:
    """Return transformations that may make a dependence simpler: of positive, skewed and heavy-tailed values."""
    if len(x) < _MIN_ROWS:
        return []
    if x.min() > 0 and float(np.log(x).std()) > _MIN_LOG_SPREAD:
        return [ValueScale.of("log", x)]
    spread = float(residuals.std())
    if spread > 0 and float(((residuals - residuals.mean()) ** 4).mean()) > _HEAVY_TAILS * spread**4:
        return [ValueScale.of("normal scores", x)]
    return []


@dataclass(frozen=True)
class ValueBounds:
    """Range of resampled values.

    Attributes
    ----------
    low, high : float
        Minimum and maximum in training.
    margin_low, margin_high : float
        Distance by which values may exceed this range and the row's own value; 0 if several training rows share the
        extreme value.
    floor : float
        Lower bound of all values: 0 if no training value is negative.
    """

    low: float
    high: float
    margin_low: float
    margin_high: float
    floor: float

    @classmethod
    def of(cls, values: Floats, residuals: Floats) -> ValueBounds:
        """Compute from training values and their residuals."""
        low, high = float(values.min()), float(values.max())
        margin = _MARGIN * float(residuals.std())
        return cls(
            low,
            high,
            margin if (values == low).sum() == 1 else 0.0,
            margin if (values == high).sum() == 1 else 0.0,
            0.0 if low >= 0 else -np.inf,
        )

    def around(self, own: Floats) -> tuple[Floats, Floats]:
        """Return the lower and upper bound of each row."""
        low = np.fmin(self.low, own) - self.margin_low
        return np.maximum(low, np.fmin(self.floor, own)), np.fmax(self.high, own) + self.margin_high


@dataclass(frozen=True, eq=False)
class NewValues:
    """Range of new values of a feature, and training values that they are rounded to.

    Attributes
    ----------
    bounds : ValueBounds
        Range of new values.
    values, representatives : arrays or None
        Sorted training values, and a row with each, if new values are rounded to them.
    scale : ValueScale or None
        Scale on which new values are computed.
    """

    bounds: ValueBounds
    values: Floats | None
    representatives: Rows | None
    scale: ValueScale | None = None

    @classmethod
    def of(cls, series: TypedColumn, residuals: Floats, rows: Rows, scale: ValueScale | None = None) -> NewValues:
        """Compute from training values, their residuals, and their positions in the user's table."""
        values, first = np.unique(series.values, return_index=True)
        rounded = series.info.is_integer or 2 * len(values) < len(series.values)
        if scale is not None:  # in the units of the values
            residuals = series.values - scale.back(scale.forward(series.values) - residuals)
        bounds = ValueBounds.of(series.values, residuals)
        return cls(bounds, values if rounded else None, rows[first] if rounded else None, scale)

    def on_scale(self, own: Floats) -> Floats:
        """Return values on the scale on which new ones are computed."""
        return own if self.scale is None else self.scale.forward(own)

    def fitted_to(self, new: Floats, own: Floats) -> Floats | Donors:
        """Return new values within the range of each row, rounded to training values where these are few."""
        return self.rounded(np.clip(new if self.scale is None else self.scale.back(new), *self.bounds.around(own)))

    @property
    def unrounded(self) -> NewValues:
        """The same range, without rounding."""
        return replace(self, values=None, representatives=None)

    def rounded(self, new: Floats) -> Floats | Donors:
        """Return new values rounded to training values where these are few."""
        if self.values is None or self.representatives is None:
            return new
        middles = (self.values[1:] + self.values[:-1]) / 2
        return Donors(self.representatives[np.searchsorted(middles, new)], train=True, representatives=True)

    def largest_below(self, limits: Floats) -> tuple[Floats, Floats]:
        """Return the largest value that becomes at most each limit by rounding, and the same on the scale."""
        if self.values is not None:
            middles = np.append((self.values[1:] + self.values[:-1]) / 2, np.inf)
            at = self.values.searchsorted(limits, side="right") - 1  # the largest training value within the limit
            limits = np.where(at < 0, -np.inf, middles[np.maximum(at, 0)])
        return limits, limits if self.scale is None else self.scale.largest_below(limits)


def intercept_only(grams: FoldGrams, series: TypedColumn) -> LinearFit:
    """Return the fit of a feature that no other column predicts: its mean."""
    mean = float(series.values.mean())
    residuals = series.values - mean
    return LinearFit(LinearPredictor(series.info.name, mean, (), grams.design), residuals, float(residuals.var()))


def prediction_details(predictor: Any, columns: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a `SamplerChoice` that describe a prediction and what residuals depend on."""
    first = () if predictor is None else predictor.columns
    shift = None if predictor is None else predictor.text()
    return {"shift": shift, "conditioning": tuple(dict.fromkeys((*first, *columns)))}


def residual_column(fit: LinearFit) -> TypedColumn:
    """Return the residuals of a fit as a column."""
    return TypedColumn(ColumnInfo(f"residual of {fit.predictor.feature}", "numeric"), fit.residuals)


@dataclass(frozen=True, eq=False)
class PredictedSpread:
    """Predicted spread of residuals: the exponential of a prediction, within the range of training.

    Attributes
    ----------
    predictor : LinearPredictor or PredictorSum
        Predicts the logarithm.
    low, high : float
        Range of the logarithm.
    """

    predictor: LinearPredictor | PredictorSum
    low: float
    high: float

    @classmethod
    def of(cls, fit: LinearFit, logs: Floats) -> tuple[PredictedSpread, Floats]:
        """Return the predicted spread, and that of each training row, given logarithms of absolute residuals."""
        predicted = logs - fit.residuals
        low, high = np.quantile(predicted, _SPREAD_RANGE)
        return cls(fit.predictor, float(low), float(high)), np.exp(np.clip(predicted, low, high))

    def predict(self, table: Table) -> Floats:
        """Return the spread in each row."""
        return np.exp(np.clip(self.predictor.predict(table), self.low, self.high))


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
    spread : PredictedSpread or None
        Residuals are multiples of it, if given.
    """

    predictor: LinearPredictor | PredictorSum
    partition: Partition
    shown: Partition
    code: Codes
    residuals: Floats
    centre: Floats
    retention: float
    values: NewValues
    spread: PredictedSpread | None = None

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
        spread: tuple[PredictedSpread, Floats] | None = None,
    ) -> ResidualSampler:
        """Build from a linear fit and the subgroups of its residuals, which may be in units of a spread."""
        predicted_spread, units = spread or (None, 1.0)
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
            values=NewValues.of(series, units * fit.residuals, training.rows, scale),
            spread=predicted_spread,
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
        unit = 1.0 if self.spread is None else self.spread.predict(table)
        predicted = self.predictor.predict(table) + unit * self.centre[code]
        retention = np.where(np.isnan(own), 0.0, self.retention)
        base = predicted + retention * np.where(np.isnan(own), 0.0, own - predicted)
        spread = unit * np.sqrt(1.0 - retention**2)
        pools = cached(rngs, "pools", lambda: SortedPools(self.code, self.residuals, len(self.partition)))
        centred = self.residuals - self.centre[self.code]

        def members() -> Iterator[Rows]:
            points = balanced_points(code, len(self.partition), own - predicted, rngs)
            return (pools.at(code, each) for each in points)

        def draws() -> Iterator[Changes]:
            return ({name: self.values.fitted_to(base + spread * centred[drawn], values)} for drawn in members())

        groups = RowGroups(shown, self.shown.rules, self.conditioning)
        low, high = self.values.bounds.around(values)
        known = ShiftedResiduals(code, self.code, centred, base, spread, low, high, self.values.largest_below)
        pool = DonorPool(self.code, members, self.residuals)
        return ResampledFeature(groups, draws, None, np.array([np.inf]), pool, known)

    @property
    def conditioning(self) -> tuple[str, ...]:
        """Columns of the linear predictor and of the subgroups."""
        of_spread = () if self.spread is None else self.spread.predictor.columns
        return tuple(dict.fromkeys((*self.predictor.columns, *of_spread, *self.partition.conditioning)))

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
