"""The picture of model fidelity: a box for each method over features, by data set and model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.boxes import lying_box
from experiments.model_fidelity_report import MODELS, NAMES
from experiments.model_fidelity_tables import FLAT, METHODS

_COLORS = {"pdp": "#737373", "ale": "#E69F00", "trtr": "#0072B2", "cart": "#D55E00"}


def draw(results: pd.DataFrame, against: str, path: Path) -> Path:
    """Boxes over features, mean over repetitions first; the dotted line is that of the flat line."""
    from matplotlib.figure import Figure

    some = results[results["against"] == against]
    sets, models = sorted(set(some["data"])), [model for model in MODELS if model in set(some["model"])]
    figure = Figure(figsize=(1.2 + 1.75 * len(sets), 0.7 + 1.9 * len(models)), layout="constrained")
    axes = figure.subplots(len(models), len(sets), squeeze=False)
    for row, model in zip(axes, models, strict=True):
        for ax, name in zip(row, sets, strict=True):
            _panel(ax, some[(some["data"] == name) & (some["model"] == model)])
            ax.set_yticks(range(len(METHODS)), [NAMES[each] if ax is row[0] else "" for each in METHODS], fontsize=8)
            if model == models[0]:
                ax.set_title(name, fontsize=10)
        row[0].set_ylabel(MODELS[model], fontsize=9)
    figure.supxlabel(
        f"mean squared difference of curve and {against}; a point is a feature, mean over repetitions; "
        f"dotted: flat line",
        fontsize=9,
    )
    figure.savefig(path, dpi=120)
    return path


def _panel(ax: Any, part: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)  # of the jitter
    flat = part.loc[part["method"] == FLAT, "loss"].mean()
    means = part[part["method"] != FLAT].groupby(["method", "feature"])["loss"].mean()
    for at, method in enumerate(METHODS):
        if method not in means.index.get_level_values("method"):
            continue
        lying_box(ax, at, means[method].to_numpy(), _color(method), rng, line=1.0, median=2.2, point=5)
    ax.axvline(flat, color="#737373", linestyle=":", linewidth=1.0, zorder=0)
    ax.set_ylim(len(METHODS) - 0.5, -0.5)
    ax.tick_params(labelsize=8, length=2.5)
    ax.locator_params(axis="x", nbins=3)
    ax.spines[["top", "right"]].set_visible(False)


def _color(method: str) -> str:
    return _COLORS[method if method in _COLORS else method.split("_")[1]]
