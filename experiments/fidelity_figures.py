"""Pictures of data fidelity: boxes for each data set, and the coefficients of the random-intercept model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.boxes import lying_box
from experiments.redraws import METHODS, TREES

WORDS = {
    "none": "none",
    "perm": "perm",
    "cs_cart_30": "cs (cart)",
    "cs_trtr_30": "cs (trtr)",
    "ko": "ko",
    "imp": "imp",
    "imp_oob": "imp (oob)",
    "ale": "ale",
    "cvirf": "cvirf",
}
_ORDER = ("none", "cs_trtr_30", "cs_cart_30", "ko", "imp", "ale", "cvirf", "perm")  # METHODS from best to worst
_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#737373"
_A_PAGE = 21


def word(variant: str, *, depths: bool = False) -> str:
    """What a picture or table calls a variant; among trees of other depths, with its depth."""
    if variant not in WORDS or (depths and variant in TREES):
        return variant.removeprefix("cs_").replace("_", " ")
    return WORDS[variant]


def pages_of_boxes(results: pd.DataFrame, folder: Path) -> list[Path]:
    """A box of each variant in each data set, two pages for methods and two for depths; a point is a feature."""
    means = results.groupby(["name", "feature", "variant"])["fidelity"].mean()
    names = sorted(results["name"].unique(), key=str.lower)
    half = _A_PAGE if len(names) > _A_PAGE else len(names)
    pages = [part for part in (names[:half], names[half:]) if part]
    drawn = []
    for title, variants in (("methods", _ORDER), ("depths", ("perm", *TREES))):
        for number, page in enumerate(pages, start=1):
            path = folder / f"data_fidelity_{title}_{number}.png"
            _page(means, page, variants, title, path)
            drawn.append(path)
    return drawn


def _page(means: pd.Series[Any], names: Sequence[str], variants: Sequence[str], title: str, path: Path) -> None:
    from matplotlib.figure import Figure

    rows = int(np.ceil(len(names) / 3))
    height = 0.17 * len(variants) + 0.55
    figure = Figure(figsize=(10, rows * height + 0.5), layout="constrained")
    axes = figure.subplots(rows, 3, squeeze=False).ravel()
    labels = [word(variant, depths=title == "depths") for variant in variants]
    for ax, name in zip(axes, names, strict=False):
        _boxes(ax, [means[name].xs(variant, level="variant").to_numpy() for variant in variants], variants)
        ax.set_title(name, fontsize=9)
        ax.set_yticks(range(len(variants)), labels if ax in axes[::3] else [""] * len(variants), fontsize=7.5)
    for ax in axes[len(names) :]:
        ax.set_visible(False)
    figure.supxlabel("data fidelity, -log(squared MMD); a point is a feature, mean over repetitions", fontsize=9)
    figure.savefig(path, dpi=110)


def _boxes(ax: Any, values: Sequence[Any], variants: Sequence[str]) -> None:
    rng = np.random.default_rng(0)  # of the jitter
    for at, (these, variant) in enumerate(zip(values, variants, strict=True)):
        lying_box(ax, at, these, _color(variant), rng, line=0.8, median=1.4, point=5)
    ax.set_ylim(len(values) - 0.4, -0.6)
    ax.tick_params(axis="x", labelsize=7.5)
    ax.grid(axis="x", color="#e5e5e5", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _color(variant: str) -> str:
    if variant in ("none", "perm"):
        return _GREY
    return _ORANGE if "cart" in variant else _BLUE if "trtr" in variant else "#333333"


def coefficient_plot(methods: pd.DataFrame, depths: pd.DataFrame, folder: Path) -> Path:
    """Both models beside each other, as in the paper: methods on the left, depths on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    _coefficients(left, methods.sort_values("estimate", ascending=False), "A) methods")
    _coefficients(right, depths, "B) trees by maximal depth")
    figure.supxlabel(
        "difference in data fidelity from marginal permutation\n"
        "thick: 95 % interval of the random-intercept model; thin: 95 % interval over data sets",
        fontsize=9,
    )
    path = folder / "data_fidelity_coefficients.png"
    figure.savefig(path, dpi=120)
    return path


def _coefficients(ax: Any, table: pd.DataFrame, title: str) -> None:
    for at, row in enumerate(table.to_dict("records")):
        color = _color(str(row["variant"]))
        over_sets = 1.96 * row["std_error_over_data_sets"]
        ax.plot([row["estimate"] - over_sets, row["estimate"] + over_sets], [at, at], color=color, lw=0.8, alpha=0.6)
        ax.plot([row["conf_low"], row["conf_high"]], [at, at], color=color, linewidth=3, solid_capstyle="butt")
        ax.plot(row["estimate"], at, "o", color=color, markersize=5)
    ax.axvline(0, color=_GREY, linewidth=0.8)
    ax.set_yticks(
        range(len(table)), [word(str(each), depths=len(table) > len(METHODS)) for each in table["variant"]], fontsize=9
    )
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_title(title, fontsize=10, loc="left")
    ax.grid(axis="x", color="#e5e5e5", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
