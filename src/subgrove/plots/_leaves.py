"""The distribution of x in a leaf, before that of all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from subgrove.plots._axis import Axis
from subgrove.trees.structure import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

LEAF = "#0072B2"
"""Blue of Okabe and Ito, which every kind of colour vision tells from grey."""
ALL_ROWS = "#D0D0D0"
_POINTS = 4  # of the curve in each cell
_SCALES = 5.0  # highest peak over lowest from which each leaf has a scale of its own
_HEADROOM = 1.06


def has_distribution(tree: Tree) -> bool:
    """Whether there is a distribution to draw: several features that share a tree have none."""
    return tree.nodes[0].counts.size > 0


def painter(tree: Tree, axis: Axis) -> Callable[[Axes, Floats], None]:
    """What draws the counts of a leaf into its axes."""
    if tree.target.kind == "numeric":
        return _density_painter(tree, axis)
    return _bar_painter(tree)


def own_scales(tree: Tree) -> bool:
    """Whether each leaf is drawn on a scale of its own, since the lowest would be hardly seen on a common one."""
    return has_distribution(tree) and tree.target.kind == "numeric" and _common_height(tree) is None


def shares(counts: Floats) -> Floats:
    """Counts as shares of their sum."""
    total = float(counts.sum())
    result: Floats = counts / total if total > 0 else np.zeros_like(counts)
    return result


def density(counts: Floats) -> Floats:
    """A smooth density from counts in equal cells, at points from the left end of the first to the right of the last.

    Gaussian kernels stand at the middles of the cells, mirrored at both ends so that no mass is lost.
    """
    n_cells = len(counts)
    middles = np.arange(n_cells) + 0.5
    points = np.linspace(0, n_cells, _POINTS * n_cells + 1)[:, None]
    share = shares(counts)
    width = _bandwidth(share, float(counts.sum()))
    kernels = sum(np.exp(-0.5 * ((points - at) / width) ** 2) for at in (middles, -middles, 2 * n_cells - middles))
    result: Floats = kernels @ share / (width * np.sqrt(2 * np.pi))
    return result


def _density_painter(tree: Tree, axis: Axis) -> Callable[[Axes, Floats], None]:
    everything = density(_spread(tree, tree.nodes[0].counts))
    common = _common_height(tree)
    x = np.linspace(axis.low, axis.high, len(everything))

    def paint(panel: Axes, leaf: Floats) -> None:
        curve = density(_spread(tree, leaf))
        if len(tree.leaves) > 1:
            panel.fill_between(x, everything, color=ALL_ROWS, linewidth=0)
        panel.fill_between(x, curve, color=LEAF, alpha=0.5, linewidth=0)
        panel.plot(x, curve, color=LEAF, linewidth=1.1)
        panel.set_ylim(0, _HEADROOM * (common or float(curve.max()) or 1.0))

    return paint


def _bar_painter(tree: Tree) -> Callable[[Axes, Floats], None]:
    everything = shares(tree.nodes[0].counts)
    top = max(float(shares(node.counts).max()) for node in (tree.nodes[0], *tree.leaves))
    x = np.arange(len(everything))

    def paint(panel: Axes, leaf: Floats) -> None:
        if len(tree.leaves) > 1:
            panel.bar(x, everything, width=0.92, color=ALL_ROWS, linewidth=0)
        panel.bar(x, shares(leaf), width=0.56, color=LEAF, alpha=0.85, linewidth=0)
        panel.set_ylim(0, _HEADROOM * (top or 1.0))

    return paint


def _common_height(tree: Tree) -> float | None:
    peaks = [float(density(_spread(tree, node.counts)).max()) for node in (tree.nodes[0], *tree.leaves)]
    return max(peaks) if max(peaks) <= _SCALES * min(peaks) else None


def _spread(tree: Tree, counts: Floats) -> Floats:
    """The counts, moved to the middle if x has one value only and so one cell of no width."""
    if tree.edges[0] < tree.edges[-1]:
        return counts
    middle = np.zeros(len(counts) | 1)
    middle[len(middle) // 2] = counts.sum()
    return middle


def _bandwidth(share: Floats, n: float) -> float:
    """Silverman's rule of thumb in cells, and not less than a cell."""
    middles = np.arange(len(share)) + 0.5
    mean = float(share @ middles)
    deviation = float(np.sqrt(share @ (middles - mean) ** 2))
    low, high = np.interp([0.25, 0.75], np.cumsum(share), middles + 0.5)
    spread = min(deviation, float(high - low) / 1.34) or deviation
    return max(1.0, 0.9 * spread / float(max(n, 1.0) ** 0.2))
