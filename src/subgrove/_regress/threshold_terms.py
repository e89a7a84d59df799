"""Terms that change at a threshold: steps, kinks, and slopes of a column that differ on two sides of another.

Residuals of a linear model are correlated with 1{a > t} b and 1{a > t} 1{b > s}, for columns a and b (b may be a or 1)
and thresholds at the deciles. The best terms are added one by one, as long as they are significant, and all
coefficients are fitted together with the columns and the product of each term.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import Design, DesignColumn
from subgrove._data.table import Table
from subgrove._regress.gram import FoldGrams, exceeds_standard_error
from subgrove._regress.kernel import PredictorSum
from subgrove._regress.linear import LinearFit

_MOST_TERMS = 4
_MOST_COLUMNS = 12
_MOST_STEPS = 6  # columns whose indicators are multiplied with those of others
_QUANTILES = np.arange(1, 10) / 10
_SIGNIFICANT = 4.5  # standard errors of a correlation, for thousands of tested terms
_MIN_DISTINCT = 10
_REFINED = 13  # thresholds between two deciles, and again between two of these
_TIED = 1e-10  # relative difference of errors that may be rounding
_WITH_INDICATOR = {3: (2,), 4: (2,), 5: (4,)}  # by the number of columns of a term: the product with its indicator
_RIDGE = 1e-6
_MIN_ROWS = 100
_ROWS_PER_COLUMN = 20  # of the training rows, for each column of all terms


@dataclass(frozen=True)
class ThresholdTerm:
    """The indicator that a column is above a threshold, times 1, another column, or the same indicator of that."""

    above: DesignColumn
    threshold: float
    times: DesignColumn | None
    step: float | None = None  # threshold of the other column

    @property
    def swapped(self) -> ThresholdTerm:
        """The same product of two indicators, the other one first."""
        return ThresholdTerm(cast(DesignColumn, self.times), cast(float, self.step), self.above, self.threshold)

    def text(self) -> str:
        """Return where it changes."""
        first = f"{self.above.label} > {self.threshold * self.above.scale + self.above.mean:.3g}"
        return first if self.step is None else f"{first} and {replace(self.swapped, step=None).text()}"


@dataclass(frozen=True, eq=False)
class ThresholdChanges:
    """Sum of terms that change at thresholds.

    Attributes
    ----------
    terms : tuple of ThresholdTerm
        The terms.
    coefficients : float array
        Of the columns of `_regressors`.
    intercept : float
    design : Design
        Encoding of the columns.
    """

    terms: tuple[ThresholdTerm, ...]
    coefficients: Floats
    intercept: float
    design: Design

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of all terms."""
        parts = [part for term in self.terms for part in (term.above, term.times) if part is not None]
        return tuple(dict.fromkeys(part.column for part in parts))

    def predict(self, table: Table) -> Floats:
        """Return the sum for each row."""
        columns = [_regressors(term, lambda part: self.design.numbers(table, part)) for term in self.terms]
        return np.asarray(self.intercept + np.hstack(columns) @ self.coefficients)

    def text(self) -> str:
        """Return where it changes."""
        return f"changes at {', '.join(dict.fromkeys(term.text() for term in self.terms))}"


def _regressors(term: ThresholdTerm, numbers: Any) -> Floats:
    """Return the columns of a term: the indicator, both columns, and their product with each other and with it.

    Of two indicators: both, their product, and that of the columns. Of one indicator also the column, because a linear
    predictor without the step has another slope than one with it.
    """
    above = numbers(term.above)
    indicator = (above > term.threshold).astype(np.float64)
    if term.times is None:
        return np.column_stack([indicator, above])
    if term.times == term.above:
        return np.column_stack([indicator, above, indicator * above])
    times = numbers(term.times)
    if term.step is not None:
        other = (times > term.step).astype(np.float64)
        return np.column_stack([indicator, other, indicator * other, above * times])
    return np.column_stack([indicator, above, times, above * times, indicator * times])


