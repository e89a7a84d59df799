"""Candidate samplers of a number: shifts by linear and smooth predictions, reweighted residuals, donors of a forest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import TypedColumn
from subgrove._regress.gram import exceeds_standard_error, location_and_spread
from subgrove._regress.kernel import PilotForest, PredictorSum, fit_kernel
from subgrove._regress.level_means import MANY_LEVELS, fit_level_means
from subgrove._regress.linear import LinearFit, fit_dense_linear, fit_sparse_linear
from subgrove._regress.threshold_terms import fit_threshold_terms
from subgrove._subgroups.depth import leave_one_out_scores
from subgrove._subgroups.partition import TreeSettings
from subgrove.samplers.auto.candidates import Candidate, CandidateSet
from subgrove.samplers.auto.choice import SMOOTH_TERMS, UNREADABLE
from subgrove.samplers.forest_donors import ForestDonors, fit_donor_forest
from subgrove.samplers.location_shift import (
    NewValues,
    ResidualSampler,
    ValueScale,
    intercept_only,
    judging_scale,
    residual_column,
    scales_to_try,
)
from subgrove.samplers.predicted_probabilities import ReweightedResiduals, back_transformed_scores, fit_reweighted

_RESIDUAL_DEPTH = 3
_ROWS_TO_TRUST_TESTS = 1000  # with fewer, a test may have missed a dependence
_REWEIGHTED_TERMS = 200  # complexity of probabilities that depend on the columns
_SEVERAL_MODES = 1.7  # kurtosis; that of a symmetric distribution with one mode is at least 1.8
_ATOM = 0.05  # share of rows from which a value is an atom
_FEW_TERMS = 3  # of a linear predictor that is readable without a tree
_WORTH_SMOOTHING = 1.2  # squared residuals of thresholds over those of a smooth function, up to which both are tried
_DENSE_FROM = 5  # terms of a sparse predictor from which one of all columns is tried
_NORMAL_POOL = 2001  # quantiles that represent a normal distribution


class NumberCandidates(CandidateSet):
    """Candidates of a numeric feature, compared by their CRPS."""

    def candidates(self) -> list[Candidate]:
        """Return the candidates for a numeric feature."""
        sparse, fit, pilot = self._linear(self.series.info.name, self.series.values)
        if sparse is None and not pilot.promising and len(self.tree) == 1:
            return [replace(self._unscored_marginal, scores=np.full(1, np.nan))]
        candidates, compares = [self.marginal()], self.training.compares
        if sparse is not None and compares("shifted_subgroups", "gaussian"):
            candidates.append(self._shifted(sparse))
            simple = candidates[-1].complexity <= _FEW_TERMS and not pilot.promising
            if simple and self._tree_cannot_help(*candidates):
                return candidates
            candidates += self._dense(sparse)
        on_residuals = compares("reweighted_residuals", "forest_donors")
        smooth = self._smooth(fit, pilot) if on_residuals or compares("smooth_subgroups") else None
        if smooth is not None:
            candidates.append(self._shifted(smooth, "smooth_subgroups"))
        located: list[tuple[LinearFit, ValueScale | None, float]] = [
            (smooth or fit, None, candidates[-1].score if len(candidates) > 1 else np.inf)
        ]
        scales = scales_to_try(self.series.values, (smooth or fit).residuals)
        for other_scale in scales if on_residuals or compares("transformed_subgroups") else ():
            values = other_scale.forward(self.series.values)
            _, other, its_pilot = self._linear(other_scale.label(self.series.info.name), values)
            other = self._smooth(other, its_pilot) or other
            candidates.append(self._shifted(other, "transformed_subgroups", other_scale))
            located.append((other, other_scale, candidates[-1].score))
        candidates = self.rescored([*candidates, *(self.subgroups() if compares("training_subgroups") else [])])
        location, scale, _ = min(located, key=lambda one: one[2])  # whose residuals the last two candidates resample
        if compares("reweighted_residuals"):
            candidates += self._reweighted(location, scale)
        if compares("forest_donors"):
            candidates += self._forest_donors(location, scale)
        return candidates

    @cached_property
    def _judged(self) -> ValueScale | None:
        """Scale on which candidates of a number are compared, if not its own."""
        return judging_scale(self.series.values)

    @cached_property
    def _scored(self) -> TypedColumn:
        """The feature on the scale on which candidates are compared."""
        judged = self._judged
        return self.series if judged is None else replace(self.series, values=judged.forward(self.series.values))

    def _linear(self, name: str, x: Floats) -> tuple[LinearFit | None, LinearFit, PilotForest]:
        """Return the sparse linear fit, that or the mean, and a pilot forest on its residuals."""
        names, grams = self.predictors.names, self.training.grams
        many = any(len(column.levels) > MANY_LEVELS for column in self.predictors.columns)
        by_level = fit_level_means(self.predictors, x) if many else None
        target = x if by_level is None else x.mean() + by_level.residuals
        sparse = fit_sparse_linear(grams, name, target, names)
        fit = sparse or intercept_only(grams, TypedColumn(replace(self.series.info, name=name), target))
        if by_level is not None:
            noise = max(fit.noise - by_level.error_variance, 0.0)
            sparse = fit = LinearFit(PredictorSum(fit.predictor, by_level.predictor), fit.residuals, noise)
        return sparse, fit, self._pilot(fit.residuals)

    @cached_property
    def _pilots(self) -> dict[int, tuple[Floats, PilotForest]]:
        return {}

    def _pilot(self, residuals: Floats) -> PilotForest:
        """Return a small forest on location and spread of residuals, which is grown once."""
        if id(residuals) not in self._pilots:
            grams, targets = self.training.grams, location_and_spread(residuals)
            pilot = PilotForest.of(grams, targets, self.predictors.names, self.training.seed)
            self._pilots[id(residuals)] = residuals, pilot
        return self._pilots[id(residuals)][1]

    def _dense(self, sparse: LinearFit) -> list[Candidate]:
        """Return the normal distribution around a linear prediction of all columns, if it is better than one of few."""
        if len(sparse.predictor.terms) < _DENSE_FROM or self._judged is not None:
            return []
        x, names = self.series.values, self.predictors.names
        dense = fit_dense_linear(self.training.grams, self.series.info.name, x, names)
        if dense is None or not exceeds_standard_error(sparse.residuals**2 - dense.residuals**2):
            return []
        return [self._gaussian(dense)]

    def _smooth(self, fit: LinearFit, pilot: PilotForest) -> LinearFit | None:
        """Return the fit plus a smooth function of some columns, or plus terms with thresholds and a smooth function.

        None if neither predicts better.
        """
        if not pilot.promising:
            return None
        grams, names, seed = self.training.grams, self.predictors.names, self.training.seed
        smooth = self._smooth_only(fit, pilot)
        if not pilot.predictive:
            return smooth
        earlier = fit.residuals if smooth is None else smooth.residuals
        enough = _WORTH_SMOOTHING * float((earlier**2).mean())
        changes = fit_threshold_terms(grams, fit.predictor, fit.residuals, pilot.ranked, enough)
        if changes is None or (changes.residuals**2).mean() > enough:
            return smooth
        fit = self._smooth_only(changes, PilotForest.of(grams, changes.residuals[:, None], names, seed)) or changes
        return fit if exceeds_standard_error(earlier**2 - fit.residuals**2) else smooth

    def _smooth_only(self, fit: LinearFit, pilot: PilotForest) -> LinearFit | None:
        found = fit_kernel(self.training.grams, fit.residuals[:, None], pilot, self.training.seed)
        if found is None:
            return None
        predictor = PredictorSum(fit.predictor, found.predictor)
        return LinearFit(predictor, found.residuals[:, 0], float(found.noise[0]))

    def _shifted(self, fit: LinearFit, name: str = "shifted_subgroups", scale: ValueScale | None = None) -> Candidate:
        residuals, settings = residual_column(fit), self._with_depth(_RESIDUAL_DEPTH)
        # No tree on the residuals if neither single columns nor the linear model predict the feature significantly.
        x = self.series.values if scale is None else scale.forward(self.series.values)
        predicts = exceeds_standard_error((x - x.mean()) ** 2 - fit.residuals**2)
        tree = self.single if not predicts and len(self.tree) == 1 else self._grow(residuals, settings)
        splits, leaf = len(tree) - 1, tree._assign_table(self.predictors)
        everything = np.arange(len(x))
        rescore: Callable[[], Floats] = partial(self._scores_by_halves, residuals, settings)
        if scale is None and self._judged is None:
            scores = leave_one_out_scores(residuals, leaf)
        else:
            scores = self._scores_on_scale(fit, scale, everything, everything, leaf, leaf)
            rescore = partial(self._scores_on_scale_by_halves, fit, scale, settings)
        return Candidate(
            name=name,
            scores=scores,
            complexity=len(fit.predictor.terms) + splits + (0 if name == "shifted_subgroups" else SMOOTH_TERMS),
            make=lambda: ResidualSampler.of(
                fit, tree, self.training, self.series, self.training.report_depth, scale=scale
            ),
            splits=splits,
            rescore=rescore if splits else None,
            columns=len(self.predictors.names),
        )

    def _scores_on_scale(
        self, fit: LinearFit, scale: ValueScale | None, train: Rows, test: Rows, leaf: Rows, test_leaf: Rows
    ) -> Floats:
        """Return scores of test rows with residuals of training rows, where either or both are on another scale."""
        values = self.series.values[test]
        predicted = (values if scale is None else scale.forward(values)) - fit.residuals[test]
        return back_transformed_scores(values, predicted, fit.residuals[train], leaf, test_leaf, scale, self._judged)

    def _scores_on_scale_by_halves(self, fit: LinearFit, scale: ValueScale | None, settings: TreeSettings) -> Floats:
        scores = np.full(len(fit.residuals), np.nan)
        for train, test, leaf, test_leaf in self._trees_of_halves(residual_column(fit), settings):
            scores[test] = self._scores_on_scale(fit, scale, train, test, leaf, test_leaf)
        return scores

    def _gaussian(self, fit: LinearFit) -> Candidate:
        """Return the normal distribution around a ridge prediction, with its closed-form CRPS."""
        from scipy.special import ndtr, ndtri

        scale = float(np.sqrt((fit.residuals**2).mean()))
        z = fit.residuals / scale
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        scores = scale * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))

        def make() -> ResidualSampler:
            sampler = ResidualSampler.of(fit, self.single, self.training, self.series, 0)
            pool = scale * ndtri((np.arange(_NORMAL_POOL) + 0.5) / _NORMAL_POOL)
            return replace(sampler, residuals=pool, code=np.zeros(_NORMAL_POOL, dtype=np.int32), centre=np.zeros(1))

        return Candidate("gaussian", scores, len(fit.predictor.terms), make)

    @staticmethod
    def _tree_cannot_help(marginal: Candidate, shifted: Candidate) -> bool:
        """Return whether a linear model improves on the marginal sampler and its residuals depend on no column."""
        gain = marginal.scores - shifted.scores
        return shifted.splits == 0 and len(gain) >= _ROWS_TO_TRUST_TESTS and exceeds_standard_error(gain, errors=2)

    def _reweighted(self, fit: LinearFit, scale: ValueScale | None) -> list[Candidate]:
        """Return residuals whose distribution depends on the columns; values themselves, if frequent or with modes."""
        grams, names, name, x = self.training.grams, self.predictors.names, self.series.info.name, self.series.values
        _, counts = np.unique(x, return_counts=True)
        several_modes = ((x - x.mean()) ** 4).mean() < _SEVERAL_MODES * x.var() ** 2
        by_value = several_modes or counts.max() >= _ATOM * len(x)
        noise = fit.noise
        predictor, residuals = (None, x) if by_value else (fit.predictor, fit.residuals)
        if by_value and scale is not None:
            scale, noise = None, float("inf")
        pilot = self._pilot(residuals)
        found = fit_reweighted(grams, name, residuals, names, noise, self.training.seed, pilot)
        if found is None:
            return []
        scores = found.scores
        if scale is not None or self._judged is not None:
            on_scale = x if scale is None else scale.forward(x)
            scores = found.scores_on(x, on_scale - residuals, scale, self._judged)

        def make() -> ReweightedResiduals:
            return ReweightedResiduals(
                self.training.table.columns,
                predictor=predictor,
                bins=found.bins,
                probabilities=found.probabilities,
                values=NewValues.of(self.series, residuals, self.training.rows, scale),
                kept=found.kept,
            )

        return [Candidate("reweighted_residuals", scores, _REWEIGHTED_TERMS, make)]

    def _forest_donors(self, fit: LinearFit, scale: ValueScale | None) -> list[Candidate]:
        """Return donors of the same leaves of trees on the residuals of a fit, if these depend on the columns."""
        grams, names, seed = self.training.grams, self.predictors.names, self.training.seed
        if scale is not None or self._judged is not None or not self._pilot(fit.residuals).predictive:
            return []
        found = fit_donor_forest(grams, fit.residuals, names, seed)
        if found is None:
            return []

        def make() -> ForestDonors:
            forest = found.forest
            return ForestDonors(
                self.training.table.columns,
                predictor=fit.predictor,
                forest=forest,
                leaves=forest.leaves(self.training.table, forest.n_trees),
                residuals=fit.residuals,
                values=NewValues.of(self.series, fit.residuals, self.training.rows),
            )

        return [Candidate("forest_donors", found.scores, UNREADABLE, make)]
