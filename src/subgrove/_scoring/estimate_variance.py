"""Variance and skewness of an importance estimate over test rows, for standard errors and intervals.

The increase of a row's loss depends on the row and on its donor. Where donors are other test rows, each row has both
roles, and the estimate is a U-statistic: its variance is that of the sum of a row's two contributions, over the number
of rows. A sum over few repeats also varies because of the Monte Carlo draws; that part is known from the repeats and is
subtracted, for the Monte Carlo error is reported separately.

Intervals and p-values are corrected for skewness. Increases of a squared error are skewed to the right: most rows add
little, a few add much. Student's interval is then too short above, because a sample without such rows has a small mean
and a small standard error at once. For an irrelevant feature they are skewed to the left, and it is too short below.
Bounds are moved outwards, never inwards, by two known terms: the first of Cornish and Fisher, (2 t^2 + 1) / 6 times the
skewness of the mean; and t has the degrees of freedom 2 n / (kurtosis - 1) that the rows leave their variance. The
p-value belongs to the lower bound. For symmetric rows both are Student's.

Where rows are dependent within clusters, the deviations of the rows of a cluster are summed, and clusters take the
place of rows: in the variance (cluster-robust, with the factor G / (G - 1) of G clusters), in the degrees of freedom
and in the correction for skewness, which also covers clusters of unequal size.

Training donors, of values or of residuals, are a sample too. With N donors, whose mean effects on the loss vary by v,
the estimate varies by v / N. An analysis of variance separates v from the variation between rows: draws of a donor, or
of a block of neighbouring donors if these are drawn rarely, share its effect. Donors of different subgroups serve
different rows, so their variances are weighted by the squared share of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._core.moments import Moments
from subgrove._core.weights import RelativeWeights, square_weights
from subgrove._scoring.feature_result import FeatureResult
from subgrove.samplers.resampled_feature import DonorPool, ResampledFeature

_DRAWS_OF_BLOCK, _MIN_BLOCKS = 16, 4  # draws of a block of neighbouring donors, and blocks of a pool
_MIN_SHARE = 0.1  # of a variance that is left when the Monte Carlo part is subtracted


def overall_variance(score: FeatureResult, weights: Floats | None) -> Floats:
    """Return the variance of the overall estimate of each loss."""
    n = score.sizes.sum()
    share = score.sizes / n
    excess = (score.excess * share).sum(axis=1)
    if score.moments is not None:
        squared = None if score.squared is None else score.squared.together()
        return _of_mean(spread_of_rows(score.moments.together(), squared)[:, 0], n, excess)
    variance = mean_variance(score.influence.astype(np.float64), weights, excess, score.clusters)
    return variance if score.calibration is None else variance + score.calibration.further_variance


def subgroup_variance(score: FeatureResult, weights: Floats | None) -> Floats:
    """Return the variance of the estimates of each loss and subgroup: (losses, subgroups)."""
    if score.moments is not None:
        return _of_mean(spread_of_rows(score.moments, score.squared), np.maximum(score.sizes, 1.0), score.excess)
    if score.calibration is not None:
        return score.calibration.subgroup_variance
    variances = np.full((len(score.influence), len(score.rules)), np.nan)
    for k in range(len(score.rules)):
        rows = np.flatnonzero(score.code == k)
        own, clusters = _of_rows(score, weights, rows)
        if len(rows):
            values = score.influence[:, rows].astype(np.float64)
            variances[:, k] = mean_variance(values, own, score.excess[:, k], clusters)
    return variances


def overall_skewness(score: FeatureResult, at: int, weights: Floats | None) -> SkewnessCorrection:
    """Return the skewness correction of the overall estimate of a loss."""
    if score.moments is not None:
        return skewness_of_rows(score.moments[at : at + 1].together()[0]).of(0)
    return skewness_correction(score.influence[at : at + 1].astype(np.float64), weights, score.clusters).of(0)


def subgroup_skewness(score: FeatureResult, at: int, weights: Floats | None) -> SkewnessCorrection:
    """Return the same for each subgroup; there is no correction for those without rows."""
    if score.moments is not None:
        return skewness_of_rows(score.moments[at])
    values = score.influence[at : at + 1].astype(np.float64)
    corrections = [SkewnessCorrection(np.zeros(1), np.full(1, np.inf)) for _ in score.rules]
    for k in range(len(score.rules)):
        rows = np.flatnonzero(score.code == k)
        if len(rows):
            corrections[k] = skewness_correction(values[:, rows], *_of_rows(score, weights, rows))
    third, df = (np.concatenate([getattr(one, name) for one in corrections]) for name in ("third", "df"))
    return SkewnessCorrection(third, df)


def _of_rows(score: FeatureResult, weights: Floats | None, rows: Any) -> tuple[Floats | None, Rows | None]:
    """Return the weights and clusters of some rows."""
    clusters = None if score.clusters is None else score.clusters[rows]
    return None if weights is None else weights[rows], clusters


def monte_carlo_variance(score: FeatureResult, at: int, *, per_row: bool) -> float:
    """Return the variance of the overall estimate over other draws; NaN with a single repeat of a score."""
    if not per_row:
        values = score.overall[at]
        return float(values.var(ddof=1) / len(values)) if len(values) > 1 else float("nan")
    share = score.sizes / score.sizes.sum()
    return float((np.where(share > 0, score.mc_variance[at], 0.0) * share**2).sum())


def mean_variance(values: Floats, weights: Floats | None, excess: Floats, clusters: Rows | None = None) -> Floats:
    """Return the variance of the mean of each line; that of relative weights is the sandwich variance.

    With `clusters` of dependent rows it is cluster-robust. Of two rows each is the other's donor: there is one number,
    and no variance to estimate.
    """
    n = float(values.shape[1] if weights is None else weights.sum())
    if clusters is not None:
        values = cluster_contributions(values, weights, clusters)
        n, weights, excess = float(values.shape[1]), None, excess * (values.shape[1] / n)
    if n <= 2:
        return np.full(len(values), np.nan)
    if weights is None:
        spread = values.var(axis=1, ddof=1)
    else:
        centred = values - (values @ weights / n)[:, None]
        spread = (centred**2) @ square_weights(weights) / (n - 1)
    return _of_mean(spread, n, excess)


def _of_mean(spread: Floats, n: float | Floats, excess: Floats) -> Floats:
    """Return the variance of a mean of n rows with this variance, without the Monte Carlo part."""
    return np.asarray(np.maximum(spread - excess, _MIN_SHARE * spread) / n)


def spread_of_rows(moments: Moments, squared: Moments | None = None) -> Floats:
    """Return the variance of rows, about their mean with squared weights if there are any; NaN for two or fewer."""
    m2 = moments.m2 if squared is None else squared.m2 + squared.n * (squared.mean - moments.mean) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(moments.n > 2, m2 / (moments.n - 1), np.nan)


def skewness_of_rows(moments: Moments) -> SkewnessCorrection:
    """Return the skewness correction of each subgroup; there is none for those without rows."""
    n = np.maximum(moments.n, 1.0)
    correction = correction_from_moments(n, moments.m2 / n, moments.m3 / n, moments.m4 / n)
    return SkewnessCorrection(correction.third, np.where(moments.n > 0, correction.df, np.inf))


_MIN_DF = 3.0  # with fewer the quantiles are unreliable


@dataclass(frozen=True)
class SkewnessCorrection:
    """Skewness and kurtosis of the rows that means are taken over, one entry per mean.

    Attributes
    ----------
    third : float array
        Third central moment of the mean.
    df : float array
        Degrees of freedom of its variance, from the kurtosis of the rows.
    """

    third: Floats
    df: Floats

    def of(self, at: int) -> SkewnessCorrection:
        """Return the correction of one of the means."""
        return SkewnessCorrection(self.third[at], self.df[at])


def skewness_correction(values: Floats, weights: Floats | None, clusters: Rows | None = None) -> SkewnessCorrection:
    """Return the correction for the mean of each line of values."""
    if clusters is not None:
        values, weights = cluster_contributions(values, weights, clusters), None
    elif isinstance(weights, RelativeWeights):
        values, weights = _contributions(values, weights), None
    n = float(values.shape[1] if weights is None else weights.sum())
    share = np.full(values.shape[1], 1 / values.shape[1]) if weights is None else weights / n
    centred = values - (values @ share)[:, None]
    second, third, fourth = ((centred**power) @ share for power in (2, 3, 4))
    return correction_from_moments(n, second, third, fourth)


def _contributions(values: Floats, weights: Floats) -> Floats:
    """Return numbers whose plain mean varies as the mean of values with relative weights."""
    share = np.asarray(weights) * (len(weights) / weights.sum())
    return np.asarray(share * (values - (values @ share / len(share))[:, None]))


def cluster_contributions(values: Floats, weights: Floats | None, clusters: Rows) -> Floats:
    """Return a number for each cluster, (lines, clusters), whose plain mean varies as the mean of values over rows."""
    share = np.full(values.shape[1], 1 / values.shape[1]) if weights is None else np.asarray(weights) / weights.sum()
    deviations = (values - (values @ share)[:, None]) * share
    _, code = np.unique(clusters, return_inverse=True)
    n = int(code.max(initial=-1)) + 1
    return n * np.array([np.bincount(code, weights=line, minlength=n) for line in deviations])


FEWEST_CLUSTERS = 10
_FEWEST_ROWS, _LARGE_L_KURTOSIS, _SMALL_DF = 50, 0.34, 50.0  # see docs/decisions/0023
_FEWEST_FOR_BOUNDS = 20
FEW_ROWS_MORE, FEW_ROWS_LESS = "few rows have most of the loss", "few rows have most of the change"
SMALL_SAMPLE = f"fewer than {_FEWEST_ROWS} rows"
ONE_SIDED = (FEW_ROWS_MORE, SMALL_SAMPLE)
"""Reasons for which the upper bound does not hold, but the lower one does."""


def reliability(
    score: FeatureResult, at: int, weights: Floats | None, correction: SkewnessCorrection, k: int | None = None
) -> str:
    """Return why the interval of all rows, or of a subgroup, is unreliable; empty if it is not.

    If few rows have most of the loss, other such rows may exist that the sample does not have: then the mean may be
    larger than the interval, but its lower bound holds (`benchmarks/marks.py`). So it does in small samples, down to
    20 rows, unless they are skewed to the left.
    """
    n = float(score.sizes.sum() if k is None else score.sizes[k])
    if n < _FEWEST_ROWS:
        one_sided = n >= _FEWEST_FOR_BOUNDS and correction.third > 0
        few = f"fewer than {_FEWEST_FOR_BOUNDS} rows" if n < _FEWEST_FOR_BOUNDS else f"{SMALL_SAMPLE}, skewed"
        return SMALL_SAMPLE if one_sided else few
    units = score.n_units if k is None else score.units[k]
    if score.clusters is not None and units < FEWEST_CLUSTERS:
        return f"fewer than {FEWEST_CLUSTERS} groups of rows"
    if correction.df >= _SMALL_DF:
        return ""
    if score.has_rows:
        inside = slice(None) if k is None else score.code == k
        values, (own, clusters) = score.influence[at][inside], _of_rows(score, weights, inside)
        if clusters is not None:
            values, own = cluster_contributions(values[None].astype(np.float64), own, clusters)[0], None
        if l_kurtosis(values, own) < _LARGE_L_KURTOSIS - 2 / units:
            return ""
    return FEW_ROWS_MORE if correction.third > 0 else FEW_ROWS_LESS


def l_kurtosis(values: Floats, weights: Floats | None = None) -> float:
    """Return the L-kurtosis (Hosking 1990), which large values change less than they change the kurtosis."""
    values = values.astype(np.float64)
    if isinstance(weights, RelativeWeights):
        values = _contributions(values[None, :], weights)[0]
    elif weights is not None:
        values = np.repeat(values, weights.astype(np.intp))
    n, x, b = len(values), np.sort(values), []
    for r in range(4):  # probability-weighted moments
        b.append(float(x.mean()))
        x = x * (np.arange(n) - r) / (n - 1 - r)
    scale = 2 * b[1] - b[0]
    return (20 * b[3] - 30 * b[2] + 12 * b[1] - b[0]) / scale if scale > 0 else 0.0


def correction_from_moments(n: float | Floats, second: Floats, third: Floats, fourth: Floats) -> SkewnessCorrection:
    """Return the correction for means over n rows with these central moments."""
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(second > 0, 2 * n / (fourth / second**2 - 1), n - 1)
    return SkewnessCorrection(third / n**2, np.clip(df, _MIN_DF, np.maximum(n - 1, _MIN_DF)))


def interval_multipliers(
    std_error: Floats, df: Floats, level: float, correction: SkewnessCorrection | None
) -> tuple[Floats, Floats]:
    """Return how many standard errors the interval extends below the estimate, and above."""
    from scipy.special import stdtrit

    freedom, skewness = _freedom_and_skewness(std_error, df, correction)
    t: Floats = np.asarray(stdtrit(freedom, 0.5 + level / 2))
    shift = skewness * (2 * t**2 + 1) / 6
    return t + np.maximum(-shift, 0.0), t + np.maximum(shift, 0.0)


def one_sided_p_value(
    statistic: Floats, std_error: Floats, df: Floats, correction: SkewnessCorrection | None
) -> Floats:
    """Return the p-value of the null "at most 0": half of the level at which the lower bound of the interval is 0.

    The bound is 0 for the t that solves t - skewness (2 t^2 + 1) / 6 = statistic; skewness to the right is ignored, as
    it is in the bound.
    """
    # Student's t from scipy.special: scipy.stats takes a second to import and a millisecond a call.
    from scipy.special import stdtr

    freedom, skewness = _freedom_and_skewness(std_error, df, correction)
    half = np.maximum(-skewness, 0.0) / 6
    away = np.where(np.isfinite(statistic), statistic - half, 0.0)
    t = np.where(np.isfinite(statistic), 2 * away / (1 + np.sqrt(np.maximum(1 + 8 * half * away, 0.0))), statistic)
    return np.asarray(stdtr(freedom, -t))


def _freedom_and_skewness(
    std_error: Floats, df: Floats, correction: SkewnessCorrection | None
) -> tuple[Floats, Floats]:
    """Return the degrees of freedom of t, and the skewness of the estimate."""
    df = np.maximum(df, 1)
    if correction is None:
        return df, np.zeros(np.shape(std_error))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.minimum(df, correction.df), np.where(std_error > 0, correction.third / std_error**3, 0.0)


class DonorSums:
    """Sums of loss increases by donor.

    Parameters
    ----------
    resampled : ResampledFeature
        The feature, with a pool of donors.
    n_losses : int
        Number of losses.
    weights : float array or None
        Weights of the rows.
    """

    def __init__(self, resampled: ResampledFeature, n_losses: int, weights: Floats | None) -> None:
        assert resampled.donor_pool is not None
        self.pool: DonorPool = resampled.donor_pool
        self.group = resampled.groups.code.astype(np.intp)
        self.n_groups = len(resampled.groups)
        self.weights = weights
        self.counts = np.zeros(len(self.pool.leaf))
        self.sums, self.squares = np.zeros((2, n_losses, len(self.pool.leaf)))
        self.rows = np.zeros((self.n_groups, int(self.pool.leaf.max(initial=0)) + 1))  # by subgroup and leaf
        self.members: Iterator[Rows] = self.pool.members()

    def go_on(self, resampled: ResampledFeature, n_done: int) -> None:
        """Take further draws, after some that were added."""
        assert resampled.donor_pool is not None
        self.members = islice(resampled.donor_pool.members(), n_done, None)

    def add(self, increase: Floats, rows: Rows | None) -> None:
        """Add the increases (losses, rows) of the next draw."""
        member = next(self.members)
        group, weights = self.group, self.weights
        if rows is not None:
            member, group = member[rows], group[rows]
            weights = None if weights is None else weights[rows]
        n_donors, n_leaves = len(self.counts), self.rows.shape[1]
        self.counts += np.bincount(member, weights=weights, minlength=n_donors)
        for line, sums, squares in zip(increase, self.sums, self.squares, strict=True):
            weighted = line if weights is None else line * weights
            sums += np.bincount(member, weights=weighted, minlength=n_donors)
            squares += np.bincount(member, weights=weighted * line, minlength=n_donors)
        cells = np.bincount(group * n_leaves + self.pool.leaf[member], weights, self.n_groups * n_leaves)
        self.rows += cells.reshape(self.n_groups, n_leaves)

    def variances(self) -> tuple[Floats, Floats]:
        """Return the variance of the overall estimate, (losses,), and of those of subgroups, (losses, subgroups)."""
        return _of_estimates(self._by_leaf(), self.rows.sum(axis=0), self.rows)

    def _by_leaf(self) -> Floats:
        """Return the variance of donor effects over the number of donors: (losses, leaves)."""
        found = np.zeros((len(self.sums), self.rows.shape[1]))
        for leaf in range(found.shape[1]):
            pool = np.flatnonzero(self.pool.leaf == leaf)
            used, starts = self._in_blocks(pool[self.counts[pool] > 0])
            counts = np.add.reduceat(self.counts[used], starts) if len(used) else np.empty(0)
            total = counts.sum()
            if len(counts) < 2 or total <= len(counts):
                continue
            means = np.add.reduceat(self.sums[:, used], starts, axis=1) / counts
            centre = self.sums[:, used].sum(axis=1) / total
            between = (counts * (means - centre[:, None]) ** 2).sum(axis=1) / (len(counts) - 1)
            within = (self.squares[:, used].sum(axis=1) - (counts * means**2).sum(axis=1)) / (total - len(counts))
            each = (total - (counts**2).sum() / total) / (len(counts) - 1)  # draws of a donor, or of a block
            found[:, leaf] = np.maximum(between - within, 0.0) / each / len(pool)
        return found

    def _in_blocks(self, donors: Rows) -> tuple[Rows, Rows]:
        """Return donors, and where blocks of neighbours start; each is a block if all are drawn often."""
        values, n_blocks = self.pool.values, max(int(self.counts[donors].sum() / _DRAWS_OF_BLOCK), _MIN_BLOCKS)
        if values is None or n_blocks >= len(donors):
            return donors, np.arange(len(donors))
        return donors[np.argsort(values[donors], kind="stable")], np.arange(n_blocks) * len(donors) // n_blocks


def donor_variances(
    sums: Floats, code: Codes, leaf: Codes, resampled: ResampledFeature, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return the variance over other training donors of the overall estimate, and of those of subgroups.

    `sums` are the increases that each donor causes, summed over the rows of its leaf.
    """
    n_leaves = 1 + int(max(code.max(initial=0), leaf.max(initial=0)))
    rows = np.bincount(code, weights=weights, minlength=n_leaves).astype(np.float64)
    counts = np.bincount(leaf, minlength=n_leaves)
    effect = sums / np.where(rows > 0, rows, 1.0)[leaf]
    by_leaf = np.zeros((len(sums), n_leaves))
    for line, own in zip(effect, by_leaf, strict=True):
        mean = np.bincount(leaf, weights=line, minlength=n_leaves) / np.maximum(counts, 1)
        squares = np.bincount(leaf, weights=(line - mean[leaf]) ** 2, minlength=n_leaves)
        own[:] = np.where(counts > 1, squares / np.maximum(counts - 1, 1) / np.maximum(counts, 1), 0.0)
    group = resampled.groups.code.astype(np.intp)
    cells = np.bincount(group * n_leaves + code, weights=weights, minlength=len(resampled.groups) * n_leaves)
    return _of_estimates(by_leaf, rows, cells.reshape(-1, n_leaves).astype(np.float64))


def _of_estimates(by_leaf: Floats, rows: Floats, by_group: Floats) -> tuple[Floats, Floats]:
    """Return the variances of estimates from those of leaves; rows are counted by leaf, and by subgroup and leaf."""
    sizes = by_group.sum(axis=1, keepdims=True)
    shares = by_group / np.where(sizes > 0, sizes, 1.0)
    return by_leaf @ (rows / max(rows.sum(), 1e-300)) ** 2, by_leaf @ (shares**2).T
