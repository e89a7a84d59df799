"""Picture of a sampler beside the true one: how many times its mean squared error, cell by cell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from experiments.ground_truth_figures import TITLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OURS, _BEST, _TRUTH = "#0072B2", "#8C8C8C", "#D55E00"


def draw_ratios(cells: pd.DataFrame, method: str, folder: Path) -> Path:
    """Panels by setting and number of redraws: ratios to the true sampler's error, ours and the best published."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    own = cells[cells["method"] == method]
    settings, redraws = sorted(set(own["setting"])), sorted(set(own["m"]))
    lines = max(len(own[(own["setting"] == one) & (own["m"] == redraws[0])]) for one in settings)
    figure = Figure(figsize=(3.0 + 3.2 * len(settings) * len(redraws), 1.4 + 0.24 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(settings) * len(redraws), squeeze=False)[0]
    options = [(setting, m) for setting in settings for m in redraws]
    for (setting, m), ax in zip(options, panels, strict=True):
        true = cells[(cells["method"] == "true") & (cells["setting"] == setting) & (cells["m"] == m)]
        _panel(ax, own[(own["setting"] == setting) & (own["m"] == m)], true)
        ax.set_title(f"setting {setting}, {m} redraw{'s' if m > 1 else ''}", fontsize=9)
    figure.legend(
        handles=[
            Line2D([], [], color=_OURS, marker="o", ms=4, lw=1, label=f"{method}, with two standard errors"),
            Line2D([], [], color=_BEST, marker="d", ms=4, lw=0, label="best published method (one redraw)"),
            Line2D([], [], color=_TRUTH, lw=1, label="true sampler"),
        ],
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=8,
    )
    figure.supxlabel("mean squared error, as a multiple of the true sampler's with as many redraws", fontsize=9)
    path = folder / picture_name(method, cells)
    figure.savefig(path, dpi=150)
    return path


def picture_name(method: str, cells: pd.DataFrame) -> str:
    """Name of the file; cells of our own forest have a separate picture."""
    return f"beyond_{method}{'_own' if of_own_forest(cells) else ''}.png"


def of_own_forest(cells: pd.DataFrame) -> bool:
    """Whether cells are those of `--forest own`, which has no others."""
    return set(cells["forest"]) == {"own"}


def _panel(ax: Axes, own: pd.DataFrame, true: pd.DataFrame) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    names = [f"{TITLES[s]}, {n} x {p}" for s, n, p in zip(own["scenario"], own["n"], own["p"], strict=True)]
    keys = ["scenario", "n", "p"]
    own = own.merge(true[[*keys, "mse"]].rename(columns={"mse": "true_mse"}), on=keys, how="left", sort=False)
    places = list(range(len(own)))
    ax.axvline(1.0, color=_TRUTH, lw=1, zorder=0)
    ax.errorbar(own["ratio_true"], places, xerr=2 * own["ratio_true_se"].fillna(0.0), fmt="o", color=_OURS, ms=4, lw=1)
    ax.plot(own["best_published"] / own["true_mse"], places, "d", color=_BEST, ms=4)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())  # its labels would lie over each other in a narrow panel
    ax.set_yticks(places, names, fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.invert_yaxis()
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
