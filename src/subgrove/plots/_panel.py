"""One panel of effects: its curves, axes and legend, and how it is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._effects import Effect
from subgrove._effects.subgroup_rows import FeatureSupport
from subgrove.exceptions import ParameterError
from subgrove.plots import _curves, _figure
from subgrove.plots._axis import FeatureAxis, feature_axis
from subgrove.plots._lines import ALE, KINDS, EffectLine, lines_of, without_curve
from subgrove.plots._palette import GREY, color_of, font_size, style_of
from subgrove.trees.tree import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOX = 5.5  # points for a box of predictions


@dataclass(frozen=True, eq=False)
class EffectPanel:
    """The content of one panel.

    Attributes
    ----------
    lines : tuple of Line
        The curves.
    surface : Line or None
        The surface, if a heat map is drawn instead.
    pale : tuple of str
        Grey labels of the legend.
    interval : bool
        Whether intervals are drawn.
    y_scale : str
        Scale of y; panels with the same value share the axis.
    words, method, output : str
        Quantity, method and output of the axis of y.
    title : str
        Text above the panel.
    """

    lines: tuple[EffectLine, ...]
    surface: EffectLine | None
    pale: tuple[str, ...]
    interval: bool
    y_scale: str
    words: str
    method: str
    output: str
    title: str = ""

    @property
    def y_label(self) -> str:
        """Label of the axis of y."""
        return " ".join(part for part in (self.words, self.output and f"of {self.output}", self.method) if part)

    @property
    def scale(self) -> FeatureAxis:
        """The axis of x."""
        supports = [line.support for line in self.lines]
        ends = [support.box[[0, 6]] for support in supports if len(support.box)] + [line.x for line in self.lines]
        alone = len(self.lines) == 1 and self.lines[0].kind == ALE
        return feature_axis(self.lines[0].curve.axes[0].info, ends, keep_order=alone)

    @property
    def level_room(self) -> float:
        """Width in inches at which every level has room for a label and for its boxes."""
        each = max(_figure.LINE * font_size(), _BOX * len(self.lines))
        return len(self.scale.order) * each / _figure.POINTS if self.surface is None else 0.0

    @property
    def labels(self) -> list[str]:
        """Labels of the legend."""
        if self.surface is not None:
            return []
        if len(self.lines) == 1 and not self.pale:
            is_ice = self.lines[0].ice is not None and not self.scale.has_levels
            return ["one row", "mean (PDP)"] if is_ice else []
        return [line.label for line in self.lines] + list(self.pale)

    @property
    def has_bands(self) -> bool:
        """Whether intervals are drawn as bands."""
        curves = self.surface is None and not self.scale.has_levels and self.lines[0].ice is None
        return self.interval and curves and any(len(line.x) > 1 for line in self.lines)

    @property
    def supports(self) -> list[tuple[FeatureSupport, str]]:
        """The distribution of the feature and its colour: for each subgroup, or once where all are of the same rows."""
        if _same_rows(self.lines):
            return [(self.lines[0].support, GREY if len(self.lines) > 1 else color_of(0))]
        return [(line.support, color_of(place)) for place, line in enumerate(self.lines)]


def _same_rows(lines: Sequence[EffectLine]) -> bool:
    """Whether the distribution is the same in all lines, as in the PDP and the ALE curve of the same table."""
    first = lines[0].support
    return all(
        np.array_equal(first.box, line.support.box, equal_nan=True)
        and np.array_equal(first.counts, line.support.counts)
        and np.array_equal(first.outliers, line.support.outliers)
        and lines[0].group.n == line.group.n
        for line in lines
    )


def panel_of(effects: Mapping[str, Effect], output: Any, interval: bool | None) -> EffectPanel:
    """Return the panel of some effects."""
    if interval is not None and not isinstance(interval, bool):
        raise ParameterError(f"interval must be True, False or None; got {interval!r}.")
    lines = lines_of(effects, output)
    pale = tuple(without_curve(effects))
    if not lines:
        raise ParameterError(f"No subgroup has two rows or more, so there is no curve to draw: {'; '.join(pale)}.")
    surface = None
    if len(lines[0].curve.axes) == 2:
        if len(lines) > 1:
            some = f"{len(lines)} surfaces"
            raise ParameterError(f"{some} have no room in one axes. plots.effects(...) draws a panel for each.")
        if _curves.as_lines(lines[0]):
            lines = _curves.level_lines(lines[0])
        else:
            surface = lines[0]
    interval = len(lines) == 1 if interval is None else interval
    return EffectPanel(tuple(lines), surface, pale, interval, *_wording(lines), _output(lines, effects))


def _output(lines: Sequence[EffectLine], effects: Mapping[str, Effect]) -> str:
    """The output that is drawn, if it is one of several, or a class."""
    drawn = {line.output for line in lines}
    only = all(one.outputs == (0,) for one in effects.values())
    return "" if only or len(drawn) > 1 else _figure.one_line(str(drawn.pop()))


def _wording(lines: Sequence[EffectLine]) -> tuple[str, str, str]:
    """With what the values are comparable, what they are, and by which method."""
    kinds = {line.kind for line in lines}
    if kinds == {ALE}:
        return "change", "accumulated local effect on prediction", ""
    if all(line.ice is not None and len(line.ice) > 1 and not line.ice[0].any() for line in lines):
        return "difference", "prediction less that at the first point", ""
    if lines[0].spread is not None:
        return "prediction", "prediction", "(dot: mean)"
    if kinds == {"ice"}:
        return "prediction", "prediction", ""
    return "prediction", "mean prediction", f"({KINDS[kinds.pop()]})" if len(kinds) == 1 else ""


def draw_panel(ax: Axes, panel: EffectPanel, *, limits: tuple[float, float] | None = None, legend: bool = True) -> None:
    """Draw a panel into axes; a heat map with the colours of these limits and no bar, if they are given."""
    if panel.surface is not None:
        _figure.dress(ax)
        _curves.draw_heat_map(ax, panel.surface, limits)
        _curves.draw_strips(ax, panel.surface)
        _curves.set_axes(ax, panel.surface)
        if limits is None:
            _curves.draw_color_bar([ax], panel.y_label)
        _curves.set_axes(ax, panel.surface)  # the bar took some of the room
    else:
        _draw_lines(ax, panel, legend and bool(panel.labels))
    if text := "; ".join(_notes(panel)):
        _figure.note(ax, text)


def _draw_lines(ax: Axes, panel: EffectPanel, legend: bool) -> None:
    _figure.dress(ax, grid="y")
    _curves.draw_strip(ax, panel.scale, panel.supports)
    _set_axes(ax, panel)
    if legend:
        n = len(panel.labels)
        _figure.legend_above(ax, _handles(panel), panel.labels, pale=range(n - len(panel.pale), n))
    if {line.kind for line in panel.lines} == {ALE}:
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    if panel.scale.has_levels:
        _curves.draw_levels(ax, panel.scale, panel.lines)
    else:
        n_rows, several = sum(map(_curves.drawn_rows, panel.lines)), len(panel.lines) > 1
        for place, line in enumerate(panel.lines):
            color = color_of(place)
            _curves.draw_ice(ax, panel.scale, line, color if several else GREY, n_rows)
            _curves.draw_curve(ax, panel.scale, line, color, style_of(place), interval=panel.has_bands)
    _set_axes(ax, panel)  # labels, ticks and the legend took some of the room


def _set_axes(ax: Axes, panel: EffectPanel) -> None:
    """Ticks and labels of both axes, for the room that there is."""
    width, height = _figure.size_of(ax)
    panel.scale.set_up(ax.xaxis, 0.95 * width)
    _figure.number_ticks(ax.yaxis, height)
    _figure.label_axis(ax.xaxis, panel.scale.label, width)
    _figure.label_axis(ax.yaxis, panel.y_label, height)


def _handles(panel: EffectPanel) -> list[Any]:
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if len(panel.labels) > len(panel.lines) + len(panel.pale):
        return [Line2D([], [], color=GREY, linewidth=0.6), Line2D([], [], color=color_of(0), linewidth=2.8)]
    handles: list[Any] = [
        Patch(facecolor=to_rgba(color_of(place), 0.3), edgecolor=color_of(place))
        if panel.scale.has_levels
        else Line2D([], [], color=color_of(place), linestyle=style_of(place), linewidth=2.8)
        for place in range(len(panel.lines))
    ]
    return handles + [Patch(alpha=0.0)] * len(panel.pale)


def _notes(panel: EffectPanel) -> Iterator[str]:
    """Yield the notes below the axes."""
    if panel.has_bands:
        yield "band: 95 % interval, noise of the rows"
    missing = sum(support.missing for support, _ in panel.supports) if panel.surface is None else 0
    if missing:
        have, name = "row has" if missing == 1 else "rows have", panel.lines[0].support.info.name
        yield f"{format_count(float(missing))} {have} no value of {_figure.one_line(name)}"
    total = sum(0 if line.ice is None else line.ice.shape[1] for line in panel.lines)
    drawn = sum(map(_curves.drawn_rows, panel.lines))
    if drawn < total and not panel.scale.has_levels:
        yield f"{drawn} of {total} rows are drawn, at most {_curves.MOST_ROWS} for each curve"
