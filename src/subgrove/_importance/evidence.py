"""The one rule that decides what may be concluded from an importance; `explain`, the report and the command use it.

- "important": the interval lies above 0, the p-value is significant after Holm's adjustment for the number of
  features, the estimate is at least 1 % of the model's gain over the best constant prediction, and the resampled rows
  did not fail the fidelity check;
- "small": the same, but the estimate is below 1 % of the gain;
- "suggestive": the interval lies above 0, but the adjusted p-value is not significant;
- "negative": the interval lies below 0, so the model predicts better with resampled values;
- "negligible": the interval includes 0 and ends below 10 % of the gain;
- "uncertain": the interval includes 0 and is wider than that;
- "unreliable": resampled rows failed the fidelity check, so the estimate is that of rows that need not exist;
- "none": no loss changed at all;
- "without gain": the interval lies above 0, but the model is not better than a constant prediction (in reports, which
  judge the model);
- "unknown": there is no interval, or it does not hold (`reliable`).

Where the gain is unknown, or there is none, sizes are compared with the baseline loss.

If few rows have most of the loss, or there are fewer than 50 rows, the upper bound does not hold, but the lower one
does: such an estimate may be important, small or suggestive, and is otherwise unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from subgrove._importance.intervals import adjusted_p_values
from subgrove._importance.tables import ImportanceData, is_unrealistic, overall_line, subgroup_lines
from subgrove._scoring.estimate_variance import ONE_SIDED
from subgrove._scoring.feature_result import FeatureResult

Finding = Literal[
    "important",
    "small",
    "suggestive",
    "negative",
    "negligible",
    "uncertain",
    "unreliable",
    "none",
    "without gain",
    "unknown",
]
IMPORTANT = 0.01
"""Share of the gain from which on an importance counts as important."""
NEGLIGIBLE = 0.1
"""Share of the gain below which an interval that includes 0 has to end, to be called negligible."""
GAIN, BASELINE = "the gain over the best constant prediction", "the baseline loss"


def reference_of(result: ImportanceData, at: int) -> tuple[float, str]:
    """Return what the sizes of importances are compared with, and its name."""
    constant = (result.settings.get("constant_loss") or {}).get(result.losses[at])
    gain = 0.0 if constant is None else constant - result.baseline[at]
    return (gain, GAIN) if gain > 0 else (abs(result.baseline[at]), BASELINE)


def finding_of(
    line: Mapping[str, Any], gain: float, level: float, *, unrealistic: bool = False, share: float | None = IMPORTANT
) -> Finding:
    """Return what may be concluded from a line of a table that has adjusted p-values.

    Parameters
    ----------
    line : mapping
        `estimate`, `conf_low`, `conf_high`, `p_holm`, and `reliable` where the table has it.
    gain : float
        What sizes are compared with, see `reference_of`.
    level : float
        Level of the interval; an adjusted p-value is significant if it is at most 1 - level.
    unrealistic : bool, default False
        Whether the resampled rows failed the fidelity check.
    share : float or None, default 0.01
        Share of the gain from which on an importance counts as important; None if the model has no gain.
    """
    estimate, low, high = (float(line[name]) for name in ("estimate", "conf_low", "conf_high"))
    if estimate == 0 == low == high:
        return "none"
    if unrealistic:
        return "unreliable"
    if np.isnan(low) or np.isnan(high) or (line.get("reliable") and not (low > 0 and has_lower_bound(line))):
        return "unknown"
    if high < 0:
        return "negative"
    if low <= 0:
        return "negligible" if high < NEGLIGIBLE * gain else "uncertain"
    if not line["p_holm"] <= 1 - level + 1e-12:  # also if it is not known; 1 - 0.95 is slightly above 0.05
        return "suggestive"
    if share is None:
        return "without gain"
    return "important" if estimate >= share * gain else "small"


def has_lower_bound(line: Mapping[str, Any]) -> bool:
    """Return whether the lower bound of a line holds, although its interval does not."""
    return bool(line.get("reliable") in ONE_SIDED)


def overall_findings(
    result: ImportanceData, at: int, share: float | None = IMPORTANT, *, checked: bool = True
) -> dict[str, tuple[dict[str, Any], Finding]]:
    """Return the line of each feature in `overall`, with adjusted p-values, and what may be concluded from it.

    `checked` is False for conclusions about shuffled rows, realistic or not.
    """
    lines = adjusted_p_values([overall_line(result, score, at) for score in result.scores])
    return {
        score.title: (line, _finding(result, at, line, share, checked and is_unrealistic(score)))
        for score, line in zip(result.scores, lines, strict=True)
    }


def subgroup_findings(
    result: ImportanceData, score: FeatureResult, at: int, share: float | None = IMPORTANT
) -> list[tuple[dict[str, Any], Finding]]:
    """Return the same for the subgroups of a feature; p-values are adjusted for their number."""
    lines = adjusted_p_values(subgroup_lines(result, score, at))
    return [(line, _finding(result, at, line, share, is_unrealistic(score))) for line in lines]


def differs(most: tuple[float, float], least: tuple[float, float], n_subgroups: int, level: float) -> bool:
    """Return whether the largest and the smallest of several estimates differ significantly.

    The level is adjusted for the number of pairs that they were picked from (Bonferroni).

    Parameters
    ----------
    most, least : (float, float)
        Estimate and standard error.
    n_subgroups : int
        Number of estimates that they were picked from.
    level : float
        Confidence level.
    """
    from scipy.special import ndtri

    pairs = max(n_subgroups * (n_subgroups - 1) // 2, 1)
    margin = -ndtri((1 - level) / 2 / pairs) * np.hypot(most[1], least[1])
    return bool(most[0] - least[0] > margin)


def _finding(
    result: ImportanceData, at: int, line: Mapping[str, Any], share: float | None, unrealistic: bool
) -> Finding:
    gain, _ = reference_of(result, at)
    return finding_of(line, gain, result.level, unrealistic=unrealistic, share=share)
