"""Plots of conditioning column by column: the gap, and relative importance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.html_views import plot_of
from subgrove._core.kinds import Floats
from subgrove._core.text import number
from subgrove._importance.conditioning_steps import RelativeImportance
from subgrove._importance.gap_result import Gap, GapStep, total_error
from subgrove.plots import _rows
from subgrove.plots._figure import check_type, size_of, text_width
from subgrove.plots._palette import COLORS, GREY, small_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 0.55  # of a bar, in rows
_PAD = 4.0  # points between a bar and its number
_MOST = 0.5  # share of the width that a number takes at most


@plot_of.register(Gap)
def gap(gap: Gap, *, ax: Axes | None = None) -> Axes:
    """Draw a gap: from marginal down to conditional importance, with a bar for each column.

    Parameters
    ----------
    gap : Gap
        Result of `ImportanceResult.explain_gap`.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure of suitable height.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. Its rows are the marginal importance, the columns, and the conditional importance.

    Notes
    -----
    How to read it: the first bar is marginal importance. Each column removes the part that it shares; the last bar is
    conditional importance. Dark lines are two standard errors on either side of the end of a bar, of test rows and
    draws.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> model = lambda X: 2000 + 100 * X["temp"]
    >>> options = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
    >>> imp = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **options)
    >>> marginal = sg.importance(model, test.X, test.y, sampler="marginal", **options)
    >>> ax = sg.plots.gap(imp.explain_gap(marginal, "temp"))
    >>> [text.get_text() for text in ax.texts if "%" in text.get_text()]
    ['-276 (-63 %)', '-6.99 (-2 %)', '157 (36 %)']
    """
    check_type("gap", gap, Gap, "what ImportanceResult.gap returned")
    lines = [(gap.feature, "shuffled"), *((one.column, _what(one)) for one in gap.parts), (gap.feature, _left(gap))]
    rows = _rows.RowLabels([_rows.RowEntry(name, (words,)) for name, words in lines], n_below=1)
    change, known = ("increase", "test rows and draws") if gap.per_row else ("worsening", "draws only")
    text = f"lines: two standard errors ({known})" + (f"; steps are means over {gap.orders}" if gap.orders else "")
    ax = _rows.draw_rows(ax, rows, label=f"{change} of {gap.loss.replace('_', ' ')}", text=text)
    _draw(ax, gap)
    return ax


def _what(part: GapStep) -> str:
    if abs(part.step) <= 2 * part.noise:
        return "within noise"
    return "shared" if part.step > 0 else "increases it"


def _left(gap: Gap) -> str:
    if gap.kind in ("no split", "no columns"):
        return "not predicted by any column"
    return "within its subgroups" if gap.kind == "trees" else "given the others"


def _draw(ax: Axes, gap: Gap) -> None:
    """Bars from left to right end, connected where one ends and the next begins."""
    starts = np.array([0.0, *(part.start for part in gap.parts), 0.0])
    ends = np.array([gap.marginal, *(part.end for part in gap.parts), gap.conditional])
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    ends_noise = total_error(gap.marginal_noise), total_error(gap.conditional_noise)
    noise = np.array([ends_noise[0], *(part.noise for part in gap.parts), ends_noise[1]])
    colors = [COLORS[0], *(COLORS[1] if part.step >= 0 else COLORS[2] for part in gap.parts), COLORS[0]]
    y = np.arange(len(ends))
    ax.barh(y, high - low, left=low, height=_HEIGHT, color=colors, edgecolor=colors, alpha=0.75, linewidth=1, zorder=2)
    ax.hlines(y, ends - 2 * noise, ends + 2 * noise, color=GREY, linewidth=1.4, zorder=3)
    half = _HEIGHT / 2
    ax.vlines(ends[:-1], y[:-1] + half, y[1:] - half, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1.8)
    right = np.maximum(high, ends + 2 * noise)
    texts = _texts(gap)
    _limit(ax, np.minimum(low, ends - 2 * noise), right, texts)
    for row, (at, text) in enumerate(zip(right, texts, strict=True)):
        look: dict[str, Any] = {"va": "center", "size": small_size(), "zorder": 4, "parse_math": False}
        ax.annotate(text, (at, row), (_PAD, 0), textcoords="offset points", **look)


def _limit(ax: Axes, left: Floats, right: Floats, texts: Sequence[str]) -> None:
    """Limits of x that leave room for the numbers at the right of bars."""
    low, high = min(0.0, float(left.min())), max(0.0, float(right.max()))
    low -= 0.03 * ((high - low) or 1.0) * (low < 0)
    width = size_of(ax)[0]
    for at, text in zip(right, texts, strict=True):
        share = min((text_width(text, small_size()) + 3 * _PAD) / width, _MOST)
        high = max(high, (float(at) - share * low) / (1 - share))
    ax.set_xlim(low, high if high > low else low + 1.0)


def _texts(gap: Gap) -> list[str]:
    """The number of each bar, with its share of the first."""
    texts = [number(gap.marginal)]
    for place, value in enumerate([*(-part.step for part in gap.parts), gap.conditional]):
        sign = "+" if value > 0 and place < len(gap.parts) else ""
        share = f" ({sign}{round(100 * value / gap.marginal) or 0} %)" if gap.marginal > 0 else ""
        texts.append(f"{sign}{number(value)}{share}")
    return texts


@plot_of.register(RelativeImportance)
def relative_importance(result: RelativeImportance, *, ax: Axes | None = None, loss: str | None = None) -> Axes:
    """Draw relative importance: a point and an interval for each step, from no column at the top to all.

    Parameters
    ----------
    result : RelativeImportance
        As `ImportanceResult.relative` returns it.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure of suitable height.
    loss : str, optional
        Name of the loss, if there are several; the first by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. Steps are its rows, from 0 at the top.

    Notes
    -----
    How to read it: where the line goes to the left, the added column shares part of the importance of the feature.
    Intervals of two steps that overlap may still differ, since both are of the same rows: `result.table` has the
    standard error of each change.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> model = lambda X: 2000 + 100 * X["temp"]
    >>> options = {"train": train.X, "features": ["temp"], "loss": "absolute_error", "random_state": 1}
    >>> imp = sg.importance(model, test.X, test.y, **options)
    >>> ax = sg.plots.relative_importance(imp.relative("temp", order=["season", "hum"]))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['temp given nothing', '+ season', '+ hum', '+ the other 6 columns']
    """
    check_type("result", result, RelativeImportance, "a RelativeImportance")
    steps = tuple(_rows.one_loss(one, loss) for one in result.results)
    table = replace(result, results=steps, backend="pandas").table
    names = [f"{result.feature} given nothing", *(f"+ {name}" for name in result.added[1:])]
    text = _rows.interval_note(steps[:1], "a score of all rows together")
    rows = _rows.RowLabels([_rows.RowEntry(name) for name in names], n_below=0)
    points = _rows.RowSeries(result.feature, *table[["estimate", "conf_low", "conf_high"]].to_numpy(float).T)
    ax = _rows.draw_rows(ax, rows, [points], label=_rows.loss_label(steps[0]), text=text)
    ax.plot(points.estimate, range(len(names)), color=GREY, linewidth=1.0, zorder=1.8)
    return ax
