"""What a result was computed from, so that the same model can be asked about the same rows again.

A result refers to it; it is neither saved nor pickled, for it holds the model and the user's rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._data.fingerprint import fingerprint
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_table
from subgrove._importance.inference.sampler_variance import with_sampler_variance
from subgrove._models.predictor import Predictor
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.row_losses import describe_baseline_row
from subgrove._scoring.score import ScoringContext, score_all, score_features
from subgrove._subgroups import Partition
from subgrove.exceptions import InputError, ParameterError, SubgroveWarning, UnseenValueWarning
from subgrove.samplers.base import Feature, FittedSampler
from subgrove.samplers.conditioning import Given, fitted_given, sampler_of
from subgrove.samplers.fit import fitted_sampler

LOOKED_AT = 100  # rows that the model is asked for to see that it is the same one
_SAME = 1e-6  # relative difference of losses that may come from other batches


def fit_sampler(
    sampler: Any,
    given: Mapping[Feature, Given] | None,
    rows: Any,
    table: Table,
    train: Any,
    features: Sequence[Feature],
    model: Any,
    seed: int,
) -> tuple[FittedSampler, Table]:
    """Fit the sampler, feature by feature if these have columns to be conditional on; return it with its table."""
    if given is None:
        return fitted_sampler(sampler, rows, table, train, features, model, seed)
    return fitted_given(sampler, given, rows, table, train, model, seed)


@dataclass(frozen=True, eq=False)
class ScoringSource:
    """A question that was asked, without what takes memory and can be had again: tables that were read, and forests.

    Attributes
    ----------
    question : Question
        Model, losses and settings; table, frames and sampler are filled in when something is asked.
    trees : mapping
        Fitted samplers of the features that are redrawn within the subgroups of a tree.
    told : mapping
        Features that are told by the subgroups of one tree, and these subgroups.
    sampler : object
        What the user gave as sampler.
    sets : mapping or None
        For each feature the columns that it is conditional on.
    rows : table
        The rows that are redrawn, as the user gave them.
    names : tuple of str
        Their columns.
    train : table or None
        Training rows.
    model : object
        The user's model.
    uses_training_donors : bool
        Whether resampled values come from training rows.
    """

    question: ScoringContext
    trees: Mapping[Feature, FittedSampler]
    told: Mapping[Feature, Partition]
    sampler: Any
    sets: Mapping[Feature, Given] | None
    rows: Any
    names: tuple[str, ...]
    train: Any
    model: Any
    uses_training_donors: bool = False

    @classmethod
    def of(
        cls, question: ScoringContext, features: Sequence[Feature], sampler: Any, sets: Any, train: Any, model: Any
    ) -> ScoringSource:
        """The source of a result of some features."""
        found = {feature: sampler_of(question.sampler, question.table, feature)[0] for feature in features}
        trees = {feature: one for feature, one in found.items() if one.split_columns(feature) is not None}
        told = {
            feature: groups
            for feature, one in found.items()
            if (groups := one.reporting_subgroups(feature)) is not None
        }
        nothing: Any = None
        light = replace(question, model=question.model.fresh(), frames=nothing, table=nothing, sampler=nothing)
        return cls(
            question=light,
            trees=trees,
            told=told,
            sampler=sampler,
            sets=sets,
            rows=question.frames.X,
            names=tuple(question.frames.names),
            train=train,
            model=model,
            uses_training_donors=question.sampler.uses_training_donors,
        )

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """The columns that the feature's tree splits on; None if it has none."""
        return self.trees[feature].split_columns(feature) if feature in self.trees else None

    def given_for(self, feature: Feature) -> tuple[str, ...]:
        """The columns that a feature may be conditional on."""
        given = None if self.sets is None else self.sets.get(feature)
        allowed = self.names if given is None else given
        return tuple(name for name in allowed if name not in feature)

    def restricted(self, feature: Feature, columns: frozenset[str]) -> tuple[FeatureResult, int]:
        """FeatureResult with the feature's tree cut back to some columns, and how many rows were asked for."""
        fitted = self.trees[feature].restricted(feature, columns)
        return self._scored(fitted, fitted.read(self.rows), feature)

    def refitted(self, feature: Feature, columns: tuple[str, ...]) -> tuple[FeatureResult, int]:
        """FeatureResult with the sampler fitted again, conditional on some columns."""
        table = read_table(self.rows, lenient=True)
        fitted, read = fitted_given(
            self.sampler, {feature: columns}, self.rows, table, self.train, self.model, self.question.seed
        )
        return self._scored(fitted, read, feature)

    def sampler_variance(
        self, scores: Sequence[FeatureResult], n_resamples: int, *, learned: bool, n_jobs: int | None
    ) -> tuple[list[FeatureResult], Predictor]:
        """Return the scores with their variance over samplers fitted on halves of train, and the model that counted.

        `learned` is False for a sampler that learns nothing from its training rows.
        """
        features = tuple(score.feature for score in scores)
        table = read_table(self.rows, lenient=True)
        context = replace(self.question, model=self.question.model.fresh(), frames=Frames(self.rows, table.columns))

        def refitted(half: Any) -> tuple[FittedSampler, Table]:
            return fit_sampler(self.sampler, self.sets, self.rows, table, half, features, self.model, context.seed)

        varied = with_sampler_variance(
            context,
            scores,
            self.train if learned else None,
            n_resamples,
            refitted,
            lambda again: score_all(again, features, n_jobs, False),
        )
        return varied, context.model

    def _scored(self, fitted: FittedSampler, table: Table, feature: Feature) -> tuple[FeatureResult, int]:
        frames = Frames(self.rows, table.columns, fitted.train)
        model = self.question.model.fresh()
        question = replace(self.question, sampler=fitted, table=table, frames=frames, model=model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenValueWarning)  # said when the result was computed
            (score,) = score_features(question, [feature], lambda done: None)
        return score, model.n_rows

    def look_again(self, mark: str) -> int:
        """See that rows and model are those of the result; how many rows the model was asked for."""
        table = read_table(self.rows, lenient=True)
        if fingerprint(table) != mark:
            raise InputError(
                "X was changed after the importance was computed, so the rows between marginal and conditional cannot "
                "be redrawn. Compute the importance again."
            )
        question = self.question
        model, n = question.model.fresh(), min(LOOKED_AT, table.n_rows)
        answers = model.predict(Frames(self.rows, table.columns).changed(slice(0, n), {}), n, describe_baseline_row)
        now = question.scoring.rows(answers, slice(0, n), describe_baseline_row)
        before = question.baseline[:, :n]
        known = ~np.isnan(before)
        if not np.allclose(
            now[known], before[known], rtol=_SAME, atol=_SAME * float(np.abs(before[known]).max(initial=0))
        ):
            warnings.warn(
                "The model (or y) does not give what it gave when the importance was computed, so the steps of the gap "
                "are of another model than its ends. Compute the importance again.",
                SubgroveWarning,
                stacklevel=4,
            )
        return model.n_rows


def stored_inputs(source: object, method: str) -> ScoringSource:
    """Return the inputs that a result holds; raise where it has none."""
    if not isinstance(source, ScoringSource):
        raise ParameterError(
            f"{method} needs the model and the rows, which a result that was loaded or unpickled, or that is of loco, "
            f"of large data or of a model on a device, does not hold. Compute it again with importance."
        )
    return source
