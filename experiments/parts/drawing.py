"""What the pictures of the experiments have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, RED, GREEN, PINK, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
"""Okabe and Ito: distinguishable with every kind of colour vision."""
GREY, PALE = "#737373", "#bdbdbd"
DPI = 110

_SETTINGS: Any = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "xtick.color": "#404040",
    "ytick.color": "#404040",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.solid_capstyle": "round",
}


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """A figure of that many inches that makes room for its labels, in the style of all of them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG; the same figure gives the same bytes."""
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    return path


def part(results: pd.DataFrame, name: str, series: str | None = None) -> pd.DataFrame:
    """Rows of a part of a picture, or of one series in it."""
    table = results[results["part"] == name]
    return table if series is None else table[table["series"] == series]


def series_of(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Name and rows of each series, in the order of the rows."""
    return [(str(name), rows) for name, rows in table.groupby("series", sort=False)]


def quiet_grid(ax: Axes, axis: Any = "both") -> None:
    """A light grid behind everything."""
    ax.set_axisbelow(True)
    ax.grid(axis=axis, color=GREY, alpha=0.18, linewidth=0.6)
