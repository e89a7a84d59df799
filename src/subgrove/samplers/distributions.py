"""Distributions of resampled values, where they are known: expectations over them need no draws.

A sampler that knows the distribution states it in `ResampledFeature.distribution`. For tree models, whose predictions
are step functions of a column, the expected loss is then computed exactly (`_scoring/tree_steps.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from subgrove._core.kinds import Codes, Floats, Rows

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, eq=False)
class OtherRows:
    """Other rows of the same subgroup, in proportion to their weights.

    Attributes
    ----------
    code : int array (n,)
        Subgroup of each row.
    n_groups : int
        Number of subgroups.
    with_itself : bool
        Whether a row is among its own donors.
    """

    code: Codes
    n_groups: int
    with_itself: bool = False


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows of the same subgroup, all with the same probability.

    Attributes
    ----------
    code : int array (n,)
        Subgroup of each row.
    leaf : int array (m,)
        Subgroup of each training row.
    rows : int array (m,)
        Positions of the training rows in the user's table.
    """

    code: Codes
    leaf: Codes
    rows: Rows


@dataclass(frozen=True, eq=False)
class ShiftedResiduals:
    """`base + spread * residual`, with the residuals of the same subgroup, within bounds.

    Attributes
    ----------
    code : int array (n,)
        Subgroup of each row.
    leaf, residuals : arrays (m,)
        Subgroup and residual of each training row.
    base, spread : float arrays (n,)
        Of each row.
    low, high : float arrays (n,)
        Bounds of each row, in the units of the feature.
    largest : callable
        Returns for values of the feature, with an entry for each, the largest value before rounding that is rounded to
        at most the value, and the largest sum of base and scaled residual that gives at most that.
    """

    code: Codes
    leaf: Codes
    residuals: Floats
    base: Floats
    spread: Floats
    low: Floats
    high: Floats
    largest: Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class LevelShares:
    """Levels with their probabilities in each row.

    Attributes
    ----------
    probabilities : float array (n, levels)
        Probabilities of the levels, which sum to 1.
    representatives : int array (levels,)
        Position of a training row with each level in the user's table.
    """

    probabilities: Floats
    representatives: Rows


@dataclass(frozen=True, eq=False)
class FoldDistributions:
    """Distributions of cross-fitted folds.

    Attributes
    ----------
    rows, others : tuples of int arrays
        Rows of each fold, and the rows that its sampler was fitted on.
    parts : tuple of distributions
        Distribution of each fold; positions count from the first row of the fold, or of its training rows.
    """

    rows: tuple[Rows, ...]
    others: tuple[Rows, ...]
    parts: tuple[OtherRows | TrainingRows | ShiftedResiduals | LevelShares, ...]


KnownDistribution = OtherRows | TrainingRows | ShiftedResiduals | LevelShares
Distribution = KnownDistribution | FoldDistributions
