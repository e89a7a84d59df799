"""A picture of the importance of a feature as conditioning columns are added."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from subgrove._importance import RelativeImportance
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import check_axes, make_room, note, room_of
from subgrove.plots._labels import Entry
from subgrove.plots._palette import GREY
from subgrove.plots._results import interval_text, loss_label, one_loss
from subgrove.plots._rows import LEFT_FOR_ROWS, Rows, Series, draw_rows, draw_series, frame_rows, high_enough, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def relative_importance(result: RelativeImportance, *, ax: Axes | None = None, loss: str | None = None) -> Axes:
    """A picture of relative importance: a point and an interval for each step, from no column at the top to all.

    Parameters
    ----------
    result : RelativeImportance
        What `relative_importance` returned.
    ax : matplotlib Axes, optional
        Where to draw. A new figure that is as high as needed if not given.
    loss : str, optional
        Which loss, if there are several; the first if not given.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. Steps are its rows, from 0 at the top.

    Notes
    -----
    How to read it: where the line goes to the left, the column that was added tells part of what the feature tells.
    Intervals of two steps that overlap may still differ, since both are of the same rows: `result.table` has the
    standard error of each change.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> model = lambda X: 2000 + 100 * X["temp"]
    >>> asked = {"order": ["season", "hum"], "train": train.X, "loss": "absolute_error", "random_state": 1}
    >>> ax = sg.plots.relative_importance(sg.relative_importance(model, test.X, test.y, "temp", **asked))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['temp given nothing', '+ season', '+ hum', '+ the other 6 columns']
    """
    if not isinstance(result, RelativeImportance):
        raise ParameterError(f"result must be what relative_importance returned; got {type(result).__name__}.")
    check_axes(ax)
    steps = tuple(one_loss(one, loss) for one in result.results)
    shown = replace(result, results=steps, backend="pandas")
    table = shown.table
    names = [f"{result.feature} given nothing", *(f"+ {name}" for name in result.added[1:])]
    rows = Rows(tuple(Entry(name) for name in names), n_names=2, n_below=0)
    ax = new_axes(rows, 1) if ax is None else high_enough(ax, rows)
    within = room_of(ax)
    frame_rows(ax, [], loss_label(steps[0]))
    if steps[0].per_row_losses[0]:
        note(ax, interval_text([steps[0].level], [" + ".join(steps[0].covered)]), LEFT_FOR_ROWS)
    else:
        note(ax, "no intervals: a score of all rows together", LEFT_FOR_ROWS)
    estimate, low, high = (table[name].to_numpy(float) for name in ("estimate", "conf_low", "conf_high"))
    pitch = draw_rows(ax, rows, within)
    ax.plot(estimate, range(len(names)), color=GREY, linewidth=1.0, zorder=1.8)
    draw_series(ax, [Series(result.feature, estimate, low, high)], pitch)
    make_room(ax, within)
    return ax
