"""Checks of weights and rows, with their warnings."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.table import Table, fingerprint, read_table, read_weights
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.row_losses import RowLosses
from subgrove._version import __version__
from subgrove.exceptions import ParameterError, SameRowsWarning, SingletonSubgroupWarning, SubgroveWarning
from subgrove.samplers.base import FittedSampler


def trained_on(fitted: FittedSampler, train: Any) -> str:
    """Which rows the sampler was fitted on, in a word."""
    parts = [part for part in fitted.members if part.learned_from_rows]
    if not parts:
        return "nothing"
    if any(part.cross_fitted for part in parts):
        return "cross-fitted"
    return "before" if train is None else "train"


def _fitted_on_train(fitted: FittedSampler) -> bool:
    exempt = fitted.cross_fitted or fitted.keeps_marginal or fitted.user_defined
    return fitted.learned_from_rows and not exempt


def warn_of_same_rows(fitted: FittedSampler, mark: str, redrawn: Table, train: Any, level: int = 3) -> None:
    """Say that the sampler was fitted on the rows that it is used on."""
    fitted = next((part for part in fitted.members if not part.keeps_marginal), fitted)
    trained = fitted.training_fingerprint
    if trained is not None:
        mark = fingerprint(redrawn) if fitted.has_user_kinds else mark
    elif train is None or not _fitted_on_train(fitted):
        return
    else:
        trained = fingerprint(read_table(getattr(train, "X", train), lenient=True))
    if trained == mark:
        warnings.warn(
            "The sampler was fitted on the same rows as it is now used on. Fit it on training rows, or leave train "
            "out, which cross-fits.",
            SameRowsWarning,
            stacklevel=level,
        )


def warn_of_singletons(scores: Sequence[FeatureResult], level: int = 3) -> None:
    """Say which subgroups had one row, which no other row of the same subgroup could be given to."""
    alone = [f"{score.title!r} where {score.rules[k]}" for score in scores for k in score.singletons]
    if alone:
        more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
        warnings.warn(
            f"Subgroups of one row cannot be redrawn from themselves, so their importance is 0: "
            f"{'; '.join(alone[:3])}{more}. Use samplers.SubgroupSampler(donors='train'), a smaller "
            "max_depth or more rows.",
            SingletonSubgroupWarning,
            stacklevel=level,
        )


def read_counts(sample_weight: Any, n_rows: int, level: int = 3) -> Floats | None:
    """Return the weights, which are frequencies of rows; None if all are 1."""
    weights = read_weights(sample_weight, n_rows)
    if weights is None or (weights == 1).all():
        return None
    if weights.sum() <= 2 < n_rows:
        warnings.warn(
            f"weights add up to {weights.sum():.3g} and are taken as numbers of rows, so standard errors are not "
            f"known. Multiply them, for example so that they add up to {n_rows}, the number of rows.",
            SubgroveWarning,
            stacklevel=level,
        )
    return weights


def reject_weighted_scores(losses: RowLosses, weights: Floats | None) -> None:
    """Raise if weights are used with a score of all rows together."""
    scores = [loss.name for loss in losses.losses if not loss.per_row]
    if scores and weights is not None:
        raise ParameterError(
            f"weights cannot be used with {', '.join(scores)}, a score of all rows together. "
            f"Use a loss that has a value for each row, or leave weights out."
        )


def versions() -> dict[str, str]:
    """Return the versions that results were computed with."""
    return {"subgrove": __version__, "numpy": np.__version__, "python": platform.python_version()}
