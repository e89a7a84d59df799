"""The section and the picture of other packages, made from their numbers."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.ground_truth_figures import TITLES
from experiments.parts.sections import markdown, number

NAMES = {
    "hidimstat_ridge": "hidimstat, ridge",
    "hidimstat_forest": "hidimstat, forest",
    "fippy_gaussian": "fippy, Gaussian",
    "knockpy_sdp": "knockpy, sdp",
}
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#000000", "#56B4E9")


def section(tables: dict[str, pd.DataFrame]) -> str:
    """Markdown: errors of each package as multiples of the true sampler's, and which is best where."""
    cells, pairs = tables["cells"], tables.get("pairs", pd.DataFrame())
    parts = [
        "## Other packages on the same rows",
        "Mean squared error of the importance of x1 for the true model (setting I), as a multiple of what the true "
        "sampler has on the same rows with as many redraws; in brackets the error itself. Packages fit on the training "
        "rows and are evaluated on the test rows: `hidimstat.CFI` with a ridge regression (its default) or a forest of "
        "scikit-learn (its default size) for x1; the conditional importance of `fippy` with its Gaussian sampler; x1 "
        "replaced by the semidefinite knockoff of `knockpy`, whose importance is reckoned as ours. All of them count "
        "the rise of the squared error whole, none halves it."
        " `auto` is `sg.importance` as it is called by default.",
        "![other packages beside the true sampler](images/beyond/peers.png)",
    ]
    for m in sorted(set(cells["m"]), reverse=True):
        here = cells[cells["m"] == m]
        parts += [
            f"### {m} redraw{'s' if m > 1 else ''}",
            _repetitions(here),
            ratio_table(here),
            _worst(here),
            *(_beside(here, pairs, name) for name in methods(here) if name not in NAMES),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def methods(cells: pd.DataFrame) -> list[str]:
    """The compared methods, packages first; the true sampler is the yardstick."""
    found = dict.fromkeys([*NAMES, *cells["method"]])
    return [name for name in found if name != "true" and (cells["method"] == name).any()]


def ratio_table(cells: pd.DataFrame) -> str:
    """Cells as lines, packages as columns."""
    names = methods(cells)
    lines = []
    for (scenario, n, p), part in cells.groupby(["scenario", "n", "p"], sort=False):
        own = {one["method"]: one for one in part.to_dict("records")}
        entries = [
            f"{number(own[name]['ratio_true'])} ({number(own[name]['mse'])})" if name in own else "" for name in names
        ]
        lines.append((TITLES[str(scenario)], str(n), str(p), *entries, number(own["true"]["mse"])))
    return markdown(("scenario", "n", "p", *map(_named, names), "true: error"), lines)


def _named(name: str) -> str:
    return NAMES.get(name, f"`{name}`")


def _repetitions(cells: pd.DataFrame) -> str:
    found = [
        f"{low} with n = {n}" if low == high else f"{low} to {high} with n = {n}"
        for n, low, high in ((n, min(part["reps"]), max(part["reps"])) for n, part in cells.groupby("n"))
    ]
    return f"Repetitions: {', '.join(found)}."


def _worst(cells: pd.DataFrame) -> str:
    described = []
    for name in methods(cells):
        worst = cells[cells["method"] == name].sort_values("ratio_true").iloc[-1]
        place = f"{TITLES[worst['scenario']]} {worst['n']} x {worst['p']}"
        described.append(f"{_named(name)} {number(worst['ratio_true'])} ({place})")
    return f"Worst cell of each, as a multiple of the true sampler's error: {', '.join(described)}."


def _beside(cells: pd.DataFrame, pairs: pd.DataFrame, name: str) -> str:
    """In how many cells a sampler of this package is below the best of the others, and where it is not."""
    own = pairs[(pairs["method"] == name) & pairs["m"].isin(cells["m"])] if len(pairs) else pairs
    if own.empty:
        return ""
    lost = own[own["more"] >= 0]
    clear = int((lost["more"] > 2 * lost["more_se"]).sum())
    won = f"{len(own) - len(lost)} of {len(own)}"
    described = f"{_named(name)} has a smaller error than the best of the packages in {won} cells."
    if lost.empty:
        return described
    where = "; ".join(_lost(cells, name, line) for line in lost.to_dict("records"))
    how = "none of these" if not clear else f"{clear} of these"
    verb = "differences is" if clear == 1 or not clear else "differences are"
    return f"{described} Not in {where}. Of the same rows, {how} {verb} more than two standard errors."


def _lost(cells: pd.DataFrame, name: str, line: dict[Hashable, Any]) -> str:
    """A cell where another package has the smaller error: by how much, and how sure that is."""
    here = cells[(cells["scenario"] == line["scenario"]) & (cells["n"] == line["n"]) & (cells["p"] == line["p"])]
    errors = here.set_index("method")["mse"]
    described = f"{number(errors[name])} against {number(errors[line['best']])} of {NAMES[line['best']]}"
    place = f"{TITLES[str(line['scenario'])]} {line['n']} x {line['p']}"
    return f"{place} ({described}: {number(line['more'])} more, standard error {number(line['more_se'])})"


def draw(cells: pd.DataFrame, folder: Path) -> Path:
    """Ratios to the true sampler's error, a panel for each number of redraws."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    redraws = sorted(set(cells["m"]))
    first = cells[(cells["m"] == redraws[0]) & (cells["method"] == "true")]
    keys = list(zip(first["scenario"], first["n"], first["p"], strict=True))
    figure = Figure(figsize=(2.6 + 3.4 * len(redraws), 1.3 + 0.26 * len(keys)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(redraws), squeeze=False, sharey=True)[0]
    for m, ax in zip(redraws, panels, strict=True):
        here = cells[cells["m"] == m].set_index(["scenario", "n", "p"])
        for name, color in zip(methods(cells), _COLORS, strict=False):
            own = here[here["method"] == name]["ratio_true"].reindex(keys)
            ax.plot(own, range(len(keys)), "o", ms=4, color=color, label=_named(name).replace("`", ""))
        ax.axvline(1.0, color="#D55E00", lw=1, zorder=0)
        ax.set_xscale("log")
        ax.set_title(f"{m} redraw{'s' if m > 1 else ''}", fontsize=9)
        ax.tick_params(labelsize=8)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
    panels[0].set_yticks(range(len(keys)), [f"{TITLES[s]}, {n} x {p}" for s, n, p in keys], fontsize=8)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    figure.supxlabel("mean squared error, as a multiple of the true sampler's with as many redraws", fontsize=9)
    path = folder / "peers.png"
    figure.savefig(path, dpi=150)
    return path
