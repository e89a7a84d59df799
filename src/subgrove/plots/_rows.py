"""Points with intervals in labelled rows, one for each feature or subgroup, and the results that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._importance.result import ImportanceResult
from subgrove._importance.tables import MARK, NOT_REALISTIC, ImportanceData, importance_kind
from subgrove.exceptions import ParameterError
from subgrove.plots import _figure
from subgrove.plots._palette import GREY, MARKERS, color_of, font_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_WIDTH = 6.4  # of a new figure, in inches
_LEFT_FOR_ROWS = 0.55  # share of the width that is left for the rows at least
_LEGEND = 0.8  # share of the width that a legend takes at most, before the labels of rows take theirs
_LINE = 1.2  # distance of two lines, as a multiple of the size of the font
_SMALL = 0.84  # size of the lines below a name, likewise
_GAP = 0.55  # between two rows, in lines
_SHRINK = (1.0, 0.88, 0.78, 0.63)
_READABLE = 0.78  # smaller text is preferred to shortened names down to here
_PAD = 6.0  # points between a label and the axes
_AROUND = 62.0  # points above and below the rows of a new figure, without a legend
_BESIDE = 20.0  # points that labels and notes take of axes that are given


@dataclass(frozen=True)
class RowEntry:
    """The label of a row: a feature or a rule, items to be listed below it, and a shorter text if these do not fit."""

    name: str
    listed: tuple[str, ...] = ()
    short: str = ""


@dataclass(frozen=True)
class RowLabels:
    """Labels of the rows of a plot, their number of lines at most, their share of the width, and a line at zero."""

    entries: Sequence[RowEntry]
    n_names: int = 2
    n_below: int = 2
    most_label: float = 0.42
    remedy: str = ""
    zero: bool = True


@dataclass(frozen=True, eq=False)
class RowSeries:
    """Values of all rows, from one result; NaN where it has none. `marked`: which failed the fidelity check."""

    label: str
    estimate: Floats
    low: Floats
    high: Floats
    marked: Sequence[bool] | npt.NDArray[np.bool_] = ()


@dataclass(frozen=True)
class WrappedLabels:
    """Labels of all rows in lines: each name and what stands below it, and the size of the font of names."""

    font: float
    texts: Sequence[tuple[str, str]]

    @property
    def pitch(self) -> float:
        """Distance of two rows in points at which labels do not touch."""
        most = max(_figure.n_lines_of(f"{name}\n{below}" if below else name) for name, below in self.texts)
        return (most + _GAP) * _LINE * self.font


def draw_rows(
    ax: Axes | None,
    rows: RowLabels,
    series: Sequence[RowSeries] = (),
    *,
    label: str,
    text: str,
    legend: Mapping[str, Line2D] | None = None,
) -> Axes:
    """Draw labelled rows with a label of x and a note below it, and series of points.

    The legend, from label to handle, has the series too; without it, only several series have one. The user's axes are
    left as they were if they are too low.
    """
    _figure.check_axes(ax)
    entries = dict(legend or {})
    if legend or len(series) > 1:
        entries |= {one.label: _handle(place) for place, one in enumerate(series)}
    if ax is None:
        ax = _new_axes(rows, list(entries))
    else:
        width, height = _figure.size_of(ax)
        _fitting(rows, width, height - _BESIDE)
    _figure.dress(ax, grid="x")
    ax.spines["left"].set_visible(False)
    ax.set_yticks([])
    _figure.label_axis(ax.xaxis, label, _LEFT_FOR_ROWS * _figure.size_of(ax)[0])
    if entries:
        _figure.legend_above(ax, list(entries.values()), list(entries), share=_LEGEND)
    _figure.note(ax, text, _LEFT_FOR_ROWS)
    _label_rows(ax, rows)
    if series:
        _draw_series(ax, series)
    return ax


def _handle(place: int) -> Line2D:
    """Return the legend handle of a series."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color_of(place), marker=MARKERS[place % len(MARKERS)], markersize=5, linewidth=1.6)


