"""Candidate samplers of levels: probabilities by a multinomial model, smooth functions, or a forest."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import TypedColumn
from subgrove._regress.forest_levels import fit_forest_levels
from subgrove._regress.kernel_levels import fit_kernel_levels
from subgrove._regress.multinomial import fit_sparse_multinomial
from subgrove._regress.ordered_levels import fit_ordered_levels
from subgrove.samplers.auto.candidates import Candidate, CandidateSet
from subgrove.samplers.auto.choice import SMOOTH_TERMS, UNREADABLE
from subgrove.samplers.location_shift import (
    LevelSampler,
)


class LevelCandidates(CandidateSet):
    """Candidates of a feature with few levels, compared by their log score."""

    def candidates(self) -> list[Candidate]:
        """Return the candidates for a feature with few levels, all with log scores."""
        models = [candidate for candidate, _ in self.probability_models()]
        return self.rescored([self.marginal(), *self.subgroups(), *models])

    @cached_property
    def _scored(self) -> TypedColumn:
        """The feature by codes of its levels, also if they are ordered or few numbers."""
        if self.series.info.is_nominal:
            return self.series
        values, code = np.unique(self.series.values, return_inverse=True)
        info = ColumnInfo(self.series.info.name, "nominal", tuple(map(str, range(len(values)))))
        return TypedColumn(info, code.astype(np.int32))

    def probability_models(self) -> list[tuple[Candidate, Any]]:
        """Return models of the probabilities of levels: candidates, and the fits with their predictors."""
        grams, names, series, seed = self.training.grams, self.predictors.names, self.series, self.training.seed
        multinomial = fit_sparse_multinomial(grams, series, names)
        fits: list[tuple[str, int, Any, Callable[[], Floats]]] = []
        if multinomial.predictor.parts:
            complexity = len(multinomial.predictor.parts)
            scores = partial(multinomial.held_out_log_scores, self.halves)
            fits.append(("shifted_subgroups", complexity, multinomial, scores))
        ordered = (
            None if series.info.is_nominal else fit_ordered_levels(grams, series.info.name, series.values, names, seed)
        )
        if ordered is not None:
            fits.append(("ordered_levels", 1 + ordered.n_terms, ordered, lambda: ordered.scores))
        smooth = fit_kernel_levels(grams, series.info.name, series.values, names, seed)
        if smooth is not None:
            fits.append(("smooth_levels", SMOOTH_TERMS, smooth, lambda: smooth.scores))
        forest = fit_forest_levels(grams, series.info.name, series.values, names, seed)
        if forest is not None:
            fits.append(("forest_levels", UNREADABLE, forest, lambda: forest.scores))
        made = partial(LevelSampler.of, series=series, rows=self.training.rows, columns=self.training.table.columns)
        return [
            (Candidate(name, scores(), complexity, partial(made, fit)), fit) for name, complexity, fit, scores in fits
        ]
