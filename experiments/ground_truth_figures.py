"""Pictures of the ground-truth simulation: what each method estimates, the truth, and what was published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "true": "true sampler",
    "cs_trtr": "subgroups (trtr)",
    "cs_cart": "subgroups (cart)",
    "imp": "imputation",
    "ko": "knockoffs",
    "cvirf": "CVIRF",
    "marg": "marginal",
}
TITLES = {
    "independent": "independent",
    "linear": "linear",
    "nonlinear": "non-linear",
    "multilinear": "multiple linear",
    "interaction": "interaction",
    "mixed": "mixed",
}
_OURS, _THEIRS, _TRUTH = "#0072B2", "#8C8C8C", "#D55E00"


def draw_setting(cells: pd.DataFrame, setting: str, folder: Path) -> Path:
    """A panel for each cell: median, quartiles and 5 % to 95 % of the estimates of each method, ours and published."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = cells[(cells["setting"] == setting) & (cells["m"] == 1) & cells["method"].isin(list(LABELS))]
    methods = [name for name in LABELS if name in set(shown["method"])]
    rows = [name for name in TITLES if name in set(shown["scenario"])]
    columns = sorted(set(zip(shown["n"], shown["p"], strict=True)))
    size = (1.5 + 2.5 * len(columns), 1.1 + (0.5 + 0.27 * len(methods)) * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(rows), len(columns), squeeze=False, sharey=True, sharex="row")
    for scenario, line in zip(rows, panels, strict=True):
        for (n, p), ax in zip(columns, line, strict=True):
            part = shown[(shown["scenario"] == scenario) & (shown["n"] == n) & (shown["p"] == p)]
            _panel(ax, part.set_index("method"), methods)
            if scenario == rows[0]:
                ax.set_title(f"n = {n}, p = {p}", fontsize=9)
        line[0].set_ylabel(TITLES[scenario], fontsize=9)
    panels[0, 0].invert_yaxis()
    _legend(figure)
    figure.supxlabel("estimated importance of x1 (one redraw)", fontsize=9)
    path = folder / f"ground_truth_{setting}.png"
    figure.savefig(path, dpi=150)
    return path


def _panel(ax: Axes, part: pd.DataFrame, methods: list[str]) -> None:
    ax.set_yticks(range(len(methods)), [LABELS[name] for name in methods], fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    for place, method in enumerate(methods):
        if method not in part.index:
            continue
        one = part.loc[method]
        ax.plot([one["q05"], one["q95"]], [place - 0.13] * 2, color=_OURS, lw=1, solid_capstyle="butt")
        ax.plot([one["q25"], one["q75"]], [place - 0.13] * 2, color=_OURS, lw=4, solid_capstyle="butt")
        ax.plot(one["q50"], place - 0.13, "o", color="white", mec=_OURS, ms=3.5, mew=1)
        if pd.notna(one["published_median"]):
            ax.plot([one["published_q05"], one["published_q95"]], [place + 0.2] * 2, color=_THEIRS, lw=1)
            ax.plot(one["published_median"], place + 0.2, "d", color=_THEIRS, ms=3)
    if len(part):
        ax.axvline(part["truth"].iloc[0], color=_TRUTH, lw=1, zorder=0)


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D

    figure.legend(
        handles=[
            Line2D([], [], color=_OURS, lw=4, label="ours: quartiles, median, 5 % to 95 %"),
            Line2D([], [], color=_THEIRS, lw=1, marker="d", ms=3, label="published: median, 5 % to 95 %"),
            Line2D([], [], color=_TRUTH, lw=1, label="true importance"),
        ],
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=8,
    )
