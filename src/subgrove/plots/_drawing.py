"""Draws what a layout has placed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from subgrove.plots._layout import EDGE, FAR, PAD, SMALL, STUB, TICK, TRUNK, Layout, heights
from subgrove.plots._leaves import ALL_ROWS, LEAF, own_scales, painter
from subgrove.plots._text import LINE, Ruler
from subgrove.plots._wording import p_value_text
from subgrove.trees.nodes import Node
from subgrove.trees.structure import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OWN_SCALES = "each leaf on its own scale"

_GREY = "#737373"  # seen on white and on black
_FILLED = 0.8  # share of its row that a panel fills
_GAP = 3.0  # points between a line and a text


def draw_tree(ax: Axes, tree: Tree, layout: Layout) -> None:
    """Draw all parts on axes whose units are points."""
    y = heights(tree, layout)
    for node in tree.nodes:
        if not node.is_leaf:
            _draw_edges(ax, tree, node, layout, y)
            _draw_box(ax, node, layout, y[node.id])
    _draw_leaves(ax, tree, layout, y)
    if len(tree.leaves) > 1:
        _draw_key(ax, layout, OWN_SCALES if own_scales(tree) else "")
    middle = layout.panel_left + layout.panel_width / 2
    _write(
        ax,
        middle,
        1 + LINE * layout.font * len(layout.target) / 2,
        layout.target,
        layout.font,
        align="center",
        bold=True,
    )


def _draw_edges(ax: Axes, tree: Tree, node: Node, layout: Layout, y: dict[int, float]) -> None:
    start = layout.box_left[node.depth] + layout.box_width[node.depth]
    fork = start + TRUNK
    for child in node.children or ():
        lines, at = layout.conditions[child], fork + STUB
        end = layout.leaf_left if tree.nodes[child - 1].is_leaf else layout.box_left[node.depth + 1]
        after = at + Ruler(EDGE * layout.font).widest(lines) + _GAP
        _draw_line(ax, [start, fork, fork, at - _GAP], [y[node.id], y[node.id], y[child], y[child]])
        _draw_line(ax, [after, end], [y[child], y[child]])
        _write(ax, at, y[child], lines, EDGE * layout.font)


def _draw_box(ax: Axes, node: Node, layout: Layout, y: float) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    left, width = layout.box_left[node.depth], layout.box_width[node.depth]
    name, p_value = layout.names[node.id], p_value_text(node.p_value)
    upper = LINE * layout.font * len(name)
    lower = LINE * SMALL * layout.font if p_value else 0.0
    half = (upper + lower) / 2 + _GAP
    style = f"round,pad=0,rounding_size={PAD}"
    ax.add_patch(
        FancyBboxPatch((left, y - half), width, 2 * half, style, facecolor=to_rgba(_GREY, 0.12), edgecolor=_GREY)
    )
    _write(ax, left + width / 2, y + lower / 2, name, layout.font, align="center", bold=True)
    if p_value:
        _write(ax, left + width / 2, y - upper / 2, [p_value], SMALL * layout.font, align="center")


def _draw_leaves(ax: Axes, tree: Tree, layout: Layout, y: dict[int, float]) -> None:
    paint = painter(tree, layout.axis)
    height = _FILLED * layout.row
    for place, leaf in enumerate(tree.leaves):
        rows, *node = layout.leaves[leaf.id]
        shift = LINE * layout.font / 2 if node else 0.0
        _write(ax, layout.leaf_left + PAD, y[leaf.id] + shift, [rows], layout.font)
        if node:
            _write(ax, layout.leaf_left + PAD, y[leaf.id] - shift, node, SMALL * layout.font, color=_GREY)
        bounds = (layout.panel_left, y[leaf.id] - height / 2, layout.panel_width, height)
        panel = ax.inset_axes(bounds, transform=ax.transData)
        paint(panel, leaf.counts)
        _dress(panel, tree, layout, top=place == 0, bottom=place == len(tree.leaves) - 1)


def _dress(panel: Axes, tree: Tree, layout: Layout, *, top: bool, bottom: bool) -> None:
    """Frame, grid and labels of a panel; only the outermost ones are labelled."""
    axis = layout.axis
    panel.patch.set_visible(False)
    panel.spines[["left", "right", "top"]].set_visible(False)
    panel.spines["bottom"].set(color=_GREY, linewidth=0.8)
    panel.set_xlim(axis.low, axis.high)
    panel.set_yticks([])
    panel.set_xticks(axis.at, axis.labels, parse_math=False, rotation=90 if axis.upright else 0)
    panel.tick_params(
        axis="x",
        length=2.5 if bottom else 0,
        pad=2,
        labelsize=TICK * layout.font,
        color=_GREY,
        labelbottom=bottom,
        labeltop=top and len(tree.leaves) > FAR,
    )
    if tree.target.kind == "numeric":
        panel.grid(axis="x", color=_GREY, alpha=0.25, linewidth=0.6)
        panel.set_axisbelow(True)


def _draw_key(ax: Axes, layout: Layout, note: str) -> None:
    """Tell what the two colours are, above the panels."""
    from matplotlib.patches import Rectangle

    size = SMALL * layout.font
    ruler = Ruler(size)
    right, y = layout.panel_left + layout.panel_width, layout.height - 0.6 * LINE * layout.font
    for text, color in (("all rows", ALL_ROWS), ("rows of the leaf", LEAF)):
        at = right - ruler.width(text)
        _write(ax, at, y, [text], size)
        ax.add_patch(Rectangle((at - size - _GAP, y - 0.35 * size), size, 0.7 * size, color=color, linewidth=0))
        right = at - size - 4 * _GAP
    if note:
        _write(ax, right - ruler.width(note), y, [note], size, color=_GREY)


def _draw_line(ax: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    ax.plot(x, y, color=_GREY, linewidth=1.0, solid_joinstyle="round", solid_capstyle="butt")


def _write(
    ax: Axes,
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
    text = ax.text(x, y, "\n".join(lines), size=size, ha=align, va="center", linespacing=1.1, parse_math=False)
    text.set_fontweight("bold" if bold else "normal")
    if color is not None:
        text.set_color(color)
