"""Random forest that predicts the probabilities of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.encode import Design, DesignColumn
from subgrove._data.table import Table
from subgrove._regress.forest import grow_forest
from subgrove._regress.gram import FoldGrams

_N_TREES = 60
_NODE_SIZES = (5, 20, 60)
_PRIOR_ROWS = 1.0  # rows with the overall shares that are added to each prediction


@dataclass(frozen=True, eq=False)
class ForestLevels:
    """Probabilities of levels by a forest, given the other columns.

    Attributes
    ----------
    feature : str
        Name of the feature.
    parts : tuple of DesignColumn
        Predictors.
    forest : RandomForest
        Predicts an indicator of each level.
    shares : float array
        Share of each level in the training rows.
    weight : float
        Share of these in each prediction, so that no level is impossible.
    design : Design
        Encoding of the columns.
    """

    feature: str
    parts: tuple[DesignColumn, ...]
    forest: Any
    shares: Floats
    weight: float
    design: Design

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the forest."""
        return tuple(dict.fromkeys(part.column for part in self.parts))

    def predict(self, table: Table) -> Floats:
        """Return the probability of each level in each row."""
        predictors = np.column_stack([self.design.numbers(table, part) for part in self.parts])
        return mixed(self.forest.predict(predictors), self.shares, self.weight)

    def text(self, most: int = 6) -> str:
        """Return one line: which columns predict the levels."""
        names = self.columns
        more = f" and {len(names) - most} more" if len(names) > most else ""
        return f"{self.feature} is predicted by a random forest of {', '.join(names[:most])}{more}"


@dataclass(frozen=True, eq=False)
class ForestLevelsFit:
    """Forest with the value of each level, and out-of-bag log scores of the rows."""

    kept: ClassVar[float] = 0.0
    predictor: ForestLevels
    values: npt.NDArray[np.generic]
    scores: Floats


def fit_forest_levels(
    grams: FoldGrams, feature: str, series: npt.NDArray[np.generic], names: Sequence[str], seed: int
) -> ForestLevelsFit | None:
    """Grow forests with leaves of several sizes, and return that with the best out-of-bag log score."""
    values, code = np.unique(series, return_inverse=True)
    parts = grams.design.allowed(names)
    if len(values) < 2 or not len(parts):
        return None
    predictors = np.empty((len(code), len(parts)))
    predictors[grams.order] = grams.values[:, parts]
    outputs = (code[:, None] == np.arange(len(values))).astype(np.float64)
    shares = outputs.mean(axis=0)
    best: ForestLevelsFit | None = None
    columns = tuple(grams.design.parts[at] for at in parts)
    for size in _NODE_SIZES:
        if 2 * size > len(code):
            break
        forest = grow_forest(
            predictors,
            outputs,
            n_trees=_N_TREES,
            min_node_size=size,
            tried=max(1, (2 * len(parts) + 2) // 3),
            seed=seed,
            n_jobs=1,
        )
        weight = _PRIOR_ROWS / (_PRIOR_ROWS + size)
        probabilities = mixed(np.where(np.isnan(forest.out_of_bag), shares, forest.out_of_bag), shares, weight)
        scores = -np.log(np.maximum(probabilities[np.arange(len(code)), code], 1e-300))
        if best is None or scores.mean() < best.scores.mean():
            predictor = ForestLevels(feature, columns, forest, shares, weight, grams.design)
            best = ForestLevelsFit(predictor, values, scores)
    return best


def mixed(probabilities: Floats, shares: Floats, weight: float) -> Floats:
    """Return predicted probabilities, mixed with the overall shares."""
    return (1 - weight) * np.maximum(probabilities, 0.0) + weight * shares
