"""Means of a number by the levels of a column with very many levels, shrunk towards each other (random effects)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.table import Table
from subgrove._regress.gram import exceeds_standard_error

MANY_LEVELS = 20  # levels up to this number have indicators in linear models
_MIN_ROWS = 3  # for each level, on average


@dataclass(frozen=True, eq=False)
class LevelMeans:
    """Deviation from the overall mean by level of a column; 0 for levels that are absent from training.

    Attributes
    ----------
    column : str
        Name of the column.
    effects : mapping
        Level -> deviation.
    """

    column: str
    effects: Mapping[str, float]

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def terms(self) -> tuple[LevelMeans]:
        """The deviations, which count as one term."""
        return (self,)

    def text(self) -> str:
        """Return the deviations in words."""
        return f"its mean by {self.column}"

    def predict(self, table: Table) -> Floats:
        """Return the deviation of each row."""
        series = table.series(self.column)
        by_code = np.array([*(self.effects.get(level, 0.0) for level in series.info.levels), 0.0])
        return np.asarray(by_code[np.where(series.values < 0, len(by_code) - 1, series.values)])


@dataclass(frozen=True, eq=False)
class LevelMeansFit:
    """Deviations, leave-one-out residuals, and the variance of the error of the deviations."""

    predictor: LevelMeans
    residuals: Floats
    error_variance: float


def fit_level_means(table: Table, x: Floats) -> LevelMeansFit | None:
    """Fit deviations by the column with very many levels that predicts a number best; None if none does."""
    fits = [fit for column in table.columns if column.is_nominal and (fit := _by_column(table, column.name, x))]
    return min(fits, key=lambda fit: float((fit.residuals**2).mean()), default=None)


def _by_column(table: Table, name: str, x: Floats) -> LevelMeansFit | None:
    series = table.series(name)
    codes = np.where(series.values < 0, len(series.info.levels), series.values).astype(np.intp)
    counts = np.bincount(codes).astype(np.float64)
    present = counts > 0
    n, n_levels = len(x), int(present.sum())
    if n_levels <= MANY_LEVELS or n < _MIN_ROWS * n_levels:
        return None
    overall = float(x.mean())
    sums = np.bincount(codes, weights=x - overall)
    means = sums / np.maximum(counts, 1)
    within = float(((x - overall - means[codes]) ** 2).sum()) / max(n - n_levels, 1)
    # Analysis of variance: the mean square between levels is within + rows * between.
    rows = (n - float((counts**2).sum()) / n) / (n_levels - 1)
    between = (float((counts * means**2).sum()) / (n_levels - 1) - within) / rows
    if not between > 0:
        return None
    left = np.maximum(counts[codes] - 1, 0)
    others = (sums[codes] - (x - overall)) / np.maximum(left, 1)
    left_out = left / (left + within / between) * others
    residuals = x - overall - left_out
    if not exceeds_standard_error((x - overall) ** 2 - residuals**2, errors=2):
        return None
    shrinkage = counts / (counts + within / between)
    effects = {
        level: float(shrinkage[code] * means[code]) for code, level in enumerate(series.info.levels[: len(counts)])
    }
    error = float((between * (1 - left / (left + within / between))).mean())
    return LevelMeansFit(LevelMeans(name, effects), residuals, error)