def fit_threshold_terms(
    grams: FoldGrams, linear: Any, residuals: Floats, ranked: Rows, enough: float = np.inf
) -> LinearFit | None:
    """Fit terms that change at thresholds to the residuals of a linear predictor; None if they predict no better.

    `ranked` are the design columns to try, most important first; `residuals` are in the order of the rows. None also if
    the mean squared residual cannot become `enough`: later terms usually explain less than earlier ones.
    """
    target = residuals[grams.order]
    parts = ranked[:_MOST_COLUMNS].tolist()
    if len(target) < _MIN_ROWS or not parts:
        return None
    place = {grams.design.parts[at]: at for at in parts}
    changes: list[ThresholdTerm] = []
    search = _Search.of(grams, parts)
    left, matrix = target, np.empty((len(target), 0))
    while len(changes) < _MOST_TERMS:
        term = search.best(left)
        if term is None:
            break
        term = _refined(term, matrix, target, lambda part: grams.values[:, place[part]])
        if term.step is not None:
            term = _refined(term.swapped, matrix, target, lambda part: grams.values[:, place[part]])
        more = np.hstack([matrix, _regressors(term, lambda part: grams.values[:, place[part]])])
        if term in changes or more.shape[1] * _ROWS_PER_COLUMN > len(target):
            break
        residuals_then = _held_out(grams, more, target)
        if not exceeds_standard_error(left**2 - residuals_then**2):
            break
        gain, error = float((left**2 - residuals_then**2).mean()), float((residuals_then**2).mean())
        changes.append(term)
        if (_MOST_TERMS - len(changes)) * gain < error - enough:
            return None
        left, matrix = residuals_then, more
    if not changes or not exceeds_standard_error(target**2 - left**2, errors=2):
        return None
    coefficients, intercept = _least_squares(matrix, target)
    in_sample = target - intercept - matrix @ coefficients
    noise = float((in_sample**2).sum()) / max(len(target) - matrix.shape[1] - 1, 1)
    in_row_order = np.empty_like(left)
    in_row_order[grams.order] = left
    extra = ThresholdChanges(tuple(changes), coefficients, intercept, grams.design)
    return LinearFit(PredictorSum(linear, extra), in_row_order, noise)


@dataclass(frozen=True, eq=False)
class _Search:
    """What the search for the best term has in common for all residuals."""

    design: Design
    cuts: dict[int, Floats]
    others: list[tuple[int | None, float | None]]
    columns: Floats
    everything: Floats
    bins: Floats  # indicators of the bins of each column
    squares: list[Floats]  # squared columns, summed above each cut

    @classmethod
    def of(cls, grams: FoldGrams, parts: Sequence[int]) -> _Search:
        numbers = grams.values
        cuts = {at: np.unique(np.quantile(numbers[:, at], _QUANTILES)) for at in parts}
        cuts = {
            at: own for at, own in cuts.items() if len(own) > 1 and len(np.unique(numbers[:200, at])) >= _MIN_DISTINCT
        }
        steps = [(at, float(cut)) for at in parts[:_MOST_STEPS] if at in cuts for cut in cuts[at]]
        indicators = np.array([numbers[:, at] > cut for at, cut in steps], dtype=np.float64).reshape(-1, len(numbers)).T
        columns = np.column_stack([np.ones(len(numbers)), numbers[:, list(parts)], indicators - indicators.mean(0)])
        codes = [(numbers[:, at] > own[:, None]).sum(axis=0) for at, own in cuts.items()]
        one_hot = [code[:, None] == np.arange(len(own) + 1) for code, own in zip(codes, cuts.values(), strict=True)]
        bins = np.hstack([*one_hot, np.empty((len(numbers), 0))])
        squared = columns**2
        return cls(
            grams.design,
            cuts,
            [(None, None), *((at, None) for at in parts), *steps],
            columns,
            squared.sum(axis=0),
            bins,
            _sums_above_cuts(bins.T @ squared, cuts),
        )

    def best(self, residuals: Floats) -> ThresholdTerm | None:
        """Return the term with the largest correlation with the residuals; None if it is not significant."""
        centred = residuals - residuals.mean()
        spread = float(centred.std())
        best: tuple[float, ThresholdTerm | None] = (_SIGNIFICANT, None)
        if not spread > 0:
            return None
        weighted, total = centred[:, None] * self.columns, centred @ self.columns
        sums = _sums_above_cuts(self.bins.T @ weighted, self.cuts)
        for (at, own), squares, above in zip(self.cuts.items(), self.squares, sums, strict=True):
            # Projected on the column itself, so that a slope that is the same on both sides does not count.
            with np.errstate(divide="ignore", invalid="ignore"):
                share = squares / self.everything
                sizes = squares * (1 - share)
                scores = np.abs(above - share * total) / np.sqrt(sizes) / spread
            scores = np.where(sizes > 0.02 * self.everything, scores, 0.0)
            scores[:, [other == at and step is not None for other, step in self.others]] = 0.0  # one step, not two
            cut, times = np.unravel_index(int(np.argmax(scores)), scores.shape)
            if scores[cut, times] > best[0]:
                other, step = self.others[int(times)]
                part = None if other is None else self.design.parts[other]
                best = float(scores[cut, times]), ThresholdTerm(self.design.parts[at], float(own[cut]), part, step)
        return best[1]


