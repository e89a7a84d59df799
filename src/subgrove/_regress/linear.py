"""Linear prediction of one column from the others: lasso or ridge, with the penalty chosen by cross-validation.

Requirements this design meets:

- few terms: the largest penalty whose held-out error is within one standard error of the minimum, compared row by row;
- products of two columns enter only if they are significantly correlated with the residuals of the additive model;
- honest residuals: the residual of each row comes from a fit without its fold;
- cheap for many features of one table: Gram matrices are computed once, by fold (`FoldGrams`), and shared by all fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import Design, DesignColumn
from subgrove._data.table import Table
from subgrove._regress.gram import RIDGE, CrossValidatedLeastSquares, FoldGrams, exceeds_standard_error, lasso_paths

_N_PENALTIES = 30
_AHEAD = 4  # penalties whose residuals are computed together
_RIDGES = np.geomspace(1e-3, 1e2, 16)
_LEAVE_ONE_OUT_RIDGES = 10.0 ** np.arange(-3, 4)  # as shares of the number of rows
_MAX_SQUARED = 150  # columns whose pairwise products are tested
_MAX_PRODUCTS = 5
_MIN_NOISE = 1e-12  # of a feature's variance: less is rounding error
_LEVEL = 0.05  # significance level for products, over all of them


@dataclass(frozen=True)
class LinearTerm:
    """A coefficient times a column, an indicator, or the product of two of them.

    Attributes
    ----------
    parts : tuple of DesignColumn
        One factor, or two; the factors of a product are centred.
    coefficient : float
        In units of the feature per unit of the factor (of each factor).
    size : float
        Change of the feature for one standard deviation of the term.
    """

    parts: tuple[DesignColumn, ...]
    coefficient: float
    size: float

    @property
    def label(self) -> str:
        """Label of the factors."""
        return " x ".join(part.label for part in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the factors."""
        return tuple(dict.fromkeys(part.column for part in self.parts))

    def text(self) -> str:
        """Return the term as in a formula, without its sign."""
        number = _short(abs(self.coefficient))
        factors = [self.parts[0].label] if len(self.parts) == 1 else map(_centred, self.parts)
        return " * ".join([number, *factors])


def _centred(part: DesignColumn) -> str:
    if not part.is_value:
        return f"({part.label} - {_short(part.mean)})"
    return f"({part.label} {'-' if part.mean >= 0 else '+'} {_short(abs(part.mean))})"


