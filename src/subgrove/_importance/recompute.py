"""`ScoringSource`: inputs of a result, so that features can be scored again with the same model and rows.

A result refers to it; it is neither saved nor pickled, for it holds the model and the user's rows.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._core.validate import warn, whole_number
from subgrove._data.from_containers import names_and_rows
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, fingerprint, read_once, read_table
from subgrove._importance.intervals import monte_carlo_variances
from subgrove._importance.spec import EvaluationRows, ImportanceSpec
from subgrove._importance.tables import ImportanceData, ResultInputs
from subgrove._scoring.context import ScoringContext
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.row_losses import describe_baseline_row, names_of
from subgrove._scoring.score import score_features
from subgrove._subgroups import Partition, find_subgroups
from subgrove.exceptions import InputError, ParameterError, SubgroveWarning, UnseenValueWarning
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.given import Given, accepts_given, narrowed

MAX_SINGLE = 3  # columns that have a step of their own; the others are added together
Result = TypeVar("Result", bound=ImportanceData)
Block = tuple[str, ...]  # columns that are added in one step
CHECKED_ROWS = 100  # predicted to check that the model is the same
_TOLERANCE = 1e-6  # relative difference of losses that may be due to other batches
_TREES = ("tree steps", "tree steps of")
_MIN_REPEATS, _MAX_REPEATS = 2, 10  # of the importance in a resample


@dataclass(frozen=True, eq=False)
class ScoringSource(ResultInputs):
    """Inputs of a finished computation, without the parts that can be rebuilt: typed tables and fitted forests.

    Attributes
    ----------
    subgroups : mapping
        Subgroups of the features that are reported by the subgroups of one tree.
    context : ScoringContext
        Model, losses and settings; table, frames and sampler are filled in when a feature is scored again.
    trees : mapping
        Fitted samplers of the features that are resampled within the subgroups of a tree.
    spec : ImportanceSpec
        The arguments, without those of the test rows.
    given : mapping or None
        Conditioning columns of each feature.
    rows : table
        The rows that are resampled.
    uses_training_donors : bool
        Whether resampled values come from training rows.
    clusters : int array or None
        Clusters of dependent rows.
    selected : mapping
        Names of the samplers that were selected for each feature, where one was.
    """

    context: ScoringContext
    trees: Mapping[Feature, FittedSampler]
    spec: ImportanceSpec
    given: Mapping[Feature, Given] | None
    rows: Any
    uses_training_donors: bool = False
    clusters: Rows | None = None
    selected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, context: ScoringContext, spec: ImportanceSpec, data: EvaluationRows) -> ScoringSource:
        """Return the source of a result."""
        samplers = {feature: context.sampler.of_feature(context.table, feature)[0] for feature in data.features}
        trees = {feature: one for feature, one in samplers.items() if one.split_columns(feature) is not None}
        nothing: Any = None
        checker = context.fidelity_checker
        checker = checker and replace(checker, resample=nothing, sampler=nothing, sampled=nothing, kept={})
        light = replace(context, frames=nothing, table=nothing, sampler=nothing, fidelity_checker=checker)
        return cls(
            context=replace(light, predictor=context.predictor.fresh()),
            trees=trees,
            subgroups=reporting_subgroups(samplers),
            spec=replace(spec, X=None, y=None, sample_weight=None, groups=None),
            given=data.given,
            rows=data.rows,
            uses_training_donors=context.sampler.uses_training_donors,
            clusters=data.table.clusters,
            selected={name: tuple(one.selected for one in of) for name, of in context.sampler.selections().items()},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return names_and_rows(self.rows)[0]

    @property
    def table(self) -> Table:
        """The rows, typed, with their clusters."""
        return read_table(self.rows, lenient=True).with_clusters(self.clusters)

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """Return the columns that the feature's tree splits on; None if it has none."""
        return self.trees[feature].split_columns(feature) if feature in self.trees else None

    def given_for(self, feature: Feature) -> tuple[str, ...]:
        """Return the columns that a feature may be conditional on."""
        given = None if self.given is None else self.given.get(feature)
        allowed = self.names if given is None else given
        return tuple(name for name in allowed if name not in feature)

    def of_losses(self, score: FeatureResult, losses: tuple[str, ...]) -> FeatureResult:
        """Return scores of all losses for those of the result: all, or the one of `for_loss`."""
        names = names_of(self.context.losses.losses)
        return score if losses == names else score.for_loss(names.index(losses[0]))

    def restricted(self, feature: Feature, columns: frozenset[str]) -> tuple[FeatureResult, int]:
        """Return the result with the feature's tree pruned to some columns, and the number of predicted rows."""
        fitted = self.trees[feature].restricted(feature, columns)
        context = self._with_sampler(fitted, fitted.read(self.rows).with_clusters(self.clusters))
        return self._scored(replace(context, fidelity_checker=None), feature)

    def refitted(self, feature: Feature, columns: tuple[str, ...], *, check: bool = False) -> tuple[FeatureResult, int]:
        """Return the result with the sampler fitted again, conditional on some columns; `check` its fidelity, too.

        Where a sampler was selected for the feature, it is not compared with other candidates again.
        """
        spec = replace(self.spec, sampler=narrowed(self.spec.sampler, self.selected.get(title(feature), ())))
        fitted = spec.fit_sampler(self.rows, self.table, spec.train, [feature], {feature: columns})
        context = self._with_sampler(*fitted)
        return self._scored(context if check else replace(context, fidelity_checker=None), feature)

    def fitted_context(self, features: Sequence[Feature], train: Any = None) -> ScoringContext:
        """Return the context with the sampler fitted again: as it was, or on other training rows."""
        train = self.spec.train if train is None else train
        return self._with_sampler(*self.spec.fit_sampler(self.rows, self.table, train, features, self.given))

    def scores(
        self, context: ScoringContext, features: Sequence[Feature], losses: tuple[str, ...], n_jobs: int | None
    ) -> list[FeatureResult]:
        """Return the scores of features for some losses and a fixed number of repeats, without further analyses."""
        plain = replace(context, prediction_values=None, adaptive=None, fidelity_checker=None)
        return [self.of_losses(score, losses) for score in score_features(plain, features, n_jobs)]

    def _with_sampler(self, fitted: FittedSampler, table: Table) -> ScoringContext:
        frames, predictor = Frames(self.rows, table.columns, fitted.train), self.context.predictor.fresh()
        context = replace(self.context, sampler=fitted, table=table, frames=frames, predictor=predictor)
        if (checker := context.fidelity_checker) is None:
            return context
        again = partial(fitted.resample, table, weights=context.weights, exact=False)
        return replace(
            context, fidelity_checker=replace(checker, frames=frames, resample=again, sampler=fitted, sampled=table)
        )

    def _scored(self, context: ScoringContext, feature: Feature) -> tuple[FeatureResult, int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenValueWarning)  # was given when the result was computed
            context.cache.update(self.context.cache)
            (result,) = score_features(context, [feature])
            # The trees of the model are known until it is checked again.
            self.context.cache.update((key, context.cache[key]) for key in _TREES if key in context.cache)
        return result, context.predictor.n_rows

    def check_unchanged(self, expected_fingerprint: str) -> int:
        """Check that rows and model are those of the result; return the number of predicted rows."""
        self.context.cache.clear()
        table = read_table(self.rows, lenient=True)
        if fingerprint(table) != expected_fingerprint:
            raise InputError(
                "X was changed after the importance was computed, so features cannot be resampled again. Compute the "
                "importance again."
            )
        predictor, n = self.context.predictor.fresh(), min(CHECKED_ROWS, table.n_rows)
        rows = Frames(self.rows, table.columns).changed(slice(0, n), {})
        predictions = predictor.predict(rows, n, describe_baseline_row)
        now = self.context.losses.rows(predictions, slice(0, n), describe_baseline_row)
        expected = self.context.baseline_losses[:, :n]
        known = ~np.isnan(expected)
        largest = float(np.abs(expected[known]).max(initial=0))
        if not np.allclose(now[known], expected[known], rtol=_TOLERANCE, atol=_TOLERANCE * largest):
            warn(
                "The model (or y) does not return the predictions of the time when the importance was computed, so the "
                "steps of the gap belong to another model than its ends. Compute the importance again."
            )
        return predictor.n_rows


