"""Plots of the effects of features, in one panel or side by side, and of the strength of interactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.html_views import plot_of
from subgrove._core.validate import whole_number
from subgrove._effects import Effect, InteractionStrength
from subgrove._effects.interaction_strength import PairStrength
from subgrove.exceptions import ParameterError
from subgrove.plots import _figure
from subgrove.plots._curves import draw_color_bar
from subgrove.plots._figure import POINTS, legend_height, new_figure, short_rule, wrap
from subgrove.plots._lines import outputs_of, read_effects
from subgrove.plots._palette import font_size
from subgrove.plots._panel import EffectPanel, draw_panel, panel_of
from subgrove.plots._rows import RowEntry, RowLabels, RowSeries, draw_rows
from subgrove.trees.nodes import ALL_ROWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _WIDEST, _HEIGHT = 6.4, 12.0, 4.0  # in inches


@plot_of.register(Effect)
def effect(
    effect: Effect | Mapping[str, Effect],
    *others: Effect,
    ax: Axes | None = None,
    output: Any = None,
    interval: bool | None = None,
) -> Axes:
    """Draw the effect of a feature: curves, and below them the distribution of the feature.

    A curve is drawn like a box plot of the feature in its rows: bold between the quartiles, thin to the whiskers, and
    as points at outliers. Levels have boxes of the predictions instead, ICE curves a thin line for each row (the more
    opaque the denser the feature there, if there are subgroups), and two features a heat map, or a line for each
    level of one of them.

    Parameters
    ----------
    effect : Effect, or mapping from label to Effect
        Result of `effect`. Subgroups, or outputs of the model, have a curve each.
    *others : Effect
        Effects of the same feature to draw on the same axes. ALE curves, whose mean is 0, are moved to the height of
        the others, and the legend says by how much.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.
    output : label or int, optional
        Label or position of one of `effect.outputs`; all by default.
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
    _figure.require_matplotlib()
    effects = read_effects(effect, others)
    _figure.check_axes(ax)
    panel = panel_of(effects, output, interval)
    if ax is None:
        width = max(_WIDTH, min(panel.level_room + 1.2, _WIDEST))
        ax = new_figure(width, _HEIGHT + legend_height(panel.labels, 0.85 * width)).add_subplot()
    draw_panel(ax, panel)
    return ax


_PANEL_WIDTH, _PANEL_HEIGHT = 4.2, 3.4  # of a panel, in inches
_COLUMNS = 3


def effects(
    *panels: Effect | Sequence[Effect] | Mapping[str, Effect],
    output: Any = None,
    interval: bool | None = None,
    columns: int | None = None,
) -> tuple[Axes, ...]:
    """Draw effects side by side, on the same scale: the PDP beside those of subgroups, or several features.

    Parameters
    ----------
    *panels : Effect, list of Effect, or mapping from label to Effect
        The content of each panel, as in `plots.effect`; a list is drawn in one panel. An effect of several outputs
        in subgroups has a panel for each output, two features in subgroups have one for each subgroup.
    output : label or int, optional
        Label or position of one of `effect.outputs`; all by default.
    interval : bool, optional
        Whether intervals are drawn; by default in panels with one curve.
    columns : int, optional
        Panels beside each other, at most 3 if not given.

    Returns
    -------
    tuple of matplotlib Axes
        The panels, of one new figure. Panels that show the same thing share the axis of y.

    Notes
    -----
    To place panels yourself, make the axes and call `plots.effect(..., ax=ax)` for each:
    `plt.subplots(1, 2, sharey=True, layout="constrained")`.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 100 * X["temp"] * (X["hum"] < 70) + 1000 * (X["season"] == "SUMMER")
    >>> groups = sg.find_subgroups(train.X, features="temp")
    >>> pdp, ale = (sg.effect(model, test.X, "temp", kind=kind) for kind in ("pdp", "ale"))
    >>> in_subgroups = sg.effect(model, test.X, "temp", subgroups=groups)
    >>> left, right = sg.plots.effects([pdp, ale], in_subgroups)
    >>> left.get_ylim() == right.get_ylim()
    True
    """
    _figure.require_matplotlib()
    if not panels:
        raise ParameterError("effects needs at least one panel: an Effect, or a list of Effects that share axes.")
    parts = [part for each in panels for part in _parts(each, output, interval)]
    n_columns = min(len(parts), _COLUMNS if columns is None else whole_number("columns", columns, least=1))
    axes = _new_axes(parts, n_columns)
    limits = _limits(parts)
    for place, (ax, part) in enumerate(zip(axes, parts, strict=True)):
        draw_panel(ax, part, limits=limits, legend=place == 0 or part.labels != parts[0].labels)
        if part.title:
            title = wrap(short_rule(part.title), 0.75 * _PANEL_WIDTH * POINTS, font_size())
            ax.set_title(title, size=font_size(), loc="left", parse_math=False)
        left = parts[place - 1]
        if place % n_columns and part.surface is None and (part.words, part.output) == (left.words, left.output):
            ax.set_ylabel("")
    if limits is not None:
        draw_color_bar(axes, parts[-1].y_label)
    return axes


