"""Plot of the importance of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from subgrove._core.validate import whole_number
from subgrove._importance import ImportanceResult
from subgrove.plots._figure import check_axes, note
from subgrove.plots._results import ImportanceRows, fidelity_note, importance_rows, interval_note, read_results
from subgrove.plots._rows import (
    LEFT_FOR_ROWS,
    RowEntry,
    RowLabels,
    check_height,
    draw_rows,
    draw_series,
    frame_rows,
    new_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_FEW = 15  # features whose conditioning may take two lines
_REMEDY = ", keep fewer features with top="


def importance(
    result: ImportanceResult | Mapping[str, ImportanceResult],
    *others: ImportanceResult,
    ax: Axes | None = None,
    top: int | None = None,
    loss: str | None = None,
) -> Axes:
    """Draw the importance of features: a point and an interval for each, the largest at the top.

    Below the name of a feature stand the columns that it is conditioned on, if there are any. Several results are
    drawn beside each other, for example the marginal beside the conditional importance.

    Parameters
    ----------
    result : ImportanceResult, or mapping from label to ImportanceResult
        Result of `importance`. Without labels, results are named after their sampler.
    *others : ImportanceResult
        Results to draw beside it.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure of suitable height.
    top : int, optional
        Number of features to draw, those with the largest estimates of the first result; all by default.
    loss : str, optional
        Name of the loss, if there are several; the first by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. Features are its rows, from 0 at the top.

    Notes
    -----
    How to read it: the interval covers the noise that the note names, for this model and these subgroups. Two intervals
    of the same feature that overlap may still differ, since both results are of the same rows:
    `result.compare(other)` has the interval of the difference. A point with an exclamation mark failed the fidelity
    check; `result.fidelity_checks` has the reason.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> groups = sg.find_subgroups(train.X, features=["temp", "yr"])
    >>> conditional = sg.importance(model, test.X, test.y, sampler=groups, features=["temp", "yr"], random_state=1)
    >>> marginal = sg.importance(model, test.X, test.y, sampler="marginal", features=["temp", "yr"], random_state=1)
    >>> ax = sg.plots.importance(conditional, marginal)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['subgroups', 'marginal']
    """
    results = read_results("result", result, others)
    check_axes(ax)
    shown = importance_rows(results, loss)
    n_features = len(shown.features)
    if top is not None:
        shown = shown.first(whole_number("top", top, least=1))
    rows = RowLabels(_entries(shown), n_below=2 if len(shown.features) <= _FEW else 1, remedy=_REMEDY)
    ax = new_axes(rows, len(results)) if ax is None else check_height(ax, rows)
    frame_rows(ax, [one.label for one in shown.series], shown.label)
    left_out = _left_out(n_features, len(shown.features))
    note(ax, interval_note(shown) + left_out + fidelity_note(shown), LEFT_FOR_ROWS)
    draw_series(ax, shown.series, draw_rows(ax, rows))
    return ax


def _entries(shown: ImportanceRows) -> tuple[RowEntry, ...]:
    return tuple(_entry(name, given) for name, given in zip(shown.features, shown.given, strict=True))


def _entry(name: str, given: tuple[str, ...]) -> RowEntry:
    listed = (f"given {given[0]}", *given[1:]) if given else ()
    return RowEntry(name, listed, f"given {len(given)} column{'s' * (len(given) > 1)}")


def _left_out(n: int, shown: int) -> str:
    more = n - shown
    return f"; {more} feature{'s' * (more > 1)} with smaller estimates left out" if more else ""
