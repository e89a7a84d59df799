"""What the features of one table have in common: numbers for all columns, and their products, by fold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.random import stream
from subgrove._data.table import Table
from subgrove._regress.design import Design

N_FOLDS = 5
_LEAST_VARIANCE = 1e-6  # of a product that can be told from a constant


@dataclass(frozen=True, eq=False)
class FoldGrams:
    """What the features of one table have in common: the parts of all columns, and their products by fold.

    Attributes
    ----------
    design : Design
    order : int array
        Rows by fold.
    values : float array (rows, parts)
        In that order.
    starts : int array
        Where each fold starts, and the number of rows.
    """

    design: Design
    order: Rows
    values: Floats
    starts: Rows

    @classmethod
    def of(cls, table: Table, seed: int) -> FoldGrams:
        """Of training rows; folds depend on the seed and the number of rows alone."""
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
    def sums(self) -> FoldMoments:
        """Of all parts."""
        return FoldMoments.of(self.values, self.starts)

    @cached_property
    def without(self) -> LeaveFoldOut:
        """Of all parts."""
        return LeaveFoldOut.of(self.sums)

    @cached_property
    def product_scales(self) -> Floats:
        """One over the standard deviation of the product of each two parts; 0 where it is hardly above 0."""
        squares, means = self.values**2, self.sums.products.sum(axis=0) / self.n_rows
        variances = squares.T @ squares / self.n_rows - means**2
        return np.where(variances > _LEAST_VARIANCE, 1 / np.sqrt(np.maximum(variances, _LEAST_VARIANCE)), 0.0)

    @cached_property
    def folds(self) -> list[slice]:
        """Rows of each fold, in the order of `values`."""
        return [slice(a, b) for a, b in pairwise(self.starts)]

    def most_related(self, parts: Rows, target: Floats, most: int) -> Rows:
        """At most so many of these parts, those of the largest correlation with a target."""
        if len(parts) <= most:
            return parts
        related = np.abs(self.values[:, parts].T @ target)
        return np.sort(parts[np.argsort(-related, kind="stable")[:most]])


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """Numbers of rows, sums and products of columns, by fold."""

    counts: Floats
    sums: Floats
    products: Floats

    @classmethod
    def of(cls, values: Floats, starts: Rows) -> FoldMoments:
        """Of rows in the order of their folds."""
        folds = [values[a:b] for a, b in pairwise(starts)]
        return cls(
            np.array([float(len(part)) for part in folds]),
            np.array([part.sum(axis=0) for part in folds]),
            np.array([part.T @ part for part in folds]),
        )

    def some(self, parts: Rows) -> FoldMoments:
        """Of some columns."""
        return FoldMoments(self.counts, self.sums[:, parts], self.products[:, parts[:, None], parts])


@dataclass(frozen=True, eq=False)
class LeaveFoldOut:
    """Columns without each fold, and in all rows (last).

    Attributes
    ----------
    counts : float array (folds + 1, 1)
        Numbers of rows.
    means : float array (folds + 1, columns)
    products : float array (folds + 1, columns, columns)
        Mean products of columns, about their means.
    """

    counts: Floats
    means: Floats
    products: Floats

    @classmethod
    def of(cls, moments: FoldMoments) -> LeaveFoldOut:
        """From sums by fold."""
        counts = sums_without_each_fold(moments.counts[:, None])
        means = sums_without_each_fold(moments.sums) / counts
        about = sums_without_each_fold(moments.products) / counts[:, :, None] - means[:, :, None] * means[:, None]
        return cls(counts, means, about)

    def some(self, parts: Rows) -> LeaveFoldOut:
        """Of some columns."""
        return LeaveFoldOut(self.counts, self.means[:, parts], self.products[:, parts[:, None], parts])


def sums_without_each_fold(by_fold: Floats) -> Floats:
    """Sums of all folds but each, and of all (last)."""
    whole = by_fold.sum(axis=0)
    return np.concatenate([whole - by_fold, whole[None]])
