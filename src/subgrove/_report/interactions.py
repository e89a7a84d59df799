"""The section of a report on interactions: the strongest pairs of features, for models whose trees can be read."""

from __future__ import annotations

from collections.abc import Sequence

from subgrove._core.text import number, percent
from subgrove._effects import InteractionStrength
from subgrove._report.inputs import ReportInputs
from subgrove._report.model_summary import InteractionSummary
from subgrove._report.wording import tidy
from subgrove.exceptions import ModelError, SubgroveError

_FEATURES = 12  # the most important ones, whose pairs are compared
_SHOWN = 8
_WEAK = 0.01  # share of the variance of the joint effect

Interactions = tuple[tuple[InteractionSummary, ...], tuple[str, ...], int]


def interactions_of(inputs: ReportInputs, features: Sequence[str]) -> Interactions:
    """Return the strongest interactions of features, the sentences on them, and the number of rows predicted.

    `features` are in the order of their importance. There are no interactions if the trees of the model cannot be read.
    """
    names = list(features)[:_FEATURES]
    if len(names) < 2 or inputs.drawn.n < 2:
        return (), (), 0
    try:
        found = InteractionStrength.of_trees(inputs.model, inputs.drawn.X, names, inputs.seed)
    except ModelError:
        raise
    except SubgroveError:  # what the model gives is no number
        return (), (), 0
    several = len({repr(pair.output) for pair in found.pairs}) > 1
    pairs: dict[tuple[str, str], InteractionSummary] = {}
    for one in sorted(found.pairs, key=lambda one: -one.strength):
        output = str(one.output) if several else None
        summary = InteractionSummary(one.feature, one.other, output, one.strength, one.h_squared)
        pairs.setdefault((one.feature, one.other), summary)
    shown = tuple(pairs.values())[:_SHOWN]
    return shown, _sentences(inputs, shown, len(names), found.scale), found.n_rows_predicted


def _sentences(
    inputs: ReportInputs, shown: Sequence[InteractionSummary], n_features: int, scale: str
) -> tuple[str, ...]:
    """Return the finding on the strongest pair, and the scale on which interactions are measured."""
    if not shown:
        return ()
    regression, one = inputs.task == "regression", shown[0]
    margin = "units of the log-odds" if len(inputs.classes) == 2 else "units of the margin"
    unit = margin if scale == "margin" else f"units of {inputs.target}" if regression else "units of probability"
    where = "" if one.output is None else f" for class {one.output}"
    if one.strength == 0 or max(each.h_squared for each in shown) < _WEAK:
        finding = f"No pair of features interacts: less than {percent(_WEAK)} of the variance of any joint effect."
    else:
        finding = (
            f"{one.feature} and {one.other} have the strongest interaction{where}: their joint effect differs from the "
            f"sum of both effects by {number(one.strength)} (standard deviation, {unit}), which is "
            f"{percent(one.h_squared)} of the variance of the joint effect."
        )
    scope = f"Strengths are standard deviations, in {unit}."
    if n_features < len(inputs.features):
        scope += f" Pairs of the {n_features} features with the largest marginal importance."
    return tidy(finding), tidy(scope)
