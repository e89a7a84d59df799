"""One feature and the columns that may foretell it: least squares on held-out folds, from products of columns alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._regress.design import is_extreme
from subgrove._regress.gram import N_FOLDS, FoldGrams, FoldMoments, LeaveFoldOut, sums_without_each_fold

RIDGE = 1e-9  # so that columns which are the same have a solution
_MOST_PARTS = 300  # beyond it, those that are most related to the feature
_ROWS_A_COLUMN = 5  # that it takes to see that columns have nothing to tell
_CHANCE = 0.05  # level of the joint test below which a path is followed
_CHANCE_CORRELATION = 3.0  # correlation times the root of the number of rows, likewise


@dataclass(frozen=True, eq=False)
class CrossValidatedLeastSquares:
    """A target and the parts that may foretell it, rows in the order of folds; the target has mean 0 and variance 1."""

    rivals: FoldGrams
    parts: Rows
    values: Floats
    moments: FoldMoments
    without: LeaveFoldOut
    target: Floats
    mean: float
    scale: float

    @classmethod
    def of(cls, rivals: FoldGrams, x: Floats, names: Sequence[str]) -> CrossValidatedLeastSquares | None:
        parts = rivals.design.allowed(names)
        if is_extreme(x):
            return None
        mean = float(x.mean())
        about = x[rivals.order] - mean
        scale = float(np.sqrt(about @ about / len(x)))
        if not len(parts) or not scale > 0 or rivals.n_rows < 2 * N_FOLDS:
            return None
        target = about / scale
        parts = rivals.most_related(parts, target, _MOST_PARTS)
        values = rivals.values if len(parts) == rivals.values.shape[1] else rivals.values[:, parts]
        if rivals.values.shape[1] <= _MOST_PARTS:
            moments, without = rivals.sums.some(parts), rivals.without.some(parts)
        else:
            moments = FoldMoments.of(values, rivals.starts)
            without = LeaveFoldOut.of(moments)
        return cls(rivals, parts, values, moments, without, target, mean, scale)

    def beside(self, extra: Floats) -> CrossValidatedLeastSquares:
        """With more columns."""
        values = np.hstack([self.values, extra])
        moments = FoldMoments.of(values, self.rivals.starts)
        without = LeaveFoldOut.of(moments)
        return CrossValidatedLeastSquares(
            self.rivals, self.parts, values, moments, without, self.target, self.mean, self.scale
        )

    @cached_property
    def levels(self) -> Floats:
        """Means of the target without each fold, and of all rows (last)."""
        return np.asarray((sums_without_each_fold(self.target_sums[:, None]) / self.without.counts)[:, 0])

    @cached_property
    def crossed(self) -> Floats:
        """Mean products of columns and target, about their means, without each fold and of all rows (last)."""
        known = self.without
        return np.asarray(sums_without_each_fold(self.with_target) / known.counts - known.means * self.levels[:, None])

    @cached_property
    def target_sums(self) -> Floats:
        """Sum of the target, by fold."""
        return np.array([self.target[rows].sum() for rows in self.rivals.folds])

    @cached_property
    def mean_products(self) -> Floats:
        """Of each two columns."""
        return np.asarray(self.moments.products.sum(axis=0) / len(self.target))

    def held_out(self, coefficients: Floats) -> Floats:
        """Residual of each row by the coefficients that were fitted without its fold.

        They are (folds, columns), and a residual a row; or (folds, several, columns), and a line of these for each.
        """
        means, levels = self.without.means[:-1], self.levels[:-1]
        n, lines = len(self.target), coefficients if coefficients.ndim == 3 else coefficients[:, None]
        residuals = np.empty((lines.shape[1], n))
        moved = levels[:, None] - (lines @ means[:, :, None])[:, :, 0]  # intercepts
        if n % len(lines) == 0:  # folds of one size: all at once
            by_fold = self.values.reshape(len(lines), -1, self.values.shape[1])
            foretold = lines @ by_fold.transpose(0, 2, 1) + moved[:, :, None]
            residuals.reshape(len(residuals), len(lines), -1)[:] = foretold.transpose(1, 0, 2)
        else:
            for rows, b, away in zip(self.rivals.folds, lines, moved, strict=True):
                residuals[:, rows] = b @ self.values[rows].T + away[:, None]
        np.subtract(self.target, residuals, out=residuals)
        return residuals if coefficients.ndim == 3 else residuals[0]

    def held_out_errors(self, coefficients: Floats) -> Floats:
        """Mean squared residual for each of several coefficients (folds, several, columns), from products alone."""
        b, moments = coefficients, self.moments
        moved = self.levels[:-1, None] - (b @ self.without.means[:-1, :, None])[:, :, 0]  # intercepts
        square = ((b @ moments.products) * b).sum(axis=2)
        with_target, sums = (np.asarray(b @ part[:, :, None])[:, :, 0] for part in (self.with_target, moments.sums))
        total = square - 2 * with_target + moments.counts[:, None] * moved**2
        total += 2 * moved * (sums - self.target_sums[:, None])
        return np.asarray((total.sum(axis=0) + self.target @ self.target) / len(self.target))

    @cached_property
    def with_target(self) -> Floats:
        """Products of columns and target, by fold."""
        return np.array([self.values[rows].T @ self.target[rows] for rows in self.rivals.folds])

    @cached_property
    def of_all(self) -> tuple[Floats, Floats]:
        """Mean products of columns, and with the target, about the means, of all rows."""
        n, means = len(self.target), self.without.means[-1]
        return self.without.products[-1], self.with_target.sum(axis=0) / n - means * float(self.target.mean())

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
