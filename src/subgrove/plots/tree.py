"""Plot of a fitted tree, with the distribution of x in each leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import p_value_text
from subgrove._core.validate import whole_number
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError
from subgrove.plots import _tree_layout
from subgrove.plots._axis import AxisTicks
from subgrove.plots._figure import LINE, POINTS, check_axes, check_type, n_lines_of, new_figure, size_of, text_width
from subgrove.plots._palette import COLORS, GREY
from subgrove.plots._tree_layout import EDGE, FAR, FONT, PAD, SMALL, STUB, TICK, TRUNK, TreeLayout, has_distribution
from subgrove.trees.nodes import Node
from subgrove.trees.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

MOST_LEAVES = 64
_AROUND = 0.12  # inches


def tree(tree: Tree | Partition, *, ax: Axes | None = None, digits: int = 4) -> Axes:
    """Draw a tree, from the root at the left to the leaves at the right.

    A box has the column of the split and the p-value of its test, if there is one. A line has the condition of its
    branch. A leaf shows how many rows it has, its node id, and the distribution of x in it: a density if x is
    numeric, shares of the levels otherwise. The distribution among all rows is behind it in grey. A tree of several
    features has no distributions.

    Parameters
    ----------
    tree : Tree or Partition
        A fitted tree, or the subgroups of a feature from `find_subgroups`; at most 64 leaves.
    ax : matplotlib Axes, optional
        Axes to draw on, whose frame and ticks are hidden; by default those of a new figure of suitable size.
    digits : int
        Significant digits of thresholds, though never less than the whole part of a number.

    Returns
    -------
    matplotlib Axes
        The axes drawn on; the distributions, if there are any, are its `child_axes`, one for each leaf from the top
        down.

    Notes
    -----
    How to read it: numbers are rounded and long names and lists of levels are shortened; `tree.rules` has the exact
    rules. All leaves share the axis of x. They share the height of the densities too, unless the highest peak is more
    than five times the lowest: then each leaf has a scale of its own, and
    the picture says so.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> grown = sg.trees.TransformationTree(max_depth=2).fit(X.drop(columns="temp"), X["temp"])
    >>> ax = sg.plots.tree(grown)
    >>> len(ax.child_axes) == len(grown.leaves)
    True
    """
    remedy = "prune"
    if isinstance(tree, Partition):
        tree, remedy = tree.tree, "at_depth"
    _check(tree, remedy)
    check_axes(ax)
    digits = whole_number("digits", digits, least=1)
    if ax is None:
        layout, scale = _tree_layout.natural_layout(tree, digits), 1.0
        ax = new_figure(layout.width / POINTS + _AROUND, layout.height / POINTS + _AROUND).add_subplot()
    else:
        layout, scale = _layout_on(ax, tree, digits, remedy)
    ax.set_axis_off()
    draw_tree(ax, tree, layout, scale)
    return ax


def _check(tree: Any, remedy: str) -> None:
    fitted = "which fit returns as in TransformationTree().fit(X, x)"
    check_type("tree", tree, Tree, f"a grown Tree, {fitted}, or a Partition as in find_subgroups(X)['temp']")
    n = len(tree.leaves)
    if n > MOST_LEAVES:
        depth = next(depth for depth in range(tree.depth, -1, -1) if len(tree.prune(depth).leaves) <= MOST_LEAVES)
        what = f"tree has {n} leaves, and at most {MOST_LEAVES} can be distinguished in a picture."
        raise ParameterError(f"{what} Prune it first: tree.{remedy}({depth}). tree.text() prints all of it.")


def _layout_on(ax: Axes, tree: Tree, digits: int, remedy: str) -> tuple[TreeLayout, float]:
    """The layout for axes as they are once their figure has given them their place, and the scale of its texts."""
    was_on = ax.axison
    ax.set_axis_off()  # or the figure makes room for ticks
    width, height = size_of(ax)
    layout = _tree_layout.fitting_layout(tree, digits, width, height)
    scale, least = layout.scale(width, height), _tree_layout.LEAST_SCALE
    if scale < least:
        if was_on:
            ax.set_axis_on()
        given = f"ax is {width / POINTS:.1f} x {height / POINTS:.1f} inches"
        needed = f"at least {least * layout.width / POINTS:.1f} x {least * layout.height / POINTS:.1f} are needed"
        prune = f"or prune the tree first: tree.{remedy}({max(tree.depth - 1, 0)})."
        what = f"{given}, too small to write {len(tree.leaves)} leaves: {needed}."
        raise ParameterError(f"{what} Enlarge the figure, leave ax out, {prune}")
    return layout, scale


LEAF = COLORS[0]
ALL_ROWS = "#D0D0D0"
OWN_SCALES = "each leaf on its own scale"
_POINTS = 4  # of the curve in each cell
_SCALES = 5.0  # highest peak over lowest from which each leaf has a scale of its own
_HEADROOM = 1.06
_FILLED = 0.8  # share of its row that a panel fills
_GAP = 3.0  # points between a line and a text


class _Canvas:
    """Axes on which places are given in points of the layout, whatever their limits and scales are.

    Texts shrink by `scale` where the axes are too small.
    """

    def __init__(self, ax: Axes, layout: TreeLayout, scale: float) -> None:
        from matplotlib.transforms import Affine2D

        self._ax = ax
        self.scale = scale
        self._points = Affine2D().scale(1 / layout.width, 1 / layout.height) + ax.transAxes

    def write(self, x: float, y: float, text: str, size: float, **look: Any) -> None:
        """Write text around a height; names are no formulas, whatever signs they hold."""
        usual: dict[str, Any] = {"ha": "left", "va": "center", "linespacing": 1.1, "parse_math": False}
        self._ax.text(x, y, text, transform=self._points, size=self.scale * size, **(usual | look))

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


def draw_tree(ax: Axes, tree: Tree, layout: TreeLayout, scale: float) -> None:
    """Draw all parts of a tree."""
    canvas = _Canvas(ax, layout, scale)
    for node in tree.nodes:
        if node.is_leaf:
            _write_leaf(canvas, layout, node)
        else:
            _draw_edges(canvas, tree, node, layout)
            _draw_box(canvas, node, layout)
    below = 1 + LINE * FONT * n_lines_of(layout.target) / 2
    if not has_distribution(tree):
        canvas.write(layout.panel_left, below, layout.target, FONT, weight="bold")
        return
    peaks = [float(_shape(tree, node.counts).max()) for node in (tree.nodes[0], *tree.leaves)]
    common = None if max(peaks) > _SCALES * min(peaks) and tree.target.kind == "numeric" else max(peaks)
    for leaf, peak in zip(tree.leaves, peaks[1:], strict=True):
        bottom = layout.y[leaf.id] - _FILLED * layout.row / 2
        panel = canvas.panel(layout.panel_left, bottom, layout.panel_width, _FILLED * layout.row)
        _draw_distribution(panel, tree, layout.axis, leaf.counts)
        panel.set_ylim(0, _HEADROOM * (common or peak or 1.0))
        _dress(panel, tree, layout.axis, scale, top=leaf is tree.leaves[0], bottom=leaf is tree.leaves[-1])
    if len(tree.leaves) > 1:
        _draw_key(canvas, layout, OWN_SCALES if common is None else "")
    canvas.write(layout.panel_left + layout.panel_width / 2, below, layout.target, FONT, ha="center", weight="bold")


def _draw_edges(canvas: _Canvas, tree: Tree, node: Node, layout: TreeLayout) -> None:
    y = layout.y
    start = layout.box_left[node.depth] + layout.box_width[node.depth]
    fork = start + TRUNK
    for child in node.children or ():
        text, at = layout.conditions[child], fork + STUB
        end = layout.leaf_left if tree.nodes[child - 1].is_leaf else layout.box_left[node.depth + 1]
        after = at + text_width(text, EDGE * FONT) + _GAP
        canvas.line([start, fork, fork, at - _GAP], [y[node.id], y[node.id], y[child], y[child]])
        canvas.line([after, end], [y[child], y[child]])
        canvas.write(at, y[child], text, EDGE * FONT)


def _draw_box(canvas: _Canvas, node: Node, layout: TreeLayout) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    left, width, y = layout.box_left[node.depth], layout.box_width[node.depth], layout.y[node.id]
    name, p_value = layout.names[node.id], p_value_text(node.p_value)
    upper = LINE * FONT * n_lines_of(name)
    lower = LINE * SMALL * FONT if p_value else 0.0
    half = (upper + lower) / 2 + _GAP
    style, fill = f"round,pad=0,rounding_size={PAD}", to_rgba(GREY, 0.12)
    canvas.patch(FancyBboxPatch((left, y - half), width, 2 * half, style, facecolor=fill, edgecolor=GREY))
    canvas.write(left + width / 2, y + lower / 2, name, FONT, ha="center", weight="bold")
    if p_value:
        canvas.write(left + width / 2, y - upper / 2, p_value, SMALL * FONT, ha="center")


def _write_leaf(canvas: _Canvas, layout: TreeLayout, leaf: Node) -> None:
    (rows, *node), y = layout.leaves[leaf.id], layout.y[leaf.id]
    shift = LINE * FONT / 2 if node else 0.0
    canvas.write(layout.leaf_left + PAD, y + shift, rows, FONT)
    for text in node:
        canvas.write(layout.leaf_left + PAD, y - shift, text, SMALL * FONT, color=GREY)


def _shape(tree: Tree, counts: Floats) -> Floats:
    """The height of a distribution: a smooth density of numeric x, shares of levels otherwise."""
    total = float(counts.sum())
    shares: Floats = counts / total if total > 0 else np.zeros_like(counts)
    if tree.target.kind != "numeric":
        return shares
    if tree.edges[0] == tree.edges[-1]:  # one value, in one cell of no width: drawn in the middle
        shares = np.zeros(len(counts) | 1)
        shares[len(shares) // 2] = 1.0
    return _smooth(shares, total)


def _smooth(shares: Floats, n: float) -> Floats:
    """A density with Gaussian kernels, mirrored at both ends, with Silverman's bandwidth but at least a cell."""
    from scipy.ndimage import gaussian_filter1d

    middles = np.arange(len(shares)) + 0.5
    deviation = float(np.sqrt(shares @ (middles - shares @ middles) ** 2))
    low, high = np.interp([0.25, 0.75], np.cumsum(shares), middles + 0.5)
    spread = min(deviation, float(high - low) / 1.34) or deviation
    bandwidth = max(1.0, 0.9 * spread / float(max(n, 1.0) ** 0.2))
    density: Floats = gaussian_filter1d(np.repeat(shares, _POINTS), _POINTS * bandwidth, mode="reflect")
    return density


