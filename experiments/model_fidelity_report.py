"""The section on model fidelity, its sentences made from the numbers."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.model_fidelity_tables import FLAT, METHODS

NAMES = {
    "pdp": "PDP",
    "ale": "ALE",
    "cs_trtr_1": "cs-PDP trtr 1",
    "cs_cart_1": "cs-PDP CART 1",
    "cs_trtr_2": "cs-PDP trtr 2",
    "cs_cart_2": "cs-PDP CART 2",
    FLAT: "flat line",
}
MODELS = {"forest": "random forest", "linear": "linear model", "knn": "nearest neighbours"}
_NEAR = 0.10


def section(tables: dict[str, pd.DataFrame]) -> str:
    """Markdown: the published table beside ours, then the other models and comparisons."""
    medians, best = tables["medians"], tables["best"]
    forest = medians[medians["model"] == "forest"]
    parts = [
        "## Model fidelity: how far is a curve of one feature from the model?",
        _size(medians),
        "Random forest, mean squared difference of the curve and the *target*, which is what the published numbers "
        "(in brackets) are: median over features, mean over repetitions with its standard error. The flat line is the "
        "mean prediction, the same for every row.",
        loss_table(forest[forest["against"] == "target"]),
        _agreement(forest.dropna(subset=["published"])),
        "The same against the *prediction*, which is Equation (9) of the paper:",
        loss_table(forest[forest["against"] == "prediction"]),
        _best(best),
    ]
    for model in MODELS:
        own = medians[(medians["model"] == model) & (medians["against"] == "target")]
        if model != "forest" and len(own):
            parts += [f"The {MODELS[model]}, against the target (the paper has a figure only):", loss_table(own)]
    return "\n\n".join(part for part in parts if part) + "\n"


def loss_table(medians: pd.DataFrame) -> str:
    """Methods as rows, data sets as columns."""
    sets = sorted(set(medians["data"]))
    known: dict[Any, dict[Any, Any]] = medians.set_index(["method", "data"]).to_dict("index")
    lines = ["method | " + " | ".join(sets), " | ".join(["---", *["--:"] * len(sets)])]
    for method in (*METHODS, FLAT):
        entries = [_entry(known.get((method, name))) for name in sets]
        lines.append(f"{NAMES[method]} | " + " | ".join(entries))
    return "\n".join(f"| {line} |" for line in lines)


def _entry(one: dict[Any, Any] | None) -> str:
    if one is None:
        return ""
    digits = 2 if one["estimate"] >= 1 else 3 if one["estimate"] >= 0.1 else 4
    error = "" if pd.isna(one["std_error"]) else f" ± {one['std_error']:.{digits}f}"
    beside = "" if pd.isna(one["published"]) else f" ({one['published']:.2f})"
    return f"{one['estimate']:.{digits}f}{error}{beside}"


def _size(medians: pd.DataFrame) -> str:
    low, high = int(medians["repetitions"].min()), int(medians["repetitions"].max())
    repeated = f"{low}" if low == high else f"{low} to {high}"
    counts = f"{medians['data'].nunique()} data sets, {medians['model'].nunique()} models, {repeated} repetitions"
    return (
        f"{counts}, each with a split and a model of its own. Curves have 20 points (ALE: 20 intervals) and are made "
        f"with all training rows (70 %); losses are of the other rows. Forest: 500 trees, a third of the columns tried "
        f"at each split. Nearest neighbours: 7, weighted. Pollen keeps its observation number as a feature, as in the "
        f"paper."
    )


def _agreement(forest: pd.DataFrame) -> str:
    if forest.empty:
        return ""
    far = forest[forest["deviation"].abs() > _NEAR]
    text = (
        f"{len(forest) - len(far)} of {len(forest)} are within {_NEAR:.0%} of the published number, as far as its two "
        f"decimals show; the mean deviation is {forest['deviation'].mean():+.1%}."
    )
    if far.empty:
        return text
    lines = [
        f"- {one['data']}, {NAMES[one['method']]}: {one['estimate']:.3g} ± {one['std_error']:.2g} against "
        f"{one['published']:.2f} ({one['deviation']:+.0%})"
        for one in far.to_dict("records")
    ]
    return "\n".join([text, "", "Further away:", "", *lines])


def _best(best: pd.DataFrame) -> str:
    sentences = []
    for against in ("target", "prediction"):
        own = best[best["against"] == against]
        counts = own["verdict"].value_counts()
        gain = 1 - (own["loss_depth_2"] / own["loss_pdp"])
        sentences.append(
            f"Against the {against}, cs-PDPs of depth 2 are best in {counts.get('best', 0)} of {len(own)} pairs of "
            f"data set and model, tied with the best other method in {counts.get('tied', 0)} (within two standard "
            f"errors of the difference) and beaten in {counts.get('beaten', 0)}. They lower the loss of the PDP by "
            f"{100 * gain.median():.1f} % in the median, {100 * gain.min():.1f} to {100 * gain.max():.1f} %."
        )
    beaten = best[best["verdict"] == "beaten"]
    lines = [
        f"- {one['data']}, {MODELS[one['model']]}, against the {one['against']}: {NAMES[one['depth_2']]} "
        f"{one['loss_depth_2']:.4g}, {NAMES[one['other']]} {one['loss_other']:.4g} "
        f"(difference {one['difference']:.2g} ± {one['std_error']:.2g})"
        for one in beaten.to_dict("records")
    ]
    return "\n".join([" ".join(sentences), *(["", "Beaten:", "", *lines] if lines else [])])
