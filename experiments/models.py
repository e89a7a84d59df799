"""The three models of the model-fidelity experiment: a forest, a linear model and weighted nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
MODELS = ("forest", "linear", "knn")
_N_TREES = 500
_N_NEIGHBOURS = 7
_MANY_COLUMNS = 8


def fitted_model(name: str, X: Floats, y: Floats, seed: int, n_trees: int = _N_TREES) -> Any:
    """A fitted model by its name.

    "forest" has the defaults of R's randomForest: a third of the columns tried at each split, nodes of at most five
    rows left alone. "knn" has those of R's kknn with k = 7: standardised columns and the weights of `optimal_weights`.
    """
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    n_columns = X.shape[1]
    if name == "forest":
        tried = max(1, n_columns // 3)
        forest = RandomForestRegressor(n_trees, max_features=tried, min_samples_split=6, random_state=seed % 2**31)
        return forest.fit(X, y)
    if name == "linear":
        return LinearRegression().fit(X, y)
    if name == "knn":
        weights = optimal_weights(_N_NEIGHBOURS, n_columns)
        # The nearest come first, whatever their distances are. In many dimensions a search tree only adds work.
        near = KNeighborsRegressor(
            _N_NEIGHBOURS,
            weights=lambda distances: np.tile(weights, (len(distances), 1)),
            algorithm="brute" if n_columns > _MANY_COLUMNS else "kd_tree",
        )
        return make_pipeline(StandardScaler(), near).fit(X, y)
    raise ValueError(f"unknown model {name!r}; there are {', '.join(MODELS)}.")


def optimal_weights(k: int, d: int) -> Floats:
    """Weights of the k nearest neighbours in d dimensions that are best as samples grow (Samworth 2012, Equation 2.1).

    w_i = (1 + d/2 - d / (2 k^(2/d)) * (i^(1 + 2/d) - (i - 1)^(1 + 2/d))) / k, the nearest first; they sum to 1.
    """
    ends = np.arange(k + 1) ** (1 + 2 / d)
    weights: Floats = (1 + d / 2 - d / (2 * k ** (2 / d)) * np.diff(ends)) / k
    return weights
