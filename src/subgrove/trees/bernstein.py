"""Bernstein polynomials on [0, 1], continued linearly outside."""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from subgrove._data.table import Floats


def bernstein(u: Floats, order: int) -> Floats:
    """All Bernstein polynomials of an order: shape (..., order + 1, m) for u of shape (..., m) in [0, 1]."""
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
    """Basis of h, and of its slope by steps of the coefficients.

    h(u) = sum_k theta_k basis[k](u) and h'(u) = sum_k (theta_{k+1} - theta_k) slope[k](u),
    where outside [0, 1] h goes on with the slope it has at the border.
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
    """Derivatives of the basis functions of h, from the basis of its slope: d/du of each basis[k]."""
    shape = (*slope.shape[:-2], slope.shape[-2] + 1, slope.shape[-1])
    values = np.zeros(shape)
    values[..., 1:, :] = slope
    values[..., :-1, :] -= slope
    return values


def tail_sums(values: npt.NDArray[np.float64], axis: int) -> Floats:
    """Sums from each position to the end of an axis: from a basis for theta to one for its steps."""
    flipped = np.flip(values, axis=axis)
    return np.flip(np.cumsum(flipped, axis=axis), axis=axis)
