"""Samplers: methods that resample a column. `base.py` is the contract; each sampler has a file of its own.

Importing a sampler here is all that makes its name known to `sampler=`.
"""

from subgrove._data.replace_columns import Donors
from subgrove.samplers.auto import Auto, CandidateScore, SamplerChoice
from subgrove.samplers.base import FittedSampler, Sampler
from subgrove.samplers.forest_nodes import ForestNodes
from subgrove.samplers.imputation import Imputation
from subgrove.samplers.intervals import Intervals
from subgrove.samplers.knockoffs import Knockoffs
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.resampled_feature import (
    DonorPool,
    ExactExpectation,
    ExpectationTerm,
    ResampledFeature,
    RowGroups,
)
from subgrove.samplers.shifted_subgroups import ShiftedSubgroups
from subgrove.samplers.subgroups import SubgroupSampler
from subgrove.samplers.unchanged import Unchanged

__all__ = [
    "Auto",
    "CandidateScore",
    "DonorPool",
    "Donors",
    "ExactExpectation",
    "ExpectationTerm",
    "FittedSampler",
    "ForestNodes",
    "Imputation",
    "Intervals",
    "Knockoffs",
    "Marginal",
    "ResampledFeature",
    "RowGroups",
    "Sampler",
    "SamplerChoice",
    "ShiftedSubgroups",
    "SubgroupSampler",
    "Unchanged",
]
