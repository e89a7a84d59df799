"""The paper's motivating figures, each with the claims of its caption as computed numbers.

Figure 1 (a PDP outside the data), 2 (conditional importance and effects of dependent features), 4 and 5 (shuffling
within subgroups), the M-plot figure and the boxplot-PDP figure. One unit is one figure.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.parts.boxplot import boxplot_pdp
from experiments.parts.extrapolation import gaussian, misleading_pdp, split_density
from experiments.parts.mixing import linear_model, mplot
from experiments.parts.pictures import PICTURES
from experiments.parts.ran import ran
from experiments.parts.rows import Row, judged
from experiments.parts.sections import claims_section, holding
from experiments.units import Size, Unit

SUMMARY = "Figures 1, 2, 4, 5, the M-plot and the boxplot-PDP, and whether their captions hold (half a minute)"

_SAMPLES = 200
_NUMBERS: dict[str, Callable[[int, int], list[Row]]] = {
    "fig1": misleading_pdp,
    "fig2": linear_model,
    "fig4": split_density,
    "fig5": gaussian,
    "mplot": mplot,
    "boxplot": boxplot_pdp,
}
TITLES = {
    "fig1": "Figure 1: a PDP that leaves the data",
    "fig2": "Figure 2: a linear model with two features that are nearly the same",
    "fig4": "Figure 4: two subgroups with different distributions",
    "fig5": "Figure 5: a linear dependence, which subgroups can only come near",
    "mplot": "M-plot figure: an effect of a feature that the model does not need",
    "boxplot": "Boxplot-PDP figure: a curve that shows where the data are",
}


def units(size: Size) -> list[Unit]:
    """A unit for each figure; `reps` is the number of samples that its claims are checked on."""
    samples = 4 if size.quick else size.reps or _SAMPLES
    return [Unit(name, name, {"samples": samples}) for name in _NUMBERS if size.takes(name)]


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Points, curves and claims of a figure."""
    return _NUMBERS[unit.key](seed, int(unit.params["samples"]))


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The claims, in the order of the paper, and what was run."""
    claims = judged(results, ["cell"]).rename(columns={"cell": "figure"})
    order = claims["figure"].map(list(_NUMBERS).index)
    return {"claims": claims.iloc[order.argsort(kind="stable")].reset_index(drop=True), "run": ran(results)}


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """A picture of each figure that has results."""
    there = [name for name in PICTURES if (results["cell"] == name).any()]
    return [PICTURES[name](results[results["cell"] == name], folder / f"figures_{name}.png") for name in there]


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of docs/reproduction.md."""
    claims = tables["claims"]
    lines = [
        "## Motivating figures",
        "The figures are simulations without published numbers, so what their captions say is checked instead: on "
        f"{claims['n'].max()} samples drawn as the caption says, of which the picture shows the first. 'Expected' is a "
        f"closed form, or a bound. {holding(claims)}",
    ]
    for name, title in TITLES.items():
        mine = claims[claims["figure"] == name]
        if not mine.empty:
            lines += [f"### {title}", f"![{title}](images/reproduction/figures_{name}.png)", claims_section(mine)]
    lines.append(_notes(claims))
    return "\n\n".join(lines)


def _notes(claims: pd.DataFrame) -> str:
    """Where the figures differ from the captions."""
    notch = claims.loc[claims["claim"].str.startswith("range of 1.58"), "ours"]
    said = ["N(4, 4) in the caption of figure 4 is read as a standard deviation of 4, as N(0, 5) is elsewhere."]
    if not notch.empty:
        said.append(
            "The whiskers of the boxplot-PDP follow Tukey's rule (the last row within 1.5 IQR of the box), not the "
            f"1.58 IQR / sqrt(n) of the caption, which would be {notch.iloc[0]:.2f} box widths: less than the box."
        )
    return "Read otherwise than written: " + " ".join(said)