def stored_inputs(source: object, method: str) -> ScoringSource:
    """Return the inputs that a result holds; raise where it has none."""
    if not isinstance(source, ScoringSource):
        raise ParameterError(
            f"{method} needs the model and the rows, which a result that was loaded or unpickled, or that is of loco, "
            f"of large data or of a model on a device, does not hold. Compute it again with importance."
        )
    return source


def reporting_subgroups(samplers: Mapping[Feature, FittedSampler]) -> dict[Feature, Partition]:
    """Return the subgroups of the features that are reported by the subgroups of one tree."""
    subgroups = {feature: sampler.reporting_subgroups(feature) for feature, sampler in samplers.items()}
    return {feature: groups for feature, groups in subgroups.items() if groups is not None}


def with_sampler_variance(result: Result, n_resamples: Any, n_jobs: int | None) -> Result:
    """Return a result with its variance over samplers fitted on halves of train."""
    n, settings = whole_number("n_resamples", n_resamples, least=2), result.settings
    if settings["trained_on"] == "cross-fitted":
        raise ParameterError(
            "with_sampler_variance fits the sampler on halves of the training rows, but this sampler was cross-fitted "
            "on the test rows. Pass train to importance."
        )
    if settings["trained_on"] == "before":
        raise ParameterError(
            "with_sampler_variance fits the sampler again, but it was passed fitted. Pass one to be fitted, such as "
            "sampler='subgroups', with train."
        )
    source = stored_inputs(result._source, "with_sampler_variance")
    variances, predicted = np.zeros((len(result.scores), len(result.losses))), Counter[str]()
    if settings["trained_on"] != "nothing":  # a sampler that learns nothing does not vary
        with read_once(source.rows):
            variances, predicted = _variance_over_halves(source, result, n, n_jobs)
    varied = zip(result.scores, variances, strict=True)
    scores = tuple(replace(score, sampler_variance=own, sampler_resamples=n) for score, own in varied)
    counts = {name: settings[name] + more for name, more in predicted.items()}
    return replace(result, scores=scores, settings={**settings, **counts, "sampler_resamples": n})


