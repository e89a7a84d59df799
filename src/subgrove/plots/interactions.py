"""Plot of the strength of interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subgrove._core.html_views import plot_of
from subgrove._core.validate import whole_number
from subgrove._effects import InteractionStrength
from subgrove._effects.interaction_strength import PairStrength
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import require_matplotlib, short_rule
from subgrove.plots._rows import RowEntry, RowLabels, RowSeries, draw_rows, draw_series, handle
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
    require_matplotlib()
    if not isinstance(result, InteractionStrength):
        raise ParameterError(f"result must be an InteractionStrength; got {type(result).__name__}.")
    by_pair: dict[tuple[str, str], list[PairStrength]] = {}
    for each in sorted(result.pairs, key=lambda each: -each.strength):
        by_pair.setdefault((each.feature, each.other), []).append(each)
    shown = dict(list(by_pair.items())[: whole_number("top", top, least=1)])
    if not shown:
        raise ParameterError("The result has no pairs: no subgroup has two rows.")
    labels = {(repr(each.output), each.subgroup): _label(each, result) for each in result.pairs}
    series = []
    for key, label in labels.items():
        values = np.array([_strength_of(some, key) for some in shown.values()])
        series.append(RowSeries(label, values, np.zeros(len(values)), values))
    entries = [
        RowEntry(f"{one} and {other}", (f"H² {max(each.h_squared for each in some):.2f}",))
        for (one, other), some in shown.items()
    ]
    unit = "margin" if result.scale == "margin" else "prediction"
    ax = draw_rows(
        ax,
        RowLabels(tuple(entries), n_below=1, remedy=", draw fewer pairs with top="),
        label=f"strength of the interaction (standard deviation, in units of the {unit})",
        text=_note(result, len(by_pair) - len(shown)),
        legend={one.label: handle(place) for place, one in enumerate(series)} if len(series) > 1 else None,
    )
    draw_series(ax, series)
    return ax


def _label(pair: PairStrength, result: InteractionStrength) -> str:
    several = len({repr(each.output) for each in result.pairs}) > 1
    parts = [f"output {pair.output}"] * several + [short_rule(pair.rule)] * (pair.rule != ALL_ROWS)
    return ", ".join(parts) or "all rows"


def _strength_of(pairs: list[PairStrength], key: tuple[str, int]) -> float:
    return next((each.strength for each in pairs if (repr(each.output), each.subgroup) == key), np.nan)


def _note(result: InteractionStrength, left_out: int) -> str:
    more = f"; {left_out} weaker pair{'s' * (left_out > 1)} left out" if left_out else ""
    return f"{sum({each.subgroup: each.n for each in result.pairs}.values())} rows{more}"
