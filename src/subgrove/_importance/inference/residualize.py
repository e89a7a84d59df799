"""What other columns foretell of a number, taken out: each row by a fit that has not seen it.

Three fits compete, by what they leave of rows they have not seen: none, a ridge regression, a forest on what that one
leaves. The ridge regression leaves each row out in closed form, the forest by the trees that were grown without it.
"""

from __future__ import annotations

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._regress import grow_forest

_PENALTIES = 10.0 ** np.arange(-3, 4)  # of the squares of coefficients, columns having variance 1, times the rows
_N_TREES = 100


def unforetold(values: Floats, guesses: list[Floats], predictors: Floats, seed: int) -> tuple[Floats, int]:
    """What is left of the values, and the number of the guess that the best fit started from.

    Guesses depend on the predictors alone; a fit is of what a guess leaves.
    """
    candidates = []
    for guess in guesses:
        start = values - guess
        linear = _without_linear(start, predictors)
        candidates += [start, linear, _without_forest(linear, predictors, seed)]
    best = int(np.argmin([float(np.mean(one**2)) for one in candidates]))
    return candidates[best], best // 3


def _without_linear(values: Floats, predictors: Floats) -> Floats:
    """Residuals of the ridge regression that predicts unseen rows best, each row left out of its own fit."""
    n = len(values)
    mean = np.nan_to_num(np.nanmean(np.where(np.isnan(predictors).all(axis=0), 0.0, predictors), axis=0))
    columns = np.where(np.isnan(predictors), mean, predictors) - mean
    spread = columns.std(axis=0)
    columns = columns[:, spread > 0] / spread[spread > 0]
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    centre = values.mean()
    along = basis.T @ (values - centre)
    best: Floats = (values - centre) * n / max(n - 1, 1)
    for penalty in _PENALTIES:
        kept = sizes**2 / (sizes**2 + penalty * n)
        own = np.einsum("nk,k,nk->n", basis, kept, basis) + 1.0 / n
        left = (values - centre - basis @ (kept * along)) / np.maximum(1.0 - own, 1e-6)
        if np.mean(left**2) < np.mean(best**2):
            best = left
    return best


def _without_forest(values: Floats, predictors: Floats, seed: int) -> Floats:
    """Residuals of a forest, out of its bags."""
    tried = max(1, predictors.shape[1] // 2)
    forest = grow_forest(predictors, values[:, None], n_trees=_N_TREES, tried=tried, seed=seed, n_jobs=1)
    unseen = forest.out_of_bag[:, 0]
    left: Floats = values - np.where(np.isnan(unseen), values.mean(), unseen)
    return left
