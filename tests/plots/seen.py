"""Texts that are seen in a figure, and whether they touch or are cut off."""

from __future__ import annotations

from io import BytesIO
from weakref import WeakSet

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from .drawn import touching

_DRAWN: WeakSet[Figure] = WeakSet()


def words(ax: Axes) -> list[str]:
    """What is written in the figure, each text on one line."""
    return [" ".join(text.split()) for text, _ in texts(ax)]


def texts(ax: Axes) -> list[tuple[str, Bbox]]:
    """Every text that is seen in the figure of the axes once it is drawn, and the box around it."""
    figure = ax.figure.figure
    assert isinstance(figure, Figure)
    if figure.stale or figure not in _DRAWN:
        figure.savefig(BytesIO(), format="png", dpi="figure")
        figure.stale = False  # whatever is changed from now on says so
        _DRAWN.add(figure)
    found = [text for each in figure.axes for text in _texts_of(each)]
    return [(text.get_text(), _box(text)) for text in found if text.get_visible() and text.get_text().strip()]


def overlaps(ax: Axes) -> list[tuple[str, str]]:
    """Pairs of texts that touch."""
    return touching(texts(ax), slack=1.5)


def cut_off(ax: Axes, slack: float = 1.0) -> list[str]:
    """Texts that leave the figure."""
    whole = ax.figure.figure.bbox
    return [
        text
        for text, box in texts(ax)
        if box.x0 < whole.x0 - slack
        or box.y0 < whole.y0 - slack
        or box.x1 > whole.x1 + slack
        or box.y1 > whole.y1 + slack
    ]


def legend_texts(ax: Axes) -> list[str]:
    """What the legend says, each label on one line."""
    legend = ax.get_legend()
    return [] if legend is None else [" ".join(text.get_text().split()) for text in legend.get_texts()]


def row_names(ax: Axes) -> list[str]:
    """Names of rows, from the top down."""
    return [" ".join(label.get_text().split()) for label in ax.get_yticklabels()]


def _texts_of(ax: Axes) -> list[Text]:
    legend = ax.get_legend()
    titles = [ax.title, ax._left_title]  # type: ignore[attr-defined]  # where loc="left" puts it
    return [
        *ax.texts,
        *titles,
        *(legend.get_texts() if legend is not None else []),
        *_axis_texts(ax.xaxis),
        *_axis_texts(ax.yaxis),
    ]


def _axis_texts(axis: Axis) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [axis.label, *(label for tick in ticks for label in (tick.label1, tick.label2) if label.get_visible())]


def _box(text: Text) -> Bbox:
    """The box around a text, without the empty lines that keep room below it."""
    box, lines = text.get_window_extent(), text.get_text().split("\n")
    empty = len(lines) - len(text.get_text().rstrip("\n").split("\n"))
    return Bbox([[box.x0, box.y0 + box.height * empty / len(lines)], [box.x1, box.y1]])
