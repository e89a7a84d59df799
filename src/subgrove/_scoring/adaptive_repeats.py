"""`AdaptiveRepeats`: repeats until the Monte-Carlo error is small compared with the error due to the test rows.

More repeats make the Monte-Carlo error smaller and leave the error due to the test rows as it is. From some number on
they gain nothing, and that number differs between features.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import first_of
from subgrove._core.validate import warn, whole_number
from subgrove._scoring.accumulate import LossAccumulator
from subgrove._scoring.estimate_variance import overall_variance
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import ParameterError
from subgrove.samplers.resampled_feature import ResampledFeature


@dataclass(frozen=True)
class AdaptiveRepeats:
    """Number of repeats that depends on the Monte-Carlo error, for `importance(..., n_repeats=AdaptiveRepeats())`.

    Repeats are doubled until the Monte-Carlo error of a feature is small compared with the error due to the test rows.
    Features that have reached this are not resampled again.

    Parameters
    ----------
    share : float, default 0.1
        Maximum Monte-Carlo error, as a share of the standard error due to the test rows.
    start : int, default 10
        Number of repeats to start with.
    max_repeats : int, default 1000
        Maximum number of repeats of a feature.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> repeats = sg.AdaptiveRepeats(share=0.2, start=5)
    >>> imp = sg.importance(
    ...     lambda X: 100 * X["temp"], test.X, test.y, features=["temp"], n_repeats=repeats, random_state=1
    ... )
    >>> imp.settings["repeats_used"]["temp"] > 5
    True
    """

    share: float = 0.1
    start: int = 10
    max_repeats: int = 1000

    def __post_init__(self) -> None:
        share = self.share
        if (
            isinstance(share, bool)
            or not isinstance(share, int | float | np.number)
            or not 0 < share < sys.float_info.max
        ):
            raise ParameterError(
                f"share must be a number above 0, such as 0.1 for a Monte-Carlo error of at most a tenth of the "
                f"standard error due to the test rows; got {share!r}."
            )
        whole_number("start", self.start, least=1)
        whole_number("max_repeats", self.max_repeats, least=1)
        if self.max_repeats < self.start:
            raise ParameterError(
                f"max_repeats={self.max_repeats} is below start={self.start}. Raise it, or lower start."
            )

    def _needs_more(self, result: FeatureResult, weights: Floats | None) -> bool:
        """Return whether a feature needs more repeats, and may have them."""
        return result.overall.shape[1] < self.max_repeats and not self._is_met(result, weights)

    def _is_met(self, result: FeatureResult, weights: Floats | None) -> bool:
        """Return whether the Monte-Carlo error is small enough, for each loss that has a value for each row."""
        share = result.sizes / result.sizes.sum()
        draws = (np.where(share > 0, result.mc_variance, 0.0) * share**2).sum(axis=1)
        rows = overall_variance(result, weights)
        known = ~np.isnan(rows)
        return bool((draws[known] <= self.share**2 * rows[known]).all())


def copy_sums(accumulator: LossAccumulator) -> LossAccumulator:
    """Return a copy of an accumulator, to compute a provisional result."""
    twin = copy(accumulator)
    twin.total, twin.sums = accumulator.total.copy(), accumulator.sums.copy()
    twin.received = None if accumulator.received is None else accumulator.received.copy()
    return twin


def continued(accumulator: LossAccumulator, resampled: ResampledFeature, n_repeats: int) -> LossAccumulator | None:
    """Return an accumulator of more repeats that continues another.

    None where more repeats make the expectation of more rows exact, which were sampled so far.
    """
    old, new = accumulator.resampled.exact, resampled.exact
    if (old is None) != (new is None) or (old and new and not np.array_equal(old.rows, new.rows)):
        return None
    twin = copy(accumulator)
    twin.resampled, twin.n_repeats = resampled, n_repeats
    more = np.zeros((len(twin.sums), n_repeats - accumulator.n_repeats, twin.sums.shape[2]))
    twin.sums = np.concatenate([twin.sums, more], axis=1)
    return twin


def repeats_used(results: Sequence[FeatureResult]) -> dict[str, int]:
    """Return the number of repeats of each feature."""
    return {result.title: int(result.overall.shape[1]) for result in results}


def reject_scores(per_row: Sequence[int]) -> None:
    """Raise if no loss has values of single rows, whose error the Monte-Carlo error is compared with."""
    if not per_row:
        raise ParameterError(
            "AdaptiveRepeats compares the Monte-Carlo error with the error due to the test rows, which is not known "
            "for a score of all rows together. Use a loss that has a value for each row, or pass n_repeats as a number."
        )


def warn_of_max_repeats(adaptive: AdaptiveRepeats, results: Sequence[FeatureResult], weights: Floats | None) -> None:
    """Warn about features that reached `max_repeats` and would have needed more."""
    short = [result.title for result in results if not adaptive._is_met(result, weights)]
    if short:
        warn(
            f"After max_repeats={adaptive.max_repeats} repeats the Monte-Carlo error is still above {adaptive.share:g} "
            f"of the error due to the test rows for {first_of(list(map(repr, short)), 5)}. Raise max_repeats or "
            f"share; the column mc_error has its size."
        )
