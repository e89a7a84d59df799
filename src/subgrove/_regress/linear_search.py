"""Finding a shift: a lasso over all parts of the other columns, its penalty chosen on held-out rows.

Requirements this design meets:

- few terms: the largest penalty whose held-out error is within one standard error of the least, compared row by row;
- products of two parts get in only if what the sum of single parts leaves is clearly related to them;
- honest residuals: each row's is that of a shift that was fitted without its fold;
- cheap for many features of one table: Gram matrices are formed once, by fold (`FoldGrams`), and every
  fit of a feature starts from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._regress.cv_least_squares import RIDGE, CrossValidatedLeastSquares
from subgrove._regress.gram import FoldGrams
from subgrove._regress.lasso_path import lasso_paths
from subgrove._regress.linear_predictor import LinearPredictor, LinearTerm
from subgrove._regress.one_standard_error import exceeds_standard_error

_N_PENALTIES = 30
_AHEAD = 4  # penalties whose residuals are formed at once
_RIDGES = np.geomspace(1e-3, 1e2, 16)
_MOST_SQUARED = 150  # parts whose products are looked at
_MOST_PRODUCTS = 5
_LEAST_NOISE = 1e-12  # of a feature's variance: less is rounding
_LEVEL = 0.05  # of the test that lets products in, over all of them


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A shift that was found, and how well it does.

    Attributes
    ----------
    shift : Shift
    residuals : float array
        Of each row, by a shift that has not seen its fold.
    noise : float
        Variance of what the best sum of all columns leaves: an estimate without the noise of estimating the sum.
    """

    shift: LinearPredictor
    residuals: Floats
    noise: float


