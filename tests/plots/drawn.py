"""What is seen in a picture, once it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axes._base import _AxesBase
from matplotlib.patches import FancyBboxPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox


@dataclass(frozen=True)
class Drawn:
    """Texts and shapes in pixels.

    Attributes
    ----------
    whole : Bbox
        The figure.
    texts : list of pairs
        Every text that is seen in the figure, and the box around it.
    own : list of pairs
        Those that are not labels of panels.
    lines : list of Path
        The lines of the tree.
    boxes, panels : list of Bbox
        The boxes of its nodes, and the axes of its leaves.
    """

    whole: Bbox
    texts: list[tuple[str, Bbox]]
    own: list[tuple[str, Bbox]]
    lines: list[Path]
    boxes: list[Bbox]
    panels: list[Bbox]

    @property
    def words(self) -> list[str]:
        """The texts, each on one line."""
        return [" ".join(text.split()) for text, _ in self.texts]


def drawn(ax: Axes) -> Drawn:
    """Draw the figure of the axes and return what is visible."""
    figure = ax.figure.figure
    figure.savefig(BytesIO(), format="png", dpi="figure")
    labels = [label for panel in ax.child_axes for label in _tick_labels(panel)]
    boxes = [patch.get_window_extent() for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    return Drawn(
        whole=Bbox(figure.bbox.get_points()),
        texts=_extents([*ax.texts, *labels]),
        own=_extents([*ax.texts]),
        lines=[line.get_path().transformed(line.get_transform()) for line in ax.lines],
        boxes=boxes,
        panels=[panel.get_window_extent() for panel in ax.child_axes],
    )


def touching(texts: list[tuple[str, Bbox]], slack: float = 0.5) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes overlap by more than `slack` pixels in both directions."""
    corners = np.array([box.extents for _, box in texts]).reshape(-1, 2, 2)
    low = np.maximum(corners[:, None, 0], corners[None, :, 0])
    high = np.minimum(corners[:, None, 1], corners[None, :, 1])
    found = np.triu(((high - low) > slack).all(axis=-1), 1)
    return [(texts[one][0], texts[other][0]) for one, other in np.argwhere(found)]


def share(one: Bbox, other: Bbox, slack: float = 0.5) -> bool:
    """Whether two boxes overlap by more than `slack` pixels in both directions."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(width > slack and height > slack)


def _tick_labels(axes: _AxesBase) -> list[Text]:
    ticks = axes.xaxis.get_major_ticks()
    return [label for tick in ticks for label in (tick.label1, tick.label2) if label.get_visible()]


def _extents(texts: list[Text]) -> list[tuple[str, Bbox]]:
    return [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text().strip()]
