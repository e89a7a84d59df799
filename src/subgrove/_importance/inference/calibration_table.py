"""The table of `ImportanceResult.calibration`: estimates and errors with calibration and before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._importance.inference.intervals import overall_variance
from subgrove._importance.tables import loss_column
from subgrove._scoring.feature_result import FeatureScores

if TYPE_CHECKING:
    from subgrove._importance.result import ImportanceResult

CALIBRATION_COLUMNS = ("feature", "estimate", "std_error", "estimate_before", "std_error_before", "columns")


def calibration_lines(result: ImportanceResult) -> list[dict[str, Any]]:
    """One line for each loss and feature; none where the result is not calibrated."""
    scores = [score for score in result.scores if isinstance(score, FeatureScores)]
    return [
        {**loss_column(result.losses, at), **line}
        for at in range(len(result.losses))
        for score in scores
        for line in _lines(score, at)
    ]


def _lines(score: FeatureScores, at: int) -> list[dict[str, Any]]:
    kept = score.calibration
    if kept is None:
        return []
    values = {
        "estimate": score.overall[at].mean(),
        "std_error": np.sqrt(overall_variance(score, None)[at]),
        "estimate_before": kept.estimate_before[at],
        "std_error_before": np.sqrt(kept.variance_before[at]),
    }
    told = {name: float(value) for name, value in values.items()}
    return [{"feature": score.title, **told, "columns": ", ".join(kept.columns)}]
