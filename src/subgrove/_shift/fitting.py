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
from functools import cache, lru_cache

import numpy as np

from subgrove._kinds import Floats, Rows
from subgrove._shift.asked import RIDGE, Asked
from subgrove._shift.path import lasso_paths
from subgrove._shift.rivals import Rivals
from subgrove._shift.shift import Shift, Term

_N_PENALTIES = 30
_RIDGES = np.geomspace(1e-3, 1e2, 16)
_MOST_SQUARED = 150  # parts whose products are looked at
_MOST_PRODUCTS = 5
_LEAST_VARIANCE = 1e-6  # of a product that can be told from a constant
_LEVEL = 0.05  # of the test that lets products in, over all of them


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
    asked = Asked.of(rivals, x, names)
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
    asked = Asked.of(rivals, x, names)
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
class _Chosen:
    """What cross-validation chose: coefficients of all rows, held-out residuals and squared errors, and the noise."""

    coefficients: Floats
    residuals: Floats
    errors: Floats
    noise: float


def _cross_validated(asked: Asked) -> _Chosen:
    n, p = asked.values.shape
    largest = float(np.abs(asked.of_all[1]).max())
    if not largest > 0 or asked.is_unrelated:
        return _Chosen(np.zeros(p), asked.target, asked.target**2, 1.0)
    products, with_target, _ = asked.problems
    least = 1e-3 if n > 2 * p else 1e-2
    paths = lasso_paths(products, with_target, largest * _penalties(least))
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


@cache
def _penalties(least: float) -> Floats:
    """Shares of the largest penalty that are tried."""
    return np.geomspace(1.0, least, _N_PENALTIES)


def _least_squares_on(asked: Asked, chosen: Floats) -> Floats:
    """Coefficients without a penalty, of the columns that were chosen: without each fold, and of all rows."""
    products, with_target, _ = asked.problems
    found = np.zeros_like(chosen)
    used = chosen != 0
    if (used == used[0]).all():  # as it mostly is: all at once
        at = np.flatnonzero(used[0])
        squares = products[:, at[:, None], at] + RIDGE * np.eye(len(at))
        found[:, at] = np.linalg.solve(squares, with_target[:, at, None])[:, :, 0]
        return found
    for g, c, own, out in zip(products, with_target, used, found, strict=True):
        at = np.flatnonzero(own)
        if len(at):
            out[at] = np.linalg.solve(g[np.ix_(at, at)] + RIDGE * np.eye(len(at)), c[at])
    return found


def _noise(asked: Asked, b: Floats) -> float:
    """Variance about the best sum of all columns: by least squares, or where they are too many, by a penalised fit."""
    n, p = asked.values.shape
    if 2 * p < n:
        return float(asked.least_squares[1] * n / (n - p - 1))
    return float(asked.left_by(b) * n / max(n - np.count_nonzero(b) - 1, 1))


def _clear_products(asked: Asked, chosen: _Chosen) -> list[tuple[int, int]]:
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
    first, second = _pairs_of(p)
    scores = scores[first, second]
    limit = float(ndtri(1 - _LEVEL / (2 * len(scores))))
    clear = np.argsort(-scores, kind="stable")[:_MOST_PRODUCTS]
    return [(int(first[at]), int(second[at])) for at in clear if scores[at] > limit]


@lru_cache(maxsize=8)
def _pairs_of(p: int) -> tuple[Rows, Rows]:
    """All pairs of p columns, each with itself among them."""
    first, second = np.triu_indices(p)
    return first, second


def _products_of(values: Floats, pairs: list[tuple[int, int]]) -> tuple[Floats, Floats, Floats]:
    """Products of columns with mean 0 and variance 1, and what their means and standard deviations were."""
    raw = np.column_stack([values[:, one] * values[:, two] for one, two in pairs])
    means, scales = raw.mean(axis=0), raw.std(axis=0)
    return (raw - means) / scales, means, scales
