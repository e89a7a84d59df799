"""Plot of the dependence between features."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.html_views import plot_of
from subgrove._core.kinds import Floats
from subgrove._core.text import percent
from subgrove._core.validate import whole_number
from subgrove._dependence import Dependence
from subgrove.exceptions import ParameterError
from subgrove.plots import _figure
from subgrove.plots._figure import POINTS, size_of, widest, wrap
from subgrove.plots._palette import GREY, font_size, small_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALL = "all others"
_SEEN = 0.005  # columns with a smaller share of every feature are left out, if there are many
_MANY = 12  # number of columns that are always shown
_CELL = 34.0, 21.0  # points of a cell in a new figure
_LEAST = 6.0  # points of a cell below which labels cannot be read
_NAME = 130.0  # points that the name of a feature may take
_AROUND = 60.0
_GAP = 0.35  # between the first column and the others, in cells
_DARK = 0.55  # from which on numbers are white


@plot_of.register(Dependence)
def dependence(result: Dependence, *, ax: Axes | None = None, top: int | None = None) -> Axes:
    """Draw a heat map of how well the other columns predict each feature.

    The first column is the share of the loss that all others explain; the others are its parts, which sum to it. The
    features that are predicted best are at the top, and a line is drawn below those that reach the threshold.

    Parameters
    ----------
    result : Dependence
        Result of `subgrove.dependence`.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.
    top : int, optional
        Number of features to keep, those predicted best; all by default.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    If there are more than 12 columns, those that predict no shown feature are left out, and a note gives their number.
    A feature without a value has crosses.

    Examples
    --------
    >>> import subgrove as sg
    >>> found = sg.dependence(sg.datasets.bike().X, n_trees=20, random_state=1)
    >>> ax = sg.plots.dependence(found, top=5)
    """
    _figure.check_type("result", result, Dependence, "what dependence returned")
    _figure.check_axes(ax)
    cells = _cells(result, None if top is None else whole_number("top", top, least=1))
    if ax is None:
        ax = _new_axes(cells)
    else:
        _reject_small(ax, cells)
    _figure.use_layout(ax)
    _draw(ax, cells)
    _label(ax, cells)
    _annotate(ax, cells)
    return ax


@dataclass(frozen=True, eq=False)
class DependenceCells:
    """The cells of the heat map: features by columns, the best predicted first, and `explained` of each feature."""

    features: tuple[str, ...]
    columns: tuple[str, ...]
    explained: Floats
    parts: Floats
    threshold: float
    left_out: int

    @property
    def x(self) -> Floats:
        """Middles of the columns, that of all others first."""
        return np.concatenate([[0.0], np.arange(len(self.columns)) + 1 + _GAP])

    @property
    def shape(self) -> tuple[float, float]:
        """Width and height in cells."""
        return len(self.columns) + 1 + _GAP, float(len(self.features))

    @property
    def line(self) -> float | None:
        """Where features that reach the threshold end, if some do and others do not."""
        n = int((np.nan_to_num(self.explained, nan=-1.0) >= self.threshold).sum())
        return n - 0.5 if 0 < n < len(self.features) else None


def _cells(result: Dependence, top: int | None) -> DependenceCells:
    order = sorted(result.found, key=lambda each: -np.nan_to_num(each.explained, nan=-np.inf))[:top]
    parts = np.array([[each.shares.get(name, np.nan) for name in result.columns] for each in order])
    seen = np.nan_to_num(parts).max(axis=0) >= _SEEN
    shown = seen | (len(result.columns) <= _MANY)
    if not shown.any():
        shown[:_MANY] = True
    features, columns = tuple(each.feature for each in order), tuple(compress(result.columns, shown))
    explained = np.array([each.explained for each in order])
    return DependenceCells(features, columns, explained, parts[:, shown], result.threshold, int((~shown).sum()))


def _new_axes(cells: DependenceCells) -> Axes:
    across, down = cells.shape
    beside = min(_NAME, widest(cells.features, font_size())) + 40
    above = min(_NAME, widest(cells.columns, font_size())) * 0.75
    width, height = across * _CELL[0] + beside, down * _CELL[1] + _AROUND + above
    return _figure.new_figure(max(width, 250.0) / POINTS, height / POINTS).add_subplot()


def _reject_small(ax: Axes, cells: DependenceCells) -> None:
    width, height = size_of(ax)
    if min(width / cells.shape[0], height / cells.shape[1]) < _LEAST:
        content = f"{len(cells.features)} features and {len(cells.columns)} columns"
        what = f"ax is {width:.0f} x {height:.0f} points, too small for {content}."
        raise ParameterError(f"{what} Make it larger, keep fewer features with top=, or leave ax out.")


def _draw(ax: Axes, cells: DependenceCells) -> None:
    """Colours of all cells; what has no value is grey, or crossed."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("explained", ["#F4F6F8", "#9DC3E0", "#0072B2", "#08306B"])
    with_grey = colors.with_extremes(bad="#DADADA")
    look: dict[str, Any] = {"cmap": with_grey, "vmin": 0.0, "vmax": 1.0, "edgecolors": "white", "linewidth": 1.0}
    y = np.arange(len(cells.features) + 1) - 0.5
    # A negative share is drawn as 0; its number is in the cell.
    ax.pcolormesh([-0.5, 0.5], y, np.maximum(cells.explained, 0)[:, None], **look)
    ax.pcolormesh(np.arange(len(cells.columns) + 1) + 0.5 + _GAP, y, cells.parts, **look)
    ax.set_xlim(-0.5, len(cells.columns) + 0.5 + _GAP)
    ax.set_ylim(len(cells.features) - 0.5, -0.5)
    for at in np.flatnonzero(np.isnan(cells.explained)):
        ax.plot(cells.x, np.full(len(cells.x), at), "x", color=GREY, markersize=4, clip_on=False)
    if cells.line is not None:
        ax.axhline(cells.line, color="black", linewidth=1.0)
    ax.spines[:].set_visible(False)


