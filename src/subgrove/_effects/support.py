"""Where the values of a feature lie: Tukey's box statistics of numbers, counts of levels."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._effects.grid import has_levels

BOX = ("low", "whisker_low", "q1", "median", "q3", "whisker_high", "high")
_CLOSE = 1e-12


@dataclass(frozen=True, eq=False)
class FeatureSupport:
    """The values of one feature in one subgroup.

    Attributes
    ----------
    info : ColumnInfo
        The feature.
    missing : float
        Weight of the rows without a value.
    box : float array
        Numbers in the order of `BOX`; NaN if there are none. Empty if the feature has levels.
    outliers, outlier_weights : float array
        Distinct values beyond the whiskers, and the weight of their rows.
    counts : float array
        Weight of each level. Empty if the feature has none.
    """

    info: ColumnInfo
    missing: float
    box: Floats
    outliers: Floats
    outlier_weights: Floats
    counts: Floats

    def holds(self, points: Floats, whiskers: bool) -> npt.NDArray[np.bool_]:
        """Which points lie within the box or the whiskers; of levels, which ones some row has."""
        if has_levels(self.info):
            return np.asarray(self.counts[points.astype(np.intp)] > 0)
        low, high = (self.box[1], self.box[5]) if whiskers else (self.box[2], self.box[4])
        return np.asarray((points >= low) & (points <= high))


def support_of(info: ColumnInfo, x: Floats, weights: Floats | None) -> FeatureSupport:
    """The support of a feature in some rows."""
    absent = np.isnan(x)
    counted = np.ones(len(x)) if weights is None else weights
    missing, values = 0.0, x
    if absent.any():
        missing, values, counted = float(counted[absent].sum()), x[~absent], counted[~absent]
    none = np.empty(0)
    if has_levels(info):
        counts = np.bincount(values.astype(np.intp), weights=counted, minlength=len(info.levels))
        return FeatureSupport(info, missing, none, none, none, counts.astype(np.float64))
    if not len(values):
        return FeatureSupport(info, missing, np.full(len(BOX), np.nan), none, none, none)
    box = box_statistics(values, None if weights is None else counted)
    beyond = (values < box[1]) | (values > box[5])
    if not beyond.any():
        return FeatureSupport(info, missing, box, none, none, none)
    outliers, place = np.unique(values[beyond], return_inverse=True)
    outlier_weights = np.bincount(place, weights=counted[beyond]).astype(np.float64)
    return FeatureSupport(info, missing, box, outliers, outlier_weights, none)


def box_statistics(x: Floats, weights: Floats | None) -> Floats:
    """Tukey's numbers, in the order of `BOX`.

    The quartiles are hinges, medians of the halves (the middle row belongs to both). A whisker ends at the last value
    that is no further than 1.5 times the distance of the hinges away from the box.
    """
    values, total = _cumulated(x, weights)
    n = float(len(x)) if total is None else float(total[-1])
    whole = weights is None or not (weights % 1).any()
    half = float(np.ceil(n / 2)) if whole else n / 2
    q1, median, q3 = (_middle(values, total, n, mass) for mass in (half / 2, n / 2, n - half / 2))
    reach = 1.5 * (q3 - q1)  # one beyond what a float holds is infinite, and has no outliers
    first = values[np.searchsorted(values, q1 - reach, side="left")]
    last = values[np.searchsorted(values, q3 + reach, side="right") - 1]
    return np.array([values[0], first, q1, median, q3, last, values[-1]])


def _cumulated(x: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Values in order, and the weight of the rows up to each of them; None if each counts once."""
    if weights is None:
        return np.sort(x), None
    order = np.argsort(x, kind="stable")
    return x[order], np.cumsum(weights[order])


def _middle(values: Floats, total: Floats | None, n: float, mass: float) -> float:
    """The value below which a mass lies; the mean of two if it lies between them."""
    low, high = mass - _CLOSE * n, mass + _CLOSE * n
    last = len(values) - 1
    if total is None:  # 1, 2, and so on
        before, after = min(max(ceil(low) - 1, 0), last), min(floor(high), last)
    else:
        before = min(int(np.searchsorted(total, low, side="left")), last)
        after = min(int(np.searchsorted(total, high, side="right")), last)
    return float(values[before] / 2 + values[after] / 2) if before != after else float(values[before])