def _draw_series(ax: Axes, series: Sequence[RowSeries]) -> None:
    """Points with intervals; several results are a little apart, the first at the top."""
    n = len(series[0].estimate)
    step = 0.5 / len(series)
    size = float(np.clip(0.8 * step * _figure.size_of(ax)[1] / n, 2.5, 5.0))
    for place, one in enumerate(series):
        color, marker = color_of(place), MARKERS[place % len(MARKERS)]
        y = np.arange(n) + (place - (len(series) - 1) / 2) * step
        ax.hlines(y, one.low, one.high, color=color, linewidth=1.6, alpha=0.7, zorder=2)
        ax.plot(one.estimate, y, marker, color=color, markersize=size, label=_figure.one_line(one.label), zorder=3)
        for row in np.flatnonzero(one.marked).tolist():
            # The mark of a failed fidelity check stands at the right end of the interval.
            at = np.nanmax([one.estimate[row], one.high[row]]), y[row]
            look: dict[str, Any] = {"va": "center_baseline", "weight": "bold", "color": color, "size": font_size()}
            ax.annotate(MARK, at, (4.0, 0.0), textcoords="offset points", annotation_clip=False, **look)


def _new_axes(rows: RowLabels, legend: Sequence[str]) -> Axes:
    """Axes of a new figure that is high enough for all rows."""
    labels = _wrapped(rows, rows.most_label * _WIDTH * _figure.POINTS, font_size(), rows.n_names, rows.n_below)
    pitch = max(labels.pitch, (1.3 + 0.55 * max(len(legend), 1)) * font_size())
    height = (len(rows.entries) * pitch + _AROUND) / _figure.POINTS
    height += _figure.legend_height(legend, _LEFT_FOR_ROWS * _WIDTH)
    return _figure.new_figure(_WIDTH, height).add_subplot()


def _label_rows(ax: Axes, rows: RowLabels) -> None:
    """Write the labels of rows 0, 1, 2 and so on at the left of the axes."""
    n = len(rows.entries)
    width, height = _figure.size_of(ax)
    labels = _fitting(rows, width, height)
    # Empty lines keep the room of what is written below a name in another size and colour.
    texts = [name + "\n" * _figure.n_lines_of(below) if below else name for name, below in labels.texts]
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_yticks(range(n), texts, parse_math=False, size=labels.font, linespacing=1.15)
    ax.tick_params(axis="y", length=0, pad=_PAD)
    widest = _figure.widest([name for name, _ in labels.texts], labels.font)
    _figure.number_ticks(ax.xaxis, width - min(widest, rows.most_label * width))
    if rows.zero:
        ax.axvline(0, color=GREY, linewidth=1.0, zorder=1.5)
    look: dict[str, Any] = {"ha": "right", "va": "center", "color": GREY, "linespacing": 1.15, "parse_math": False}
    look |= {"size": _SMALL * labels.font, "annotation_clip": False}
    for row, (name, below) in enumerate(labels.texts):
        ax.axhline(row, color=GREY, alpha=0.25, linewidth=0.6, linestyle=(0, (1, 2)), zorder=0.5)
        if below:
            shift = -(_figure.n_lines_of(name) / 2 + 0.08) * _LINE * labels.font
            ax.annotate(below, (0.0, row), (-_PAD, shift), ax.get_yaxis_transform(), "offset points", **look)


def _fitting(rows: RowLabels, width: float, height: float) -> WrappedLabels:
    """Return labels for axes of that size: whole in a smaller font if possible, else with fewer lines."""
    pitch, whole = height / len(rows.entries), (rows.n_names, rows.n_below)
    fitting = None
    for (n_names, n_below), scale in product((whole, (rows.n_names, 0), (1, 0)), _SHRINK):
        labels = _wrapped(rows, rows.most_label * width, scale * font_size(), n_names, n_below)
        if labels.pitch - 0.7 * _GAP * _LINE * labels.font <= pitch:
            fitting = fitting or labels
            if scale >= _READABLE and not any(_figure.DOTS in name for name, _ in labels.texts):
                return labels
    if fitting is None:
        most = int(height / ((1 + 0.3 * _GAP) * _LINE * _SHRINK[-1] * font_size()))
        what = f"ax is {height / _figure.POINTS:.1f} inches high, too low to write {len(rows.entries)} rows"
        raise ParameterError(f"{what}: about {max(0, most)} fit. Enlarge the figure{rows.remedy}, or leave ax out.")
    return fitting


def _wrapped(rows: RowLabels, room: float, font: float, n_names: int, n_below: int) -> WrappedLabels:
    texts = []
    for entry in rows.entries:
        listed = entry.listed if n_below else ()
        below = _figure.wrap_list(listed, entry.short, room, _SMALL * font, n_below) if listed else ""
        texts.append((_figure.wrap(entry.name, room, font, n_names), below))
    return WrappedLabels(font, texts)


Result = TypeVar("Result", bound=ImportanceData)


