"""What data fidelity shows of itself in a notebook."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from subgrove._notebook import Cell, Scale, card, counted, dot, folded, sentences, table

if TYPE_CHECKING:
    from subgrove._fidelity.result import Fidelity


def fidelity_html(found: Fidelity) -> str:
    """One row for each sampler, the best first: where it stands between marginal and unchanged."""
    lines = replace(found, backend="pandas").overall.to_dict("records")
    scale = Scale.of([0.0, 1.0, *(line["position"] for line in lines)])
    rows: list[list[Cell]] = []
    for line in lines:
        place = float(line["position"])
        row: list[Cell] = [str(line["sampler"]), float(line["estimate"]), place, dot(scale, place, place, place)]
        auc = [float(line["auc"])] if "auc" in line else []
        rows.append([*row, float(line["mean_rank"]), *auc, int(line["failed"])])
    heads = ["sampler", "fidelity", "position", "0 marginal, 1 unchanged", "mean rank"]
    heads += ["AUC"] if found.auc is not None else []
    common = int(lines[0]["n_features"])
    note = (
        f"Means over the {counted(common, 'feature')} that all samplers could redraw; {found.n:,} redrawn rows against "
        f"{found.n_reference:,}. Fidelity is -log of the squared MMD: larger is better."
    )
    failed = [f"{sampler} could not redraw {feature}: {why}" for (feature, sampler), why in found.notes.items()]
    reasons = folded(f"Why {counted(len(failed), 'redraw')} failed", sentences(failed, ".notes")) if failed else None
    title = f"Data fidelity: {counted(len(found.features), 'feature')}"
    return card(title, note, table([*heads, "failed"], rows, rest=".overall"), reasons)
