"""One panel of effects: what is drawn in it, what its axes say, and how high its legend is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._effects import Effect
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import POINTS
from subgrove.plots._legend import lines_of_legend
from subgrove.plots._lines import ALE, KINDS, Line, lines_of, without_curve
from subgrove.plots._palette import GREY, color_of, font_size
from subgrove.plots._scale import Scale, scale_of
from subgrove.plots._strip import Lying
from subgrove.plots._surface import as_lines, level_lines
from subgrove.plots._text import Ruler, plain

_BOX = 5.5  # points for a box of predictions


@dataclass(frozen=True, eq=False)
class Panel:
    """What one panel shows.

    Attributes
    ----------
    lines : tuple of Line
        The curves.
    surface : Line or None
        What is drawn as a heat map instead.
    pale : tuple of str
        What the legend says in grey.
    interval : bool
        Whether intervals are drawn.
    y_scale : str
        What numbers of the axis of y are comparable with: those of panels that say the same.
    words, method, output : str
        What the axis of y shows, of which kind, and of which output.
    """

    lines: tuple[Line, ...]
    surface: Line | None
    pale: tuple[str, ...]
    interval: bool
    y_scale: str
    words: str
    method: str
    output: str

    @property
    def y_label(self) -> str:
        """What the axis of y says."""
        return " ".join(part for part in (self.words, self.output and f"of {self.output}", self.method) if part)

    @property
    def scale(self) -> Scale:
        """The axis of x."""
        supports = [line.support for line in self.lines]
        ends = [support.box[[0, 6]] for support in supports if len(support.box)] + [line.x for line in self.lines]
        alone = len(self.lines) == 1 and self.lines[0].kind == ALE
        return scale_of(self.lines[0].curve.axes[0].info, ends, keep_order=alone)

    @property
    def level_room(self) -> float:
        """Width in inches at which every level has room for a label and for its boxes."""
        each = max(Ruler(font_size()).line, _BOX * len(self.lines))
        return len(self.scale.order) * each / POINTS if self.surface is None else 0.0

    @property
    def labels(self) -> list[str]:
        """What the legend says."""
        if len(self.lines) == 1 and not self.pale:
            return ["one row", "mean (PDP)"] if self._is_ice else []
        return [line.label for line in self.lines] + list(self.pale)

    @property
    def _is_ice(self) -> bool:
        return self.lines[0].ice is not None and not self.scale.has_levels

    @property
    def has_bands(self) -> bool:
        """Whether intervals are drawn as bands."""
        curves = self.surface is None and not self.scale.has_levels and self.lines[0].ice is None
        return self.interval and curves and any(len(line.x) > 1 for line in self.lines)

    @property
    def supports(self) -> list[Lying]:
        """Where the feature lies: for each subgroup, or once where all lines are of the same rows."""
        if len({id(line.support) for line in self.lines}) == 1 or _same_rows(self.lines):
            return [Lying(self.lines[0].support, GREY if len(self.lines) > 1 else color_of(0))]
        return [Lying(line.support, color_of(place)) for place, line in enumerate(self.lines)]


def _same_rows(lines: Sequence[Line]) -> bool:
    """Whether the feature lies the same in all lines, as in the PDP and the ALE curve of the same table."""
    first = lines[0].support
    return all(
        np.array_equal(first.box, line.support.box, equal_nan=True)
        and np.array_equal(first.counts, line.support.counts)
        and np.array_equal(first.outliers, line.support.outliers)
        and lines[0].group.n == line.group.n
        for line in lines
    )


def panel_of(effects: Mapping[str, Effect], output: Any, interval: bool | None) -> Panel:
    """What is to be drawn of some effects."""
    lines = lines_of(effects, output)
    pale = tuple(without_curve(effects))
    if not lines:
        raise ParameterError(f"No subgroup has two rows or more, so there is no curve to draw: {'; '.join(pale)}.")
    surface = None
    if len(lines[0].curve.axes) == 2:
        if len(lines) > 1:
            raise ParameterError(
                f"{len(lines)} surfaces have no room in one axes. plots.effects(...) draws a panel for each."
            )
        if as_lines(lines[0]):
            lines = level_lines(lines[0])
        else:
            surface = lines[0]
    interval = len(lines) == 1 if interval is None else interval
    return Panel(tuple(lines), surface, pale, interval, *_wording(lines), _output(lines, effects))


def _output(lines: Sequence[Line], effects: Mapping[str, Effect]) -> str:
    """The output that is drawn, if it is one of several, or a class."""
    drawn = {line.output for line in lines}
    only = all(one.outputs == (0,) for one in effects.values())
    return "" if only or len(drawn) > 1 else plain(str(drawn.pop()))


def _wording(lines: Sequence[Line]) -> tuple[str, str, str]:
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


def legend_height(panel: Panel, width: float) -> float:
    """Height in inches of the legend of a panel of that width."""
    if not panel.labels or panel.surface is not None:
        return 0.0
    return lines_of_legend(panel.labels, width * POINTS) * 1.35 * font_size() / POINTS
