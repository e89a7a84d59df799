"""Construction of results, shared by `importance` and `loco`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.to_containers import backend_of
from subgrove._importance.checks import versions
from subgrove._importance.result import ImportanceResult
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.row_losses import RowLosses, names_of, weighted_mean


def make_result(
    results: Sequence[FeatureResult],
    losses: RowLosses,
    baseline: tuple[Floats, Floats],
    weights: Floats | None,
    settings: dict[str, Any],
    X: Any,
    row_numbers: Any = None,
    values: tuple[Floats | None, Floats | None] = (None, None),
) -> ImportanceResult:
    """Return the result of features.

    `baseline` are the losses of the baseline rows, and the scores of all of them together; `row_numbers` are the rows
    of X that were used, None for all; `values` are baseline predictions and residuals.
    """
    rows, scores = baseline
    means = np.where(np.isnan(scores), weighted_mean(rows, weights), scores)
    row_mask = None
    if row_numbers is not None:
        row_mask = np.zeros(len(X), dtype=np.bool_)
        row_mask[row_numbers] = True
    return ImportanceResult(
        tuple(results),
        names_of(losses.losses),
        tuple(means.tolist()),
        {**settings, "versions": versions()},
        weights,
        backend_of(X),
        getattr(X, "index", None),
        row_mask,
        tuple(loss.per_row for loss in losses.losses),
        predictions=values[0],
        residuals=values[1],
    )
