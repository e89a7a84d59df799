"""Clusters of dependent rows: how similar their values are, and rows of them that are independent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import Table, TypedColumn

SAME = 0.9
"""Intraclass correlation from which on a column is nearly the same in all rows of a cluster."""
_MOST_LEVELS = 50
_MIN_CLUSTERS = 20


def column_numbers(series: TypedColumn) -> Floats:
    """Return a column as numbers (rows, parts): one-hot for levels, none if these are very many."""
    if not series.info.is_nominal:
        return np.asarray(series.values, dtype=np.float64)[:, None]
    n_levels = len(series.info.levels)
    return np.asarray(series.values[:, None] == np.arange(n_levels if n_levels <= _MOST_LEVELS else 0), np.float64)


def intraclass_correlation(clusters: npt.NDArray[np.integer], values: Floats) -> tuple[float, float]:
    """Return the correlation of values (rows, parts) of rows of the same cluster, and its z-score.

    Estimated by the analysis of variance of all parts together; the z-score is that of the ratio of mean squares.
    """
    if not values.shape[1]:
        return 0.0, 0.0
    _, code = np.unique(clusters, return_inverse=True)
    n, n_clusters = len(code), int(code.max(initial=-1)) + 1
    if n_clusters < 2 or n <= n_clusters:
        return 0.0, 0.0
    values, sizes = values - values.mean(axis=0), np.bincount(code)
    means = np.array([np.bincount(code, weights=line) for line in values.T]).T / sizes[:, None]
    between = float((sizes[:, None] * means**2).sum()) / (n_clusters - 1)
    within = float(((values - means[code]) ** 2).sum()) / (n - n_clusters)
    if not between > 0:
        return 0.0, 0.0
    size = (n - (sizes**2).sum() / n) / (n_clusters - 1)
    noise = np.sqrt(2 / (n_clusters - 1) + 2 / (n - n_clusters))
    return (between - within) / (between + (size - 1) * within), float((between / max(within, 1e-300) - 1) / noise)


def independent_rows(table: Table, rng: np.random.Generator) -> Rows:
    """Return the rows that a sampler is fitted on: one of each cluster if a column is the same within clusters.

    If such a column and another one recur with the same values, held-out rows are known from other rows of their
    cluster, and a sampler that memorizes them seems best. All rows if there is no such column, or hardly any cluster.
    """
    rows, clusters = np.arange(table.n_rows), table.clusters
    if clusters is None or len(np.unique(clusters)) < _MIN_CLUSTERS:
        return rows
    known = (one for one in table if not one.missing.any())
    if not any(intraclass_correlation(clusters, column_numbers(one))[0] > SAME for one in known):
        return rows
    order = rng.permutation(rows)
    return np.sort(order[np.unique(clusters[order], return_index=True)[1]])
