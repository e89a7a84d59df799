"""The layout of the picture of a tree, in points.

The tree is read from left to right: a column of boxes and a column of conditions for each depth, then the leaves, one
below the other. So every text is a horizontal line, and the leaves share one axis of x. The widest text of a column
decides its width; two nodes of a column are at least a row apart, two boxes two rows. The SVG trees of the report are
placed by the same functions (`node_rows`, `place_columns`); their texts and sizes are those of the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from subgrove._core.text import p_value_text
from subgrove.plots._axis import AxisTicks, axis_of, level_room
from subgrove.plots._figure import LINE, n_lines_of, one_line, round_to, text_width, widest, wrap, wrap_list
from subgrove.trees.nodes import Condition
from subgrove.trees.tree import Tree, format_count

OR_MISSING = "or missing"


def _edge_text(condition: Condition, digits: int, room: float, n_lines: int) -> str:
    """The condition on an edge in at most `n_lines` lines."""
    items, ending = _wording(condition, digits)
    # How many levels there are says more than the beginning of the first.
    short = f"{len(items)} levels" if len(items) > 1 else items[0]
    return wrap_list(items, short, room, EDGE * FONT, n_lines, ending=ending)


def _wording(condition: Condition, digits: int) -> tuple[Sequence[str], str]:
    """Levels, or one comparison; and whether missing values belong to the condition."""
    column = condition.column
    said_missing = condition.missing and column.has_missing
    if condition.levels is not None and 0 < len(condition.levels) < len(column.levels):
        return [level for level in column.levels if level in condition.levels], OR_MISSING if said_missing else ""
    if condition.levels is not None and not condition.levels:
        return ["is missing"], ""
    if column.kind == "numeric" and not column.is_date:
        condition = replace(condition, low=round_to(condition.low, digits), high=round_to(condition.high, digits))
    # The text of the rule without the name, which is in the box.
    text = str(condition).removeprefix(f"{column.name} ")
    if column.is_date:
        text = re.sub(r"T(\d\d:\d\d)(?::00)?(:\d\d)?(?:\.\d+)?", r" \1\2", text)
    if said_missing and text.endswith(f" {OR_MISSING}"):
        return [text.removesuffix(f" {OR_MISSING}")], OR_MISSING
    return [text], ""


FONT = 9.5
"""Size of the font of names; texts are smaller on axes that are too small for the layout."""
TRUNK = 9.0
"""Length of the line between a box and the place where it forks."""
STUB = 10.0
"""Length of line to be seen before and after a condition."""
PAD = 5.0
"""Between a text and the border of its box, and between the text of a leaf and its panel."""
MARGIN = 16.0
"""Left of everything and right of it, where the last label of the axis may stick out."""
EDGE, SMALL, TICK = 0.92, 0.88, 0.84
"""Sizes of the font of conditions, of second lines, and of the axis, as shares of that of names."""
FAR = 12
"""Number of leaves above which the axis is labelled at the top too."""
LEAST_SCALE = 0.5
"""The smallest texts that can be read, as a share of the usual size."""


class Rooms(NamedTuple):
    """The most that a condition and a name may be wide, and how wide a panel is, in points."""

    condition: float
    name: float
    panel: float


_WIDE = Rooms(condition=142.0, name=105.0, panel=152.0)
_MIDDLE = Rooms(condition=105.0, name=95.0, panel=140.0)
_NARROW = Rooms(condition=66.0, name=70.0, panel=95.0)
_LOWEST_ROW = 22.0
_AROUND = 50.0  # above and below the rows
# Height of a row up to a number of leaves.
_ROWS = ((1, 100.0), (4, 60.0), (8, 52.0), (16, 44.0), (math.inf, 36.0))
_LEVEL, _MOST_LEVELS = 11.4, 40  # room for a level, and for how many at most
_WIDER = 1.6  # how much wider a panel may be so that names of levels fit


@dataclass(frozen=True)
class TreeLayout:
    """Positions in points from the lower left corner, and the texts.

    Attributes
    ----------
    width, height : float
        Size of the picture.
    row : float
        Height of the row of a leaf.
    y : mapping
        Id of a node -> its height.
    box_left, box_width : list of float
        Position and width of the boxes of each depth.
    leaf_left : float
        Left end of the texts of the leaves.
    panel_left, panel_width : float
        Position and width of the distributions, or of the name of x if there are none.
    axis : AxisTicks
        Axis of the distributions.
    names, conditions, leaves : mapping
        Id of a node -> the name of its column, the condition on the edge to it, and what is written beside a leaf.
    target : str
        Text below the axis.
    """

    width: float
    height: float
    row: float
    y: Mapping[int, float]
    box_left: Sequence[float]
    box_width: Sequence[float]
    leaf_left: float
    panel_left: float
    panel_width: float
    axis: AxisTicks
    names: Mapping[int, str]
    conditions: Mapping[int, str]
    leaves: Mapping[int, tuple[str, ...]]
    target: str

    def scale(self, width: float, height: float) -> float:
        """Size of the texts on axes of that size, as a share of the usual one."""
        return min(1.0, width / self.width, height / self.height)


def natural_layout(tree: Tree, digits: int) -> TreeLayout:
    """The layout that reads best, as large as it needs to be."""
    return _layout(tree, digits, _WIDE if tree.depth <= 3 else _MIDDLE, _usual_row(tree))


def fitting_layout(tree: Tree, digits: int, width: float, height: float) -> TreeLayout:
    """The layout with the largest texts on axes of that size."""
    row = min(max(_LOWEST_ROW, (height - _AROUND) / len(tree.leaves)), _usual_row(tree))
    layouts = [_layout(tree, digits, rooms, row) for rooms in (_WIDE, _MIDDLE, _NARROW)]
    return max(layouts, key=lambda layout: layout.scale(width, height))


def _usual_row(tree: Tree) -> float:
    return next(height for most, height in _ROWS if len(tree.leaves) <= most)


def node_rows(parents: Sequence[int | None]) -> list[float]:
    """Return the row of each node, given its parent: leaves 0.5, 1.5, ..., others in the middle of their children."""
    inner = set(parents)
    leaves = iter(range(len(parents)))
    rows = [0.0 if at in inner else next(leaves) + 0.5 for at in range(len(parents))]
    for at in reversed(range(len(parents))):
        if children := [row for row, parent in zip(rows, parents, strict=True) if parent == at]:
            rows[at] = (min(children) + max(children)) / 2
    return rows


def place_columns(
    depths: Sequence[int], widths: Sequence[float], gaps: Sequence[float], start: float
) -> tuple[list[float], list[float]]:
    """Return the left end of the column of each depth, and of what follows the last, and the width of each column.

    A column is as wide as its widest node; `gaps` are the widths of the branches to the right of each column.
    """
    nodes = list(zip(widths, depths, strict=True))
    columns = [max(width for width, at in nodes if at == depth) for depth in range(len(gaps))]
    steps = [column + gap for column, gap in zip(columns, gaps, strict=True)]
    return np.cumsum([start, *steps]).tolist(), columns


def has_distribution(tree: Tree) -> bool:
    """Whether there is a distribution to draw: several features that share a tree have none."""
    return tree.nodes[0].counts.size > 0


def _layout(tree: Tree, digits: int, rooms: Rooms, row: float) -> TreeLayout:
    n_lines = max(1, int((row - 2) / (LINE * EDGE * FONT)))
    names = {node.id: wrap(node.split.column, rooms.name, FONT, 2) for node in tree.nodes if node.split is not None}
    conditions = {child: _edge_text(one, digits, rooms.condition, n_lines) for child, one in tree.branches.items()}
    n_leaf = 2 if row >= 2 * LINE * FONT + 2 else 1
    leaves = {leaf.id: (f"n = {format_count(leaf.n)}", f"node {leaf.id}")[:n_leaf] for leaf in tree.leaves}
    box_left, box_width, leaf_left = _columns(tree, names, conditions)
    beside = widest([text for texts in leaves.values() for text in texts], FONT) + 2 * PAD
    panel_width, axis = _panel(tree, rooms.panel)
    panel_left = leaf_left + PAD + (beside if has_distribution(tree) else 0.0)
    panel_width = max(panel_width, 0.0 if has_distribution(tree) else beside)
    target = wrap(tree.target.name, panel_width, 1.1 * FONT, 2)
    labels = _label_height(axis)
    header = PAD + (1.9 * FONT if len(tree.leaves) > 1 else 0.0) + (labels + PAD if len(tree.leaves) > FAR else 0.0)
    height = header + len(tree.leaves) * row + labels + PAD + n_lines_of(target) * LINE * FONT
    places = node_rows([None if node.parent is None else node.parent - 1 for node in tree.nodes])
    return TreeLayout(
        width=panel_left + panel_width + MARGIN,
        height=height,
        row=row,
        y={node.id: height - header - place * row for node, place in zip(tree.nodes, places, strict=True)},
        box_left=box_left,
        box_width=box_width,
        leaf_left=leaf_left,
        panel_left=panel_left,
        panel_width=panel_width,
        axis=axis,
        names=names,
        conditions=conditions,
        leaves=leaves,
        target=target,
    )


def _panel(tree: Tree, room: float) -> tuple[float, AxisTicks]:
    """Width of the distributions and their axis; wider for many levels, and for names of levels side by side."""
    if not has_distribution(tree):
        return min(text_width(one_line(tree.target.name), FONT, bold=True), room), AxisTicks()
    width, levels = room, tree.target.levels
    if tree.target.kind != "numeric":
        width = max(room, min(len(levels), _MOST_LEVELS) * _LEVEL)
        named = level_room(levels, TICK * FONT)
        width = max(width, named) if named <= _WIDER * width else width
    return width, axis_of(tree.target, tree.edges, width, TICK * FONT)


def _label_height(axis: AxisTicks) -> float:
    if axis.upright:
        return widest(axis.labels, TICK * FONT) + 2
    return LINE * TICK * FONT * max(map(n_lines_of, axis.labels), default=0)


def _columns(
    tree: Tree, names: Mapping[int, str], conditions: Mapping[int, str]
) -> tuple[list[float], list[float], float]:
    """Left end and width of the boxes of each depth, and where the leaves begin."""
    inner = [node for node in tree.nodes if node.children is not None]
    boxes, edges = [], [0.0] * tree.depth
    for node in inner:
        p_value = text_width(p_value_text(node.p_value), SMALL * FONT)
        boxes.append(max(text_width(names[node.id], FONT, bold=True), p_value) + 2 * PAD)
        longest = widest([conditions[child] for child in node.children or ()], EDGE * FONT)
        edges[node.depth] = max(edges[node.depth], longest + TRUNK + 2 * STUB)
    starts, widths = place_columns([node.depth for node in inner], boxes, edges, MARGIN / 4)
    return starts[:-1], widths, starts[-1]
