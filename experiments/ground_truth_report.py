"""The section on the ground-truth simulation, its sentences made from the numbers."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.beside_published import CELL
from experiments.ground_truth_figures import LABELS, TITLES

_FAR = 3.0
_SHOWN = ["cs_cart", "cs_trtr", "imp", "ko", "cvirf", "marg"]  # in the order of the paper


def section(tables: dict[str, pd.DataFrame]) -> str:
    """Markdown: for each setting the table of mean squared errors and what follows from it."""
    cells, truths, agreement = tables["cells"], tables["truths"], tables["agreement"]
    parts = [
        "## Ground truth: is the conditional importance found?",
        "Mean squared error of the estimated importance of x1 (one redraw of each row, squared error), ours with its "
        "standard error, the published one of 1000 repetitions in brackets. The truth of a cell is the mean over "
        "repetitions of the importance on 1000 fresh rows with x1 redrawn from its true distribution.",
    ]
    for setting in sorted(set(cells["setting"])):
        own = cells[cells["setting"] == setting]
        parts += [
            f"### Setting {setting}: {'the true model' if setting == 'I' else 'a random forest'}",
            _repetitions(own),
            mse_table(own[own["m"] == 1]),
            f"![Estimates in setting {setting}](images/reproduction/ground_truth_{setting}.png)",
            _agreement(agreement[agreement["setting"] == setting]),
            _truths(truths[truths["setting"] == setting]),
            _far_cells(own),
            _more_redraws(own),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def mse_table(cells: pd.DataFrame) -> str:
    """Cells as rows, methods as columns."""
    methods = [name for name in _SHOWN if name in set(cells["method"])]
    lines = ["scenario | n | p | " + " | ".join(LABELS[name] for name in methods)]
    lines.append(" | ".join(["---", "--:", "--:", *["--:"] * len(methods)]))
    for (scenario, n, p), part in cells.groupby(["scenario", "n", "p"], sort=False):
        by_method = {one["method"]: _entry(one) for one in part.to_dict("records")}
        entries = [by_method.get(name, "") for name in methods]
        lines.append(f"{TITLES[str(scenario)]} | {n} | {p} | " + " | ".join(entries))
    return "\n".join(f"| {line} |" for line in lines)


def _entry(one: dict[Any, Any]) -> str:
    digits = 2 if one["mse"] < 100 else 0
    error = "" if pd.isna(one["mse_se"]) else f" ± {one['mse_se']:.{digits}f}"
    return f"{one['mse']:.{digits}f}{error} ({one['published_mse']:.{digits}f})"


def _repetitions(cells: pd.DataFrame) -> str:
    found = [
        f"{low} with n = {n}" if low == high else f"{low} to {high} with n = {n}"
        for n, low, high in ((n, min(part["reps"]), max(part["reps"])) for n, part in cells.groupby("n"))
    ]
    return f"Repetitions: {', '.join(found)}."


def _agreement(counts: pd.DataFrame) -> str:
    total = int(counts["cells"].sum())
    if not total:
        return "One repetition has no standard error, so nothing can be compared."
    by_method = ", ".join(
        f"{LABELS[one['method']]} {one['mse_within']}/{one['cells']}" for one in counts.to_dict("records")
    )
    return (
        f"{int(counts['mse_within'].sum())} of {total} mean squared errors and {int(counts['mean_within'].sum())} of "
        f"{total} means are within {_FAR:g} standard errors of the published ones. By method, mean squared errors: "
        f"{by_method}. Squared errors are skewed, so that of few repetitions a standard error goes with its mean, "
        f"small or large; with the spread of theirs and ours pooled in its place it is "
        f"{int(counts['pooled_within'].sum())} of {total}."
    )


def _truths(truths: pd.DataFrame) -> str:
    near = int((truths["z_truth"].abs() <= _FAR).sum())
    text = f"The truth itself is within {_FAR:g} standard errors of the published one in {near} of {len(truths)} cells."
    exact = truths.dropna(subset=["z_exact"])
    if len(exact):
        near = int((exact["z_exact"].abs() <= _FAR).sum())
        text += f" It is within {_FAR:g} standard errors of the closed form in {near} of {len(exact)}."
    return text


def _far_cells(cells: pd.DataFrame) -> str:
    far = cells[(cells["z_mse"].abs() > _FAR) | (cells["z_mean"].abs() > _FAR)]
    if far.empty:
        return ""
    return "\n".join(["Further than that:", "", *(_far_line(one) for one in far.to_dict("records"))])


def _far_line(one: dict[Any, Any]) -> str:
    return (
        f"- {TITLES[one['scenario']]}, n = {one['n']}, p = {one['p']}, {LABELS[one['method']]}: mean squared error "
        f"{one['mse']:.3g} against {one['published_mse']:.3g} (z {one['z_mse']:+.1f}, pooled {one['z_pooled']:+.1f}), "
        f"mean {one['mean']:.3g} against {one['published_mean']:.3g} (z {one['z_mean']:+.1f}), truth "
        f"{one['truth']:.3g} against {one['published_truth']:.3g}"
    )


def _more_redraws(cells: pd.DataFrame) -> str:
    most = int(cells["m"].max())
    keys = [*CELL, "method"]
    once, often = (cells[cells["m"] == m].set_index(keys)["mse"] for m in (1, most))
    share = (often / once).dropna()
    if most == 1 or share.empty:
        return ""
    listed = [
        f"{LABELS[name]} {100 * (part.median() - 1):+.0f} %"
        for name in LABELS
        if len(part := share[share.index.get_level_values("method") == name])
    ]
    return (
        f"The mean of {most} redraws in place of one changes the mean squared error, in the median over cells, by: "
        f"{', '.join(listed)}."
    )
