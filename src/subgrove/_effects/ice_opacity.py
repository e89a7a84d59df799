"""Highlighted ICE curves: how likely a value of the feature is in a subgroup, as an opacity from 0 to 1."""

from __future__ import annotations

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._effects.grid import GridAxis, has_levels
from subgrove.trees import Tree
from subgrove.trees.nodes import Node
from subgrove.trees.transformation import FittedTransformation, Support

_FINE = 512  # points at which the maximum of a density is sought


def opacity_of(tree: Tree, leaf: Node, axis: GridAxis) -> Floats:
    """Density of the feature at each point, relative to its maximum in the leaf; of levels, their frequency.

    It is known from growing the tree: the leaf's transformation model where it has one, otherwise the counts of its
    training rows, smoothed. Leaves at the depth limit have no model.
    """
    if not leaf.counts.any():
        return np.zeros(len(axis))
    if has_levels(axis.info):
        at_level = dict(zip(tree.target.levels, leaf.counts / leaf.counts.max(), strict=True))
        return np.array([at_level.get(axis.info.levels[int(point)], 0.0) for point in axis.points])
    edges = np.array(tree.edges)
    fine = np.union1d(np.linspace(edges[0], edges[-1], _FINE), axis.points)
    if leaf.theta is not None and edges[-1] > edges[0]:
        density = FittedTransformation(leaf.theta, Support(edges[0], edges[-1]), 0.0).pdf(fine)
    else:
        density = _smooth(edges, leaf.counts, fine)
    density = np.nan_to_num(density)
    highest = density.max()
    at = density[np.searchsorted(fine, axis.points)]
    # Nothing is known beyond the training rows.
    known = (axis.points >= edges[0]) & (axis.points <= edges[-1])
    return np.where(known, at / highest, 0.0) if highest > 0 else np.zeros(len(axis))


def _smooth(edges: Floats, counts: Floats, x: Floats) -> Floats:
    """A histogram, smoothed by a normal kernel of Silverman's width, but at least a cell wide."""
    middles, cell = edges[:-1] / 2 + edges[1:] / 2, edges[1] - edges[0]
    if cell <= 0:
        return np.ones(len(x))
    n = counts.sum()
    mean = counts @ middles / n
    width = max(0.9 * np.sqrt(counts @ (middles - mean) ** 2 / n) * n**-0.2, cell)
    density: Floats = np.exp(-(((x[:, None] - middles) / width) ** 2) / 2) @ counts
    return density
