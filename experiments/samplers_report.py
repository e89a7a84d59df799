"""The section on samplers past the paper, its sentences made from the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.beside_published import CELL
from experiments.ground_truth_figures import LABELS, TITLES
from experiments.parts.sections import markdown, number, with_error
from experiments.samplers_figures import of_own_forest, picture_name

NEAR, FAR, FURTHER = 1.25, 2.0, 1.5  # target multiples of the true sampler's error


_HEAD = [
    "## Close to the true sampler in every cell?",
    "Mean squared error of the estimated importance of x1. *True* is the sampler that knows how x1 is distributed, on "
    "the same rows and with as many redraws; *times* is the error as a multiple of the true sampler's, with its "
    "standard error. The best published method is the one with the smallest error in that cell of the paper (one "
    "redraw, 1000 repetitions); *with as many redraws* is the smallest of our own run of the paper's methods. The "
    "forest of setting II is scikit-learn's: 500 trees, a third of the columns at each split, leaves of five rows or "
    "more.",
]
_HEAD_OWN = [
    "## The same for the forest of the paper's methods",
    "R's randomForest leaves nodes of five rows alone, but its leaves may be smaller. This is setting II with such a "
    "forest, which our own run of the paper's methods explains too.",
]
_TRUTHS = (
    "Each repetition has a forest of its own, but errors are counted from the mean of what is true of all of them, as "
    "in the paper. What forests differ by is the variance of what is true of each (the covariance of estimates with "
    "truths from other rows); an unbiased sampler cannot have less."
)
_CVIRF = (
    "CVIRF evaluates the training rows, of which there are twice as many as test rows, and resamples each in every "
    "tree where it is out of bag, about 180 times in 500 trees: less noise where there is little dependence."
)
_NOT_DETECTED = (
    " It is selected where the rows show no dependence of x1: within one standard error of the best in "
    "cross-validation, the simplest."
)
_FORESTS = {"sklearn": "scikit-learn's forest", "own": "a forest by R's rule"}


def section(tables: dict[str, pd.DataFrame]) -> str:
    """Markdown: for each sampler and setting the table, and what follows from it."""
    cells, choices = tables["cells"], tables["choices"]
    parts = [*(_HEAD_OWN if of_own_forest(cells) else _HEAD)]
    for method in dict.fromkeys(cells["method"]):
        if method != "true":
            parts += _of_sampler(str(method), cells, choices)
    return "\n\n".join(part for part in parts if part) + "\n"


def _of_sampler(method: str, cells: pd.DataFrame, choices: pd.DataFrame) -> list[str]:
    parts = [f"![{method} beside the true sampler](images/beyond/{picture_name(method, cells)})"]
    own_cells = cells[(cells["method"] == method) & (cells["m"] == cells["m"].max())]
    for setting in sorted(set(cells["setting"])):
        for m in sorted(set(cells["m"]), reverse=True):
            here = cells[(cells["setting"] == setting) & (cells["m"] == m)]
            own = here[here["method"] == method]
            if own.empty:
                continue
            of = "the true model" if setting == "I" else _FORESTS.get(own["forest"].iloc[0], "a random forest")
            parts += [
                f"### `{method}`, setting {setting} ({of}), {m} redraw{'s' if m > 1 else ''}",
                _repetitions(own),
                mse_table(own, here[here["method"] == "true"]),
                *verdicts(own, here[here["method"] == "true"]),
            ]
        made = choices[(choices["method"] == method) & (choices["setting"] == setting)]
        far = own_cells[(own_cells["setting"] == setting) & (own_cells["ratio_true"] > FAR)]
        parts += [_chosen(made, method), *_where_far(made, far)]
    return parts


def mse_table(own: pd.DataFrame, true: pd.DataFrame) -> str:
    """Cells as lines: published, repeated if there is such a run, ours, true, and how many times that ours is."""
    errors = {_key(one): one["mse"] for one in true.to_dict("records")}
    repeated = any(_best(one, "best_repeated") for one in own.to_dict("records"))
    lines = [
        (
            TITLES[one["scenario"]],
            str(one["n"]),
            str(one["p"]),
            _best(one, "best_published"),
            *([_best(one, "best_repeated")] if repeated else []),
            with_error(one["mse"], one["mse_se"]),
            number(errors[_key(one)]),
            with_error(one["ratio_true"], one["ratio_true_se"]),
        )
        for one in own.to_dict("records")
    ]
    published = ("best published", *(["with as many redraws"] if repeated else []))
    return markdown(("scenario", "n", "p", *published, "ours", "true", "times"), lines)


def verdicts(own: pd.DataFrame, true: pd.DataFrame) -> list[str]:
    """The targets, in how many cells they hold, and whether the true sampler itself meets them."""
    errors = {_key(one): one["mse"] for one in true.to_dict("records")}
    paper, further = own[own["best_published"].notna()], own[own["best_published"].isna()]
    said = []
    if len(paper):
        lost = [one for one in paper.to_dict("records") if not one["below_published"]]
        could = [errors[_key(one)] < one["best_published"] for one in paper.to_dict("records")]
        said.append(
            f"Below the best published method in {len(paper) - len(lost)} of {len(paper)} cells, the true sampler in "
            f"{sum(could)}. At most {NEAR:g} times the true sampler's error in "
            f"{int((paper['ratio_true'] <= NEAR).sum())} of {len(paper)}, at most {FAR:g} times in "
            f"{int((paper['ratio_true'] <= FAR).sum())}{_listed(paper[paper['ratio_true'] > FAR])}."
        )
        if lost:
            said.append("\n".join(["Not below the best published:", "", *(_lost(one, errors) for one in lost)]))
        if any(one["setting"] == "II" for one in lost):
            said.append(_TRUTHS)
        if any(one["best_published_method"] == "cvirf" for one in lost):
            said.append(_CVIRF)
    if len(further):
        over = further[further["ratio_true"] > FURTHER]
        said.append(
            f"In the scenarios that the paper does not have: at most {FURTHER:g} times the true sampler's error in "
            f"{len(further) - len(over)} of {len(further)} cells{_listed(over)}."
        )
    return said


def _lost(one: dict[Any, Any], errors: dict[tuple[Any, ...], float]) -> str:
    true, best = errors[_key(one)], one["best_published"]
    can = "which is below it" if true < best else "which is not below it either"
    above = (one["mse"] - best) / np.hypot(one["mse_se"], one["best_published_se"])
    return (
        f"- {_place(one)}: {with_error(one['mse'], one['mse_se'])} against {_best(one, 'best_published')}, "
        f"{above:.1f} standard errors of the difference above; the true sampler has {number(true)}, "
        f"{can}{_between_models(one)}"
    )


def _between_models(one: dict[Any, Any]) -> str:
    """In setting II every repetition has a model of its own, and errors are from the mean of what is true of each."""
    if one["setting"] == "I":
        return ""
    return f"; {with_error(one['between_models'], one['between_models_se'])} of ours is what forests differ by"


def _listed(cells: pd.DataFrame) -> str:
    named = [f"{_place(one)} ({number(one['ratio_true'])})" for one in cells.to_dict("records")]
    return f" (above in {', '.join(named)})" if named else ""


def _place(one: dict[Any, Any]) -> str:
    return f"{TITLES[one['scenario']]} {one['n']} x {one['p']}"


def _best(one: dict[Any, Any], name: str) -> str:
    if name not in one or pd.isna(one[name]):
        return ""
    return f"{number(one[name])} ({LABELS.get(one[f'{name}_method'], one[f'{name}_method'])})"


def _repetitions(own: pd.DataFrame) -> str:
    found = [
        f"{low} with n = {n}" if low == high else f"{low} to {high} with n = {n}"
        for n, low, high in ((n, min(part["reps"]), max(part["reps"])) for n, part in own.groupby("n"))
    ]
    return f"Repetitions: {', '.join(found)}."


def _chosen(choices: pd.DataFrame, method: str) -> str:
    if choices.empty:
        return ""
    lines = []
    for cell, part in choices.groupby(CELL, sort=False):
        shares = part.sort_values("share", ascending=False, kind="stable").to_dict("records")
        lines.append((TITLES[str(cell[1])], str(cell[2]), str(cell[3]), ", ".join(map(_share, shares))))
    said = (
        f"What `{method}` chose, by the share of repetitions, in brackets their mean squared error with most redraws:"
    )
    return f"{said}\n\n{markdown(('scenario', 'n', 'p', 'chosen'), lines)}"


def _share(one: dict[Any, Any]) -> str:
    return f"{one['candidate']} {100 * one['share']:.0f} % ({number(one['mse'])})"


def _where_far(choices: pd.DataFrame, far: pd.DataFrame) -> list[str]:
    """Of cells far from the true sampler, the choice that has most of the error beyond its share of repetitions."""
    said = []
    by_cell = {cell: part.to_dict("records") for cell, part in choices.groupby(CELL, sort=False)}
    for one in far.to_dict("records"):
        made = by_cell.get(_key(one), [])
        if len(made) < 2:
            continue
        total = sum(part["share"] * part["mse"] for part in made)
        worst = max(made, key=lambda part: part["share"] * (part["mse"] - total))
        most = worst["share"] * worst["mse"]
        said.append(
            f"In {_place(one)}, {number(one['ratio_true'])} times the true sampler's error, the repetitions with "
            f"`{worst['candidate']}`, {100 * worst['share']:.0f} % of all, have {100 * most / total:.0f} % of it; in "
            f"the others it is {number((total - most) / (1 - worst['share']))}."
            + (_NOT_DETECTED if worst["candidate"] == "marginal" else "")
        )
    return said


def _key(one: dict[Any, Any]) -> tuple[Any, ...]:
    return tuple(one[name] for name in CELL)
