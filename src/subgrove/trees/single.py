"""The tree of one leaf, for an x that no tree can grow on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from subgrove.trees.histogram import Histogram
from subgrove.trees.nodes import Node
from subgrove.trees.structure import Tree
from subgrove.trees.training import Training


def single_leaf(training: Training, method: str, parameters: Mapping[str, Any], stop: str) -> Tree:
    """A tree that is a leaf with all rows.

    Parameters
    ----------
    training : Training
        Rows, none at all included.
    method, parameters
        Of the tree that would have grown.
    stop : str
        Why it did not.
    """
    cells = Histogram.of(training.target, training.values)
    (counts,) = cells.counts(np.zeros(training.n_rows, dtype=np.intp), 1, training.weights)
    counts.flags.writeable = False
    n = float(training.n_rows if training.weights is None else training.weights.sum())
    # At depth 0 nothing else is asked, as in a tree that grows; so pruning gives what growing less gives.
    root = Node(1, None, 0, n, counts, stop=stop if parameters["max_depth"] else "depth")
    return Tree(method, training.target, training.table.columns, (root,), cells.edges, dict(parameters))