def fit_sparse_linear(
    rivals: FoldGrams, feature: str, x: Floats, names: Sequence[str], *, products: bool = True
) -> LinearFit | None:
    """The sparse shift of a numeric feature by some columns; None if there is none.

    Parameters
    ----------
    rivals : FoldGrams
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
    asked = CrossValidatedLeastSquares.of(rivals, x, names)
    if asked is None:
        return None
    chosen = _cross_validated(asked)
    pairs: list[tuple[int, int]] = []
    means = scales = np.zeros(0)
    found = _clear_products(asked, chosen) if products else []
    if found:
        extra, means, scales = _products_of(asked.values, found)
        larger = _cross_validated(asked.beside(extra))
        if larger.coefficients[len(asked.parts) :].any() and exceeds_standard_error(chosen.errors - larger.errors):
            chosen, pairs = larger, found
    if not chosen.coefficients.any():
        return None
    terms, moved = [], asked.mean
    for at in np.flatnonzero(chosen.coefficients):
        size = float(chosen.coefficients[at]) * asked.scale
        if at < len(asked.parts):
            part = rivals.design.parts[asked.parts[at]]
            terms.append(LinearTerm((part,), size / part.scale, abs(size)))
            moved -= size / part.scale * part.mean
        else:
            k = int(at) - len(asked.parts)
            one, two = (rivals.design.parts[asked.parts[place]] for place in pairs[k])
            coefficient = size / (scales[k] * one.scale * two.scale)
            terms.append(LinearTerm((one, two), coefficient, abs(size), float(means[k])))
            moved -= size / scales[k] * float(means[k])
    terms.sort(key=lambda term: (-term.size, term.label))
    noise = chosen.noise * asked.scale**2
    shift = LinearPredictor(feature, moved, tuple(terms), rivals.design)
    return LinearFit(shift, asked.in_rows(chosen.residuals) * asked.scale, noise)


def fit_dense_linear(rivals: FoldGrams, feature: str, x: Floats, names: Sequence[str]) -> LinearFit | None:
    """A shift of all columns, each a little: least squares with a penalty on squares, chosen on held-out rows."""
    asked = CrossValidatedLeastSquares.of(rivals, x, names)
    if asked is None:
        return None
    p = len(asked.parts)
    lengths, axes = np.linalg.eigh(asked.without.products)
    turned = axes.transpose(0, 2, 1)
    along = turned @ asked.crossed[:, :, None]
    found = (along / (np.maximum(lengths, 0.0)[:, :, None] + _RIDGES)).transpose(0, 2, 1) @ turned
    best = int(asked.held_out_errors(found[:-1]).argmin())
    residuals, b = asked.held_out(found[:-1, best]), found[-1, best]
    terms, moved = [], asked.mean
    for at in range(p):
        part = rivals.design.parts[asked.parts[at]]
        size = float(b[at]) * asked.scale
        terms.append(LinearTerm((part,), size / part.scale, abs(size)))
        moved -= size / part.scale * part.mean
    terms.sort(key=lambda term: (-term.size, term.label))
    noise = _noise(asked, b) * asked.scale**2
    shift = LinearPredictor(feature, moved, tuple(terms), rivals.design)
    return LinearFit(shift, asked.in_rows(residuals) * asked.scale, noise)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """What cross-validation chose: coefficients of all rows, held-out residuals and squared errors, and the noise."""

    coefficients: Floats
    residuals: Floats
    errors: Floats
    noise: float


def _cross_validated(asked: CrossValidatedLeastSquares) -> _Chosen:
    n, p = asked.values.shape
    largest = float(np.abs(asked.of_all[1]).max())
    if not largest > 0 or asked.is_unrelated:
        return _Chosen(np.zeros(p), asked.target, asked.target**2, 1.0)
    least = 1e-3 if n > 2 * p else 1e-2
    paths = lasso_paths(asked.without.products, asked.crossed, largest * _penalties(least))
    best = int(asked.held_out_errors(paths[:-1]).argmin())
    simple, residuals = _simplest(asked, paths, best)
    errors = residuals**2
    b, noise = paths[-1, simple], _noise(asked, paths[-1, best])
    unpenalised = _least_squares_on(asked, paths[:, simple])
    left = asked.held_out(unpenalised[:-1])
    if (left**2).mean() < errors.mean():
        b, residuals, errors = unpenalised[-1], left, left**2
    return _Chosen(b, residuals, errors, noise)


def _simplest(asked: CrossValidatedLeastSquares, paths: Floats, best: int) -> tuple[int, Floats]:
    """The largest penalty until which no error is clearly above that of the best one, and its held-out residuals.

    One with no term at all is none of them: many columns may tell a little each.
    """
    simple, residuals, least = best, np.empty(0), None
    for start in range(best, -1, -_AHEAD):
        ahead = np.arange(start, max(start - _AHEAD, -1), -1)
        ahead = ahead[(ahead == best) | paths[-1, ahead].any(axis=1)]
        if not len(ahead):
            break
        left = asked.held_out(paths[:-1, ahead])
        errors = left**2
        least = errors[0] if least is None else least  # those of the best
        worse = errors - least
        clear = worse.mean(axis=1) > worse.std(axis=1) / np.sqrt(len(least))
        n_good = int(clear.argmax()) if clear.any() else len(ahead)
        if n_good:
            simple, residuals = int(ahead[n_good - 1]), left[n_good - 1]
        if n_good < _AHEAD:
            break
    return simple, residuals


@cache
def _penalties(least: float) -> Floats:
    """Shares of the largest penalty that are tried."""
    return np.geomspace(1.0, least, _N_PENALTIES)


def _least_squares_on(asked: CrossValidatedLeastSquares, chosen: Floats) -> Floats:
    """Coefficients without a penalty, of the columns that were chosen: without each fold, and of all rows."""
    found = np.zeros_like(chosen)
    at = np.flatnonzero(chosen.any(axis=0))
    used = chosen[:, at] != 0
    both = used[:, :, None] & used[:, None]
    # A column that a fold does not use stands alone there, and is told to be 0.
    squares = np.where(both, asked.without.products[:, at[:, None], at], 0.0)
    squares += np.eye(len(at)) * np.where(used, RIDGE, 1.0)[:, :, None]
    wanted = np.where(used, asked.crossed[:, at], 0.0)
    found[:, at] = np.linalg.solve(squares, wanted[:, :, None])[:, :, 0]
    return found


def _noise(asked: CrossValidatedLeastSquares, b: Floats) -> float:
    """Variance about the best sum of all columns: by least squares, or where they are too many, by a penalised fit."""
    n, p = asked.values.shape
    if 2 * p < n:
        noise = asked.least_squares[1] * n / (n - p - 1)
    else:
        noise = asked.left_by(b) * n / max(n - np.count_nonzero(b) - 1, 1)
    return max(float(noise), _LEAST_NOISE)


def _clear_products(asked: CrossValidatedLeastSquares, chosen: _Chosen) -> list[tuple[int, int]]:
    """Pairs of parts whose product is clearly related to what is left, the clearest first."""
    n, p = asked.values.shape
    if asked.rivals.values.shape[1] > _MOST_SQUARED or n < 50:
        return []
    from scipy.special import ndtri

    left, values = chosen.residuals, asked.values
    spread = float(left.std())
    if not spread > 0:
        return []
    products = (left[:, None] * values).T @ values / n - left.mean() * asked.mean_products
    scales = asked.rivals.product_scales[asked.parts[:, None], asked.parts]
    scores = np.abs(products) * scales * (np.sqrt(n) / spread)
    limit = float(ndtri(1 - _LEVEL / (p * (p + 1))))
    if not scores.max() > limit:
        return []
    first, second = _pairs_of(p)
    scores = scores[first, second]
    clear = np.flatnonzero(scores > limit)
    clear = clear[np.argsort(-scores[clear], kind="stable")[:_MOST_PRODUCTS]]
    return [(int(first[at]), int(second[at])) for at in clear]


@lru_cache(maxsize=8)
def _pairs_of(p: int) -> tuple[Rows, Rows]:
    """All pairs of p columns, each with itself among them."""
    first, second = np.triu_indices(p)
    return first, second


def _products_of(values: Floats, pairs: list[tuple[int, int]]) -> tuple[Floats, Floats, Floats]:
    """Products of columns with mean 0 and variance 1, and what their means and standard deviations were."""
    raw = np.array([values[:, one] * values[:, two] for one, two in pairs])
    means, scales = raw.mean(axis=1), raw.std(axis=1)
    return ((raw - means[:, None]) / scales[:, None]).T, means, scales
