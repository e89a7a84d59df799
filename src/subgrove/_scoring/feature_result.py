"""What is known of one feature once it was redrawn: losses by row, subgroup and repeat, and what they stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._scoring.fidelity_check.check import FidelityCheck
from subgrove.samplers.base import Feature, title


@dataclass(frozen=True, eq=False)
class Calibration:
    """Weights that calibrate an estimate, and what they change.

    Attributes
    ----------
    weights : float array (n,)
        Weight of each test row; their sum is the number of rows.
    further_variance : float array (L,)
        Variance of the overall estimate that is due to the additional rows.
    subgroup_variance : float array (L, K)
        Variance of the estimates of subgroups, additional rows included.
    plain : FeatureScores
        The scores before calibration, where all rows have the same weight.
    columns : tuple of str
        Columns that predict the importance of a row; none where the weights are all 1.
    """

    weights: Floats
    further_variance: Floats
    subgroup_variance: Floats
    plain: FeatureResult
    columns: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        """Whether the weights differ from 1."""
        return bool(self.columns)

    def for_loss(self, at: int) -> Calibration:
        """Return the calibration of one of several losses, which share their weights."""
        own = slice(at, at + 1)
        return replace(
            self,
            further_variance=self.further_variance[own],
            subgroup_variance=self.subgroup_variance[own],
            plain=self.plain.for_loss(at),
        )


@dataclass(frozen=True, eq=False, repr=False)
class FeatureResult:
    """What was learned of one feature; arrays of losses first, then rows, repeats or subgroups.

    Attributes
    ----------
    feature : tuple of str
        Its columns.
    rules, conditioning, folds : tuples
        Of its subgroups.
    code : int array (n,)
        Subgroup of each row.
    sizes : float array (K,)
        Rows (weight) of each subgroup.
    rows : float array (L, n)
        Mean increase of each row's loss.
    influence : float array (L, n)
        The same plus the row's share as a donor; its spread is the noise of the test rows.
    repeats : float array (L, M, K)
        Increase in each repeat and subgroup.
    overall : float array (L, M)
        Increase of all rows in each repeat.
    excess : float array (L, K)
        The part of the variance of `influence` that is due to few repeats.
    mc_variance : float array (L, K)
        Variance of the subgroup's estimate over other draws of the repeats.
    n_exact : int
        Rows whose expectation is exact.
    lone : tuple of int
        Subgroups of a single row, which has no donor and keeps its value.
    fidelity_check : FidelityCheck or None
        Whether the redraw passes for real data, if that was asked for.
    moved : float array (n, K), or None
        How far a row's K predictions move on average when the feature is redrawn; None of predictions that are no
        numbers.
    moved_variance : float array (n, K), or None
        Variance of that mean over other draws; NaN of a single repeat.
    partition_variance : float array (L,), or None
        Variance of the overall estimate over samplers that were fitted on other training rows, where it was asked for.
    partition_resamples : int
        How many of these there were.
    calibration : Calibration or None
        Weights of the rows, on a result of `ImportanceResult.calibrated`.
    """

    feature: Feature
    rules: tuple[str, ...]
    conditioning: tuple[str, ...]
    folds: tuple[int, ...]
    code: npt.NDArray[np.unsignedinteger]
    sizes: Floats
    rows: Floats
    influence: npt.NDArray[np.floating[Any]]
    repeats: Floats
    overall: Floats
    excess: Floats
    mc_variance: Floats
    n_exact: int = 0
    lone: tuple[int, ...] = ()
    fidelity_check: FidelityCheck | None = None
    moved: npt.NDArray[np.floating[Any]] | None = None
    moved_variance: npt.NDArray[np.floating[Any]] | None = None
    partition_variance: Floats | None = None
    partition_resamples: int = 0
    calibration: Calibration | None = None

    def __repr__(self) -> str:
        return f"<FeatureScores of {self.title!r}: {len(self.code)} rows, {len(self.rules)} subgroups>"

    @property
    def title(self) -> str:
        """Name in tables."""
        return title(self.feature)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.code)

    def for_loss(self, at: int) -> FeatureResult:
        """The scores of one of several losses."""
        own = slice(at, at + 1)
        return replace(
            self,
            rows=self.rows[own],
            influence=self.influence[own],
            repeats=self.repeats[own],
            overall=self.overall[own],
            excess=self.excess[own],
            mc_variance=self.mc_variance[own],
            partition_variance=None if self.partition_variance is None else self.partition_variance[own],
            calibration=None if self.calibration is None else self.calibration.for_loss(at),
        )

    def uncalibrated(self) -> FeatureResult:
        """Return the scores in which all rows have the same weight."""
        return self if self.calibration is None else self.calibration.plain