def _draw_distribution(panel: Axes, tree: Tree, axis: AxisTicks, counts: Floats) -> None:
    """Draw the distribution of a leaf in front of that of all rows."""
    everything, leaf = _shape(tree, tree.nodes[0].counts), _shape(tree, counts)
    if tree.target.kind != "numeric":
        if len(tree.leaves) > 1:
            panel.bar(range(len(leaf)), everything, width=0.92, color=ALL_ROWS, linewidth=0)
        panel.bar(range(len(leaf)), leaf, width=0.56, color=LEAF, alpha=0.85, linewidth=0)
        return
    x = np.linspace(axis.low, axis.high, len(leaf))
    if len(tree.leaves) > 1:
        panel.fill_between(x, everything, color=ALL_ROWS, linewidth=0)
    panel.fill_between(x, leaf, color=LEAF, alpha=0.5, linewidth=0)
    panel.plot(x, leaf, color=LEAF, linewidth=1.1)


def _dress(panel: Axes, tree: Tree, axis: AxisTicks, scale: float, *, top: bool, bottom: bool) -> None:
    """Give a panel its frame, grid and labels; only the outermost ones are labelled."""
    panel.patch.set_visible(False)
    panel.spines[["left", "right", "top"]].set_visible(False)
    panel.spines["bottom"].set(color=GREY, linewidth=0.8)
    panel.set_xlim(axis.low, axis.high)
    panel.set_yticks([])
    panel.set_xticks(axis.at, axis.labels, parse_math=False, rotation=90 if axis.upright else 0)
    panel.tick_params("x", length=2.5 if bottom else 0, pad=2, labelsize=scale * TICK * FONT, color=GREY)
    panel.tick_params("x", labelbottom=bottom, labeltop=top and len(tree.leaves) > FAR)
    if tree.target.kind == "numeric":
        panel.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        panel.set_axisbelow(True)


def _draw_key(canvas: _Canvas, layout: TreeLayout, note: str) -> None:
    """Draw the legend of the two colours, above the panels."""
    from matplotlib.patches import Rectangle

    size = SMALL * FONT
    right, y = layout.panel_left + layout.panel_width, layout.height - 0.6 * LINE * FONT
    for text, color in (("all rows", ALL_ROWS), ("rows of the leaf", LEAF)):
        at = right - text_width(text, size)
        canvas.write(at, y, text, size)
        canvas.patch(Rectangle((at - size - _GAP, y - 0.35 * size), size, 0.7 * size, color=color, linewidth=0))
        right = at - size - 4 * _GAP
    canvas.write(right, y, note, size, ha="right", color=GREY)
