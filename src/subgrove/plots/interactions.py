"""Plot of the strength of interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subgrove._core.html_views import plot_of
from subgrove._core.validate import whole_number
from subgrove._effects import InteractionStrength
from subgrove._effects.interaction_strength import PairStrength
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import check_type, short_rule
from subgrove.plots._rows import RowEntry, RowLabels, RowSeries, draw_rows
from subgrove.trees.nodes import ALL_ROWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    check_type("result", result, InteractionStrength, "an InteractionStrength")
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
