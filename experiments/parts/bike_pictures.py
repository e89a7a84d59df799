"""Pictures of the bike application, from the rows that were stored. Diamonds are what the authors' functions gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from experiments.parts.bike_unit import PUBLISHED, SUBGROUPS
from experiments.parts.drawing import BLUE, GREEN, GREY, ORANGE, PINK, RED, drawing, quiet_grid, save

_COLORS = dict(zip(SUBGROUPS, (BLUE, GREEN, ORANGE, RED), strict=True))
_SEASONS = ("WINTER", "SPRING", "SUMMER", "FALL")
_THEIRS: dict[str, Any] = {"marker": "D", "markersize": 6, "markerfacecolor": "none", "linestyle": "none", "zorder": 4}


def _published(name: str) -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / f"bike_{name}.csv")


def _cell(results: pd.DataFrame, cell: str, part: str, feature: str | None = None) -> pd.DataFrame:
    table = results[(results["cell"] == cell) & (results["part"] == part)]
    return table if feature is None else table[table["feature"] == feature]


def _point(ax: Axes, values: pd.Series[float], at: float, color: str, label: str | None = None) -> None:
    """The mean over splits, and the range of 90 % of them."""
    low, high = values.quantile([0.05, 0.95])
    ax.plot([low, high], [at, at], color=color, linewidth=2, alpha=0.45)
    ax.plot([values.mean()], [at], "o", color=color, markersize=6, label=label)


def _rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), list(names))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    quiet_grid(ax, "x")


def dependence(results: pd.DataFrame, path: Path) -> Path:
    """The dependence table as a picture."""
    found, published = (
        _cell(results, "dependence", "dependence"),
        _published("dependence").sort_values("loss_explained"),
    )
    names = published["feature"].tolist()[::-1]
    with drawing(6.4, 3.4) as figure:
        ax = figure.subplots()
        for at, name in enumerate(names):
            _point(ax, 100 * found.loc[found["feature"] == name, "value"], at, BLUE, "ours" if not at else None)
        ax.plot(100 * published["loss_explained"][::-1], range(len(names)), color=RED, label="published", **_THEIRS)
        _rows(ax, names)
        ax.set(xlabel="share of the loss that the other features explain, in %")
        ax.legend(loc="lower right")
        return save(figure, path)


def importance(results: pd.DataFrame, path: Path) -> Path:
    """PFI and cs-PFI of the features that have subgroups; cs-PFI of temperature in its subgroups."""
    found, theirs = _cell(results, "splits", "importance"), _published("authors_importance")
    theirs = theirs[theirs["model"] == "rf"].set_index(["depth", "feature"])
    with drawing(10, 4.2) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
        deep = found[found["depth"] == 2]
        given = deep.groupby("feature")["text"].agg(lambda texts: texts.fillna("").value_counts().index[0])
        names = list(deep.groupby("feature")["value"].mean().sort_values(ascending=False).index)
        for depth, color, label, shift in ((0, BLUE, "PFI", -0.15), (2, GREEN, "cs-PFI, depth 2", 0.15)):
            mine = found[found["depth"] == depth]
            for at, name in enumerate(names):
                values = mine.loc[mine["feature"] == name, "value"]
                _point(left, values, at + shift, color, label if not at else None)
                left.plot([theirs.loc[(depth, name), "median"]], [at + shift], color=color, **_THEIRS)
        left.plot([], [], color=GREY, label="authors' functions, one split", **_THEIRS)
        _rows(left, [f"{name}\ngiven {given[name]}" if given[name] else name for name in names])
        left.set(xlabel="increase of absolute error, in bikes", title="Importance")
        left.legend(loc="lower right")
        _draw_subgroups(right, results)
        return save(figure, path)


def _draw_subgroups(ax: Axes, results: pd.DataFrame) -> None:
    found = _cell(results, "splits", "subgroup")
    theirs = _published("authors_subgroups").set_index("subgroup")["median"]
    for at, name in enumerate(SUBGROUPS):
        values = found.loc[found["group"] == name, "value"]
        if len(values):
            _point(ax, values, at, _COLORS[name])
        ax.plot([theirs[name]], [at], color=_COLORS[name], **_THEIRS)
    _rows(ax, SUBGROUPS)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set(xlabel="increase of absolute error, in bikes", title="cs-PFI of temperature by subgroup")


def by_depth(results: pd.DataFrame, path: Path) -> Path:
    """Importance against the depth of the trees."""
    found = _cell(results, "splits", "importance")
    theirs = _published("authors_importance")
    theirs = theirs[theirs["model"] == "rf"]
    names = found[found["depth"] == 0].groupby("feature")["value"].mean().sort_values(ascending=False).index
    with drawing(8.6, 3.9) as figure:
        axes = figure.subplots(1, 2, width_ratios=(1, 1))
        palette = (BLUE, RED, GREEN, PINK, ORANGE)
        for ax, mine in zip(axes, (names[:4], names[4:]), strict=True):
            for name, color in zip(mine, palette, strict=False):
                rows = found[found["feature"] == name].groupby("depth")["value"]
                mean, low, high = rows.mean(), rows.quantile(0.05), rows.quantile(0.95)
                ax.fill_between(mean.index, low, high, color=color, alpha=0.13, linewidth=0)
                ax.plot(mean.index, mean, color=color, marker="o", markersize=4, label=name)
                dots = theirs[theirs["feature"] == name]
                ax.plot(dots["depth"], dots["median"], color=color, **_THEIRS)
            ax.set(xlabel="maximum depth of trees (0: marginal)")
            quiet_grid(ax)
            ax.legend(loc="upper right", ncols=2)
            ax.set_ylim(top=1.25 * max(ax.get_ylim()[1], 1))
        axes[0].set(ylabel="increase of absolute error, in bikes", title="Features with large importance")
        axes[1].set_title("with small importance")
        return save(figure, path)


def temperature(results: pd.DataFrame, path: Path) -> Path:
    """PDP and ALE of temperature, and the cs-PDPs of its four subgroups."""
    with drawing(9.6, 4.0) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        for part, color in (("PDP", BLUE), ("ALE", RED)):
            found = _cell(results, "splits", part, "temp")
            for _, rows in found.groupby("key"):
                left.plot(rows["x"], rows["value"], color=color, linewidth=0.6, alpha=0.22)
            mean = found.groupby("x")["value"].mean()
            left.plot(mean.index, mean, color=color, linewidth=2.2, label=part)
        left.legend(loc="upper left", title="mean over splits; thin: one split", alignment="left")
        left.set(xlabel="temperature (°C)", ylabel="predicted bikes", title="PDP and ALE")
        _draw_subgroup_curves(right, results)
        for ax in (left, right):
            quiet_grid(ax)
        return save(figure, path)


def _draw_subgroup_curves(ax: Axes, results: pd.DataFrame) -> None:
    found, theirs = _cell(results, "authors", "cs-PDP", "temp"), _published("authors_curves")
    for name, color in _COLORS.items():
        mine = found[found["group"] == name].groupby("x")[["value", "in_box"]].mean()
        ax.plot(mine.index, mine["value"], color=color, linewidth=1.2)
        box = mine[mine["in_box"] > 0.5]
        ax.plot(box.index, box["value"], color=color, linewidth=3.6, label=name)
        dots = theirs[(theirs["feature"] == "temp") & (theirs["subgroup"] == name)]
        ax.plot(dots["x"][::3], dots["value"][::3], color=color, **_THEIRS)
    ax.plot([], [], color=GREY, label="authors' functions", **_THEIRS)
    ax.legend(loc="lower right")
    ax.set(xlabel="temperature (°C)", title="cs-PDPs on the authors' split, bold between quartiles")


def season(results: pd.DataFrame, path: Path) -> Path:
    """PDP of season, and its cs-PDPs by temperature."""
    with drawing(9.6, 4.0) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        found = _cell(results, "splits", "PDP", "season")
        for at, level in enumerate(_SEASONS):
            values = found.loc[found["level"] == level, "value"]
            left.plot([at, at], values.quantile([0.05, 0.95]), color=BLUE, linewidth=2, alpha=0.45)
        means = found.groupby("level")["value"].mean()[list(_SEASONS)]
        left.plot(range(4), means, "o-", color=BLUE, linewidth=1)
        left.set(ylabel="predicted bikes", title="PDP, mean and range over splits")
        _draw_season_subgroups(right, results)
        for ax in (left, right):
            ax.set_xticks(range(4), [name.lower() for name in _SEASONS])
            quiet_grid(ax, "y")
            ax.set_xlim(-0.4, 3.4)
        return save(figure, path)


def _draw_season_subgroups(ax: Axes, results: pd.DataFrame) -> None:
    found, theirs = _cell(results, "authors", "cs-PDP", "season"), _published("authors_curves")
    shades = (BLUE, GREEN, ORANGE, RED)
    for (rule, rows), color in zip(found.sort_values("group").groupby("text", sort=False), shades, strict=False):
        means = rows.groupby("level")["value"].mean()
        at = sorted(_SEASONS.index(level) for level in means.index)
        ax.plot(
            at, means[[_SEASONS[place] for place in at]], "o-", color=color, linewidth=1.2, label=_pretty(str(rule))
        )
        dots = theirs[(theirs["feature"] == "season") & (theirs["subgroup"] == rule)]
        ax.plot([_SEASONS.index(level) for level in dots["level"]], dots["value"], color=color, **_THEIRS)
    ax.plot([], [], color=GREY, label="authors' functions", **_THEIRS)
    ax.legend(loc="lower right", fontsize=8.5)
    ax.set_title("cs-PDPs on the authors' split")


def _pretty(rule: str) -> str:
    return rule.replace("<=", "≤").replace("temp", "temperature")


PICTURES: dict[str, tuple[set[str], Callable[[pd.DataFrame, Path], Path]]] = {
    "dependence": ({"dependence"}, dependence),
    "importance": ({"splits"}, importance),
    "depth": ({"splits"}, by_depth),
    "temperature": ({"splits", "authors"}, temperature),
    "season": ({"splits", "authors"}, season),
}
"""Name -> the cells it needs, and the function that draws it."""
