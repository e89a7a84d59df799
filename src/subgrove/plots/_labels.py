"""Labels at the left of rows: a name, and small grey lines below it, at a size at which they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from subgrove.plots._palette import GREY, font_size
from subgrove.plots._text import DOTS, Ruler, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE = 1.2  # distance of two lines, as a multiple of the size of the font
_SMALL = 0.84  # size of the lines below a name, likewise
_GAP = 0.55  # between two rows, in lines
_SHRINK = (1.0, 0.92, 0.85, 0.78, 0.7, 0.63)
_READABLE = 4  # of these are tried before lines are left out
_PAD = 6.0  # points between a label and the axes


@dataclass(frozen=True)
class Entry:
    """What is to be said of a row.

    Attributes
    ----------
    name : str
        A feature, or a rule.
    listed : tuple of str
        Items of a list to be written below, as many as have room.
    short : str
        What is written if not even the first has room.
    is_rule : bool
        Whether the name is a rule.
    """

    name: str
    listed: tuple[str, ...] = ()
    short: str = ""
    is_rule: bool = False


@dataclass(frozen=True)
class Labels:
    """Labels of all rows, in lines.

    Attributes
    ----------
    font : float
        Size of the font of names.
    names, below : tuple of tuples of str
        Lines of each row.
    """

    font: float
    names: tuple[tuple[str, ...], ...]
    below: tuple[tuple[str, ...], ...]

    @property
    def pitch(self) -> float:
        """Distance of two rows in points at which labels do not touch."""
        most = max(len(name) + len(below) for name, below in zip(self.names, self.below, strict=True))
        return (most + _GAP) * _LINE * self.font

    def fits(self, pitch: float) -> bool:
        """Whether rows of that height hold the labels, if need be with less between them."""
        return self.pitch - 0.7 * _GAP * _LINE * self.font <= pitch


def labels_for(entries: Sequence[Entry], room: float, n_names: int, n_below: int) -> Labels:
    """Labels of rows of any height; `room` is the most that a label is wide."""
    return _labels(entries, room, font_size(), n_names, n_below)


def fitting_labels(entries: Sequence[Entry], room: float, pitch: float, n_names: int, n_below: int) -> Labels | None:
    """Labels of rows that are `pitch` points high, or None if these are too low to be labelled.

    A somewhat smaller font is better than less to read, and that is better than the smallest font.
    """
    fonts = [scale * font_size() for scale in _SHRINK]
    tried = [(lines, n_below, font) for lines in range(n_names, 0, -1) for font in fonts[:_READABLE]]
    drafts = [_labels(entries, room, font, lines, below) for lines, below, font in tried]
    for labels in drafts:
        if labels.fits(pitch) and not any(DOTS in line for name in labels.names for line in name):
            return labels
    fewer = product(range(n_below, -1, -1), range(n_names, 0, -1), fonts[:_READABLE])
    for below, lines, font in (*fewer, *product([0], [1], fonts[_READABLE:])):
        labels = _labels(entries, room, font, lines, below)
        if labels.fits(pitch):
            return labels
    return None


def smallest_row() -> float:
    """Height in points of the lowest row that can be labelled."""
    return (1 + 0.3 * _GAP) * _LINE * _SHRINK[-1] * font_size()


def _labels(entries: Sequence[Entry], room: float, font: float, n_names: int, n_below: int) -> Labels:
    ruler, small = Ruler(font), Ruler(_SMALL * font)
    names = tuple(
        ruler.wrap_rule(entry.name, room, n_names) if entry.is_rule else ruler.wrap_name(entry.name, room, n_names)
        for entry in entries
    )
    below = tuple(_listed(entry, small, room, n_below) if entry.listed and n_below else () for entry in entries)
    return Labels(font, names, below)


def _listed(entry: Entry, ruler: Ruler, room: float, n_lines: int) -> tuple[str, ...]:
    """As many items of a list as there is room for, and how many more there are."""
    items = [plain(item) for item in entry.listed]
    for shown in range(len(items), 0, -1):
        more = len(items) - shown
        pieces = [
            *(f"{item}, " for item in items[: shown - 1]),
            f"{items[shown - 1]} ",
            f"and {more} more" * (more > 0),
        ]
        lines = ruler.wrap(pieces, room)
        if len(lines) <= n_lines and not any(DOTS in line for line in lines):
            return lines
    return (ruler.shorten(entry.short or items[0], room),)


def draw_labels(ax: Axes, labels: Labels) -> None:
    """Write the labels of rows 0, 1, 2 and so on at the left of the axes."""
    # Empty lines keep the room of what is written below a name in another size and colour.
    texts = ["\n".join((*name, *[""] * len(below))) for name, below in zip(labels.names, labels.below, strict=True)]
    ax.set_yticks(range(len(texts)), texts, parse_math=False, size=labels.font, linespacing=1.15)
    ax.tick_params(axis="y", length=0, pad=_PAD)
    for row, (name, below) in enumerate(zip(labels.names, labels.below, strict=True)):
        if below:
            _draw_below(ax, row, below, -(len(name) / 2 + 0.08) * _LINE * labels.font, _SMALL * labels.font)


def _draw_below(ax: Axes, row: int, lines: Sequence[str], shift: float, size: float) -> None:
    written = ax.annotate(
        "\n".join(lines),
        (0.0, row),
        (-_PAD, shift),
        xycoords=ax.get_yaxis_transform(),
        textcoords="offset points",
        ha="right",
        va="center",
        size=size,
        color=GREY,
        linespacing=1.15,
        annotation_clip=False,
    )
    written.set_parse_math(False)
