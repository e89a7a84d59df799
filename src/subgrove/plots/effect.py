"""A picture of the effect of a feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subgrove._effects import Effect
from subgrove.plots._figure import check_axes, check_interval, new_figure
from subgrove.plots._lines import read_effects
from subgrove.plots._panel import legend_height, panel_of
from subgrove.plots._panel_drawing import draw_panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _WIDEST, _HEIGHT = 6.4, 12.0, 4.0  # in inches


def effect(
    effect: Effect | Mapping[str, Effect],
    *others: Effect,
    ax: Axes | None = None,
    output: Any = None,
    interval: bool | None = None,
) -> Axes:
    """A picture of the effect of a feature: curves, and below them where the data lie.

    A curve is drawn like a box plot of the feature in its rows: bold between the quartiles, thin to the whiskers, and
    as points at outliers. Levels have boxes of the predictions instead, ICE curves a thin line for each row (the more
    opaque the denser the feature lies there, if there are subgroups), and two features a heat map, or a line for each
    level of one of them.

    Parameters
    ----------
    effect : Effect, or mapping from label to Effect
        What `effect` returned. Subgroups, or outputs of the model, have a curve each.
    *others : Effect
        Effects of the same feature to draw on the same axes. ALE curves, whose mean is 0, are moved to the height of
        the others, and the legend says by how much.
    ax : matplotlib Axes, optional
        Where to draw. A new figure if not given.
    output : label or int, optional
        Which of `effect.outputs`: its label, or its number among them; all if not given.
    interval : bool, optional
        Whether intervals are drawn; by default if there is one curve. Boxes and ICE curves have none.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. Dates are days on the axis of x, levels are 0, 1, 2 and so on.

    Notes
    -----
    How to read it: what is thin, or a single point, rests on few rows. The change of height from one subgroup to the
    next is due to the columns in the rules, the slope within a subgroup to the feature. Thresholds in rules are
    rounded; `effect.curves` has the exact rules. Of many ICE curves, 300 are drawn.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 100 * X["temp"] * (X["hum"] < 70) + 1000 * (X["season"] == "SUMMER")
    >>> groups = sg.find_subgroups(train.X, features="temp", max_depth=1)
    >>> ax = sg.plots.effect(sg.effect(model, test.X, "temp", subgroups=groups))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['season in {WINTER, SPRING, FALL} (n = 167)', 'season in {SUMMER} (n = 52)']

    The mean over all rows beside accumulated local effects:

    >>> pdp, ale = (sg.effect(model, test.X, "temp", kind=kind) for kind in ("pdp", "ale"))
    >>> ax = sg.plots.effect(pdp, ale)
    >>> ax.get_xlabel()
    'temp'
    """
    effects = read_effects(effect, others)
    check_axes(ax)
    check_interval(interval)
    panel = panel_of(effects, output, interval)
    if ax is None:
        width = max(_WIDTH, min(panel.level_room + 1.2, _WIDEST))
        ax = new_figure(width, _HEIGHT + legend_height(panel, 0.85 * width)).add_subplot()
    draw_panel(ax, panel)
    return ax
