"""Terms that change at a threshold: steps, kinks, and slopes of a column that differ on two sides of another.

Residuals of a linear model are correlated with 1{a > t} b for columns a and b (b may be a itself, or constant) and
thresholds t at the deciles of a. The best terms are added one by one, as long as they are significant, and all
coefficients are fitted together with the columns and the product of each term.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import Design, DesignColumn
from subgrove._data.table import Table
from subgrove._regress.gram import FoldGrams, exceeds_standard_error

_MOST_TERMS = 4
_MOST_COLUMNS = 12
_QUANTILES = np.arange(1, 10) / 10
_SIGNIFICANT = 4.5  # standard errors of a correlation, for thousands of tested terms
_MIN_DISTINCT = 10
_REFINED = 13  # thresholds between two deciles, and again between two of these
_RIDGE = 1e-6
_MIN_ROWS = 100
_ROWS_PER_COLUMN = 20  # of the training rows, for each column of all terms


@dataclass(frozen=True)
class ThresholdTerm:
    """The indicator that a column is above a threshold, times another column or 1."""

    above: DesignColumn
    threshold: float
    times: DesignColumn | None


@dataclass(frozen=True, eq=False)
class ThresholdPredictor:
    """A linear prediction plus terms that change at thresholds.

    Attributes
    ----------
    linear : LinearPredictor
        The linear part.
    changes : tuple of ThresholdTerm
        The terms.
    coefficients : float array
        Of the columns of `_regressors`.
    intercept : float
    design : Design
        Encoding of the columns.
    """

    linear: Any
    changes: tuple[ThresholdTerm, ...]
    coefficients: Floats
    intercept: float
    design: Design

    @property
    def feature(self) -> str:
        """Name of the predicted feature."""
        return str(self.linear.feature)

    @property
    def terms(self) -> tuple[Any, ...]:
        """All terms."""
        return (*self.linear.terms, *self.changes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of all terms."""
        parts = [part for term in self.changes for part in (term.above, term.times) if part is not None]
        return tuple(dict.fromkeys((*self.linear.columns, *(part.column for part in parts))))

    def predict(self, table: Table) -> Floats:
        """Return the prediction for each row."""
        columns = [_regressors(term, lambda part: self.design.numbers(table, part)) for term in self.changes]
        return np.asarray(self.linear.predict(table) + self.intercept + np.hstack(columns) @ self.coefficients)

    def text(self, most: int = 6) -> str:
        """Return the formula of the linear part, and where it changes."""
        places = [
            f"{term.above.label} > {term.threshold * term.above.scale + term.above.mean:.3g}" for term in self.changes
        ]
        return f"{self.linear.text(most)} + changes at {', '.join(dict.fromkeys(places))}"


@dataclass(frozen=True, eq=False)
class ThresholdFit:
    """Predictor with the residuals of each row by a fit without its fold, and the noise variance."""

    predictor: ThresholdPredictor
    residuals: Floats
    noise: float


def _regressors(term: ThresholdTerm, numbers: Any) -> Floats:
    """Return the columns of a term: the indicator, both columns, and their product with each other and with it."""
    above = numbers(term.above)
    indicator = (above > term.threshold).astype(np.float64)
    if term.times is None:
        return np.asarray(indicator[:, None])
    if term.times == term.above:
        return np.column_stack([indicator, above, indicator * above])
    times = numbers(term.times)
    return np.column_stack([indicator, above, times, above * times, indicator * times])


def fit_threshold_terms(grams: FoldGrams, linear: Any, residuals: Floats, ranked: Rows) -> ThresholdFit | None:
    """Fit terms that change at thresholds to the residuals of a linear predictor; None if they predict no better.

    `ranked` are the design columns to try, most important first; `residuals` are in the order of the rows.
    """
    target = residuals[grams.order]
    parts = ranked[:_MOST_COLUMNS].tolist()
    if len(target) < _MIN_ROWS or not parts:
        return None
    place = {grams.design.parts[at]: at for at in parts}
    changes: list[ThresholdTerm] = []
    left, matrix = target, np.empty((len(target), 0))
    while len(changes) < _MOST_TERMS:
        term = _best_term(grams, parts, left)
        if term is None:
            break
        term = _refined(term, matrix, target, lambda part: grams.values[:, place[part]])
        more = np.hstack([matrix, _regressors(term, lambda part: grams.values[:, place[part]])])
        if term in changes or more.shape[1] * _ROWS_PER_COLUMN > len(target):
            break
        residuals_then = _held_out(grams, more, target)
        if not exceeds_standard_error(left**2 - residuals_then**2):
            break
        changes.append(term)
        left, matrix = residuals_then, more
    if not changes or not exceeds_standard_error(target**2 - left**2, errors=2):
        return None
    coefficients, intercept = _least_squares(matrix, target)
    in_sample = target - intercept - matrix @ coefficients
    noise = float((in_sample**2).sum()) / max(len(target) - matrix.shape[1] - 1, 1)
    in_row_order = np.empty_like(left)
    in_row_order[grams.order] = left
    predictor = ThresholdPredictor(linear, tuple(changes), coefficients, intercept, grams.design)
    return ThresholdFit(predictor, in_row_order, noise)


