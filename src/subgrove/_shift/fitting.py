"""Finding a shift: a lasso over all parts of the other columns, its penalty chosen on held-out rows.

Requirements this design meets:

- few terms: the largest penalty whose held-out error is within one standard error of the least, compared row by row;
- products of two parts get in only if what the sum of single parts leaves is clearly related to them;
- honest residuals: each row's is that of a shift that was fitted without its fold;
- cheap for many features of one table: products of columns are formed once, by fold (`Rivals`), and all that is fitted
  for a feature is fitted from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from subgrove._kinds import Floats, Rows
from subgrove._random import stream
from subgrove._shift.design import Design
from subgrove._shift.path import lasso_paths
from subgrove._shift.shift import Shift, Term
from subgrove._table import Table

N_FOLDS = 5
_N_PENALTIES = 30
_RIDGES = np.geomspace(1e-3, 1e2, 16)
_MOST_PARTS = 300  # beyond it, those that are most related to the feature
_MOST_SQUARED = 150  # parts whose products are looked at
_MOST_PRODUCTS = 5
_RIDGE = 1e-9  # so that columns which are the same have a solution
_LEAST_VARIANCE = 1e-6  # of a product that can be told from a constant
_ROWS_A_COLUMN = 5  # that it takes to see that columns have nothing to tell
_CHANCE = 0.2  # level of the joint test below which a path is followed
_CHANCE_CORRELATION = 2.5  # correlation times the root of the number of rows, likewise
_LEVEL = 0.05  # of the test that lets products in, over all of them


@dataclass(frozen=True, eq=False)
class Rivals:
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
    def of(cls, table: Table, seed: int) -> Rivals:
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
    def sums(self) -> Moments:
        """Of all parts."""
        return Moments.of(self.values, self.starts)

    @cached_property
    def product_variances(self) -> Floats:
        """Variance of the product of each two parts."""
        squares = self.values**2
        return np.asarray(squares.T @ squares / self.n_rows - (self.sums.products.sum(axis=0) / self.n_rows) ** 2)

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
class Moments:
    """Numbers of rows, sums and products of columns, by fold."""

    counts: Floats
    sums: Floats
    products: Floats

    @classmethod
    def of(cls, values: Floats, starts: Rows) -> Moments:
        """Of rows in the order of their folds."""
        folds = [values[a:b] for a, b in pairwise(starts)]
        return cls(
            np.array([float(len(part)) for part in folds]),
            np.array([part.sum(axis=0) for part in folds]),
            np.array([part.T @ part for part in folds]),
        )

    def some(self, parts: Rows) -> Moments:
        """Of some columns."""
        return Moments(self.counts, self.sums[:, parts], self.products[:, parts[:, None], parts])


@dataclass(frozen=True, eq=False)
class FoundShift:
    """A shift that was found, and how well it does.

    Attributes
    ----------
    shift : Shift
    residuals : float array
        Of each row, by a shift that has not seen its fold.
    noise : float
        Variance of what the best sum of all columns leaves: an estimate without the noise of estimating the sum.
    """

    shift: Shift
    residuals: Floats
    noise: float


def find_shift(
    rivals: Rivals, feature: str, x: Floats, names: Sequence[str], *, products: bool = True
) -> FoundShift | None:
    """The sparse shift of a numeric feature by some columns; None if there is none.

    Parameters
    ----------
    rivals : Rivals
        Of the training rows.
    feature : str
        Its name.
    x : float array
        Its values in the training rows, none missing.
    names : sequence of str
        The columns that terms may ask for.
    products : bool
        Whether products of two parts may be terms.
    """
    asked = _Asked.of(rivals, x, names)
    if asked is None:
        return None
    chosen, extra = _cross_validated(asked), np.zeros((rivals.n_rows, 0))
    pairs: list[tuple[int, int]] = []
    means = np.zeros(0)
    found = _clear_products(asked, chosen) if products else []
    if found:
        extra, means, scales = _products_of(asked.values, found)
        larger = _cross_validated(asked.beside(extra))
        gain = chosen.errors - larger.errors
        if gain.mean() > gain.std() / np.sqrt(len(gain)):
            chosen, pairs = larger, found
    if not chosen.coefficients.any():
        return None
    terms, moved = [], asked.mean
    for at in np.flatnonzero(chosen.coefficients):
        size = float(chosen.coefficients[at]) * asked.scale
        if at < len(asked.parts):
            part = rivals.design.parts[asked.parts[at]]
            terms.append(Term((part,), size / part.scale, abs(size)))
            moved -= size / part.scale * part.mean
        else:
            k = int(at) - len(asked.parts)
            one, two = (rivals.design.parts[asked.parts[place]] for place in pairs[k])
            coefficient = size / (scales[k] * one.scale * two.scale)
            terms.append(Term((one, two), coefficient, abs(size), float(means[k])))
            moved -= size / scales[k] * float(means[k])
    terms.sort(key=lambda term: (-term.size, term.label))
    noise = chosen.noise * asked.scale**2
    shift = Shift(feature, moved, tuple(terms), rivals.design)
    return FoundShift(shift, asked.in_rows(chosen.residuals) * asked.scale, noise)


def find_dense_shift(rivals: Rivals, feature: str, x: Floats, names: Sequence[str]) -> FoundShift | None:
    """A shift of all columns, each a little: least squares with a penalty on squares, chosen on held-out rows."""
    asked = _Asked.of(rivals, x, names)
    if asked is None:
        return None
    products, with_target, _ = asked.problems
    n_problems, p = with_target.shape
    found = np.empty((n_problems, len(_RIDGES), p))
    for one, c, out in zip(products, with_target, found, strict=True):
        lengths, axes = np.linalg.eigh(one)
        out[:] = ((axes.T @ c) / (np.maximum(lengths, 0.0) + _RIDGES[:, None])) @ axes.T
    best = int(asked.held_out_errors(found[:-1]).argmin())
    residuals, b = asked.held_out(found[:-1, best]), found[-1, best]
    terms, moved = [], asked.mean
    for at in range(p):
        part = rivals.design.parts[asked.parts[at]]
        size = float(b[at]) * asked.scale
        terms.append(Term((part,), size / part.scale, abs(size)))
        moved -= size / part.scale * part.mean
    terms.sort(key=lambda term: (-term.size, term.label))
    noise = _noise(asked, b) * asked.scale**2
    shift = Shift(feature, moved, tuple(terms), rivals.design)
    return FoundShift(shift, asked.in_rows(residuals) * asked.scale, noise)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A target and the parts that may foretell it, rows in the order of folds; the target has mean 0 and variance 1."""

    rivals: Rivals
    parts: Rows
    values: Floats
    moments: Moments
    target: Floats
    mean: float
    scale: float

    @classmethod
    def of(cls, rivals: Rivals, x: Floats, names: Sequence[str]) -> _Asked | None:
        parts = rivals.design.allowed(names)
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

    def beside(self, extra: Floats) -> _Asked:
        """With more columns."""
        values = np.hstack([self.values, extra])
        moments = Moments.of(values, self.rivals.starts)
        return _Asked(self.rivals, self.parts, values, moments, self.target, self.mean, self.scale)

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
        b: Floats = np.linalg.solve(g + _RIDGE * np.eye(len(c)), c).astype(np.float64)
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


