"""Samplers that draw from predicted probabilities: levels of a feature, or bins of the residuals of a number.

`LevelSampler` draws levels. `ReweightedResiduals` adds residuals of training rows to a prediction; these are divided
into bins, and the probability of each bin is a smooth function of the other columns. So the shape of the distribution
may change: spread, skewness, several modes, atoms. Errors of estimated probabilities cancel in the mean over rows, for
an expectation is linear in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table, TypedColumn
from subgrove._regress.forest import grow_forest
from subgrove._regress.gram import FoldGrams, location_and_spread
from subgrove._regress.levels import (
    ForestLevels,
    KernelLevels,
    KernelLevelsFit,
    LevelsFit,
    OrderedLevels,
    fit_kernel_levels,
)
from subgrove._regress.multinomial import MultinomialFit, MultinomialPredictor
from subgrove.samplers.base import Feature, FittedSampler
from subgrove.samplers.donors import LevelShares
from subgrove.samplers.location_shift import NewValues, ValueScale, prediction_details
from subgrove.samplers.resampled_feature import ExactExpectation, ExpectationTerm, ResampledFeature, RowGroups

_NEGLIGIBLE = 1e-12  # probabilities below it are rounding error
_BINS = 24
_MAX_KEPT = 0.9
_DENSITY_POINTS = 200
_BANDWIDTH = 0.4  # of the density by which modes are found, over the standard deviation
_DEPTH = 1.15  # density of the lower mode over that between two modes
_LEAST_DENSITY = 1e-100  # in wide gaps, where it would be rounded to 0
_LEAST_DOUBT = 0.01  # mean probability that two values of a row are near different modes
_ROUGH_FOREST = (20, 15, 1000)  # trees, rows of a node, rows of a tree
LEAST_IN_MODE = 40  # rows around each mode
_LEAST_SHARE = 0.1  # of the rows, likewise
ATOM = 0.05  # share of rows from which a value is an atom
_QUANTILES = 40  # of the predictive distribution, for scores


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
        fit: MultinomialFit | LevelsFit | KernelLevelsFit,
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
        groups = RowGroups.single(table.n_rows, self.predictor.columns)
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
    shares = LevelShares(probabilities / ends[:, -1:], representatives)
    return ResampledFeature(groups, draws, expectation, distribution=shares)


@dataclass(frozen=True, eq=False)
class BinnedResiduals:
    """Sorted residuals of training rows, and where each bin starts; an atom has a bin of its own."""

    values: Floats
    starts: Rows

    @classmethod
    def of(cls, residuals: Floats) -> tuple[BinnedResiduals, Rows]:
        """Return the bins, and the bin of each row."""
        order = np.argsort(residuals, kind="stable")
        values = residuals[order]
        distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
        room = max(1.0, len(values) / _BINS)
        starts, filled = [0], 0.0
        for at in range(len(distinct)):
            is_atom = counts[at] >= room
            if filled and (is_atom or filled + counts[at] / 2 > room):
                starts.append(int(first[at]))
                filled = 0.0
            filled += counts[at]
            if is_atom:  # what follows starts a bin
                filled = max(filled, room)
        code = np.empty(len(values), dtype=np.intp)
        code[order] = np.searchsorted(np.array(starts), np.arange(len(values)), side="right") - 1
        return cls(values, np.array([*starts, len(values)])), code

    def at(self, ends: Floats, points: Floats) -> Floats:
        """Return the quantiles at points between 0 and 1, given cumulative probabilities (rows, bins)."""
        targets = points[:, None] * ends[:, -1:]
        bins = np.minimum((targets >= ends).sum(axis=1), ends.shape[1] - 1)
        rows = np.arange(len(points))
        below = np.where(bins > 0, ends[rows, bins - 1], 0.0)
        share = np.clip((targets[:, 0] - below) / np.maximum(ends[rows, bins] - below, 1e-300), 0.0, 1 - 1e-9)
        start, count = self.starts[bins], np.diff(self.starts)[bins]
        return np.asarray(self.values[start + (share * count).astype(np.intp)])


@dataclass(frozen=True, eq=False)
class ReweightedFit:
    """Binned residuals, the probabilities of their bins, and leave-one-out scores of the rows."""

    bins: BinnedResiduals
    probabilities: KernelLevels
    scores: Floats
    kept: float
    ends: Floats  # cumulative leave-one-out probabilities of the bins

    def scores_on(self, x: Floats, predicted: Floats, scale: ValueScale | None, judged: ValueScale | None) -> Floats:
        """Return the CRPS of values whose residuals are on another scale, or that are compared on another scale."""

        def quantile(level: float) -> Floats:
            return _converted(predicted + self.bins.at(self.ends, np.full(len(x), level)), scale, judged)

        return quantile_crps(x if judged is None else judged.forward(x), quantile)


def fit_reweighted(
    grams: FoldGrams, feature: str, residuals: Floats, names: Any, noise: float, seed: int, pilot: Any = None
) -> ReweightedFit | None:
    """Fit the probabilities of bins of residuals; None if no column predicts them.

    `noise` is an estimate of their variance given the columns, `pilot` a forest on their location and spread.
    """
    bins, code = BinnedResiduals.of(residuals)
    fit = fit_kernel_levels(grams, feature, code, names, seed, location_and_spread(residuals), pilot)
    if fit is None:
        return None
    ends = np.cumsum(fit.probabilities, axis=1)
    distances: list[float] = []

    def quantile(level: float) -> Floats:
        found = bins.at(ends, np.full(len(residuals), level))
        distances.append(float(((residuals - found) ** 2).mean()))
        return found

    scores = quantile_crps(residuals, quantile)
    distance = float(np.mean(distances))
    kept = float(np.clip(1 - 2 * noise / distance, 0.0, _MAX_KEPT)) if distance > 0 else 0.0
    return ReweightedFit(bins, fit.predictor, scores, kept, ends)


def quantile_crps(x: Floats, quantile: Callable[[float], Floats]) -> Floats:
    """Return the CRPS of each row: twice the mean pinball loss of the quantiles of its predictive distribution."""
    scores = np.zeros(len(x))
    for number in range(_QUANTILES):
        level = (number + 0.5) / _QUANTILES
        difference = x - quantile(level)
        scores += np.maximum(level * difference, (level - 1) * difference)
    return 2 * scores / _QUANTILES


def mixture_crps(x: Floats, predicted: Floats, residuals: Sequence[Floats], shares: Floats) -> Floats:
    """Return the CRPS of a mixture of several predictions (rows, parts), with the residuals and the shares of each."""
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    pools = np.array([np.quantile(pool, levels) for pool in residuals])
    points = (predicted[:, :, None] + pools).reshape(len(x), -1)
    weights = np.repeat(shares / _QUANTILES, _QUANTILES, axis=1)
    order = np.argsort(points, axis=1)
    points, weights = np.take_along_axis(points, order, axis=1), np.take_along_axis(weights, order, axis=1)
    below = np.cumsum(weights, axis=1) - weights / 2
    return np.asarray((weights * (np.abs(points - x[:, None]) - (2 * below - 1) * points)).sum(axis=1))


def mode_borders(values: Floats) -> Floats:
    """Return numbers that separate modes: where the density is lower than around the modes on both sides."""
    n, spread = len(values), float(values.std())
    quantiles = np.quantile(values, np.linspace(0, 1, _DENSITY_POINTS))
    gap = float(np.median(np.diff(np.unique(values)))) if spread > 0 else 0.0
    if spread == 0 or n < 2 * LEAST_IN_MODE or np.unique(values, return_counts=True)[1].max() >= ATOM * n:
        return np.empty(0)
    width = max(_BANDWIDTH * spread * n**-0.2, gap)
    grid = np.linspace(quantiles[1], quantiles[-2], _DENSITY_POINTS)
    density = np.exp(-0.5 * ((grid[:, None] - quantiles) / width) ** 2).mean(axis=1) + _LEAST_DENSITY

    def separated(first: int, last: int) -> list[float]:
        part = density[first:last]
        if not len(part):
            return []
        peaks = np.minimum(np.maximum.accumulate(part), np.maximum.accumulate(part[::-1])[::-1])
        lowest = first + int(np.argmax(peaks / part))
        border = float(grid[lowest])
        left, right = (values < border).sum(), (values >= border).sum()
        if peaks[lowest - first] < _DEPTH * density[lowest] or min(left, right) < 1:
            return []
        return [*separated(first, lowest), border, *separated(lowest + 1, last)]

    borders = np.array(separated(0, len(grid)))
    while len(borders):
        counts = np.bincount(np.searchsorted(borders, values), minlength=len(borders) + 1)
        small = int(counts.argmin())
        if counts[small] >= max(LEAST_IN_MODE, _LEAST_SHARE * n):
            break
        borders = np.delete(borders, min(small, len(borders) - 1))
    return borders


def separation(predicted: Floats, spreads: Floats, shares: Floats) -> float:
    """Return the mean distance of the two most probable modes of a row, in units of their spreads together.

    Rows count by the probability that two values are near different ones of them.
    """
    rows, likely = np.arange(len(shares)), np.argsort(shares, axis=1)[:, -2:]
    one, two = likely.T
    weights = shares[rows, one] * shares[rows, two]
    distances = np.abs(predicted[rows, one] - predicted[rows, two]) / np.maximum(spreads[one] + spreads[two], 1e-300)
    return float(np.average(distances, weights=weights)) if weights.mean() > _LEAST_DOUBT else 0.0


def nearest_mode(values: Floats, predicted: Floats, spreads: Floats) -> Rows:
    """Return which of several predictions (rows, modes) each value is nearest to, in units of their spreads."""
    return np.asarray(np.argmin(np.abs(values[:, None] - predicted) / np.maximum(spreads, 1e-300), axis=1))


def roughly_likely(grams: FoldGrams, code: Rows, names: Sequence[str], seed: int) -> Floats:
    """Return the probabilities of modes, or other parts, by a small forest of which each row is left out."""
    outputs = (code[:, None] == np.arange(code.max() + 1)).astype(np.float64)
    parts = grams.design.allowed(names, log_scales=False)
    trees, node, rows = _ROUGH_FOREST
    tried = max(1, (len(parts) + 1) // 2)
    forest = grow_forest(
        grams.forest_columns.some(parts),
        outputs,
        n_trees=trees,
        min_node_size=node,
        tried=tried,
        seed=seed,
        codes=code,
        max_samples=rows,
        n_jobs=1,
    )
    return np.asarray(np.where(np.isnan(forest.out_of_bag), outputs.mean(axis=0), forest.out_of_bag))


def back_transformed_scores(
    x: Floats,
    predicted: Floats,
    residuals: Floats,
    leaf: Rows,
    own_leaf: Rows,
    scale: ValueScale | None,
    judged: ValueScale | None,
) -> Floats:
    """Return the CRPS of values that are predicted, or compared, on another scale, with residuals of the same leaf.

    `leaf` is that of the residuals, `own_leaf` that of the values.
    """
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    pools = np.array([np.quantile(residuals[leaf == k], levels) for k in range(int(leaf.max()) + 1)])

    def quantile(level: float) -> Floats:
        return _converted(predicted + pools[own_leaf, int(level * _QUANTILES)], scale, judged)

    return quantile_crps(x if judged is None else judged.forward(x), quantile)


def _converted(values: Floats, scale: ValueScale | None, judged: ValueScale | None) -> Floats:
    """Return values of one scale on another one; None is the scale of the feature."""
    plain = values if scale is None else scale.back(values)
    return plain if judged is None else judged.forward(plain)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReweightedResiduals(FittedSampler):
    """Resamples one numeric feature: its prediction plus a residual whose bin has a probability of its own in each row.

    Attributes
    ----------
    predictor : object or None
        Prediction of the feature; None if the values themselves are reweighted.
    bins : BinnedResiduals
        Residuals of the training rows.
    probabilities : KernelLevels
        Probability of each bin.
    values : NewValues
        Range and rounding of new values.
    kept : float
        Share of rows that keep their own value: the part of the distance to new ones that is due to estimation.
    """

    predictor: Any
    bins: BinnedResiduals
    probabilities: KernelLevels
    values: NewValues
    kept: float = 0.0

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the feature; new numbers have no exact expectation."""
        (name,) = feature
        own = table.values(name)
        on_scale = self.values.on_scale(own)
        ends = np.cumsum(self.probabilities.predict(table), axis=1)
        predicted = 0.0 if self.predictor is None else self.predictor.predict(table)

        def draws() -> Iterator[Changes]:
            for rng in rngs:
                new = predicted + self.bins.at(ends, rng.random(len(own)))
                keep = (rng.random(len(own)) < self.kept) & ~np.isnan(own)
                yield {name: self.values.fitted_to(np.where(keep, on_scale, new), own)}

        groups = RowGroups.single(table.n_rows, self.choice_details()["conditioning"])
        return ResampledFeature(groups, draws)

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe this sampler."""
        return prediction_details(self.predictor, self.probabilities.columns)
