"""Plots of the importance of features: overall, of one feature by subgroup, and by the depth of the trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.html_views import plot_of
from subgrove._core.kinds import Floats
from subgrove._core.validate import whole_number
from subgrove._importance.result import ImportanceResult
from subgrove._importance.tables import NOT_REALISTIC, importance_kind, is_unrealistic
from subgrove.exceptions import ParameterError
from subgrove.plots import _figure, _rows
from subgrove.plots._palette import COLORS, GREY, MARKERS, STYLES, color_of, small_size
from subgrove.trees.tree import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 15  # features whose conditioning may take two lines
_REMEDY = ", keep fewer features with top="


@plot_of.register(ImportanceResult)
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
    _figure.require_matplotlib()
    results = _rows.read_results(result, others)
    shown = _rows.importance_rows(results, loss, None if top is None else whole_number("top", top, least=1))
    entries = [_feature_entry(name, given) for name, given in zip(shown.features, shown.given, strict=True)]
    rows = _rows.RowLabels(entries, n_below=2 if len(entries) <= _FEW else 1, remedy=_REMEDY)
    kinds = {importance_kind(one) for one in results.values()}
    more = shown.left_out
    left_out = f"; {more} feature{'s' * (more > 1)} with smaller estimates left out" if more else ""
    label = f"{kinds.pop() if len(kinds) == 1 else ''} importance ({shown.label})".strip()
    text = shown.intervals + left_out + _rows.fidelity_note(shown)
    return _rows.draw_rows(ax, rows, shown.series, label=label, text=text)


def _feature_entry(name: str, given: tuple[str, ...]) -> _rows.RowEntry:
    listed = (f"given {given[0]}", *given[1:]) if given else ()
    return _rows.RowEntry(name, listed, f"given {len(given)} column{'s' * (len(given) > 1)}")


def subgroup_importance(
    result: ImportanceResult, feature: str, *, ax: Axes | None = None, loss: str | None = None
) -> Axes:
    """Draw the importance of a feature in each subgroup, with the rules of the subgroups as labels.

    A line marks the importance over all rows, which is the mean of the subgroups, weighted by their rows.

    Parameters
    ----------
    result : ImportanceResult
        Result of `importance`.
    feature : str
        One of its features.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure of suitable height.
    loss : str, optional
        Name of the loss, if there are several; the first by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. Subgroups are its rows, from 0 at the top.

    Notes
    -----
    How to read it: the increase of the loss in a subgroup when the feature is resampled among its rows. A subgroup
    without rows has no point; a singleton keeps its value, so its importance is 0. The note below says so if the
    fidelity check failed.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> groups = sg.find_subgroups(train.X, features="temp", max_depth=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"]
    >>> imp = sg.importance(model, test.X, test.y, sampler=groups, features=["temp"], random_state=1)
    >>> ax = sg.plots.subgroup_importance(imp, "temp")
    >>> ax.get_xlabel()
    'importance of temp (increase of absolute error)'
    """
    _figure.check_type("result", result, ImportanceResult, "an ImportanceResult, which importance returns")
    if feature not in result.features:
        raise ParameterError(f"feature={feature!r} is not in this result. Its features: {', '.join(result.features)}.")
    single = _rows.one_loss(result, loss)
    table = single.by_subgroup.query("feature == @feature")
    (score,) = (each for each in single.scores if each.title == feature)
    entries = [_subgroup_entry(line, score.singletons) for line in table.to_dict("records")]
    points = _rows.RowSeries("", *table[["estimate", "conf_low", "conf_high"]].to_numpy(float).T)
    ax = _rows.draw_rows(
        ax,
        _rows.RowLabels(entries, n_names=3, n_below=1, most_label=0.5, remedy=", use a smaller max_depth"),
        [points],
        label=f"importance of {_figure.one_line(feature)} ({_rows.loss_label(single)})",
        text=_rows.interval_note([single]) + f"; {NOT_REALISTIC}" * is_unrealistic(score),
    )
    (overall,) = single.overall.query("feature == @feature")["estimate"]
    ax.axvline(overall, color=COLORS[0], linewidth=1.2, linestyle=(0, (4, 2)), zorder=1.6)
    look: dict[str, Any] = {"ha": "center", "va": "bottom", "size": small_size(), "color": GREY}
    ax.text(overall, 1.01, "all rows", transform=ax.get_xaxis_transform(), **look)
    return ax


def _subgroup_entry(line: dict[str, Any], singletons: Sequence[int]) -> _rows.RowEntry:
    rows = f"n = {format_count(round(line['n']))}"
    fold = f", fold {line['fold']}" if "fold" in line else ""
    unchanged = ", keeps its value" if line["subgroup"] in singletons else ""
    return _rows.RowEntry(_figure.short_rule(line["rule"]), (rows + fold + unchanged,), rows)


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
    _figure.require_matplotlib()
    depths = _read_depths(results)
    _figure.check_axes(ax)
    shown = _rows.importance_rows({str(depth): results[depth] for depth in depths}, loss)
    ax = _figure.new_figure(_WIDTH, _HEIGHT).add_subplot() if ax is None else ax
    _figure.dress(ax, grid="y")
    n_lines = min(whole_number("top", top, least=1), len(shown.features))
    _draw_lines(ax, np.array(depths, dtype=np.float64), shown, n_lines)
    width, height = _figure.size_of(ax)
    _figure.label_axis(ax.xaxis, "maximum depth of trees" + " (0: marginal)" * (depths[0] == 0), width)
    _figure.label_axis(ax.yaxis, shown.label, height)
    _figure.number_ticks(ax.yaxis, height)
    n_others = len(shown.features) - n_lines
    grey = f"; grey: {n_others} other feature{'s' * (n_others > 1)}" if n_others else ""
    _figure.note(ax, shown.intervals + grey + _rows.fidelity_note(shown, "hollow"))
    return ax


def _draw_lines(ax: Axes, depths: Floats, shown: _rows.ImportanceRows, n_lines: int) -> None:
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
    _figure.legend_beside(ax, [lines[at] for at in by_end], names, _MOST_LABEL)


def _read_depths(results: Any) -> list[int]:
    if not isinstance(results, Mapping) or not results:
        given = "none" if isinstance(results, Mapping) else type(results).__name__
        example = "as in {0: marginal, 2: conditional}"
        raise ParameterError(f"results must be a mapping from depth to ImportanceResult, {example}; got {given}.")
    _rows.check_each("results", results)
    return sorted(whole_number("a depth in results", depth, least=0) for depth in results)
