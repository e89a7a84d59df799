"""The layout of the picture of a tree, in points.

The tree is read from left to right: a column of boxes and a column of conditions for each depth, then the leaves, one
below the other. So every text is a horizontal line, and the leaves share one axis of x. The widest text of a column
decides its width; two nodes of a column are at least a row apart, two boxes two rows. The SVG trees of the report have
the same rows (`node_rows`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.plots._axis import NO_AXIS, AxisTicks, axis_of, level_room
from subgrove.plots._text import Ruler, one_line, round_to
from subgrove.trees.splits import SIDES, Condition, merge, split_condition
from subgrove.trees.tree import Tree, format_count

OR_MISSING = "or missing"
IS_MISSING = "is missing"


@dataclass(frozen=True, slots=True)
class EdgeText:
    """A condition to be broken into lines: levels, or one comparison; and whether missing values belong to it."""

    items: tuple[str, ...]
    ending: str = ""

    def lines(self, ruler: Ruler, room: float, n_lines: int) -> tuple[str, ...]:
        """The condition in at most `n_lines` lines."""
        return ruler.wrap_list(self.items, self.ending, room, n_lines)


def edge_texts(tree: Tree, digits: int) -> dict[int, EdgeText]:
    """Id of a node that is not the root -> the condition that leads to it from its parent.

    Levels that an earlier split already excluded are left out.
    """
    info = {column.name: column for column in tree.columns}
    paths: dict[int, tuple[Condition, ...]] = {1: ()}
    wordings = {}
    for node in tree.nodes:
        if node.split is None or node.children is None:
            continue
        for side, child in zip(SIDES, node.children, strict=True):
            own = split_condition(node.split, side, info[node.split.column])
            paths[child] = merge(paths[node.id], own)
            (so_far,) = (each for each in paths[child] if each.column.name == own.column.name)
            levels = so_far.levels if so_far.levels or so_far.missing else own.levels
            wordings[child] = _wording(replace(own, levels=levels, missing=so_far.missing), digits)
    return wordings


def p_value_text(p_value: float | None) -> str | None:
    """A p-value as it is printed in tables."""
    if p_value is None:
        return None
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def _wording(condition: Condition, digits: int) -> EdgeText:
    column = condition.column
    said_missing = condition.missing and column.has_missing
    if condition.levels is not None and 0 < len(condition.levels) < len(column.levels):
        listed = tuple(level for level in column.levels if level in condition.levels)
        return EdgeText(listed, OR_MISSING if said_missing else "")
    if condition.levels is not None and not condition.levels:
        return EdgeText((IS_MISSING,))
    if column.kind == "numeric" and not column.is_date:
        condition = replace(condition, low=round_to(condition.low, digits), high=round_to(condition.high, digits))
    # The text of the rule without the name, which is in the box.
    text = str(condition).removeprefix(f"{column.name} ")
    if column.is_date:
        text = re.sub(r"T(\d\d:\d\d)(?::00)?(:\d\d)?(?:\.\d+)?", r" \1\2", text)
    if said_missing and text.endswith(f" {OR_MISSING}"):
        return EdgeText((text.removesuffix(f" {OR_MISSING}"),), OR_MISSING)
    return EdgeText((text,))


TRUNK = 9.0
"""Length of the line between a box and the place where it forks."""
STUB = 10.0
"""Length of line to be seen before and after a condition."""
PAD = 5.0
"""Between a text and the border of its box, and between the text of a leaf and its panel."""
MARGIN = 8.0
"""Left of everything and right of it, where the last label of the axis may stick out."""
EDGE, SMALL, TICK = 0.92, 0.88, 0.84
"""Sizes of the font of conditions, of second lines, and of the axis, as shares of that of names."""
FAR = 12
"""Number of leaves above which the axis is labelled at the top too."""


class Rooms(NamedTuple):
    """The most that a condition and a name may be wide, and how wide a panel is, in sizes of the font."""

    condition: float
    name: float
    panel: float


_FONTS = (9.5, 9.0, 8.5, 8.0, 7.5, 7.0, 6.5, 6.0)
_ROOMS = (
    Rooms(condition=15.0, name=11.0, panel=16.0),
    Rooms(condition=12.0, name=11.0, panel=16.0),
    Rooms(condition=10.0, name=9.0, panel=13.0),
    Rooms(condition=8.0, name=8.0, panel=11.0),
    Rooms(condition=6.5, name=7.0, panel=9.0),
    Rooms(condition=5.0, name=6.0, panel=7.0),
)
# Tried in turn until the picture fits: a smaller font is better than the least room, the least room than no picture.
_TRIED = (*product(_FONTS[:5], _ROOMS[:4]), *product(_FONTS[2:], _ROOMS))
# Where nothing limits the picture: room up to a depth, and height of a row up to a number of leaves.
_BY_DEPTH = ((0, Rooms(condition=15.0, name=11.0, panel=24.0)), (3, _ROOMS[0]), (5, _ROOMS[1]), (math.inf, _ROOMS[3]))
_ROWS = ((1, 100.0), (4, 60.0), (8, 52.0), (16, 44.0), (math.inf, 36.0))
_LOWEST_ROW = 2.1  # sizes of the font; the box of a node has two rows, and two lines
_LEVEL, _MOST_LEVELS = 1.2, 40  # room for a level in sizes of the font, and for how many at most
_WIDER = 1.6  # how much wider a panel may be so that names of levels fit


@dataclass(frozen=True)
class TreeLayout:
    """Positions in points from the lower left corner, and the texts.

    Attributes
    ----------
    width, height : float
        Size of the picture.
    font : float
        Size of the font of names.
    row : float
        Height of the row of a leaf.
    header, footer : float
        Heights above the first and below the last row.
    box_left, box_width : tuple of float
        Position and width of the boxes of each depth.
    leaf_left : float
        Left end of the texts of the leaves.
    panel_left, panel_width : float
        Position and width of the distributions, or of the name of x if there are none.
    axis : Axis
        Axis of the distributions.
    names : mapping
        Id of an inner node -> lines with the name of its column.
    conditions : mapping
        Id of a child -> lines on the edge to it.
    leaves : mapping
        Id of a leaf -> lines beside it.
    target : tuple of str
        Lines below the axis.
    """

    width: float
    height: float
    font: float
    row: float
    header: float
    footer: float
    box_left: tuple[float, ...]
    box_width: tuple[float, ...]
    leaf_left: float
    panel_left: float
    panel_width: float
    axis: AxisTicks
    names: Mapping[int, tuple[str, ...]]
    conditions: Mapping[int, tuple[str, ...]]
    leaves: Mapping[int, tuple[str, ...]]
    target: tuple[str, ...]


def natural_layout(tree: Tree, digits: int) -> TreeLayout:
    """The layout that reads best, as large as it needs to be."""
    row = next(height for most, height in _ROWS if len(tree.leaves) <= most)
    rooms = next(rooms for deepest, rooms in _BY_DEPTH if tree.depth <= deepest)
    return _draft(tree, edge_texts(tree, digits), _FONTS[0], rooms, row=row)


def fit_layout(tree: Tree, digits: int, width: float, height: float) -> TreeLayout | None:
    """The layout with the largest font that fits, or None if none does."""
    least = smallest_size(tree, digits)
    if width < least[0] or height < least[1]:
        return None
    wordings = edge_texts(tree, digits)
    for font, rooms in _TRIED:
        draft = _draft(tree, wordings, font, rooms, height=height)
        if draft.row >= _LOWEST_ROW * font and draft.width <= width:
            return _stretch(draft, width)
    return None


def smallest_size(tree: Tree, digits: int) -> tuple[float, float]:
    """Width and height below which the tree cannot be drawn."""
    wordings = edge_texts(tree, digits)
    draft = _draft(tree, wordings, _FONTS[-1], _ROOMS[-1], row=_LOWEST_ROW * _FONTS[-1])
    return draft.width, draft.height


def node_rows(parents: Sequence[int | None]) -> list[float]:
    """Return the row of each node, given its parent: leaves 0.5, 1.5, ..., others in the middle of their children."""
    inner = set(parents)
    leaves = iter(range(len(parents)))
    rows = [0.0 if at in inner else next(leaves) + 0.5 for at in range(len(parents))]
    for at in reversed(range(len(parents))):
        children = [row for row, parent in zip(rows, parents, strict=True) if parent == at]
        if children:
            rows[at] = (min(children) + max(children)) / 2
    return rows


def heights(tree: Tree, layout: TreeLayout) -> dict[int, float]:
    """Return the height of each node, by its id."""
    parent = {child: node.id - 1 for node in tree.nodes for child in node.children or ()}
    rows = node_rows([parent.get(node.id) for node in tree.nodes])
    top = layout.height - layout.header
    return {node.id: top - row * layout.row for node, row in zip(tree.nodes, rows, strict=True)}


def has_distribution(tree: Tree) -> bool:
    """Whether there is a distribution to draw: several features that share a tree have none."""
    return tree.nodes[0].counts.size > 0


def shares(counts: Floats) -> Floats:
    """Counts as shares of their sum."""
    total = float(counts.sum())
    result: Floats = counts / total if total > 0 else np.zeros_like(counts)
    return result


def _draft(
    tree: Tree,
    wordings: Mapping[int, EdgeText],
    font: float,
    rooms: Rooms,
    *,
    row: float | None = None,
    height: float | None = None,
) -> TreeLayout:
    """The layout at one size of the font, with the height of a row or that of the picture given."""
    panel_width = _panel_width(tree, font, rooms.panel)
    axis = _axis(tree, panel_width, font)
    target = Ruler(font, bold=True).wrap_name(tree.target.name, panel_width, 2)
    header, footer = _margins(tree, axis, len(target), font)
    n = len(tree.leaves)
    if row is None:
        row = ((height or 0.0) - header - footer) / n
    names, conditions, leaves = _texts(tree, wordings, font, rooms, row)
    box_left, box_width, leaf_left = _columns(tree, font, names, conditions)
    texts = max(Ruler(font).widest(lines) for lines in leaves.values())
    panel_left = leaf_left + PAD + (texts + 2 * PAD if has_distribution(tree) else 0.0)
    panel_width = max(panel_width, 0.0 if has_distribution(tree) else texts)
    return TreeLayout(
        width=panel_left + panel_width + MARGIN,
        height=height or header + n * row + footer,
        font=font,
        row=row,
        header=header,
        footer=footer,
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


def _panel_width(tree: Tree, font: float, room: float) -> float:
    """Room in points; more for many levels, and for names of levels if they then stand side by side."""
    if not has_distribution(tree):
        return min(Ruler(font, bold=True).width(one_line(tree.target.name)), room * font)
    if tree.target.kind == "numeric":
        return room * font
    usual = max(1.0, min(len(tree.target.levels), _MOST_LEVELS) * _LEVEL / _ROOMS[0].panel) * room * font
    named = level_room(tree.target.levels, Ruler(TICK * font))
    return max(usual, named) if named <= _WIDER * usual else usual


def _axis(tree: Tree, panel_width: float, font: float) -> AxisTicks:
    if not has_distribution(tree):
        return NO_AXIS
    most = np.max([shares(leaf.counts) for leaf in tree.leaves], axis=0)
    return axis_of(tree.target, tree.edges, most, panel_width, Ruler(TICK * font))


def _margins(tree: Tree, axis: AxisTicks, n_target: int, font: float) -> tuple[float, float]:
    """Room above the rows for the key and below them for the axis."""
    if not has_distribution(tree):
        return PAD, PAD + n_target * Ruler(font).line
    header = PAD if len(tree.leaves) == 1 else 1.9 * font
    if len(tree.leaves) > FAR:
        header += axis.height + PAD
    return header, axis.height + PAD + n_target * Ruler(font).line


def _texts(
    tree: Tree, wordings: Mapping[int, EdgeText], font: float, rooms: Rooms, row: float
) -> tuple[dict[int, tuple[str, ...]], dict[int, tuple[str, ...]], dict[int, tuple[str, ...]]]:
    """Lines in the boxes, on the edges and beside the leaves, as many as a row holds."""
    bold, edge = Ruler(font, bold=True), Ruler(EDGE * font)
    n_names = 2 if 2 * row - 3 * PAD >= 3 * bold.line else 1
    n_lines = max(1, int((row - 2) / edge.line))
    names = {
        node.id: bold.wrap_name(node.split.column, rooms.name * font, n_names)
        for node in tree.nodes
        if node.split is not None
    }
    conditions = {child: wording.lines(edge, rooms.condition * font, n_lines) for child, wording in wordings.items()}
    n_leaf = 2 if row >= 2 * bold.line + 2 else 1
    leaves = {leaf.id: (f"n = {format_count(leaf.n)}", f"node {leaf.id}")[:n_leaf] for leaf in tree.leaves}
    return names, conditions, leaves


def _columns(
    tree: Tree, font: float, names: Mapping[int, tuple[str, ...]], conditions: Mapping[int, tuple[str, ...]]
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Left end and width of the boxes of each depth, and where the leaves begin."""
    bold, small, edge = Ruler(font, bold=True), Ruler(SMALL * font), Ruler(EDGE * font)
    boxes, edges = [0.0] * tree.depth, [0.0] * tree.depth
    for node in tree.nodes:
        if node.children is not None:
            p_value = small.width(p_value_text(node.p_value) or "")
            boxes[node.depth] = max(boxes[node.depth], bold.widest(names[node.id]) + 2 * PAD, p_value + 2 * PAD)
            for child in node.children:
                edges[node.depth] = max(edges[node.depth], edge.widest(conditions[child]) + TRUNK + 2 * STUB)
    left, at = [], MARGIN / 2
    for box, line in zip(boxes, edges, strict=True):
        left.append(at)
        at += box + line
    return tuple(left), tuple(boxes), at


def _stretch(layout: TreeLayout, width: float) -> TreeLayout:
    """Return the layout with the surplus width given to the panels and to the edges."""
    surplus = width - layout.width
    depth = len(layout.box_left)
    to_panel = surplus if depth == 0 else min(surplus / 2, layout.panel_width)
    step = (surplus - to_panel) / depth if depth else 0.0
    return replace(
        layout,
        width=width,
        box_left=tuple(left + place * step for place, left in enumerate(layout.box_left)),
        leaf_left=layout.leaf_left + depth * step,
        panel_left=layout.panel_left + depth * step,
        panel_width=layout.panel_width + to_panel,
    )
