"""Fits of the density likelihood in many nodes: compiled where it could be, in NumPy everywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._data.table import Floats
from subgrove._native import loader
from subgrove.trees.likelihood import LOG_2PI, Density
from subgrove.trees.newton import maximise


@dataclass(frozen=True, eq=False)
class DensityFit:
    """Fits of a block's nodes.

    Attributes
    ----------
    gamma : float array (nodes, order + 1)
        Steps of the coefficients at the maximum.
    log_likelihood : float array (nodes,)
    scores : float array (nodes, order + 1, m)
        Derivatives of each row's log-likelihood by theta, times the square root of its weight.
    done : bool array (nodes,)
        Whether the maximum was reached.
    """

    gamma: Floats
    log_likelihood: Floats
    scores: Floats
    done: npt.NDArray[np.bool_]


def fit_density(
    u: Floats, roots: Floats | None, sizes: npt.NDArray[np.intp], order: int, log_range: float, start: Floats
) -> DensityFit:
    """Fit every node of a block.

    Parameters
    ----------
    u : float array (nodes, m)
        x on the scale of its support.
    roots : float array (nodes, m) or None
        Square roots of the weights, 0 where padded.
    sizes : int array (nodes,)
        Rows before padding.
    order : int
    log_range : float
        Logarithm of the width of the support.
    start : float array (nodes, order + 1)
        Steps to start from, of this node or of one above.
    """
    if loader.tree_fit is None or order > loader.MAX_COEFFICIENTS:
        likelihood = Density(u, roots, order, log_range)
        point, done = maximise(likelihood, likelihood.restart(start))
        log_likelihood = likelihood.log_likelihood(point)
        return DensityFit(likelihood.steps(point), log_likelihood, likelihood.scores(point), done)
    nodes, m = u.shape
    gamma = np.array(start, dtype=np.float64, order="C")
    log_likelihood, reached = np.empty(nodes), np.empty(nodes)
    scores = np.empty((nodes, order + 1, m))
    loader.tree_fit.fit(
        np.ascontiguousarray(u),
        None if roots is None else np.ascontiguousarray(roots),
        sizes.astype(np.float64),
        order,
        nodes,
        m,
        gamma,
        log_likelihood,
        scores,
        reached,
    )
    n = sizes if roots is None else (roots * roots).sum(axis=1)
    log_likelihood -= n * (LOG_2PI / 2 + log_range)
    return DensityFit(gamma, log_likelihood, scores, reached > 0)
