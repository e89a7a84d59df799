"""Importance by depth read: the table, the picture and the words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import subgrove as sg
from experiments.beside_published import published
from experiments.ground_truth_figures import TITLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL = ["scenario", "n", "p"]
_LABELS = {"cart": "CART", "trtr": "transformation tree"}
_COLORS = {"cart": "#D55E00", "trtr": "#0072B2"}
_MARKERS = {"cart": "s", "trtr": "o"}
_FAR = 3.0
_THEIR_REPETITIONS = 1000
_NORMAL = 1.2533  # standard error of a median over that of a mean, sqrt(pi / 2), if estimates are normal


def by_depth(results: pd.DataFrame) -> pd.DataFrame:
    """Median, 5 % and 95 % quantiles, mean and number of leaves of each tree at each depth, published ones beside."""
    lines = []
    for (*cell, tree, depth), part in results.groupby([*CELL, "tree", "depth"], sort=False):
        estimate = part["estimate"].to_numpy(float)
        line: dict[str, Any] = {**dict(zip(CELL, cell, strict=True)), "tree": tree, "depth": depth}
        line |= {"reps": len(part), "truth": sg.simulate.scenario(str(cell[0])).importance}
        line |= {name: float(np.quantile(estimate, q)) for name, q in (("q05", 0.05), ("median", 0.5), ("q95", 0.95))}
        line |= {"median_se": _median_error(estimate), "mean": float(estimate.mean())}
        lines.append({**line, "leaves": float(part["leaves"].mean())})
    ours = pd.DataFrame(lines)
    theirs = published("depth_summary").rename(columns={"maxdepth": "depth", "nterminal": "leaves"})
    theirs = theirs.assign(tree=theirs["tree"].replace({"trtf": "trtr"}))
    carried = ["reps", "q05", "median", "q95", "mean", "leaves", "truth"]
    theirs = theirs.rename(columns={name: f"published_{name}" for name in carried})
    both = ours.merge(theirs, on=[*CELL, "tree", "depth"], how="left", sort=False)
    # Their estimates spread as ours do. The paper states 1000 repetitions, the summary has 2000: the lesser counts.
    error = both["median_se"] * np.sqrt(1 + both["reps"] / _THEIR_REPETITIONS)
    both["z_median"] = (both["median"] - both["published_median"]) / error
    place = {name: at for at, name in enumerate(sg.simulate.PAPER)}
    keys = both.assign(scenario=both["scenario"].map(place))[[*CELL, "tree", "depth"]]
    return both.loc[keys.sort_values([*CELL, "tree", "depth"]).index].reset_index(drop=True)


def _median_error(values: npt.NDArray[np.float64]) -> float:
    """Standard error of a median, from the middle of the sample: half the distance of order statistics around it."""
    n = len(values)
    if n < 8:
        return float(_NORMAL * values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    ordered = np.sort(values)
    reach = np.sqrt(n)  # two standard deviations of the number of values below the median, sqrt(n) / 2
    low, high = int(np.floor(n / 2 - reach)), int(np.ceil(n / 2 + reach)) - 1
    return float((ordered[min(high, n - 1)] - ordered[max(low, 0)]) / 4)


def draw(table: pd.DataFrame, path: Path) -> Path:
    """Median with 5 % and 95 % quantiles by depth, a panel for each cell, the truth as a line."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [name for name in TITLES if name in set(table["scenario"])]
    columns = sorted(set(zip(table["n"], table["p"], strict=True)))
    figure = Figure(figsize=(1.4 + 2.4 * len(columns), 1.2 + 1.7 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey="row")
    for scenario, line in zip(rows, panels, strict=True):
        for (n, p), ax in zip(columns, line, strict=True):
            _panel(ax, table[(table["scenario"] == scenario) & (table["n"] == n) & (table["p"] == p)])
            if scenario == rows[0]:
                ax.set_title(f"n = {n}, p = {p}", fontsize=9)
        line[0].set_ylabel(TITLES[scenario], fontsize=9)
        line[0].set_ylim(bottom=0)
    figure.supxlabel("depth of the tree", fontsize=9)
    figure.supylabel("importance of x1: median, 5 % to 95 %", fontsize=9)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
    return path


def _panel(ax: Axes, part: pd.DataFrame) -> None:
    ax.tick_params(labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if part.empty:
        return
    ax.axhline(part["truth"].iloc[0], color="#595959", lw=1, label="true importance", zorder=1)
    for shift, (tree, own) in zip((-0.12, 0.12), part.groupby("tree", sort=True), strict=False):
        name = str(tree)
        depth = own["depth"] + shift
        ax.vlines(depth, own["q05"], own["q95"], color=_COLORS[name], lw=1, alpha=0.7)
        ax.plot(depth, own["median"], _MARKERS[name], ms=3.5, color=_COLORS[name], label=_LABELS[name])
        marks = own.dropna(subset=["published_median"])
        known = None if name == "cart" else "published median"
        ax.plot(
            marks["depth"] + shift, marks["published_median"], "_", ms=7, mew=1.2, color="black", label=known, zorder=3
        )
    ax.set_xticks(range(1, 11))


def section(table: pd.DataFrame) -> str:
    """Markdown: agreement with the published medians, and whether deeper is better."""
    known = table.dropna(subset=["z_median"])
    near = int((known["z_median"].abs() <= _FAR).sum())
    reps = ", ".join(f"{min(part['reps'])} with n = {n}" for n, part in table.groupby("n"))
    parts = [
        "## Depth of the trees",
        "Median of the estimated importance of x1 over repetitions, by depth, with the published median of depths 1 to "
        "5 in brackets. Trees are stopped by depth and by 30 rows in a leaf alone.",
        f"Repetitions: {reps}.",
        "![Importance by depth](images/reproduction/depth_importance.png)",
    ]
    parts += [_table(table[table["tree"] == tree], str(tree)) for tree in sorted(set(table["tree"]))]
    parts.append(
        f"{near} of {len(known)} medians are within {_FAR:g} standard errors of the published ones"
        + (f"; the largest distance is {known['z_median'].abs().max():.1f}." if len(known) else ".")
    )
    parts.append(_deeper(table))
    return "\n\n".join(parts) + "\n"


def _table(table: pd.DataFrame, tree: str) -> str:
    depths = sorted(set(table["depth"]))
    lines = [f"{_LABELS[tree]} | truth | " + " | ".join(f"depth {depth}" for depth in depths)]
    lines.append(" | ".join(["---", "--:", *["--:"] * len(depths)]))
    for (scenario, n, p), part in table.groupby(CELL, sort=False):
        by = {one["depth"]: _entry(one) for one in part.to_dict("records")}
        entries = " | ".join(by.get(depth, "") for depth in depths)
        lines.append(f"{TITLES[str(scenario)]}, n = {n}, p = {p} | {part['truth'].iloc[0]:.1f} | {entries}")
    return "\n".join(f"| {line} |" for line in lines)


def _entry(one: dict[Any, Any]) -> str:
    theirs = "" if pd.isna(one["published_median"]) else f" ({one['published_median']:.1f})"
    return f"{one['median']:.1f}{theirs}"


def _deeper(table: pd.DataFrame) -> str:
    """Whether the distance of the median from the truth shrinks with depth, counted."""
    distance = (table["median"] - table["truth"]).abs()
    shallow, deep = (
        table.assign(distance=distance)[table["depth"] == depth].set_index([*CELL, "tree"])["distance"]
        for depth in (table["depth"].min(), table["depth"].max())
    )
    dependent = [place for place in shallow.index if place[0] != "independent"]
    if not dependent:
        return ""
    closer = int((deep[dependent] < shallow[dependent]).sum())
    return (
        f"With dependent features, the median at depth {table['depth'].max()} is closer to the truth than at depth "
        f"{table['depth'].min()} in {closer} of {len(dependent)} cases (cells and trees)."
    )
