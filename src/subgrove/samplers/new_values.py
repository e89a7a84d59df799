"""Range, rounding and scale of new numbers, so that they look like those of the training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import Donors
from subgrove._data.table import TypedColumn
from subgrove.samplers.scales import ValueScale

_MARGIN = 2.0  # residual standard deviations by which new values may exceed the range


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
        new = np.clip(new if self.scale is None else self.scale.back(new), *self.bounds.around(own))
        if self.values is None or self.representatives is None:
            return new
        middles = (self.values[1:] + self.values[:-1]) / 2
        return Donors(self.representatives[np.searchsorted(middles, new)], train=True, representatives=True)
