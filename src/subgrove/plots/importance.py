"""Plots of the importance of features, and of one feature by subgroup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.validate import whole_number
from subgrove._importance import ImportanceResult
from subgrove._importance.tables import NOT_REALISTIC, is_unrealistic
from subgrove.exceptions import ParameterError
from subgrove.plots._palette import COLORS, GREY, small_size
from subgrove.plots._results import (
    fidelity_note,
    importance_rows,
    interval_note,
    interval_text,
    loss_label,
    one_loss,
    read_results,
)
from subgrove.plots._rows import RowEntry, RowLabels, RowSeries, draw_rows, draw_series, handle
from subgrove.plots._text import one_line, short_rule
from subgrove.trees.tree import format_count

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
    shown = importance_rows(results, loss)
    n_features = len(shown.features)
    if top is not None:
        shown = shown.first(whole_number("top", top, least=1))
    entries = tuple(_feature_entry(name, given) for name, given in zip(shown.features, shown.given, strict=True))
    rows = RowLabels(entries, n_below=2 if len(entries) <= _FEW else 1, remedy=_REMEDY)
    more = n_features - len(entries)
    left_out = f"; {more} feature{'s' * (more > 1)} with smaller estimates left out" if more else ""
    legend = {one.label: handle(place) for place, one in enumerate(shown.series)}
    ax = draw_rows(
        ax,
        rows,
        label=shown.label,
        text=interval_note(shown) + left_out + fidelity_note(shown),
        legend=legend if len(legend) > 1 else None,
    )
    draw_series(ax, shown.series)
    return ax


def _feature_entry(name: str, given: tuple[str, ...]) -> RowEntry:
    listed = (f"given {given[0]}", *given[1:]) if given else ()
    return RowEntry(name, listed, f"given {len(given)} column{'s' * (len(given) > 1)}")


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
    'importance of temp (increase of squared error)'
    """
    if not isinstance(result, ImportanceResult):
        raise ParameterError(
            f"result must be an ImportanceResult, which importance returns; got {type(result).__name__}."
        )
    table, overall, single = _tables(result, feature, loss)
    (score,) = (each for each in single.scores if each.title == feature)
    entries = tuple(_subgroup_entry(line, score.singletons) for line in table)
    text = interval_text([single.level], [" + ".join(single.covered)])
    ax = draw_rows(
        ax,
        RowLabels(entries, n_names=3, n_below=1, most_label=0.5, remedy=", use a smaller max_depth"),
        label=f"importance of {one_line(feature)} ({loss_label(single)})",
        text=text + f"; {NOT_REALISTIC}" * is_unrealistic(score),
    )
    _draw_overall(ax, overall)
    draw_series(ax, [_series(table)])
    return ax


def _tables(
    result: ImportanceResult, feature: str, loss: str | None
) -> tuple[list[dict[str, Any]], float, ImportanceResult]:
    """Lines of the subgroups of a feature, its importance over all rows, and the result of the one loss."""
    if feature not in result.features:
        raise ParameterError(f"feature={feature!r} is not in this result. Its features: {', '.join(result.features)}.")
    single = one_loss(result, loss)
    lines = single.by_subgroup
    (overall,) = single.overall.query("feature == @feature")["estimate"]
    return lines[lines["feature"] == feature].to_dict("records"), float(overall), single


def _subgroup_entry(line: dict[str, Any], singletons: Sequence[int]) -> RowEntry:
    rows = f"n = {format_count(round(line['n']))}"
    fold = f", fold {line['fold']}" if "fold" in line else ""
    unchanged = ", keeps its value" if line["subgroup"] in singletons else ""
    return RowEntry(short_rule(line["rule"]), (rows + fold + unchanged,), rows)


def _series(table: list[dict[str, Any]]) -> RowSeries:
    columns = [np.array([line[name] for line in table]) for name in ("estimate", "conf_low", "conf_high")]
    return RowSeries("", *columns)


def _draw_overall(ax: Axes, overall: float) -> None:
    ax.axvline(overall, color=COLORS[0], linewidth=1.2, linestyle=(0, (4, 2)), zorder=1.6)
    ax.annotate(
        "all rows",
        (overall, 1.0),
        (0.0, 2.0),
        xycoords=ax.get_xaxis_transform(),
        textcoords="offset points",
        ha="center",
        va="bottom",
        size=small_size(),
        color=GREY,
        annotation_clip=False,
    )
