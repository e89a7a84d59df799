"""The gap between marginal and conditional importance of each feature, within a budget of predicted rows.

Steps between the two ends predict again, and samplers without trees are refitted for each of them. So the features
with the most significant gaps have steps column by column, as long as the budget lasts; the others have one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._importance import Gap, ImportanceResult
from subgrove._importance.comparison import differences
from subgrove._report.summary import GapStepSummary

MOST_ROWS = 800_000
"""Rows that may be predicted for the steps of all gaps together."""
MOST_FITS = 40
"""Number of times that samplers may be refitted, for all features together."""
_NO_COLUMN = ("no split", "no columns")  # kinds of gaps that no column explains
_SETS = 6  # the five strongest columns and all others
_TREES = ("marginal", "subgroups")


@dataclass(frozen=True, eq=False)
class FeatureGaps:
    """The gap of each feature that has steps, the difference of each feature, and the number of rows predicted."""

    by_feature: dict[str, Gap]
    differences: dict[str, dict[str, Any]]
    rows_predicted: int

    def unexplained(self, feature: str) -> bool:
        """Whether no column explains the gap, so that it is due to the donor rows alone."""
        found = self.by_feature.get(feature)
        return found is not None and found.kind in _NO_COLUMN

    def steps(self, feature: str, n_columns: int) -> tuple[GapStepSummary, ...]:
        """Return the steps of a feature; one step for all columns where they were not computed one by one."""
        found = self.by_feature.get(feature)
        if self.unexplained(feature) or not n_columns:
            return ()
        if found is not None:
            return tuple(GapStepSummary(one.column, one.start, one.end, one.step, one.noise) for one in found.parts)
        line = self.differences[feature]
        title = "the other column" if n_columns == 1 else f"the other {n_columns} columns"
        noise = None if np.isnan(line["std_error"]) else float(line["std_error"])
        return (GapStepSummary(title, line["other"], line["this"], -line["estimate"], noise),)


def feature_gaps(conditional: ImportanceResult, marginal: ImportanceResult, n_columns: int) -> FeatureGaps:
    """Return the gaps of the features, the most significant first."""
    lines = {line["feature"]: line for line in differences(conditional, marginal)}
    gaps: dict[str, Gap] = {}
    n_rows, n_fits = 0, 0
    for feature in sorted(lines, key=lambda name: -_significance(lines[name])):
        rows, fits = _cost(conditional, feature, n_columns)
        if rows and (n_rows + rows > MOST_ROWS or n_fits + fits > MOST_FITS):
            continue
        gap = conditional.explain_gap(marginal, feature)
        gaps[feature] = gap
        n_rows += gap.n_rows_predicted
        n_fits += fits if gap.n_rows_predicted else 0
    return FeatureGaps(gaps, lines, n_rows)


def _significance(line: dict[str, Any]) -> float:
    error = line["std_error"]
    return abs(line["estimate"]) / error if error > 0 else 0.0


def _cost(result: ImportanceResult, feature: str, n_columns: int) -> tuple[int, int]:
    """Return how many rows the steps of a feature predict at most, and how often its sampler is refitted."""
    n_resampled = result.n_rows * int(result.settings["n_repeats"])
    selected = [one["chosen"] for one in (result.settings.get("choices") or {}).get(feature, [])]
    if feature in result.subgroups and (not selected or selected[0] in _TREES):
        score = next(one for one in result.scores if one.title == feature)
        return max(len(score.conditioning) - 1, 0) * n_resampled, 0
    sets = max(min(n_columns, _SETS) - 1, 0)
    return sets * n_resampled, sets