def _short(number: float) -> str:
    return f"{number:.3g}"


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """Sum of terms that predicts a feature.

    Attributes
    ----------
    feature : str
        Name of the predicted feature.
    intercept : float
        Prediction if all terms are 0.
    terms : tuple of LinearTerm
        Largest first.
    design : Design
        Encoding of the columns.
    """

    feature: str
    intercept: float
    terms: tuple[LinearTerm, ...]
    design: Design

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the terms, most important first."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.columns))

    def predict(self, table: Table) -> Floats:
        """Return the prediction for each row."""
        total = np.full(table.n_rows, self.intercept)
        for term in self.terms:
            if len(term.parts) == 1:
                (part,) = term.parts
                total += term.coefficient * (part.scale * self.design.numbers(table, part) + part.mean)
                continue
            factor = np.ones(table.n_rows)
            for part in term.parts:
                factor *= part.scale * self.design.numbers(table, part)
            total += term.coefficient * factor
        return total

    def text(self, most: int = 6) -> str:
        """Return the formula: "temp ~ 15.3 + 4.2 * [season = SUMMER] - 0.1 * hum"."""
        parts = [f"{self.feature} ~ {_short(self.intercept)}"]
        parts += [f"{'+' if term.coefficient >= 0 else '-'} {term.text()}" for term in self.terms[:most]]
        n_more = len(self.terms) - most
        more = [f"+ {n_more} smaller term{'s' if n_more > 1 else ''}"] if n_more > 0 else []
        return " ".join([*parts, *more])


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Fitted linear predictor with its residuals.

    Attributes
    ----------
    predictor : LinearPredictor or PredictorSum
        The predictor fitted on all rows.
    residuals : float array
        Held-out residual of each row.
    noise : float
        Residual variance of the best linear model of all columns, without the variance of its estimation.
    """

    predictor: Any
    residuals: Floats
    noise: float


def fit_sparse_linear(
    grams: FoldGrams, feature: str, x: Floats, names: Sequence[str], *, products: bool = True
) -> LinearFit | None:
    """Fit a sparse linear predictor of a numeric feature; None if no column predicts it.

    `x` are the values of the feature in the training rows of `grams`, none missing; `names` are the columns that terms
    may use. With `products`, products of two columns may be terms.
    """
    problem = CrossValidatedLeastSquares.of(grams, x, names)
    if problem is None:
        return None
    selected = _cross_validated_lasso(problem)
    pairs = _significant_products(problem, selected) if products else []
    means = scales = np.zeros(0)
    if pairs:
        extra, means, scales = _standardized_products(problem.values, pairs)
        larger = _cross_validated_lasso(problem.with_columns(extra))
        uses_products = larger.coefficients[len(problem.parts) :].any()
        if uses_products and exceeds_standard_error(selected.errors - larger.errors):
            selected = larger
    if not selected.coefficients.any():
        return None
    terms = []
    for at in np.flatnonzero(selected.coefficients):
        size = float(selected.coefficients[at]) * problem.scale
        if at < len(problem.parts):
            terms.append(_single_term(problem, int(at), size))
        else:
            k = int(at) - len(problem.parts)
            one, two = (grams.design.parts[problem.parts[place]] for place in pairs[k])
            term = LinearTerm((one, two), size / (scales[k] * one.scale * two.scale), abs(size))
            terms.append((term, size / scales[k] * float(means[k])))
    return _linear_fit(problem, feature, terms, selected.residuals, selected.noise)


def fit_dense_linear(grams: FoldGrams, feature: str, x: Floats, names: Sequence[str]) -> LinearFit | None:
    """Fit a ridge regression on all columns, with the penalty chosen by cross-validation."""
    problem = CrossValidatedLeastSquares.of(grams, x, names)
    if problem is None:
        return None
    lengths, axes = np.linalg.eigh(problem.without.products)
    transposed = axes.transpose(0, 2, 1)
    along = transposed @ problem.covariances[:, :, None]
    paths = (along / (np.maximum(lengths, 0.0)[:, :, None] + _RIDGES)).transpose(0, 2, 1) @ transposed
    best = int(problem.held_out_errors(paths[:-1]).argmin())
    residuals, b = problem.held_out_residuals(paths[:-1, best]), paths[-1, best]
    terms = [_single_term(problem, at, float(size) * problem.scale) for at, size in enumerate(b)]
    return _linear_fit(problem, feature, terms, residuals, _noise_variance(problem, b))


def ridge_predictions(predictors: Floats, targets: Floats, test: Floats, penalty: float) -> Floats:
    """Return predictions of test rows by a ridge regression; the penalty is a share of the number of rows."""
    columns, mean, scale = _standardized(predictors)
    n, p = columns.shape
    level = targets.mean(axis=0)
    if p <= n:
        weights = np.linalg.solve(columns.T @ columns + penalty * n * np.eye(p), columns.T @ (targets - level))
    else:  # the dual form, with as many equations as rows
        weights = columns.T @ np.linalg.solve(columns @ columns.T + penalty * n * np.eye(n), targets - level)
    predicted: Floats = level + (test - mean) / scale @ weights
    return predicted


def best_ridge_residuals(predictors: Floats, values: Floats) -> Floats:
    """Return leave-one-out residuals of the ridge regression with the best penalty, or of the mean if that is better.

    Missing values of predictors are set to the mean. One singular value decomposition serves all penalties.
    """
    n = len(values)
    mean = np.nan_to_num(np.nanmean(np.where(np.isnan(predictors).all(axis=0), 0.0, predictors), axis=0))
    columns = np.where(np.isnan(predictors), mean, predictors) - mean
    spread = columns.std(axis=0)
    columns = columns[:, spread > 0] / spread[spread > 0]
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    centre = values.mean()
    along = basis.T @ (values - centre)
    best: Floats = (values - centre) * n / max(n - 1, 1)
    for penalty in _LEAVE_ONE_OUT_RIDGES:
        shrinkage = sizes**2 / (sizes**2 + penalty * n)
        leverage = np.einsum("nk,k,nk->n", basis, shrinkage, basis) + 1.0 / n
        residuals = (values - centre - basis @ (shrinkage * along)) / np.maximum(1.0 - leverage, 1e-6)
        if np.mean(residuals**2) < np.mean(best**2):
            best = residuals
    return best


def _standardized(predictors: Floats) -> tuple[Floats, Floats, Floats]:
    """Return columns with mean 0 and standard deviation 1, and both; constant columns are only centred."""
    mean = predictors.mean(axis=0)
    centred = predictors - mean
    scale = np.sqrt((centred**2).mean(axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    return centred / scale, mean, scale


def _single_term(problem: CrossValidatedLeastSquares, at: int, size: float) -> tuple[LinearTerm, float]:
    """Return the term of one column, and its mean, which is part of the intercept."""
    part = problem.grams.design.parts[problem.parts[at]]
    return LinearTerm((part,), size / part.scale, abs(size)), size / part.scale * part.mean


def _linear_fit(
    problem: CrossValidatedLeastSquares,
    feature: str,
    terms: list[tuple[LinearTerm, float]],
    residuals: Floats,
    noise: float,
) -> LinearFit:
    """Return the fit in the units and the row order of the feature; `terms` come with their means."""
    intercept = problem.mean
    for _, mean in terms:
        intercept -= mean
    ranked = tuple(sorted((term for term, _ in terms), key=lambda term: (-term.size, term.label)))
    predictor = LinearPredictor(feature, intercept, ranked, problem.grams.design)
    return LinearFit(predictor, problem.in_row_order(residuals) * problem.scale, noise * problem.scale**2)


@dataclass(frozen=True, eq=False)
class _LassoFit:
    """Selected coefficients of all rows, held-out residuals and squared errors, and the noise variance."""

    coefficients: Floats
    residuals: Floats
    errors: Floats
    noise: float


def _cross_validated_lasso(problem: CrossValidatedLeastSquares) -> _LassoFit:
    n, p = problem.values.shape
    largest = float(np.abs(problem.all_rows[1]).max())
    if not largest > 0 or problem.is_unrelated:
        return _LassoFit(np.zeros(p), problem.target, problem.target**2, 1.0)
    penalties = largest * np.geomspace(1.0, 1e-3 if n > 2 * p else 1e-2, _N_PENALTIES)
    paths = lasso_paths(problem.without.products, problem.covariances, penalties)
    best = int(problem.held_out_errors(paths[:-1]).argmin())
    simplest, residuals = _simplest(problem, paths, best)
    errors = residuals**2
    b, noise = paths[-1, simplest], _noise_variance(problem, paths[-1, best])
    unpenalized = _refit_without_penalty(problem, paths[:, simplest])
    refit_residuals = problem.held_out_residuals(unpenalized[:-1])
    if (refit_residuals**2).mean() < errors.mean():
        b, residuals, errors = unpenalized[-1], refit_residuals, refit_residuals**2
    return _LassoFit(b, residuals, errors, noise)


def _simplest(problem: CrossValidatedLeastSquares, paths: Floats, best: int) -> tuple[int, Floats]:
    """Return the largest penalty within one standard error of the best one, and its held-out residuals.

    The empty model is excluded: many weak predictors may be strong jointly.
    """
    simplest, residuals, least = best, np.empty(0), None
    for start in range(best, -1, -_AHEAD):
        ahead = np.arange(start, max(start - _AHEAD, -1), -1)
        ahead = ahead[(ahead == best) | paths[-1, ahead].any(axis=1)]
        if not len(ahead):
            break
        some_residuals = problem.held_out_residuals(paths[:-1, ahead])
        errors = some_residuals**2
        least = errors[0] if least is None else least  # those of the best penalty
        differences = errors - least
        above = differences.mean(axis=1) > differences.std(axis=1) / np.sqrt(len(least))
        n_within = int(above.argmax()) if above.any() else len(ahead)
        if n_within:
            simplest, residuals = int(ahead[n_within - 1]), some_residuals[n_within - 1]
        if n_within < _AHEAD:
            break
    return simplest, residuals


def _refit_without_penalty(problem: CrossValidatedLeastSquares, selected: Floats) -> Floats:
    """Return least-squares coefficients of the selected columns, without each fold and for all rows."""
    coefficients = np.zeros_like(selected)
    at = np.flatnonzero(selected.any(axis=0))
    used = selected[:, at] != 0
    both = used[:, :, None] & used[:, None]
    # Columns that a fold does not use get an identity row, so that their coefficient is 0.
    squares = np.where(both, problem.without.products[:, at[:, None], at], 0.0)
    squares += np.eye(len(at)) * np.where(used, RIDGE, 1.0)[:, :, None]
    wanted = np.where(used, problem.covariances[:, at], 0.0)
    coefficients[:, at] = np.linalg.solve(squares, wanted[:, :, None])[:, :, 0]
    return coefficients


def _noise_variance(problem: CrossValidatedLeastSquares, b: Floats) -> float:
    """Return the residual variance by least squares, or by a penalized fit if columns are too many for it."""
    n, p = problem.values.shape
    if 2 * p < n:
        noise = problem.least_squares[1] * n / (n - p - 1)
    else:
        noise = problem.in_sample_error(b) * n / max(n - np.count_nonzero(b) - 1, 1)
    return max(float(noise), _MIN_NOISE)


def _significant_products(problem: CrossValidatedLeastSquares, fit: _LassoFit) -> list[tuple[int, int]]:
    """Return pairs of columns whose product is significantly correlated with the residuals, strongest first."""
    n, p = problem.values.shape
    if problem.grams.values.shape[1] > _MAX_SQUARED or n < 50:
        return []
    from scipy.special import ndtri

    residuals, values = fit.residuals, problem.values
    spread = float(residuals.std())
    if not spread > 0:
        return []
    products = (residuals[:, None] * values).T @ values / n - residuals.mean() * problem.mean_products
    scales = problem.grams.product_scales[problem.parts[:, None], problem.parts]
    scores = np.abs(products) * scales * (np.sqrt(n) / spread)
    limit = float(ndtri(1 - _LEVEL / (p * (p + 1))))
    if not scores.max() > limit:
        return []
    first, second = _all_pairs(p)
    scores = scores[first, second]
    significant = np.flatnonzero(scores > limit)
    significant = significant[np.argsort(-scores[significant], kind="stable")[:_MAX_PRODUCTS]]
    return [(int(first[at]), int(second[at])) for at in significant]


@lru_cache(maxsize=8)
def _all_pairs(p: int) -> tuple[Rows, Rows]:
    """Return all pairs of p columns, including each with itself."""
    first, second = np.triu_indices(p)
    return first, second


def _standardized_products(values: Floats, pairs: list[tuple[int, int]]) -> tuple[Floats, Floats, Floats]:
    """Return standardized products of columns, and the means and standard deviations of the products."""
    raw = np.array([values[:, one] * values[:, two] for one, two in pairs])
    means, scales = raw.mean(axis=1), raw.std(axis=1)
    return ((raw - means[:, None]) / scales[:, None]).T, means, scales
