"""When a feature has had redraws enough: once their noise is small beside that of the test rows.

More redraws make the Monte-Carlo error smaller and leave the error of the test rows as it is. From some number on
they buy nothing, and which number that is differs between features.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.validate import whole_number
from subgrove._scoring.accumulate import LossAccumulator
from subgrove._scoring.estimate_variance import overall_variance
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import ParameterError, SubgroveWarning


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
        if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 < share < np.inf:
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

    def needs_more(self, tally: LossAccumulator) -> bool:
        """Whether a feature needs more redraws, and may have them."""
        return tally.n_repeats < self.max_repeats and not self.met(tally.provisional(), tally.weights)

    def more_than(self, n_repeats: int) -> int:
        """The next number of repeats."""
        return min(2 * n_repeats, self.max_repeats)

    def met(self, score: FeatureResult, weights: Floats | None) -> bool:
        """Whether the error of the draws is small enough, for each loss that has a value for each row.

        The error of the test rows, where it is not known, asks for nothing.
        """
        share = score.sizes / score.sizes.sum()
        draws = (np.where(share > 0, score.mc_variance, 0.0) * share**2).sum(axis=1)
        rows = overall_variance(score, weights)
        known = ~np.isnan(rows)
        return bool((draws[known] <= self.share**2 * rows[known]).all())


def repeats_used(scores: Sequence[FeatureResult]) -> dict[str, int]:
    """How many repeats each feature had."""
    return {score.title: int(score.overall.shape[1]) for score in scores}


def reject_budget(budget: AdaptiveRepeats | None, per_row: Sequence[int]) -> None:
    """Scores of all rows together have no error of the test rows to compare with."""
    if budget is not None and not per_row:
        raise ParameterError(
            "budget compares the noise of draws with that of the test rows, which is not known of a score of all rows "
            "together. Use a loss that has a value for each row, or n_repeats alone."
        )


def warn_of_the_bound(budget: AdaptiveRepeats | None, scores: Sequence[FeatureResult], weights: Floats | None) -> None:
    """Say which features had the most repeats and would have needed more."""
    short = [] if budget is None else [score.title for score in scores if not budget.met(score, weights)]
    if budget is not None and short:
        more = f" and {len(short) - 5} more" if len(short) > 5 else ""
        warnings.warn(
            f"After max_repeats={budget.max_repeats} redraws the Monte-Carlo error is still above {budget.share:g} of "
            f"the error of the test rows for {', '.join(map(repr, short[:5]))}{more}. Raise max_repeats or budget; "
            f"mc_error says how large it is.",
            SubgroveWarning,
            stacklevel=3,
        )
