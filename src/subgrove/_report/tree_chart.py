"""A feature's tree from left to right: a row for each subgroup, with the distribution of the feature in it.

Rules are on the branches; a leaf has the letter and colour of its subgroup, and to its right the subgroup's
distribution in front of that of all rows (grey).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from subgrove._core.text import count_of, letter, p_value_text
from subgrove._report import svg
from subgrove._report.summary import FeatureSummary, TreeNode
from subgrove.plots._tree_layout import node_rows, place_columns

_ROW, _TOP, _FOOT = 58.0, 10.0, 34.0
_FONT, _SMALL = 13.0, 11.5
_FORK = 20.0
_BOLD = 1.1  # bold words are wider
_MOST, _LEAST = 190.0, 70.0  # widths of a column of rules
_PANEL, _LEVEL_BARS = 210.0, 14
_FITS = 1200.0  # up to this width a tree shrinks with the page; wider ones are scrolled


@dataclass(frozen=True)
class _Place:
    x: float
    y: float
    width: float
    text_width: float
    lines: list[str]
    below: str


def tree_picture(feature: FeatureSummary) -> Markup:
    """Return the tree of a feature."""
    places = _layout(feature)
    left = max(place.x + place.width for place in places) + 58
    height = _TOP + _ROW * max(1, _n_leaves(feature.tree)) + _FOOT
    nodes = zip(feature.tree, places, strict=True)
    branches = svg.group(*_branches(feature.tree, places))
    inside = [branches, *(_node(*node, feature.places, left - 24) for node in nodes)]
    n, width = count_of(_n_leaves(feature.tree), "subgroup"), left + _PANEL + 6
    inside += _panels(feature, places, left, height)
    looks = "tree fit" if width <= _FITS else "tree"
    return svg.picture(width, height, f"Tree of {feature.feature} with {n}", *inside, class_=looks)


def _n_leaves(tree: Sequence[TreeNode]) -> int:
    return sum(node.subgroup is not None for node in tree)


def _layout(feature: FeatureSummary) -> list[_Place]:
    tree, depths = feature.tree, feature.depths
    rows = node_rows([node.parent for node in tree])
    lines = [svg.wrap(node.rule or "all rows", _MOST, _FONT, 2) for node in tree]
    below = [_below(node) for node in tree]
    rules = [_BOLD * max(svg.width_of(line, _FONT) for line in some) for some in lines]
    texts = [max(rule, svg.width_of(small, _SMALL)) for rule, small in zip(rules, below, strict=True)]
    room = [max(_LEAST, text) for text in texts]
    starts, widths = place_columns(depths, room, [2 * _FORK] * (max(depths) + 1), 4.0)
    corners = ([starts[depth] for depth in depths], [_TOP + _ROW * row for row in rows])
    return list(map(_Place, *corners, [widths[depth] for depth in depths], texts, lines, below))


def _below(node: TreeNode) -> str:
    """Return the number of rows of a node and the p-value of its split."""
    rows, p_value = count_of(node.n_train, "row"), p_value_text(node.p_value) if node.subgroup is None else ""
    return f"{rows} \u00b7 split {p_value}" if p_value else rows


def _branches(tree: Sequence[TreeNode], places: Sequence[_Place]) -> Iterator[Markup]:
    for node, place in zip(tree, places, strict=True):
        if node.parent is not None:
            parent = places[node.parent]
            start, fork = parent.x + parent.width + 4, place.x - _FORK
            points = [(start, parent.y), (fork, parent.y), (fork, place.y), (place.x - 5, place.y)]
            yield svg.path(points, class_="branch")


def _node(node: TreeNode, place: _Place, colors: dict[int, int], badges: float) -> Markup:
    first = place.y - 3 - (len(place.lines) - 1) * 15
    looks = "rule" if node.rule else "rule root"
    parts = [svg.text(place.x, first + 15 * at, words, class_=looks) for at, words in enumerate(place.lines)]
    parts.append(svg.text(place.x, place.y + 14, place.below, class_="note"))
    parts.append(svg.tag("title", node.rule or "all rows"))
    if node.subgroup is not None:
        color = colors.get(node.subgroup, 0)
        name = svg.text(badges, place.y + 4, letter(color), text_anchor="middle", class_="badge-text")
        leader = svg.line(place.x + place.text_width + 6, place.y, badges - 14, place.y, class_="leader")
        parts += [leader, svg.group(svg.circle(badges, place.y, 10, class_="badge"), name)]
        return svg.group(*parts, class_=f"leaf {svg.subgroup_class(color)}", data_subgroup=node.subgroup)
    return svg.group(*parts)


def _panels(feature: FeatureSummary, places: Sequence[_Place], left: float, height: float) -> Iterator[Markup]:
    """Yield the distribution in each leaf, as shares of rows."""
    spread = feature.distribution
    nodes = zip(feature.tree, places, strict=True)
    leaves = [(node.subgroup, place.y) for node, place in nodes if node.subgroup is not None]
    if not spread.counts or not leaves:
        return
    edges = list(spread.edges) or [float(at) for at in range(len(spread.counts) + 1)]
    low, high = (edges[0], edges[-1]) if edges[-1] > edges[0] else (0.0, 1.0)
    x = svg.LinearScale(low, high, left, left + _PANEL)
    counts = {subgroup: _counts(feature, subgroup) for subgroup, _ in leaves}
    shares = [max(each) / sum(each) for each in (spread.counts, *counts.values()) if sum(each)]
    tall = (_ROW - 16) / max(shares, default=1.0)
    for subgroup, y in leaves:
        base = y + _ROW / 2 - 8
        yield _outline(edges, spread.counts, x, base, tall, "everyone")
        if len(leaves) > 1:
            looks = f"own {svg.subgroup_class(feature.places.get(subgroup, 0))}"
            shape = _outline(edges, counts[subgroup], x, base, tall, looks)
            yield svg.group(shape, data_subgroup=subgroup)
        yield svg.line(left, base, left + _PANEL, base, class_="base")
    yield from _foot(feature, x, left, height)


def _outline(
    edges: Sequence[float], counts: Sequence[int], x: svg.LinearScale, base: float, height: float, looks: str
) -> Markup:
    """Return shares of rows as one filled shape; a share of 1 would be `height` high."""
    total = sum(counts)
    if not total:
        return svg.group()
    steps = [(x(edges[at]), base - height * n / total) for at, n in enumerate(counts)]
    return svg.stairs(base, steps, x(edges[-1]), class_=looks)


def _counts(feature: FeatureSummary, subgroup: int) -> Sequence[int]:
    by, place = feature.distribution.by_subgroup, feature.places.get(subgroup, 0)
    return by[place] if place < len(by) else feature.distribution.counts


def _foot(feature: FeatureSummary, x: svg.LinearScale, left: float, height: float) -> list[Markup]:
    """Return ticks below the distributions, or names of levels; and the feature's name."""
    spread, middle, y = feature.distribution, left + _PANEL / 2, height - _FOOT + 12
    if spread.edges:
        labels = [(x(at), words) for at, words in feature.x_labels or x.ticks(4) if x.low <= at <= x.high]
    elif len(spread.levels) > _LEVEL_BARS:
        labels = [(middle, count_of(len(spread.levels), "level"))]
    else:
        room = _PANEL / len(spread.levels)
        names = (svg.shorten(level, room - 2, _SMALL) for level in spread.levels)
        labels = [(left + room * (at + 0.5), name) for at, name in enumerate(names)]
    name = svg.text(middle, y + 16, svg.shorten(feature.feature, _PANEL, _SMALL), text_anchor="middle", class_="name")
    return [*(_tick(at, y, words, left + _PANEL + 6) for at, words in labels), name]


def _tick(at: float, y: float, words: str, right: float) -> Markup:
    """Return a label below its place, or before the right edge of the picture if it would be cut there."""
    fits = at + svg.width_of(words, _SMALL) / 2 <= right
    return svg.text(at if fits else right, y, words, text_anchor="middle" if fits else "end", class_="tick")
