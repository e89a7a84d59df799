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

    entries: tuple[RowEntry, ...]
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
    """Labels of all rows in lines: names, what stands below them, and the size of the font of names."""

    font: float
    names: tuple[str, ...]
    below: tuple[str, ...]

    @property
    def pitch(self) -> float:
        """Distance of two rows in points at which labels do not touch."""
        pairs = zip(self.names, self.below, strict=True)
        most = max(_figure.n_lines_of(name) + (_figure.n_lines_of(below) if below else 0) for name, below in pairs)
        return (most + _GAP) * _LINE * self.font


def draw_rows(
    ax: Axes | None, rows: RowLabels, *, label: str, text: str, legend: Mapping[str, Line2D] | None = None
) -> Axes:
    """Draw labelled rows with a label of x, a note below it, and a legend from label to handle.

    The user's axes are left as they were if they are too low.
    """
    _figure.check_axes(ax)
    entries = legend or {}
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
    return ax


def handle(place: int) -> Line2D:
    """Return the legend handle of a series."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color_of(place), marker=MARKERS[place % len(MARKERS)], markersize=5, linewidth=1.6)


def draw_series(ax: Axes, series: Sequence[RowSeries]) -> None:
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
            _annotate(ax, MARK, (np.nanmax([one.estimate[row], one.high[row]]), y[row]), color)


def _annotate(ax: Axes, text: str, at: tuple[float, float], color: str) -> None:
    look: dict[str, Any] = {"ha": "left", "va": "center_baseline", "weight": "bold", "color": color}
    ax.annotate(text, at, (4.0, 0.0), textcoords="offset points", size=font_size(), annotation_clip=False, **look)


def _new_axes(rows: RowLabels, legend: Sequence[str]) -> Axes:
    """Axes of a new figure that is high enough for all rows."""
    labels = _wrapped(rows, rows.most_label * _WIDTH * _figure.POINTS, font_size(), rows.n_names, rows.n_below)
    pitch = max(labels.pitch, (1.3 + 0.55 * max(len(legend), 1)) * font_size())
    height = (len(rows.entries) * pitch + _AROUND) / _figure.POINTS + _figure.legend_height(
        legend, _LEFT_FOR_ROWS * _WIDTH
    )
    return _figure.new_figure(_WIDTH, height).add_subplot()


def _label_rows(ax: Axes, rows: RowLabels) -> None:
    """Write the labels of rows 0, 1, 2 and so on at the left of the axes."""
    n = len(rows.entries)
    width, height = _figure.size_of(ax)
    labels = _fitting(rows, width, height)
    # Empty lines keep the room of what is written below a name in another size and colour.
    texts = [
        name + "\n" * _figure.n_lines_of(below) if below else name
        for name, below in zip(labels.names, labels.below, strict=True)
    ]
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_yticks(range(n), texts, parse_math=False, size=labels.font, linespacing=1.15)
    ax.tick_params(axis="y", length=0, pad=_PAD)
    _figure.number_ticks(ax.xaxis, width - min(_figure.widest(labels.names, labels.font), rows.most_label * width))
    if rows.zero:
        ax.axvline(0, color=GREY, linewidth=1.0, zorder=1.5)
    for row, (name, below) in enumerate(zip(labels.names, labels.below, strict=True)):
        ax.axhline(row, color=GREY, alpha=0.25, linewidth=0.6, linestyle=(0, (1, 2)), zorder=0.5)
        if below:
            _write_below(
                ax, row, below, -(_figure.n_lines_of(name) / 2 + 0.08) * _LINE * labels.font, _SMALL * labels.font
            )


def _write_below(ax: Axes, row: int, text: str, shift: float, size: float) -> None:
    look: dict[str, Any] = {"ha": "right", "va": "center", "color": GREY, "linespacing": 1.15, "parse_math": False}
    place = ax.get_yaxis_transform()
    ax.annotate(text, (0.0, row), (-_PAD, shift), place, "offset points", size=size, annotation_clip=False, **look)


def _fitting(rows: RowLabels, width: float, height: float) -> WrappedLabels:
    """Return labels for axes of that size: whole in a smaller font if possible, else with fewer lines."""
    pitch, whole = height / len(rows.entries), (rows.n_names, rows.n_below)
    fitting = None
    for (n_names, n_below), scale in product((whole, (rows.n_names, 0), (1, 0)), _SHRINK):
        labels = _wrapped(rows, rows.most_label * width, scale * font_size(), n_names, n_below)
        if labels.pitch - 0.7 * _GAP * _LINE * labels.font <= pitch:
            fitting = fitting or labels
            if scale >= _READABLE and not any(_figure.DOTS in name for name in labels.names):
                return labels
    if fitting is None:
        most = int(height / ((1 + 0.3 * _GAP) * _LINE * _SHRINK[-1] * font_size()))
        raise ParameterError(
            f"ax is {height / _figure.POINTS:.1f} inches high, too low to write {len(rows.entries)} rows: about "
            f"{max(0, most)} fit. Enlarge the figure{rows.remedy}, or leave ax out."
        )
    return fitting


def _wrapped(rows: RowLabels, room: float, font: float, n_names: int, n_below: int) -> WrappedLabels:
    names = tuple(_figure.wrap(entry.name, room, font, n_names) for entry in rows.entries)
    below = tuple(
        _figure.wrap_list(entry.listed, entry.short, room, _SMALL * font, n_below) if entry.listed and n_below else ""
        for entry in rows.entries
    )
    return WrappedLabels(font, names, below)


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


def read_results(argument: str, result: Any, others: Sequence[Any]) -> dict[str, ImportanceResult]:
    """Label -> result."""
    if isinstance(result, Mapping):
        if others or not result:
            raise ParameterError(
                f"{argument} is a mapping from label to result: put all results into it, at least one."
            )
        check_each(argument, result)
        return {str(label): one for label, one in result.items()}
    results = (result, *others)
    for one in results:
        if not isinstance(one, ImportanceResult):
            raise ParameterError(
                f"{argument} must be an ImportanceResult, which importance returns, or a mapping from label to one; "
                f"got {type(one).__name__}."
            )
    found: dict[str, ImportanceResult] = {}
    for one in results:
        auto = importance_kind(one) if one.settings.get("sampler") == "auto" else ""
        name = str(auto or one.settings.get("sampler") or one.settings.get("method") or "importance")
        found[_figure.unique_label(name, found)] = one
    return found


def check_each(argument: str, results: Mapping[Any, Any]) -> None:
    """Raise if a mapping has values other than results."""
    for label, one in results.items():
        if not isinstance(one, ImportanceResult):
            raise ParameterError(f"{argument}[{label!r}] must be an ImportanceResult; got {type(one).__name__}.")


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
    in_order = _in_order([table["estimate"] for table in tables])
    names = in_order[:top]
    series = []
    for label, table in zip(results, tables, strict=True):
        found = table.reindex(names)
        estimate, low, high = found[["estimate", "conf_low", "conf_high"]].to_numpy(float).T
        failed = (found["fidelity"] == "failed").to_numpy(bool) if "fidelity" in found else False
        series.append(RowSeries(label, estimate, low, high, failed & np.isfinite(estimate)))
    given = tuple(_conditioning(name, single) for name in names)
    left_out = len(in_order) - len(names)
    return ImportanceRows(tuple(names), given, tuple(series), loss_label(single[0]), interval_note(single), left_out)


def _in_order(estimates: Sequence[Any]) -> list[str]:
    """Features by the estimate of the first result that has them; those without an estimate last."""
    found: dict[str, float] = {}
    for one in estimates:
        for name, value in one.items():
            found.setdefault(name, float(value))
    return sorted(found, key=lambda name: -np.inf if np.isnan(found[name]) else found[name], reverse=True)


def _conditioning(name: str, results: Sequence[ImportanceResult]) -> tuple[str, ...]:
    """The columns that a feature is conditioned on, in the first result in which it is."""
    for result in results:
        for score in result.scores:
            if score.title == name and score.conditioning:
                return score.conditioning
    return ()


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
