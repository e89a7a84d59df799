"""Margins of a tree ensemble by following each row down each tree: what other evaluations are compared with."""

from __future__ import annotations

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._models.tree_ensemble.ensemble import TreeEnsemble


def margins(ensemble: TreeEnsemble, Z: Floats) -> Floats:
    """The margins, (n, n_outputs), of encoded rows."""
    node = np.tile(ensemble.roots.astype(np.intp), (len(Z), 1))
    row = np.broadcast_to(np.arange(len(Z))[:, None], node.shape)
    while (active := ensemble.feature[node] >= 0).any():
        at = node[active]
        goes_left = ensemble.goes_left(at, Z[row[active], ensemble.feature[at]])
        node[active] = np.where(goes_left, ensemble.left[at], ensemble.right[at])
    sums = np.tile(ensemble.base, (len(Z), 1))
    for output in np.unique(ensemble.output):
        values = ensemble.value[node[:, ensemble.output == output]].sum(axis=1)
        sums[:, slice(None) if output < 0 else [output]] += values
    return sums
