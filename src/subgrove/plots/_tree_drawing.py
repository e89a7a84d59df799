"""Drawing of a tree with a given layout, and of the distribution of x in each leaf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.plots._axis import AxisTicks
from subgrove.plots._palette import COLORS, GREY
from subgrove.plots._text import LINE, Ruler
from subgrove.plots._tree_layout import (
    EDGE,
    FAR,
    PAD,
    SMALL,
    STUB,
    TICK,
    TRUNK,
    TreeLayout,
    has_distribution,
    heights,
    p_value_text,
    shares,
)
from subgrove.trees.nodes import Node
from subgrove.trees.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch


LEAF = COLORS[0]
ALL_ROWS = "#D0D0D0"
_POINTS = 4  # of the curve in each cell
_SCALES = 5.0  # highest peak over lowest from which each leaf has a scale of its own
_HEADROOM = 1.06


def painter(tree: Tree, axis: AxisTicks) -> Callable[[Axes, Floats], None]:
    """Return the function that draws the counts of a leaf into its axes."""
    if tree.target.kind == "numeric":
        return _density_painter(tree, axis)
    return _bar_painter(tree)


def own_scales(tree: Tree) -> bool:
    """Whether each leaf is drawn on a scale of its own, since the lowest would be hardly seen on a common one."""
    return has_distribution(tree) and tree.target.kind == "numeric" and _common_height(tree) is None


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


def _density_painter(tree: Tree, axis: AxisTicks) -> Callable[[Axes, Floats], None]:
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


OWN_SCALES = "each leaf on its own scale"

_FILLED = 0.8  # share of its row that a panel fills
_GAP = 3.0  # points between a line and a text


class _Canvas:
    """Axes on which places are given in points, whatever their limits and scales are; these stay as they are."""

    def __init__(self, ax: Axes, layout: TreeLayout) -> None:
        from matplotlib.transforms import Affine2D

        self._ax = ax
        self._points = Affine2D().scale(1 / layout.width, 1 / layout.height) + ax.transAxes

    def write(
        self,
        x: float,
        y: float,
        lines: Sequence[str],
        size: float,
        *,
        align: Literal["left", "center"] = "left",
        bold: bool = False,
        color: str | None = None,
    ) -> None:
        """Write lines around a height; names are no formulas, whatever signs they hold."""
        text = self._ax.text(x, y, "\n".join(lines), transform=self._points, size=size, parse_math=False)
        text.set(ha=align, va="center", linespacing=1.1, fontweight="bold" if bold else "normal")
        if color is not None:
            text.set_color(color)

    def line(self, x: Sequence[float], y: Sequence[float]) -> None:
        """Draw a line."""
        from matplotlib.lines import Line2D

        self._ax.add_line(Line2D(x, y, color=GREY, linewidth=1.0, linestyle="-", transform=self._points))

    def patch(self, patch: Patch) -> None:
        """Draw a shape."""
        patch.set_transform(self._points)
        self._ax.add_patch(patch)

    def panel(self, left: float, bottom: float, width: float, height: float) -> Axes:
        """Make axes inside the axes."""
        return self._ax.inset_axes((left, bottom, width, height), transform=self._points)


def draw_tree(ax: Axes, tree: Tree, layout: TreeLayout) -> None:
    """Draw all parts of a tree."""
    canvas = _Canvas(ax, layout)
    y = heights(tree, layout)
    for node in tree.nodes:
        if not node.is_leaf:
            _draw_edges(canvas, tree, node, layout, y)
            _draw_box(canvas, node, layout, y[node.id])
    for leaf in tree.leaves:
        _write_leaf(canvas, layout, leaf, y[leaf.id])
    below = 1 + LINE * layout.font * len(layout.target) / 2
    if not has_distribution(tree):
        canvas.write(layout.panel_left, below, layout.target, layout.font, bold=True)
        return
    _draw_panels(canvas, tree, layout, y)
    if len(tree.leaves) > 1:
        _draw_key(canvas, layout, OWN_SCALES if own_scales(tree) else "")
    middle = layout.panel_left + layout.panel_width / 2
    canvas.write(middle, below, layout.target, layout.font, align="center", bold=True)


def _draw_edges(canvas: _Canvas, tree: Tree, node: Node, layout: TreeLayout, y: dict[int, float]) -> None:
    start = layout.box_left[node.depth] + layout.box_width[node.depth]
    fork = start + TRUNK
    for child in node.children or ():
        lines, at = layout.conditions[child], fork + STUB
        end = layout.leaf_left if tree.nodes[child - 1].is_leaf else layout.box_left[node.depth + 1]
        after = at + Ruler(EDGE * layout.font).widest(lines) + _GAP
        canvas.line([start, fork, fork, at - _GAP], [y[node.id], y[node.id], y[child], y[child]])
        canvas.line([after, end], [y[child], y[child]])
        canvas.write(at, y[child], lines, EDGE * layout.font)


def _draw_box(canvas: _Canvas, node: Node, layout: TreeLayout, y: float) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    left, width = layout.box_left[node.depth], layout.box_width[node.depth]
    name, p_value = layout.names[node.id], p_value_text(node.p_value)
    upper = LINE * layout.font * len(name)
    lower = LINE * SMALL * layout.font if p_value else 0.0
    half = (upper + lower) / 2 + _GAP
    style, fill = f"round,pad=0,rounding_size={PAD}", to_rgba(GREY, 0.12)
    canvas.patch(FancyBboxPatch((left, y - half), width, 2 * half, style, facecolor=fill, edgecolor=GREY))
    canvas.write(left + width / 2, y + lower / 2, name, layout.font, align="center", bold=True)
    if p_value:
        canvas.write(left + width / 2, y - upper / 2, [p_value], SMALL * layout.font, align="center")


def _write_leaf(canvas: _Canvas, layout: TreeLayout, leaf: Node, y: float) -> None:
    rows, *node = layout.leaves[leaf.id]
    shift = LINE * layout.font / 2 if node else 0.0
    canvas.write(layout.leaf_left + PAD, y + shift, [rows], layout.font)
    if node:
        canvas.write(layout.leaf_left + PAD, y - shift, node, SMALL * layout.font, color=GREY)


def _draw_panels(canvas: _Canvas, tree: Tree, layout: TreeLayout, y: dict[int, float]) -> None:
    paint = painter(tree, layout.axis)
    height = _FILLED * layout.row
    for place, leaf in enumerate(tree.leaves):
        panel = canvas.panel(layout.panel_left, y[leaf.id] - height / 2, layout.panel_width, height)
        paint(panel, leaf.counts)
        _dress(panel, tree, layout, top=place == 0, bottom=place == len(tree.leaves) - 1)


def _dress(panel: Axes, tree: Tree, layout: TreeLayout, *, top: bool, bottom: bool) -> None:
    """Give a panel its frame, grid and labels; only the outermost ones are labelled."""
    axis = layout.axis
    panel.patch.set_visible(False)
    panel.spines[["left", "right", "top"]].set_visible(False)
    panel.spines["bottom"].set(color=GREY, linewidth=0.8)
    panel.set_xlim(axis.low, axis.high)
    panel.set_yticks([])
    panel.set_xticks(axis.at, axis.labels, parse_math=False, rotation=90 if axis.upright else 0)
    panel.tick_params(
        axis="x",
        length=2.5 if bottom else 0,
        pad=2,
        labelsize=TICK * layout.font,
        color=GREY,
        labelbottom=bottom,
        labeltop=top and len(tree.leaves) > FAR,
    )
    if tree.target.kind == "numeric":
        panel.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        panel.set_axisbelow(True)


def _draw_key(canvas: _Canvas, layout: TreeLayout, note: str) -> None:
    """Draw the legend of the two colours, above the panels."""
    from matplotlib.patches import Rectangle

    size = SMALL * layout.font
    ruler = Ruler(size)
    right, y = layout.panel_left + layout.panel_width, layout.height - 0.6 * LINE * layout.font
    for text, color in (("all rows", ALL_ROWS), ("rows of the leaf", LEAF)):
        at = right - ruler.width(text)
        canvas.write(at, y, [text], size)
        canvas.patch(Rectangle((at - size - _GAP, y - 0.35 * size), size, 0.7 * size, color=color, linewidth=0))
        right = at - size - 4 * _GAP
    if note:
        canvas.write(right - ruler.width(note), y, [note], size, color=GREY)