def _label(ax: Axes, cells: DependenceCells) -> None:
    """Names of features at the left and of columns above, as far as they fit; numbers in the cells, if they do."""
    width, height = size_of(ax)
    across, down = width / cells.shape[0], height / cells.shape[1]
    size = min(font_size(), 0.8 * min(across, down))
    names, above = ([wrap(name, _NAME, size, 1) for name in some] for some in (cells.features, (ALL, *cells.columns)))
    look: dict[str, Any] = {"size": size, "parse_math": False}
    ax.set_yticks(range(len(names)), names, **look)
    upright = widest(above, size) > 0.95 * across
    turned: dict[str, Any] = {"rotation": 40, "ha": "left", "rotation_mode": "anchor"} if upright else {}
    ax.set_xticks(cells.x, above, **look, **turned)
    ax.get_xticklabels()[0].set_fontweight("bold")
    ax.tick_params(length=0, top=True, bottom=False, labeltop=True, labelbottom=False, pad=2)
    digits = min(small_size(), 0.42 * across, 0.7 * down)
    if digits >= 0.6 * small_size():
        _write(ax, cells, digits)


def _write(ax: Axes, cells: DependenceCells, size: float) -> None:
    values = np.column_stack([cells.explained, cells.parts])
    for row, column in np.argwhere(~np.isnan(values)).tolist():
        value, whole = float(values[row, column]), column == 0
        if whole or value >= _SEEN:
            look: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold" if whole else "normal"}
            color = "white" if value > _DARK else "black"
            ax.text(cells.x[column], row, f"{round(100 * value)}", size=size, color=color, **look)


def _annotate(ax: Axes, cells: DependenceCells) -> None:
    text = "share of the feature explained by the other columns, in %, and its parts"
    _figure.label_axis(ax.xaxis, text, size_of(ax)[0])
    ax.xaxis.set_label_position("bottom")
    said = [f"line: {percent(cells.threshold)} explained"] if cells.line is not None else []
    if cells.left_out:
        columns = "1 column" if cells.left_out == 1 else f"{cells.left_out} columns"
        said.append(f"{columns} without predictive value left out")
    if said:
        _figure.note(ax, "; ".join(said))
