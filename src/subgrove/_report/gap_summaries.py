"""From marginal to conditional importance of each feature, as far as the rows that may be asked allow.

Steps between the two ends ask the model again, and samplers without trees are fitted again for each of them. So the
features whose gap is clearest have steps column by column, as long as the budget lasts; the others have one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._importance import Gap, ImportanceResult
from subgrove._importance.comparison import differences
from subgrove._report.summary import GapPart

MOST_ROWS = 800_000
"""Rows that the model may be asked for between the ends of gaps, all features together."""
MOST_FITS = 40
"""How often samplers may be fitted again, all features together."""
WITHOUT = ("no split", "no columns")
"""Kinds of gaps that have no column to tell of."""
_SETS = 6  # the five strongest columns and all others
_TREES = ("marginal", "subgroups")


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gap of each feature that has steps, the difference of each, and rows that the model was asked for."""

    by_feature: dict[str, Gap]
    differences: dict[str, dict[str, Any]]
    rows_predicted: int

    def parts(self, feature: str, n_columns: int) -> tuple[GapPart, ...]:
        """Steps of a feature; one, where no more were asked for."""
        found = self.by_feature.get(feature)
        if found is not None and found.kind in WITHOUT:
            return ()  # what is left differs by the rows that gave values, which no column tells
        if found is not None:
            return tuple(GapPart(one.column, one.before, one.after, one.step, one.noise) for one in found.parts)
        line = self.differences[feature]
        if not n_columns:
            return ()
        title = "the other column" if n_columns == 1 else f"the other {n_columns} columns"
        noise = None if np.isnan(line["std_error"]) else float(line["std_error"])
        return (GapPart(title, line["other"], line["this"], -line["estimate"], noise),)


def gaps_of(conditional: ImportanceResult, marginal: ImportanceResult, n_columns: int) -> Gaps:
    """Gaps of the features, the clearest first."""
    lines = {line["feature"]: line for line in differences(conditional, marginal)}
    found: dict[str, Gap] = {}
    asked, fits = 0, 0
    for feature in sorted(lines, key=lambda name: -_clarity(lines[name])):
        rows, again = _cost(conditional, feature, n_columns)
        if rows and (asked + rows > MOST_ROWS or fits + again > MOST_FITS):
            continue
        gap = conditional.explain_gap(marginal, feature)
        found[feature] = gap
        asked += gap.n_rows_predicted
        fits += again if gap.n_rows_predicted else 0
    return Gaps(found, lines, asked)


def _clarity(line: dict[str, Any]) -> float:
    error = line["std_error"]
    return abs(line["estimate"]) / error if error > 0 else 0.0


def _cost(result: ImportanceResult, feature: str, n_columns: int) -> tuple[int, int]:
    """Rows that the steps of a feature may ask for, and how often its sampler is fitted again."""
    redraws = result.n_rows * int(result.settings["n_repeats"])
    chosen = [one["chosen"] for one in (result.settings.get("choices") or {}).get(feature, [])]
    if feature in result.subgroups and (not chosen or chosen[0] in _TREES):
        score = next(one for one in result.scores if one.title == feature)
        return max(len(score.conditioning) - 1, 0) * redraws, 0
    sets = max(min(n_columns, _SETS) - 1, 0)
    return sets * redraws, sets