@dataclass(frozen=True, eq=False)
class _Chosen:
    """What cross-validation chose: coefficients of all rows, held-out residuals and squared errors, and the noise."""

    coefficients: Floats
    residuals: Floats
    errors: Floats
    noise: float


def _cross_validated(asked: _Asked) -> _Chosen:
    n, p = asked.values.shape
    largest = float(np.abs(asked.of_all[1]).max())
    if not largest > 0 or asked.is_unrelated:
        return _Chosen(np.zeros(p), asked.target, asked.target**2, 1.0)
    products, with_target, _ = asked.problems
    least = 1e-3 if n > 2 * p else 1e-2
    paths = lasso_paths(products, with_target, largest * np.geomspace(1.0, least, _N_PENALTIES))
    best = simple = int(asked.held_out_errors(paths[:-1]).argmin())
    residuals = asked.held_out(paths[:-1, best])
    best_errors = errors = residuals**2
    while simple and paths[-1, simple - 1].any():  # with no term at all: many columns may tell a little each
        left = asked.held_out(paths[:-1, simple - 1])
        worse = left**2 - best_errors
        if worse.mean() > worse.std() / np.sqrt(n):
            break
        simple, residuals, errors = simple - 1, left, left**2
    b, noise = paths[-1, simple], _noise(asked, paths[-1, best])
    unpenalised = _least_squares_on(asked, paths[:, simple])
    left = asked.held_out(unpenalised[:-1])
    if (left**2).mean() < errors.mean():
        b, residuals, errors = unpenalised[-1], left, left**2
    return _Chosen(b, residuals, errors, noise)


def _least_squares_on(asked: _Asked, chosen: Floats) -> Floats:
    """Coefficients without a penalty, of the columns that were chosen: without each fold, and of all rows."""
    products, with_target, _ = asked.problems
    found = np.zeros_like(chosen)
    for g, c, used, out in zip(products, with_target, chosen, found, strict=True):
        at = np.flatnonzero(used)
        if len(at):
            out[at] = np.linalg.solve(g[np.ix_(at, at)] + _RIDGE * np.eye(len(at)), c[at])
    return found


def _noise(asked: _Asked, b: Floats) -> float:
    """Variance about the best sum of all columns: by least squares, or where they are too many, by a penalised fit."""
    n, p = asked.values.shape
    if 2 * p < n:
        return float(asked.least_squares[1] * n / (n - p - 1))
    return float(asked.left_by(b) * n / max(n - np.count_nonzero(b) - 1, 1))


def _clear_products(asked: _Asked, chosen: _Chosen) -> list[tuple[int, int]]:
    """Pairs of parts whose product is clearly related to what is left, the clearest first."""
    n, p = asked.values.shape
    if asked.rivals.values.shape[1] > _MOST_SQUARED or n < 50:
        return []
    from scipy.special import ndtri

    left, values = chosen.residuals, asked.values
    variances = asked.product_variances
    products = (left[:, None] * values).T @ values / n - left.mean() * asked.mean_products
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.sqrt(n) * np.abs(products) / (left.std() * np.sqrt(variances))
    scores[~(variances > _LEAST_VARIANCE)] = 0.0
    first, second = np.triu_indices(p)
    scores = scores[first, second]
    limit = float(ndtri(1 - _LEVEL / (2 * len(scores))))
    clear = np.argsort(-scores, kind="stable")[:_MOST_PRODUCTS]
    return [(int(first[at]), int(second[at])) for at in clear if scores[at] > limit]


def _products_of(values: Floats, pairs: list[tuple[int, int]]) -> tuple[Floats, Floats, Floats]:
    """Products of columns with mean 0 and variance 1, and what their means and standard deviations were."""
    raw = np.column_stack([values[:, one] * values[:, two] for one, two in pairs])
    means, scales = raw.mean(axis=0), raw.std(axis=0)
    return (raw - means) / scales, means, scales
