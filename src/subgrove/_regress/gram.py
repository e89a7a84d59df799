"""Least squares and lasso paths from Gram matrices by fold: cross-validation without a second pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._core.validate import warn
from subgrove._data.encode import Design, is_extreme
from subgrove._data.table import Table
from subgrove._native import loader
from subgrove._regress.forest import ForestColumns

N_FOLDS = 5
RIDGE = 1e-9  # makes the equations of identical columns solvable
_MIN_VARIANCE = 1e-6  # of a product that is not constant
_MAX_COLUMNS = 300  # design columns; if there are more, those most correlated with the target
_ROWS_PER_COLUMN = 5  # needed for the joint test of no dependence
_CHANCE = 0.05  # significance level of the joint test below which a path is computed
_CHANCE_CORRELATION = 3.0  # correlation times the square root of the number of rows, likewise


def mean_and_std_error(differences: Floats) -> tuple[float, float]:
    """Return the mean of row-wise differences, and its standard error."""
    n = len(differences)
    mean = float(differences.mean())
    centred = differences - mean
    return mean, float(np.sqrt(centred @ centred)) / n


def exceeds_standard_error(gain: Floats, errors: float = 1.0) -> bool:
    """Return whether the mean of row-wise gains is above 0 by more than so many standard errors."""
    mean, error = mean_and_std_error(gain)
    return mean > errors * error


@dataclass(frozen=True, eq=False)
class FoldGrams:
    """Design matrix of a table with its Gram matrices by fold, shared by all features of the table.

    Attributes
    ----------
    design : Design
        Encoding of the columns.
    order : int array
        Rows sorted by fold.
    values : float array (rows, parts)
        Design matrix in that order.
    starts : int array
        First position of each fold, and the number of rows.
    """

    design: Design
    order: Rows
    values: Floats
    starts: Rows

    @classmethod
    def of(cls, table: Table, seed: int) -> FoldGrams:
        """Compute from training rows; folds depend only on the seed and the number of rows."""
        design, values = Design.of(table)
        order = stream(seed, "folds of shifts").permutation(table.n_rows)
        n_folds = min(N_FOLDS, max(table.n_rows // 2, 1))
        starts = np.linspace(0, table.n_rows, n_folds + 1).astype(np.intp)
        return cls(design, order, values[order], starts)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.order)

    @cached_property
    def forest_columns(self) -> ForestColumns:
        """The design matrix as predictors of forests, with rows in their own order."""
        in_row_order = np.empty_like(self.values)
        in_row_order[self.order] = self.values
        return ForestColumns(in_row_order)

    @cached_property
    def moments(self) -> FoldMoments:
        """Sums and Gram matrix of each fold."""
        return FoldMoments.of(self.values, self.starts)

    @cached_property
    def without(self) -> LeaveFoldOut:
        """Means and covariances without each fold."""
        return LeaveFoldOut.of(self.moments)

    @cached_property
    def product_scales(self) -> Floats:
        """Inverse standard deviation of the product of each pair of columns; 0 if it is nearly constant."""
        squares, means = self.values**2, self.moments.products.sum(axis=0) / self.n_rows
        variances = squares.T @ squares / self.n_rows - means**2
        return np.where(variances > _MIN_VARIANCE, 1 / np.sqrt(np.maximum(variances, _MIN_VARIANCE)), 0.0)

    @cached_property
    def folds(self) -> list[slice]:
        """Rows of each fold, in the order of `values`."""
        return [slice(a, b) for a, b in pairwise(self.starts)]

    def most_correlated(self, parts: Rows, target: Floats, most: int) -> Rows:
        """Return the columns with the largest correlations with a target."""
        if len(parts) <= most:
            return parts
        correlations = np.abs(self.values[:, parts].T @ target)
        return np.sort(parts[np.argsort(-correlations, kind="stable")[:most]])


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """Number of rows, column sums and Gram matrix of each fold."""

    counts: Floats
    sums: Floats
    products: Floats

    @classmethod
    def of(cls, values: Floats, starts: Rows) -> FoldMoments:
        """Compute from rows sorted by fold."""
        folds = [values[a:b] for a, b in pairwise(starts)]
        return cls(
            np.array([float(len(part)) for part in folds]),
            np.array([part.sum(axis=0) for part in folds]),
            np.array([part.T @ part for part in folds]),
        )

    def some(self, parts: Rows) -> FoldMoments:
        """Return the moments of some columns."""
        return FoldMoments(self.counts, self.sums[:, parts], self.products[:, parts[:, None], parts])


@dataclass(frozen=True, eq=False)
class LeaveFoldOut:
    """Moments without each fold, and of all rows (last).

    Attributes
    ----------
    counts : float array (folds + 1, 1)
        Numbers of rows.
    means : float array (folds + 1, columns)
        Column means.
    products : float array (folds + 1, columns, columns)
        Covariance matrices.
    """

    counts: Floats
    means: Floats
    products: Floats

    @classmethod
    def of(cls, moments: FoldMoments) -> LeaveFoldOut:
        """Compute from the moments of each fold."""
        counts = sums_without_each_fold(moments.counts[:, None])
        means = sums_without_each_fold(moments.sums) / counts
        covariances = sums_without_each_fold(moments.products) / counts[:, :, None] - means[:, :, None] * means[:, None]
        return cls(counts, means, covariances)

    def some(self, parts: Rows) -> LeaveFoldOut:
        """Return the moments of some columns."""
        return LeaveFoldOut(self.counts, self.means[:, parts], self.products[:, parts[:, None], parts])


def sums_without_each_fold(by_fold: Floats) -> Floats:
    """Return the sums over all folds but each, and over all folds (last)."""
    total = by_fold.sum(axis=0)
    return np.concatenate([total - by_fold, total[None]])


@dataclass(frozen=True, eq=False)
class CrossValidatedLeastSquares:
    """Standardized target and its candidate columns, rows sorted by fold; held-out errors from Gram matrices alone."""

    grams: FoldGrams
    parts: Rows
    values: Floats
    moments: FoldMoments
    without: LeaveFoldOut
    target: Floats
    mean: float
    scale: float

    @classmethod
    def of(cls, grams: FoldGrams, x: Floats, names: Sequence[str]) -> CrossValidatedLeastSquares | None:
        """Prepare the regression of x on some columns; None if it cannot be computed."""
        parts = grams.design.allowed(names)
        if is_extreme(x):
            return None
        mean = float(x.mean())
        centred = x[grams.order] - mean
        scale = float(np.sqrt(centred @ centred / len(x)))
        if not len(parts) or not scale > 0 or grams.n_rows < 2 * N_FOLDS:
            return None
        target = centred / scale
        parts = grams.most_correlated(parts, target, _MAX_COLUMNS)
        values = grams.values if len(parts) == grams.values.shape[1] else grams.values[:, parts]
        if grams.values.shape[1] <= _MAX_COLUMNS:
            moments, without = grams.moments.some(parts), grams.without.some(parts)
        else:
            moments = FoldMoments.of(values, grams.starts)
            without = LeaveFoldOut.of(moments)
        return cls(grams, parts, values, moments, without, target, mean, scale)

    def with_columns(self, extra: Floats) -> CrossValidatedLeastSquares:
        """Return the regression with additional columns."""
        values = np.hstack([self.values, extra])
        moments = FoldMoments.of(values, self.grams.starts)
        without = LeaveFoldOut.of(moments)
        return CrossValidatedLeastSquares(
            self.grams, self.parts, values, moments, without, self.target, self.mean, self.scale
        )

    @cached_property
    def target_means(self) -> Floats:
        """Means of the target without each fold, and of all rows (last)."""
        return np.asarray((sums_without_each_fold(self.target_sums[:, None]) / self.without.counts)[:, 0])

    @cached_property
    def covariances(self) -> Floats:
        """Covariances of columns and target without each fold, and of all rows (last)."""
        known = self.without
        products = sums_without_each_fold(self.target_products) / known.counts
        return np.asarray(products - known.means * self.target_means[:, None])

    @cached_property
    def target_sums(self) -> Floats:
        """Sum of the target by fold."""
        return np.array([self.target[rows].sum() for rows in self.grams.folds])

    @cached_property
    def mean_products(self) -> Floats:
        """Mean product of each pair of columns."""
        return np.asarray(self.moments.products.sum(axis=0) / len(self.target))

    def held_out_residuals(self, coefficients: Floats) -> Floats:
        """Return the residual of each row by the coefficients that were fitted without its fold.

        Coefficients are (folds, columns); or (folds, several, columns), which gives several lines of residuals.
        """
        means, levels = self.without.means[:-1], self.target_means[:-1]
        n, lines = len(self.target), coefficients if coefficients.ndim == 3 else coefficients[:, None]
        residuals = np.empty((lines.shape[1], n))
        intercepts = levels[:, None] - (lines @ means[:, :, None])[:, :, 0]
        if n % len(lines) == 0:  # folds of equal size: all in one product
            by_fold = self.values.reshape(len(lines), -1, self.values.shape[1])
            predicted = lines @ by_fold.transpose(0, 2, 1) + intercepts[:, :, None]
            residuals.reshape(len(residuals), len(lines), -1)[:] = predicted.transpose(1, 0, 2)
        else:
            for rows, b, intercept in zip(self.grams.folds, lines, intercepts, strict=True):
                residuals[:, rows] = b @ self.values[rows].T + intercept[:, None]
        np.subtract(self.target, residuals, out=residuals)
        return residuals if coefficients.ndim == 3 else residuals[0]

    def held_out_errors(self, coefficients: Floats) -> Floats:
        """Return the mean squared held-out error of each of several coefficients (folds, several, columns)."""
        b, moments = coefficients, self.moments
        intercepts = self.target_means[:-1, None] - (b @ self.without.means[:-1, :, None])[:, :, 0]
        square = ((b @ moments.products) * b).sum(axis=2)
        with_target, sums = (np.asarray(b @ part[:, :, None])[:, :, 0] for part in (self.target_products, moments.sums))
        total = square - 2 * with_target + moments.counts[:, None] * intercepts**2
        total += 2 * intercepts * (sums - self.target_sums[:, None])
        return np.asarray((total.sum(axis=0) + self.target @ self.target) / len(self.target))

    @cached_property
    def target_products(self) -> Floats:
        """Products of columns and target by fold."""
        return np.array([self.values[rows].T @ self.target[rows] for rows in self.grams.folds])

    @cached_property
    def all_rows(self) -> tuple[Floats, Floats]:
        """Covariance matrix of the columns, and their covariances with the target, in all rows."""
        n, means = len(self.target), self.without.means[-1]
        return self.without.products[-1], self.target_products.sum(axis=0) / n - means * float(self.target.mean())

    @cached_property
    def least_squares(self) -> tuple[Floats, float]:
        """Coefficients of all columns, and their mean squared in-sample error."""
        g, c = self.all_rows
        b: Floats = np.linalg.solve(g + RIDGE * np.eye(len(c)), c).astype(np.float64)
        return b, self.in_sample_error(b)

    def in_sample_error(self, b: Floats) -> float:
        """Return the mean squared error of coefficients in all rows."""
        g, c = self.all_rows
        return max(float(1.0 - 2.0 * (b @ c) + b @ g @ b), 0.0)

    @property
    def is_unrelated(self) -> bool:
        """Whether neither any column nor all of them jointly are significantly related to the target."""
        from scipy.special import fdtrc

        n, p = self.values.shape
        if _ROWS_PER_COLUMN * p >= n:
            return False  # the joint test would have little power
        error = max(self.least_squares[1], 1e-12)
        joint = float(fdtrc(p, n - p - 1, (1 - error) / error * (n - p - 1) / p))
        return joint > _CHANCE and float(np.abs(self.all_rows[1]).max()) * np.sqrt(n) < _CHANCE_CORRELATION

    def in_row_order(self, values: Floats) -> Floats:
        """Return values in the original order of rows."""
        original = np.empty_like(values)
        original[self.grams.order] = values
        return original


_TOLERANCE = 1e-7  # relative to the target's variance: smaller decreases of the objective end the descent
_MAX_SWEEPS = 1000


def lasso_paths(gram: Floats, with_target: Floats, penalties: Floats) -> Floats:
    """Return the coefficients (problems, penalties, columns) that minimize b' G b / 2 - c' b + penalty |b|.

    Parameters
    ----------
    gram : float array (problems, columns, columns)
        G: mean products of the centred columns.
    with_target : float array (problems, columns)
        c: mean products with the target, whose variance is about 1.
    penalties : float array
        Decreasing.
    """
    problems, p = with_target.shape
    gram, with_target, penalties = (
        np.ascontiguousarray(part, dtype=np.float64) for part in (gram, with_target, penalties)
    )
    coef = np.zeros((problems, len(penalties), p))
    if loader.lasso_path is not None:
        sizes = problems, p, len(penalties)
        failures = loader.lasso_path.paths(gram, with_target, penalties, coef, *sizes, _TOLERANCE)
    else:
        failures = sum(
            _follow(*problem) for problem in zip(gram, with_target, [penalties] * problems, coef, strict=True)
        )
    if failures:
        warn(
            f"Coordinate descent did not converge for {failures} of {problems * len(penalties)} lasso problems, so the "
            f"columns that a shift is made of may not be the best ones."
        )
    return coef


def _follow(gram: Floats, with_target: Floats, penalties: Floats, out: Floats) -> int:
    """Write the coefficients of one problem; return for how many penalties they did not converge."""
    gradient, coef, failures = with_target.copy(), np.zeros(len(with_target)), 0
    columns = np.flatnonzero(np.diag(gram) > 0)
    for at, penalty in enumerate(penalties):
        failures += not _descend(gram, columns, penalty, coef, gradient)
        out[at] = coef
    return failures


def _descend(gram: Floats, columns: Rows, penalty: float, coef: Floats, gradient: Floats) -> bool:
    """Update the coefficients for one penalty; return whether they converged."""
    for _ in range(_MAX_SWEEPS):
        if _sweep(gram, columns, penalty, coef, gradient) <= _TOLERANCE:
            return True
        for _ in range(_MAX_SWEEPS):
            if _sweep(gram, np.flatnonzero(coef), penalty, coef, gradient) <= _TOLERANCE:
                break
    return False


def _sweep(gram: Floats, columns: Rows, penalty: float, coef: Floats, gradient: Floats) -> float:
    """Update each column once; return the largest decrease of the objective, times 2."""
    largest = 0.0
    for j in columns:
        diagonal, old = gram[j, j], coef[j]
        unpenalized = gradient[j] + diagonal * old
        new = np.sign(unpenalized) * max(abs(unpenalized) - penalty, 0.0) / diagonal
        step = new - old
        if step != 0.0:
            coef[j] = new
            gradient -= step * gram[j]
            largest = max(largest, step * step * diagonal)
    return largest


def location_and_spread(values: Floats) -> Floats:
    """Return normal scores of the values and their squares, both with variance 1: trees split on both."""
    from scipy.special import ndtri

    order = np.argsort(values, kind="stable")
    _, first, inverse, counts = np.unique(values[order], return_index=True, return_inverse=True, return_counts=True)
    place = np.empty(len(values))
    place[order] = (first + (counts - 1) / 2)[inverse]
    scores = ndtri((place + 0.5) / len(values))
    columns = np.column_stack([scores, scores**2])
    spread = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
