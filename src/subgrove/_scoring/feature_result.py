"""`FeatureResult`: the importance of one feature by row, subgroup and repeat.

Rows are stored for a table in memory. For large data and models on a device, moments by subgroup take their place:
tables, intervals and plots need no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.moments import Moments
from subgrove._core.weights import independent_units
from subgrove._scoring.fidelity_check import FidelityCheck
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, title
from subgrove.samplers.resampled_feature import ResampledFeature


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
    plain : FeatureResult
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


def _no_rows() -> Any:
    return np.empty((0, 0))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FeatureResult:
    """Importance of one feature; arrays have the L losses first, then n rows, M repeats or K subgroups.

    Attributes
    ----------
    feature : tuple of str
        Its columns.
    rules, conditioning, folds : tuples
        Of its subgroups.
    n_rows : int
        Number of rows.
    sizes : float array (K,)
        Number of rows (sum of weights) of each subgroup.
    repeats : float array (L, M, K)
        Mean increase of the loss in each repeat and subgroup.
    overall : float array (L, M)
        Mean increase over all rows in each repeat.
    excess : float array (L, K)
        Part of the variance of `influence` that is due to the number of repeats.
    mc_variance : float array (L, K)
        Monte-Carlo variance of the estimate of each subgroup.
    n_exact : int
        Number of rows with an exact expectation.
    singletons : tuple of int
        Subgroups of a single row, which has no donor and keeps its value.
    fidelity_check : FidelityCheck or None
        Whether resampled rows are realistic, if that was checked.
    moments : Moments (L, K) or None
        Moments of `influence`, if rows are not stored.
    squared : Moments (L, K) or None
        The same with squared weights, if weights are relative.
    independent : bool
        Whether rows are resampled independently, so that the Monte-Carlo variance is estimated from all rows.
    code : int array (n,)
        Subgroup of each row; empty, as the next four, if rows are not stored.
    rows : float array (L, n)
        Mean increase of the loss of each row.
    influence : float array (L, n)
        The same plus the contribution of the row as a donor; its variance is the noise due to the test rows.
    clusters : int array (n,) or None
        Cluster of each row, if rows are dependent.
    moved, moved_variance : float arrays (n, C), or None
        Mean shift of the row's C predictions when the feature is resampled, and its Monte-Carlo variance (NaN for a
        single repeat); None if predictions are not numbers.
    donor_variance, donor_subgroup_variance : float arrays (L,) and (L, K), or None
        Variance of the overall estimate, and of those of subgroups, over other training donors; None without these.
    sampler_variance : float array (L,) or None
        Variance of the overall estimate over samplers fitted on other training rows, if it was computed.
    sampler_resamples : int
        Number of these samplers.
    calibration : Calibration or None
        Weights of the rows, if the estimate is calibrated.
    """

    feature: Feature
    rules: tuple[str, ...]
    conditioning: tuple[str, ...]
    folds: tuple[int, ...]
    n_rows: int
    sizes: Floats
    repeats: Floats
    overall: Floats
    excess: Floats
    mc_variance: Floats
    n_exact: int = 0
    singletons: tuple[int, ...] = ()
    fidelity_check: FidelityCheck | None = None
    moments: Moments | None = None
    squared: Moments | None = None
    independent: bool = False
    code: npt.NDArray[np.unsignedinteger] = field(default_factory=lambda: np.empty(0, dtype=np.uint8))
    rows: Floats = field(default_factory=_no_rows)
    influence: npt.NDArray[np.floating[Any]] = field(default_factory=_no_rows)
    clusters: Rows | None = None
    moved: npt.NDArray[np.floating[Any]] | None = None
    moved_variance: npt.NDArray[np.floating[Any]] | None = None
    donor_variance: Floats | None = None
    donor_subgroup_variance: Floats | None = None
    sampler_variance: Floats | None = None
    sampler_resamples: int = 0
    calibration: Calibration | None = None

    def __repr__(self) -> str:
        return f"<FeatureResult of {self.title!r}: {self.n_rows} rows, {len(self.rules)} subgroups>"

    @property
    def title(self) -> str:
        """Name in tables."""
        return title(self.feature)

    @property
    def has_rows(self) -> bool:
        """Whether values of single rows are stored."""
        return self.moments is None

    @property
    def n_units(self) -> float:
        """Number of independent units: clusters of rows, or rows (sum of weights)."""
        return float(self.sizes.sum() if self.clusters is None else len(np.unique(self.clusters)))

    @property
    def units(self) -> Floats:
        """Number of independent units of each subgroup."""
        return self.sizes if self.clusters is None else independent_units(self.sizes, self.code, self.clusters)

    def for_loss(self, at: int) -> FeatureResult:
        """Return the result of one of several losses."""
        own = {name: value[at : at + 1] for name in _BY_LOSS if (value := getattr(self, name)) is not None}
        return replace(self, **own, calibration=None if self.calibration is None else self.calibration.for_loss(at))

    def variance_of_donors(self, losses: Sequence[int]) -> float:
        """Return the variance over other training donors of the first of some losses; 0 if it is not known."""
        return 0.0 if self.donor_variance is None or not losses else float(self.donor_variance[losses[0]])

    def compact(self) -> FeatureResult:
        """Return the result with values that are the same in all rows, as of an irrelevant feature, stored once."""
        return replace(self, **{name: _stored_once(getattr(self, name), at) for name, at in _AXIS_OF_ROWS.items()})

    def __getstate__(self) -> dict[str, Any]:
        state, shapes = dict(vars(self)), {}
        for name, at in _AXIS_OF_ROWS.items():
            if (values := state[name]) is not None and values.size and not values.strides[at]:
                state[name], shapes[name] = values.take([0], axis=at), values.shape
        return state | {"shapes": shapes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        shapes = state.pop("shapes")
        vars(self).update(state | {name: np.broadcast_to(state[name], shape) for name, shape in shapes.items()})

    def uncalibrated(self) -> FeatureResult:
        """Return the result in which all rows have the same weight."""
        return self if self.calibration is None else self.calibration.plain


_BY_LOSS = (  # arrays of which the first axis are the losses
    *("rows", "influence", "moments", "squared", "repeats", "overall", "excess", "mc_variance"),
    *("donor_variance", "donor_subgroup_variance", "sampler_variance"),
)


_AXIS_OF_ROWS = {"rows": 1, "influence": 1, "moved": 0, "moved_variance": 0, "code": 0}


def _stored_once(values: Any, axis: int) -> Any:
    """Return an array; a view of one row (or column) of it, if all are the same."""
    if values is None or not values.size:
        return values
    first = values.take([0], axis=axis)
    return np.broadcast_to(first, values.shape) if (values == first).all() else values


class ExactShifts:
    """Expected shifts of the predictions of each row, (n, K), which have no Monte-Carlo variance."""

    def __init__(self, expected: npt.NDArray[np.floating[Any]]) -> None:
        self.expected = expected

    def means(self, n_repeats: int, drawn: Floats, exact: Any) -> tuple[Any, Any]:
        """Return the shifts and their variance."""
        return self.expected, np.broadcast_to(np.float32(0), self.expected.shape)


def finite_population_correction(population: Floats, n_repeats: int) -> Floats:
    """Return the factor of the Monte-Carlo variance due to sampling without replacement, by subgroup.

    It is 1 - M / N with M repeats out of N possible draws. After all N draws the next cycle starts: if M is a multiple
    of N and r more, the factor is (r / M) (1 - r / N).
    """
    m, n = n_repeats, np.maximum(population, 1.0)
    last_cycle = np.where(n > m, m, m % n)
    factor: Floats = last_cycle / m * (1.0 - last_cycle / n)
    return factor


def result_from_sums(
    feature: Feature,
    resampled: ResampledFeature,
    sizes: Floats,
    sums: Floats,
    spread: Floats,
    n_sampled: npt.NDArray[Any] | None,
    correction: Floats | None = None,
    *,
    jackknife_factor: Floats | None = None,
    independent: bool = False,
    **others: Any,
) -> FeatureResult:
    """Return means and variances in place of sums.

    Parameters
    ----------
    feature : tuple of str
        Its columns.
    resampled : ResampledFeature
        Subgroups and the number of possible draws.
    sizes : float array (K,)
        Number of rows (sum of weights) of each subgroup.
    sums : float array (L, M, K)
        Increases in each repeat, summed over the rows of a subgroup (times weight); rows with an exact expectation
        are the same in all repeats.
    spread : float array (L, K)
        Squared deviations of single increases from the mean of their row, summed over repeats and sampled rows (times
        weight); where rows are donors, too, plus the same about the mean of the rows that received their value.
    n_sampled : array (K,) or None
        Number of sampled (not exact) rows of each subgroup; None if all rows are sampled.
    correction : float array (K,), optional
        Finite population correction, if it has been computed.
    jackknife_factor : float array (K,), optional
        Factor by which `influence` was spread about its mean.
    independent : bool, default False
        Whether rows are resampled independently: the Monte-Carlo variance is then known from all rows, else from the
        variance over repeats only.
    others
        More fields of the result.
    """
    m, groups = sums.shape[1], resampled.groups
    if correction is None:
        correction = finite_population_correction(resampled.population, m)
    with np.errstate(invalid="ignore", divide="ignore"):
        repeats, overall = sums / sizes, sums.sum(axis=2) / sizes.sum()
        if m < 2:
            excess, variance = np.zeros(spread.shape), np.full(spread.shape, np.nan)
        else:
            excess = np.where(sizes > 0, spread / sizes, 0.0) / (m - 1) / m * correction
            variance = excess / sizes if independent else repeats.var(axis=1, ddof=1) / m * correction
    if n_sampled is not None:
        variance = np.where(n_sampled == 0, 0.0, variance)  # exact, but for rounding
    exact = resampled.exact
    return FeatureResult(
        feature=feature,
        rules=groups.rules,
        conditioning=groups.conditioning,
        folds=groups.folds,
        sizes=sizes,
        repeats=repeats,
        overall=overall,
        excess=excess if jackknife_factor is None else excess * jackknife_factor**2,
        mc_variance=variance,
        independent=independent,
        **{
            "n_rows": len(groups.code),
            "n_exact": 0 if exact is None else int(exact.rows.sum()),
            "singletons": tuple(np.flatnonzero((resampled.population == 0) & (sizes > 0)).tolist()),
            **others,
        },
    )


def with_rows(results: Sequence[FeatureResult], caller: str) -> tuple[FeatureResult, ...]:
    """Return the results; raise with the name of the caller if they have no values of single rows."""
    if not all(result.has_rows for result in results):
        raise ParameterError(
            f"{caller} needs values of single rows, which are not stored for large data and models on a device. Call "
            f"importance with a table of some of the rows in memory; for a model on a device pass "
            f"DeviceModel(model).predict."
        )
    return tuple(results)


def spread_from_sums(
    squares: tuple[Floats, Floats | None], squared_means: Any, weighted: bool, n_repeats: int
) -> Floats:
    """Return the squared deviations of single increases from the means of their row, and of their donor, by subgroup.

    Summed over a subgroup, the squares of single increases are the same whether a row is seen as the receiver or as the
    donor, if each row is donor once; else the second of `squares` has the latter. The squares of the means differ.
    """
    m, (received, given) = n_repeats, squares
    spread: npt.NDArray[np.float64] = np.maximum(received - m * squared_means[0], 0.0)
    if len(squared_means) > 1:
        of_donors = squared_means[1]
        # With weights, draws also vary in how many rows a donor gives its value to.
        given = received if given is None else given
        spread += of_donors * (m - 1) / m if weighted else np.maximum(given - m * of_donors, 0.0)
    return spread


_FLOAT32_MAX = 1e30


def to_float32(values: Floats) -> npt.NDArray[np.floating[Any]]:
    """Return values in half the memory if they allow it: a standard error needs no more than seven digits."""
    with np.errstate(invalid="ignore"):
        largest = max(float(np.max(values, initial=0.0)), -float(np.min(values, initial=0.0)))
        return values if largest > _FLOAT32_MAX else values.astype(np.float32, copy=False)
