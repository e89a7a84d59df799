"""Certificates in words and columns: which rows of a result rest on redraws that pass for real data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subgrove._scoring.summed import Scores

MARK = "!"
NOT_REAL = "redrawn rows do not pass for real data"
EXPLAINED = f"{MARK} {NOT_REAL}, see .certificates"


def fails(score: Scores) -> bool:
    """Whether redrawn rows of a feature do not pass for real ones."""
    return score.certificate is not None and score.certificate.verdict == "failed"


def certificate_columns(score: Scores) -> dict[str, Any]:
    """What a row of importance says of its redraw; nothing if it was not certified."""
    if score.certificate is None:
        return {}
    one = score.certificate
    return {"auc": one.auc, "mmd": one.mmd, "certificate": one.verdict}


def verdict_column(score: Scores) -> dict[str, Any]:
    """The verdict alone."""
    return {} if score.certificate is None else {"certificate": score.certificate.verdict}


def certificate_lines(scores: Sequence[Scores]) -> list[dict[str, Any]]:
    """A line for each feature that was certified, with the reason of the verdict."""
    return [
        {
            "feature": score.title,
            "n": score.certificate.n,
            "auc": score.certificate.auc,
            "auc_std_error": score.certificate.auc_std_error,
            "mmd": score.certificate.mmd,
            "certificate": score.certificate.verdict,
            "reason": score.certificate.reason,
        }
        for score in scores
        if score.certificate is not None
    ]
