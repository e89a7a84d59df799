"""Samplers for rows that are never all at hand: values come from training rows, and each row is drawn alone.

Data in partitions are redrawn a part at a time. A sampler that takes values from other rows to be redrawn would give
other numbers for other partitions; so would one that draws from a plain random generator.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from subgrove._subgroups import Subgroups as FoundSubgroups
from subgrove.exceptions import ParameterError
from subgrove.samplers.auto.sampler import FittedAuto
from subgrove.samplers.base import FittedSampler, Sampler
from subgrove.samplers.fit import read_sampler, sampler_name
from subgrove.samplers.forest_nodes import ForestNodes
from subgrove.samplers.imputation import FittedImputation, Imputation
from subgrove.samplers.intervals import FittedIntervals
from subgrove.samplers.knockoffs import FittedKnockoffs
from subgrove.samplers.location_shift import FittedShiftedSubgroups
from subgrove.samplers.marginal import FittedMarginal, Marginal
from subgrove.samplers.subgroups import FittedSubgroups, SubgroupSampler
from subgrove.samplers.unchanged import FittedUnchanged

_ROW_BY_ROW = (FittedAuto, FittedIntervals, FittedKnockoffs, FittedShiftedSubgroups, FittedUnchanged)
_INSTEAD = "Use 'auto', 'subgroups', 'marginal' or another one that takes values from training rows"


def from_training(sampler: Any) -> Any:
    """The sampler that redraws row by row, with values of training rows; refuses those that cannot."""
    if isinstance(sampler, FittedSampler):
        return _fitted(sampler)
    method = sampler if isinstance(sampler, Sampler) else None
    if isinstance(sampler, str | FoundSubgroups):
        method = read_sampler(sampler)
    if method is None:
        raise ParameterError(
            f"sampler {sampler_name(sampler)!r} is your own and draws from random generators, whose numbers depend on "
            f"the place of a row in its partition. {_INSTEAD}, or pass a table in memory."
        )
    if isinstance(method, ForestNodes):
        raise ParameterError(
            f"sampler 'forest_nodes' gives a row the values of other rows that are redrawn, and of data in partitions "
            f"these are never all at hand. {_INSTEAD}."
        )
    if isinstance(method, Imputation) and method.residuals == "test":
        raise _other_residuals()
    if isinstance(method, SubgroupSampler | Marginal):
        if method.fixed_points:
            raise ParameterError(
                "fixed_points=True has no meaning for data in partitions: values come from training rows, and no row "
                "is its own donor. Leave it out."
            )
        method = copy(method)
        method.donors = "train"
    return method


def _fitted(sampler: FittedSampler) -> Any:
    if isinstance(sampler, FittedSubgroups | FittedMarginal):
        if sampler.uses_training_donors:
            return sampler
        groups = sampler.groups if isinstance(sampler, FittedSubgroups) else None
        return Marginal(donors="train") if groups is None else SubgroupSampler(groups=groups, donors="train")
    if isinstance(sampler, FittedImputation):
        if any(forest.representatives is None and forest.residuals is None for forest in sampler.forests.values()):
            raise _other_residuals()
        return sampler
    if isinstance(sampler, _ROW_BY_ROW):
        return sampler
    raise ParameterError(
        f"sampler {sampler_name(sampler)!r} gives a row the values of other rows that are redrawn, and of data in "
        f"partitions these are never all at hand. {_INSTEAD}."
    )


def _other_residuals() -> ParameterError:
    return ParameterError(
        "sampler 'imputation' with residuals='test' adds residuals of other rows that are redrawn, and of data in "
        "partitions these are never all at hand. Use residuals='oob'."
    )
