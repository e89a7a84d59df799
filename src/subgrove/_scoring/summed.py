"""What is kept of a feature where rows are not: counts, sums and moments by subgroup.

`FeatureResultFromSums` is to large data and models on a device what `FeatureResult` is to a table in memory.
Tables, intervals and plots are made from it; numbers of single rows are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.moments import Moments
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.fidelity_check.check import FidelityCheck
from subgrove._scoring.skewness import SkewnessCorrection, correction_from_moments
from subgrove._scoring.sums import finite_population_correction
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, title


@dataclass(frozen=True, eq=False, repr=False)
class FeatureResultFromSums:
    """What was learned of one feature, without its rows; arrays of losses first, then repeats or subgroups.

    Attributes
    ----------
    feature : tuple of str
        Its columns.
    rules, conditioning, folds : tuples
        Of its subgroups.
    sizes : float array (K,)
        Rows (weight) of each subgroup.
    n_rows : int
        Number of rows.
    moments : Moments (L, K)
        Of the mean increase of each row's loss, plus the row's share as a donor if donors are among the same rows: what
        `FeatureResult.influence` holds. Its spread is the noise of the test rows.
    repeats : float array (L, M, K)
        Increase in each repeat and subgroup.
    overall : float array (L, M)
        Increase of all rows in each repeat.
    excess : float array (L, K)
        The part of the variance of `moments` that is due to few repeats.
    mc_variance : float array (L, K)
        Variance of the subgroup's estimate over other draws of the repeats.
    n_exact : int
        Rows whose expectation is exact.
    lone : tuple of int
        Subgroups of a single row, which has no donor and keeps its value.
    fidelity_check : FidelityCheck or None
        Whether the redraw passes for real data, if that was asked for.
    independent : bool
        Whether rows draw on their own, so that the noise of the draws is known from all rows, not from repeats alone.
    """

    feature: Feature
    rules: tuple[str, ...]
    conditioning: tuple[str, ...]
    folds: tuple[int, ...]
    sizes: Floats
    n_rows: int
    moments: Moments
    repeats: Floats
    overall: Floats
    excess: Floats
    mc_variance: Floats
    n_exact: int = 0
    lone: tuple[int, ...] = ()
    fidelity_check: FidelityCheck | None = None
    partition_variance: Floats | None = None
    partition_resamples: int = 0
    independent: bool = False

    def __repr__(self) -> str:
        return f"<SummedScores of {self.title!r}: {self.n_rows} rows, {len(self.rules)} subgroups>"

    @property
    def title(self) -> str:
        """Name in tables."""
        return title(self.feature)

    def for_loss(self, at: int) -> FeatureResultFromSums:
        """The scores of one of several losses."""
        own = slice(at, at + 1)
        return replace(
            self,
            moments=self.moments.line(at),
            repeats=self.repeats[own],
            overall=self.overall[own],
            excess=self.excess[own],
            mc_variance=self.mc_variance[own],
            partition_variance=None if self.partition_variance is None else self.partition_variance[own],
        )


Scores = FeatureResult | FeatureResultFromSums


def scores_from_sums(
    feature: Feature,
    told: tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]],
    moments: Moments,
    sums: Floats,
    spread: Floats,
    n_drawn: Floats,
    population: Floats,
    n_rows: int,
    n_exact: int = 0,
    lone: tuple[int, ...] = (),
    fidelity_check: FidelityCheck | None = None,
    *,
    independent: bool = False,
) -> FeatureResultFromSums:
    """Means and variances in place of sums.

    Parameters
    ----------
    feature : tuple of str
        Its columns.
    told : tuple
        Rules of the subgroups, the columns that they speak of, and their folds (mostly none).
    moments : Moments (L, K)
        Of the influence of rows: with donors from outside, of their mean increases.
    sums : float array (L, M, K)
        Increases in each repeat, summed over the rows of a subgroup (times weight); rows whose expectation is exact
        are in all repeats alike.
    spread : float array (L, K)
        Squares of single increases about the mean of their row, summed over repeats and drawn rows (times weight);
        where rows are donors, too, plus the same about the mean of those that a donor gave to.
    n_drawn : array (K,)
        Rows of each subgroup that are drawn, not exact.
    population : float array (K,) or (1,)
        As `Redraw` has it.
    independent : bool
        Whether rows draw on their own. The spread of rows then holds the noise of the draws, and how much of it that
        is, all rows tell together; else only the spread of repeats does.
    """
    sizes, m = moments.n[0], sums.shape[1]
    left = finite_population_correction(population, m)
    with np.errstate(invalid="ignore", divide="ignore"):
        repeats, overall = sums / sizes, sums.sum(axis=2) / sizes.sum()
        if m < 2:
            excess, variance = np.zeros(spread.shape), np.full(spread.shape, np.nan)
        else:
            excess = np.where(sizes > 0, spread / sizes, 0.0) / (m - 1) / m * left
            variance = excess / sizes if independent else repeats.var(axis=1, ddof=1) / m * left
    variance = np.where(np.asarray(n_drawn) == 0, 0.0, variance)  # exact, but for rounding
    return FeatureResultFromSums(
        feature,
        *told,
        sizes,
        n_rows,
        moments,
        repeats,
        overall,
        excess,
        variance,
        n_exact,
        lone,
        fidelity_check,
        independent=independent,
    )


def spread_of_rows(moments: Moments) -> Floats:
    """Variance of rows, NaN of two rows or fewer, as `inference.py` has it."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(moments.n > 2, moments.m2 / (moments.n - 1), np.nan)


def skewness_of_rows(moments: Moments) -> SkewnessCorrection:
    """How rows lean; subgroups without rows lean nowhere."""
    n = np.maximum(moments.n, 1.0)
    found = correction_from_moments(n, moments.m2 / n, moments.m3 / n, moments.m4 / n)
    return SkewnessCorrection(found.third, np.where(moments.n > 0, found.df, np.inf))


def with_rows(scores: Sequence[Scores], what: str) -> tuple[FeatureResult, ...]:
    """The scores, which hold numbers for each row; refuses `what` where they do not."""
    kept = tuple(score for score in scores if isinstance(score, FeatureResult))
    if len(kept) < len(scores):
        raise ParameterError(
            f"{what} needs numbers for each row, and this result holds sums alone: of data in partitions, and of "
            f"models on a device, rows are not kept. Call importance with a table of some of the rows, in memory, and "
            f"of a model on a device with the function on_device(model).predict."
        )
    return kept
