"""What a result keeps of its calibration: how much each test row counts, and what that does to estimates and errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats


@dataclass(frozen=True, eq=False)
class Calibration:
    """Weights of the test rows, which make them as further rows are, and the noise that is left.

    Attributes
    ----------
    weights : float array (n,)
        How much each test row counts; they add up to the number of rows.
    further_variance : float array (L,)
        The part of the variance of the overall estimate that is due to the further rows.
    subgroup_variance : float array (L, K)
        Variance of the estimates of subgroups, further rows included.
    estimate_before, variance_before : float arrays (L,)
        The overall estimate without calibration, and its variance over test rows.
    columns : tuple of str
        The columns by which rows were weighted; none where nothing was found to weight them by.
    moves : float array (L, K), or None
        By how much the estimates of subgroups moved; None where rows are not weighted.
    influence : float array (L, n), or None
        What each row adds to the noise of the estimate before; None where rows are not weighted.
    part : float
        How far rows are weighted: 1 is so far that they are, on average, as all rows are.
    """

    weights: Floats
    further_variance: Floats
    subgroup_variance: Floats
    estimate_before: Floats
    variance_before: Floats
    columns: tuple[str, ...] = ()
    moves: Floats | None = None
    influence: npt.NDArray[np.floating[Any]] | None = None
    part: float = 1.0

    @property
    def is_used(self) -> bool:
        """Whether rows are weighted."""
        return bool(self.columns)

    def for_loss(self, at: int) -> Calibration:
        """The calibration of one of several losses; weights are those of all of them."""
        names = ["further_variance", "subgroup_variance", "estimate_before", "variance_before"]
        names += [name for name in ("moves", "influence") if getattr(self, name) is not None]
        return replace(self, **{name: getattr(self, name)[at : at + 1] for name in names})
