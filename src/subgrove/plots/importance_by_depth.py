"""Plot of importance by the depth of the trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.validate import whole_number
from subgrove._importance import ImportanceResult
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import check_axes, dress, label_axis, legend_beside, new_figure, note, number_ticks, size_of
from subgrove.plots._palette import COLORS, GREY, MARKERS, STYLES, color_of
from subgrove.plots._results import ImportanceRows, check_each, fidelity_note, importance_rows, interval_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 6.4, 4.4
_MOST_LABEL = 0.3  # share of the width that names take at most
_VALUES = ("estimate", "low", "high")
_DODGE = 0.015  # how far intervals of two features are apart, in depths


def importance_by_depth(
    results: Mapping[int, ImportanceResult], *, ax: Axes | None = None, loss: str | None = None, top: int = 12
) -> Axes:
    """Draw the importance of features by the depth of the trees that find subgroups: a line for each feature.

    The legend has the order of the right ends of the lines. Features beyond the first `top` are grey and not in it.

    Parameters
    ----------
    results : mapping from int to ImportanceResult
        Depth -> what `importance` returned for subgroups of that depth; at depth 0 the marginal importance.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.
    loss : str, optional
        Name of the loss, if there are several; the first by default.
    top : int
        Number of features to highlight: those with the largest estimate at any depth.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Notes
    -----
    How to read it: where a line falls, importance is shared with other features. A depth from which on lines
    hardly change is deep enough. A hollow point failed the fidelity check.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] - 10 * X["hum"]
    >>> samplers = {0: "marginal"} | {depth: sg.find_subgroups(train.X, max_depth=depth) for depth in (1, 2)}
    >>> results = {
    ...     depth: sg.importance(model, test.X, test.y, sampler=sampler, features=["temp", "hum"], random_state=1)
    ...     for depth, sampler in samplers.items()
    ... }
    >>> ax = sg.plots.importance_by_depth(results)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['temp', 'hum']
    """
    depths = _read_depths(results)
    check_axes(ax)
    shown = importance_rows({str(depth): results[depth] for depth in depths}, loss)
    ax = new_figure(_WIDTH, _HEIGHT).add_subplot() if ax is None else ax
    dress(ax, grid="y")
    n_lines = min(whole_number("top", top, least=1), len(shown.features))
    _draw_lines(ax, np.array(depths, dtype=np.float64), shown, n_lines)
    width, height = size_of(ax)
    label_axis(ax.xaxis, "maximum depth of trees" + " (0: marginal)" * (depths[0] == 0), width)
    label_axis(ax.yaxis, shown.label, height)
    number_ticks(ax.yaxis, height)
    n_others = len(shown.features) - n_lines
    grey = f"; grey: {n_others} other feature{'s' * (n_others > 1)}" if n_others else ""
    note(ax, interval_note(shown) + grey + fidelity_note(shown, "hollow"))
    return ax


def _draw_lines(ax: Axes, depths: Floats, shown: ImportanceRows, n_lines: int) -> None:
    """Draw a line for each feature, the largest ones in colours, and their legend in the order of the right ends."""
    estimate, low, high = (np.stack([getattr(one, name) for one in shown.series]) for name in _VALUES)
    fails = np.stack([one.marked for one in shown.series])
    order = np.argsort(-np.where(np.isfinite(estimate), estimate, -np.inf).max(axis=0), kind="stable")
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    for at in order[n_lines:]:
        ax.plot(depths, estimate[:, at], color=GREY, alpha=0.4, linewidth=0.8, zorder=1.5)
    lines = []
    for place, at in enumerate(order[:n_lines]):
        color, lap = color_of(place), place // len(COLORS)
        x = depths + _DODGE * (place - (n_lines - 1) / 2)
        ax.vlines(x, low[:, at], high[:, at], color=color, alpha=0.35, linewidth=1.4, zorder=2)
        look: dict[str, Any] = {"color": color, "marker": MARKERS[lap % len(MARKERS)], "markersize": 4}
        lines += ax.plot(x, estimate[:, at], linestyle=STYLES[lap % len(STYLES)], linewidth=1.5, zorder=3, **look)
        hollow = fails[:, at]
        if hollow.any():
            ax.plot(x[hollow], estimate[hollow, at], linestyle="", mfc="white", zorder=3.1, **look)
    ax.set_xticks(depths, [f"{depth:g}" for depth in depths])
    last = [column[np.isfinite(column)][-1] for column in estimate[:, order[:n_lines]].T]
    by_end = np.argsort(-np.array(last), kind="stable")
    names = [shown.features[at] for at in order[by_end]]
    legend_beside(ax, [lines[at] for at in by_end], names, _MOST_LABEL)


def _read_depths(results: Any) -> list[int]:
    if not isinstance(results, Mapping) or not results:
        raise ParameterError(
            f"results must be a mapping from depth to ImportanceResult, as in {{0: marginal, 2: conditional}}; "
            f"got {'none' if isinstance(results, Mapping) else type(results).__name__}."
        )
    check_each("results", results)
    return sorted(whole_number("a depth in results", depth, least=0) for depth in results)
