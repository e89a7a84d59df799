"""Pictures of the paper's motivating figures, from the rows that were stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse

import subgrove as sg
from experiments.parts.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    RED,
    drawing,
    part,
    quiet_grid,
    save,
    series_of,
)
from experiments.parts.sections import number

_SHADES = (BLUE, GREEN, ORANGE, RED)


def misleading_pdp(results: pd.DataFrame, path: Path) -> Path:
    """Figure 1: data in a triangle, and a PDP that leaves it."""
    with drawing(8.6, 3.7) as figure:
        left, right = figure.subplots(1, 2)
        surface = part(results, "surface").pivot(index="y", columns="x", values="z")
        levels = np.arange(1.0, 7.6, 0.5)
        image = left.contourf(surface.columns, surface.index, surface, levels, cmap="viridis")
        left.fill_between([0, 1], [1, 0], [1, 1], color="white", alpha=0.55, linewidth=0)
        left.plot([0, 1], [1, 0], color="white", linewidth=1)
        data = part(results, "data", "observed")
        left.scatter(data["x"], data["y"], s=14, color="black", edgecolor="white", linewidth=0.5)
        left.text(0.72, 0.72, "no row can be here", ha="center", va="center", rotation=-45)
        left.set(xlabel="$x_1$", ylabel="$x_2$", xlim=(0, 1), ylim=(0, 1), title="Data and prediction surface")
        figure.colorbar(image, ax=left, label="prediction", pad=0.02, ticks=range(1, 8)).outline.set_visible(False)
        _draw_crossing(right, results)
        return save(figure, path)


def _draw_crossing(ax: Axes, results: pd.DataFrame) -> None:
    data, curve, mark = part(results, "data", "observed"), part(results, "curve"), part(results, "mark").iloc[0]
    quiet_grid(ax)
    ax.scatter(data["x"], data["z"], s=12, color=PALE, label="predictions for data")
    ax.plot(curve["x"], curve["y"], color=BLUE, linewidth=2, label="PDP of $x_1$")
    ax.axhline(mark["y"], color=RED, linewidth=1, linestyle=(0, (4, 2)), label="highest of them")
    ax.plot([mark["x"]] * 2, [curve["y"].min(), mark["y"]], color=GREY, linewidth=0.8, linestyle=":")
    ax.annotate(
        f"above all of them\nfrom $x_1$ = {mark['x']:.2f} on",
        (mark["x"], mark["y"]),
        (0.42, 3.25),
        ha="center",
        arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.8},
    )
    ax.set(xlabel="$x_1$", ylabel="prediction", xlim=(0, 1), title="PDP beside the predictions for data")
    ax.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none", borderpad=0.1)


def linear_model(results: pd.DataFrame, path: Path) -> Path:
    """Figure 2: what the conditional effect and the conditional importance of dependent features look like."""
    with drawing(8.6, 3.5) as figure:
        left, right = figure.subplots(1, 2)
        data = part(results, "data")
        left.scatter(data["x"], data["y"], s=8, color=PALE, alpha=0.6, linewidth=0)
        for (label, curve), color in zip(series_of(part(results, "curve")), (BLUE, RED), strict=True):
            left.plot(curve["x"], curve["y"], color=color, linewidth=2, label=label)
        left.set(xlabel="$x_2$", ylabel="prediction", title="Effect of $x_2$, whose coefficient is $-0.1$")
        left.legend(loc="upper left")
        quiet_grid(left)
        _draw_bars(right, part(results, "bar"))
        return save(figure, path)


def _draw_bars(ax: Axes, bars: pd.DataFrame) -> None:
    """A point with its range for each feature and kind of importance."""
    names = list(dict.fromkeys(bars["label"]))
    for place, ((label, mine), color) in enumerate(zip(series_of(bars), (BLUE, GREEN, RED), strict=True)):
        at = np.arange(len(names)) + 0.22 * (place - 1)
        spread = [mine["value"] - mine["low"], mine["high"] - mine["value"]]
        ax.errorbar(mine["value"], at, xerr=spread, fmt="osD"[place], color=color, markersize=5.5, label=label)
        for y, value, high in zip(at, mine["value"], mine["high"], strict=True):
            ax.text(high + 0.06, y, number(value, 2), va="center", fontsize=8, color=color)
    ax.set_yticks(range(len(names)), [f"${name[0]}_{name[1]}$" for name in names])
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set(xlabel="importance (increase of squared error)", title="Importance", xlim=(-0.08, 2.75))
    ax.legend(loc="center right")
    quiet_grid(ax, "x")


def split_density(results: pd.DataFrame, path: Path) -> Path:
    """Figure 4: shuffled everywhere, and shuffled in two subgroups; below, the densities that values are drawn from."""
    with drawing(8.6, 5.2) as figure:
        axes = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=(1.5, 1))
        data, densities = part(results, "data", "observed"), series_of(part(results, "density"))
        columns = (("permuted", "Permuted", densities[:1]), ("permuted in subgroups", "In subgroups", densities[1:]))
        for (upper, lower), (kind, title, curves) in zip(axes.T, columns, strict=True):
            drawn = part(results, "data", kind)
            upper.scatter(data["x"], data["y"], s=9, color="black", linewidth=0, label="data", zorder=3)
            upper.scatter(drawn["x"], drawn["y"], s=18, marker="x", color=RED, linewidth=0.7, label="permuted $x_1$")
            upper.axhline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (4, 2)))
            upper.set_title(title if kind == "permuted" else f"Permuted within subgroups: {_cut(curves[0][0])}")
            for (label, curve), color in zip(curves, (GREY,) if len(curves) == 1 else (BLUE, GREEN), strict=True):
                lower.fill_between(curve["x"], curve["y"], color=color, alpha=0.25, linewidth=0)
                lower.plot(curve["x"], curve["y"], color=color, label=_short(label))
            lower.set_xlabel("$x_1$")
            lower.legend(loc="upper right")
        axes[0, 0].set_ylabel("$x_2$")
        axes[1, 0].set_ylabel("density of $x_1$")
        axes[1, 0].set_ylim(bottom=0)
        axes[0, 1].legend(loc="lower right", markerscale=1.6)
        return save(figure, path)


def _short(rule: str) -> str:
    """A rule on one column, its threshold with two digits."""
    words = rule.split()
    return (
        rule
        if words[0] == "all"
        else f"${words[0][0]}_{words[0][1]}$ {words[1].replace('<=', '≤')} {float(words[2]):.2f}"
    )


def _cut(rule: str) -> str:
    return f"$x_2$ cut at {float(rule.split()[-1]):.2f}"


def gaussian(results: pd.DataFrame, path: Path) -> Path:
    """Figure 5: a linear dependence; shuffled, and shuffled within the leaves of a tree."""
    with drawing(9.6, 3.6) as figure:
        axes = figure.subplots(1, 3, sharex=True, sharey=True)
        titles = {"data": "Data", "permuted": "Permuted", "permuted in subgroups": "Within leaves of CART"}
        for ax, (kind, title) in zip(axes, titles.items(), strict=True):
            rows = part(results, "data", kind)
            x, y = rows["x"].to_numpy(), rows["y"].to_numpy()
            outside = (x**2 - 1.8 * x * y + y**2) / 0.19 > -2 * np.log(0.01)
            ax.scatter(x[~outside], y[~outside], s=8, color=BLUE, alpha=0.55, linewidth=0)
            ax.scatter(x[outside], y[outside], s=16, marker="x", color=RED, linewidth=0.8)
            width, height = (2 * np.sqrt(-2 * np.log(0.01) * (1 + sign * 0.9)) for sign in (1, -1))
            ax.add_patch(Ellipse((0, 0), width, height, angle=45, fill=False, color=GREY, linewidth=0.9))
            ax.set(xlabel="$x_1$", aspect="equal", xlim=(-3.9, 3.9), ylim=(-3.9, 3.9))
            ax.set_title(f"{title}: {100 * outside.mean():.1f} % outside")
        for border in part(results, "border")["x"]:
            axes[2].axvline(border, color=GREY, linewidth=0.7, linestyle=(0, (4, 2)))
        axes[0].set_ylabel("$x_2$")
        return save(figure, path)


def mplot(results: pd.DataFrame, path: Path) -> Path:
    """The M-plot figure: an effect where there is none, and curves that distinguish the two features."""
    with drawing(8.6, 3.7) as figure:
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        data = part(results, "data")
        for ax in (left, right):
            ax.scatter(data["x"], data["y"], s=8, color=PALE, alpha=0.6, linewidth=0)
            quiet_grid(ax)
            ax.set_xlabel("$x_2$, which does not enter $y$")
        for (label, curve), color in zip(series_of(part(results, "curve")), (RED, BLUE), strict=True):
            left.plot(curve["x"], curve["y"], color=color, linewidth=2, label=label)
        left.legend(loc="upper left")
        left.set(ylabel="prediction", title="Conditional PDP rises, PDP is level")
        for (rule, curve), color in zip(series_of(part(results, "cs-PDP")), _SHADES, strict=False):
            right.plot(curve["x"], curve["y"], color=color, linewidth=1.2)
            box = curve[curve["in_box"] == 1]
            right.plot(box["x"], box["y"], color=color, linewidth=3.4)
            end, label = curve.iloc[-1], _interval(rule)
            text = right.annotate(label, (end["x"], end["y"]), (0, 9), textcoords="offset points", ha="right", size=9)
            text.set(color=color, bbox={"color": "white", "alpha": 0.7, "pad": 0.5, "linewidth": 0})
        right.set_title("cs-PDPs: as level, at heights that $x_1$ sets")
        return save(figure, path)


def _interval(rule: str) -> str:
    """A rule on x1 with thresholds of two digits."""
    words = [f"{float(word):.2f}" if word.lstrip("-")[:1].isdigit() else word for word in rule.split()]
    return " ".join(words).replace("x1", "$x_1$").replace("<=", "≤")


def boxplot_pdp(results: pd.DataFrame, path: Path) -> Path:
    """The boxplot-PDP figure: a plain PDP, and the library's own picture of it above a boxplot of x."""
    data, curve = part(results, "data"), part(results, "curve")
    X = pd.DataFrame({"x": data["x"].to_numpy()})
    found = sg.effect(lambda X: np.log(X["x"]) + 4.5, X, "x", grid_resolution=len(curve), subgroups=None)
    with drawing(8.6, 3.7) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
        left.plot(curve["x"], curve["y"], color=BLUE)
        left.set(xlabel="x", ylabel="prediction", title="PDP")
        quiet_grid(left)
        sg.plots.effect(found, ax=right, interval=False)
        right.set_title("PDP drawn like the boxplot of x below it")
        return save(figure, path)


PICTURES: dict[str, Callable[[pd.DataFrame, Path], Path]] = {
    "fig1": misleading_pdp,
    "fig2": linear_model,
    "fig4": split_density,
    "fig5": gaussian,
    "mplot": mplot,
    "boxplot": boxplot_pdp,
}
"""Rows of a figure and a path in, the path out."""
