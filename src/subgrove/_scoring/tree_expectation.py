"""Exact importance of tree models: features whose new values have a known distribution need no draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.weights import own_weights
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table
from subgrove._models.tree_ensemble.expectation import (
    KERNEL_LOSSES,
    BlockLosses,
    ColumnExpectation,
    ExpectedLosses,
    KernelLosses,
    MemberPool,
    PlaceWeights,
    place_weights,
)
from subgrove._models.tree_ensemble.places import Places
from subgrove._models.tree_ensemble.steps import ChangedColumn, StepBlock, in_threads
from subgrove._scoring.accumulate import LossAccumulator, NumpyArrays
from subgrove._scoring.context import PredictionJob, ScoringContext
from subgrove._scoring.estimate_variance import donor_variances
from subgrove._scoring.feature_result import ExactShifts, FeatureResult
from subgrove._scoring.row_losses import describe_baseline_row
from subgrove._scoring.sampler_change import EvaluatedRows
from subgrove._scoring.tree_steps import TreeSteps
from subgrove.samplers.base import Feature
from subgrove.samplers.donors import (
    Distribution,
    FoldDistributions,
    KnownDistribution,
    LevelShares,
    OtherRows,
    ShiftedResiduals,
    TrainingRows,
)
from subgrove.samplers.resampled_feature import ExactExpectation, ResampledFeature

_MAX_TABLE = 4  # cells of a table of places by subgroups, as a multiple of the number of donors
_SMALL_TABLE = 20_000
_ROWS_AT_ONCE = 1 << 26  # of all features together, in one pass
_FLOAT32_MAX = 1e20  # predictions whose shifts may be stored in single precision


@dataclass(frozen=True, eq=False)
class ExpectedIncrease:
    """Expectation of one feature.

    Attributes
    ----------
    increase : float array (L, n)
        Expected increase of each loss.
    shift : float array (n, C)
        Expected shift of the predictions.
    received : function or None
        Returns the expected increase (L, n) that each row causes as a donor, if donors are rows of the table.
    by_member : float array (L, m) or None
        Sum of the increases by training donor.
    within : bool
        Whether donors are of the subgroup of their row.
    """

    increase: Floats
    shift: Floats
    received: Callable[[], Floats] | None = None
    by_member: Floats | None = None
    within: bool = True


def serves(context: ScoringContext, feature: Feature, known: Distribution | None) -> bool:
    """Return whether a feature has an exact expectation."""
    if known is None or len(feature) > 1 or len(context.losses.per_row) < len(context.losses.losses):
        return False
    if isinstance(known, FoldDistributions):
        return all(serves(context, feature, part) for part in known.parts)
    if isinstance(known, ShiftedResiduals):
        return context.tree.single_precision(feature[0]) is not None
    return True


def exact_features(
    context: ScoringContext, features: Sequence[Feature]
) -> tuple[dict[Feature, FeatureResult], dict[Feature, tuple[list[Table] | str, list[EvaluatedRows]]]]:
    """Return the results of the features that have an exact expectation, and their draws for the fidelity check."""
    results: dict[Feature, FeatureResult] = {}
    drawn: dict[Feature, tuple[list[Table] | str, list[EvaluatedRows]]] = {}
    checker, at_once = context.fidelity_checker, max(1, _ROWS_AT_ONCE // context.frames.n_rows)
    for start in range(0, len(features), at_once):  # a pass over the trees for as many as memory allows
        served = {}
        for feature in features[start : start + at_once]:
            one = context.resample(feature, context.n_repeats)
            if serves(context, feature, one.distribution):
                if checker is not None:
                    draws = checker.draws_of(one) if checker.takes_increases(feature) else []
                    drawn[feature] = checker.read(draws, partial(replace, one)), _evaluated(context, feature, draws)
                served[feature] = _without_draws(one)
        results |= exact_results(context, served)
    return results, drawn


def _evaluated(context: ScoringContext, feature: Feature, draws: Sequence[Changes]) -> list[EvaluatedRows]:
    """Return the increases of the loss of draws, in the rows of the fidelity check."""
    assert context.fidelity_checker is not None
    rows = context.fidelity_checker.rows
    jobs, known = (PredictionJob(feature, draw, rows, repeat) for repeat, draw in enumerate(draws)), []
    for job, predictions in context.tree.predict_jobs(jobs):
        losses = context.losses.rows(predictions, rows, job.about)[0]
        known.append(EvaluatedRows(np.arange(len(rows)), job.changes, losses - context.baseline_losses[0, rows]))
    return known


def _without_draws(resampled: ResampledFeature) -> ResampledFeature:
    """Return a resampled feature without what its draws keep in memory, and with small codes of subgroups."""
    groups, known = resampled.groups, resampled.distribution
    if isinstance(known, OtherRows) and known.code is groups.code:
        code = groups.code.astype(np.min_scalar_type(max(len(groups) - 1, 1)))
        groups, known = replace(groups, code=code), replace(known, code=code)
    return replace(resampled, groups=groups, distribution=known, draws=lambda: iter(()))


def exact_results(
    context: ScoringContext, features: Mapping[Feature, ResampledFeature]
) -> dict[Feature, FeatureResult]:
    """Return the exact results of features that `serves` admits."""
    found = expected_increases(context, features)
    influences = np.empty((len(features), len(context.losses.losses), context.frames.n_rows), np.float32)

    def result(feature: Feature, influence: Any) -> FeatureResult:
        own = _result(context, feature, features[feature], found.pop(feature)).compact()
        if own.influence.dtype != np.float32 or not own.influence.strides[-1]:
            return own
        influence[:] = own.influence
        return replace(own, influence=influence)

    results = in_threads(lambda each: result(*each), zip(features, influences, strict=True), context.tree.n_threads)
    return dict(zip(features, results, strict=True))


def expected_increases(
    context: ScoringContext, features: Mapping[Feature, ResampledFeature]
) -> dict[Feature, list[tuple[Rows, ExpectedIncrease]]]:
    """Return the expectations of features that `serves` admits, over the rows of each fold of their samplers."""
    all_rows = np.arange(context.frames.n_rows)
    folds: dict[int, tuple[Rows, dict[Feature, _OfFold]]] = {}
    for feature, resampled in features.items():
        known = resampled.distribution
        if isinstance(known, FoldDistributions):
            for fold, part in enumerate(known.parts):
                folds.setdefault(1 + fold, (known.rows[fold], {}))[1][feature] = (known.others[fold], part)
        elif known is not None:
            folds.setdefault(0, (all_rows, {}))[1][feature] = (None, known)
    found: dict[Feature, list[tuple[Rows, ExpectedIncrease]]] = {feature: [] for feature in features}
    for _, (rows, members) in sorted(folds.items(), key=lambda each: each[0]):
        for feature, expected in _RowsOfFold(context, rows).expectations(members).items():
            found[feature].append((rows, expected))
    return found


_OfFold = tuple[Rows | None, KnownDistribution]  # rows of the other fold (None: training rows), and what is known


class _RowsOfFold:
    """Rows that receive values of the same fold, with their step functions, weights and losses."""

    def __init__(self, context: ScoringContext, rows: Rows) -> None:
        self.context = context
        self.tree: TreeSteps = context.tree
        whole = len(rows) == context.frames.n_rows
        self.steps = self.tree.steps if whole else self.tree.steps.for_rows(rows)
        self.weights = None if context.weights is None else context.weights[rows]
        self.losses = _block_losses(context, rows)

    def expectations(self, members: Mapping[Feature, _OfFold]) -> dict[Feature, ExpectedIncrease]:
        """Return the expectations of features."""
        values = self.context.prediction_values
        donors: dict[int, PlaceWeights | MemberPool] = {}
        shares: dict[Feature, tuple[Rows | None, LevelShares]] = {}
        for feature, (others, known) in members.items():
            if isinstance(known, LevelShares):
                shares[feature] = (others, known)
            else:
                j = self.tree.index[feature[0]]
                donors[j] = self._donors(j, others, known)
        found: dict[Feature, ExpectedIncrease] = {}
        if donors:
            sizes = len(self.context.losses.losses), 1 if values is None else values.shape[1]
            dtype = np.float64 if values is None or np.abs(values).max() > _FLOAT32_MAX else np.float32
            expected = ExpectedLosses(self.steps, donors, self.losses, *sizes, self.weights)
            means = expected.of_columns(self.tree.n_threads, dtype)
            for feature, (others, known) in members.items():
                if feature not in shares:
                    j = self.tree.index[feature[0]]
                    found[feature] = self._by_donor(j, others, known, donors[j], means.pop(j))
        return found | self._over_levels(shares)

    def _donors(self, j: int, others: Rows | None, known: KnownDistribution) -> PlaceWeights | MemberPool:
        """Return the donors of a column as the kernel takes them."""
        column = self.steps.columns[j]
        if isinstance(known, OtherRows):
            own = 1.0 if self.weights is None else own_weights(self.weights)
            table = place_weights(column, self.steps.places[:, j], known.code, known.n_groups, self.weights)
            return PlaceWeights(known.code, table, 0.0 if known.with_itself else own)
        assert isinstance(known, TrainingRows | ShiftedResiduals)
        n_groups = 1 + int(max(known.leaf.max(initial=0), known.code.max(initial=0)))
        if isinstance(known, TrainingRows):
            places = self._training_places(j, others, known)
            if n_groups * (column.n_places + 2) <= _MAX_TABLE * len(places) + _SMALL_TABLE:
                return PlaceWeights(known.code, place_weights(column, places, known.leaf, n_groups, None))
            return MemberPool(known.code, known.leaf, places.astype(np.float64), n_groups)
        assert column.cuts is not None
        limits = column.cuts
        if self.tree.single_precision(
            self.tree.frames.names[j]
        ):  # the largest number that is rounded to at most the cut
            below = np.nextafter(limits.astype(np.float32), np.float32(-np.inf))
            single = np.where(limits.astype(np.float32) <= limits, limits.astype(np.float32), below)
            limits = (single.astype(np.float64) + np.nextafter(single, np.float32(np.inf)).astype(np.float64)) / 2
        bound, cut = (np.concatenate(([-np.inf], each, [np.inf])) for each in known.largest(limits))
        shifts = (known.base, known.spread, known.low, known.high)
        return MemberPool(known.code, known.leaf, known.residuals, n_groups, cut, bound, *shifts)

    def _by_donor(
        self,
        j: int,
        others: Rows | None,
        known: KnownDistribution,
        donors: PlaceWeights | MemberPool,
        means: ColumnExpectation,
    ) -> ExpectedIncrease:
        """Return expectations with the increases that each donor causes."""
        increase, shift, by_member = means.increase, means.shift, means.received
        if isinstance(known, OtherRows):
            assert isinstance(donors, PlaceWeights)

            def received_by() -> Floats:
                received: Floats = by_member[:, known.code, self.steps.places[:, j]]
                received *= donors.shares(slice(0, self.steps.n_rows))
                return received

            return ExpectedIncrease(increase, shift, received_by)
        assert isinstance(known, TrainingRows | ShiftedResiduals)
        if isinstance(donors, PlaceWeights):
            assert isinstance(known, TrainingRows)
            by_member = by_member[:, known.leaf, self._training_places(j, others, known)]
        if others is None:
            return ExpectedIncrease(increase, shift, None, by_member)
        if isinstance(known, ShiftedResiduals):
            return ExpectedIncrease(increase, shift)
        received = np.zeros((len(increase), self.context.frames.n_rows))  # donors are rows of the other fold
        sizes = np.maximum(np.bincount(known.leaf), 1)[known.leaf]
        given = 1.0 if self.context.weights is None else self.context.weights[others[known.rows]]
        received[:, others[known.rows]] = by_member / sizes / given
        return ExpectedIncrease(increase, shift, lambda: received, None, within=False)

    def _training_places(self, j: int, others: Rows | None, known: TrainingRows) -> Places:
        places = self.tree.train_places if others is None else self.tree.steps.places[others]
        return np.asarray(places[known.rows, j])

    def _over_levels(
        self, shares: Mapping[Feature, tuple[Rows | None, LevelShares]]
    ) -> dict[Feature, ExpectedIncrease]:
        """Return expectations over levels with probabilities of their own in each row."""
        if not shares:
            return {}
        steps, wanted = self.steps, []
        for feature, (others, known) in shares.items():
            donors = Donors(known.representatives if others is None else others[known.representatives], others is None)
            places = self.tree.places(feature[0], donors, None)
            wanted.append(ChangedColumn(self.tree.index[feature[0]], np.arange(steps.n_rows), places))
        found = {}
        own = steps.predict(steps.places)
        for (feature, (_, known)), margins in zip(shares.items(), steps.changed_margins(wanted), strict=True):
            at = margins.transpose(2, 0, 1)
            n, n_levels, outputs = at.shape
            block = StepBlock(slice(0, n), own, (at - own[:, None]).reshape(-1, outputs))
            increases, shifts = self.losses(block, block.steps, np.arange(n + 1) * n_levels)
            probabilities = known.probabilities
            means = [np.einsum("nk,nk->n", one.reshape(n, n_levels), probabilities) for one in (*increases, *shifts)]
            found[feature] = ExpectedIncrease(np.array(means[: len(increases)]), np.array(means[len(increases) :]).T)
        return found


def _block_losses(context: ScoringContext, rows: Rows) -> BlockLosses:
    """Return the losses at steps: by the kernel if it has them."""
    ensemble, losses = context.tree.ensemble, context.losses
    name = losses.losses[0].name if len(losses.losses) == 1 else ""
    target = losses.target
    if (
        ensemble.n_outputs == 1
        and name in KERNEL_LOSSES
        and losses.losses[0].response_method in ("value", "probability")
    ):
        if not losses.probabilities and ensemble.link == "identity" and name in ("squared_error", "absolute_error"):
            if target.numbers is not None and target.numbers.ndim == 1:
                return KernelLosses(KERNEL_LOSSES[name], target.numbers[rows])
        elif losses.probabilities and target.codes is not None and name in ("log_loss", "brier"):
            if ensemble.link == "logistic":
                return KernelLosses(KERNEL_LOSSES[name], target.codes[rows])
            if ensemble.link == "identity" and name == "brier":
                return KernelLosses(KERNEL_LOSSES["squared_error"], target.codes[rows])
    return AnyLosses(context, rows)


class AnyLosses:
    """Losses at the steps of a block of rows, computed from predictions.

    Parameters
    ----------
    context : ScoringContext
        Losses, and responses of margins.
    rows : int array
        Numbers of the rows in the table.
    """

    def __init__(self, context: ScoringContext, rows: Rows) -> None:
        self.losses, self.rows, self.response = context.losses, rows, context.tree.ensemble.response
        values = context.prediction_values
        self.n_shifts = 1 if values is None else values.shape[1]

    def __call__(self, block: StepBlock, steps: Floats, pointers: Rows) -> tuple[list[Floats], list[Floats]]:
        """Return the increase of each loss, and the shift of each prediction, at steps."""
        rows = self.rows[block.rows]
        line = np.repeat(np.arange(len(rows)), np.diff(pointers))
        start = self.response(block.margins)
        after = self.response(block.margins[line] + steps)
        baseline = self.losses.rows(start, rows, describe_baseline_row)
        increase = self.losses.rows(after, rows[line], describe_baseline_row)
        increase -= baseline[:, line]
        shift = (after - start[line]).reshape(len(line), -1)[:, -self.n_shifts :]
        return list(increase), [np.ascontiguousarray(one) for one in shift.T]


def _result(
    context: ScoringContext, feature: Feature, resampled: ResampledFeature, found: list[tuple[Rows, ExpectedIncrease]]
) -> FeatureResult:
    """Return the result of a feature, of which all rows have an exact expectation."""
    n, n_losses = context.frames.n_rows, len(context.losses.losses)
    exact = all_rows_exact(resampled, n)
    arrays, clusters = NumpyArrays(n, context.weights), context.table.clusters
    accumulator = LossAccumulator(arrays, exact, n_losses, context.n_repeats, clusters)
    ((rows, first), *_), donors_known = found, all(part.received is not None for _, part in found)
    increase, shift = first.increase, first.shift
    received = first.received() if first.received is not None and donors_known else None
    if len(found) > 1:  # folds
        increase, shift = np.zeros((n_losses, n)), np.zeros((n, shift.shape[1]), shift.dtype)
        received = np.zeros((n_losses, n)) if donors_known else None
        for rows, part in found:
            increase[:, rows], shift[rows] = part.increase, part.shift
            if received is not None and part.received is not None:
                received[:, slice(None) if not part.within else rows] += part.received()
    accumulator.set_expectation(increase, received, all(part.within for _, part in found))
    result = accumulator.result(feature, {}, None if context.prediction_values is None else ExactShifts(shift))
    members = found[0][1].by_member
    known = resampled.distribution
    if resampled.donor_pool is None or members is None or not isinstance(known, TrainingRows | ShiftedResiduals):
        return result
    overall, by_subgroup = donor_variances(members, known.code, known.leaf, exact, context.weights)
    return replace(result, donor_variance=overall, donor_subgroup_variance=by_subgroup)


def all_rows_exact(resampled: ResampledFeature, n_rows: int) -> ResampledFeature:
    """Return a resampled feature of which all rows have an exact expectation, which is set later."""
    return replace(resampled, exact=ExactExpectation(np.ones(n_rows, dtype=np.bool_), lambda: iter(())))