def _parts(each: Any, output: Any, interval: bool | None) -> Iterator[EffectPanel]:
    """The panels of what the user wants in one."""
    several = isinstance(each, Effect) and len(each.lines) > 1
    surface = isinstance(each, Effect) and len(each.infos) == 2
    selected = outputs_of(each, output) if isinstance(each, Effect) else ()
    if len(selected) > 1 and (surface or several):
        for at in selected:
            yield from _parts(each, each.outputs[at], interval)
    elif surface and several:
        for curve in each.lines:
            group = each.groups[curve.subgroup]
            alone = replace(each, lines=(replace(curve, subgroup=0),), groups=(group,), subgroups=None)
            yield replace(panel_of(read_effects(alone, ()), output, interval), title=group.rule)
    elif isinstance(each, Sequence) and not isinstance(each, str) and each:
        yield panel_of(read_effects(each[0], each[1:]), output, interval)
    else:
        yield panel_of(read_effects(each, ()), output, interval)


def _new_axes(panels: Sequence[EffectPanel], n_columns: int) -> tuple[Axes, ...]:
    """Axes of a new figure that is high enough for the legends."""
    legends = [legend_height(panel.labels, 0.75 * _PANEL_WIDTH) for panel in panels]
    height = sum(_PANEL_HEIGHT + max(legends[at : at + n_columns]) for at in range(0, len(panels), n_columns))
    figure = new_figure(_PANEL_WIDTH * n_columns, height)
    shared = len({panel.y_scale for panel in panels}) == 1 and panels[0].surface is None
    grid = figure.subplots(-(-len(panels) // n_columns), n_columns, sharey=shared, squeeze=False).ravel()
    for spare in grid[len(panels) :]:
        spare.remove()
    return tuple(grid[: len(panels)])


def _limits(panels: Sequence[EffectPanel]) -> tuple[float, float] | None:
    """The colours that surfaces share, if there are several and nothing else."""
    values = [panel.surface.y for panel in panels if panel.surface is not None]
    if len(values) < 2 or len(values) < len(panels) or len({panel.y_label for panel in panels}) > 1:
        return None
    return float(np.nanmin(np.concatenate(values))), float(np.nanmax(np.concatenate(values)))


@plot_of.register(InteractionStrength)
def interaction_strength(result: InteractionStrength, *, ax: Axes | None = None, top: int = 15) -> Axes:
    """Draw the strength of interactions: a row for each pair of features, the strongest at the top.

    Points are the standard deviation of the interaction, in units of the prediction (or margin); H-squared is below the
    names. Subgroups and outputs have points of their own.

    Parameters
    ----------
    result : InteractionStrength
        Result of `InteractionStrength.compute`.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure of suitable height.
    top : int, default 15
        Number of pairs to draw, the strongest ones.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. Pairs are its rows, from 0 at the top.

    Examples
    --------
    >>> import subgrove as sg
    >>> model = lambda X: X["temp"] * X["hum"] + X["wind"]
    >>> X = sg.datasets.bike().X[["temp", "hum", "wind"]]
    >>> found = sg.InteractionStrength.compute(model, X, n_points=20, random_state=1)
    >>> ax = sg.plots.interaction_strength(found, top=2)
    """
    _figure.check_type("result", result, InteractionStrength, "an InteractionStrength")
    h_squared: dict[tuple[str, str], float] = {}
    for each in sorted(result.pairs, key=lambda each: -each.strength):
        pair = each.feature, each.other
        h_squared[pair] = max(h_squared.get(pair, each.h_squared), each.h_squared)
    shown = list(h_squared)[: whole_number("top", top, least=1)]
    if not shown:
        raise ParameterError("The result has no pairs: no subgroup has two rows.")
    by_series: dict[tuple[str, int], dict[tuple[str, str], PairStrength]] = {}
    for each in result.pairs:
        by_series.setdefault((repr(each.output), each.subgroup), {})[each.feature, each.other] = each
    series = []
    for own in by_series.values():
        values = np.array([own[pair].strength if pair in own else np.nan for pair in shown])
        series.append(RowSeries(_label(next(iter(own.values())), result), values, np.zeros(len(values)), values))
    entries = [RowEntry(f"{pair[0]} and {pair[1]}", (f"H² {h_squared[pair]:.2f}",)) for pair in shown]
    unit = "margin" if result.scale == "margin" else "prediction"
    rows = RowLabels(entries, n_below=1, remedy=", draw fewer pairs with top=")
    label = f"strength of the interaction (standard deviation, in units of the {unit})"
    return draw_rows(ax, rows, series, label=label, text=_note(result, len(h_squared) - len(shown)))


def _label(pair: PairStrength, result: InteractionStrength) -> str:
    several = len({repr(each.output) for each in result.pairs}) > 1
    parts = [f"output {pair.output}"] * several + [short_rule(pair.rule)] * (pair.rule != ALL_ROWS)
    return ", ".join(parts) or "all rows"


def _note(result: InteractionStrength, left_out: int) -> str:
    more = f"; {left_out} weaker pair{'s' * (left_out > 1)} left out" if left_out else ""
    return f"{sum({each.subgroup: each.n for each in result.pairs}.values())} rows{more}"
