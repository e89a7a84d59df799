"""What is told of the rows that a sampler was fitted on, and warnings of those that it is used on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from subgrove._data.fingerprint import fingerprint
from subgrove._data.table import Table, read_table
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import SameRowsWarning, SingletonSubgroupWarning
from subgrove.samplers.base import FittedSampler
from subgrove.samplers.conditioning import parts_of
from subgrove.samplers.cross_fit import CrossFitted
from subgrove.samplers.marginal import FittedMarginal
from subgrove.samplers.subgroups import FittedSubgroups
from subgrove.samplers.unchanged import FittedUnchanged
from subgrove.samplers.user_defined import UserSampler

_LEARNED_NOTHING = (FittedMarginal, FittedUnchanged)


def trained_on(fitted: FittedSampler, train: Any) -> str:
    """Which rows the sampler was fitted on, in a word."""
    parts = [part for part in parts_of(fitted) if part.uses_training_donors or not isinstance(part, _LEARNED_NOTHING)]
    if not parts:
        return "nothing"
    if any(isinstance(part, CrossFitted) for part in parts):
        return "cross-fitted"
    return "before" if train is None else "train"


def warn_of_same_rows(fitted: FittedSampler, mark: str, redrawn: Table, train: Any, level: int = 3) -> None:
    """Say that the sampler was fitted on the rows that it is used on."""
    fitted = next((part for part in parts_of(fitted) if not isinstance(part, FittedMarginal)), fitted)
    if isinstance(fitted, FittedSubgroups):
        trained = fitted.groups.fingerprint
        # Kinds that the user chose in find_subgroups make another fingerprint of the same rows.
        mark = fingerprint(redrawn) if fitted.groups.parameters.get("kinds") else mark
    elif train is None or isinstance(fitted, CrossFitted | FittedMarginal | FittedUnchanged | UserSampler):
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
