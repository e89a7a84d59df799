"""Paths of the lasso: the coefficients for falling penalties, of several tables at once."""

from __future__ import annotations

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._native import loader

_ENOUGH = 1e-7  # of the target's variance: steps that gain less end the search
_MOST_SWEEPS = 1000


def lasso_paths(products: Floats, with_target: Floats, penalties: Floats) -> Floats:
    """The coefficients (problems, penalties, columns) of b' G b / 2 - c' b + penalty |b|.

    Parameters
    ----------
    products : float array (problems, columns, columns)
        G: mean products of the columns, about their means.
    with_target : float array (problems, columns)
        c: mean products with the target, whose variance is about 1.
    penalties : float array
        Falling.
    """
    problems, p = with_target.shape
    products, with_target, penalties = (
        np.ascontiguousarray(part, dtype=np.float64) for part in (products, with_target, penalties)
    )
    found = np.zeros((problems, len(penalties), p))
    if loader.lasso_path is not None:
        loader.lasso_path.paths(products, with_target, penalties, found, problems, p, len(penalties), _ENOUGH)
        return found
    for one, c, out in zip(products, with_target, found, strict=True):
        _follow(one, c, penalties, out)
    return found


def _follow(products: Floats, with_target: Floats, penalties: Floats, out: Floats) -> None:
    slope, b = with_target.copy(), np.zeros(len(with_target))
    everyone = np.flatnonzero(np.diag(products) > 0)
    for at, penalty in enumerate(penalties):
        for _ in range(_MOST_SWEEPS):
            if _sweep(products, everyone, penalty, b, slope) <= _ENOUGH:
                break
            for _ in range(_MOST_SWEEPS):
                if _sweep(products, np.flatnonzero(b), penalty, b, slope) <= _ENOUGH:
                    break
        out[at] = b


def _sweep(products: Floats, columns: Rows, penalty: float, b: Floats, slope: Floats) -> float:
    """One step for each column; gives the largest gain of a step."""
    largest = 0.0
    for j in columns:
        own, old = products[j, j], b[j]
        pull = slope[j] + own * old
        new = np.sign(pull) * max(abs(pull) - penalty, 0.0) / own
        step = new - old
        if step != 0.0:
            b[j] = new
            slope -= step * products[j]
            largest = max(largest, step * step * own)
    return largest
