"""Plot of the importance of one feature by subgroup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._importance import ImportanceResult
from subgrove._importance.tables import NOT_REALISTIC, is_unrealistic
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import check_axes, note
from subgrove.plots._palette import COLORS, GREY, small_size
from subgrove.plots._results import interval_text, loss_label, one_loss
from subgrove.plots._rows import (
    LEFT_FOR_ROWS,
    RowEntry,
    RowLabels,
    RowSeries,
    check_height,
    draw_rows,
    draw_series,
    frame_rows,
    new_axes,
)
from subgrove.plots._text import one_line, short_rule
from subgrove.trees.tree import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OVERALL = COLORS[0]


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
    check_axes(ax)
    table, overall, single = _tables(result, feature, loss)
    singletons = next(score.singletons for score in single.scores if score.title == feature)
    entries = tuple(_entry(line, singletons) for line in table)
    rows = RowLabels(entries, n_names=3, n_below=1, most_label=0.5, remedy=", use a smaller max_depth")
    ax = new_axes(rows, 1) if ax is None else check_height(ax, rows)
    frame_rows(ax, [], f"importance of {one_line(feature)} ({loss_label(single)})")
    unreal = any(score.title == feature and is_unrealistic(score) for score in single.scores)
    text = interval_text([single.level], [" + ".join(single.covered)])
    note(ax, text + f"; {NOT_REALISTIC}" * unreal, LEFT_FOR_ROWS)
    pitch = draw_rows(ax, rows)
    _draw_overall(ax, overall)
    draw_series(ax, [_series(table)], pitch)
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


def _entry(line: dict[str, Any], singletons: Sequence[int]) -> RowEntry:
    rows = f"n = {format_count(round(line['n']))}"
    fold = f", fold {line['fold']}" if "fold" in line else ""
    unchanged = ", keeps its value" if line["subgroup"] in singletons else ""
    return RowEntry(short_rule(line["rule"]), (rows + fold + unchanged,), rows, is_rule=True)


def _series(table: list[dict[str, Any]]) -> RowSeries:
    columns = [np.array([line[name] for line in table]) for name in ("estimate", "conf_low", "conf_high")]
    return RowSeries("", *columns)


def _draw_overall(ax: Axes, overall: float) -> None:
    ax.axvline(overall, color=_OVERALL, linewidth=1.2, linestyle=(0, (4, 2)), zorder=1.6)
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