def _variance_over_halves(
    source: ScoringSource, result: ImportanceData, n_resamples: int, n_jobs: int | None
) -> tuple[Floats, Counter[str]]:
    """Return the variance over samplers fitted on halves of train, and the numbers of predicted rows and of calls.

    For smooth statistics, the variance over halves equals the variance of the whole over other training rows: a half
    has twice the variance, and half of it is observed, because two halves of the same rows are correlated. Draws of
    resamples are independent; their variance is subtracted.
    """
    rows, features = source.spec.train, [score.feature for score in result.scores]
    train = read_table(rows, argument="train", lenient=True)
    frames, size = Frames(rows, train.columns), train.n_rows // 2
    repeats = int(np.clip(source.context.n_repeats, _MIN_REPEATS, _MAX_REPEATS))
    estimates, draws, predicted = [], [], Counter[str]()
    for number in range(n_resamples):
        rng = stream(source.context.seed, f"partition {number}")
        half = frames.changed(np.sort(rng.permutation(train.n_rows)[:size]), {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SubgroveWarning)  # they were given for the whole of train
            fitted = source.fitted_context(features, half)
            context = replace(fitted, n_repeats=repeats, seed=int(rng.integers(2**62)))
            scores = source.scores(context, features, result.losses, n_jobs)
        estimates.append([score.overall.mean(axis=1) for score in scores])
        draws.append([monte_carlo_variances(score, result.per_row_losses) for score in scores])
        predicted.update(n_rows_predicted=context.predictor.n_rows, n_calls=context.predictor.n_calls)
    excess = np.var(estimates, axis=0, ddof=1) - np.mean(draws, axis=0)
    return np.asarray(np.maximum(excess, 0.0) * size / (train.n_rows - size)), predicted


def conditioning_blocks(source: ScoringSource, feature: Feature, others: tuple[str, ...]) -> tuple[Block, ...]:
    """Return the columns to condition on, step by step: the strongest dependence first, weak ones together."""
    if not others:
        return ()
    if not accepts_given(source.spec.sampler):
        return (others,)
    train = source.rows if source.spec.train is None else source.spec.train
    columns = _by_dependence(train, feature, others)
    if len(columns) <= MAX_SINGLE + 1:
        return tuple((name,) for name in columns)
    return (*((name,) for name in columns[:MAX_SINGLE]), tuple(columns[MAX_SINGLE:]))


def _by_dependence(X: Any, feature: Feature, columns: Sequence[str]) -> tuple[str, ...]:
    """Return columns sorted by how strongly the feature depends on them.

    The association test of the root of the feature's tree is the same for numeric, ordered and nominal columns, with
    missing values, and for groups of features.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubgroveWarning)  # columns that no tree can split on come last
        groups = find_subgroups(X, features=[feature[0] if len(feature) == 1 else feature], max_depth=1)
    tests = groups.partitions[0].tree.nodes[0].tests
    strength = {} if tests is None else dict(zip(tests.columns, -tests.log_p, strict=True))
    known = {name: value for name, value in strength.items() if not np.isnan(value)}
    return tuple(sorted(columns, key=lambda name: -known.get(name, -1.0)))


def block_title(block: Block, *, others: bool) -> str:
    """Return the name of a step: its column, its columns, or how many others there are."""
    return f"the other {len(block)} columns" if others and len(block) > 1 else ", ".join(block)