@dataclass(frozen=True, eq=False)
class ImportanceRows:
    """Features from the largest to the smallest estimate, and what each result says of them.

    Attributes
    ----------
    features : tuple of str
        Names.
    given : tuple of tuples of str
        For each feature the columns that it is conditioned on.
    series : tuple of Series
        Estimates and intervals of each result.
    label : str
        Label of the axis.
    intervals : str
        What the intervals cover.
    left_out : int
        Number of features with smaller estimates.
    """

    features: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    series: tuple[RowSeries, ...]
    label: str
    intervals: str
    left_out: int


def read_results(result: Any, others: Sequence[Any]) -> dict[str, ImportanceResult]:
    """Label -> result."""
    if isinstance(result, Mapping):
        if others or not result:
            raise ParameterError("result is a mapping from label to result: put all results into it, at least one.")
        check_each("result", result)
        return {str(label): one for label, one in result.items()}
    words = "an ImportanceResult, which importance returns, or a mapping from label to one"
    found: dict[str, ImportanceResult] = {}
    for one in (result, *others):
        _figure.check_type("result", one, ImportanceResult, words)
        auto = importance_kind(one) if one.settings.get("sampler") == "auto" else ""
        name = str(auto or one.settings.get("sampler") or one.settings.get("method") or "importance")
        found[_figure.unique_label(name, found)] = one
    return found


def check_each(argument: str, results: Mapping[Any, Any]) -> None:
    """Raise if a mapping has values other than results."""
    for label, one in results.items():
        _figure.check_type(f"{argument}[{label!r}]", one, ImportanceResult, "an ImportanceResult")


def one_loss(result: Result, loss: str | None) -> Result:
    """A result of one loss whose tables are pandas frames."""
    return replace(result.for_loss(result.losses[0] if loss is None else loss), backend="pandas")


def importance_rows(
    results: Mapping[str, ImportanceResult], loss: str | None, top: int | None = None
) -> ImportanceRows:
    """Return what is drawn of some results: the features with the largest estimates, all by default."""
    name = loss if loss is not None else next(iter(results.values())).losses[0]
    single = [one_loss(result, name) for result in results.values()]
    tables = [result.overall.set_index("feature") for result in single]
    found: dict[str, float] = {}
    for table in tables:  # the first result that has a feature decides its place
        found |= {each: value for each, value in table["estimate"].items() if each not in found}
    in_order = sorted(found, key=lambda each: -np.inf if np.isnan(found[each]) else found[each], reverse=True)
    names = in_order[:top]
    series = []
    for label, table in zip(results, tables, strict=True):
        own = table.reindex(names)
        estimate, low, high = own[["estimate", "conf_low", "conf_high"]].to_numpy(float).T
        failed = (own["fidelity"] == "failed").to_numpy(bool) if "fidelity" in own else False
        series.append(RowSeries(label, estimate, low, high, failed & np.isfinite(estimate)))
    conditioned = [score for result in single for score in result.scores if score.conditioning]
    columns = {score.title: score.conditioning for score in reversed(conditioned)}  # those of the first such result
    given, left_out = tuple(columns.get(each, ()) for each in names), len(in_order) - len(names)
    return ImportanceRows(tuple(names), given, tuple(series), loss_label(single[0]), interval_note(single), left_out)


def loss_label(result: ImportanceData) -> str:
    """Return the label of the axis; scores may decrease when predictions get worse."""
    change = "increase" if result.per_row_losses[0] else "worsening"
    return f"{change} of {result.losses[0].replace('_', ' ')}"


def interval_note(results: Sequence[ImportanceData], name: str = "") -> str:
    """Return the levels of the intervals of some results of one loss, and the sources of variance that they cover.

    `name` is what a score of all rows together, which has no intervals, is called.
    """
    with_intervals = [one for one in results if one.per_row_losses[0]]
    if not with_intervals:
        score = name or f"{results[0].losses[0].replace('_', ' ')} is a score of all rows together"
        return f"no intervals: {score}"
    levels = " and ".join(dict.fromkeys(f"{100 * one.level:g} %" for one in with_intervals))
    covered = dict.fromkeys(" + ".join(one.covered) for one in with_intervals)
    return f"{levels} intervals, covering {' or '.join(covered)}"


def fidelity_note(shown: ImportanceRows, mark: str = MARK) -> str:
    """Return the meaning of the mark of unrealistic resampled rows; "" if there is none."""
    return f"; {mark} if {NOT_REALISTIC}" if any(any(one.marked) for one in shown.series) else ""
