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
from subgrove._regress.linear import LinearFit, LinearTerm, fit_dense_linear, fit_sparse_linear
from subgrove._regress.threshold_terms import fit_threshold_terms
from subgrove._subgroups.depth import leave_one_out_scores
from subgrove._subgroups.partition import TreeSettings
from subgrove.samplers.auto.candidates import Candidate, CandidateSet, predict_parts
from subgrove.samplers.auto.choice import SMOOTH_TERMS, UNREADABLE
from subgrove.samplers.chained import SeparateModes
from subgrove.samplers.forest_donors import ForestDonors, fit_donor_forest
from subgrove.samplers.location_shift import (
    NewValues,
    PredictedSpread,
    ResidualSampler,
    ValueScale,
    intercept_only,
    judging_scale,
    residual_column,
    scales_to_try,
)
from subgrove.samplers.predicted_probabilities import (
    ATOM,
    LEAST_IN_MODE,
    ReweightedResiduals,
    back_transformed_scores,
    fit_reweighted,
    mixture_crps,
    mode_borders,
    nearest_mode,
    roughly_likely,
    separation,
)

_RESIDUAL_DEPTH = 3
_ROWS_TO_TRUST_TESTS = 1000  # with fewer, a test may have missed a dependence
_REWEIGHTED_TERMS = 200  # complexity of probabilities that depend on the columns
_SEVERAL_MODES = 1.7  # kurtosis; that of a symmetric distribution with one mode is at least 1.8
_FEW_TERMS = 3  # of a linear predictor that is readable without a tree
_WORTH_SMOOTHING = 1.2  # squared residuals of thresholds over those of a smooth function, up to which both are tried
_DENSE_FROM = 5  # terms of a sparse predictor from which one of all columns is tried
_SEPARATE = 2.5  # distance of two modes over their spreads together, from which they are separate
_ROUGHLY_SEPARATE = 2.3  # the same, with linear predictions
_LEAST_SIZE = 0.1  # of residuals over their median size, below which they count as equal
_REASSIGNED = 3  # times that rows are assigned to the nearest of the predictions
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
        around = on_residuals or compares("smooth_subgroups", "scaled_subgroups", "separate_modes")
        smooth = self._smooth(fit, pilot, self.series.values) if around else None
        if smooth is not None:
            candidates.append(self._shifted(smooth, "smooth_subgroups"))
        located: list[tuple[LinearFit, ValueScale | None, float]] = [
            (smooth or fit, None, candidates[-1].score if len(candidates) > 1 else np.inf)
        ]
        scales = scales_to_try(self.series.values, (smooth or fit).residuals)
        for other_scale in scales if on_residuals or compares("transformed_subgroups") else ():
            values = other_scale.forward(self.series.values)
            _, other, its_pilot = self._linear(other_scale.label(self.series.info.name), values)
            other = self._smooth(other, its_pilot, values) or other
            candidates.append(self._shifted(other, "transformed_subgroups", other_scale))
            located.append((other, other_scale, candidates[-1].score))
        candidates = self.rescored([*candidates, *(self.subgroups() if compares("training_subgroups") else [])])
        location, scale, _ = min(located, key=lambda one: one[2])  # whose residuals the last two candidates resample
        if compares("scaled_subgroups"):
            candidates += self._scaled(smooth or fit)
        if compares("separate_modes"):
            candidates += self._separate_modes(smooth or fit)
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
        fit = sparse or self._mean_of(name, target)
        if by_level is not None:
            noise = max(fit.noise - by_level.error_variance, 0.0)
            sparse = fit = LinearFit(PredictorSum(fit.predictor, by_level.predictor), fit.residuals, noise)
        return sparse, fit, self._pilot(fit.residuals)

    def _mean_of(self, name: str, x: Floats) -> LinearFit:
        return intercept_only(self.training.grams, TypedColumn(replace(self.series.info, name=name), x))

    def _linear_or_mean(self, name: str, x: Floats) -> LinearFit:
        """Return a sparse linear fit without products."""
        sparse = fit_sparse_linear(self.training.grams, name, x, self.predictors.names, products=False)
        return sparse or self._mean_of(name, x)

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

    def _smooth(self, fit: LinearFit, pilot: PilotForest, x: Floats) -> LinearFit | None:
        """Return the fit of x plus a smooth function of some columns, or plus thresholds and a smooth function.

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
        tried = [fit]
        if any(isinstance(term, LinearTerm) and len(term.parts) > 1 for term in fit.predictor.terms):
            tried.append(self._linear_or_mean(fit.predictor.feature, x))  # products may stand for thresholds
        found = [fit_threshold_terms(grams, one.predictor, one.residuals, pilot.ranked, enough) for one in tried]
        known = [one for one in found if one is not None and (one.residuals**2).mean() <= enough]
        if not known:
            return smooth
        changes = min(known, key=lambda one: float((one.residuals**2).mean()))
        fit = self._smooth_only(changes, PilotForest.of(grams, changes.residuals[:, None], names, seed)) or changes
        return fit if exceeds_standard_error(earlier**2 - fit.residuals**2) else smooth

    def _smooth_only(self, fit: LinearFit, pilot: PilotForest) -> LinearFit | None:
        found = fit_kernel(self.training.grams, fit.residuals[:, None], pilot, self.training.seed)
        if found is None:
            return None
        predictor = PredictorSum(fit.predictor, found.predictor)
        return LinearFit(predictor, found.residuals[:, 0], float(found.noise[0]))

    def _shifted(
        self,
        fit: LinearFit,
        name: str = "shifted_subgroups",
        scale: ValueScale | None = None,
        spread: tuple[PredictedSpread, Floats] | None = None,
    ) -> Candidate:
        """Return resampled residuals around a fit, on another scale, or in units of a spread if they are given so."""
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
        units = 1.0 if spread is None else spread[1]
        return Candidate(
            name=name,
            scores=units * scores,
            complexity=len(fit.predictor.terms) + splits + (0 if name == "shifted_subgroups" else SMOOTH_TERMS),
            make=lambda: ResidualSampler.of(
                fit, tree, self.training, self.series, self.training.report_depth, scale=scale, spread=spread
            ),
            splits=splits,
            rescore=(lambda: units * rescore()) if splits else None,
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
        by_value = several_modes or counts.max() >= ATOM * len(x)
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

    def _scaled(self, fit: LinearFit) -> list[Candidate]:
        """Return residuals in units of a predicted spread, if other columns predict it."""
        sizes, pilot = np.abs(fit.residuals), self._pilot(fit.residuals)
        least, name = _LEAST_SIZE * float(np.median(sizes)), f"spread of {self.series.info.name}"
        if self._judged is not None or not least or not pilot.predictive:
            return []
        logs = np.log(np.maximum(sizes, least))
        sparse = fit_sparse_linear(self.training.grams, name, logs, self.predictors.names)
        smooth = self._smooth_only(sparse or self._mean_of(name, logs), pilot)
        found = smooth or sparse
        if found is None:
            return []
        spread, units = PredictedSpread.of(found, logs)
        ratios = fit.residuals / units
        noise = fit.noise * float((ratios**2).mean() / (fit.residuals**2).mean())
        scaled = self._shifted(LinearFit(fit.predictor, ratios, noise), "shifted_subgroups", None, (spread, units))
        readable = smooth is None and not isinstance(fit.predictor, PredictorSum)
        terms = scaled.complexity + len(spread.predictor.terms) + (0 if readable else SMOOTH_TERMS)
        return [replace(scaled, name="scaled_subgroups", complexity=terms)]

    def _separate_modes(self, fit: LinearFit) -> list[Candidate]:
        """Return a prediction for each mode of the values, or else of the residuals of a fit, if there are several."""
        for place in (self.series.values, fit.residuals) if self._judged is None else ():
            borders = mode_borders(place)
            if len(borders):
                code = self._nearest_modes(self._without_common_slopes(np.searchsorted(borders, place)))
                if code is not None and (found := self._by_mode(code)):
                    return found
        return []

    def _without_common_slopes(self, code: Rows) -> Rows:
        """Return the modes of the values without what moves all modes by the same distance."""
        names, x = self.predictors.names, self.series.values
        for _ in range(_REASSIGNED):
            centred = x - (np.bincount(code, weights=x) / np.bincount(code))[code]
            common = fit_sparse_linear(self.training.grams, self.series.info.name, centred, names)
            if common is None:
                break
            place = x - centred + common.residuals
            borders = mode_borders(place)
            near = np.searchsorted(borders, place)
            if len(borders) < code.max() or (near == code).all():
                break
            code = near
        return code

    def _nearest_modes(self, code: Rows) -> Rows | None:
        """Return the mode that each row is nearest to by linear predictions; None if they seem to be but one."""
        x, training = self.series.values, self.training
        for _ in range(_REASSIGNED):
            parts = self._by_part(code)
            fits = [part._linear_or_mean("", part.series.values) for part in parts]
            predicted = np.column_stack([fit.predictor.predict(self.predictors) for fit in fits])
            spreads = np.array([fit.residuals.std() for fit in fits])
            near = nearest_mode(x, predicted, spreads)
            if np.bincount(near, minlength=len(parts)).min() < LEAST_IN_MODE or (near == code).all():
                break
            code = near
        likely = roughly_likely(training.grams, code, self.predictors.names, training.seed)
        return code if separation(predicted, spreads, likely) >= _ROUGHLY_SEPARATE else None

    def _by_mode(self, code: Rows) -> list[Candidate]:
        """Return a prediction for each mode, given the nearest one, if several occur in the same place."""
        name, x, parts = self.series.info.name, self.series.values, self._by_part(code)
        fits = []
        for part in parts:
            _, fit, pilot = part._linear(name, part.series.values)
            fits.append(part._smooth(fit, pilot, part.series.values) or fit)
        probabilities, log_scores = predict_parts(self.training, name, code, self.predictors)
        predicted = np.column_stack([fit.predictor.predict(self.predictors) for fit in fits])
        for mode, fit in enumerate(fits):
            predicted[code == mode, mode] = x[code == mode] - fit.residuals
        shares = probabilities.held_out(self.predictors, code, log_scores)
        spreads = np.array([fit.residuals.std() for fit in fits])
        if separation(predicted, spreads, shares) < _SEPARATE:
            return []
        scores = mixture_crps(x, predicted, [fit.residuals for fit in fits], shares)

        def make() -> SeparateModes:
            return SeparateModes(
                self.training.table.columns,
                modes=tuple(part._shifted(fit).make() for part, fit in zip(parts, fits, strict=True)),
                spreads=spreads,
                probabilities=probabilities,
                values=NewValues.of(self.series, x, self.training.rows),
            )

        return [Candidate("separate_modes", scores, _REWEIGHTED_TERMS, make)]

    def _by_part(self, code: Rows) -> list[NumberCandidates]:
        """Return the candidates of the rows of each part."""
        rows = [np.flatnonzero(code == number) for number in range(code.max() + 1)]
        series = [replace(self.series, values=self.series.values[at]) for at in rows]
        found = zip(map(self.training.some_rows, rows), series, map(self.predictors.rows, rows), strict=True)
        return [NumberCandidates(*part) for part in found]

    def _forest_donors(self, fit: LinearFit, scale: ValueScale | None) -> list[Candidate]:
        """Return donors of the same leaves of trees on the residuals of a fit, if these depend on the columns."""
        grams, names, seed = self.training.grams, self.predictors.names, self.training.seed
        if scale is not None or self._judged is not None or not self._pilot(fit.residuals).predictive:
            return []
        found = fit_donor_forest(grams, fit.residuals, names, seed)
        if found is None:
            return []

        def make() -> ForestDonors:
            values = NewValues.of(self.series, fit.residuals, self.training.rows)
            return ForestDonors.of(found, fit.predictor, fit.residuals, self.training.table, values)

        return [Candidate("forest_donors", found.scores, UNREADABLE, make)]
