"""Plot of importance by the depth of the trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.validate import whole_number
from subgrove._importance import ImportanceResult
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import (
    POINTS,
    check_axes,
    dress,
    label_axis,
    new_figure,
    note,
    number_ticks,
    size_of,
)
from subgrove.plots._palette import COLORS, GREY, MARKERS, STYLES, color_of, font_size
from subgrove.plots._results import ImportanceRows, check_each, fidelity_note, importance_rows, interval_note
from subgrove.plots._text import Ruler, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEADER = 16.0  # points between the axes and the names


def write_ends(ax: Axes, names: Sequence[str], ends: Floats, share: float) -> None:
    """Write names beside the ends of lines, apart from each other, with leaders where they had to move.

    A name takes at most a share of the width of the axes.
    """
    width, height = size_of(ax)
    low, high = ax.get_ylim()
    size = min(0.94 * font_size(), height / (1.15 * max(len(names), 1)))
    wanted = (ends - low) / (high - low) * height
    places = spread(wanted.tolist(), 1.2 * size, 0.0, height) / height
    ruler = Ruler(size)
    for at, (name, end, place) in enumerate(zip(names, ends, places, strict=True)):
        _write_end(ax, ruler.shorten(one_line(name), share * width), float(end), float(place), color_of(at), size)


def _write_end(ax: Axes, name: str, end: float, place: float, color: str, size: float) -> None:
    from matplotlib.transforms import ScaledTranslation

    right = ax.transAxes + ScaledTranslation(_LEADER / POINTS, 0, ax.figure.dpi_scale_trans)
    ax.annotate(
        "",
        (1.0, end),
        (1.0, place),
        xycoords=ax.get_yaxis_transform(),
        textcoords=right,
        arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.7, "alpha": 0.7, "shrinkA": 2, "shrinkB": 0},
        annotation_clip=False,
    )
    text = ax.text(1.0, place, name, transform=right, size=size, color=color, va="center", ha="left")
    text.set_parse_math(False)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> Floats:
    """Return positions at least `gap` apart between `low` and `high`, as near as possible to the wanted ones.

    Isotonic regression of the wanted positions minus their distances: positions that would overlap form a block at the
    mean of its members. If there are too many, the distances shrink.
    """
    from sklearn.isotonic import isotonic_regression

    n = len(wanted)
    gap = min(gap, (high - low) / max(n - 1, 1))
    order = np.argsort(wanted, kind="stable")
    shifts = gap * np.arange(n)
    free = isotonic_regression(np.asarray(wanted, dtype=np.float64)[order] - shifts)
    places = np.empty(n)
    places[order] = np.clip(free, low, high - gap * (n - 1)) + shifts
    return places


_WIDTH, _HEIGHT = 6.4, 4.4
_MOST_LABEL = 0.3  # share of the width that labels take at most
_DODGE = 0.015  # how far intervals of two features are apart, in depths


def importance_by_depth(
    results: Mapping[int, ImportanceResult], *, ax: Axes | None = None, loss: str | None = None, top: int = 12
) -> Axes:
    """Draw the importance of features by the depth of the trees that find subgroups: a line for each feature.

    Lines are labelled at their right end. Features beyond the first `top` are grey and have no label.

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
    >>> [text.get_text() for text in ax.texts if text.get_text() in ("temp", "hum")]
    ['temp', 'hum']
    """
    depths = _read_depths(results)
    check_axes(ax)
    shown = importance_rows({str(depth): results[depth] for depth in depths}, loss)
    lines = DepthLines(depths, shown, whole_number("top", top, least=1))
    ax = new_figure(_WIDTH, _HEIGHT).add_subplot() if ax is None else ax
    dress(ax, grid="y")
    width, height = size_of(ax)
    label_axis(ax.xaxis, "maximum depth of trees" + " (0: marginal)" * (depths[0] == 0), (1 - _MOST_LABEL) * width)
    label_axis(ax.yaxis, shown.label, height)
    note(ax, interval_note(shown) + lines.others + fidelity_note(shown, "hollow"), 1 - _MOST_LABEL)
    lines.draw(ax)
    write_ends(ax, lines.names[: lines.n_shown], lines.ends, _MOST_LABEL)
    return ax


class DepthLines:
    """A line for each feature; the first ones are highlighted."""

    def __init__(self, depths: list[int], shown: ImportanceRows, top: int) -> None:
        estimates = np.stack([one.estimate for one in shown.series])
        with np.errstate(invalid="ignore"):
            order = np.argsort(-np.nanmax(np.where(np.isfinite(estimates), estimates, -np.inf), axis=0), kind="stable")
        self.depths = np.array(depths, dtype=np.float64)
        self.names = [shown.features[at] for at in order]
        self.estimate = estimates[:, order]
        self.low, self.high = (
            np.stack([getattr(one, end) for one in shown.series])[:, order] for end in ("low", "high")
        )
        self.fails = np.stack([one.marked for one in shown.series])[:, order]
        self.n_shown = min(top, len(order))

    @property
    def others(self) -> str:
        """The note on features that are not highlighted."""
        n = len(self.names) - self.n_shown
        return f"; grey: {n} other feature{'s' * (n > 1)}" if n else ""

    @property
    def ends(self) -> Floats:
        """The last value of each highlighted line."""
        return np.array([column[np.isfinite(column)][-1] for column in self.estimate[:, : self.n_shown].T])

    def draw(self, ax: Axes) -> None:
        """Draw the lines of all features."""
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
        for at in range(len(self.names) - 1, -1, -1):
            if at < self.n_shown:
                self._draw_one(ax, at)
            else:
                ax.plot(self.depths, self.estimate[:, at], color=GREY, alpha=0.4, linewidth=0.8, zorder=1.5)
        ax.set_xticks(self.depths, [f"{depth:g}" for depth in self.depths])
        number_ticks(ax.yaxis, size_of(ax)[1])
        ax.margins(x=0.03)
        ax.set_ylim(ax.get_ylim())

    def _draw_one(self, ax: Axes, at: int) -> None:
        color, style = color_of(at), STYLES[at // len(COLORS) % len(STYLES)]
        x = self.depths + _DODGE * (at - (self.n_shown - 1) / 2)
        ax.vlines(x, self.low[:, at], self.high[:, at], color=color, alpha=0.35, linewidth=1.4, zorder=2)
        marker: Any = MARKERS[at // len(COLORS) % len(MARKERS)]
        ax.plot(
            x, self.estimate[:, at], color=color, linestyle=style, linewidth=1.5, marker=marker, markersize=4, zorder=3
        )
        hollow = self.fails[:, at]
        if hollow.any():
            ax.plot(x[hollow], self.estimate[hollow, at], marker, color=color, markersize=4, mfc="white", zorder=3.1)


def _read_depths(results: Any) -> list[int]:
    if not isinstance(results, Mapping) or not results:
        raise ParameterError(
            f"results must be a mapping from depth to ImportanceResult, as in {{0: marginal, 2: conditional}}; "
            f"got {'none' if isinstance(results, Mapping) else type(results).__name__}."
        )
    check_each("results", results)
    return sorted(whole_number("a depth in results", depth, least=0) for depth in results)
