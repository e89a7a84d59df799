"""Plot of data fidelity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from subgrove._core.html_views import plot_of
from subgrove._core.kinds import Floats
from subgrove._core.validate import whole_number
from subgrove._fidelity import Fidelity
from subgrove._fidelity.compare import MARGINAL, UNCHANGED
from subgrove.plots._figure import check_type
from subgrove.plots._palette import GREY
from subgrove.plots._rows import RowEntry, RowLabels, RowSeries, draw_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REMEDY = ", keep fewer features with top="
_BAR: dict[str, Any] = {"color": GREY, "alpha": 0.45, "linewidth": 5, "solid_capstyle": "butt"}


@plot_of.register(Fidelity)
def fidelity(result: Fidelity, *, ax: Axes | None = None, top: int | None = None) -> Axes:
    """Draw data fidelity: for each feature the samplers as points, between the two bounds.

    A grey bar reaches from the fidelity of a marginal permutation to that of unchanged rows. Features with the longest
    bars are at the top: the choice of the sampler is important there. Where a bar is short, any sampler is sufficient.

    Parameters
    ----------
    result : Fidelity
        Result of `fidelity`.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure of suitable height.
    top : int, optional
        Number of features to draw, those with the longest bars; all by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. Features are its rows, from 0 at the top.

    Notes
    -----
    How to read it: further right is better. The line through a point has two standard errors on either side; they
    are those of the position between the bounds, since noise that is common to all samplers does not separate them.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> options = {"features": ["temp", "hum"], "classifier": False, "random_state": 1}
    >>> ax = sg.plots.fidelity(sg.fidelity(train.X, test.X, samplers=["subgroups", "knockoffs"], **options))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['from marginal to unchanged', 'subgroups', 'knockoffs']
    """
    check_type("result", result, Fidelity, "what fidelity returned")
    from matplotlib.lines import Line2D

    bars = result.estimates.mean(axis=2)[:, [result.samplers.index(name) for name in (MARGINAL, UNCHANGED)]]
    order = np.argsort(-(bars[:, 1] - bars[:, 0]), kind="stable")
    n_features = len(order)
    order = order[: None if top is None else whole_number("top", top, least=1)]
    bars = bars[order]
    ax = draw_rows(
        ax,
        RowLabels([RowEntry(result.features[at]) for at in order], n_below=0, remedy=_REMEDY, zero=False),
        list(_series(result, order, bars[:, 1] - bars[:, 0])),
        label="data fidelity (-log of the squared MMD)",
        text=_note(result, n_features - len(order)),
        legend={f"from {MARGINAL} to {UNCHANGED}": Line2D([], [], **_BAR)},
    )
    for row, (low, high) in enumerate(bars.tolist()):
        ax.plot([low, high], [row, row], zorder=1.8, **_BAR)
    return ax


def _series(result: Fidelity, order: npt.NDArray[np.intp], lengths: Floats) -> Iterator[RowSeries]:
    """The points of each sampler, with two standard errors of their position between the ends of the bars."""
    table = replace(result, backend="pandas").table
    for name in result.samplers:
        if name in (MARGINAL, UNCHANGED):
            continue
        own = table[table["sampler"] == name].iloc[order]
        reach = 2 * own["position_std_error"].to_numpy(float) * lengths
        values = own["estimate"].to_numpy(float)
        yield RowSeries(name, values, values - reach, values + reach)


def _note(result: Fidelity, left_out: int) -> str:
    parts = [f"{result.n} resampled rows against {result.n_reference}"]
    if result.settings.get("n_repeats", 1) > 1:
        parts.append("lines: two standard errors of the position between the bounds")
    if result.notes:
        parts.append(f"{len(result.notes)} without a point: see the column note of the table")
    if left_out:
        parts.append(f"{left_out} feature{'s' * (left_out > 1)} with shorter bars left out")
    return "; ".join(parts)
