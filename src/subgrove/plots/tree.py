"""Plot of a fitted tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subgrove._core.validate import whole_number
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import POINTS, check_axes, new_figure, size_of
from subgrove.plots._tree_drawing import draw_tree
from subgrove.plots._tree_layout import LEAST_SCALE, TreeLayout, fitting_layout, natural_layout
from subgrove.trees.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        layout, scale = natural_layout(tree, digits), 1.0
        ax = new_figure(layout.width / POINTS + _AROUND, layout.height / POINTS + _AROUND).add_subplot()
    else:
        layout, scale = _layout_on(ax, tree, digits, remedy)
    ax.set_axis_off()
    draw_tree(ax, tree, layout, scale)
    return ax


def _check(tree: Any, remedy: str) -> None:
    if not isinstance(tree, Tree):
        raise ParameterError(
            f"tree must be a grown Tree, which fit returns as in TransformationTree().fit(X, x), or a Partition as in "
            f"find_subgroups(X)['temp']; got {type(tree).__name__}."
        )
    n = len(tree.leaves)
    if n > MOST_LEAVES:
        depth = next(depth for depth in range(tree.depth, -1, -1) if len(tree.prune(depth).leaves) <= MOST_LEAVES)
        raise ParameterError(
            f"tree has {n} leaves, and at most {MOST_LEAVES} can be distinguished in a picture. "
            f"Prune it first: tree.{remedy}({depth}). tree.text() prints all of it."
        )


def _layout_on(ax: Axes, tree: Tree, digits: int, remedy: str) -> tuple[TreeLayout, float]:
    """The layout for axes as they are once their figure has given them their place, and the scale of its texts."""
    was_on = ax.axison
    ax.set_axis_off()  # or the figure makes room for ticks
    width, height = size_of(ax)
    layout = fitting_layout(tree, digits, width, height)
    scale = layout.scale(width, height)
    if scale < LEAST_SCALE:
        if was_on:
            ax.set_axis_on()
        needed = LEAST_SCALE * layout.width / POINTS, LEAST_SCALE * layout.height / POINTS
        raise ParameterError(
            f"ax is {width / POINTS:.1f} x {height / POINTS:.1f} inches, too small to write {len(tree.leaves)} leaves: "
            f"at least {needed[0]:.1f} x {needed[1]:.1f} are needed. Enlarge the figure, leave ax out, or prune the "
            f"tree first: tree.{remedy}({max(tree.depth - 1, 0)})."
        )
    return layout, scale
