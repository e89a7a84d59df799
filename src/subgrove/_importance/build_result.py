"""What `importance` and `loco` share: weights that count rows, and the making of a result."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.table import read_weights
from subgrove._data.to_containers import backend_of
from subgrove._importance.result import ImportanceResult
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.row_losses import RowLosses, names_of, weighted_mean
from subgrove._version import __version__
from subgrove.exceptions import ParameterError, SubgroveWarning


def read_counts(weights: Any, n_rows: int) -> Floats | None:
    """Weights, which count rows; None where every row counts once."""
    counted = read_weights(weights, n_rows)
    if counted is None or (counted == 1).all():
        return None
    if counted.sum() <= 2 < n_rows:
        warnings.warn(
            f"weights add up to {counted.sum():.3g} and are taken as numbers of rows, so standard errors are not "
            f"known. Multiply them, for example so that they add up to {n_rows}, the number of rows.",
            SubgroveWarning,
            stacklevel=3,
        )
    return counted


def reject_weighted_scores(scoring: RowLosses, weights: Floats | None) -> None:
    """Scores of all rows together take no weights."""
    whole = [loss.name for loss in scoring.losses if not loss.per_row]
    if whole and weights is not None:
        raise ParameterError(
            f"weights cannot be used with {', '.join(whole)}, a score of all rows together. "
            f"Use a loss that has a value for each row, or leave weights out."
        )


def versions() -> dict[str, str]:
    """Of what numbers were computed with."""
    return {"subgrove": __version__, "numpy": np.__version__, "python": platform.python_version()}


def make_result(
    scores: Sequence[FeatureResult],
    scoring: RowLosses,
    before: tuple[Floats, Floats],
    weights: Floats | None,
    settings: dict[str, Any],
    X: Any,
    kept: Any = None,
    asked: tuple[Floats | None, Floats | None] = (None, None),
) -> ImportanceResult:
    """The result of scores; `before` are the losses of the rows as they are, and the scores of all of them together.

    `kept` are the numbers of the rows of X that were used, None if all were; `asked` are predictions, and what they
    leave of y.
    """
    rows, whole = before
    baseline = np.where(np.isnan(whole), weighted_mean(rows, weights), whole)
    mask = None
    if kept is not None:
        mask = np.zeros(len(X), dtype=np.bool_)
        mask[kept] = True
    return ImportanceResult(
        tuple(scores),
        names_of(scoring.losses),
        tuple(baseline.tolist()),
        {**settings, "versions": versions()},
        weights,
        backend_of(X),
        getattr(X, "index", None),
        mask,
        tuple(loss.per_row for loss in scoring.losses),
        predictions=asked[0],
        residuals=asked[1],
    )
