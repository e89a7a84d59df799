"""One feature and the columns that may foretell it: least squares on held-out folds, from products of columns alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from subgrove._kinds import Floats, Rows
from subgrove._shift.design import is_extreme
from subgrove._shift.rivals import N_FOLDS, Moments, Rivals

RIDGE = 1e-9  # so that columns which are the same have a solution
_MOST_PARTS = 300  # beyond it, those that are most related to the feature
_ROWS_A_COLUMN = 5  # that it takes to see that columns have nothing to tell
_CHANCE = 0.05  # level of the joint test below which a path is followed
_CHANCE_CORRELATION = 3.0  # correlation times the root of the number of rows, likewise


@dataclass(frozen=True, eq=False)
class Asked:
    """A target and the parts that may foretell it, rows in the order of folds; the target has mean 0 and variance 1."""

    rivals: Rivals
    parts: Rows
    values: Floats
    moments: Moments
    target: Floats
    mean: float
    scale: float

    @classmethod
    def of(cls, rivals: Rivals, x: Floats, names: Sequence[str]) -> Asked | None:
        parts = rivals.design.allowed(names)
        if is_extreme(x):
            return None
        mean, scale = float(x.mean()), float(x.std())
        if not len(parts) or not scale > 0 or rivals.n_rows < 2 * N_FOLDS:
            return None
        target = (x[rivals.order] - mean) / scale
        parts = rivals.most_related(parts, target, _MOST_PARTS)
        values = rivals.values if len(parts) == rivals.values.shape[1] else rivals.values[:, parts]
        if rivals.values.shape[1] <= _MOST_PARTS:
            moments = rivals.sums.some(parts)
        else:
            moments = Moments.of(values, rivals.starts)
        return cls(rivals, parts, values, moments, target, mean, scale)

    def beside(self, extra: Floats) -> Asked:
        """With more columns."""
        values = np.hstack([self.values, extra])
        moments = Moments.of(values, self.rivals.starts)
        return Asked(self.rivals, self.parts, values, moments, self.target, self.mean, self.scale)

    @cached_property
    def problems(self) -> tuple[Floats, Floats, list[tuple[Floats, float]]]:
        """Mean products of columns, and with the target, about the means: without each fold, and of all rows (last).

        Also the means themselves, of columns and target.
        """
        folds = self.rivals.folds()
        with_target = self.with_target
        target_sums = np.array([self.target[rows].sum() for rows in folds])
        moments = self.moments
        n_folds, p = with_target.shape
        products, crossed = np.empty((n_folds + 1, p, p)), np.empty((n_folds + 1, p))
        means: list[tuple[Floats, float]] = []
        whole = (moments.counts.sum(), moments.sums.sum(0), moments.products.sum(0), with_target.sum(0))
        for k in range(n_folds + 1):
            if k < n_folds:
                n = whole[0] - moments.counts[k]
                s, g, c = whole[1] - moments.sums[k], whole[2] - moments.products[k], whole[3] - with_target[k]
                t = float(target_sums.sum() - target_sums[k])
            else:
                n, s, g, c = whole
                t = float(target_sums.sum())
            mean = s / n
            products[k] = g / n - mean[:, None] * mean
            crossed[k] = c / n - mean * (t / n)
            means.append((mean, t / n))
        return products, crossed, means

    @property
    def mean_products(self) -> Floats:
        """Of each two columns."""
        return np.asarray(self.moments.products.sum(axis=0) / len(self.target))

    @property
    def product_variances(self) -> Floats:
        """Variance of the product of each two columns."""
        if self.values.shape[1] > len(self.parts):  # with products beside
            squares = self.values**2
            return np.asarray(squares.T @ squares / len(squares) - self.mean_products**2)
        return self.rivals.product_variances[np.ix_(self.parts, self.parts)]

    def held_out(self, coefficients: Floats) -> Floats:
        """Residual of each row by the coefficients (folds, columns) that were fitted without its fold."""
        _, _, means = self.problems
        residuals = np.empty(len(self.target))
        for k, rows in enumerate(self.rivals.folds()):
            (mean, level), b = means[k], coefficients[k]
            residuals[rows] = self.target[rows] - (self.values[rows] @ b + (level - mean @ b))
        return residuals

    def held_out_errors(self, coefficients: Floats) -> Floats:
        """Mean squared residual for each of several coefficients (folds, several, columns), from products alone."""
        _, _, means = self.problems
        total = np.zeros(coefficients.shape[1])
        for k, (rows, cross) in enumerate(zip(self.rivals.folds(), self.with_target, strict=True)):
            (mean, level), b = means[k], coefficients[k]
            target = self.target[rows]
            n, sums, products = self.moments.counts[k], self.moments.sums[k], self.moments.products[k]
            moved = level - b @ mean  # intercepts
            square = ((b @ products) * b).sum(axis=1)
            total += square - 2 * (b @ cross) + target @ target + n * moved**2
            total += 2 * moved * (b @ sums) - 2 * moved * target.sum()
        return np.asarray(total / len(self.target))

    @cached_property
    def with_target(self) -> Floats:
        """Products of columns and target, by fold."""
        return np.array([self.values[rows].T @ self.target[rows] for rows in self.rivals.folds()])

    @cached_property
    def of_all(self) -> tuple[Floats, Floats]:
        """Mean products of columns, and with the target, about the means, of all rows."""
        n, mean = len(self.target), self.moments.sums.sum(axis=0) / len(self.target)
        products = self.moments.products.sum(axis=0) / n - mean[:, None] * mean
        return products, self.with_target.sum(axis=0) / n - mean * float(self.target.mean())

    @cached_property
    def least_squares(self) -> tuple[Floats, float]:
        """Coefficients of all columns, and the mean square that they leave in the rows they were fitted to."""
        g, c = self.of_all
        b: Floats = np.linalg.solve(g + RIDGE * np.eye(len(c)), c).astype(np.float64)
        return b, self.left_by(b)

    def left_by(self, b: Floats) -> float:
        """Mean square that coefficients leave in all rows."""
        g, c = self.of_all
        return max(float(1.0 - 2.0 * (b @ c) + b @ g @ b), 0.0)

    @property
    def is_unrelated(self) -> bool:
        """Whether no column, nor all of them together, have more to do with the target than chance would bring."""
        from scipy.special import fdtrc

        n, p = self.values.shape
        if _ROWS_A_COLUMN * p >= n:
            return False  # the joint test would see little
        left = max(self.least_squares[1], 1e-12)
        together = float(fdtrc(p, n - p - 1, (1 - left) / left * (n - p - 1) / p))
        return together > _CHANCE and float(np.abs(self.of_all[1]).max()) * np.sqrt(n) < _CHANCE_CORRELATION

    def in_rows(self, values: Floats) -> Floats:
        """From the order of folds to that of rows."""
        back = np.empty_like(values)
        back[self.rivals.order] = values
        return back
