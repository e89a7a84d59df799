"""Sparse multinomial model of a feature with few levels, given the other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import Design, DesignColumn
from subgrove._data.table import Table, TypedColumn
from subgrove._regress.gram import FoldGrams
from subgrove._regress.linear import fit_sparse_linear

MAX_LEVELS = 20  # features with more levels have no model
_MAX_COLUMNS = 10
_RIDGE = 0.1  # penalty on squared coefficients, as strong as a tenth of a row: see decision 0034
_INTERCEPT_RIDGE = 1e-3
_MAX_STEPS = 30
_MAX_HALVINGS = 30  # of a step that increases the cost
_SMALL_STEP = 1e-6  # the error of the next step would be about its square
_SMALL_GAIN = 1e-12  # relative to the cost, below rounding error


@dataclass(frozen=True, eq=False)
class MultinomialPredictor:
    """Probabilities of levels, given the other columns.

    Attributes
    ----------
    feature : str
        Name of the feature.
    levels : tuple of str
        Labels.
    parts : tuple of DesignColumn
        Encoded columns of the model, most important first.
    coefficients : float array (1 + parts, levels)
        Of the log probabilities, up to an additive constant; columns are standardized.
    design : Design
        Encoding of the columns.
    """

    feature: str
    levels: tuple[str, ...]
    parts: tuple[DesignColumn, ...]
    coefficients: Floats
    design: Design

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the model."""
        return tuple(dict.fromkeys(part.column for part in self.parts))

    def predict(self, table: Table) -> Floats:
        """Return the probability of each level in each row."""
        ones = np.ones((table.n_rows, 1))
        known = [self.design.numbers(table, part)[:, None] for part in self.parts]
        return _softmax(self.coefficients.T @ np.hstack([ones, *known]).T).T

    def text(self, most: int = 6) -> str:
        """Return one line: which columns make which level likely."""
        if not self.parts:
            return f"{self.feature} has the same probabilities in all rows"
        effects = []
        for at, part in enumerate(self.parts[:most]):
            line = self.coefficients[1 + at]
            effects.append(
                f"{part.label} (more {self.levels[int(line.argmax())]}, less {self.levels[int(line.argmin())]})"
            )
        n_more = len(self.parts) - most
        more = f" and {n_more} more" if n_more > 0 else ""
        return f"{self.feature} depends on {', '.join(effects)}{more}"


@dataclass(frozen=True, eq=False)
class MultinomialFit:
    """Fitted multinomial model with its training data.

    Attributes
    ----------
    predictor : MultinomialPredictor
        The model fitted on all rows.
    values : array
        Value in the table for each level.
    code : int array
        Level of each row.
    matrix : float array (rows, 1 + parts)
        Encoded columns.
    """

    kept: ClassVar[float] = 0.0
    predictor: MultinomialPredictor
    values: npt.NDArray[np.generic]
    code: Rows
    matrix: Floats

    def held_out_log_scores(self, halves: Sequence[tuple[Rows, Rows]]) -> Floats:
        """Return the log score of each row by a fit on the other half."""
        scores = np.empty(len(self.code))
        for train, test in halves:
            b = _fit(self.matrix[train], self.code[train], len(self.values), self.predictor.coefficients)
            probabilities = _softmax(b.T @ self.matrix[test].T)
            scores[test] = -np.log(np.maximum(probabilities[self.code[test], np.arange(len(test))], 1e-300))
        return scores


