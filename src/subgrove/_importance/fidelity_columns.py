"""Certificates in words and columns: which rows of a result rest on redraws that pass for real data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subgrove._scoring.feature_result import FeatureResult

MARK = "!"
NOT_REAL = "redrawn rows do not pass for real data"
EXPLAINED = f"{MARK} {NOT_REAL}, see .fidelity_checks"


def fails(score: FeatureResult) -> bool:
    """Whether redrawn rows of a feature do not pass for real ones."""
    return score.fidelity_check is not None and score.fidelity_check.verdict == "failed"


def certificate_columns(score: FeatureResult) -> dict[str, Any]:
    """What a row of importance says of its redraw; nothing if it was not certified."""
    if score.fidelity_check is None:
        return {}
    one = score.fidelity_check
    return {"auc": one.auc, "mmd": one.mmd, "fidelity": one.verdict}


def verdict_column(score: FeatureResult) -> dict[str, Any]:
    """The verdict alone."""
    return {} if score.fidelity_check is None else {"fidelity": score.fidelity_check.verdict}


def certificate_lines(scores: Sequence[FeatureResult]) -> list[dict[str, Any]]:
    """A line for each feature that was certified, with the reason of the verdict."""
    return [
        {
            "feature": score.title,
            "n": score.fidelity_check.n,
            "auc": score.fidelity_check.auc,
            "auc_std_error": score.fidelity_check.auc_std_error,
            "mmd": score.fidelity_check.mmd,
            "fidelity": score.fidelity_check.verdict,
            "reason": score.fidelity_check.reason,
        }
        for score in scores
        if score.fidelity_check is not None
    ]
