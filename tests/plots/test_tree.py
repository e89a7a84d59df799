"""The picture of a tree."""

from __future__ import annotations

import copy
import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from subgrove._data.table import ColumnInfo
from subgrove.exceptions import ParameterError
from subgrove.plots.tree import MOST_LEAVES, tree
from subgrove.trees import Node, Split, Tree

from .drawn import Drawn, drawn, share, touching
from .hand_made import COLUMNS, LONG, PLAIN, TreeMaker, hand_made_tree

WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
PLACES = tuple(f"Neighbourhood number {number}" for number in range(20))


def words(ax: Axes) -> list[str]:
    """What is written, each text on one line."""
    return drawn(ax).words


def overlaps(picture: Drawn) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes overlap."""
    return touching(picture.texts)


def test_returns_axes_of_a_new_figure(make_tree: TreeMaker) -> None:
    ax = tree(make_tree(2))
    assert isinstance(ax, Axes)
    assert plt.get_fignums() == [1]


def test_draws_on_the_given_axes_and_opens_no_figure(make_tree: TreeMaker) -> None:
    ax = Figure(figsize=(9, 5)).add_subplot()
    assert tree(make_tree(2), ax=ax) is ax
    assert plt.get_fignums() == []


def test_leaves_the_current_axes_of_pyplot_as_they_were(make_tree: TreeMaker) -> None:
    _, (first, second) = plt.subplots(1, 2, figsize=(16, 5))
    plt.sca(second)
    tree(make_tree(2), ax=first)
    assert plt.gca() is second
    assert plt.get_fignums() == [1]
    assert not second.has_data()


def test_leaves_axes_that_share_limits_as_they_were(make_tree: TreeMaker) -> None:
    _, (first, second) = plt.subplots(2, 1, sharex=True, figsize=(10, 9))
    second.plot([3.0, 7.0], [1.0, 2.0])
    before = second.get_xlim(), second.get_ylim()
    tree(make_tree(2), ax=first)
    assert (second.get_xlim(), second.get_ylim()) == before


def test_draws_on_axes_with_a_logarithmic_scale(make_tree: TreeMaker) -> None:
    ax = Figure(figsize=(9, 5)).add_subplot(xscale="log", yscale="log")
    assert overlaps(drawn(tree(make_tree(2), ax=ax))) == []


def test_draws_on_a_part_of_a_figure(make_tree: TreeMaker) -> None:
    part = Figure(figsize=(9, 10), layout="constrained").subfigures(2, 1, squeeze=False)[0, 0]
    assert overlaps(drawn(tree(make_tree(2), ax=part.add_subplot()))) == []


def test_has_a_panel_for_each_leaf_with_one_axis_of_x(make_tree: TreeMaker) -> None:
    grown = make_tree(3)
    panels = tree(grown).child_axes
    assert len(panels) == len(grown.leaves)
    assert {panel.get_xlim() for panel in panels} == {(-5.0, 35.0)}


def test_leaves_have_rows_and_node(make_tree: TreeMaker) -> None:
    grown = make_tree(2)
    shown = words(tree(grown))
    for leaf in grown.leaves:
        assert f"n = {leaf.n:.0f}" in shown
        assert f"node {leaf.id}" in shown


def test_boxes_have_column_and_p_value(make_tree: TreeMaker) -> None:
    shown = words(tree(make_tree(2, columns=PLAIN)))
    assert shown.count("temp") == 1
    assert shown.count("season") == 2
    assert "p < 0.001" in shown
    assert "p = 0.012" in shown


def test_cart_has_no_p_values(make_tree: TreeMaker) -> None:
    shown = words(tree(make_tree(2, columns=PLAIN, method="cart")))
    assert not any(text.startswith("p ") for text in shown)


def test_edges_have_thresholds_levels_and_missing_values(make_tree: TreeMaker) -> None:
    shown = words(tree(make_tree(2, columns=PLAIN)))
    assert "<= 22.19" in shown
    assert "> 22.19 or missing" in shown
    assert "WINTER" in shown
    assert "SPRING, SUMMER, FALL" in shown


def test_a_strict_split_is_written_as_such(make_tree: TreeMaker) -> None:
    shown = words(tree(make_tree(1, columns=PLAIN, method="cart")))
    assert "< 22.19" in shown
    assert ">= 22.19 or missing" in shown


def test_digits_round_thresholds(make_tree: TreeMaker) -> None:
    assert "<= 22" in words(tree(make_tree(1, columns=PLAIN), digits=2))
    assert "<= 22.1914" in words(tree(make_tree(1, columns=PLAIN), digits=6))


@pytest.mark.parametrize(
    ("threshold", "shown"), [(1234567.8, "<= 1234568"), (0.000123456, "<= 0.0001235"), (0.0, "<= 0"), (-2.5, "<= -2.5")]
)
def test_rounding_keeps_the_whole_part(make_tree: TreeMaker, threshold: float, shown: str) -> None:
    assert shown in words(tree(_with_split(make_tree(1), Split("hum", "numeric", threshold), PLAIN)))


def test_missing_values_split_from_all_others_are_said_so(make_tree: TreeMaker) -> None:
    shown = words(tree(_with_split(make_tree(1), Split("temp", "numeric", None, missing="right"), PLAIN)))
    assert "is missing" in shown
    assert "is not missing" in shown


def test_missing_values_split_from_all_levels_are_said_so(make_tree: TreeMaker) -> None:
    split = Split(COLUMNS[2].name, "nominal", levels=(LONG, ()), missing="right")
    shown = words(tree(_with_split(make_tree(1), split, COLUMNS)))
    assert "is missing" in shown
    assert "is not missing" in shown


def test_levels_excluded_above_are_left_out(make_tree: TreeMaker) -> None:
    season = ColumnInfo("season", "nominal", ("WINTER", "SPRING", "SUMMER", "FALL"))
    shown = words(tree(make_tree(2, columns=(season,))))
    assert shown.count("WINTER") == 1
    assert "SUMMER, FALL" in shown


def test_dates_are_written_as_dates(make_tree: TreeMaker) -> None:
    split = Split("entry", "numeric", 1307880000e6)
    assert "<= 2011-06-12 12:00" in words(tree(_with_split(make_tree(1), split, COLUMNS)))


def test_long_lists_say_how_many_more_there_are(make_tree: TreeMaker) -> None:
    shown = words(tree(make_tree(1, columns=COLUMNS[2:])))
    assert any(text.endswith("more or missing") for text in shown)


def test_a_name_is_shortened_in_one_place(make_tree: TreeMaker) -> None:
    name = "a very long name of a numeric column of which there are many"
    ax = Figure(figsize=(6, 5)).add_subplot()
    shown = words(tree(make_tree(2, columns=(ColumnInfo(name, "numeric"),)), ax=ax))
    (box,) = {text for text in shown if text.startswith("a very")}
    assert box.count("\N{HORIZONTAL ELLIPSIS}") == 1


def test_names_are_no_formulas(make_tree: TreeMaker) -> None:
    column = ColumnInfo("cost $x$", "nominal", ("$a_b$", "x^2 $"))
    shown = words(tree(make_tree(1, columns=(column,), levels=("$u$", "v_$"))))
    assert {"cost $x$", "$a_b$", "x^2 $", "$u$", "v_$"} <= set(shown)


PICTURES: dict[str, dict[str, Any]] = {
    "depth 2, long names": {"depth": 2, "columns": COLUMNS[2:]},
    "depth 3, long names": {"depth": 3},
    "depth 3, long names only": {"depth": 3, "columns": (COLUMNS[2],)},
    "depth 4": {"depth": 4},
    "root only": {"depth": 0},
    "7 levels": {"depth": 2, "levels": WEEKDAYS},
    "20 levels": {"depth": 3, "levels": PLACES},
    "12 long levels": {"depth": 1, "levels": LONG},
    "200 levels": {"depth": 2, "levels": tuple(f"level {number}" for number in range(200))},
    "100 short levels": {"depth": 1, "levels": tuple(chr(number) for number in range(192, 292))},
    "one level": {"depth": 0, "levels": ("only",)},
    "cart": {"depth": 3, "method": "cart"},
    "depth 6": {"depth": 6, "columns": PLAIN},
}


@functools.cache
def picture(what: str) -> Drawn:
    """One of the plots, drawn once for all tests."""
    return drawn(tree(hand_made_tree(**PICTURES[what])))


@pytest.mark.parametrize("what", PICTURES)
def test_no_text_overlaps_another(what: str) -> None:
    assert overlaps(picture(what)) == []


@pytest.mark.parametrize("what", PICTURES)
def test_all_text_is_inside_the_figure(what: str) -> None:
    whole = picture(what).whole.padded(1)
    out = [
        text
        for text, box in picture(what).texts
        if not (whole.contains(box.x0, box.y0) and whole.contains(box.x1, box.y1))
    ]
    assert out == []


@pytest.mark.parametrize("what", PICTURES)
def test_no_line_runs_through_a_text(what: str) -> None:
    seen = picture(what)
    crossed = [
        text for text, box in seen.texts for line in seen.lines if line.intersects_bbox(box.padded(-0.5), filled=False)
    ]
    assert crossed == []


@pytest.mark.parametrize("what", PICTURES)
def test_text_stays_out_of_panels(what: str) -> None:
    seen = picture(what)
    assert [text for text, box in seen.own for panel in seen.panels if share(box, panel)] == []


@pytest.mark.parametrize("what", PICTURES)
def test_text_in_a_box_stays_in_it(what: str) -> None:
    for box in picture(what).boxes:
        inside = [text for _, text in picture(what).own if share(text, box)]
        assert inside
        assert all(box.x0 <= text.x0 and text.x1 <= box.x1 for text in inside)
        assert all(box.y0 <= text.y0 and text.y1 <= box.y1 for text in inside)


@pytest.mark.parametrize("size", [(6.4, 4.8), (9.0, 4.0), (5.5, 9.0), (20.0, 10.0)])
@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_fits_axes_of_many_sizes(make_tree: TreeMaker, size: tuple[float, float], layout: Any) -> None:
    ax = Figure(figsize=size, layout=layout).add_subplot()
    tree(make_tree(2), ax=ax)
    assert overlaps(drawn(ax)) == []


def test_axes_that_are_too_small_are_rejected_with_the_size_needed(make_tree: TreeMaker) -> None:
    ax = Figure(figsize=(2, 1)).add_subplot()
    with pytest.raises(ParameterError, match=r"ax is .* inches, too small .* at least .* tree\.prune\(2\)"):
        tree(make_tree(3), ax=ax)


def test_rejected_axes_are_left_as_they_were(make_tree: TreeMaker) -> None:
    ax = Figure(figsize=(2, 1)).add_subplot()
    with pytest.raises(ParameterError):
        tree(make_tree(3), ax=ax)
    assert ax.axison
    assert ax.get_xlim() == (0, 1)


def test_too_many_leaves_are_rejected_with_a_remedy(make_tree: TreeMaker) -> None:
    with pytest.raises(ParameterError, match=r"128 leaves, and at most 64 .* Prune it first: tree\.prune\(6\)"):
        tree(make_tree(7, columns=PLAIN))
    assert plt.get_fignums() == []


def test_as_many_leaves_as_are_allowed_are_drawn(make_tree: TreeMaker) -> None:
    assert len(tree(make_tree(6, columns=PLAIN)).child_axes) == MOST_LEAVES


def test_does_not_alter_the_tree(make_tree: TreeMaker) -> None:
    grown = make_tree(3)
    before = copy.deepcopy(grown.to_dict())
    tree(grown)
    assert grown.to_dict() == before


@pytest.mark.parametrize("wrong", [None, "tree", {"nodes": ()}])
def test_something_else_than_a_tree_is_rejected_by_name(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^tree must be a grown Tree.*; got \w+\.$"):
        tree(wrong)


def test_something_else_than_axes_is_rejected_by_name(make_tree: TreeMaker) -> None:
    with pytest.raises(ParameterError, match=r"^ax must be matplotlib Axes or None .*; got Figure\.$"):
        tree(make_tree(1), ax=Figure())  # type: ignore[arg-type]  # it is rejected


def test_axes_without_a_figure_are_rejected(make_tree: TreeMaker) -> None:
    ax = Figure().add_subplot()
    ax.remove()
    with pytest.raises(ParameterError, match="ax has been removed from its figure"):
        tree(make_tree(1), ax=ax)


@pytest.mark.parametrize("digits", [0, -1, 2.5, True])
def test_digits_that_are_no_positive_whole_number_are_rejected(make_tree: TreeMaker, digits: Any) -> None:
    with pytest.raises(ParameterError, match="digits must be a whole number >= 1"):
        tree(make_tree(1), digits=digits)


@pytest.mark.parametrize(
    "ends", [(3.0, 3.0), (-1e308, 1e308), (1e9, 1e9 + 1e-3), (0.0, 1e-12), (0.0, 1e-320), (1e6, 5e6), (1e308, 1e308)]
)
def test_any_range_of_x_is_drawn(make_tree: TreeMaker, ends: tuple[float, float]) -> None:
    step = np.linspace(0, 1, 49)
    ax = tree(make_tree(1, edges=tuple((ends[0] * (1 - step) + ends[1] * step).tolist())))
    assert overlaps(drawn(ax)) == []


def test_dates_as_x_have_dates_on_the_axis(make_tree: TreeMaker) -> None:
    when = ColumnInfo("when", "numeric", is_date=True)
    edges = tuple(np.linspace(1300000000e6, 1400000000e6, 49).tolist())
    shown = words(tree(make_tree(1, columns=PLAIN, target=when, edges=edges)))
    assert {"2012", "2013", "2014"} <= set(shown)


@pytest.mark.parametrize("days", [0.0, 1e-11, 1e-8, 1e-4, 0.1, 1.0, 40.0, 400.0, 40_000.0, 4_000_000.0])
def test_any_range_of_dates_is_drawn(make_tree: TreeMaker, days: float) -> None:
    when = ColumnInfo("when", "numeric", is_date=True)
    edges = tuple((1300000000e6 + np.linspace(0, days * 86400e6, 49)).tolist())
    assert overlaps(drawn(tree(make_tree(1, columns=PLAIN, target=when, edges=edges)))) == []


def test_levels_stand_below_the_bars(make_tree: TreeMaker) -> None:
    assert set(WEEKDAYS) <= set(words(tree(make_tree(2, levels=WEEKDAYS))))


def test_bars_are_shares_of_the_rows_of_the_leaf(make_tree: TreeMaker) -> None:
    grown = make_tree(1, levels=WEEKDAYS)
    panel = tree(grown).child_axes[0]
    everything, leaf = panel.containers
    heights = [[patch.get_height() for patch in bars] for bars in (everything, leaf)]
    np.testing.assert_allclose(heights[0], grown.nodes[0].counts / grown.nodes[0].n)
    np.testing.assert_allclose(heights[1], grown.leaves[0].counts / grown.leaves[0].n)


def test_a_leaf_of_one_value_among_wide_ones_gets_its_own_scale_and_a_note(make_tree: TreeMaker) -> None:
    grown = make_tree(2)
    spike = np.zeros(48)
    spike[7] = grown.nodes[2].n
    nodes = [replace(node, counts=spike) if node.id == 3 else node for node in grown.nodes]
    assert "each leaf on its own scale" in words(tree(replace(grown, nodes=tuple(nodes))))
    assert "each leaf on its own scale" not in words(tree(grown))


def test_a_chain_of_splits_is_drawn(make_tree: TreeMaker) -> None:
    ax = tree(_chain(8))
    assert len(ax.child_axes) == 9
    assert overlaps(drawn(ax)) == []


def test_weights_give_counts_with_decimals(make_tree: TreeMaker) -> None:
    grown = make_tree(0)
    assert "n = 12.25" in words(tree(replace(grown, nodes=(replace(grown.nodes[0], n=12.25),))))


def _with_split(grown: Tree, split: Split, columns: tuple[ColumnInfo, ...]) -> Tree:
    return replace(grown, columns=columns, nodes=(replace(grown.nodes[0], split=split), *grown.nodes[1:]))


def _chain(length: int) -> Tree:
    """A tree in which every left child is a leaf."""
    nodes = []
    for place in range(length):
        id_, parent = 2 * place + 1, 2 * place - 1 if place else None
        counts = np.ones(48) * 2 * (length - place)
        split = Split("temp", "numeric", float(place), missing="right")
        nodes.append(Node(id_, parent, place, 100.0, counts, (id_ + 1, id_ + 2), split, p_value=0.01))
        nodes.append(Node(id_ + 1, id_, place + 1, 10.0, np.ones(48)))
    nodes.append(Node(2 * length + 1, 2 * length - 1, length, 10.0, np.ones(48)))
    return Tree(
        "transformation", ColumnInfo("x", "numeric"), PLAIN, tuple(nodes), tuple(np.linspace(0, 1, 49).tolist()), {}
    )
