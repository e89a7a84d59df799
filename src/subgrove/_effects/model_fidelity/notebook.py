"""What model fidelity shows of itself in a notebook."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from subgrove._notebook import MOST_ROWS, Cell, Scale, bar, card, counted, folded, table

if TYPE_CHECKING:
    from subgrove._effects.model_fidelity.result import CurveLoss, ModelFidelity


def model_fidelity_html(found: ModelFidelity) -> str:
    """One row for each method; the single curves are folded away."""
    lines = replace(found, backend="pandas").overall.to_dict("records")
    scale = Scale.of(line["estimate"] for line in lines)
    methods: list[list[Cell]] = [
        [line[name] for name in ("method", "against", "curves", "estimate", "median")] for line in lines
    ]
    methods = [[*row, bar(scale, 0.0, line["estimate"])] for row, line in zip(methods, lines, strict=True)]
    several = found._several_outputs
    curves: list[list[Cell]] = [
        [loss.feature, loss.method, *_output(loss, several), loss.against, loss.estimate, loss.std_error]
        for loss in found.losses[:MOST_ROWS]
    ]
    heads = ["feature", "method", *(["output"] if several else []), "against", "difference", "std. error"]
    each = table(heads, curves, total=len(found.losses), rest=".table")
    note = "Mean squared difference between a curve at the rows' values and what it is compared with: less is better."
    shown = table(["method", "against", "curves", "mean", "median", ""], methods, rest=".overall")
    title = f"Model fidelity of {counted(found._n_curves, 'curve')}"
    return card(title, note, shown, folded(f"Each curve ({len(found.losses):,})", each))


def _output(loss: CurveLoss, several: bool) -> list[Cell]:
    return [str(loss.output)] if several else []