def _refined(term: ThresholdTerm, matrix: Floats, target: Floats, numbers: Any) -> ThresholdTerm:
    """Return the term with the threshold of the smallest squared error between the deciles around it."""
    above = numbers(term.above)
    values = np.sort(above)
    at = float(np.searchsorted(values, term.threshold)) / len(values)
    columns = _regressors(term, numbers)
    changing = [0, *_WITH_INDICATOR.get(columns.shape[1], ())]  # columns that depend on the threshold
    factor: Floats | None = None if term.times is None else numbers(term.times)
    if factor is not None and term.step is not None and term.times != term.above:
        factor = (factor > term.step).astype(np.float64)
    fixed = np.hstack([matrix, np.delete(columns, changing, axis=1), target[:, None]])
    reach = 0.1
    for _ in range(2):
        levels = np.clip(at + np.linspace(-reach, reach, _REFINED), 0.02, 0.98)
        trials = [replace(term, threshold=_between(values, level)) for level in levels]
        steps = (above[:, None] > np.array([one.threshold for one in trials])).astype(np.float64)
        parts = [fixed, steps] if factor is None else [fixed, steps, steps * factor[:, None]]
        errors = _errors_of_trials(np.hstack(parts), fixed.shape[1])
        best = int(np.flatnonzero(errors <= errors.min() + _TIED * float(target @ target))[0])
        term, at, reach = trials[best], float(levels[best]), 2 * reach / (_REFINED - 1)
    return term


def _errors_of_trials(columns: Floats, n_fixed: int) -> Floats:
    """Return the sum of squares left by fits to the last fixed column: each by the others and the columns of a trial.

    The columns of trials follow: the first one of each trial, then perhaps the second one of each.
    """
    centred = columns - columns.mean(axis=0)
    products = centred.T @ centred
    errors = np.empty(_REFINED)
    for trial in range(_REFINED):
        own = [*range(n_fixed - 1), *range(n_fixed + trial, len(products), _REFINED)]
        gram, target = products[np.ix_(own, own)], products[own, n_fixed - 1]
        ridge = _RIDGE * max(float(np.trace(gram)), 1e-300)
        coefficients = np.linalg.solve(gram + ridge * np.eye(len(own)), target)
        left = products[n_fixed - 1, n_fixed - 1] - 2 * coefficients @ target + coefficients @ gram @ coefficients
        errors[trial] = left
    return errors


def _between(values: Floats, level: float) -> float:
    """Return the middle between two neighbouring sorted values, at a quantile."""
    place = min(max(int(level * len(values)), 1), len(values) - 1)
    return float(values[place - 1] / 2 + values[place] / 2)


def _sums_above_cuts(by_bin: Floats, cuts: dict[int, Floats]) -> list[Floats]:
    """Return for each column the sums above each of its cuts, from those of its bins."""
    ends = np.cumsum([len(own) + 1 for own in cuts.values()])
    return [np.cumsum(part[::-1], axis=0)[::-1][1:] for part in np.split(by_bin, ends)[:-1]]


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
