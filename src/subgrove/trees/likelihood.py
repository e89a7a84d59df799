"""Log-likelihoods of the transformation model P(X <= x) = Phi(h(x)), for many nodes at once.

Arrays have a leading axis of nodes; the last axis holds points (rows, or distinct values with their
weights). `u` is x on the scale of its support, 0 at the smallest value and 1 at the largest.

Coefficients are represented as steps gamma: theta_0, then the differences between neighbouring thetas. Optimization
uses other coordinates: the mean of h in the node in place of theta_0. Otherwise the Hessian would be nearly singular
for data in the upper part of the support, where theta_0 and all steps have nearly the same effect. Scores are
derivatives by theta, as in the reference.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from subgrove._data.table import Floats
from subgrove.trees.newton import Mask

LOG_2PI = float(np.log(2 * np.pi))
# If every slope retains at least 0.4 of its value, the full Newton step increases the likelihood:
# -log(1 + q) exceeds its second-order model by less than 0.77 q^2 / 2 for q >= -0.6.
_MAX_SHRINKAGE = 0.6
_NARROW = 1e-3  # width of an interval on the normal scale below which series replace differences


class _Coordinates:
    """Coordinates with the mean of h in place of theta_0; `means` are those of the derivatives of h by each step."""

    means: Floats

    def steps(self, point: Floats) -> Floats:
        """Return the steps gamma of a point in the coordinates of this likelihood."""
        return self._moved(point, -1.0)

    def point(self, gamma: Floats) -> Floats:
        """Return the inverse of `steps`."""
        return self._moved(gamma, 1.0)

    def _moved(self, coordinates: Floats, sign: float) -> Floats:
        moved = coordinates.copy()
        moved[:, 0] += sign * (coordinates[:, 1:] * self.means).sum(axis=1)
        return moved


class Density(_Coordinates):
    """Sum of log phi(h(x)) + log h'(x), for continuous x (paper, section on transformation trees).

    Parameters
    ----------
    u : float array (nodes, points)
    roots : float array (nodes, points) or None
        Square roots of the weights; None if all are 1.
    order : int
        Order of the Bernstein polynomial.
    log_range : float
        Logarithm of the width of the support, so that log-likelihoods are per unit of raw x.
    """

    def __init__(self, u: Floats, roots: Floats | None, order: int, log_range: float) -> None:
        self.values, self.slope = basis(u, order)
        self.roots = roots
        self.log_range = log_range
        self.n = np.full(len(u), float(u.shape[1])) if roots is None else (roots * roots).sum(axis=1)
        # Derivative of h by each step, centred, since the mean of h is a coordinate of its own.
        self.centred = tail_sums(self.values, 1)[:, 1:].copy()
        if roots is None:
            self.means = self.centred.sum(axis=2) / self.n[:, None]
            self.centred -= self.means[:, :, None]
        else:
            self.means = np.matmul(self.centred, (roots * roots)[:, :, None])[:, :, 0] / self.n[:, None]
            self.centred -= self.means[:, :, None]
            # From here on both are multiplied by the square roots of the weights.
            self.centred *= roots[:, None, :]
            self.values *= roots[:, None, :]
        self.quadratic = np.zeros((len(u), order + 1, order + 1))
        self.quadratic[:, 0, 0] = self.n
        self.quadratic[:, 1:, 1:] = np.matmul(self.centred, np.swapaxes(self.centred, 1, 2))
        self._inverse = np.empty(0)

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        """Return gradient and Hessian of the negative log-likelihood."""
        gradient = np.matmul(self.quadratic, point[:, :, None])[:, :, 0]
        hessian = self.quadratic.copy()
        roots = 1.0 if self.roots is None else self.roots[:, None, :]
        self._inverse = roots / np.matmul(point[:, None, 1:], self.slope)
        scaled = self.slope * self._inverse
        gradient[:, 1:] -= (
            scaled.sum(axis=2) if self.roots is None else np.matmul(scaled, self.roots[:, :, None])[:, :, 0]
        )
        hessian[:, 1:, 1:] += np.matmul(scaled, np.swapaxes(scaled, 1, 2))
        return gradient, hessian

    def step_length(self, point: Floats, direction: Floats) -> Floats:
        """Return 1, or less if a slope would shrink by more than 0.6 of itself."""
        change = np.matmul(direction[:, None, 1:], self.slope)
        roots = None if self.roots is None else self.roots[:, None, :]
        change *= self._inverse if roots is None else _quotient(self._inverse, roots)
        shrinkage = -change.min(axis=2)[:, 0]
        return np.asarray(_MAX_SHRINKAGE / np.maximum(shrinkage, _MAX_SHRINKAGE))

    def log_likelihood(self, point: Floats) -> Floats:
        """Return the log-likelihood of each node."""
        logs = np.log(np.matmul(point[:, None, 1:], self.slope)[:, 0])
        total = logs.sum(axis=1) if self.roots is None else (logs * self.roots * self.roots).sum(axis=1)
        squares = (point * np.matmul(self.quadratic, point[:, :, None])[:, :, 0]).sum(axis=1)
        return np.asarray(total - squares / 2 - self.n * (LOG_2PI / 2 + self.log_range))

    def scores(self, point: Floats) -> Floats:
        """Return the derivatives of the log-likelihood of each point by theta, times roots of weights.

        They overwrite the basis, so the object cannot be used afterwards.
        """
        scores = self.values
        h = np.matmul(point[:, None, 1:], self.centred)
        slope = np.matmul(point[:, None, 1:], self.slope)
        roots = None if self.roots is None else self.roots[:, None, :]
        scores *= -((h if roots is None else _quotient(h, roots)) + point[:, :1, None])
        ratio = self.slope * ((1.0 if roots is None else roots) / slope)
        scores[:, 1:] += ratio
        scores[:, :-1] -= ratio
        return scores

    def restart(self, gamma: Floats) -> Floats:
        """Return the point with the h of other steps, shifted and scaled to mean 0 and variance 1 in this node.

        This maximizes the quadratic part among a + b h, hence it is a good start for the children of a node.
        """
        return _standardised(gamma, self.quadratic, self.n)


class Interval(_Coordinates):
    """Sum of log(Phi(h(x)) - Phi(h(x - 1))), for integer x; the smallest value is left-censored.

    The ends of each interval are stored as middle and width, because for a wide range of numbers their difference is
    far smaller than either.

    Parameters
    ----------
    u : float array (nodes or 1, points)
        x on the scale of the support.
    unit : float
        1 on that scale: the length of an interval.
    first : bool array like u
        Points whose interval has no lower bound.
    weights : float array (nodes, points)
    order : int
    """

    def __init__(self, u: Floats, unit: float, first: Mask, weights: Floats, order: int) -> None:
        upper_values, _ = basis(u, order)
        lower_values, _ = basis(np.where(first, u, u - unit), order)
        self._middle = (upper_values + lower_values) / 2
        self._width = upper_values - lower_values
        if unit < _NARROW / 10:
            # Differences of neighbouring values lose digits; the slope in the middle does not.
            _, middle_slope = basis(u - unit / 2, order)
            self._width = np.where(first[:, None, :], 0.0, derivative(middle_slope) * unit)
        self._first = first
        self.weights = weights
        self.n = weights.sum(axis=1)
        self._has_weight = weights > 0
        shares = (weights / self.n[:, None])[:, :, None]
        gains = tail_sums(self._middle, 1)
        self.means = np.matmul(gains, shares)[:, 1:, 0]
        self._middle_steps = np.repeat(gains, len(weights) // len(gains), axis=0)
        self._middle_steps[:, 1:] -= self.means[:, :, None]
        self._width_steps = tail_sums(self._width, 1)
        self._width_steps[:, 0] = 0.0
        self._value = np.full(len(weights), -np.inf)

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        """Return gradient and Hessian of the negative log-likelihood."""
        log_p, by_middle, by_width, second = self._terms(point)
        self._value = (log_p * self.weights).sum(axis=1)
        middle, width = self._middle_steps, self._width_steps
        gradient = -self._weighted_sum(middle, by_middle) - self._weighted_sum(width, by_width)
        mixed = self._product(middle, width, second[2])
        hessian = self._product(middle, middle, second[0]) + self._product(width, width, second[1])
        hessian += mixed + np.swapaxes(mixed, 1, 2)
        return gradient, -hessian

    def step_length(self, point: Floats, direction: Floats) -> Floats:
        """Halve the step until the likelihood increases; no width may shrink by more than 0.9 of itself."""
        width = self._along(point, self._width_steps)
        change = self._along(direction, self._width_steps)
        live = self._has_weight & ~self._first
        with np.errstate(divide="ignore", invalid="ignore"):
            shrinkage = np.where(live & (change < 0), -change / width, 0.0).max(axis=1)
        length: Floats = 0.9 / np.maximum(shrinkage, 0.9)
        current = self._value
        slack = 1e-12 * np.abs(current)
        for _ in range(30):
            fell = self.log_likelihood(point + length[:, None] * direction) < current - slack
            if not fell.any():
                break
            length = np.where(fell, length / 2, length)
        return length

    def log_likelihood(self, point: Floats) -> Floats:
        """Return the log-likelihood of each node."""
        middle, width = self._intervals(point)
        log_p = np.where(self._has_weight, self._log_p(middle, width), 0.0)
        return np.asarray((log_p * self.weights).sum(axis=1))

    def scores(self, point: Floats) -> Floats:
        """Return the derivatives of the log-likelihood of each point by theta: (nodes, order + 1, points)."""
        _, by_middle, by_width, _ = self._terms(point)
        return np.asarray(self._middle * by_middle[:, None, :] + self._width * by_width[:, None, :])

    def restart(self, gamma: Floats) -> Floats:
        """Return the start as `Density.restart` does, with the middles of the intervals."""
        weighted = self._middle_steps * self.weights[:, None, :]
        return _standardised(gamma, np.matmul(weighted, np.swapaxes(self._middle_steps, 1, 2)), self.n)

    def _intervals(self, point: Floats) -> tuple[Floats, Floats]:
        """Return middles and widths of the intervals on the normal scale."""
        width = np.where(self._has_weight, self._along(point, self._width_steps), 1.0)
        return self._along(point, self._middle_steps), np.maximum(width, 1e-300)

    def _log_p(self, middle: Floats, width: Floats) -> Floats:
        """Return the logarithms of the probabilities of the intervals."""
        from scipy.special import log_ndtr

        # Mirrored if the middle is positive, since the lower tail is more precise.
        side = np.where(middle > 0, -1.0, 1.0)
        near = log_ndtr(np.where(self._first, middle, side * middle + width / 2))
        far = log_ndtr(side * middle - width / 2)
        narrow = width < _NARROW
        with np.errstate(all="ignore"):
            log_p = near + np.log(-np.expm1(np.minimum(far - near, -1e-300)))
            series = -(middle**2 + LOG_2PI) / 2 + np.log(width) + (middle**2 - 1) * width**2 / 24
        return np.asarray(np.where(self._first, near, np.where(narrow, series, log_p)))

    @np.errstate(all="ignore")  # points without weight are set to 0 at the end
    def _terms(self, point: Floats) -> tuple[Floats, Floats, Floats, tuple[Floats, Floats, Floats]]:
        """Return log P of each point, its derivatives by middle and width, and second derivatives (mm, ww, mw)."""
        middle, width = self._intervals(point)
        log_p = self._log_p(middle, width)
        low, high = middle - width / 2, middle + width / 2
        at_high = np.exp(-(high**2 + LOG_2PI) / 2 - log_p)
        at_low = np.exp(-(low**2 + LOG_2PI) / 2 - log_p)
        at_high = np.where(self._first, np.exp(-(middle**2 + LOG_2PI) / 2 - log_p), at_high)
        high = np.where(self._first, middle, high)
        at_low = np.where(self._first, 0.0, at_low)
        hh = -high * at_high - at_high**2
        ll = low * at_low - at_low**2
        hl = at_high * at_low
        first = (at_high - at_low, (at_high + at_low) / 2)
        second = (hh + 2 * hl + ll, (hh - 2 * hl + ll) / 4, (hh - ll) / 2)
        narrow = (width < _NARROW) & ~self._first
        if narrow.any():
            m, d = middle, width
            first = (
                np.where(narrow, -m + m * d**2 / 12, first[0]),
                np.where(narrow, 1 / d + (m**2 - 1) * d / 12, first[1]),
            )
            second = (
                np.where(narrow, -1 + d**2 / 12, second[0]),
                np.where(narrow, -1 / d**2 + (m**2 - 1) / 12, second[1]),
                np.where(narrow, m * d / 6, second[2]),
            )
        keep = [np.where(self._has_weight, term, 0.0) for term in (log_p, *first, *second)]
        return keep[0], keep[1], keep[2], (keep[3], keep[4], keep[5])

    def _along(self, point: Floats, steps: Floats) -> Floats:
        return np.asarray(np.matmul(point[:, None, :], steps)[:, 0])

    def _weighted_sum(self, steps: Floats, terms: Floats) -> Floats:
        return np.asarray(np.matmul(steps, (terms * self.weights)[:, :, None])[:, :, 0])

    def _product(self, one: Floats, other: Floats, terms: Floats) -> Floats:
        return np.asarray(np.matmul(one * (terms * self.weights)[:, None, :], np.swapaxes(other, 1, 2)))


def _standardised(gamma: Floats, quadratic: Floats, n: Floats) -> Floats:
    """Return the point with mean 0 of h and the steps of gamma, scaled to variance 1; `quadratic` is n times it."""
    point = gamma.copy()
    point[:, 0] = 0.0
    variance = (point * np.matmul(quadratic, point[:, :, None])[:, :, 0]).sum(axis=1) / n
    usable = variance > 0
    point *= np.where(usable, 1.0 / np.sqrt(np.where(usable, variance, 1.0)), 1.0)[:, None]
    return point


def _quotient(values: Floats, roots: Floats) -> Floats:
    """Return the values divided by the square roots of weights; 0 where the weight is 0."""
    return np.divide(values, roots, out=np.zeros_like(values), where=roots > 0)


def bernstein(u: Floats, order: int) -> Floats:
    """Return all Bernstein polynomials of an order: (..., order + 1, m) for u of shape (..., m) in [0, 1]."""
    values = np.empty((*u.shape[:-1], order + 1, u.shape[-1]))
    values[..., 0, :] = 1.0
    for k in range(1, order + 1):
        np.multiply(values[..., k - 1, :], u, out=values[..., k, :])
    v = 1.0 - u
    power = v.copy()
    for k in range(order - 1, -1, -1):
        values[..., k, :] *= power * comb(order, k) if comb(order, k) > 1 else power
        if k:
            power *= v
    return values


def basis(u: Floats, order: int) -> tuple[Floats, Floats]:
    """Return the basis of h, and that of its slope in the steps of the coefficients.

    h(u) = sum_k theta_k basis[k](u) and h'(u) = sum_k (theta_{k+1} - theta_k) slope[k](u); outside [0, 1], h is
    extrapolated linearly.
    """
    inside = np.clip(u, 0.0, 1.0)
    slope = bernstein(inside, order - 1)
    values = np.empty((*u.shape[:-1], order + 1, u.shape[-1]))
    # Each polynomial from its two neighbours of the order below.
    np.multiply(slope, (1.0 - inside)[..., None, :], out=values[..., :-1, :])
    values[..., -1, :] = 0.0
    values[..., 1:, :] += slope * inside[..., None, :]
    slope *= order
    beyond = u - inside
    if beyond.any():
        values += derivative(slope) * beyond[..., None, :]
    return values, slope


def derivative(slope: Floats) -> Floats:
    """Return the derivatives d/du of each basis[k], from the basis of the slope."""
    shape = (*slope.shape[:-2], slope.shape[-2] + 1, slope.shape[-1])
    values = np.zeros(shape)
    values[..., 1:, :] = slope
    values[..., :-1, :] -= slope
    return values


def tail_sums(values: npt.NDArray[np.float64], axis: int) -> Floats:
    """Return sums from each position to the end of an axis, which map a basis for theta to one for its steps."""
    flipped = np.flip(values, axis=axis)
    return np.flip(np.cumsum(flipped, axis=axis), axis=axis)
