"""A picture of the way from marginal to conditional importance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._importance import Gap, GapStep
from subgrove._importance.gap.words import number
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import check_axes, make_room, note, room_of, size_of
from subgrove.plots._labels import Entry
from subgrove.plots._palette import COLORS, GREY, small_size
from subgrove.plots._rows import LEFT_FOR_ROWS, Rows, draw_rows, frame_rows, high_enough, new_axes
from subgrove.plots._text import Ruler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 0.55  # of a bar, in rows
_PAD = 4.0  # points between a bar and its number
_MOST = 0.5  # share of the width that a number takes at most


def gap(gap: Gap, *, ax: Axes | None = None) -> Axes:
    """A picture of a gap: from the marginal importance down to the conditional one, a bar for each column.

    Parameters
    ----------
    gap : Gap
        What `ImportanceResult.gap` returned.
    ax : matplotlib Axes, optional
        Where to draw. A new figure that is as high as needed if not given.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. Its rows are the marginal importance, the columns, and the conditional importance.

    Notes
    -----
    How to read it: the first bar is what the feature costs if it is shuffled alone. Each column takes away what it
    already tells of that; the last bar is what is left. Dark lines are two standard errors on either side of the end
    of a bar: noise of the test rows and of the draws.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> model = lambda X: 2000 + 100 * X["temp"]
    >>> asked = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
    >>> imp = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **asked)
    >>> marginal = sg.importance(model, test.X, test.y, sampler="marginal", **asked)
    >>> ax = sg.plots.gap(imp.explain_gap(marginal, "temp"))
    >>> [text.get_text() for text in ax.texts if "%" in text.get_text()]
    ['-276 (-63 %)', '-6.99 (-2 %)', '157 (36 %)']
    """
    if not isinstance(gap, Gap):
        raise ParameterError(f"gap must be what ImportanceResult.gap returned; got {type(gap).__name__}.")
    check_axes(ax)
    entries = (Entry(gap.feature, ("shuffled alone",)), *_entries(gap), Entry(gap.feature, (_left(gap),)))
    rows = Rows(entries, n_below=1)
    ax = new_axes(rows, 1) if ax is None else high_enough(ax, rows)
    within = room_of(ax)
    change = "increase" if gap.per_row else "worsening"
    frame_rows(ax, [], f"{change} of {gap.loss.replace('_', ' ')}")
    note(ax, _note(gap), LEFT_FOR_ROWS)
    draw_rows(ax, rows, within)
    _draw(ax, gap)
    make_room(ax, within)
    return ax


def _entries(gap: Gap) -> tuple[Entry, ...]:
    return tuple(Entry(part.column, (_what(part),)) for part in gap.parts)


def _what(part: GapStep) -> str:
    if abs(part.step) <= 2 * part.noise:
        return "within noise"
    return "already told" if part.step > 0 else "makes it cost more"


def _left(gap: Gap) -> str:
    if gap.kind in ("no split", "no columns"):
        return "no column tells of it"
    return "within its subgroups" if gap.kind == "trees" else "given the others"


def _note(gap: Gap) -> str:
    known = "test rows and draws" if gap.per_row else "draws only"
    orders = f"; steps are means over {gap.orders}" if gap.orders else ""
    return f"lines: two standard errors, noise of {known}{orders}"


def _draw(ax: Axes, gap: Gap) -> None:
    """Bars from left to right end, connected where one ends and the next begins."""
    low = np.array([0.0, *(min(part.before, part.after) for part in gap.parts), min(0.0, gap.conditional)])
    high = np.array([gap.marginal, *(max(part.before, part.after) for part in gap.parts), max(0.0, gap.conditional)])
    low[0], high[0] = min(0.0, gap.marginal), max(0.0, gap.marginal)
    ends = np.array([gap.marginal, *(part.after for part in gap.parts), gap.conditional])
    noise = np.array([_size(gap.marginal_noise), *(part.noise for part in gap.parts), _size(gap.conditional_noise)])
    colors = [COLORS[0], *(COLORS[1] if part.step >= 0 else COLORS[2] for part in gap.parts), COLORS[0]]
    y = np.arange(len(ends))
    ax.barh(y, high - low, left=low, height=_HEIGHT, color=colors, edgecolor=colors, alpha=0.75, linewidth=1, zorder=2)
    ax.hlines(y, ends - 2 * noise, ends + 2 * noise, color=GREY, linewidth=1.4, zorder=3)
    half = _HEIGHT / 2
    ax.vlines(ends[:-1], y[:-1] + half, y[1:] - half, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1.8)
    right = np.maximum(high, ends + 2 * noise)
    texts = _texts(gap)
    _limit(ax, np.minimum(low, ends - 2 * noise), right, texts)
    _write(ax, right, texts)


def _size(errors: tuple[float, float]) -> float:
    return float(np.sqrt(np.nansum(np.square(errors))))


def _limit(ax: Axes, left: Floats, right: Floats, texts: Sequence[str]) -> None:
    """Limits of x that leave room for the numbers at the right of bars."""
    low, high = min(0.0, float(left.min())), max(0.0, float(right.max()))
    low -= 0.03 * ((high - low) or 1.0) * (low < 0)
    width, ruler = size_of(ax)[0], Ruler(small_size())
    for at, text in zip(right, texts, strict=True):
        share = min((ruler.width(text) + 3 * _PAD) / width, _MOST)
        high = max(high, (float(at) - share * low) / (1 - share))
    ax.set_xlim(low, high if high > low else low + 1.0)


def _texts(gap: Gap) -> list[str]:
    """The number of each bar, with its share of the first."""
    texts = [number(gap.marginal)]
    for place, value in enumerate([*(-part.step for part in gap.parts), gap.conditional]):
        sign = "+" if value > 0 and place < len(gap.parts) else ""
        share = f" ({sign}{_percent(value / gap.marginal)})" if gap.marginal > 0 else ""
        texts.append(f"{sign}{number(value)}{share}")
    return texts


def _percent(share: float) -> str:
    return f"{round(100 * share) or 0} %"


def _write(ax: Axes, right: Floats, texts: Sequence[str]) -> None:
    for row, (at, text) in enumerate(zip(right, texts, strict=True)):
        written = ax.annotate(text, (at, row), (_PAD, 0), textcoords="offset points", va="center", size=small_size())
        written.set_parse_math(False)
        written.set_zorder(4)