def _best_term(grams: FoldGrams, parts: Sequence[int], residuals: Floats) -> ThresholdTerm | None:
    """Return the term with the largest correlation with the residuals; None if it is not significant."""
    columns = np.column_stack([np.ones(len(residuals)), grams.values[:, list(parts)]])
    centred = residuals - residuals.mean()
    spread = float(centred.std())
    best: tuple[float, ThresholdTerm | None] = (_SIGNIFICANT, None)
    if not spread > 0:
        return None
    for at in parts:
        values = grams.values[:, at]
        cuts = np.unique(np.quantile(values, _QUANTILES))
        if len(cuts) < 2 or len(np.unique(values[:200])) < _MIN_DISTINCT:
            continue
        bins = np.searchsorted(cuts, values, side="left")
        one_hot = bins[:, None] == np.arange(len(cuts) + 1)
        above = _sums_above(one_hot.T @ (centred[:, None] * columns))
        total = centred @ columns
        squares = _sums_above(one_hot.T @ columns**2)
        everything = (columns**2).sum(axis=0)
        # Projected on the column itself, so that a slope that is the same on both sides does not count.
        share = squares / everything
        sizes = squares * (1 - share)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.abs(above - share * total) / np.sqrt(sizes) / spread
        scores = np.where(sizes > 0.02 * everything, scores, 0.0)
        cut, times = np.unravel_index(int(np.argmax(scores)), scores.shape)
        if scores[cut, times] > best[0]:
            part = None if times == 0 else grams.design.parts[parts[int(times) - 1]]
            best = float(scores[cut, times]), ThresholdTerm(grams.design.parts[at], float(cuts[cut]), part)
    return best[1]


def _refined(term: ThresholdTerm, matrix: Floats, target: Floats, numbers: Any) -> ThresholdTerm:
    """Return the term with the threshold of the smallest squared error between the deciles around it."""
    values = np.sort(numbers(term.above))
    at = float(np.searchsorted(values, term.threshold)) / len(values)
    reach = 0.1
    for _ in range(2):
        levels = np.clip(at + np.linspace(-reach, reach, _REFINED), 0.02, 0.98)
        trials = [replace(term, threshold=_between(values, level)) for level in levels]
        errors = []
        for trial in trials:
            columns = np.hstack([matrix, _regressors(trial, numbers)])
            coefficients, intercept = _least_squares(columns, target)
            errors.append(float(((target - intercept - columns @ coefficients) ** 2).sum()))
        best = int(np.argmin(errors))
        term, at, reach = trials[best], float(levels[best]), 2 * reach / (_REFINED - 1)
    return term


def _between(values: Floats, level: float) -> float:
    """Return the middle between two neighbouring sorted values, at a quantile."""
    place = min(max(int(level * len(values)), 1), len(values) - 1)
    return float(values[place - 1] / 2 + values[place] / 2)


def _sums_above(by_bin: Floats) -> Floats:
    """Return for each cut the sum over the bins above it."""
    return np.cumsum(by_bin[::-1], axis=0)[::-1][1:]


def _held_out(grams: FoldGrams, matrix: Floats, target: Floats) -> Floats:
    """Return the residuals of each fold by a fit on the others."""
    residuals = np.empty_like(target)
    for fold in grams.folds:
        kept = np.ones(len(target), dtype=np.bool_)
        kept[fold] = False
        coefficients, intercept = _least_squares(matrix[kept], target[kept])
        residuals[fold] = target[fold] - intercept - matrix[fold] @ coefficients
    return residuals


def _least_squares(matrix: Floats, target: Floats) -> tuple[Floats, float]:
    means, level = matrix.mean(axis=0), float(target.mean())
    centred = matrix - means
    gram = centred.T @ centred
    gram[np.diag_indices_from(gram)] += _RIDGE * max(float(np.trace(gram)), 1e-300)
    coefficients = np.linalg.solve(gram, centred.T @ (target - level))
    return coefficients, level - float(means @ coefficients)