def fit_sparse_multinomial(grams: FoldGrams, series: TypedColumn, names: Sequence[str]) -> MultinomialFit:
    """Fit a sparse multinomial model of a feature with few levels.

    It uses the columns of a sparse linear model of any level's indicator; at most ten, those with the largest effects.
    """
    values, code = np.unique(series.values, return_inverse=True)
    sizes: dict[int, float] = {}
    place = {part: at for at, part in enumerate(grams.design.parts)}
    if 1 < len(values) <= MAX_LEVELS:
        for k in range(len(values) if len(values) > 2 else 1):
            fit = fit_sparse_linear(grams, series.info.name, (code == k).astype(np.float64), names, products=False)
            for term in fit.predictor.terms if fit is not None else ():
                (part,) = term.parts
                sizes[place[part]] = max(sizes.get(place[part], 0.0), term.size)
    parts = sorted(sizes, key=lambda at: (-sizes[at], at))[:_MAX_COLUMNS]
    original = np.empty_like(grams.order)
    original[grams.order] = np.arange(len(original))
    matrix = np.hstack([np.ones((grams.n_rows, 1)), grams.values[:, parts][original]])
    b = _fit(matrix, code, len(values))
    labels = tuple(_label(series, value) for value in values)
    columns = tuple(grams.design.parts[at] for at in parts)
    predictor = MultinomialPredictor(series.info.name, labels, columns, b, grams.design)
    return MultinomialFit(predictor, values, code, matrix)


def _label(series: TypedColumn, value: np.generic) -> str:
    if series.info.kind == "numeric":
        return f"{float(value):g}"
    return series.info.levels[int(value) - (series.info.kind == "ordered")]


def _softmax(scores: Floats) -> Floats:
    """Return probabilities of the levels, which are the first axis."""
    scores = np.exp(scores - scores.max(axis=0))
    return np.asarray(scores / scores.sum(axis=0))


def _fit(matrix: Floats, code: Rows, n_levels: int, start: Floats | None = None) -> Floats:
    """Fit a ridge-penalized multinomial model by Newton's method; the last level has coefficients 0.

    `start` are coefficients of similar rows; without them, it starts at the shares of the levels.
    """
    d = matrix.shape[1]
    free = n_levels - 1
    b = np.zeros((d, n_levels))
    if not free:
        return b
    counts = np.maximum(np.bincount(code, minlength=n_levels), 0.5)
    b[0] = np.log(counts / counts[-1])
    if d == 1:  # the shares are the solution, and levels may be very many
        return b
    if start is not None:
        b = start.copy()
    columns = np.ascontiguousarray(matrix.T)  # rows contiguous: sums over levels are then fast
    indicators = (np.arange(n_levels)[:, None] == code).astype(np.float64)
    penalty = np.full((d, free), _RIDGE)
    penalty[0] = _INTERCEPT_RIDGE

    def cost_and_probabilities(b: Floats) -> tuple[float, Floats]:
        probabilities = _softmax(b.T @ columns)
        log_likelihood = np.log(np.maximum((probabilities * indicators).sum(axis=0), 1e-300)).sum()
        return float((penalty * b[:, :free] ** 2).sum() / 2 - log_likelihood), probabilities[:free]

    pairs = [(one, two) for one in range(free) for two in range(one, free)]
    first, second = np.triu_indices(d)
    products = columns[first] * columns[second]
    hessian = np.empty((free, free, d, d))
    cost, probabilities = cost_and_probabilities(b)
    for _ in range(_MAX_STEPS):
        gradient = columns @ (indicators[:free] - probabilities).T - penalty * b[:, :free]
        weights = np.array([probabilities[one] * ((one == two) - probabilities[two]) for one, two in pairs])
        for (one, two), sums in zip(pairs, weights @ products.T, strict=True):
            hessian[one, two, first, second] = hessian[one, two, second, first] = sums
            hessian[two, one] = hessian[one, two]
        full = hessian.transpose(0, 2, 1, 3).reshape(free * d, free * d) + np.diag(penalty.T.ravel())
        step = np.zeros_like(b)
        step[:, :free] = np.linalg.solve(full, gradient.T.ravel()).reshape(free, d).T
        gain = float((gradient * step[:, :free]).sum()) / 2  # expected decrease of the cost
        if np.abs(step).max() < _SMALL_STEP or gain < _SMALL_GAIN * max(1.0, abs(cost)):
            return b + step
        last_cost = cost
        for _ in range(_MAX_HALVINGS):
            cost, probabilities = cost_and_probabilities(b + step)
            if cost < last_cost:
                break
            step /= 2
        else:
            return b  # converged up to rounding
        b = b + step
    return b
