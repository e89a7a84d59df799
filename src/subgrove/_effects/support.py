"""Where the values of a feature lie: Tukey's box statistics of numbers, counts of levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._effects.grid import has_levels
from subgrove._kinds import ColumnInfo, Floats

BOX = ("low", "whisker_low", "q1", "median", "q3", "whisker_high", "high")
_CLOSE = 1e-12


@dataclass(frozen=True, eq=False)
class Support:
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


def support_of(info: ColumnInfo, x: Floats, weights: Floats | None) -> Support:
    """The support of a feature in some rows."""
    absent = np.isnan(x)
    counted = np.ones(len(x)) if weights is None else weights
    missing, values, counted = float(counted[absent].sum()), x[~absent], counted[~absent]
    none = np.empty(0)
    if has_levels(info):
        counts = np.bincount(values.astype(np.intp), weights=counted, minlength=len(info.levels))
        return Support(info, missing, none, none, none, counts.astype(np.float64))
    if not len(values):
        return Support(info, missing, np.full(len(BOX), np.nan), none, none, none)
    box = box_statistics(values, None if weights is None else counted)
    beyond = (values < box[1]) | (values > box[5])
    outliers, place = np.unique(values[beyond], return_inverse=True)
    outlier_weights = np.bincount(place, weights=counted[beyond]).astype(np.float64)
    return Support(info, missing, box, outliers, outlier_weights, none)


def box_statistics(x: Floats, weights: Floats | None) -> Floats:
    """Tukey's numbers, in the order of `BOX`.

    The quartiles are hinges, medians of the halves (the middle row belongs to both). A whisker ends at the last value
    that is no further than 1.5 times the distance of the hinges away from the box.
    """
    values, total = _cumulated(x, weights)
    n = total[-1]
    whole = weights is None or not (weights % 1).any()
    half = np.ceil(n / 2) if whole else n / 2
    q1, median, q3 = (_middle(values, total, mass) for mass in (half / 2, n / 2, n - half / 2))
    with np.errstate(over="ignore"):  # a reach beyond what a float holds has no outliers
        reach = 1.5 * (q3 - q1)
        inside = values[(values >= q1 - reach) & (values <= q3 + reach)]
    return np.array([values[0], inside[0], q1, median, q3, inside[-1], values[-1]])


def _cumulated(x: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Values in order, and the weight of the rows up to each of them."""
    if weights is None:
        return np.sort(x), np.arange(1.0, len(x) + 1)
    order = np.argsort(x, kind="stable")
    return x[order], np.cumsum(weights[order])


def _middle(values: Floats, total: Floats, mass: float) -> float:
    """The value below which a mass lies; the mean of two if it lies between them."""
    close = _CLOSE * total[-1]
    last = len(values) - 1
    before = min(int(np.searchsorted(total, mass - close, side="left")), last)
    after = min(int(np.searchsorted(total, mass + close, side="right")), last)
    return float(values[before] / 2 + values[after] / 2) if before != after else float(values[before])
